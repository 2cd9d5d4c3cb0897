/* SPDX-License-Identifier: BSD-3-Clause */
/* Trees of nodes in one process, for the tests in this directory: fake fabric, fake origins, the
 * real rpc, cache and fetch. */
#ifndef COP_TREE_FETCH_TESTING_H
#define COP_TREE_FETCH_TESTING_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tree/fetch/fetch_priv.h"

#define NODES_MAX 17
#define CHUNK 4096u

struct node {
	struct tree *tree;
	uint32_t rank;
	char name[16];
	struct cop_stats stats;
	struct cop_cache *cache;
	struct cop_origin *origin;
	struct cop_rpc *rpc;
	struct cop_fetch *fetch;
};

struct tree {
	struct cop_endpoint_net *net;
	uint32_t count;
	struct node node[NODES_MAX];
};

struct asked {
	struct cop_waiter w;
	struct tree *tree;
	struct node *node;
	int calls, rc;
	struct cop_obj *obj;
};

/* Applies to trees opened afterwards. */
static bool packs __attribute__((unused));
static bool bundle __attribute__((unused));
static struct cop_packfile *pack __attribute__((unused)); /* of node 0 */
static uint32_t ttl_ms = 1;
static uint64_t striped_bytes = 64 * CHUNK;
static uint32_t most_ms __attribute__((unused));
static struct cop_tracer *tracer __attribute__((unused));
static int (*forget_names)(void *ctx, const char *dir, void (*then)(void *arg), void *arg)
	__attribute__((unused));

/* Answers a request instead of a node; false: the node answers. */
static bool (*serve_instead)(struct node *n, struct cop_rpc_req *req) __attribute__((unused));

static inline void resolve(void *ctx, uint32_t rank, bool silent)
{
	struct node *n = ctx;
	char address[32];

	(void)silent;
	snprintf(address, sizeof(address), "fake://%s", n->tree->node[rank].name);
	cop_rpc_resolved(n->rpc, rank, address, false);
}

static inline void serve(void *ctx, struct cop_rpc_req *req)
{
	struct node *n = ctx;

	if (serve_instead && serve_instead(n, req))
		return;
	if (!cop_fetch_serve(n->fetch, req))
		cop_rpc_reply(req, &(struct cop_rpc_answer){.status = -EOPNOTSUPP});
}

static inline void tick_fetch(void *ctx, uint64_t now_ms)
{
	struct node *n = ctx;

	cop_fetch_tick(n->fetch, now_ms);
}

static inline void open_node(
	struct tree *t, uint32_t rank, uint32_t fanout, uint32_t trees, uint64_t budget)
{
	struct node *n = &t->node[rank];
	struct cop_rpc_conf rpc = {.rank = rank,
		.nodes = t->count,
		.peer_timeout_ms = 3000,
		.stats = &n->stats,
		.ctx = n,
		.resolve = resolve,
		.serve = serve,
		.tick = tick_fetch};
	struct cop_fetch_conf conf = {.topo = {t->count, fanout, trees},
		.rank = rank,
		.chunk_bytes = CHUNK,
		.striped_bytes = striped_bytes,
		.enoent_ttl_ms = ttl_ms,
		.enoent_most_ms = most_ms,
		.forget_names = forget_names,
		.ctx = n,
		.stats = &n->stats};

	n->tree = t;
	n->rank = rank;
	snprintf(n->name, sizeof(n->name), "n%u", rank);
	n->cache = cop_cache_new(budget, &n->stats);
	n->origin = cop_origin_fake_new();
	assert_int_equal(cop_rpc_open_fake(&rpc, t->net, n->name, &n->rpc), 0);
	conf.cache = n->cache;
	conf.origin = n->origin;
	conf.rpc = n->rpc;
	conf.compress = packs;
	conf.bundle = bundle;
	conf.pack = rank ? NULL : pack;
	conf.tracer = tracer;
	n->fetch = cop_fetch_new(&conf);
	assert_non_null(n->fetch);
}

static inline struct tree *open_tree(
	uint32_t count, uint32_t fanout, uint32_t trees, uint64_t budget)
{
	struct tree *t = calloc(1, sizeof(*t));

	t->net = cop_endpoint_net_new();
	t->count = count;
	for (uint32_t r = 0; r < count; r++)
		open_node(t, r, fanout, trees, budget);
	return t;
}

/* Runs all pending work without advancing the clock. */
static inline void run_until_idle(struct tree *t)
{
	size_t events;

	do {
		events = cop_endpoint_fake_run(t->net, 100000);
		for (uint32_t r = 0; r < t->count; r++)
			events += cop_origin_fake_run(t->node[r].origin, 1000);
	} while (events);
}

/* The same, but advances the clock. */
static inline void pass_time(struct tree *t, unsigned ms)
{
	for (unsigned at = 0; at < ms; at += 100) {
		cop_endpoint_fake_advance(t->net, 100);
		run_until_idle(t);
	}
}

static inline void close_tree(struct tree *t)
{
	run_until_idle(t);
	for (uint32_t r = 0; r < t->count; r++) {
		cop_origin_close(t->node[r].origin);
		cop_rpc_close(t->node[r].rpc);
	}
	for (uint32_t r = 0; r < t->count; r++) {
		cop_cache_check(t->node[r].cache);
		cop_fetch_free(t->node[r].fetch);
		cop_cache_free(t->node[r].cache);
	}
	cop_endpoint_net_free(t->net);
	free(t);
}

static inline void put_file(struct tree *t, const char *path, const void *data, size_t len)
{
	for (uint32_t r = 0; r < t->count; r++)
		cop_origin_fake_put(t->node[r].origin, path, S_IFREG | 0644, data, len);
}

static inline void completed(struct cop_waiter *w, struct cop_obj *obj, int rc)
{
	struct asked *a = COP_CONTAINER_OF(w, struct asked, w);

	a->calls++;
	a->rc = rc;
	a->obj = cop_obj_get(obj);
}

static inline void ask_fetch(struct tree *t, uint32_t rank, struct cop_ask what, struct asked *a)
{
	int rc;

	*a = (struct asked){.w.completed = completed, .tree = t, .node = &t->node[rank]};
	rc = cop_fetch_get(a->node->fetch, &what, &a->w, &a->obj);
	if (rc == 0)
		return;
	a->calls = 1;
	a->rc = rc < 0 ? rc : a->obj->error;
}

static inline void forget(struct asked *a)
{
	if (a->obj)
		cop_obj_put(a->node->cache, a->obj);
	a->obj = NULL;
}

/* Sends a request to a node and takes the answer, which must arrive without advancing the clock. */
static inline int ask_and_forget(struct tree *t, uint32_t rank, struct cop_ask what)
{
	struct asked a;

	ask_fetch(t, rank, what, &a);
	run_until_idle(t);
	assert_int_equal(a.calls, 1);
	forget(&a);
	return a.rc;
}

static inline struct cop_ask listing(const char *path)
{
	return (struct cop_ask){.kind = COP_ASK_LISTING, .path = path};
}

static inline struct cop_attr attr_of(struct tree *t, uint32_t rank, const char *path)
{
	struct asked a;
	struct cop_attr attr;

	ask_fetch(t, rank, (struct cop_ask){.kind = COP_ASK_ENTRY, .path = path}, &a);
	run_until_idle(t);
	assert_int_equal(a.calls, 1);
	assert_int_equal(a.rc, 0);
	cop_entry_get(a.obj->data, &attr, NULL, NULL);
	forget(&a);
	return attr;
}

static inline struct cop_ask chunk(const struct cop_attr *attr, const char *path, uint64_t index)
{
	return (struct cop_ask){.kind = COP_ASK_CHUNK,
		.path = path,
		.version = attr->version,
		.size = attr->size,
		.index = index};
}

/* A page of "d". */
static inline struct cop_ask page(uint64_t version, uint64_t pages, uint64_t index)
{
	return (struct cop_ask){.kind = COP_ASK_PAGE,
		.path = "d",
		.version = version,
		.size = pages,
		.index = index};
}

static inline size_t origin_jobs(struct tree *t)
{
	size_t jobs = 0;

	for (uint32_t r = 0; r < t->count; r++) {
		struct cop_origin_fake_counts c = cop_origin_fake_counts(t->node[r].origin);

		jobs += c.lists + c.pages + c.stats + c.reads;
	}
	return jobs;
}

static inline size_t origin_reads(struct tree *t)
{
	size_t reads = 0;

	for (uint32_t r = 0; r < t->count; r++)
		reads += cop_origin_fake_counts(t->node[r].origin).reads;
	return reads;
}

static inline void fill_bytes(uint8_t *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		data[i] = (uint8_t)(i * 31 + i / 4096);
}

#endif
