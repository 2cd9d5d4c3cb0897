/* SPDX-License-Identifier: BSD-3-Clause */
/* A node's report about itself: the JSON of cache-stats, and the same data as a table. */
#include "node/ctl/status_priv.h"

#include "base/base/json.h"

/* Maximum number of waits shown. */
#define WAITS 5
/* The table of all nodes shows only waits longer than those of a busy node. */
#define WAIT_SHOWN_MS 100

static void tables_json(const struct cop_cache_usage *u, struct cop_json *j)
{
	uint64_t limit = u->limit_bytes, used = u->used_bytes;

	cop_json_object(j, "tables");
	for (unsigned t = 0; t < COP_TABLES; t++) {
		cop_json_object(j, cop_table_name(t));
		cop_json_u64(j, "bytes", u->table[t].bytes);
		cop_json_u64(j, "entries", u->table[t].entries);
		cop_json_end(j);
	}
	cop_json_end(j);
	cop_json_object(j, "budget");
	cop_json_u64(j, "limit_bytes", limit);
	cop_json_u64(j, "used_bytes", used);
	cop_json_u64(j, "remaining_bytes", limit > used ? limit - used : 0);
	cop_json_u64(j, "home_bytes", u->home_bytes);
	cop_json_u64(j, "spill_bytes", u->spill_bytes);
	cop_json_u64(j, "spill_limit_bytes", u->spill_limit_bytes);
	cop_json_end(j);
}

static void cpus_json(struct cop_json *j)
{
	struct cop_buf cpus = {0};

	cop_cpus_list(&cpus);
	cop_json_str(j, "cpus", cpus.data ? cpus.data : "");
	cop_buf_free(&cpus);
}

static void self_json(const struct cop_status *s, struct cop_json *j)
{
	struct cop_endpoint *fabric = s->rpc ? cop_rpc_fabric(s->rpc) : NULL;
	uint32_t parent = s->fetch ? cop_fetch_parent(s->fetch) : COP_TOPO_NONE;

	cop_json_u64(j, "rank", s->rank);
	cop_json_u64(j, "nodes", s->nodes);
	cop_json_bool(j, "ready", s->ready);
	cop_json_u64(j, "pid", (uint64_t)getpid());
	cop_json_str(j, "host", s->host);
	cop_json_str(j, "version", cop_version);
	cop_json_str(j, "mountpoint", s->mountpoint);
	cop_json_str(j, "source", s->source);
	cop_json_str(j, "provider", fabric ? cop_endpoint_provider(fabric) : "none");
	cop_json_str(j, "network", fabric ? cop_endpoint_network(fabric) : "none");
	cpus_json(j);
	cop_json_u64(j, "uptime_ms", (cop_now_ns() - s->started_ns) / COP_NS_PER_MS);
	if (parent == COP_TOPO_NONE)
		cop_json_null(j, "parent");
	else
		cop_json_u64(j, "parent", parent);
}

static void waiting_json(
	const struct cop_status *s, const struct cop_cache_usage *u, struct cop_json *j)
{
	unsigned queued = 0, running = 0;

	cop_origin_load(s->origin, &queued, &running);
	cop_json_object(j, "waiting");
	cop_json_u64(j, "flights", u->flights);
	cop_json_u64(j, "for_room", u->waiting_to_reserve);
	cop_json_u64(j, "origin_queued", queued);
	cop_json_u64(j, "origin_running", running);
	cop_json_value(j, "oldest");
	cop_cache_flights_json(s->cache, 16, j->out);
	if (s->rpc) {
		cop_json_value(j, "peers");
		cop_rpc_peers_json(s->rpc, j->out);
	}
	cop_json_end(j);
}

void cop_status_json(const struct cop_status *s, struct cop_buf *out)
{
	struct cop_json j = cop_json_to(out);
	struct cop_cache_usage u;

	cop_cache_usage(s->cache, &u);
	cop_json_object(&j, NULL);
	self_json(s, &j);
	tables_json(&u, &j);
	cop_stats_json(s->stats, &j);
	cop_json_value(&j, "prefetching");
	cop_prefetch_json(s->prefetch, out);
	waiting_json(s, &u, &j);
	if (s->fs) {
		cop_json_value(&j, "kernel");
		cop_fuse_json(s->fs, out);
	}
	cop_json_end(&j);
}

static void total_json(const struct cop_op_sum *g, struct cop_json *j)
{
	cop_json_object(j, "total");
	cop_json_u64(j, "nodes", g->nodes);
	cop_json_u64(j, "dead", g->dead);
	cop_json_u64(j, "refused", g->refused);
	cop_json_u64(j, "failed", g->failed);
	cop_json_u64(j, "missing", g->missing);
	cop_json_u64(j, "cut", g->cut);
	tables_json(&g->usage, j);
	cop_stats_json(&g->stats, j);
	cop_json_end(j);
}

/* all->text has the nodes' objects, separated by commas. */
void cop_status_all_json(const struct cop_op_sum *all, struct cop_buf *out)
{
	struct cop_json j = cop_json_to(out);

	cop_json_object(&j, NULL);
	cop_json_array(&j, "nodes");
	if (all->text.len) {
		cop_json_value(&j, NULL);
		cop_buf_add(out, all->text.data, all->text.len);
	}
	cop_json_end(&j);
	total_json(all, &j);
	cop_json_end(&j);
}

/* The column with the growth rate, between a number and its description. */
static const char *rate_column(const struct cop_status_watch *w, unsigned c, char out[40])
{
	char rate[24] = "";

	if (!w)
		return "";
	if (w->before)
		snprintf(rate, sizeof(rate), "%.1f/s",
			cop_status_per_second(cop_stats_get(w->now, c), cop_stats_get(w->before, c),
				w->elapsed_ms));
	snprintf(out, 40, " %14s", rate);
	return out;
}

static void table_counters(
	const struct cop_stats *s, const struct cop_status_watch *w, struct cop_buf *out)
{
	const char *group = "";
	char rate[40];

	for (unsigned c = 0; c < COP_COUNTERS; c++) {
		uint64_t v = cop_stats_get(s, c);

		if (!v)
			continue;
		if (strcmp(group, cop_counter_group(c)) != 0) {
			group = cop_counter_group(c);
			cop_buf_printf(out, "%s\n", group);
		}
		cop_buf_printf(out, "  %-18s %14" PRIu64 "%s  %s\n", cop_counter_name(c), v,
			rate_column(w, c, rate), cop_counter_meaning(c));
	}
}

void cop_status_table_watched(const struct cop_status_watch *w, struct cop_buf *out)
{
	table_counters(w->now, w, out);
}

/* Names and small files come through the first tree, whose parent is known; a part of a large file
 * may come through any tree (tree/fetch). */
static void put_wait(
	const struct cop_status *s, const struct cop_cache_wait *w, struct cop_buf *out)
{
	uint32_t parent = s->fetch ? cop_fetch_parent(s->fetch) : COP_TOPO_NONE;

	cop_buf_printf(out, "/%s (%s %" PRIu64 "), %u waiters, from ", w->path,
		cop_table_name(w->table), w->index, w->waiters);
	if (s->nodes > 1 && w->table == COP_TABLE_DATA && w->size >= COP_FETCH_STRIPED_BYTES)
		cop_buf_str(out, "the parent or storage of its part");
	else if (parent == COP_TOPO_NONE)
		cop_buf_str(out, "the storage");
	else
		cop_buf_printf(out, "rank %" PRIu32, parent);
}

void cop_status_wait(const struct cop_status *s, uint64_t *ms, struct cop_buf *out)
{
	unsigned queued = 0, running = 0;
	struct cop_cache_wait w;

	*ms = 0;
	if (!cop_cache_oldest(s->cache, &w, 1) || w.ms < WAIT_SHOWN_MS)
		return;
	*ms = w.ms;
	put_wait(s, &w, out);
	cop_origin_load(s->origin, &queued, &running);
	if (running || queued)
		cop_buf_printf(out, "; storage: %u running, %u queued", running, queued);
}

static void put_waits(const struct cop_status *s, struct cop_buf *out)
{
	struct cop_cache_wait wait[WAITS];
	unsigned n = cop_cache_oldest(s->cache, wait, WAITS), queued = 0, running = 0;

	if (!n)
		return;
	cop_origin_load(s->origin, &queued, &running);
	for (unsigned i = 0; i < n; i++) {
		cop_buf_printf(out, "waits      %.1f s for ", (double)wait[i].ms / 1000);
		put_wait(s, &wait[i], out);
		cop_buf_str(out, "\n");
	}
	cop_buf_printf(out, "storage    %u operations run, %u are queued\n", running, queued);
}

void cop_status_table_head(const struct cop_status *s, struct cop_buf *out)
{
	struct cop_cache_usage u;
	char a[16], b[16];

	cop_cache_usage(s->cache, &u);
	cop_buf_printf(out, "rank %" PRIu32 " of %" PRIu32 " on %s, pid %d\n", s->rank, s->nodes,
		s->host, (int)getpid());
	cop_buf_str(out, "processors ");
	cop_cpus_list(out);
	cop_buf_printf(out, "\n%-10s %12s %10s\n", "table", "bytes", "entries");
	for (unsigned t = 0; t < COP_TABLES; t++)
		cop_buf_printf(out, "%-10s %12" PRIu64 " %10" PRIu64 "\n", cop_table_name(t),
			u.table[t].bytes, u.table[t].entries);
	cop_buf_printf(out,
		"budget     %s used of %s; %" PRIu64 " flights, %" PRIu64 " waiting for room\n",
		cop_format_size(u.used_bytes, a), cop_format_size(u.limit_bytes, b), u.flights,
		u.waiting_to_reserve);
	if (u.home_bytes)
		cop_buf_printf(out, "home       %s of it are kept for the whole job\n",
			cop_format_size(u.home_bytes, a));
	if (u.spill_limit_bytes)
		cop_buf_printf(out, "spill      %s used of %s on the disk of this node\n",
			cop_format_size(u.spill_bytes, a), cop_format_size(u.spill_limit_bytes, b));
	put_waits(s, out);
	if (s->prefetches) {
		cop_prefetch_text(s->prefetch, out);
		cop_buf_str(out, "\n");
	}
}

void cop_status_table(const struct cop_status *s, struct cop_buf *out)
{
	cop_status_table_head(s, out);
	table_counters(s->stats, NULL, out);
}
