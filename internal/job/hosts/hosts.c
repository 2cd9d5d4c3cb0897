/* SPDX-License-Identifier: BSD-3-Clause */
/* Gets the host list from --hosts or the scheduler. */
#include <ctype.h>
#include <sys/stat.h>

#include "base/base/grow.h"
#include "job/hosts/hosts_priv.h"

#define SHARED_MAX 16 /* nodes of a job on one machine that get distinct ports */
/* Steps of one job run concurrently, as do jobs with close numbers. The distance is odd so that all
 * ports get used. */
#define STEPS_APART 61
/* Only root can listen on ports below this; slots end here. */
#define SLOTS_END 1024
#define COMPONENTS_MAX 128 /* Slurm's own limit */

void cop_job_hosts_free(struct cop_job_hosts *h)
{
	if (!h)
		return;
	for (uint32_t i = 0; i < h->count; i++)
		free(h->host[i].name);
	free(h->host);
	free(h->origin);
	*h = (struct cop_job_hosts){0};
}

int cop_job_builder_add(struct cop_job_builder *b, const char *name, size_t len, uint16_t port)
{
	char *copy, text[COP_IP_TEXT_SIZE];
	struct cop_ip ip;

	if (b->hosts.count >= COP_JOB_MAX_HOSTS)
		return -E2BIG;
	if (!COP_GROW(b->hosts.host, b->hosts.count, b->capacity))
		return -ENOMEM;
	copy = cop_job_name_is_six(name, len, &ip) ? strdup(cop_ip_print(&ip, text))
						   : strndup(name, len);
	if (!copy)
		return -ENOMEM;
	b->hosts.host[b->hosts.count++] = (struct cop_job_host){.name = copy, .port = port};
	return 0;
}

/* Machine files of MPI launchers: "host:4" means four slots (MPICH); "host slots=4" (Open MPI) and
 * "host:4 ifname=ib0" contain settings, which we ignore. */
static size_t without_settings(const char *text, size_t len)
{
	size_t name = 0;
	bool settings = false;

	while (name < len && !strchr(" \t", text[name]))
		name++;
	for (size_t i = name; i < len; i++) {
		if (strchr(" \t", text[i]))
			settings = false;
		else if (text[i] == '=')
			settings = true;
		else if (!settings && !isalpha((unsigned char)text[i]) && !strchr("_-", text[i]))
			return len;
	}
	return settings ? name : len;
}

static int add_line(struct cop_job_builder *b, const char *text, size_t len, uint16_t default_port,
	unsigned number, struct cop_err *err)
{
	struct cop_err why = {0};
	struct cop_job_word word;
	char quoted[64];
	int rc;

	len = without_settings(text, len);
	rc = cop_job_split_port(text, len, default_port, &word, &why);
	if (!rc && word.port < SLOTS_END)
		word.port = default_port;

	/* A leading bracket starts an IPv6 address. */
	if (memchr(text, ',', len) || memchr(text + 1, '[', len - 1))
		return cop_err_set(err, EINVAL,
			"line %u: '%s' is a list, but a file has one host on each line; a list is given as it is, "
			"without a file",
			number, cop_job_quote(text, len, quoted));
	if (rc)
		return cop_err_set(err, -rc, "line %u: %s", number, why.text);
	if (!cop_job_name_ok(word.name, word.len))
		return cop_err_set(err, EINVAL, "line %u: '%s' is not host or host:port", number,
			cop_job_quote(text, len, quoted));
	rc = cop_job_builder_add(b, word.name, word.len, word.port);
	if (rc)
		return cop_err_set(err, -rc,
			rc == -E2BIG ? "line %u: more than %d hosts"
				     : "line %u: no memory for %d hosts",
			number, COP_JOB_MAX_HOSTS);
	return 0;
}

/* line holds the line number of each host; NULL for a LIST, where we report positions in the
 * list. */
static int refuse_double(const struct cop_job_host *h, uint32_t first, uint32_t second,
	const unsigned *line, struct cop_err *err)
{
	char label[COP_JOB_LABEL_SIZE];

	return cop_err_set(err, EEXIST, "%s appears twice: %s %u and %u",
		cop_job_label(h->name, h->port, label), line ? "lines" : "places",
		line ? line[first] : first + 1, line ? line[second] : second + 1);
}

static int check_doubles(const struct cop_job_hosts *h, const unsigned *line, struct cop_err *err)
{
	struct cop_job_map map;
	int rc = cop_job_map_init(&map, h->count);

	if (rc)
		return cop_err_set(err, -rc, "no memory for %u hosts", h->count);
	for (uint32_t i = 0; !rc && i < h->count; i++) {
		const struct cop_job_host *host = &h->host[i];
		uint32_t before =
			cop_job_map_put(&map, host->name, strlen(host->name), host->port, i);

		if (before != COP_JOB_ABSENT)
			rc = refuse_double(host, before, i, line, err);
	}
	cop_job_map_fini(&map);
	return rc;
}

/* Keeps only the first entry for each host, in order. */
static int drop_doubles(struct cop_job_hosts *h, struct cop_err *err)
{
	struct cop_job_map map;
	uint32_t kept = 0;
	int rc = cop_job_map_init(&map, h->count);

	if (rc)
		return cop_err_set(err, -rc, "no memory for %u hosts", h->count);
	for (uint32_t i = 0; i < h->count; i++) {
		struct cop_job_host host = h->host[i];

		if (cop_job_map_put(&map, host.name, strlen(host.name), host.port, i) ==
			COP_JOB_ABSENT)
			h->host[kept++] = host;
		else
			free(host.name);
	}
	h->count = kept;
	cop_job_map_fini(&map);
	return 0;
}

/* A host with 200 slots is listed 200 times in a row; that must not count against the limit. */
static void drop_repeated(struct cop_job_hosts *h)
{
	struct cop_job_host *last = &h->host[h->count - 1];

	if (h->count < 2 || strcmp(last->name, last[-1].name) || last->port != last[-1].port)
		return;
	free(last->name);
	h->count--;
}

int cop_job_lines_parse(const char *text, size_t len, uint16_t default_port, bool once,
	struct cop_job_builder *b, struct cop_err *err)
{
	struct cop_job_lines lines = {.p = text, .end = text + len};
	unsigned *line = calloc(COP_JOB_MAX_HOSTS, sizeof(*line));
	const char *word;
	size_t word_len;
	int rc = line ? 0 : cop_err_set(err, ENOMEM, "no memory for the host list");

	while (!rc && cop_job_lines_next(&lines, &word, &word_len)) {
		rc = add_line(b, word, word_len, default_port, lines.number, err);
		if (!rc && once)
			drop_repeated(&b->hosts);
		else if (!rc)
			line[b->hosts.count - 1] = lines.number;
	}
	if (!rc && !b->hosts.count)
		rc = cop_err_set(err, EINVAL, "it names no host");
	if (!rc)
		rc = once ? drop_doubles(&b->hosts, err) : check_doubles(&b->hosts, line, err);
	free(line);
	return rc;
}

static int load_file(const char *path, uint16_t default_port, bool once, struct cop_job_builder *b,
	struct cop_err *err)
{
	char *text;
	size_t len;
	int rc = cop_read_file(path, COP_JOB_FILE_MAX, &text, &len);

	if (rc)
		return cop_err_set(err, -rc, "cannot read %s: %s%s", path, strerror(-rc),
			once && rc == -ENOENT
				? " (only the first host of a PBS job has it: give a copy that all hosts can read, --hosts FILE)"
				: "");
	rc = cop_job_lines_parse(text, len, default_port, once, b, err);
	free(text);
	return rc;
}

static int load_list(
	const char *text, uint16_t default_port, struct cop_job_builder *b, struct cop_err *err)
{
	int rc;

	if (!*text)
		return cop_err_set(err, EINVAL, "it names no host");
	rc = cop_job_list_expand(text, strlen(text), default_port, b, err);
	return rc ? rc : check_doubles(&b->hosts, NULL, err);
}

/* Returns the list with its origin or, on failure, prefixes the message with the origin. */
static int finish_list(struct cop_job_builder *b, int rc, const char *origin,
	const struct cop_err *why, struct cop_job_hosts *out, struct cop_err *err)
{
	if (!rc) {
		b->hosts.origin = strdup(origin);
		if (b->hosts.origin) {
			*out = b->hosts;
			return 0;
		}
		rc = -ENOMEM;
	}
	cop_job_hosts_free(&b->hosts);
	return cop_err_set(
		err, -rc, "%s: %s", origin, why->code ? why->text : "no memory for the host list");
}

/* A LIST never contains a slash. A directory that happens to have a host's name is not a host
 * file. */
static bool is_file(const char *text)
{
	struct stat st;

	return strchr(text, '/') || (!stat(text, &st) && !S_ISDIR(st.st_mode));
}

int cop_job_hosts_load(
	const char *text, uint16_t default_port, struct cop_job_hosts *out, struct cop_err *err)
{
	struct cop_job_builder b = {0};
	struct cop_err why = {0};
	char origin[300];
	int rc;

	*out = (struct cop_job_hosts){0};
	snprintf(origin, sizeof(origin), "--hosts %.200s%s", text, strlen(text) > 200 ? "..." : "");
	if (is_file(text))
		rc = load_file(text, default_port, false, &b, &why);
	else
		rc = load_list(text, default_port, &b, &why);
	return finish_list(&b, rc, origin, &why, out, err);
}

/* Concurrent jobs have close numbers, so we do not hash them. PBS numbers the tasks of an array
 * "12[3].server". */
static uint64_t job_number(void)
{
	static const char *const names[] = {"SLURM_JOB_ID", "PBS_JOBID"};
	uint64_t number = 0;

	for (size_t i = 0; i < COP_ARRAY_SIZE(names) && !number; i++) {
		const char *text = getenv(names[i]);
		char *end;

		if (!text)
			continue;
		number = strtoull(text, &end, 10);
		if (number && *end == '[')
			number += strtoull(end + 1, NULL, 10);
	}
	return number;
}

/* Slurm numbers batch scripts, interactive shells and the like from the top of the 32-bit range;
 * they are not steps. */
bool cop_job_slurm_step(uint64_t *step)
{
	const char *text = getenv("SLURM_STEP_ID");

	return text && *text && !cop_parse_u64(text, step) && *step < UINT32_MAX - 16;
}

/* Nodes that share a machine are few and close together in the list. The second port is what a job
 * with a distant number would use first. */
static void choose_ports(struct cop_job_hosts *h, uint64_t number)
{
	for (uint32_t i = 0; i < h->count; i++) {
		uint64_t place = number * SHARED_MAX + i % SHARED_MAX;

		if (h->host[i].port)
			continue;
		if (!number) {
			h->host[i].port = COP_JOB_PORT;
			continue;
		}
		h->host[i].port = (uint16_t)(COP_JOB_PORTS_FROM + place % COP_JOB_PORTS);
		h->host[i].second_port = (uint16_t)(COP_JOB_PORTS_FROM +
						    (place + COP_JOB_PORTS / 2) % COP_JOB_PORTS);
	}
}

/* The launcher indicates several nodes, but we have no list of the other hosts. Each node would
 * become a tree of its own and load the storage. */
static int refuse_alone(struct cop_err *err)
{
	static const struct {
		const char *name;
		uint64_t most; /* largest value with a single process */
	} tells[] = {{"PMI_SIZE", 1}, {"OMPI_COMM_WORLD_SIZE", 1}, {"FLUX_JOB_SIZE", 1},
		{"PMI_RANK", 0}, {"PMIX_RANK", 0}, {"PALS_NODEID", 0}, {"FLUX_TASK_RANK", 0},
		{"SLURM_NODEID", 0}};

	for (size_t i = 0; i < COP_ARRAY_SIZE(tells); i++) {
		const char *text = getenv(tells[i].name);
		uint64_t value;

		if (text && cop_parse_u64(text, &value) == 0 && value > tells[i].most)
			return cop_err_set(err, EINVAL,
				"%s=%s says that this is one of several, but neither --hosts nor a job of Slurm or PBS in the "
				"environment says on which hosts: give --hosts FILE|LIST (under Flux --hosts \"$(flux getattr hostlist)\"), or "
				"--hosts localhost for a tree of one node on each",
				tells[i].name, text);
	}
	return 0;
}

unsigned cop_job_slurm_components(void)
{
	const char *text = getenv("SLURM_HET_SIZE");
	uint64_t n;

	return text && cop_parse_u64(text, &n) == 0 && n > 1 && n <= COMPONENTS_MAX ? (unsigned)n
										    : 1;
}

/* Loads the hosts of all components of a heterogeneous job; components may overlap. */
static int load_components(
	unsigned n, uint16_t default_port, struct cop_job_builder *b, struct cop_err *err)
{
	char name[64];
	int rc = 0;

	for (unsigned i = 0; i < n && !rc; i++) {
		const char *list;

		snprintf(name, sizeof(name), "SLURM_JOB_NODELIST_HET_GROUP_%u", i);
		list = getenv(name);
		rc = list && *list
			     ? cop_job_list_expand(list, strlen(list), default_port, b, err)
			     : cop_err_set(err, EINVAL,
				       "the job has %u components, but %s is not set: give --hosts",
				       n, name);
	}
	return rc ? rc : drop_doubles(&b->hosts, err);
}

static int from_env(const char *variable, uint64_t number, uint16_t default_port,
	struct cop_job_hosts *out, struct cop_err *err)
{
	const char *list = getenv(variable), *file = getenv("PBS_NODEFILE");
	unsigned components =
		strcmp(variable, "SLURM_JOB_NODELIST") ? 1 : cop_job_slurm_components();
	struct cop_job_builder b = {0};
	struct cop_err why = {0};
	int rc;

	*out = (struct cop_job_hosts){0};
	if (list && *list && components > 1) {
		rc = load_components(components, default_port, &b, &why);
		rc = finish_list(&b, rc, variable, &why, out, err);
		if (!rc)
			cop_job_slurm_addresses(out);
	} else if (list && *list) {
		rc = load_list(list, default_port, &b, &why);
		rc = finish_list(&b, rc, variable, &why, out, err);
		if (!rc)
			cop_job_slurm_addresses(out);
	} else if (file && *file) {
		rc = load_file(file, default_port, true, &b, &why);
		rc = finish_list(&b, rc, "PBS_NODEFILE", &why, out, err);
	} else {
		return refuse_alone(err);
	}
	if (!rc)
		choose_ports(out, number);
	return rc;
}

int cop_job_hosts_env(uint16_t default_port, struct cop_job_hosts *out, struct cop_err *err)
{
	return from_env("SLURM_JOB_NODELIST", job_number(), default_port, out, err);
}

int cop_job_hosts_step(
	uint16_t default_port, uint32_t tree, struct cop_job_hosts *out, struct cop_err *err)
{
	uint64_t number = job_number(), step = 0;
	bool in_step = cop_job_slurm_step(&step) && getenv("SLURM_STEP_NODELIST");
	int rc = from_env(in_step ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST",
		number + tree + (in_step ? (step + 1) * STEPS_APART : 0), default_port, out, err);

	out->of_tasks = true;
	return rc;
}
