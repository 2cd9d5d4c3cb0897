/* SPDX-License-Identifier: BSD-3-Clause */
/* A tree of seven ranks on a fake network with its own clock, for the tests in this directory. */
#ifndef COP_TREE_START_TESTING_H
#define COP_TREE_START_TESTING_H

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "job/dir/dir.h"
#include "tree/start/start_priv.h"

#define NODES 7 /* 0 above 1 and 2, 1 above 3 and 4, 2 above 5 and 6 */
#define READY_TIMEOUT_MS 120000
#define TICK_MS 100

struct node {
	struct world *w;
	uint32_t rank;
	unsigned lives; /* number of restarts with another address; part of the name */
	uint64_t config_hash;
	struct cop_stats stats;
	struct cop_rpc *rpc; /* NULL: not running */
	struct cop_start *join;
	bool started, over, telling, told;
	unsigned untold, barrier_ended;
	_Atomic unsigned wakes;
	uint64_t over_ms; /* when, on the world's clock */
};

struct world {
	struct cop_endpoint_net *net;
	uint64_t now_ms;
	struct cop_job_host host[NODES];
	struct cop_job_hosts hosts;
	char job_dir[64]; /* "": none */
	struct node node[NODES];
};

static inline void name_of(const struct node *n, char name[16])
{
	snprintf(name, 16, "n%" PRIu32 ".%u", n->rank, n->lives);
}

static inline void resolve(void *ctx, uint32_t rank, bool silent)
{
	struct node *n = ctx, *to = &n->w->node[rank];
	char name[16], address[32];

	(void)silent;
	name_of(to, name);
	snprintf(address, sizeof(address), "fake://%s", name);
	cop_start_looked(
		n->join, rank, to->rpc ? address : NULL, to->rpc ? NULL : "nobody listens there");
	cop_rpc_resolved(n->rpc, rank, to->rpc ? address : NULL, false);
}

static inline void serve(void *ctx, struct cop_rpc_req *req)
{
	struct node *n = ctx;

	if (!cop_start_serve(n->join, req))
		cop_rpc_reply(req, &(struct cop_rpc_answer){.status = -EOPNOTSUPP});
}

static inline void mismatch(void *ctx, uint32_t rank)
{
	struct node *n = ctx;

	cop_start_mismatch(n->join, rank);
}

static inline void woken(void *ctx)
{
	struct node *n = ctx;

	atomic_fetch_add(&n->wakes, 1);
}

static inline void barrier_ended(void *ctx)
{
	struct node *n = ctx;

	n->barrier_ended++;
}

static inline struct cop_start *new_join(struct node *n)
{
	struct cop_start_conf conf = {.rank = n->rank,
		.topo = {NODES, 2, 1},
		.hosts = &n->w->hosts,
		.ready_timeout_ms = READY_TIMEOUT_MS,
		.started_ns = cop_now_ns(),
		.ctx = n,
		.wake = woken,
		.barrier_ended = barrier_ended};
	struct cop_start *j = cop_start_new(&conf);
	char log[128];

	assert_non_null(j);
	if (n->w->job_dir[0]) {
		snprintf(log, sizeof(log), "%s/logs/%" PRIu32 ".log", n->w->job_dir, n->rank);
		assert_int_equal(cop_write_file(log, "", 0, 0600), 0);
		cop_start_use_dir(j, n->w->job_dir, log);
		/* Continues the clock of the world. */
		n->w->now_ms = COP_MAX(n->w->now_ms, cop_now_ms());
	}
	return j;
}

/* Serves requests but is not ready yet. */
static inline struct node *up(struct world *w, uint32_t rank)
{
	struct node *n = &w->node[rank];
	struct cop_rpc_conf rpc = {.rank = rank,
		.nodes = NODES + 1,
		.config_hash = n->config_hash,
		.peer_timeout_ms = 3000,
		.stats = &n->stats,
		.ctx = n,
		.resolve = resolve,
		.serve = serve,
		.mismatch = mismatch};
	char name[16];

	name_of(n, name);
	n->join = new_join(n);
	assert_int_equal(cop_rpc_open_fake(&rpc, w->net, name, &n->rpc), 0);
	cop_start_use_rpc(n->join, n->rpc);
	return n;
}

static inline struct node *start(struct world *w, uint32_t rank)
{
	struct node *n = w->node[rank].rpc ? &w->node[rank] : up(w, rank);

	cop_start_start(n->join, w->now_ms);
	n->started = true;
	return n;
}

static inline void start_all(struct world *w)
{
	for (uint32_t r = 0; r < NODES; r++)
		start(w, r);
}

/* Without a message, like a failed machine. It may be restarted elsewhere. */
static inline void kill_node(struct world *w, uint32_t rank)
{
	struct node *n = &w->node[rank];
	char name[16];

	name_of(n, name);
	cop_endpoint_fake_cut(w->net, name, true);
	if (n->join)
		cop_start_leave(n->join);
	if (n->rpc)
		cop_rpc_close(n->rpc);
	cop_start_free(n->join);
	*n = (struct node){.w = w, .rank = rank, .lives = n->lives + 1};
}

/* Like a node that exits with an error message. */
static inline void leave_word(struct node *n)
{
	char text[COP_STARTNOTE_WHY_SIZE + 64];

	if (!n->w->job_dir[0] || cop_start_is_ready(n->join) || cop_start_is_secondhand(n->join))
		return;
	snprintf(text, sizeof(text), COP_STARTNOTE_NOT_READY "%s", cop_start_why(n->join));
	cop_job_failure_write(n->w->job_dir, n->rank, text);
}

static inline void step(struct node *n)
{
	struct world *w = n->w;

	if (!n->over && cop_start_step(n->join, w->now_ms, false)) {
		n->over = n->telling = true;
		n->over_ms = w->now_ms;
		leave_word(n);
		cop_start_tell_below(n->join, w->now_ms);
	}
	if (n->over)
		cop_start_tend(n->join);
	if (n->telling && !cop_start_tell_left_ms(n->join, w->now_ms)) {
		n->untold = cop_start_name_untold(n->join);
		n->telling = false;
		n->told = true;
	}
}

static inline void pass_time(struct world *w, uint64_t ms)
{
	cop_endpoint_fake_run(w->net, 1000000);
	for (uint64_t at = 0; at < ms; at += TICK_MS) {
		w->now_ms += TICK_MS;
		for (uint32_t r = 0; r < NODES; r++)
			if (w->node[r].started)
				step(&w->node[r]);
		cop_endpoint_fake_advance(w->net, TICK_MS);
		cop_endpoint_fake_run(w->net, 1000000);
	}
}

static inline bool is_ready(struct world *w, uint32_t rank)
{
	return w->node[rank].join && cop_start_is_ready(w->node[rank].join);
}

static inline unsigned count_ready(struct world *w)
{
	unsigned count = 0;

	for (uint32_t r = 0; r < NODES; r++)
		count += is_ready(w, r);
	return count;
}

static inline const char *why(struct world *w, uint32_t rank)
{
	return cop_start_why(w->node[rank].join);
}

static inline void make_job_dir(struct world *w)
{
	char logs[80];

	strcpy(w->job_dir, "/tmp/cop-join-test-XXXXXX");
	assert_non_null(mkdtemp(w->job_dir));
	snprintf(logs, sizeof(logs), "%s/logs", w->job_dir);
	assert_int_equal(mkdir(logs, 0700), 0);
}

static inline int new_world(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->net = cop_endpoint_net_new();
	assert_non_null(w->net);
	w->now_ms = cop_now_ms();
	w->hosts = (struct cop_job_hosts){.host = w->host, .count = NODES};
	for (uint32_t r = 0; r < NODES; r++) {
		w->node[r] = (struct node){.w = w, .rank = r};
		assert_true(asprintf(&w->host[r].name, "h%" PRIu32, r) > 0);
	}
	*state = w;
	return 0;
}

static inline int free_world(void **state)
{
	struct world *w = *state;
	char command[128];

	for (uint32_t r = 0; r < NODES; r++)
		kill_node(w, r);
	for (uint32_t r = 0; r < NODES; r++)
		free(w->host[r].name);
	cop_endpoint_net_free(w->net);
	if (w->job_dir[0]) {
		snprintf(command, sizeof(command), "rm -rf '%s'", w->job_dir);
		assert_int_equal(system(command), 0);
	}
	free(w);
	return 0;
}

#endif
