/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node says about itself: the JSON of cache-stats, and the same as a table. */
#include "status/status.h"

#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
	struct cop_fabric *fabric = s->rpc ? cop_rpc_fabric(s->rpc) : NULL;
	uint32_t parent = s->coop ? cop_coop_parent(s->coop, 0) : COP_TOPO_NONE;

	cop_json_u64(j, "rank", s->rank);
	cop_json_u64(j, "nodes", s->nodes);
	cop_json_bool(j, "ready", s->ready);
	cop_json_u64(j, "pid", (uint64_t)getpid());
	cop_json_str(j, "host", s->host);
	cop_json_str(j, "version", cop_version);
	cop_json_str(j, "mountpoint", s->mountpoint);
	cop_json_str(j, "source", s->source);
	cop_json_str(j, "provider", fabric ? cop_fabric_provider(fabric) : "none");
	cop_json_str(j, "network", fabric ? cop_fabric_network(fabric) : "none");
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
		cop_fs_json(s->fs, out);
	}
	cop_json_end(&j);
}

static void total_json(const struct cop_treeop_sum *g, struct cop_json *j)
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

/* What the nodes wrote are the elements of the list, with their commas. */
void cop_status_all_json(const struct cop_treeop_sum *all, struct cop_buf *out)
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

static double per_second(uint64_t now, uint64_t before, uint64_t elapsed_ms)
{
	return now < before || !elapsed_ms ? 0 : (double)(now - before) * 1000 / (double)elapsed_ms;
}

/* What comes between the number and the meaning. */
static const char *rate_column(const struct cop_status_watch *w, unsigned c, char out[40])
{
	char rate[24] = "";

	if (!w)
		return "";
	if (w->before)
		snprintf(rate, sizeof(rate), "%.1f/s",
			per_second(cop_stats_get(w->now, c), cop_stats_get(w->before, c),
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

/* ---- the table of all nodes ---- */

static uint64_t requests(const struct cop_stats *s)
{
	uint64_t sum = 0;

	for (unsigned c = 0; c < COP_COUNTERS; c++)
		if (strcmp(cop_counter_group(c), "fuse") == 0 &&
			strcmp(cop_counter_unit(c), "requests") == 0 && c != COP_FUSE_FORGET)
			sum += cop_stats_get(s, c);
	return sum;
}

static void all_head(struct cop_buf *out)
{
	cop_buf_printf(out, "%7s  %-24s %10s %5s %12s %12s %12s %10s %9s %9s\n", "rank", "host",
		"cached", "full", "requests", "to parent", "for children", "at origin", "failovers",
		"rejected");
}

/* The counters in a line of the table, and the width of their columns. */
#define COLUMNS 6
static const int column_width[COLUMNS] = {12, 12, 12, 10, 9, 9};

static void columns(const struct cop_stats *s, uint64_t value[COLUMNS])
{
	value[0] = requests(s);
	value[1] = cop_stats_get(s, COP_FABRIC_REQUESTS_SENT);
	value[2] = cop_stats_get(s, COP_FABRIC_REQUESTS_SERVED);
	value[3] = cop_stats_get(s, COP_ORIGIN_OPERATIONS);
	value[4] = cop_stats_get(s, COP_FABRIC_FAILOVERS);
	value[5] = cop_stats_get(s, COP_FABRIC_REJECTED);
}

static void table_line(
	const struct cop_cache_usage *u, const struct cop_stats *s, struct cop_buf *out)
{
	uint64_t value[COLUMNS];
	char used[16];

	columns(s, value);
	cop_buf_printf(out, " %10s %4" PRIu64 "%%", cop_format_size(u->used_bytes, used),
		u->limit_bytes ? u->used_bytes * 100 / u->limit_bytes : 0);
	for (unsigned i = 0; i < COLUMNS; i++)
		cop_buf_printf(out, " %*" PRIu64, column_width[i], value[i]);
}

void cop_status_all_watched(const struct cop_status_watch *w, struct cop_buf *out)
{
	uint64_t now[COLUMNS], before[COLUMNS];

	if (!w->before)
		return;
	columns(w->now, now);
	columns(w->before, before);
	cop_buf_printf(out, "%7s  %-41s", "per s", "");
	for (unsigned i = 0; i < COLUMNS; i++)
		cop_buf_printf(out, " %*.1f", column_width[i],
			per_second(now[i], before[i], w->elapsed_ms));
	cop_buf_str(out, "\n");
}

void cop_status_table_row(const struct cop_status *s, struct cop_buf *out)
{
	struct cop_cache_usage u;

	cop_cache_usage(s->cache, &u);
	cop_buf_printf(out, "%7" PRIu32 "  %-24s", s->rank, s->host);
	table_line(&u, s->stats, out);
}

static int by_line(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Ranks are padded: in order of bytes is in order of rank. */
static void all_rows(char *rows, struct cop_buf *out)
{
	size_t n = 0, lines = 1;
	char **line, *save = NULL;

	for (const char *c = rows; *c; c++)
		lines += *c == '\n';
	line = calloc(lines, sizeof(*line));
	if (!line) {
		out->failed = true;
		return;
	}
	for (char *l = strtok_r(rows, "\n", &save); l; l = strtok_r(NULL, "\n", &save))
		line[n++] = l;
	qsort(line, n, sizeof(*line), by_line);
	for (size_t i = 0; i < n; i++)
		cop_buf_printf(out, "%s\n", line[i]);
	free(line);
}

static void all_total(const struct cop_treeop_sum *g, struct cop_buf *out)
{
	const struct {
		uint32_t count;
		const char *word;
	} others[] = {{g->dead, "dead"}, {g->refused, "refused"}, {g->failed, "failed"},
		{g->cut, "not shown"}};
	char nodes[160];
	int len = snprintf(nodes, sizeof(nodes), "%" PRIu32 " nodes", g->nodes);

	for (size_t i = 0; i < COP_ARRAY_SIZE(others); i++)
		if (others[i].count)
			len += snprintf(nodes + len, sizeof(nodes) - (size_t)len,
				", %" PRIu32 " %s", others[i].count, others[i].word);
	cop_buf_printf(out, "%7s  %-24s", "total", nodes);
	table_line(&g->usage, &g->stats, out);
	cop_buf_str(out, "\n");
}

void cop_status_all_table(struct cop_treeop_sum *all, struct cop_buf *out)
{
	all_head(out);
	if (all->text.len)
		all_rows(all->text.data, out);
	all_total(all, out);
}
