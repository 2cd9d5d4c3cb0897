/* SPDX-License-Identifier: BSD-3-Clause */
/* profiling_summary.md: what one node did, for a person. */
#include <inttypes.h>
#include <stdlib.h>

#include "prof/prof_priv.h"

static const char *mode(const struct cop_prof *p)
{
	return p->level == COP_PROF_FULL ? "full-path" : p->level == COP_PROF_TOP ? "top-path" : "aggregate-only";
}

static void settings(const struct report *r, struct cop_buf *out)
{
	cop_buf_str(out, "# Copper profile of one node\n\n");
	cop_buf_printf(out, "- Node: `%s`\n", r->p->stem);
	cop_buf_printf(out, "- Profiling mode: `%s`\n", mode(r->p));
	cop_buf_printf(out, "- Metadata ENOENT TTL (ms): `%" PRIu32 "`\n", r->p->enoent_ttl_ms);
	cop_buf_printf(out, "- Top-path limit: `%" PRIu32 "`\n", r->p->top_n);
	cop_buf_printf(out, "- Full path outputs enabled: `%s`\n", r->p->paths ? "yes" : "no");
	cop_buf_printf(out, "- Snapshot tag: `%s`\n", r->tag ? r->tag : "final");
}

static void operations(const struct report *r, struct cop_buf *out)
{
	cop_buf_str(out, "\n## Operations\n\n"
		"| Operation | Total Calls | Cache Hits | Cache Misses | Negative Results | Errors | Avg Latency (us) | "
		"p99 (us) | Max (us) | Total Latency (s) |\n"
		"|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
	for (unsigned op = 0; op < COP_PROF_OPS; op++) {
		struct cop_prof_op_sum s;

		cop_prof_sum_op(r->sum, op, &s);
		if (!s.calls)
			continue;
		cop_buf_printf(out, "| `%s` | %" PRIu64 " | %" PRIu64 " | %" PRIu64 " | %" PRIu64 " | %" PRIu64
			" | %.2f | %.2f | %.2f | %.6f |\n",
			cop_prof_op_name(op), s.calls, s.outcome[COP_PROF_HIT], s.outcome[COP_PROF_MISS],
			s.outcome[COP_PROF_NEGATIVE], s.outcome[COP_PROF_ERROR],
			(double)s.latency_ns / 1e3 / (double)s.calls, (double)s.p99_ns / 1e3,
			(double)s.max_ns / 1e3, (double)s.latency_ns / 1e9);
	}
}

static void totals(const struct report *r, struct cop_buf *out)
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
		{"Requests answered with another error", all.outcome[COP_PROF_ERROR]},
		{"Estimated operations that the storage was spared", all.outcome[COP_PROF_HIT]},
		{"Metadata ENOENT TTL stores", r->sum->ttl[COP_PROF_STORE]},
		{"Metadata ENOENT TTL serves", r->sum->ttl[COP_PROF_SERVE]},
		{"Metadata ENOENT TTL expires", r->sum->ttl[COP_PROF_EXPIRE]},
		{"Metadata ENOENT TTL clears on success/non-ENOENT", r->sum->ttl[COP_PROF_CLEAR]},
		{"Estimated repeated lookups avoided by TTL", r->sum->ttl[COP_PROF_SERVE]},
	};

	cop_buf_str(out, "\n## Totals\n\n| Metric | Value |\n|---|---:|\n");
	for (size_t i = 0; i < COP_ARRAY_SIZE(rows); i++)
		cop_buf_printf(out, "| %s | %" PRIu64 " |\n", rows[i].metric, rows[i].value);
	cop_buf_printf(out, "| Total measured latency (s) | %.6f |\n", (double)all.latency_ns / 1e9);
}

/* What the path files do not say about themselves. */
static void accuracy(const struct report *r, struct cop_buf *out)
{
	cop_buf_str(out, "\n## Paths\n\n");
	if (r->p->top_n)
		cop_buf_printf(out, "- The %" PRIu32 " paths used most of each category are in `%s`.\n", r->p->top_n,
			r->top_paths_name);
	for (unsigned c = 0; c < CATEGORIES; c++) {
		uint64_t error = r->p->top[c] ? cop_prof_top_error(r->p->top[c]) : 0;

		if (error)
			cop_buf_printf(out, "- Counts of category `%s` are estimates: none is too high, and none is too low by more "
				"than %" PRIu64 ".\n", cop_prof_category_name(c), error);
	}
	if (r->p->paths)
		cop_buf_str(out, "- Every path is in the `*_cache_event.output` files under `tables`, in the order of first use.\n");
	if (r->p->paths && cop_prof_paths_dropped(r->p->paths))
		cop_buf_printf(out, "- The memory for paths was used up: %" PRIu64 " events are missing from the path files.\n",
			cop_prof_paths_dropped(r->p->paths));
}

struct class_total {
	enum path_class class;
	uint64_t entries, events;
	enum category category;
	const struct row *example; /* the busiest of the first category that has one */
};

static int busiest(const void *a, const void *b)
{
	const struct class_total *x = a, *y = b;

	if (x->events != y->events)
		return x->events > y->events ? -1 : 1;
	return x->class < y->class ? -1 : 1;
}

static void classify(const struct report *r, struct cop_buf *path, struct class_total total[CLASSES])
{
	for (unsigned i = 0; i < CLASSES; i++)
		total[i].class = i;
	for (unsigned c = 0; c < CATEGORIES; c++)
		for (size_t i = 0; i < r->top[c].n; i++) {
			const struct row *row = &r->top[c].row[i];
			struct class_total *one;

			path->len = 0;
			cop_prof_text_path(path, r->root, row->path, row->len);
			one = &total[cop_prof_class(c, path->data ? path->data : "", path->len)];
			one->entries++;
			one->events += row->events;
			if (!one->example)
				one->example = row;
		}
}

static void classes(const struct report *r, struct cop_buf *out)
{
	struct class_total total[CLASSES] = {0};
	struct cop_buf path = {0};
	unsigned seen = 0;

	classify(r, &path, total);
	qsort(total, CLASSES, sizeof(total[0]), busiest);
	cop_buf_str(out, "\n## Path classes\n\n| Path Class | Entries | Total Events | Example |\n|---|---:|---:|---|\n");
	for (unsigned i = 0; i < CLASSES; i++) {
		if (!total[i].example)
			continue;
		seen |= 1u << total[i].class;
		cop_buf_printf(out, "| `%s` | %" PRIu64 " | %" PRIu64 " | ", cop_prof_class_name(total[i].class),
			total[i].entries, total[i].events);
		path.len = 0;
		cop_prof_text_path(&path, r->root, total[i].example->path, total[i].example->len);
		cop_prof_text_markdown(out, path.data ? path.data : "", path.len);
		cop_buf_str(out, " |\n");
	}
	cop_buf_str(out, "\n## What could be pruned\n\n"
		"Hints drawn from the names above, for a staged clean-up; they prove nothing about what may be deleted.\n\n");
	cop_prof_advice(out, seen, r->sum->ttl[COP_PROF_SERVE] > 0);
	out->failed |= path.failed;
	cop_buf_free(&path);
}

int cop_prof_fill_summary(const struct report *r, unsigned type, struct cop_buf *out)
{
	size_t paths = 0;

	(void)type;
	settings(r, out);
	operations(r, out);
	totals(r, out);
	if (!r->with_top)
		return 0;
	for (unsigned c = 0; c < CATEGORIES; c++)
		paths += r->top[c].n;
	accuracy(r, out);
	if (paths)
		classes(r, out);
	return 0;
}
