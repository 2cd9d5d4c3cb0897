/* SPDX-License-Identifier: BSD-3-Clause */
/* One run: creates the nodes, runs the events, and sums up the results. */
#include "sim.h"

#include <malloc.h>

/* Memory written by this process, resident or swapped. File pages do not count: the kernel
 * reclaims them at any time. */
static uint64_t private_bytes(void)
{
	unsigned long long kib, sum = 0;
	char line[256];
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "RssAnon: %llu", &kib) == 1 ||
			sscanf(line, "VmSwap: %llu", &kib) == 1)
			sum += kib;
	if (f)
		fclose(f);
	return sum * COP_KIB;
}

static void open_node(struct sim *s, uint32_t rank)
{
	struct sim_node *n = &s->node[rank];
	struct cop_fetch_conf conf = {.topo = s->conf.topo,
		.rank = rank,
		.chunk_bytes = SIM_CHUNK,
		.striped_bytes = COP_FETCH_STRIPED_BYTES,
		.enoent_ttl_ms = 2000,
		.manifest = s->conf.manifest && rank == 0 ? cop_sim_manifest : NULL,
		.ctx = n,
		.origin = &n->origin,
		.rpc = s->conf.topo.nodes > 1 ? &n->rpc : NULL,
		.stats = &s->stats};

	n->sim = s;
	n->rank = rank;
	n->origin = (struct cop_origin){.node = n};
	n->behind = (struct cop_origin){.node = n, .background = true};
	cop_sim_fabric_open(n);
	n->cache = conf.cache = cop_cache_new(s->conf.model.cache_mib * COP_MIB, &s->stats);
	n->fetch = n->cache ? cop_fetch_new(&conf) : NULL;
	if (!n->fetch)
		abort();
	cop_sim_node_start(n);
}

static void close_node(struct sim_node *n)
{
	cop_sim_prefetch_free(n);
	cop_fetch_close(n->fetch);
	cop_fetch_free(n->fetch);
	cop_cache_free(n->cache);
	cop_sim_origin_close(n);
	cop_sim_fabric_close(n);
}

static int by_time(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void add_times(struct sim *s, struct sim_result *r)
{
	uint64_t *ends = cop_sim_alloc(s->conf.topo.nodes, sizeof(*ends));

	for (uint32_t i = 0; i < s->conf.topo.nodes; i++) {
		const struct sim_node *n = &s->node[i];

		r->died += !n->end_ns && cop_sim_is_dead(n);
		if (!n->end_ns)
			continue;
		ends[r->finished++] = n->end_ns;
		/* Time other than the program's own pauses is waiting. */
		r->waiting_ns =
			COP_MAX(r->waiting_ns, n->end_ns - n->begin_ns - s->conf.trace->think_ns);
	}
	qsort(ends, r->finished, sizeof(*ends), by_time);
	if (r->finished) {
		r->first_ns = ends[0];
		r->median_ns = ends[r->finished / 2];
		r->last_ns = ends[r->finished - 1];
	}
	free(ends);
}

static void add_loads(struct sim *s, struct sim_result *r)
{
	struct cop_cache_usage u;

	r->link_bytes = s->busiest_link_bytes;
	for (uint32_t i = 0; i < s->conf.topo.nodes; i++) {
		cop_cache_usage(s->node[i].cache, &u);
		r->cache_bytes = COP_MAX(r->cache_bytes, u.used_bytes);
		r->node_bytes = COP_MAX(r->node_bytes, s->node[i].rpc.out_bytes);
		r->bytes += s->node[i].rpc.out_bytes;
	}
	r->storage_ops = s->storage_ops;
	r->storage_bytes = s->storage_bytes;
	r->storage_clients = s->storage.clients;
	r->requests = s->requests;
	r->messages = s->messages;
	r->bundle_bytes = cop_stats_get(&s->stats, COP_BUNDLE_BYTES);
	r->bundle_used_bytes = cop_stats_get(&s->stats, COP_BUNDLE_USED_BYTES);
	r->failovers = cop_stats_get(&s->stats, COP_FABRIC_FAILOVERS);
	r->events = cop_sim_events();
}

/* Per node, in bytes, on a machine with pages of 4 KiB: the node's own memory, and the memory
 * per request of the trace: a cached object, and requests in flight. From runs of the recordings
 * in testdata/sim, none of which needs more. */
static uint64_t node_needs(const struct sim_conf *conf)
{
	uint64_t asked = (uint64_t)conf->trace->asked, needs = 20 * COP_KIB + 350 * asked;

	/* A manifest brings most of the content of bundles. */
	if (conf->manifest)
		return needs + 16 * COP_KIB + (conf->bundle ? 40 * asked : 0);
	return needs + (conf->bundle ? 120 * asked : 0);
}

uint64_t cop_sim_memory_needed(const struct sim_conf *conf)
{
	return conf->topo.nodes * node_needs(conf);
}

void cop_sim_simulate(const struct sim_conf *conf, struct sim_result *out)
{
	struct sim s = {.conf = *conf};
	size_t nodes = conf->topo.nodes;
	struct timespec from, to;
	uint64_t before;

	*out = (struct sim_result){0};
	clock_gettime(CLOCK_MONOTONIC, &from);
	cop_sim_clock_reset();
	cop_sim_memory_reset();
	cop_sim_trace_answers(conf->trace);
	malloc_trim(0);
	before = private_bytes();
	s.node = cop_sim_alloc(nodes, sizeof(*s.node));
	cop_sim_storage_open(&s);
	for (uint32_t i = 0; i < nodes; i++)
		open_node(&s, i);
	cop_sim_run();
	add_times(&s, out);
	add_loads(&s, out);
	out->process_bytes = (COP_MAX(private_bytes(), before) - before) / nodes;
	for (uint32_t i = 0; i < nodes; i++)
		close_node(&s.node[i]);
	cop_sim_storage_close(&s);
	cop_sim_links_free(&s);
	free(s.node);
	clock_gettime(CLOCK_MONOTONIC, &to);
	out->wall_s = (double)(to.tv_sec - from.tv_sec) +
		      (double)(to.tv_nsec - from.tv_nsec) / COP_NS_PER_S;
}

double cop_sim_direct_s(const struct sim_conf *conf)
{
	const struct sim_trace *t = conf->trace;
	struct cop_model_client c = {
		.ops_s = (double)t->direct_ops * (double)conf->model.storage_op_us / 1e6,
		.bytes = (double)t->direct_bytes,
		.own_s = (double)t->think_ns / 1e9};

	return cop_model_direct_s(&conf->model, &c, conf->topo.nodes);
}
