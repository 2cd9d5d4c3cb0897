/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the sections: paragraphs, and names and numbers of nodes. */
#include "report/html/html_priv.h"

#include <math.h>
#include <stdarg.h>

static void paragraph(struct cop_buf *out, const char *class, const char *fmt, va_list ap)
{
	char *text;

	if (vasprintf(&text, fmt, ap) < 0) {
		out->failed = true;
		return;
	}
	cop_buf_printf(out, *class ? "<p class=\"%s\">" : "<p>", class);
	cop_html_text(out, text);
	cop_buf_str(out, *text && text[strlen(text) - 1] != '.' ? ".</p>\n" : "</p>\n");
	free(text);
}

void cop_page_missing(struct cop_buf *out, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	paragraph(out, "missing", fmt, ap);
	va_end(ap);
}

void cop_page_say(struct cop_buf *out, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	paragraph(out, "", fmt, ap);
	va_end(ap);
}

static const char *statistic(int32_t rank)
{
	return rank == COP_JOBDATA_MIN      ? "minimum"
	       : rank == COP_JOBDATA_MEDIAN ? "median"
					    : "maximum";
}

/* Truncates a host name to the size of a label. */
void cop_page_label(int32_t rank, const char *host, char out[PAGE_LABEL])
{
	if (rank < 0)
		snprintf(out, PAGE_LABEL, "%s", statistic(rank));
	else
		snprintf(out, PAGE_LABEL, "%d %.56s", rank, host);
}

void cop_page_node(int32_t rank, const char *host, char out[PAGE_LABEL])
{
	if (*host)
		snprintf(out, PAGE_LABEL, "node %d (%.50s)", rank, host);
	else
		snprintf(out, PAGE_LABEL, "node %d", rank);
}

const struct cop_jobdata_node *cop_page_find(const struct cop_jobdata *j, int32_t rank)
{
	for (size_t i = 0; i < j->node_n; i++)
		if (j->node[i].rank == rank)
			return &j->node[i];
	return NULL;
}

double cop_page_sum(const struct cop_jobdata *j, size_t offset)
{
	double sum = 0;

	if (!j->node_n || j->node[0].rank < 0 || j->node_n < j->nodes)
		return NAN;
	for (size_t i = 0; i < j->node_n; i++)
		sum += *(const double *)(const void *)((const char *)&j->node[i] + offset);
	return sum;
}

void cop_page_no_telemetry(struct cop_buf *out, const struct cop_page *p, const char *what)
{
	const struct cop_jobdata *j = p->job;

	if (j->state && strcmp(j->state, "running") == 0)
		cop_page_missing(out,
			"%s is not known yet: the nodes write it when the job ends, with copper stop",
			what);
	else
		cop_page_missing(out,
			"%s is not known: no %s in profiling/cluster, which a job with copper mount -d JOBDIR that ends with copper stop writes",
			what,
			j->telemetry ? "complete telemetry"
				     : "cluster_telemetry.csv and cluster_nodes.csv");
}

/* During a job, only its first node writes its own telemetry. */
void cop_page_partial(struct cop_buf *out, const struct cop_page *p)
{
	const struct cop_jobdata *j = p->job;

	if (j->node_n && j->node[0].rank >= 0 && j->node_n < j->nodes)
		cop_page_missing(out, "This is what %zu of the %u nodes said: %s", j->node_n,
			j->nodes,
			j->from == COP_JOBDATA_SNAPSHOT
				? "the others do when the job ends, with copper stop"
				: "the others did not answer when the job ended");
}
