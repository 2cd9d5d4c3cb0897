/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds this machine in the host list. We compare names as text, and addresses with those of our
 * interfaces. Only if both fail do we ask the name service, and only about names that contain this
 * machine's own: "n1-hsn" is n1 on the fast network. */
#include <ctype.h>
#include <ifaddrs.h>
#include <strings.h>

#include "job/hosts/hosts_priv.h"
#include "base/log/log.h"

#define NAMES_ASKED 16u /* a lookup may take seconds */

struct machine {
	char name[COP_JOB_NAME_MAX + 3];
	struct ifaddrs *interfaces;
};

static int machine_init(struct machine *m, struct cop_err *err)
{
	if (gethostname(m->name, sizeof(m->name) - 1))
		return cop_err_set(
			err, errno, "cannot find out this machine's name: %s", strerror(errno));
	if (getifaddrs(&m->interfaces))
		return cop_err_set(
			err, errno, "cannot list the network interfaces: %s", strerror(errno));
	return 0;
}

static bool is_local_address(const struct machine *m, const struct cop_ip *address)
{
	struct cop_ip own;

	/* All of 127.0.0.0/8 is this machine, although the interface lists only one address. */
	if (cop_ip_is_loopback(address))
		return true;
	for (const struct ifaddrs *i = m->interfaces; i; i = i->ifa_next)
		if (i->ifa_addr && cop_ip_of_socket(i->ifa_addr, &own, NULL) &&
			cop_ip_same(&own, address))
			return true;
	return false;
}

static bool is_here(const struct machine *m, const char *name)
{
	struct cop_ip address;

	if (cop_ip_parse(name, &address))
		return is_local_address(m, &address);
	return cop_same_host(name, m->name) || !strcmp(name, "localhost");
}

/* Returns how many hosts in the list are this machine; *rank is the first of them. */
static uint32_t find_here(const struct cop_job_hosts *h, const struct machine *m, uint32_t *rank)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < h->count; i++)
		if (is_here(m, h->host[i].name) && !found++)
			*rank = i;
	return found;
}

/* Whether host contains this machine's name as a whole word: n1 is in "n1-hsn" and "ib0.n1", but
 * not in "n10". */
static bool holds_own_name(const struct machine *m, const char *host)
{
	char own[sizeof(m->name)];
	size_t len = strcspn(m->name, ".");

	memcpy(own, m->name, len);
	own[len] = '\0';
	for (const char *at = host; len && (at = strcasestr(at, own)); at++)
		if ((at == host || !isalnum((unsigned char)at[-1])) &&
			!isalnum((unsigned char)at[len]))
			return true;
	return false;
}

/* Like find_here, but with the addresses that the name service has for such names. *why says what
 * went wrong with one of them. */
static uint32_t find_by_network(
	const struct cop_job_hosts *h, const struct machine *m, uint32_t *rank, struct cop_err *why)
{
	uint32_t found = 0, asked = 0;
	struct cop_ip address;

	for (uint32_t i = 0; i < h->count && asked < NAMES_ASKED; i++) {
		struct cop_err err = {0};

		if (!holds_own_name(m, h->host[i].name))
			continue;
		asked++;
		if (cop_host_address(h->host[i].name, &address, &err))
			cop_err_set(why, err.code, "%s: %s", h->host[i].name, err.text);
		else if (is_local_address(m, &address) && !found++)
			*rank = i;
	}
	return found;
}

static bool from_scheduler(const struct cop_job_hosts *h)
{
	return h->origin && (!strcmp(h->origin, "SLURM_JOB_NODELIST") ||
				    !strcmp(h->origin, "SLURM_STEP_NODELIST") ||
				    !strcmp(h->origin, "PBS_NODEFILE"));
}

/* Returns 1 and sets *rank if the scheduler says which rank this is, else 0. */
static int rank_env(const struct cop_job_hosts *h, uint32_t *rank, struct cop_err *err)
{
	static const char *const names[] = {
		"SLURM_NODEID", "PALS_NODEID", "PMIX_RANK", "PMI_RANK", "FLUX_TASK_RANK"};
	size_t of_nodes = 2; /* index of the first of these variables */

	for (size_t i = 0; i < (h->of_tasks ? of_nodes : COP_ARRAY_SIZE(names)); i++) {
		const char *text = getenv(names[i]);
		uint64_t value;

		if (!text || !*text)
			continue;
		if (cop_parse_u64(text, &value))
			return cop_err_set(
				err, EINVAL, "%s is '%.40s', which is not a rank", names[i], text);
		if (value >= h->count)
			return cop_err_set(err, EINVAL,
				"%s is %" PRIu64
				", but %s names %u hosts: start one copper on each "
				"host, or name --hosts and --rank",
				names[i], value, h->origin, h->count);
		*rank = (uint32_t)value;
		return 1;
	}
	return 0;
}

/* A job step on some of the job's nodes renumbers them from 0, so the number may refer to another
 * host. If the list identifies this host unambiguously, we believe the list. */
static void check_against_list(
	const struct cop_job_hosts *h, const struct machine *m, uint32_t *rank)
{
	uint32_t here = 0;

	if (is_here(m, h->host[*rank].name) || find_here(h, m, &here) != 1)
		return;
	cop_log_info("the scheduler's rank is another host rank=%u host=%s here=%u name=%s", *rank,
		h->host[*rank].name, here, m->name);
	*rank = here;
}

/* A file that does not exist is taken for a host name. */
static const char *taken_for_a_host(const struct cop_job_hosts *h)
{
	const char *given = h->count == 1 && h->origin && strncmp(h->origin, "--hosts ", 8) == 0
				    ? h->origin + 8
				    : NULL;

	return given && access(given, F_OK)
		       ? " (there is no such file, so that is the name of a host)"
		       : "";
}

static int rank_here(
	const struct cop_job_hosts *h, const struct machine *m, uint32_t *rank, struct cop_err *err)
{
	uint32_t found = find_here(h, m, rank);
	struct cop_err why = {0};

	if (!found)
		found = find_by_network(h, m, rank, &why);
	if (found == 1)
		return 0;
	if (!found && why.code)
		return cop_err_set(err, why.code, "%s", why.text);
	if (!found)
		return cop_err_set(err, ENOENT, "%s is not among the %u hosts of %s%s: give --rank",
			m->name, h->count, h->origin ? h->origin : "the list", taken_for_a_host(h));
	return cop_err_set(err, EINVAL, "%u of the %u hosts of %s are this machine: give --rank",
		found, h->count, h->origin ? h->origin : "the list");
}

/* Whether the launcher has started an earlier task of the same command on this machine. */
static bool is_second_task(void)
{
	static const char *const names[] = {"SLURM_LOCALID", "PALS_LOCAL_RANKID",
		"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "FLUX_TASK_LOCAL_ID"};
	uint64_t value;

	for (size_t i = 0; i < COP_ARRAY_SIZE(names); i++) {
		const char *text = getenv(names[i]);

		if (text && *text && !cop_parse_u64(text, &value))
			return value > 0;
	}
	return false;
}

static int find_rank(const struct cop_job_hosts *h, uint32_t *rank, struct cop_err *err)
{
	struct machine m = {0};
	uint32_t first;
	int rc = machine_init(&m, err);

	if (!rc && !h->of_tasks && is_second_task() && find_here(h, &m, &first) <= 1)
		rc = cop_err_set(err, EINVAL,
			"several copper processes were started on %s: start one copper on each host "
			"(srun --ntasks-per-node=1, mpiexec -ppn 1, or mpirun --map-by ppr:1:node)",
			m.name);
	if (!rc && from_scheduler(h))
		rc = rank_env(h, rank, err);
	if (rc == 1) {
		check_against_list(h, &m, rank);
		rc = 0;
	} else if (!rc) {
		rc = rank_here(h, &m, rank, err);
	}
	if (m.interfaces)
		freeifaddrs(m.interfaces);
	return rc;
}

int cop_job_rank(const struct cop_job_hosts *h, int64_t want, uint32_t *rank, struct cop_err *err)
{
	if (want >= 0 && want >= COP_MAX(h->count, 1u))
		return cop_err_set(err, EINVAL, "--rank: %" PRId64 " is out of range 0..%u", want,
			COP_MAX(h->count, 1u) - 1);
	*rank = want >= 0 ? (uint32_t)want : 0;
	/* Without a list, there is only one node. */
	if (want >= 0 || !h->count)
		return 0;
	return find_rank(h, rank, err);
}

int cop_job_find(const struct cop_job_want *want, struct cop_job_hosts *out, uint32_t *rank,
	struct cop_err *err)
{
	int rc;

	if (want->hosts)
		rc = cop_job_hosts_load(
			want->hosts, want->port ? want->port : COP_JOB_PORT, out, err);
	else if (want->of_step)
		rc = cop_job_hosts_step(want->port, want->step_tree, out, err);
	else
		rc = cop_job_hosts_env(want->port, out, err);
	if (rc)
		return rc;
	out->of_tasks = want->of_step;
	if (out->count == 0 && want->rank > 0)
		return cop_err_set(err, EINVAL,
			"--rank %lld needs --hosts: without it this is a tree of one node",
			(long long)want->rank);
	*rank = 0;
	return out->count ? cop_job_rank(out, want->rank, rank, err) : 0;
}

const char *cop_job_host_name(const struct cop_job_hosts *h, uint32_t rank)
{
	return rank < h->count ? h->host[rank].name : "localhost";
}

uint16_t cop_job_host_port(const struct cop_job_hosts *h, uint32_t rank, uint16_t want)
{
	if (rank < h->count)
		return h->host[rank].port;
	return want ? want : COP_JOB_PORT;
}
