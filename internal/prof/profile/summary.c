/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes profiling_summary.md, a human-readable summary of one node. */
#include "prof/profile/profile.h"
#include "prof/profile/profile_priv.h"

static const char *mode_name(const struct cop_prof *p)
{
	return p->level == COP_PROF_FULL  ? "full-path"
	       : p->level == COP_PROF_TOP ? "top-path"
					  : "aggregate-only";
}

/* Headings, lists and tables begin like those of Copper 1.0, because scripts search for them. New
 * items come last. */
static void put_settings(const struct report *r, struct cop_buf *out)
{
	cop_buf_str(out, "# Copper Profiling Summary\n\n");
	cop_buf_printf(out, "- Profiling mode: `%s`\n", mode_name(r->p));
	cop_buf_printf(out, "- Metadata ENOENT TTL (ms): `%" PRIu32 "`\n", r->p->enoent_ttl_ms);
	cop_buf_printf(out, "- Top-path limit: `%" PRIu32 "`\n", r->p->top_n);
	cop_buf_printf(out, "- Full path outputs enabled: `%s`\n", r->p->paths ? "yes" : "no");
	if (r->tag)
		cop_buf_printf(out, "- Snapshot tag: `%s`\n", r->tag);
	cop_buf_printf(out, "- Node: `%s`\n", r->p->stem);
	cop_buf_str(out,
		r->p->observe
			? "- With `--observe` the kernel caches nothing: all counts, including those by path, count every use.\n"
			: "- The kernel answers repeated requests by itself, so all counts, including those by path, count first uses; `copper mount --observe` counts every use.\n");
}

static void put_operations(const struct report *r, struct cop_buf *out)
{
	cop_buf_str(out,
		"\n## Aggregate Operation Metrics\n\n"
		"| Operation | Total Calls | Cache Hits | Cache Misses | Negative Results | Avg Latency (us) | Total Latency (s) | "
		"Errors | p99 (us) | Max (us) |\n"
		"|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
	for (unsigned op = 0; op < COP_PROF_OPS; op++) {
		struct cop_prof_op_sum s;

		cop_prof_sum_op(r->sum, op, &s);
		if (!s.calls)
			continue;
		cop_buf_printf(out,
			"| `%s` | %" PRIu64 " | %" PRIu64 " | %" PRIu64 " | %" PRIu64
			" | %.2f | %" PRIu64 ".%06" PRIu64 " | %" PRIu64 " | %.2f | %.2f |\n",
			cop_prof_op_name(op), s.calls, s.outcome[COP_PROF_HIT],
			s.outcome[COP_PROF_MISS], s.outcome[COP_PROF_NEGATIVE],
			(double)s.latency_ns / 1e3 / (double)s.calls, s.latency_us / 1000000,
			s.latency_us % 1000000, s.outcome[COP_PROF_ERROR], (double)s.p99_ns / 1e3,
			(double)s.max_ns / 1e3);
	}
}

static void put_totals(const struct report *r, struct cop_buf *out)
{
	struct cop_prof_op_sum all;

	cop_prof_sum_all(r->sum, &all);
	const struct {
		const char *metric;
		uint64_t value;
	} rows[] = {
		{"Total counted FUSE operations", all.calls},
		{"Total cache hits", all.outcome[COP_PROF_HIT]},
		{"Total cache misses", all.outcome[COP_PROF_MISS]},
		{"Total negative results", all.outcome[COP_PROF_NEGATIVE]},
		{"Estimated cache-served operations saved by Copper", all.outcome[COP_PROF_HIT]},
		{"Metadata ENOENT TTL stores", r->sum->ttl[COP_PROF_STORE]},
		{"Metadata ENOENT TTL serves", r->sum->ttl[COP_PROF_SERVE]},
		{"Metadata ENOENT TTL expires", r->sum->ttl[COP_PROF_EXPIRE]},
		{"Metadata ENOENT TTL clears on success/non-ENOENT", r->sum->ttl[COP_PROF_CLEAR]},
		{"Estimated repeated metadata lookups avoided by TTL", r->sum->ttl[COP_PROF_SERVE]},
	};

	cop_buf_str(out, "\n## Derived High-Level Metrics\n\n| Metric | Value |\n|---|---:|\n");
	for (size_t i = 0; i < COP_ARRAY_SIZE(rows); i++)
		cop_buf_printf(out, "| %s | %" PRIu64 " |\n", rows[i].metric, rows[i].value);
	cop_buf_printf(out,
		"| Total measured latency across counted operations (s) | %" PRIu64 ".%06" PRIu64
		" |\n",
		all.latency_us / 1000000, all.latency_us % 1000000);
	cop_buf_printf(out, "| Requests answered with another error | %" PRIu64 " |\n",
		all.outcome[COP_PROF_ERROR]);
}

/* Storage operations are not kernel requests, and most nodes have none. */
static void put_storage(const struct report *r, struct cop_buf *out)
{
	uint64_t us;

	if (!r->stats)
		return;
	us = cop_stats_get(r->stats, COP_ORIGIN_TIME_US);
	cop_buf_str(out,
		"\n## Storage\n\nWhat this node itself asked of the storage, including for other nodes; the time is the sum over all operations, which run in parallel.\n\n| "
		"Metric | Value |\n|---|---:|\n");
	cop_buf_printf(out,
		"| Storage operations | %" PRIu64 " |\n| Storage bytes read | %" PRIu64
		" |\n| Storage time (s) | %" PRIu64 ".%06" PRIu64 " |\n",
		cop_stats_get(r->stats, COP_ORIGIN_OPERATIONS),
		cop_stats_get(r->stats, COP_ORIGIN_BYTES), us / 1000000, us % 1000000);
}

/* What the path files do not say about their own accuracy. */
static void put_accuracy(const struct report *r, struct cop_buf *out)
{
	cop_buf_str(out, r->p->top_n ? "\n## Top Paths\n\n" : "\n## Full Path Outputs\n\n");
	if (r->p->top_n)
		cop_buf_printf(out,
			"- The %" PRIu32 " most used paths of each category are in `%s`.\n",
			r->p->top_n, r->top_paths_name);
	for (unsigned c = 0; c < CATEGORIES; c++) {
		uint64_t error = r->p->top[c] ? cop_prof_top_error(r->p->top[c]) : 0;

		if (error)
			cop_buf_printf(out,
				"- Counts of category `%s` are estimates: none is too high, and none is too low by more "
				"than %" PRIu64 ".\n",
				cop_prof_category_name(c), error);
	}
	if (r->p->paths && r->p->top_n)
		cop_buf_str(out, "\n## Full Path Outputs\n\n");
	if (r->p->paths)
		cop_buf_str(out,
			"- Every path is in the `*_cache_event.output` files under `tables`, in the order of first use.\n");
	if (r->p->paths && cop_prof_paths_dropped(r->p->paths))
		cop_buf_printf(out,
			"- The memory for paths was used up: %" PRIu64
			" events are missing from the path files.\n",
			cop_prof_paths_dropped(r->p->paths));
}

static void put_hottest(const struct report *r, struct cop_buf *out)
{
	static const enum category of[COP_PROF_HOTS] = {
		CATEGORY_METADATA, CATEGORY_DATA, CATEGORY_TTL};
	struct cop_buf path = {0};

	cop_prof_hot_section(out);
	for (unsigned h = 0; h < COP_PROF_HOTS; h++) {
		const struct rows *rows = &r->top[of[h]];

		for (size_t i = 0; i < rows->n && i < COP_PROF_HOT_ROWS; i++) {
			const struct row *row = &rows->row[i];

			if (!i)
				cop_prof_hot_head(out, h);
			path.len = 0;
			cop_prof_text_path(&path, r->root, row->path, row->len);
			cop_prof_hot_row(out, h, path.data ? path.data : "", path.len, row->events,
				row->count);
		}
	}
	out->failed |= path.failed;
	cop_buf_free(&path);
}

static int put_classified(const struct report *r, struct cop_pathclass_totals *total)
{
	struct cop_buf path = {0};
	int rc = 0;

	for (unsigned c = 0; c < CATEGORIES; c++)
		for (size_t i = 0; i < r->top[c].n && !rc; i++) {
			const struct row *row = &r->top[c].row[i];

			path.len = 0;
			cop_prof_text_path(&path, r->root, row->path, row->len);
			rc = path.failed
				     ? -ENOMEM
				     : cop_pathclass_add(total, c == CATEGORY_TTL,
					       path.data ? path.data : "", path.len, row->events);
		}
	cop_buf_free(&path);
	return rc;
}

static int put_classes(const struct report *r, struct cop_buf *out)
{
	struct cop_pathclass_totals total = {0};
	int rc = put_classified(r, &total);

	if (!rc) {
		cop_buf_str(out, "\n## Path Class Heuristics\n\n");
		cop_pathclass_table(out, &total);
		cop_buf_str(out,
			"\n## Pruning Guidance\n\n"
			"Hints drawn from the names above, for a staged clean-up; they prove nothing about what may be deleted.\n\n");
		cop_pathclass_advice(
			out, cop_pathclass_seen(&total), r->sum->ttl[COP_PROF_SERVE] > 0);
	}
	cop_pathclass_totals_free(&total);
	return rc;
}

int cop_prof_fill_summary(const struct report *r, unsigned type, struct cop_buf *out)
{
	size_t paths = 0;

	(void)type;
	put_settings(r, out);
	put_operations(r, out);
	put_totals(r, out);
	put_storage(r, out);
	if (r->p->further && r->stats)
		r->p->further(r->p->ctx, r->stats, out);
	if (!r->with_top)
		return 0;
	for (unsigned c = 0; c < CATEGORIES; c++)
		paths += r->top[c].n;
	put_accuracy(r, out);
	if (paths)
		put_hottest(r, out);
	return paths ? put_classes(r, out) : 0;
}
