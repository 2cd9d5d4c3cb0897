/* SPDX-License-Identifier: BSD-3-Clause */
/* The three files of a job; see copper-formats(5). */
#include "prof/telemetry/telemetry_priv.h"

#include "base/table/table.h"

static const char *const statistics[] = {"min", "median", "max"};

static uint64_t statistic_of(const struct three *t, unsigned which)
{
	return which == 0 ? t->min : which == 1 ? t->median : t->max;
}

static void put_host(struct cop_buf *out, const struct cop_telemetry_job *job, uint32_t rank)
{
	const char *host = job->host(job->ctx, rank);

	cop_csv_field(out, host, strlen(host));
}

static void put_seconds(struct cop_buf *out, int64_t us)
{
	uint64_t size = us < 0 ? 0 - (uint64_t)us : (uint64_t)us;

	cop_buf_printf(
		out, "%s%" PRIu64 ".%06" PRIu64, us < 0 ? "-" : "", size / 1000000, size % 1000000);
}

static void put_seconds_after(struct cop_buf *out, int64_t us)
{
	cop_buf_str(out, ",");
	put_seconds(out, us);
}

/* ---- cluster_telemetry.csv ---- */

static bool is_time(unsigned metric)
{
	return metric == COP_TELEMETRY_WAIT_US || metric == COP_TELEMETRY_CPU_US;
}

/* In file order, which differs from the enum's. */
static const enum cop_telemetry_metric columns[] = {COP_TELEMETRY_REQUESTS,
	COP_TELEMETRY_READ_BYTES, COP_TELEMETRY_WAIT_US, COP_TELEMETRY_PARENT_BYTES,
	COP_TELEMETRY_ORIGIN_OPERATIONS, COP_TELEMETRY_ORIGIN_BYTES, COP_TELEMETRY_SENT_BYTES,
	COP_TELEMETRY_CACHE_BYTES, COP_TELEMETRY_CPU_US, COP_TELEMETRY_RESIDENT_BYTES};
_Static_assert(COP_ARRAY_SIZE(columns) == METRICS, "each metric has a column");

static void put_interval(struct cop_buf *out, const struct cop_telemetry_sum *s, unsigned i)
{
	cop_buf_printf(out, ",%" PRIu64 ",%" PRIu64, (uint64_t)i << s->level,
		cop_telemetry_sum_seconds(s));
}

/* Round the sums since the start to milliseconds, not the intervals, so that the intervals add
 * up. */
static void put_rows(struct cop_buf *out, const struct cop_telemetry_sum *s,
	const struct cop_telemetry_job *job, const struct cop_telemetry_node *n)
{
	uint64_t so_far[METRICS] = {0};

	for (unsigned i = 0; i < n->intervals; i++) {
		cop_buf_printf(out, "%" PRIu32 ",", n->rank);
		put_host(out, job, n->rank);
		put_interval(out, s, i);
		for (unsigned c = 0; c < METRICS; c++) {
			unsigned m = columns[c];
			uint64_t now = cop_add_saturating(so_far[m], n->series[i][m]);

			cop_buf_printf(out, ",%" PRIu64,
				is_time(m) ? now / 1000 - so_far[m] / 1000 : n->series[i][m]);
			so_far[m] = now;
		}
		cop_buf_str(out, "\n");
	}
}

/* Statistics over all nodes: folded ones and those with a series. */
static int of_all(const struct cop_telemetry_sum *s, unsigned cell, struct three *out)
{
	struct spread *all = calloc(1, sizeof(*all));
	uint32_t nodes = s->series.nodes;
	int rc = all ? 0 : -ENOMEM;

	if (!rc && s->series.cell)
		rc = cop_telemetry_spread_merge(all, &s->series.cell[cell]);
	for (size_t i = 0; i < s->nodes && !rc; i++) {
		const struct cop_telemetry_node *n = &s->node[i];

		nodes += n->series != NULL;
		if (n->series && cell / METRICS < n->intervals)
			rc = cop_telemetry_spread_add(
				all, n->series[cell / METRICS][cell % METRICS]);
	}
	if (!rc && nodes)
		*out = cop_telemetry_spread_three(all, nodes);
	cop_telemetry_spread_free(all, 1);
	return rc;
}

static int put_statistics(struct cop_buf *out, const struct cop_telemetry_sum *s, unsigned interval)
{
	struct three three[METRICS] = {0};
	int rc = 0;

	for (unsigned m = 0; m < METRICS && !rc; m++)
		rc = of_all(s, interval * METRICS + m, &three[m]);
	for (unsigned which = 0; which < COP_ARRAY_SIZE(statistics) && !rc; which++) {
		cop_buf_printf(out, "%s,", statistics[which]);
		put_interval(out, s, interval);
		for (unsigned c = 0; c < METRICS; c++) {
			uint64_t value = statistic_of(&three[columns[c]], which);

			cop_buf_printf(
				out, ",%" PRIu64, is_time(columns[c]) ? value / 1000 : value);
		}
		cop_buf_str(out, "\n");
	}
	return rc;
}

static int write_series(
	const struct cop_telemetry_sum *s, const struct cop_telemetry_job *job, struct cop_buf *out)
{
	unsigned intervals = cop_telemetry_sum_intervals(s);
	const struct cop_telemetry_node *n;
	int rc = 0;

	cop_buf_str(out,
		"rank,host,start_s,seconds,requests,read_bytes,wait_ms,parent_bytes,origin_operations,origin_bytes,sent_bytes,cache_bytes,cpu_ms,resident_bytes\n");
	for (unsigned i = 0; s->job_nodes > COP_TELEMETRY_ALL_SERIES && i < intervals && !rc; i++)
		rc = put_statistics(out, s, i);
	for (size_t i = 0; (n = cop_telemetry_sum_node(s, i)); i++)
		put_rows(out, s, job, n);
	return rc;
}

/* ---- cluster_nodes.csv ---- */

/* The columns after the phases, in file order. us: converted to ms. */
static const struct {
	const char *name;
	enum cop_telemetry_total total;
	bool us;
} totals[] = {{"requests", COP_TELEMETRY_ALL_REQUESTS, false},
	{"read_bytes", COP_TELEMETRY_ALL_READ_BYTES, false},
	{"wait_parent_ms", COP_TELEMETRY_ALL_WAIT_PARENT_US, true},
	{"wait_origin_ms", COP_TELEMETRY_ALL_WAIT_ORIGIN_US, true},
	{"parent_bytes", COP_TELEMETRY_ALL_PARENT_BYTES, false},
	{"origin_operations", COP_TELEMETRY_ALL_ORIGIN_OPERATIONS, false},
	{"origin_bytes", COP_TELEMETRY_ALL_ORIGIN_BYTES, false},
	{"sent_bytes", COP_TELEMETRY_ALL_SENT_BYTES, false},
	{"failovers", COP_TELEMETRY_ALL_FAILOVERS, false},
	{"cache_peak_bytes", COP_TELEMETRY_CACHE_PEAK_BYTES, false},
	{"cache_limit_bytes", COP_TELEMETRY_CACHE_LIMIT_BYTES, false},
	{"evictions", COP_TELEMETRY_ALL_EVICTIONS, false},
	{"cpu_ms", COP_TELEMETRY_ALL_CPU_US, true},
	{"resident_peak_bytes", COP_TELEMETRY_RESIDENT_PEAK_BYTES, false},
	{"ahead_bytes", COP_TELEMETRY_ALL_AHEAD_BYTES, false},
	{"from_own_bytes", COP_TELEMETRY_ALL_FROM_OWN_BYTES, false},
	{"from_nodes_bytes", COP_TELEMETRY_ALL_FROM_NODES_BYTES, false},
	{"from_passed_bytes", COP_TELEMETRY_ALL_FROM_PASSED_BYTES, false},
	{"from_disk_bytes", COP_TELEMETRY_ALL_FROM_DISK_BYTES, false},
	{"from_pack_bytes", COP_TELEMETRY_ALL_FROM_PACK_BYTES, false},
	{"from_storage_bytes", COP_TELEMETRY_ALL_FROM_STORAGE_BYTES, false}};
_Static_assert(COP_ARRAY_SIZE(totals) == COP_TELEMETRY_TOTALS, "each total has a column");
/* Columns that later versions added come after the times. */
#define TOTALS_FIRST 14u

static void put_head(struct cop_buf *out)
{
	cop_buf_str(out, "rank,host,parent,job_start_unix_s,ready_s");
	for (unsigned p = 0; p < COP_TELEMETRY_PHASES; p++)
		cop_buf_printf(out, ",phase_%s_s", cop_telemetry_phase_name(p));
	for (size_t i = 0; i < TOTALS_FIRST; i++)
		cop_buf_printf(out, ",%s", totals[i].name);
	cop_buf_str(out, ",stopped_s,start_s");
	for (size_t i = TOTALS_FIRST; i < COP_ARRAY_SIZE(totals); i++)
		cop_buf_printf(out, ",%s", totals[i].name);
	cop_buf_str(out, "\n");
}

static void put_totals(struct cop_buf *out, const uint64_t *total, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		uint64_t value = total[totals[i].total];

		cop_buf_printf(out, ",%" PRIu64, totals[i].us ? value / 1000 : value);
	}
}

/* Writes the numbers of a node or a statistic, starting with ready_s. */
static void put_numbers(
	struct cop_buf *out, const uint64_t number[NUMBERS], int64_t start_us, int64_t ready_us)
{
	const uint64_t *phase = number + 3, *total = phase + COP_TELEMETRY_PHASES;

	put_seconds_after(out, ready_us);
	for (unsigned p = 0; p < COP_TELEMETRY_PHASES; p++)
		put_seconds_after(out, (int64_t)phase[p]);
	put_totals(out, total, 0, TOTALS_FIRST);
	put_seconds_after(out, (int64_t)number[2]);
	put_seconds_after(out, start_us);
	put_totals(out, total, TOTALS_FIRST, COP_ARRAY_SIZE(totals));
	cop_buf_str(out, "\n");
}

static void put_node(struct cop_buf *out, const struct cop_telemetry_sum *s,
	const struct cop_telemetry_job *job, const struct cop_telemetry_node *n)
{
	uint32_t parent = cop_topo_parent(&job->topo, 0, n->rank);
	uint64_t number[NUMBERS];

	cop_telemetry_numbers(n, number);
	cop_buf_printf(out, "%" PRIu32 ",", n->rank);
	put_host(out, job, n->rank);
	cop_buf_printf(out, ",%" PRId64, parent == COP_TOPO_NONE ? -1 : (int64_t)parent);
	put_seconds_after(out, cop_telemetry_sum_unix_ns(s) / 1000);
	put_numbers(out, number, n->start_us, n->ready_us);
}

static int number_of_all(const struct cop_telemetry_sum *s, unsigned i, struct three *out)
{
	struct spread *all = calloc(1, sizeof(*all));
	uint64_t number[NUMBERS];
	int rc = all ? 0 : -ENOMEM;

	if (!rc && s->rows.cell)
		rc = cop_telemetry_spread_merge(all, &s->rows.cell[i]);
	for (size_t n = 0; n < s->nodes && !rc; n++) {
		cop_telemetry_numbers(&s->node[n], number);
		rc = cop_telemetry_spread_add(all, number[i]);
	}
	if (!rc && cop_telemetry_sum_nodes(s))
		*out = cop_telemetry_spread_three(all, cop_telemetry_sum_nodes(s));
	cop_telemetry_spread_free(all, 1);
	return rc;
}

static int put_statistics_of_nodes(struct cop_buf *out, const struct cop_telemetry_sum *s)
{
	struct three three[NUMBERS] = {0};
	uint64_t number[NUMBERS];
	int rc = 0;

	for (unsigned i = 0; i < NUMBERS && !rc; i++)
		rc = number_of_all(s, i, &three[i]);
	for (unsigned which = 0; which < COP_ARRAY_SIZE(statistics) && !rc; which++) {
		for (unsigned i = 0; i < NUMBERS; i++)
			number[i] = statistic_of(&three[i], which);
		cop_buf_printf(out, "%s,,", statistics[which]);
		put_seconds_after(out, cop_telemetry_sum_unix_ns(s) / 1000);
		put_numbers(out, number, (int64_t)number[0], (int64_t)number[1]);
	}
	return rc;
}

static int write_nodes(
	const struct cop_telemetry_sum *s, const struct cop_telemetry_job *job, struct cop_buf *out)
{
	const struct cop_telemetry_node *n;
	int rc = 0;

	put_head(out);
	if (s->job_nodes > COP_TELEMETRY_ALL_NODES)
		rc = put_statistics_of_nodes(out, s);
	for (size_t i = 0; (n = cop_telemetry_sum_node(s, i)); i++)
		put_node(out, s, job, n);
	return rc;
}

/* ---- cluster_events.csv ---- */

static int write_events(
	const struct cop_telemetry_sum *s, const struct cop_telemetry_job *job, struct cop_buf *out)
{
	const struct cop_telemetry_event *e;

	cop_buf_str(out, "time_s,unix_ns,rank,host,event,detail\n");
	for (size_t i = 0; (e = cop_telemetry_sum_event(s, i)); i++) {
		put_seconds(out, e->at_us);
		cop_buf_printf(out, ",%" PRId64 ",%" PRIu32 ",",
			cop_telemetry_sum_unix_ns(s) + e->at_us * 1000, e->rank);
		put_host(out, job, e->rank);
		cop_buf_printf(out, ",%s,", cop_telemetry_kind_name(e->kind));
		cop_csv_field(out, e->detail, strlen(e->detail));
		cop_buf_str(out, "\n");
	}
	if (cop_telemetry_sum_dropped(s))
		cop_buf_printf(out, "dropped,%" PRIu64 ",,,,\n", cop_telemetry_sum_dropped(s));
	return 0;
}

/* ---- all files ---- */

static const struct {
	const char *name;
	int (*fill)(const struct cop_telemetry_sum *s, const struct cop_telemetry_job *job,
		struct cop_buf *out);
} files[] = {{"cluster_telemetry.csv", write_series}, {"cluster_nodes.csv", write_nodes},
	{"cluster_events.csv", write_events}};

int cop_telemetry_write(const struct cop_telemetry_sum *s, const struct cop_telemetry_job *job,
	const char *dir, struct cop_err *err)
{
	int rc = cop_make_dirs_said(dir, 0755, err);

	for (size_t i = 0; i < COP_ARRAY_SIZE(files) && !rc; i++) {
		struct cop_buf text = {0};
		char path[4096 + 64];

		snprintf(path, sizeof(path), "%s/%s", dir, files[i].name);
		rc = files[i].fill(s, job, &text);
		if (!rc && text.failed)
			rc = -ENOMEM;
		if (!rc)
			rc = cop_write_file(path, text.data, text.len, 0644);
		if (rc)
			cop_err_set(err, -rc, "%s: %s", path, strerror(-rc));
		cop_buf_free(&text);
	}
	return rc;
}
