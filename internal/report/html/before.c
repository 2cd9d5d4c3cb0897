/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <time.h>

#include "report/html/html_priv.h"

#define LISTED 60

static double last(const struct cop_runrec *r, const char *key)
{
	const struct cop_runrec_series *s = cop_runrec_find(r, key);

	return s && s->n ? s->point[s->n - 1].value : NAN;
}

static double seconds(const struct cop_runrec *r)
{
	return fmax(0, (r->end_s > 0 ? r->end_s : r->seen_s) - r->start_s);
}

static cop_html_show *show_of(const char *key)
{
	return strstr(key, "bytes")     ? cop_html_size
	       : strstr(key, "seconds") ? cop_html_time
					: cop_html_count;
}

static void metric(struct cop_buf *out, const char *key, double was, double is)
{
	char text[COP_HTML_NUMBER] = "-";

	cop_html_row(out);
	cop_html_cell(out, key);
	cop_html_cell_number(out, show_of(key), was);
	cop_html_cell_number(out, show_of(key), is);
	if (was > 0 && isfinite(is))
		snprintf(text, sizeof(text), "%.2f", is / was);
	cop_buf_str(out, "<td class=\"n\">");
	cop_html_text(out, text);
	cop_buf_str(out, "</td>");
	cop_html_row_end(out);
}

static void metrics(const struct cop_page *p, struct cop_buf *out)
{
	static const struct cop_html_col col[] = {
		{"measured", false}, {"before", true}, {"this run", true}, {"ratio", true}};
	unsigned n = 0;

	cop_html_table(out, "Both runs", col, COP_ARRAY_SIZE(col));
	metric(out, "seconds", seconds(p->before), seconds(p->run));
	for (size_t i = 0; i < p->run->series_n && n < LISTED; i++) {
		const char *key = p->run->series[i].key;
		double was = last(p->before, key), is = last(p->run, key);

		if (strncmp(key, "operation.", 10) == 0 || isnan(was) || isnan(is) ||
			(was == 0 && is == 0))
			continue;
		metric(out, key, was, is);
		n++;
	}
	cop_html_table_end(out);
}

/* Whether a parameter differs, except for those that always do. */
static bool differs(const struct cop_page *p, const char *key, const char *value)
{
	const char *was = cop_runrec_value(p->before, COP_RUNREC_PARAM, key);

	return strcmp(key, "job-dir") != 0 && strcmp(key, "mountpoint") != 0 &&
	       (!was || strcmp(was, value) != 0);
}

static void params(const struct cop_page *p, struct cop_buf *out)
{
	static const struct cop_html_col col[] = {
		{"option", false}, {"before", false}, {"this run", false}};
	const struct cop_runrec_pairs *now = &p->run->list[COP_RUNREC_PARAM];
	unsigned n = 0;

	for (size_t i = 0; i < now->n; i++) {
		const char *key = now->at[i].key, *value = now->at[i].value;
		const char *was = cop_runrec_value(p->before, COP_RUNREC_PARAM, key);

		if (!differs(p, key, value) || n >= LISTED)
			continue;
		if (!n++)
			cop_html_table(out, "Options that differ", col, COP_ARRAY_SIZE(col));
		cop_html_row(out);
		cop_html_cell(out, key);
		cop_html_cell(out, was ? was : "-");
		cop_html_cell(out, value);
		cop_html_row_end(out);
	}
	if (n)
		cop_html_table_end(out);
}

void cop_page_before(const struct cop_page *p, struct cop_buf *out)
{
	char a[COP_HTML_NUMBER], b[COP_HTML_NUMBER], when[32] = "";
	time_t t;
	struct tm tm;

	if (!p->store) {
		cop_page_missing(out,
			"There is nothing to compare with: give copper mount and copper report --store FILE, or set $COPPER_STORE");
		return;
	}
	if (!p->run || !p->before) {
		cop_page_missing(out, "%s in the run store %s",
			p->run ? "There is no earlier run of this source" : "This job is not",
			p->store);
		return;
	}
	t = (time_t)p->before->start_s;
	if (localtime_r(&t, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
	cop_page_say(out,
		"Run %.8s of %s on %u nodes took %s; this one, %.8s, took %s on %u nodes.",
		p->before->id, when, p->before->nodes, cop_html_time(seconds(p->before), a),
		p->run->id, cop_html_time(seconds(p->run), b), p->run->nodes);
	params(p, out);
	metrics(p, out);
}
