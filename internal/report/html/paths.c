/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/html/html_priv.h"

#define LISTED 20 /* paths per category */

/* ---- classes ---- */

struct classes {
	const struct cop_pathclass_totals *t;
	unsigned row[COP_PATHCLASSES], n;
};

static const char *class_name(const void *arg, unsigned row)
{
	const struct classes *c = arg;

	return cop_pathclass_name(c->row[row]);
}

static double class_events(const void *arg, unsigned row, unsigned part)
{
	const struct classes *c = arg;

	(void)part;
	return (double)c->t->of[c->row[row]].events;
}

/* Most events first; there are few classes. */
static void sort_classes(struct classes *c)
{
	for (unsigned i = 0; i < COP_PATHCLASSES; i++) {
		unsigned to = c->n;

		if (!c->t->of[i].entries)
			continue;
		for (; to > 0 && c->t->of[c->row[to - 1]].events < c->t->of[i].events; to--)
			c->row[to] = c->row[to - 1];
		c->row[to] = i;
		c->n++;
	}
}

static void draw_classes(const struct cop_jobdata *j, struct cop_buf *out)
{
	struct classes c = {.t = &j->classes};
	char title[256], a[COP_HTML_NUMBER];

	sort_classes(&c);
	if (!c.n)
		return;
	snprintf(title, sizeof(title), "%s was used most of the kinds of paths: %s requests",
		cop_pathclass_name(c.row[0]),
		cop_html_count((double)j->classes.of[c.row[0]].events, a));
	cop_chart_bars(out, &(struct cop_chart_bars){.title = title,
				    .rows_are = "kind of path",
				    .rows = c.n,
				    .parts = 1,
				    .part = {"requests"},
				    .show = cop_html_count,
				    .name = class_name,
				    .value = class_events,
				    .arg = &c});
}

/* ---- paths ---- */

static size_t list(const struct cop_jobdata *j, enum cop_jobdata_category c, const char *caption,
	struct cop_buf *out)
{
	static const struct cop_html_col col[] = {
		{"path", false}, {"requests", true}, {"fetched", true}};
	size_t first = 0, n = 0;

	while (first < j->paths && j->path[first].category != c)
		first++;
	if (first == j->paths)
		return 0;
	cop_html_table(out, caption, col, COP_ARRAY_SIZE(col));
	for (size_t i = first; i < j->paths && j->path[i].category == c && n < LISTED; i++, n++) {
		cop_html_row(out);
		cop_html_cell_path(out, j->path[i].text, j->path[i].len);
		cop_html_cell_number(out, cop_html_count, (double)j->path[i].events);
		cop_html_cell_number(out, cop_html_count, (double)j->path[i].misses);
		cop_html_row_end(out);
	}
	cop_html_table_end(out);
	return n;
}

void cop_page_paths(const struct cop_page *p, struct cop_buf *out)
{
	static const struct {
		const char *heading, *caption;
	} kinds[COP_JOBDATA_CATEGORIES] = {
		[COP_JOBDATA_METADATA] = {"Looked up", "Names and attributes, most requests first"},
		[COP_JOBDATA_DATA] = {"Read", "Contents of files, most requests first"},
		[COP_JOBDATA_TREE] = {"Listed", "Directories, most requests first"},
		[COP_JOBDATA_ABSENT] = {"Asked for and absent",
			"Names that do not exist, most requests first"},
	};
	static const enum cop_jobdata_category order[] = {
		COP_JOBDATA_DATA, COP_JOBDATA_METADATA, COP_JOBDATA_TREE, COP_JOBDATA_ABSENT};

	if (!p->job->paths) {
		cop_page_missing(out,
			"Which paths were used most was not counted: start the job with copper mount -N 50");
		return;
	}
	draw_classes(p->job, out);
	for (unsigned i = 0; i < COP_ARRAY_SIZE(order); i++) {
		cop_buf_printf(out, "<details%s><summary>%s</summary>\n", i ? "" : " open",
			kinds[order[i]].heading);
		if (!list(p->job, order[i], kinds[order[i]].caption, out))
			cop_page_say(out, "None.");
		cop_buf_str(out, "</details>\n");
	}
	if (p->job->paths_cut)
		cop_page_missing(out,
			"There were too many different paths to add up all: copper stop writes exact sums");
}
