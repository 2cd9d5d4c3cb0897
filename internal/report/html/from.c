/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "report/html/html_priv.h"

#define AT(field) offsetof(struct cop_jobdata_node, field)
static const struct {
	const char *name;
	size_t offset;
} places[] = {{"memory of the node itself", AT(from_own_bytes)},
	{"memory of another node", AT(from_nodes_bytes)},
	{"another node, which had to fetch them", AT(from_passed_bytes)},
	{"disk of the node", AT(from_disk_bytes)}, {"pack of the job before", AT(from_pack_bytes)},
	{"storage", AT(from_storage_bytes)}};

/* The sum over the nodes that have rows. */
static double sum_of(const struct cop_jobdata *j, size_t offset)
{
	double sum = 0;

	for (size_t i = 0; i < j->node_n; i++)
		if (j->node[i].rank >= 0)
			sum += fmax(0, *(const double *)(const void *)((const char *)&j->node[i] +
								       offset));
	return sum;
}

static double sum_of_all(const struct cop_jobdata *j)
{
	double all = 0;

	for (size_t i = 0; i < COP_ARRAY_SIZE(places); i++)
		all += sum_of(j, places[i].offset);
	return all;
}

/* Earlier versions of Copper did not count them. */
bool cop_page_has_from(const struct cop_page *p)
{
	return p->job->node_n && sum_of_all(p->job) > 0;
}

void cop_page_from(const struct cop_page *p, struct cop_buf *out)
{
	static const struct cop_html_col col[] = {
		{"place", false}, {"bytes", true}, {"share", true}};
	double all = sum_of_all(p->job);
	char a[COP_HTML_NUMBER], b[COP_HTML_NUMBER];

	cop_page_partial(out, p);
	cop_page_say(out,
		"The kernels of the nodes got %s, of these %s before programs asked. What a kernel has it gives to programs by itself, and no node sees that.",
		cop_html_size(all, a), cop_html_size(sum_of(p->job, AT(ahead_bytes)), b));
	cop_html_table(
		out, "Bytes of files by where the kernel got them from", col, COP_ARRAY_SIZE(col));
	for (size_t i = 0; i < COP_ARRAY_SIZE(places); i++) {
		double bytes = sum_of(p->job, places[i].offset);

		cop_html_row(out);
		cop_html_cell(out, places[i].name);
		cop_html_cell_number(out, cop_html_size, bytes);
		cop_html_cell(out, cop_html_share(bytes, all, a));
		cop_html_row_end(out);
	}
	cop_html_table_end(out);
}
