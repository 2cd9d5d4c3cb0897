/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "report/html/html_priv.h"

#define NEAR_LIMIT 0.25 /* the limit is drawn above this share */

struct memory {
	double line[4][COP_JOBDATA_STEPS_MAX]; /* cache: max, median; process: max, median */
};

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The statistic's own row, if present. */
static const struct cop_jobdata_series *statistic(const struct cop_jobdata *j, int32_t which)
{
	for (size_t s = 0; s < j->series_n && j->series[s]->rank < 0; s++)
		if (j->series[s]->rank == which)
			return j->series[s];
	return NULL;
}

static void most_and_median(
	const struct cop_jobdata *j, unsigned column, double *most, double *middle)
{
	const struct cop_jobdata_series *max = statistic(j, COP_JOBDATA_MAX);
	const struct cop_jobdata_series *median = statistic(j, COP_JOBDATA_MEDIAN);
	double v[COP_JOBDATA_SERIES_MAX];

	for (unsigned i = 0; i < j->steps; i++) {
		size_t n = 0;

		for (size_t s = 0; s < j->series_n; s++)
			if (!isnan(j->series[s]->value[column][i]))
				v[n++] = (double)j->series[s]->value[column][i];
		qsort(v, n, sizeof(*v), ascending);
		most[i] = max ? (double)max->value[column][i] : n ? v[n - 1] : NAN;
		middle[i] = median ? (double)median->value[column][i] : n ? v[n / 2] : NAN;
	}
}

/* The node with the highest share of its limit. */
static const struct cop_jobdata_node *fullest(const struct cop_jobdata *j)
{
	const struct cop_jobdata_node *most = NULL;
	double best = -1;

	for (size_t i = 0; i < j->node_n; i++) {
		double share = j->node[i].cache_peak_bytes / j->node[i].cache_limit_bytes;

		if (j->node[i].rank >= 0 && share > best) {
			best = share;
			most = &j->node[i];
		}
	}
	return most;
}

static void make_title(const struct cop_jobdata_node *most, char title[300])
{
	char node[PAGE_LABEL], a[COP_HTML_NUMBER], b[COP_HTML_NUMBER], c[COP_HTML_NUMBER];

	if (!most) {
		snprintf(title, 300, "What the caches and the processes held");
		return;
	}
	cop_page_node(most->rank, most->host, node);
	snprintf(title, 300, "The cache of %s was the fullest: %s, %s of its limit of %s", node,
		cop_html_size(most->cache_peak_bytes, a),
		cop_html_share(most->cache_peak_bytes, most->cache_limit_bytes, b),
		cop_html_size(most->cache_limit_bytes, c));
}

static void draw(const struct cop_jobdata *j, struct cop_buf *out)
{
	const struct cop_jobdata_node *most = fullest(j);
	struct memory *m = calloc(1, sizeof(*m));
	bool near = most && most->cache_peak_bytes >= NEAR_LIMIT * most->cache_limit_bytes;
	char title[300];

	if (!m) {
		out->failed = true;
		return;
	}
	most_and_median(j, COP_JOBDATA_CACHE_BYTES, m->line[0], m->line[2]);
	most_and_median(j, COP_JOBDATA_RESIDENT_BYTES, m->line[1], m->line[3]);
	make_title(most, title);
	cop_chart_lines(out, &(struct cop_chart_lines){.title = title,
				     .lines = j->series_n > 1 ? 4 : 2,
				     .cols = j->steps,
				     .interval_s = j->interval_s,
				     .show = cop_html_size,
				     .name = {"cache, most of any node", "whole process, most",
					     "cache, middle node", "whole process, middle node"},
				     .value = {m->line[0], m->line[1], m->line[2], m->line[3]},
				     .limit = near ? most->cache_limit_bytes : NAN,
				     .limit_name = "limit of the cache"});
	free(m);
}

static int fullest_first(const void *a, const void *b)
{
	const struct cop_jobdata_node *x = *(const struct cop_jobdata_node *const *)a;
	const struct cop_jobdata_node *y = *(const struct cop_jobdata_node *const *)b;
	double vx = fmax(x->resident_peak_bytes, 0), vy = fmax(y->resident_peak_bytes, 0);

	if ((x->rank < 0) != (y->rank < 0))
		return x->rank < 0 ? -1 : 1;
	return x->rank < 0 ? (x->rank < y->rank) - (x->rank > y->rank) : (vx < vy) - (vx > vy);
}

static void table(const struct cop_jobdata *j, struct cop_buf *out)
{
	static const struct cop_html_col col[] = {{"node", false}, {"cache, most", true},
		{"limit", true}, {"objects evicted", true}, {"process, most", true}};
	const struct cop_jobdata_node **at = calloc(j->node_n + 1, sizeof(*at));
	size_t shown = COP_MIN(j->node_n, (size_t)PAGE_NODES_LISTED);

	if (!at) {
		out->failed = true;
		return;
	}
	for (size_t i = 0; i < j->node_n; i++)
		at[i] = &j->node[i];
	qsort(at, j->node_n, sizeof(*at), fullest_first);
	cop_buf_str(out, "<details><summary>By node</summary>\n");
	cop_html_table(out, "Memory of nodes, largest process first", col, COP_ARRAY_SIZE(col));
	for (size_t i = 0; i < shown; i++) {
		char text[PAGE_LABEL];

		cop_page_label(at[i]->rank, at[i]->host, text);
		cop_html_row(out);
		cop_html_cell(out, text);
		cop_html_cell_number(out, cop_html_size, at[i]->cache_peak_bytes);
		cop_html_cell_number(out, cop_html_size, at[i]->cache_limit_bytes);
		cop_html_cell_number(out, cop_html_count, at[i]->evictions);
		cop_html_cell_number(out, cop_html_size, at[i]->resident_peak_bytes);
		cop_html_row_end(out);
	}
	cop_html_table_end(out);
	cop_buf_str(out, "</details>\n");
	free(at);
}

static void say_evictions(const struct cop_jobdata *j, struct cop_buf *out)
{
	double sum = 0;
	char a[COP_HTML_NUMBER];

	for (size_t i = 0; i < j->node_n; i++)
		if (j->node[i].rank >= 0)
			sum += fmax(0, j->node[i].evictions);
	if (sum > 0)
		cop_page_say(out,
			"%s objects had to make room for others and may have been fetched again: a larger --cache-size avoids that.",
			cop_html_count(sum, a));
}

void cop_page_memory(const struct cop_page *p, struct cop_buf *out)
{
	const struct cop_jobdata *j = p->job;

	if (!j->series_n && !j->node_n) {
		cop_page_no_telemetry(out, p, "How much memory the nodes used over time");
		return;
	}
	if (j->series_n && j->steps)
		draw(j, out);
	say_evictions(j, out);
	if (j->node_n)
		table(j, out);
}
