/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node knows of itself, for the other files here: they call it, and it calls none. */
#include "node/node_priv.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

void cop_node_wake(void *node)
{
	struct cop_node *n = node;
	uint64_t one = 1;

	if (write(n->wake_fd, &one, sizeof(one)) < 0)
		cop_log_error("cannot wake the main thread error=\"%s\"", strerror(errno));
}

const char *cop_node_host(const struct cop_node *n, uint32_t rank)
{
	return cop_job_host_name(&n->hosts, rank);
}

struct cop_status cop_node_status(struct cop_node *n)
{
	struct cop_status s = {.rank = n->rank,
		.nodes = n->topo.nodes,
		.ready = cop_join_is_ready(n->join),
		.prefetches = n->conf->prefetch != NULL,
		.host = cop_node_host(n, n->rank),
		.mountpoint = n->mountpoint,
		.source = n->source,
		.started_ns = n->started_ns,
		.stats = &n->stats,
		.cache = n->cache,
		.origin = n->origin,
		.rpc = n->rpc,
		.coop = n->coop,
		.fs = n->fs,
		.prefetch = n->prefetch};

	return s;
}

struct cop_tally_job cop_node_tally_job(const struct cop_node *n)
{
	return (struct cop_tally_job){.job_dir = n->job_dir,
		.source = n->source,
		.nodes = n->topo.nodes,
		.hosts = &n->hosts};
}

int cop_node_socket(const struct cop_node *n, char path[COP_CTL_PATH_SIZE],
	char key[COP_CTL_KEY_MAX + 1], struct cop_err *err)
{
	struct cop_ctl_place p = {n->conf->runtime_dir, n->mountpoint, cop_node_host(n, n->rank),
		cop_job_host_port(&n->hosts, n->rank, n->conf->port)};

	return cop_ctl_place(&p, path, key, err);
}
