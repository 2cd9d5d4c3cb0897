/* SPDX-License-Identifier: BSD-3-Clause */
/* Formats the sums for standard output. */
#include "base/base/json.h"
#include "writers/cluster/cluster_priv.h"

/* Truncates the name, and replaces bytes that could control a terminal. */
static void print_name(struct cop_buf *out, const char *name)
{
	char plain[21];
	size_t len = 0;

	for (; *name && len + 1 < sizeof(plain); name++)
		plain[len++] = (unsigned char)*name < 0x20 || *name == 0x7f ? '?' : *name;
	plain[len] = '\0';
	cop_buf_printf(out, "%-20s", plain);
}

static void print_row(struct cop_buf *out, const struct row *op)
{
	print_name(out, op->name);
	cop_buf_printf(out,
		" %12" PRIu64 " %12" PRIu64 " %10" PRIu64 " %10" PRIu64 " %10.2f %12.3f\n",
		op->count[0], op->count[1], op->count[2], op->count[3], cop_report_average_us(op),
		(double)op->sum / COP_NUMBER_UNIT);
}

static struct row total_of(const struct rows *rows)
{
	struct row total = {.name = (char *)"total"};

	for (size_t i = 0; i < rows->n; i++) {
		for (unsigned k = 0; k < COP_ARRAY_SIZE(total.count); k++)
			if (__builtin_add_overflow(
				    total.count[k], rows->row[i].count[k], &total.count[k]))
				total.count[k] = UINT64_MAX;
		total.sum = cop_report_number_add(total.sum, rows->row[i].sum);
	}
	return total;
}

void cop_report_aggregated_table(const struct cop_report_aggregated *a, struct cop_buf *out)
{
	const struct rows *ops = &a->cluster->ops;
	const struct row total = total_of(ops);

	cop_buf_printf(out, "%" PRIu64 " rank%s in %s\n\n", a->cluster->ranks,
		a->cluster->ranks == 1 ? "" : "s", a->input);
	cop_buf_printf(out, "%-20s %12s %12s %10s %10s %10s %12s\n", "operation", "calls", "hits",
		"misses", "negative", "avg us", "total s");
	for (size_t i = 0; i < ops->n; i++)
		print_row(out, &ops->row[i]);
	print_row(out, &total);
	cop_buf_str(out, "\n");
}

static void json_number(struct cop_buf *out, const struct row *m)
{
	cop_report_number_print(out, m->sum, m->decimal);
}

static void json_metrics(const struct rows *rows, struct cop_json *j)
{
	cop_json_object(j, "metrics");
	for (size_t i = 0; i < rows->n; i++) {
		cop_json_value(j, rows->row[i].name);
		json_number(j->out, &rows->row[i]);
	}
	cop_json_end(j);
}

static void json_operations(const struct rows *rows, struct cop_json *j)
{
	static const char *const counts[] = {
		"total_calls", "cache_hits", "cache_misses", "negative_results"};

	cop_json_object(j, "operations");
	for (size_t i = 0; i < rows->n; i++) {
		const struct row *op = &rows->row[i];

		cop_json_object(j, op->name);
		for (size_t c = 0; c < COP_ARRAY_SIZE(counts); c++)
			cop_json_u64(j, counts[c], op->count[c]);
		cop_json_double(j, "avg_latency_us", cop_report_average_us(op), 2);
		cop_json_value(j, "total_latency_s");
		cop_report_number_print(j->out, op->sum, true);
		cop_json_end(j);
	}
	cop_json_end(j);
}

static void json_classes(const struct cop_pathclass_totals *t, struct cop_json *j)
{
	cop_json_object(j, "path_classes");
	for (unsigned i = 0; i < COP_PATHCLASSES; i++) {
		const struct cop_pathclass_total *one = &t->of[i];

		if (!one->example)
			continue;
		cop_json_object(j, cop_pathclass_name(i));
		cop_json_u64(j, "entries", one->entries);
		cop_json_u64(j, "events", one->events);
		cop_json_bytes(j, "example", one->example, one->example_len);
		cop_json_end(j);
	}
	cop_json_end(j);
}

void cop_report_aggregated_json(
	const struct cop_report_aggregated *a, const char *prefix, struct cop_buf *out)
{
	const struct cop_report_cluster *c = a->cluster;
	struct cop_json j = cop_json_to(out);

	cop_json_object(&j, NULL);
	cop_json_str(&j, "input", a->input);
	cop_json_str(&j, "output", a->output);
	cop_json_str(&j, "prefix", prefix);
	cop_json_u64(&j, "ranks", c->ranks);
	cop_json_object(&j, "files");
	cop_json_u64(&j, "aggregate", a->files[COP_REPORT_AGGREGATE]);
	cop_json_u64(&j, "operations", a->files[COP_REPORT_OPERATIONS]);
	cop_json_u64(&j, "top_paths", a->files[COP_REPORT_TOP_PATHS]);
	cop_json_end(&j);
	cop_json_u64(&j, "unusable", a->faults);
	cop_json_u64(&j, "doubtful", a->doubts);
	cop_json_u64(&j, "found", a->found);
	cop_json_u64(&j, "job_nodes", a->nodes);
	json_metrics(&c->metrics, &j);
	json_operations(&c->ops, &j);
	cop_report_range_json(c, &j);
	json_classes(&c->classes, &j);
	cop_json_u64(&j, "missing_nodes", a->missing);
	cop_json_bytes(&j, "missing", a->missing_named.data ? a->missing_named.data : "",
		a->missing_named.len);
	cop_json_str(&j, "ending", a->ending.data ? a->ending.data : "");
	cop_json_end(&j);
	cop_buf_str(out, "\n");
}
