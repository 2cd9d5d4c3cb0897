/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the cluster files of copper-formats(5). */
#include "base/table/table.h"
#include "writers/cluster/cluster_priv.h"

struct output {
	const struct cop_report_cluster *c;
	const char *input, *notes, *coverage;
};

static void fill_aggregate(const struct output *o, struct cop_buf *out)
{
	cop_buf_printf(out, "metric,value\nranks_with_aggregate_files,%" PRIu64 "\n", o->c->ranks);
	for (size_t i = 0; i < o->c->metrics.n; i++) {
		const struct row *m = &o->c->metrics.row[i];

		cop_csv_field(out, m->name, strlen(m->name));
		cop_buf_str(out, ",");
		cop_report_number_print(out, m->sum, m->decimal);
		cop_buf_str(out, "\n");
	}
}

static void fill_operations(const struct output *o, struct cop_buf *out)
{
	cop_buf_str(out,
		"operation,total_calls,cache_hits,cache_misses,negative_results,avg_latency_us,total_latency_s\n");
	for (size_t i = 0; i < o->c->ops.n; i++) {
		const struct row *op = &o->c->ops.row[i];

		cop_csv_field(out, op->name, strlen(op->name));
		for (unsigned k = 0; k < COP_ARRAY_SIZE(op->count); k++)
			cop_buf_printf(out, ",%" PRIu64, op->count[k]);
		cop_buf_printf(out, ",%.2f,", cop_report_average_us(op));
		cop_report_number_print(out, op->sum, true);
		cop_buf_str(out, "\n");
	}
}

static void summary_metrics(const struct cop_report_cluster *c, struct cop_buf *out)
{
	cop_buf_str(out, "\n## Aggregate Metrics\n\n| Metric | Value |\n|---|---:|\n");
	cop_buf_printf(out, "| Ranks with aggregate files | %" PRIu64 " |\n", c->ranks);
	for (size_t i = 0; i < c->metrics.n; i++) {
		const struct row *m = &c->metrics.row[i];

		cop_buf_str(out, "| ");
		cop_csv_markdown(out, m->name, strlen(m->name));
		cop_buf_str(out, " | ");
		cop_report_number_print(out, m->sum, m->decimal);
		cop_buf_str(out, " |\n");
	}
}

static void summary_operations(const struct cop_report_cluster *c, struct cop_buf *out)
{
	cop_buf_str(out,
		"\n## Operation Totals\n\n"
		"| Operation | Total Calls | Cache Hits | Cache Misses | Negative Results | Avg Latency (us) | Total Latency (s) |\n"
		"|---|---:|---:|---:|---:|---:|---:|\n");
	for (size_t i = 0; i < c->ops.n; i++) {
		const struct row *op = &c->ops.row[i];

		cop_buf_str(out, "| ");
		cop_csv_markdown(out, op->name, strlen(op->name));
		for (unsigned k = 0; k < COP_ARRAY_SIZE(op->count); k++)
			cop_buf_printf(out, " | %" PRIu64, op->count[k]);
		cop_buf_printf(out, " | %.2f | ", cop_report_average_us(op));
		cop_report_number_print(out, op->sum, true);
		cop_buf_str(out, " |\n");
	}
}

static bool absences_served(const struct cop_report_cluster *c)
{
	const struct row *serves = cop_report_rows_find(&c->metrics, "metadata_enoent_ttl_serves");

	return c->absences_served || (serves && serves->sum);
}

static void summary_classes(const struct cop_report_cluster *c, struct cop_buf *out)
{
	unsigned seen = cop_pathclass_seen(&c->classes);

	if (!seen)
		return;
	cop_buf_printf(out,
		"\n## Path Class Heuristics\n\n%s of each rank, by kind; Entries counts a path once for "
		"each rank that %s it.\n\n",
		c->every_path ? "Every path" : "The most used paths",
		c->every_path ? "used" : "lists");
	cop_pathclass_table(out, &c->classes);
	cop_buf_str(out,
		"\n## Pruning Guidance\n\n"
		"Hints drawn from the names above, for a staged clean-up; they prove nothing about what may be deleted.\n\n");
	cop_pathclass_advice(out, seen, absences_served(c));
}

static void hottest_heading(const struct cop_report_cluster *c, struct cop_buf *out)
{
	cop_prof_hot_section(out);
	if (c->of_lists)
		cop_buf_str(out,
			"\nAdded up from the most used paths of each rank: what a rank does not list is missing in the sum.\n");
}

static void summary_hottest(const struct cop_report_cluster *c, struct cop_buf *out)
{
	static const char *const of[COP_PROF_HOTS] = {"metadata", "data", "metadata_ttl"};
	bool any = false;

	for (unsigned h = 0; h < COP_PROF_HOTS; h++) {
		const struct hot_path **list;
		size_t n = cop_report_hot_list(
			&c->hot, (unsigned)cop_report_category_of(of[h]), &list);

		if (n && !any)
			hottest_heading(c, out);
		if (n)
			cop_prof_hot_head(out, h);
		any |= n > 0;
		for (size_t i = 0; i < n && i < COP_PROF_HOT_ROWS; i++)
			cop_prof_hot_row(out, h, list[i]->text, list[i]->len,
				list[i]->count[COP_REPORT_TOP_EVENTS],
				list[i]->count + (h == COP_PROF_HOT_TTL ? COP_REPORT_TOP_TTL_STORES
									: COP_REPORT_TOP_HITS));
		free(list);
	}
}

static void fill_summary(const struct output *o, struct cop_buf *out)
{
	cop_buf_str(out, "# Cluster Profiling Summary\n\n- Input directory: ");
	cop_csv_markdown(out, o->input, strlen(o->input));
	cop_buf_printf(out, "\n- Rank summaries aggregated: `%" PRIu64 "`\n", o->c->ranks);
	/* Files of Copper 1.0 do not have this metric. */
	if (cop_report_rows_find(&o->c->metrics, "storage_operations"))
		cop_buf_str(out,
			"- Where the kernel answers repeated requests by itself (a job without `copper mount --observe`), all counts, including those by path, count "
			"first uses.\n");
	if (o->notes)
		cop_buf_str(out, o->notes);
	summary_metrics(o->c, out);
	summary_operations(o->c, out);
	cop_report_range_table(o->c, out);
	summary_hottest(o->c, out);
	summary_classes(o->c, out);
	if (o->coverage)
		cop_buf_printf(out, "\n## Path Coverage Analysis\n\n%s", o->coverage);
}

/* Has the same header as a rank's file. */
static void fill_top_paths(const struct output *o, struct cop_buf *out)
{
	cop_buf_str(out,
		"category,path,total_events,cache_hits,cache_misses,negative_results,ttl_stores,ttl_serves,ttl_expires,ttl_clears\n");
	for (unsigned k = 0; k < COP_REPORT_CATEGORIES; k++) {
		const struct hot_path **list;
		size_t n = cop_report_hot_list(&o->c->hot, k, &list);

		for (size_t i = 0; i < n && i < o->c->rows_most; i++) {
			cop_buf_printf(out, "%s,", cop_report_category[k]);
			cop_csv_quoted(out, list[i]->text, list[i]->len);
			for (unsigned v = 0; v < COP_REPORT_TOP_COUNTS; v++)
				cop_buf_printf(out, ",%" PRIu64, list[i]->count[v]);
			cop_buf_str(out, "\n");
		}
		free(list);
	}
}

static const struct file {
	const char *name;
	void (*fill)(const struct output *o, struct cop_buf *out);
} files[] = {
	{"profiling_aggregate.csv", fill_aggregate},
	{"profiling_operations.csv", fill_operations},
	{"profiling_summary.md", fill_summary},
};

static int no_memory(struct cop_err *err)
{
	return cop_err_set(err, ENOMEM, "no memory for the cluster files");
}

static int write_output(const struct output *o, const struct file *f, const char *dir,
	const char *prefix, struct cop_err *err)
{
	struct cop_buf text = {0};
	char *path;
	int rc;

	if (asprintf(&path, "%s/%s-%s", dir, prefix, f->name) < 0)
		return no_memory(err);
	f->fill(o, &text);
	rc = text.failed ? no_memory(err) : cop_write_file(path, text.data, text.len, 0644);
	if (rc && !text.failed)
		cop_err_set(err, -rc, "cannot write %s: %s%s", path, strerror(-rc),
			rc == -ENOSPC   ? "; the disk is full: make room there"
			: rc == -EDQUOT ? "; make room there"
					: "");
	cop_buf_free(&text);
	free(path);
	return rc;
}

int cop_report_check_prefix(const char *prefix, struct cop_err *err)
{
	size_t len = strlen(prefix);

	for (size_t i = 0; i < len; i++)
		if (prefix[i] == '/' || (unsigned char)prefix[i] < 0x20)
			return cop_err_set(err, EINVAL,
				"PREFIX '%s' is the beginning of file names: it must not contain a slash or a control byte",
				prefix);
	if (!len || len > 128)
		return cop_err_set(
			err, EINVAL, "PREFIX is the beginning of file names: 1 to 128 bytes");
	return 0;
}

int cop_report_cluster_write(const struct cop_report_cluster *c, const char *dir,
	const char *prefix, const char *input, const char *notes, const char *coverage,
	struct cop_err *err)
{
	const struct output o = {.c = c, .input = input, .notes = notes, .coverage = coverage};
	int rc = cop_report_check_prefix(prefix, err);

	if (rc)
		return rc;
	rc = cop_make_dirs_said(dir, 0755, err);
	for (size_t i = 0; i < COP_ARRAY_SIZE(files) && !rc; i++)
		rc = write_output(&o, &files[i], dir, prefix, err);
	return rc;
}

int cop_report_cluster_write_paths(const struct cop_report_cluster *c, const char *dir,
	const char *prefix, struct cop_err *err)
{
	static const struct file top = {"profiling_top_paths.csv", fill_top_paths};
	const struct output o = {.c = c};

	return write_output(&o, &top, dir, prefix, err);
}
