/* SPDX-License-Identifier: BSD-3-Clause */
/* The CSV files of copper-formats(5). */
#include "base/table/table.h"
#include "prof/profile/profile_priv.h"

static double to_us(uint64_t ns)
{
	return (double)ns / 1e3;
}

int cop_prof_fill_operations(const struct report *r, unsigned type, struct cop_buf *out)
{
	(void)type;
	cop_buf_str(out,
		"operation,total_calls,cache_hits,cache_misses,negative_results,avg_latency_us,"
		"total_latency_s\n");
	for (unsigned op = 0; op < COP_PROF_OPS; op++) {
		struct cop_prof_op_sum s;

		cop_prof_sum_op(r->sum, op, &s);
		if (!s.calls)
			continue;
		cop_buf_printf(out,
			"%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%.2f,%" PRIu64
			".%06" PRIu64 "\n",
			cop_prof_op_name(op), s.calls, s.outcome[COP_PROF_HIT],
			s.outcome[COP_PROF_MISS], s.outcome[COP_PROF_NEGATIVE],
			to_us(s.latency_ns) / (double)s.calls, s.latency_us / 1000000,
			s.latency_us % 1000000);
	}
	return 0;
}

int cop_prof_fill_latency(const struct report *r, unsigned type, struct cop_buf *out)
{
	(void)type;
	cop_buf_str(out, "operation,count,p50_us,p90_us,p99_us,p999_us,max_us\n");
	for (unsigned op = 0; op < COP_PROF_OPS; op++) {
		struct cop_prof_op_sum s;

		cop_prof_sum_op(r->sum, op, &s);
		if (s.calls)
			cop_buf_printf(out, "%s,%" PRIu64 ",%.2f,%.2f,%.2f,%.2f,%.2f\n",
				cop_prof_op_name(op), s.calls, to_us(s.p50_ns), to_us(s.p90_ns),
				to_us(s.p99_ns), to_us(s.p999_ns), to_us(s.max_ns));
	}
	return 0;
}

int cop_prof_each_metric(const struct cop_prof_sum *s,
	int (*fn)(void *arg, const char *metric, const char *value), void *arg)
{
	const uint64_t *ttl = s->ttl;
	struct cop_prof_op_sum all;
	char text[32];
	int rc = 0;

	cop_prof_sum_all(s, &all);
	const struct {
		const char *metric;
		uint64_t value;
	} rows[] = {
		{"total_counted_fuse_operations", all.calls},
		{"total_cache_hits", all.outcome[COP_PROF_HIT]},
		{"total_cache_misses", all.outcome[COP_PROF_MISS]},
		{"total_negative_results", all.outcome[COP_PROF_NEGATIVE]},
		{"estimated_cache_served_operations_saved_by_copper", all.outcome[COP_PROF_HIT]},
		{"metadata_enoent_ttl_stores", ttl[COP_PROF_STORE]},
		{"metadata_enoent_ttl_serves", ttl[COP_PROF_SERVE]},
		{"metadata_enoent_ttl_expires", ttl[COP_PROF_EXPIRE]},
		{"metadata_enoent_ttl_clears_on_success_or_non_enoent", ttl[COP_PROF_CLEAR]},
		{"estimated_repeated_metadata_lookups_avoided_by_ttl", ttl[COP_PROF_SERVE]},
	};

	for (size_t i = 0; i < COP_ARRAY_SIZE(rows) && !rc; i++) {
		snprintf(text, sizeof(text), "%" PRIu64, rows[i].value);
		rc = fn(arg, rows[i].metric, text);
	}
	snprintf(text, sizeof(text), "%" PRIu64 ".%06" PRIu64, all.latency_us / 1000000,
		all.latency_us % 1000000);
	return rc ? rc : fn(arg, "total_measured_latency_seconds", text);
}

int cop_prof_each_storage(const struct cop_stats *stats,
	int (*fn)(void *arg, const char *metric, const char *value), void *arg)
{
	static const struct {
		const char *metric;
		enum cop_counter counter;
	} rows[] = {
		{"storage_operations", COP_ORIGIN_OPERATIONS}, {"storage_bytes", COP_ORIGIN_BYTES}};
	uint64_t us = cop_stats_get(stats, COP_ORIGIN_TIME_US);
	char text[32];
	int rc = 0;

	for (size_t i = 0; i < COP_ARRAY_SIZE(rows) && !rc; i++) {
		snprintf(text, sizeof(text), "%" PRIu64, cop_stats_get(stats, rows[i].counter));
		rc = fn(arg, rows[i].metric, text);
	}
	snprintf(text, sizeof(text), "%" PRIu64 ".%06" PRIu64, us / 1000000, us % 1000000);
	return rc ? rc : fn(arg, "storage_time_seconds", text);
}

static int metric_row(void *arg, const char *metric, const char *value)
{
	cop_buf_printf(arg, "%s,%s\n", metric, value);
	return 0;
}

int cop_prof_fill_aggregate(const struct report *r, unsigned type, struct cop_buf *out)
{
	(void)type;
	cop_buf_str(out, "metric,value\n");
	cop_prof_each_metric(r->sum, metric_row, out);
	return r->stats ? cop_prof_each_storage(r->stats, metric_row, out) : 0;
}

/* Writes every counter of the two groups as group_name, so new counters appear automatically. */
int cop_prof_fill_fabric(const struct report *r, unsigned type, struct cop_buf *out)
{
	(void)type;
	cop_buf_str(out, "metric,value\n");
	for (unsigned c = 0; c < COP_COUNTERS; c++) {
		const char *group = cop_counter_group(c);

		if (strcmp(group, "fabric") == 0 || strcmp(group, "origin") == 0)
			cop_buf_printf(out, "%s_%s,%" PRIu64 "\n", group, cop_counter_name(c),
				cop_stats_get(r->stats, c));
	}
	return 0;
}

/* In a job's sums, the error has its own column. */
static void top_row(const struct report *r, enum category c, const struct row *row,
	struct cop_buf *path, struct cop_buf *out)
{
	const uint64_t *n = row->count;

	path->len = 0;
	cop_prof_text_path(path, r->root, row->path, row->len);
	cop_buf_printf(out, "%s,", cop_prof_category_name(c));
	cop_csv_quoted(out, path->data ? path->data : "", path->len);
	if (c == CATEGORY_TTL)
		cop_buf_printf(out,
			",%" PRIu64 ",0,0,0,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
			row->events, n[0], n[1], n[2], n[3]);
	else
		cop_buf_printf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",0,0,0,0",
			row->events, n[0], n[1], n[2]);
	if (r->cluster)
		cop_buf_printf(out, ",%" PRIu64, r->sum->top[c].error);
	cop_buf_str(out, "\n");
}

int cop_prof_fill_top_paths(const struct report *r, unsigned type, struct cop_buf *out)
{
	struct cop_buf path = {0};

	(void)type;
	cop_buf_printf(out,
		"category,path,total_events,cache_hits,cache_misses,negative_results,ttl_stores,"
		"ttl_serves,ttl_expires,ttl_clears%s\n",
		r->cluster ? ",too_low_by_at_most" : "");
	for (unsigned c = 0; c < CATEGORIES; c++)
		for (size_t i = 0; i < r->top[c].n && i < r->top_n; i++)
			top_row(r, c, &r->top[c].row[i], &path, out);
	out->failed |= path.failed;
	cop_buf_free(&path);
	return 0;
}
