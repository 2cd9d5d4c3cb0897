/* SPDX-License-Identifier: BSD-3-Clause */
/* Draws the phases of the startup. In some phases a node only waits for others, so nodes are sorted
 * by the remaining phases, in which they kept others waiting. */
#include <math.h>

#include "report/html/html_priv.h"

#define DRAWN 20

struct start {
	const struct cop_jobdata *j;
	const struct cop_jobdata_node *row[DRAWN];
	char label[DRAWN][PAGE_LABEL];
	unsigned rows;
};

static bool is_waiting(const char *phase)
{
	return strcmp(phase, "barrier") == 0 || strcmp(phase, "tell") == 0;
}

static double own_seconds(const struct cop_jobdata *j, const struct cop_jobdata_node *n)
{
	double sum = isnan(n->start_s) ? 0 : fmax(0, n->start_s);

	for (unsigned i = 0; i < j->phases; i++)
		if (!is_waiting(j->phase[i]) && !isnan(n->phase_s[i]))
			sum += n->phase_s[i];
	return sum;
}

/* Statistics first, then the slowest nodes. */
static void choose_nodes(struct start *s)
{
	const struct cop_jobdata *j = s->j;
	unsigned first;

	for (size_t i = 0; i < j->node_n && j->node[i].rank < 0 && s->rows < 3; i++)
		s->row[s->rows++] = &j->node[i];
	first = s->rows;
	for (size_t i = 0; i < j->node_n; i++) {
		const struct cop_jobdata_node *n = &j->node[i];
		unsigned to = s->rows;

		if (n->rank < 0)
			continue;
		for (; to > first && own_seconds(j, s->row[to - 1]) < own_seconds(j, n); to--)
			if (to < DRAWN)
				s->row[to] = s->row[to - 1];
		if (to < DRAWN)
			s->row[to] = n;
		s->rows = COP_MIN(s->rows + 1, DRAWN);
	}
	for (unsigned i = 0; i < s->rows; i++)
		cop_page_label(s->row[i]->rank, s->row[i]->host, s->label[i]);
}

static const char *name(const void *arg, unsigned row)
{
	return ((const struct start *)arg)->label[row];
}

/* The first part is the time before the node started. */
static double value(const void *arg, unsigned row, unsigned part)
{
	const struct cop_jobdata_node *n = ((const struct start *)arg)->row[row];

	return part ? n->phase_s[part - 1] : fmax(0, n->start_s);
}

static void make_title(const struct start *s, char title[400])
{
	const struct cop_jobdata *j = s->j;
	const struct cop_jobdata_node *slow = NULL;
	char node[PAGE_LABEL], a[COP_HTML_NUMBER], b[COP_HTML_NUMBER];
	unsigned longest = 0;
	bool any = false;

	for (unsigned i = 0; i < s->rows && !slow; i++)
		slow = s->row[i]->rank >= 0 ? s->row[i] : NULL;
	if (!slow) {
		snprintf(title, 400, "How long the phases of the start took");
		return;
	}
	for (unsigned i = 0; i < j->phases; i++) {
		if (is_waiting(j->phase[i]) || isnan(slow->phase_s[i]))
			continue;
		if (!any || slow->phase_s[i] > slow->phase_s[longest])
			longest = i;
		any = true;
	}
	cop_page_node(slow->rank, slow->host, node);
	*node = 'N';
	snprintf(title, 400, "%s was the slowest to start by itself: after %s, with %s for %.40s",
		node, cop_html_time(own_seconds(j, slow), a),
		cop_html_time(any ? slow->phase_s[longest] : NAN, b),
		any ? j->phase[longest] : "it");
}

static double last_ready(const struct cop_jobdata *j)
{
	double last = NAN;

	for (size_t i = 0; i < j->node_n; i++)
		last = fmax(last, j->node[i].ready_s);
	return last;
}

void cop_page_start(const struct cop_page *p, struct cop_buf *out)
{
	struct start s = {.j = p->job};
	struct cop_chart_bars b;
	char title[400], a[COP_HTML_NUMBER];

	if (!p->job->node_n || !p->job->phases) {
		cop_page_no_telemetry(out, p, "How long the phases of the start took");
		return;
	}
	choose_nodes(&s);
	make_title(&s, title);
	cop_page_say(out, "The tree was ready %s after the job began.%s",
		cop_html_time(last_ready(p->job), a),
		p->job->node_n > DRAWN ? " The nodes that took longest by themselves are shown."
				       : "");
	b = (struct cop_chart_bars){.title = title,
		.rows_are = "node",
		.rows = s.rows,
		.parts = COP_MIN(p->job->phases + 1, COP_CHART_PARTS),
		.show = cop_html_time,
		.part = {"began later"},
		.name = name,
		.value = value,
		.arg = &s};
	for (unsigned i = 1; i < b.parts; i++) {
		b.part[i] = p->job->phase[i - 1];
		if (is_waiting(b.part[i]))
			b.pale |= 1u << i;
	}
	cop_chart_bars(out, &b);
}
