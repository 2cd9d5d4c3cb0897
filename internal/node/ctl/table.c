/* SPDX-License-Identifier: BSD-3-Clause */
/* A node's line, and the table of all nodes' lines. */
#include "node/ctl/status_priv.h"

#include "tree/op/op.h"

/* ---- a node's line ---- */

static uint64_t count_requests(const struct cop_stats *s)
{
	uint64_t sum = 0;

	for (unsigned c = 0; c < COP_COUNTERS; c++)
		if (strcmp(cop_counter_group(c), "fuse") == 0 &&
			strcmp(cop_counter_unit(c), "requests") == 0 && c != COP_FUSE_FORGET)
			sum += cop_stats_get(s, c);
	return sum;
}

static void fill_line(
	const struct cop_cache_usage *u, const struct cop_stats *s, struct cop_nodeline *n)
{
	static const struct {
		enum cop_nodeline_value value;
		enum cop_counter counter;
	} same[] = {{COP_NODELINE_BYTES, COP_FUSE_READ_BYTES},
		{COP_NODELINE_SENT, COP_FABRIC_REQUESTS_SENT},
		{COP_NODELINE_SERVED, COP_FABRIC_REQUESTS_SERVED},
		{COP_NODELINE_ORIGIN_OPERATIONS, COP_ORIGIN_OPERATIONS},
		{COP_NODELINE_ORIGIN_BYTES, COP_ORIGIN_BYTES},
		{COP_NODELINE_FAILOVERS, COP_FABRIC_FAILOVERS},
		{COP_NODELINE_REJECTED, COP_FABRIC_REJECTED}};

	*n = (struct cop_nodeline){.host = "", .reason = ""};
	n->value[COP_NODELINE_USED_BYTES] = u->used_bytes;
	n->value[COP_NODELINE_LIMIT_BYTES] = u->limit_bytes;
	n->value[COP_NODELINE_REQUESTS] = count_requests(s);
	for (size_t i = 0; i < COP_ARRAY_SIZE(same); i++)
		n->value[same[i].value] = cop_stats_get(s, same[i].counter);
}

void cop_status_line(const struct cop_status *s, struct cop_buf *out)
{
	struct cop_buf wait = {0};
	struct cop_cache_usage u;
	struct cop_nodeline n;

	cop_cache_usage(s->cache, &u);
	fill_line(&u, s->stats, &n);
	cop_status_wait(s, &n.value[COP_NODELINE_OLDEST_MS], &wait);
	n.reason = wait.data && !wait.failed ? wait.data : "";
	n.rank = s->rank;
	n.host = s->host;
	n.value[COP_NODELINE_UPTIME_MS] = (cop_now_ns() - s->started_ns) / COP_NS_PER_MS;
	if (s->rpc)
		n.value[COP_NODELINE_LAGGED] = cop_rpc_lagged(s->rpc);
	if (s->fs)
		cop_fuse_waits(
			s->fs, &n.value[COP_NODELINE_WAITING], &n.value[COP_NODELINE_WAIT_US]);
	cop_nodeline_write(&n, out);
	cop_buf_free(&wait);
}

/* ---- the table ---- */

#define LAGGED_SHOWN 8
#define LEAVERS_SHOWN 8

static void all_head(struct cop_buf *out)
{
	cop_buf_printf(out, "%7s  %-24s %10s %5s %12s %12s %12s %10s %9s %9s %8s\n", "rank", "host",
		"cached", "full", "requests", "to parent", "for children", "at origin", "failovers",
		"rejected", "waits");
}

/* The columns with a growth rate, and their widths. */
static const struct {
	enum cop_nodeline_value value;
	int width;
} columns[] = {{COP_NODELINE_REQUESTS, 12}, {COP_NODELINE_SENT, 12}, {COP_NODELINE_SERVED, 12},
	{COP_NODELINE_ORIGIN_OPERATIONS, 10}, {COP_NODELINE_FAILOVERS, 9},
	{COP_NODELINE_REJECTED, 9}};

static void put_numbers(const struct cop_nodeline *n, struct cop_buf *out)
{
	uint64_t used = n->value[COP_NODELINE_USED_BYTES],
		 limit = n->value[COP_NODELINE_LIMIT_BYTES];
	char size[16];

	cop_buf_printf(out, " %10s %4" PRIu64 "%%", cop_format_size(used, size),
		limit ? used * 100 / limit : 0);
	for (size_t i = 0; i < COP_ARRAY_SIZE(columns); i++)
		cop_buf_printf(out, " %*" PRIu64, columns[i].width, n->value[columns[i].value]);
}

/* How long the node has waited, and for what. */
static void put_wait(const struct cop_nodeline *n, struct cop_buf *out)
{
	uint64_t ms = n->value[COP_NODELINE_OLDEST_MS];

	if (ms)
		cop_buf_printf(out, " %7.1fs  %s\n", (double)ms / 1000, n->reason);
	else
		cop_buf_printf(out, " %8s\n", "-");
}

static void append_row(const struct cop_nodeline *n, struct cop_buf *out)
{
	cop_buf_printf(out, "%7" PRIu32 "  %-24s", n->rank, n->host);
	if (n->state == COP_NODELINE_OK) {
		put_numbers(n, out);
		put_wait(n, out);
		return;
	}
	cop_buf_printf(
		out, " %s%s%s", cop_nodeline_word(n->state), *n->reason ? ": " : "", n->reason);
	if (n->below)
		cop_buf_printf(out, ", with the %" PRIu32 " nodes below it", n->below);
	cop_buf_str(out, "\n");
}

static int by_rank(const void *a, const void *b)
{
	const struct cop_nodeline *x = a, *y = b;

	return (x->rank > y->rank) - (x->rank < y->rank);
}

/* A silent node and the nodes that switched away from it, of which the line names only a few. */
static void append_lagged(const struct cop_nodeline *line, size_t lines, uint64_t lagged,
	const char *host, struct cop_buf *out)
{
	unsigned n = 0;

	cop_buf_printf(out, "rank %" PRIu64 "%s%s%s was silent; others were asked by", lagged - 1,
		*host ? " (" : "", host, *host ? ")" : "");
	for (size_t i = 0; i < lines; i++) {
		if (line[i].value[COP_NODELINE_LAGGED] != lagged)
			continue;
		if (n < LEAVERS_SHOWN)
			cop_buf_printf(out, "%s rank %" PRIu32, n ? "," : "", line[i].rank);
		n++;
	}
	if (n > LEAVERS_SHOWN)
		cop_buf_printf(out, " and %u more", n - LEAVERS_SHOWN);
	cop_buf_str(out, "\n");
}

static bool is_first_to_leave(const struct cop_nodeline *line, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (line[k].value[COP_NODELINE_LAGGED] == line[i].value[COP_NODELINE_LAGGED])
			return false;
	return true;
}

static void all_lagged(const struct cop_nodeline *line, size_t lines, struct cop_buf *out)
{
	unsigned shown = 0;

	for (size_t i = 0; i < lines && shown < LAGGED_SHOWN; i++) {
		uint64_t lagged = line[i].value[COP_NODELINE_LAGGED];
		const struct cop_nodeline key = {.rank = (uint32_t)(lagged - 1)}, *of;

		if (!lagged || !is_first_to_leave(line, i))
			continue;
		of = bsearch(&key, line, lines, sizeof(*line), by_rank);
		append_lagged(line, lines, lagged, of ? of->host : "", out);
		shown++;
	}
}

/* Skips lines that are not node lines; the sums tell how many nodes there should be. */
static void all_rows(char *text, struct cop_buf *out)
{
	size_t n = 0, lines = 1;
	struct cop_nodeline *line;
	char *save = NULL;

	for (const char *c = text; *c; c++)
		lines += *c == '\n';
	line = calloc(lines, sizeof(*line));
	if (!line) {
		out->failed = true;
		return;
	}
	for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save))
		n += cop_nodeline_read(l, &line[n]) == 0;
	qsort(line, n, sizeof(*line), by_rank);
	for (size_t i = 0; i < n; i++)
		append_row(&line[i], out);
	all_lagged(line, n, out);
	free(line);
}

static void all_total(const struct cop_op_sum *g, struct cop_buf *out)
{
	const struct {
		uint32_t count;
		const char *word;
	} others[] = {{g->dead, "dead"}, {g->refused, "refused"}, {g->failed, "failed"},
		{g->cut, "not shown"}};
	struct cop_nodeline sums;
	char nodes[160];
	int len = snprintf(nodes, sizeof(nodes), "%" PRIu32 " nodes", g->nodes);

	for (size_t i = 0; i < COP_ARRAY_SIZE(others); i++)
		if (others[i].count)
			len += snprintf(nodes + len, sizeof(nodes) - (size_t)len,
				", %" PRIu32 " %s", others[i].count, others[i].word);
	cop_buf_printf(out, "%7s  %-24s", "total", nodes);
	fill_line(&g->usage, &g->stats, &sums);
	put_numbers(&sums, out);
	cop_buf_str(out, "\n");
}

void cop_status_all_table(struct cop_op_sum *all, struct cop_buf *out)
{
	all_head(out);
	if (all->text.len)
		all_rows(all->text.data, out);
	all_total(all, out);
}

void cop_status_all_watched(const struct cop_status_watch *w, struct cop_buf *out)
{
	static const struct cop_cache_usage none;
	struct cop_nodeline now, before;

	if (!w->before)
		return;
	fill_line(&none, w->now, &now);
	fill_line(&none, w->before, &before);
	cop_buf_printf(out, "%7s  %-41s", "per s", "");
	for (size_t i = 0; i < COP_ARRAY_SIZE(columns); i++)
		cop_buf_printf(out, " %*.1f", columns[i].width,
			cop_status_per_second(now.value[columns[i].value],
				before.value[columns[i].value], w->elapsed_ms));
	cop_buf_str(out, "\n");
}
