/* SPDX-License-Identifier: BSD-3-Clause */
/* Draws maps of nodes over time. With many nodes, a map shows the minimum, median and maximum of
 * each interval, and the outliers. */
#include <math.h>

#include "report/html/html_priv.h"

struct map {
	const struct cop_jobdata *j;
	enum cop_jobdata_column column;
	double scale;
	const struct cop_jobdata_series *row[PAGE_NODES_DRAWN];
	struct cop_jobdata_series *made; /* minimum, median and maximum of the series */
	unsigned rows;
	char label[PAGE_NODES_DRAWN][PAGE_LABEL];
};

static double sum_of(
	const struct cop_jobdata *j, const struct cop_jobdata_series *s, unsigned column)
{
	double sum = 0;

	for (unsigned i = 0; i < j->steps; i++)
		if (!isnan(s->value[column][i]))
			sum += (double)s->value[column][i];
	return sum;
}

static int ascending(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

static void make_statistics(struct map *m)
{
	const struct cop_jobdata *j = m->j;
	float v[COP_JOBDATA_SERIES_MAX];

	m->made = calloc(3, sizeof(*m->made));
	for (unsigned i = 0; m->made && i < j->steps; i++) {
		size_t n = 0;

		for (size_t s = 0; s < j->series_n; s++)
			if (!isnan(j->series[s]->value[m->column][i]))
				v[n++] = j->series[s]->value[m->column][i];
		qsort(v, n, sizeof(*v), ascending);
		m->made[0].value[m->column][i] = n ? v[0] : NAN;
		m->made[1].value[m->column][i] = n ? v[n / 2] : NAN;
		m->made[2].value[m->column][i] = n ? v[n - 1] : NAN;
	}
	for (int i = 0; m->made && i < 3; i++) {
		m->made[i].rank = -1 - i;
		m->made[i].host = (char *)"";
		m->row[m->rows++] = &m->made[i];
	}
}

/* Fills the remaining rows with the nodes with the highest sums, then sorts by rank. */
static void choose_outliers(struct map *m)
{
	const struct cop_jobdata *j = m->j;
	unsigned first = m->rows;

	for (size_t s = 0; s < j->series_n; s++) {
		double sum = sum_of(j, j->series[s], m->column);
		unsigned to = m->rows;

		if (j->series[s]->rank < 0)
			continue;
		for (; to > first && sum_of(j, m->row[to - 1], m->column) < sum; to--)
			if (to < PAGE_NODES_DRAWN)
				m->row[to] = m->row[to - 1];
		if (to < PAGE_NODES_DRAWN)
			m->row[to] = j->series[s];
		m->rows = COP_MIN(m->rows + 1, PAGE_NODES_DRAWN);
	}
}

static void choose_rows(struct map *m)
{
	const struct cop_jobdata *j = m->j;

	if (j->series_n <= PAGE_NODES_DRAWN) {
		for (size_t s = 0; s < j->series_n; s++)
			m->row[m->rows++] = j->series[s];
	} else {
		if (j->series[0]->rank >= 0)
			make_statistics(m);
		for (size_t s = 0; s < j->series_n && j->series[s]->rank < 0; s++)
			m->row[m->rows++] = j->series[s];
		choose_outliers(m);
	}
	for (unsigned i = 0; i < m->rows; i++)
		cop_page_label(m->row[i]->rank, m->row[i]->host, m->label[i]);
}

static const char *name(const void *arg, unsigned row)
{
	return ((const struct map *)arg)->label[row];
}

static double value(const void *arg, unsigned row, unsigned col)
{
	const struct map *m = arg;

	return (double)m->row[row]->value[m->column][col] * m->scale;
}

/* ---- titles ---- */

/* The node with the highest sum; NULL if all are 0. */
static const struct cop_jobdata_series *highest_series(const struct map *m, double *sum)
{
	const struct cop_jobdata_series *most = NULL;

	*sum = 0;
	for (size_t s = 0; s < m->j->series_n; s++) {
		double v = sum_of(m->j, m->j->series[s], m->column);

		if (m->j->series[s]->rank >= 0 && v > *sum) {
			*sum = v;
			most = m->j->series[s];
		}
	}
	return most;
}

static unsigned peak(const struct map *m, const struct cop_jobdata_series *s)
{
	unsigned at = 0;

	for (unsigned i = 0; i < m->j->steps; i++)
		if (isnan(s->value[m->column][at]) ||
			s->value[m->column][i] > s->value[m->column][at])
			at = i;
	return at;
}

/* Names what the node waited for. */
static const char *waited_for(const struct map *m, int32_t rank)
{
	const struct cop_jobdata_node *n = cop_page_find(m->j, rank);

	if (!n || isnan(n->wait_parent_ms + n->wait_origin_ms))
		return " for other nodes and the storage";
	return n->wait_parent_ms >= n->wait_origin_ms * 9   ? " for its parent"
	       : n->wait_origin_ms >= n->wait_parent_ms * 9 ? " for the storage"
							    : " for its parent and the storage";
}

static void make_title(const struct map *m, const char *what, const char *none, cop_html_show *show,
	char title[320])
{
	double sum;
	const struct cop_jobdata_series *most = highest_series(m, &sum);
	char node[PAGE_LABEL], a[COP_HTML_NUMBER], b[COP_HTML_NUMBER], c[COP_HTML_NUMBER],
		d[COP_HTML_NUMBER];
	unsigned at;

	if (!most) {
		snprintf(title, 320, "%s", none);
		return;
	}
	at = peak(m, most);
	cop_page_node(most->rank, most->host, node);
	*node = 'N';
	snprintf(title, 320, "%s %s: %s%s; the most was at %s: %s in %s", node, what,
		show(sum * m->scale, a),
		m->column == COP_JOBDATA_WAIT_MS ? waited_for(m, most->rank) : "",
		cop_html_time(at * m->j->interval_s, b),
		show((double)most->value[m->column][at] * m->scale, c),
		cop_html_time(m->j->interval_s, d));
}

static void draw_map(const struct cop_jobdata *j, enum cop_jobdata_column column, double scale,
	const char *what, const char *none, cop_html_show *show, struct cop_buf *out)
{
	struct map m = {.j = j, .column = column, .scale = scale};
	char title[320];

	choose_rows(&m);
	make_title(&m, what, none, show, title);
	cop_chart_heat(out, &(struct cop_chart_heat){.title = title,
				    .rows_are = "node",
				    .rows = m.rows,
				    .cols = j->steps,
				    .interval_s = j->interval_s,
				    .show = show,
				    .name = name,
				    .value = value,
				    .arg = &m});
	free(m.made);
}

void cop_page_when(const struct cop_page *p, struct cop_buf *out)
{
	const struct cop_jobdata *j = p->job;
	char a[COP_HTML_NUMBER];

	if (!j->series_n || !j->steps) {
		cop_page_no_telemetry(out, p, "What each node did when");
		return;
	}
	cop_page_partial(out, p);
	cop_page_say(out,
		"Each field is %s of one node%s. Point at a field for its number. Waiting is added up over requests that wait at the same time.",
		cop_html_time(j->interval_s, a),
		j->series_n > PAGE_NODES_DRAWN || j->series[0]->rank < 0
			? "; of the many nodes, those that stand out have a row, and of all together there are the lowest, the middle and the highest value"
			: "");
	draw_map(j, COP_JOBDATA_REQUESTS, 1, "made the most requests", "No program made a request",
		cop_html_count, out);
	draw_map(j, COP_JOBDATA_READ_BYTES, 1, "read the most", "No program read anything",
		cop_html_size, out);
	draw_map(j, COP_JOBDATA_WAIT_MS, 1e-3, "waited longest", "No request had to wait",
		cop_html_time, out);
}
