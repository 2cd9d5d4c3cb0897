/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node says of itself: the JSON of cache-stats, and the same as a table. */
#include "status/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void tables_json(const struct cop_cache_usage *u, struct cop_buf *out)
{
	cop_buf_str(out, "\"tables\":{");
	for (unsigned t = 0; t < COP_TABLES; t++)
		cop_buf_printf(out, "%s\"%s\":{\"bytes\":%" PRIu64 ",\"entries\":%" PRIu64 "}",
			t ? "," : "", cop_table_name(t), u->table[t].bytes, u->table[t].entries);
	cop_buf_printf(out,
		"},\"budget\":{\"limit_bytes\":%" PRIu64 ",\"used_bytes\":%" PRIu64
		",\"remaining_bytes\":%" PRIu64 "}",
		u->limit_bytes, u->used_bytes,
		u->limit_bytes > u->used_bytes ? u->limit_bytes - u->used_bytes : 0);
}

static void key_str(struct cop_buf *out, const char *key, const char *value)
{
	cop_buf_printf(out, ",\"%s\":", key);
	cop_buf_json_str(out, value, strlen(value));
}

static void cpus_json(struct cop_buf *out)
{
	struct cop_buf cpus = {0};

	cop_cpus_list(&cpus);
	key_str(out, "cpus", cpus.data ? cpus.data : "");
	cop_buf_free(&cpus);
}

static void waiting_json(
	const struct cop_status *s, const struct cop_cache_usage *u, struct cop_buf *out)
{
	unsigned queued = 0, running = 0;

	cop_origin_load(s->origin, &queued, &running);
	cop_buf_printf(out,
		",\"waiting\":{\"flights\":%" PRIu64 ",\"for_room\":%" PRIu64
		",\"origin_queued\":%u,\"origin_running\":%u,\"oldest\":",
		u->flights, u->waiting_to_reserve, queued, running);
	cop_cache_flights_json(s->cache, 16, out);
	if (s->rpc) {
		cop_buf_str(out, ",\"peers\":");
		cop_rpc_peers_json(s->rpc, out);
	}
	cop_buf_str(out, "}");
}

void cop_status_json(const struct cop_status *s, struct cop_buf *out)
{
	uint32_t parent = s->coop ? cop_coop_parent(s->coop, 0) : COP_TOPO_NONE;
	struct cop_cache_usage u;

	cop_cache_usage(s->cache, &u);
	cop_buf_printf(out, "{\"rank\":%" PRIu32 ",\"nodes\":%" PRIu32 ",\"ready\":%s,\"pid\":%d",
		s->rank, s->nodes, s->ready ? "true" : "false", (int)getpid());
	key_str(out, "host", s->host);
	key_str(out, "version", cop_version);
	key_str(out, "mountpoint", s->mountpoint);
	key_str(out, "source", s->source);
	key_str(out, "provider", s->rpc ? cop_fabric_provider(cop_rpc_fabric(s->rpc)) : "none");
	key_str(out, "network", s->rpc ? cop_fabric_network(cop_rpc_fabric(s->rpc)) : "none");
	cpus_json(out);
	cop_buf_printf(out, ",\"uptime_ms\":%" PRIu64 ",\"parent\":",
		(uint64_t)((cop_now_ns() - s->started_ns) / COP_NS_PER_MS));
	if (parent == COP_TOPO_NONE)
		cop_buf_str(out, "null,");
	else
		cop_buf_printf(out, "%" PRIu32 ",", parent);
	tables_json(&u, out);
	cop_buf_str(out, ",");
	cop_stats_json(s->stats, out);
	cop_buf_str(out, ",\"prefetching\":");
	cop_prefetch_json(s->prefetch, out);
	waiting_json(s, &u, out);
	if (s->fs) {
		cop_buf_str(out, ",\"kernel\":");
		cop_fs_json(s->fs, out);
	}
	cop_buf_str(out, "}");
}

void cop_status_total_json(const struct cop_treeop_sum *g, struct cop_buf *out)
{
	cop_buf_printf(out,
		"{\"nodes\":%" PRIu32 ",\"dead\":%" PRIu32 ",\"refused\":%" PRIu32
		",\"failed\":%" PRIu32 ",\"missing\":%" PRIu32 ",\"cut\":%" PRIu32 ",",
		g->nodes, g->dead, g->refused, g->failed, g->missing, g->cut);
	tables_json(&g->usage, out);
	cop_buf_str(out, ",");
	cop_stats_json(&g->stats, out);
	cop_buf_str(out, "}");
}

static void table_counters(const struct cop_stats *s, struct cop_buf *out)
{
	const char *group = "";

	for (unsigned c = 0; c < COP_COUNTERS; c++) {
		uint64_t v = cop_stats_get(s, c);

		if (!v)
			continue;
		if (strcmp(group, cop_counter_group(c)) != 0) {
			group = cop_counter_group(c);
			cop_buf_printf(out, "%s\n", group);
		}
		cop_buf_printf(out, "  %-18s %14" PRIu64 "  %s\n", cop_counter_name(c), v,
			cop_counter_meaning(c));
	}
}

void cop_status_table(const struct cop_status *s, struct cop_buf *out)
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
	table_counters(s->stats, out);
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

void cop_status_table_head(struct cop_buf *out)
{
	cop_buf_printf(out, "%7s  %-24s %10s %5s %12s %12s %12s %10s %9s %9s\n", "rank", "host",
		"cached", "full", "requests", "to parent", "for children", "at origin", "failovers",
		"rejected");
}

static void table_line(
	const struct cop_cache_usage *u, const struct cop_stats *s, struct cop_buf *out)
{
	char used[16];

	cop_buf_printf(out,
		" %10s %4" PRIu64 "%% %12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %10" PRIu64
		" %9" PRIu64 " %9" PRIu64,
		cop_format_size(u->used_bytes, used),
		u->limit_bytes ? u->used_bytes * 100 / u->limit_bytes : 0, requests(s),
		cop_stats_get(s, COP_FABRIC_REQUESTS_SENT),
		cop_stats_get(s, COP_FABRIC_REQUESTS_SERVED),
		cop_stats_get(s, COP_ORIGIN_OPERATIONS), cop_stats_get(s, COP_FABRIC_FAILOVERS),
		cop_stats_get(s, COP_FABRIC_REJECTED));
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
void cop_status_table_rows(char *rows, struct cop_buf *out)
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

void cop_status_table_total(const struct cop_treeop_sum *g, struct cop_buf *out)
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
