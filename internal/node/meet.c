/* SPDX-License-Identifier: BSD-3-Clause */
/* The port at which a node tells its fabric address to the others, and what is said when it is
 * taken. */
#include "node/node_priv.h"

#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TWIN_MS 1500

static void mac(void *ctx, const void *data, size_t len, uint8_t out[32])
{
	struct cop_node *n = ctx;

	cop_wire_mac(&n->wire_secret, "rendezvous", data, len, out);
}

/* It is about to connect. */
static void met(void *ctx, const char *address)
{
	struct cop_node *n = ctx;

	cop_fabric_admit(cop_rpc_fabric(n->rpc), address);
}

static void refused(void *ctx, int rc)
{
	struct cop_node *n = ctx;

	cop_stats_rejected(&n->stats, rc, 1);
}

static int start(struct cop_node *n, const struct cop_job_host *at, bool second,
	struct cop_rendezvous **out, struct cop_err *err)
{
	struct cop_rendezvous_conf conf = {.self = at,
		.at_second_port = second,
		.fabric_address = cop_fabric_address(cop_rpc_fabric(n->rpc)),
		.mac = mac,
		.met = met,
		.refused = refused,
		.ctx = n};

	return cop_rendezvous_start(&conf, out, err);
}

struct answer {
	sem_t come;
	bool proved;
};

static void answered(void *arg, const char *address, bool lives, const char *why)
{
	struct answer *a = arg;

	(void)lives;
	(void)why;
	a->proved = address != NULL;
	sem_post(&a->come);
}

int cop_node_open_asking(struct cop_node *n, const char *address, struct cop_err *err)
{
	char name[64];
	struct cop_job_host at = {.name = name};
	struct cop_rendezvous *rendezvous = NULL;
	int rc;

	snprintf(name, sizeof(name), "%s", address);
	rc = start(n, &at, false, &rendezvous, err);
	atomic_store(&n->rendezvous, rendezvous);
	return rc;
}

/* Whether this very node, of this job and list, runs already: only that one answers to its name and
 * proves the secret. at is its host, with both ports or with one. */
static bool has_twin(struct cop_node *n, const struct cop_job_host *at)
{
	struct cop_job_host elsewhere = {.name = n->hosts.host[n->rank].name};
	struct cop_rendezvous *r = NULL;
	struct answer a = {.proved = false};
	struct cop_err ignored;

	if (start(n, &elsewhere, false, &r, &ignored))
		return false;
	sem_init(&a.come, 0, 0);
	if (cop_rendezvous_ask(r, at, TWIN_MS, answered, &a) == 0)
		while (sem_wait(&a.come) && errno == EINTR)
			;
	cop_rendezvous_stop(r);
	sem_destroy(&a.come);
	return a.proved;
}

static const char *holder_of(const struct cop_job_host *self, uint16_t port, char out[200])
{
	snprintf(out, 200, "a process that cannot be seen from here");
	cop_job_port_holder(self->name, port, out, 200);
	return out;
}

static int refuse_twin(struct cop_node *n, struct cop_err *err)
{
	const struct cop_job_host *self = &n->hosts.host[n->rank];
	struct cop_job_host first = {.name = self->name, .port = self->port};
	uint16_t port = self->second_port && !has_twin(n, &first) ? self->second_port : self->port;
	char holder[200];

	/* The others have the node that they wait for. */
	n->duplicate = true;
	return cop_err_set(err, EADDRINUSE,
		"%s (rank %u) of this tree runs already, as %s; end that tree with 'copper stop %s%s' before it is started again; "
		"another tree in the same job needs a job directory (-d) of its own",
		self->name, n->rank, holder_of(self, port, holder), n->job_dir[0] ? "-d " : "",
		n->job_dir[0] ? n->job_dir : "MOUNTPOINT");
}

static int port_is_taken(const struct cop_job_host *self, uint16_t port, struct cop_err *err)
{
	char holder[200];

	return cop_err_set(err, EADDRINUSE,
		"cannot listen on %s port %u for the rendezvous: it is taken by %s; choose another --port, and where nodes share a machine "
		"a port for each (--hosts host:port,...)",
		self->name, port, holder_of(self, port, holder));
}

/* A port that nobody chose may be another program's on this machine. */
static int open_second(struct cop_node *n, struct cop_rendezvous **out, struct cop_err *err)
{
	const struct cop_job_host *self = &n->hosts.host[n->rank];
	char holder[200];
	int rc;

	if (!self->second_port)
		return port_is_taken(self, self->port, err);
	rc = start(n, self, true, out, err);
	if (rc == -EADDRINUSE)
		return port_is_taken(self, self->second_port, err);
	if (!rc)
		cop_log_warn("rendezvous at port %u: port %u is taken by %s", self->second_port,
			self->port, holder_of(self, self->port, holder));
	return rc;
}

/* With an address book nobody needs it to come to this node, but its children to see, when it says
 * nothing, that it is there. */
static void open_beside_book(struct cop_node *n)
{
	const struct cop_job_host *self = &n->hosts.host[n->rank];
	struct cop_rendezvous *rendezvous = NULL;
	struct cop_err err = {0};
	int rc = start(n, self, false, &rendezvous, &err);

	if (rc == -EADDRINUSE && self->second_port)
		rc = start(n, self, true, &rendezvous, &err);
	if (rc)
		cop_log_info(
			"no rendezvous, so others tell by its silence alone whether this node lives: %s",
			err.text);
	atomic_store(&n->rendezvous, rendezvous);
}

/* A node that was stopped a moment ago has unmounted, and may not have closed its sockets yet. */
int cop_node_open_rendezvous(struct cop_node *n, struct cop_err *err)
{
	uint64_t end = cop_now_ms() + COP_NODE_FREE_MS;
	struct cop_rendezvous *rendezvous = NULL;
	int rc;

	if (n->topo.nodes == 1)
		return 0;
	if (n->book) {
		open_beside_book(n);
		return 0;
	}
	while ((rc = start(n, &n->hosts.host[n->rank], false, &rendezvous, err)) == -EADDRINUSE &&
		cop_now_ms() < end)
		poll(NULL, 0, 50);
	if (rc == -EADDRINUSE)
		rc = has_twin(n, &n->hosts.host[n->rank]) ? refuse_twin(n, err)
							  : open_second(n, &rendezvous, err);
	atomic_store(&n->rendezvous, rendezvous);
	return rc;
}
