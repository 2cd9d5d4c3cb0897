/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "report/html/html_priv.h"

#define DRAWN 16

static void missing(const struct cop_page *p, struct cop_buf *out)
{
	const struct cop_jobdata *j = p->job;

	if (j->state && j->has_profile_lines && j->profile)
		cop_page_missing(out,
			"Requests were counted, and no sums were written yet: copper stop ends the job and writes them; "
			"copper mount -I SECONDS writes snapshots meanwhile");
	else
		cop_page_missing(out,
			"Requests by kind were not counted: start the job with copper mount -P (counts), -N 50 (and top paths) or -A (and every path)");
}

/* A logarithmic axis has no 0. */
static double at_least(double us)
{
	return fmax(us, 0.1) * 1e-6;
}

static void draw(const struct cop_jobdata *j, struct cop_buf *out)
{
	struct cop_chart_range range[DRAWN];
	const struct cop_jobdata_op *slow = NULL;
	char title[256], a[COP_HTML_NUMBER], b[COP_HTML_NUMBER];
	unsigned n = 0;

	for (size_t i = 0; i < j->ops && n < DRAWN; i++) {
		const struct cop_jobdata_op *op = &j->op[i];

		if (!op->has_quantiles || !(op->max_us > 0.1) || isnan(op->p50_us + op->p99_us))
			continue;
		range[n++] = (struct cop_chart_range){op->name, at_least(op->p50_us),
			at_least(op->p90_us), at_least(op->p99_us), at_least(op->max_us)};
		slow = !slow || op->max_us > slow->max_us ? op : slow;
	}
	if (!n) {
		cop_page_missing(out,
			"How long single requests took is not known: copper stop writes the percentiles of all nodes");
		return;
	}
	snprintf(title, sizeof(title),
		"%.40s took the most time in all: half of its calls took at most %s; the slowest call of all, a %.40s, took %s",
		range[0].name, cop_html_time(range[0].p50, a), slow->name,
		cop_html_time(slow->max_us * 1e-6, b));
	cop_chart_ranges(out, title, range, n, cop_html_time);
}

/* Whether calls of this kind have a latency. Calls answered immediately by the file system, such as
 * open, are only counted. */
static bool is_measured(const struct cop_jobdata_op *op)
{
	return op->latency_s > 0 || (op->has_quantiles && op->max_us > 0);
}

static char *show_us(double us, char out[COP_HTML_NUMBER])
{
	return cop_html_time(us * 1e-6, out);
}

static void table(const struct cop_jobdata *j, struct cop_buf *out)
{
	static const struct cop_html_col col[] = {{"request", false}, {"calls", true},
		{"from memory", true}, {"fetched", true}, {"absent or refused", true},
		{"all calls", true}, {"half within", true}, {"90 %", true}, {"99 %", true},
		{"slowest", true}};

	cop_html_table(out, "Requests of programs by kind, those that took most time first", col,
		COP_ARRAY_SIZE(col));
	for (size_t i = 0; i < j->ops; i++) {
		const struct cop_jobdata_op *op = &j->op[i];
		bool q = op->has_quantiles && is_measured(op);

		cop_html_row(out);
		cop_html_cell(out, op->name);
		cop_html_cell_number(out, cop_html_count, (double)op->calls);
		cop_html_cell_number(out, cop_html_count, (double)op->hits);
		cop_html_cell_number(out, cop_html_count, (double)op->misses);
		cop_html_cell_number(out, cop_html_count, (double)op->negatives);
		cop_html_cell_number(out, cop_html_time, is_measured(op) ? op->latency_s : NAN);
		cop_html_cell_number(out, show_us, q ? op->p50_us : NAN);
		cop_html_cell_number(out, show_us, q ? op->p90_us : NAN);
		cop_html_cell_number(out, show_us, q ? op->p99_us : NAN);
		cop_html_cell_number(out, show_us, q ? op->max_us : NAN);
		cop_html_row_end(out);
	}
	cop_html_table_end(out);
}

void cop_page_operations(const struct cop_page *p, struct cop_buf *out)
{
	if (!p->job->ops) {
		missing(p, out);
		return;
	}
	draw(p->job, out);
	table(p->job, out);
	cop_page_say(out,
		"The kernel answers by itself what it has seen before, so these are mostly first uses; times of calls that overlap are added up.");
}
