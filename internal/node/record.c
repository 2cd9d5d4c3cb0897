/* SPDX-License-Identifier: BSD-3-Clause */
/* The record of the tree in the job directory. */
#include "node/node_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* For commands that are none of the nodes (guest). Who is alone has a socket, which is reached on
 * its own machine. */
static int write_tree(struct cop_node *n, const struct cop_treeop_sum *stopped, struct cop_err *err)
{
	struct cop_job_tree t = {.stopped = stopped && !stopped->missing,
		.insecure = n->conf->insecure,
		.book = n->reach && cop_reach_has_book(n->reach),
		.config_hash = n->config_hash,
		.fanout = n->topo.fanout,
		.trees = n->topo.trees,
		.peer_timeout_ms = n->conf->peer_timeout_ms,
		.hosts = n->hosts};
	char key[COP_CTL_KEY_MAX + 1], name[256] = "localhost", file[sizeof(t.secret_file)];
	struct cop_job_host alone = {.name = name, .port = COP_JOB_PORT};

	for (uint32_t i = 0; stopped && i < stopped->missing; i++)
		t.left[t.left_count++] = stopped->lost[i];
	snprintf(t.net_type, sizeof(t.net_type), "%s", n->conf->net_type);
	snprintf(t.source, sizeof(t.source), "%s", n->source);
	if (n->conf->secret_file && strlen(n->conf->secret_file) < sizeof(file) &&
		realpath(n->conf->secret_file, file))
		snprintf(t.secret_file, sizeof(t.secret_file), "%s", file);
	if (n->topo.nodes == 1) {
		gethostname(name, sizeof(name) - 1);
		t.hosts = (struct cop_job_hosts){.host = &alone, .count = 1};
		if (cop_node_socket(n, t.socket, key, err))
			return -EINVAL;
	}
	return cop_job_tree_write(n->job_dir, &t, err);
}

void cop_node_write_tree(struct cop_node *n, const struct cop_treeop_sum *stopped)
{
	struct cop_err err = {0};

	_Static_assert(COP_TREEOP_NAMED <= COP_JOB_TREE_LEFT, "who is named is written");
	if (n->job_dir[0] && (!stopped || stopped->missing <= COP_TREEOP_NAMED) &&
		write_tree(n, stopped, &err))
		cop_log_warn("%s", err.text);
}

void cop_node_keep_word(struct cop_node *n, const struct cop_treeop_sum *all)
{
	if (all->nodes + all->missing != n->topo.nodes)
		return;
	cop_node_write_tree(n, all);
	if (!all->missing && n->conf->job_dir)
		cop_job_secret_retire(n->job_dir, &n->secret);
}
