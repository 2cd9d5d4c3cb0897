/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens the port on which a rank sends its address to others, and reports whether a taken port
 * belongs to another program or to the same rank of the same tree. */
#include "fabric/reach/reach_priv.h"

#include <poll.h>
#include <semaphore.h>

#include "base/log/log.h"

#define DUPLICATE_MS 1500
#define RETRY_MS 50

static void mac(void *ctx, const void *data, size_t len, uint8_t out[32])
{
	struct cop_reach *r = ctx;

	cop_wire_mac(r->conf.secret, "rendezvous", data, len, out);
}

/* Admits the address, from which the peer is about to connect. */
static void admit_address(void *ctx, const char *address)
{
	struct cop_reach *r = ctx;

	cop_endpoint_admit(cop_rpc_fabric(*r->conf.rpc), address);
}

static void count_rejected(void *ctx, int rc)
{
	struct cop_reach *r = ctx;

	cop_stats_rejected(r->conf.stats, rc, 1);
}

static int open_port(struct cop_reach *r, const struct cop_job_host *at, bool second,
	struct cop_rendezvous **out, struct cop_err *err)
{
	struct cop_rendezvous_conf conf = {.self = at,
		.at_second_port = second,
		.fabric_address = cop_endpoint_address(cop_rpc_fabric(*r->conf.rpc)),
		.mac = mac,
		.met = admit_address,
		.refused = count_rejected,
		.ctx = r};

	return cop_rendezvous_start(&conf, out, err);
}

int cop_reach_listen_as_client(struct cop_reach *r, const char *address, struct cop_err *err)
{
	char name[64];
	struct cop_job_host at = {.name = name};
	struct cop_rendezvous *rendezvous = NULL;
	int rc;

	snprintf(name, sizeof(name), "%s", address);
	rc = open_port(r, &at, false, &rendezvous, err);
	atomic_store(&r->rendezvous, rendezvous);
	return rc;
}

/* ---- a duplicate of this rank ---- */

struct answer {
	sem_t come;
	bool proved;
};

static void on_answer(void *arg, const char *address, bool lives, const char *why)
{
	struct answer *a = arg;

	(void)lives;
	(void)why;
	a->proved = address != NULL;
	sem_post(&a->come);
}

/* Whether the same rank of this job and host list is already running: only that rank replies to its
 * name and proves the secret. at is its host, with both ports or with one. */
static bool has_duplicate(struct cop_reach *r, const struct cop_job_host *at)
{
	struct cop_job_host elsewhere = {.name = at->name};
	struct cop_rendezvous *rendezvous = NULL;
	struct answer a = {.proved = false};
	struct cop_err ignored;

	if (open_port(r, &elsewhere, false, &rendezvous, &ignored))
		return false;
	sem_init(&a.come, 0, 0);
	if (cop_rendezvous_ask(rendezvous, at, DUPLICATE_MS, on_answer, &a) == 0)
		while (sem_wait(&a.come) && errno == EINTR)
			;
	cop_rendezvous_stop(rendezvous);
	sem_destroy(&a.come);
	return a.proved;
}

static const char *port_owner(const struct cop_job_host *self, uint16_t port, char out[200])
{
	snprintf(out, 200, "a process that cannot be seen from here");
	cop_job_port_owner(self->name, port, out, 200);
	return out;
}

static int refuse_duplicate(
	struct cop_reach *r, const struct cop_job_host *self, struct cop_err *err)
{
	struct cop_job_host first = {.name = self->name, .port = self->port};
	bool second = self->second_port && !has_duplicate(r, &first);
	const char *job_dir = r->conf.job_dir;
	char owner[200];

	r->duplicate = true;
	return cop_err_set(err, EADDRINUSE,
		"%s (rank %u) of this tree runs already, as %s; end that tree with 'copper stop %s%s' before it is started again; "
		"another tree in the same job needs a job directory (-d) of its own",
		self->name, r->conf.rank,
		port_owner(self, second ? self->second_port : self->port, owner),
		job_dir[0] ? "-d " : "", job_dir[0] ? job_dir : "MOUNTPOINT");
}

bool cop_reach_is_duplicate(const struct cop_reach *r)
{
	return r->duplicate;
}

/* ---- this rank's own port ---- */

static int port_is_taken(const struct cop_job_host *self, uint16_t port, struct cop_err *err)
{
	char owner[200];

	return cop_err_set(err, EADDRINUSE,
		"cannot listen on %s port %u for the rendezvous: it is taken by %s; choose another --port, and where nodes share a machine "
		"a port for each (--hosts host:port,...)",
		self->name, port, port_owner(self, port, owner));
}

/* A port that the user did not choose may be in use by another program. */
static int open_second(struct cop_reach *r, const struct cop_job_host *self,
	struct cop_rendezvous **out, struct cop_err *err)
{
	char owner[200];
	int rc;

	if (!self->second_port)
		return port_is_taken(self, self->port, err);
	rc = open_port(r, self, true, out, err);
	if (rc == -EADDRINUSE)
		return port_is_taken(self, self->second_port, err);
	if (!rc)
		cop_log_warn("rendezvous at port %u: port %u is taken by %s", self->second_port,
			self->port, port_owner(self, self->port, owner));
	return rc;
}

/* With an address book no node needs this rendezvous to find the address, but the node's children
 * use it to check whether a silent node is alive. */
static struct cop_rendezvous *open_beside_book(struct cop_reach *r, const struct cop_job_host *self)
{
	struct cop_rendezvous *rendezvous = NULL;
	struct cop_err err = {0};
	int rc = open_port(r, self, false, &rendezvous, &err);

	if (rc == -EADDRINUSE && self->second_port)
		rc = open_port(r, self, true, &rendezvous, &err);
	if (rc)
		cop_log_info(
			"no rendezvous, so other nodes judge by silence alone whether this node is alive: %s",
			err.text);
	return rendezvous;
}

static int open_own(struct cop_reach *r, const struct cop_job_host *self,
	struct cop_rendezvous **out, struct cop_err *err)
{
	uint64_t end = cop_now_ms() + COP_REACH_FREE_MS;
	int rc;

	while ((rc = open_port(r, self, false, out, err)) == -EADDRINUSE && cop_now_ms() < end)
		poll(NULL, 0, RETRY_MS);
	if (rc != -EADDRINUSE)
		return rc;
	return has_duplicate(r, self) ? refuse_duplicate(r, self, err)
				      : open_second(r, self, out, err);
}

int cop_reach_listen(struct cop_reach *r, struct cop_err *err)
{
	const struct cop_job_host *self = &r->conf.hosts->host[r->conf.rank];
	struct cop_rendezvous *rendezvous = NULL;
	int rc = 0;

	if (r->book)
		rendezvous = open_beside_book(r, self);
	else
		rc = open_own(r, self, &rendezvous, err);
	atomic_store(&r->rendezvous, rendezvous);
	return rc;
}
