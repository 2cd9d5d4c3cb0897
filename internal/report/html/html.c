/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/html/html_priv.h"

/* Earlier versions of Copper wrote no warnings. */
static bool has_warnings(const struct cop_page *p)
{
	return p->job->has_warnings;
}

static void write_warnings(const struct cop_page *p, struct cop_buf *out)
{
	const struct cop_jobdata *j = p->job;

	if (!j->warnings)
		cop_buf_str(out, "<p class=\"good\">Nothing: the job went well.</p>\n");
	for (size_t i = 0; i < j->warnings; i++) {
		cop_buf_str(out, "<p class=\"warning\">");
		if (*j->warning[i].option) {
			cop_buf_str(out, "<strong><code>");
			cop_html_text(out, j->warning[i].option);
			cop_buf_str(out, "</code></strong> ");
		}
		cop_html_text(out, j->warning[i].sentence);
		cop_buf_str(out, "</p>\n");
	}
}

static const struct {
	const char *id, *title;
	cop_page_section *write;
	bool (*applies)(const struct cop_page *p); /* NULL: always */
} sections[] = {
	{"job", "The job", cop_page_job, NULL},
	{"warnings", "What would help", write_warnings, has_warnings},
	{"when", "What happened when", cop_page_when, NULL},
	{"spans", "What the program did when", cop_page_spans, cop_page_has_spans},
	{"operations", "Requests of programs", cop_page_operations, NULL},
	{"from", "Where the bytes came from", cop_page_from, cop_page_has_from},
	{"tree", "Who read from whom", cop_page_tree, NULL},
	{"paths", "Most used paths", cop_page_paths, NULL},
	{"environment", "What was used, and what can go", cop_page_environment, NULL},
	{"memory", "Memory", cop_page_memory, NULL},
	{"start", "The start", cop_page_start, NULL},
	{"events", "Events", cop_page_events, NULL},
	{"program", "What the program recorded", cop_page_curves, cop_page_has_curves},
	{"before", "The run before", cop_page_before, NULL},
};

static const char *job_name(const struct cop_page *p)
{
	const char *slash = strrchr(p->job->dir, '/');

	if (p->run && *cop_runrec_get(p->run, COP_RUNREC_NAME))
		return cop_runrec_get(p->run, COP_RUNREC_NAME);
	return slash && slash[1] ? slash + 1 : p->job->dir;
}

/* Puts a prefix before a bare job number, which says little as a title. */
static void write_name(const struct cop_page *p, struct cop_buf *out)
{
	const char *name = job_name(p);

	if (name[strspn(name, "0123456789._-")] == '\0')
		cop_buf_str(out, "Job ");
	cop_html_text(out, name);
}

static void write_head(const struct cop_page *p, struct cop_buf *out)
{
	cop_buf_str(out,
		"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n"
		"<link rel=\"icon\" href=\"data:,\">\n<title>");
	write_name(p, out);
	cop_buf_str(out, " - Copper</title>\n<style>\n");
	cop_buf_str(out, cop_page_css);
	cop_buf_str(out, "</style>\n</head>\n");
}

static bool applies(const struct cop_page *p, size_t i)
{
	return !sections[i].applies || sections[i].applies(p);
}

static void write_nav(const struct cop_page *p, struct cop_buf *out)
{
	cop_buf_str(out, "<nav aria-label=\"Sections\"><ul>\n");
	for (size_t i = 0; i < COP_ARRAY_SIZE(sections); i++)
		if (applies(p, i))
			cop_buf_printf(out, "<li><a href=\"#%s\">%s</a></li>\n", sections[i].id,
				sections[i].title);
	cop_buf_str(out, "</ul></nav>\n");
}

static void write_header(const struct cop_page *p, struct cop_buf *out)
{
	const struct cop_jobdata *j = p->job;
	char n[COP_HTML_NUMBER];

	cop_buf_str(out, "<body>\n<a class=\"skip\" href=\"#main\">To the contents</a>\n"
			 "<header>\n<p class=\"kind\">Copper job</p>\n<h1>");
	write_name(p, out);
	cop_buf_str(out, "</h1>\n<p class=\"lead\">");
	if (j->nodes || j->ranks)
		cop_html_printf(out, "%s node%s", cop_html_count(j->nodes ? j->nodes : j->ranks, n),
			(j->nodes ? j->nodes : j->ranks) == 1 ? "" : "s");
	if (j->source)
		cop_html_printf(out, "%s%s", j->nodes || j->ranks ? " served " : "The source was ",
			j->source);
	if (j->began)
		cop_html_printf(out, ", started %.10s %.2s:%.2s:%.2s", j->began, j->began + 11,
			j->began + 14, j->began + 17);
	cop_buf_str(out, "</p>\n");
	write_nav(p, out);
	cop_buf_str(out, "</header>\n");
}

static void write_section(const struct cop_page *p, size_t i, struct cop_buf *out)
{
	const char *id = sections[i].id;

	cop_buf_printf(out,
		"<section id=\"%s\" aria-labelledby=\"%s-h\">\n<h2 id=\"%s-h\">%s</h2>\n", id, id,
		id, sections[i].title);
	sections[i].write(p, out);
	cop_buf_str(out, "</section>\n");
}

int cop_page_write(const struct cop_page *p, struct cop_buf *out)
{
	write_head(p, out);
	write_header(p, out);
	cop_buf_str(out, "<main id=\"main\">\n");
	for (size_t i = 0; i < COP_ARRAY_SIZE(sections); i++)
		if (applies(p, i))
			write_section(p, i, out);
	cop_buf_str(out, "</main>\n<footer><p>Written by copper report ");
	cop_html_text(out, cop_version);
	cop_buf_str(out, " from <code>");
	cop_html_text(out, p->job->dir);
	cop_buf_str(out, "</code></p></footer>\n</body>\n</html>\n");
	return out->failed ? -ENOMEM : 0;
}
