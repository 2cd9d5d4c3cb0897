/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "report/html/html_priv.h"

static const char *unused_name(const void *arg, unsigned row)
{
	const struct cop_jobdata *j = arg;

	return j->unused[row].directory;
}

static double unused_bytes(const void *arg, unsigned row, unsigned part)
{
	const struct cop_jobdata *j = arg;

	(void)part;
	return j->unused[row].bytes;
}

static void draw_unused(const struct cop_jobdata *j, struct cop_buf *out)
{
	char title[512], a[COP_HTML_NUMBER];

	if (!j->unused_n)
		return;
	snprintf(title, sizeof(title),
		"The largest directory that nothing used needs has %s: %.300s",
		cop_html_size(j->unused[0].bytes, a), j->unused[0].directory);
	cop_chart_bars(out, &(struct cop_chart_bars){.title = title,
				    .rows_are = "directory",
				    .rows = (unsigned)j->unused_n,
				    .parts = 1,
				    .part = {"bytes"},
				    .show = cop_html_size,
				    .name = unused_name,
				    .value = unused_bytes,
				    .arg = j});
}

static void say_use(const struct cop_jobdata *j, struct cop_buf *out)
{
	double all = cop_jobdata_value(&j->use, "All existing paths under selected roots");
	double used = cop_jobdata_value(&j->use, "Observed existing paths under selected roots");
	double absent =
		cop_jobdata_value(&j->use, "Observed missing probe paths under selected roots");
	double keep = cop_jobdata_value(&j->use, "Kept bytes");
	double go = cop_jobdata_value(&j->use, "Prune candidate bytes");
	char a[COP_HTML_NUMBER], b[COP_HTML_NUMBER], c[COP_HTML_NUMBER], d[COP_HTML_NUMBER];

	cop_buf_str(out, "<p class=\"good\">");
	cop_html_printf(out, "The job used %s of %s paths (%s) of its environment",
		cop_html_count(used, a), cop_html_count(all, b), cop_html_share(used, all, c));
	if (keep >= 0 && go >= 0)
		cop_html_printf(out, "; what it needs has %s, and %s could go",
			cop_html_size(keep, a), cop_html_size(go, b));
	cop_html_printf(
		out, ". It asked for %s names that do not exist.", cop_html_count(absent, d));
	cop_buf_str(out, "</p>\n");
}

void cop_page_environment(const struct cop_page *p, struct cop_buf *out)
{
	const struct cop_jobdata *j = p->job;

	if (!j->has_use || !j->use.n) {
		if (j->has_tables)
			cop_page_missing(out,
				"The job recorded every path that it used; copper paths %s compares them with what exists, and this page then shows it",
				j->dir);
		else
			cop_page_missing(out,
				"What of the environment was used was not recorded: start the job with copper mount -A, and run copper paths on its directory afterwards");
		return;
	}
	say_use(j, out);
	draw_unused(j, out);
	cop_page_say(out,
		"This proves nothing about deleting: another run may need what this one did not. The lists are in %s/paths_dir.",
		j->dir);
}
