/* SPDX-License-Identifier: BSD-3-Clause */
/* The sums on standard output. */
#include <inttypes.h>
#include <string.h>

#include "report/report_priv.h"

/* Not as long as a line, and without bytes that steer a terminal. */
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

	cop_buf_printf(out, "%" PRIu64 " ranks in %s\n\n", a->cluster->ranks, a->input);
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

static void json_metrics(const struct rows *rows, struct cop_buf *out)
{
	for (size_t i = 0; i < rows->n; i++) {
		cop_buf_str(out, i ? "," : "");
		cop_buf_json_str(out, rows->row[i].name, strlen(rows->row[i].name));
		cop_buf_str(out, ":");
		json_number(out, &rows->row[i]);
	}
}

static void json_operations(const struct rows *rows, struct cop_buf *out)
{
	for (size_t i = 0; i < rows->n; i++) {
		const struct row *op = &rows->row[i];

		cop_buf_str(out, i ? "," : "");
		cop_buf_json_str(out, op->name, strlen(op->name));
		cop_buf_printf(out,
			":{\"total_calls\":%" PRIu64 ",\"cache_hits\":%" PRIu64
			",\"cache_misses\":%" PRIu64 ",\"negative_results\":%" PRIu64
			",\"avg_latency_us\":%.2f,\"total_latency_s\":",
			op->count[0], op->count[1], op->count[2], op->count[3],
			cop_report_average_us(op));
		cop_report_number_print(out, op->sum, true);
		cop_buf_str(out, "}");
	}
}

static void json_classes(const struct cop_pathclass_totals *t, struct cop_buf *out)
{
	bool first = true;

	for (unsigned i = 0; i < COP_PATHCLASSES; i++) {
		const struct cop_pathclass_total *one = &t->of[i];

		if (!one->example)
			continue;
		cop_buf_printf(out,
			"%s\"%s\":{\"entries\":%" PRIu64 ",\"events\":%" PRIu64 ",\"example\":",
			first ? "" : ",", cop_pathclass_name(i), one->entries, one->events);
		cop_buf_json_str(out, one->example, one->example_len);
		cop_buf_str(out, "}");
		first = false;
	}
}

void cop_report_aggregated_json(
	const struct cop_report_aggregated *a, const char *prefix, struct cop_buf *out)
{
	const struct cop_report_cluster *c = a->cluster;

	cop_buf_str(out, "{\"input\":");
	cop_buf_json_str(out, a->input, strlen(a->input));
	cop_buf_str(out, ",\"output\":");
	cop_buf_json_str(out, a->output, strlen(a->output));
	cop_buf_str(out, ",\"prefix\":");
	cop_buf_json_str(out, prefix, strlen(prefix));
	cop_buf_printf(out,
		",\"ranks\":%" PRIu64 ",\"files\":{\"aggregate\":%" PRIu64
		",\"operations\":%" PRIu64 ",\"top_paths\":%" PRIu64 "},\"unusable\":%" PRIu64
		",\"doubtful\":%" PRIu64 ",\"found\":%" PRIu64 ",\"job_nodes\":%" PRIu64
		",\"metrics\":{",
		c->ranks, a->files[COP_REPORT_AGGREGATE], a->files[COP_REPORT_OPERATIONS],
		a->files[COP_REPORT_TOP_PATHS], a->faults, a->doubts, a->found, a->nodes);
	json_metrics(&c->metrics, out);
	cop_buf_str(out, "},\"operations\":{");
	json_operations(&c->ops, out);
	cop_buf_str(out, "},\"path_classes\":{");
	json_classes(&c->classes, out);
	cop_buf_printf(out, "},\"missing_nodes\":%" PRIu64 ",\"missing\":", a->missing);
	cop_buf_json_str(
		out, a->missing_named.data ? a->missing_named.data : "", a->missing_named.len);
	cop_buf_str(out, "}\n");
}
