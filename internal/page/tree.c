/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "page/page_priv.h"

struct tree {
	const struct cop_jobdata *j;
	char text[512];
};

/* The bytes that a node received over the edge to its parent, or a root from the storage. */
static double weight(const void *arg, unsigned i)
{
	const struct cop_jobdata_node *n = &((const struct tree *)arg)->j->node[i];

	return n->parent >= 0 ? n->parent_bytes : n->origin_bytes;
}

static const char *label(const void *arg, unsigned i)
{
	struct tree *t = (struct tree *)arg;

	snprintf(t->text, sizeof(t->text), "%d", t->j->node[i].rank);
	return t->text;
}

static const char *tooltip(const void *arg, unsigned i)
{
	struct tree *t = (struct tree *)arg;
	const struct cop_jobdata_node *n = &t->j->node[i];
	char node[PAGE_LABEL], a[COP_HTML_NUMBER], b[COP_HTML_NUMBER], c[COP_HTML_NUMBER];

	cop_page_node(n->rank, n->host, node);
	snprintf(t->text, sizeof(t->text), "%s: %s from other nodes, %s from the storage, sent %s",
		node, cop_html_size(n->parent_bytes, a), cop_html_size(n->origin_bytes, b),
		cop_html_size(n->sent_bytes, c));
	return t->text;
}

static int by_rank(const void *key, const void *node)
{
	int32_t x = *(const int32_t *)key, y = ((const struct cop_jobdata_node *)node)->rank;

	return (x > y) - (x < y);
}

/* Rows are in order of rank. */
static int32_t *find_parents(const struct cop_jobdata *j)
{
	int32_t *parent = calloc(j->node_n, sizeof(*parent));

	for (size_t i = 0; parent && i < j->node_n; i++) {
		const struct cop_jobdata_node *at =
			j->node[i].parent < 0 ? NULL
					      : bsearch(&j->node[i].parent, j->node, j->node_n,
							sizeof(*j->node), by_rank);

		parent[i] = at ? (int32_t)(at - j->node) : -1;
	}
	return parent;
}

/* The node with the highest number at offset; NULL if all are 0. */
static const struct cop_jobdata_node *highest_node(const struct cop_jobdata *j, size_t offset)
{
	const struct cop_jobdata_node *most = NULL;
	double best = 0;

	for (size_t i = 0; i < j->node_n; i++) {
		double v = *(const double *)(const void *)((const char *)&j->node[i] + offset);

		if (j->node[i].rank >= 0 && v > best) {
			best = v;
			most = &j->node[i];
		}
	}
	return most;
}

static void make_title(const struct cop_jobdata *j, char title[400])
{
	const struct cop_jobdata_node *reads =
		highest_node(j, offsetof(struct cop_jobdata_node, origin_bytes));
	const struct cop_jobdata_node *sends =
		highest_node(j, offsetof(struct cop_jobdata_node, sent_bytes));
	char a[PAGE_LABEL] = "", b[PAGE_LABEL] = "", x[COP_HTML_NUMBER], y[COP_HTML_NUMBER];
	int n = 0;

	if (reads)
		cop_page_node(reads->rank, reads->host, a);
	if (sends)
		cop_page_node(sends->rank, sends->host, b);
	*a = *a ? 'N' : '\0';
	if (reads)
		n = snprintf(title, 400, "%s read most from the storage: %s", a,
			cop_html_size(reads->origin_bytes, x));
	else
		n = snprintf(title, 400, "No node read bytes from the storage");
	if (sends && sends == reads)
		snprintf(title + n, 400 - (size_t)n, ", and sent most to others: %s",
			cop_html_size(sends->sent_bytes, y));
	else if (sends)
		snprintf(title + n, 400 - (size_t)n, "; %s sent most to others: %s", b,
			cop_html_size(sends->sent_bytes, y));
}

static void draw(const struct cop_jobdata *j, struct cop_buf *out)
{
	struct tree t = {.j = j};
	int32_t *parent = find_parents(j);
	char title[400];

	make_title(j, title);
	if (!parent)
		out->failed = true;
	else
		cop_chart_tree(out, &(struct cop_chart_tree){.title = title,
					    .n = (unsigned)j->node_n,
					    .parent = parent,
					    .top = "storage",
					    .show = cop_html_size,
					    .weight = weight,
					    .label = label,
					    .tooltip = tooltip,
					    .arg = &t});
	free(parent);
}

static void node_row(const struct cop_jobdata_node *n, struct cop_buf *out)
{
	char text[PAGE_LABEL];

	cop_page_label(n->rank, n->host, text);
	cop_html_row(out);
	cop_html_cell(out, text);
	if (n->parent >= 0)
		snprintf(text, sizeof(text), "%d", n->parent);
	else
		snprintf(text, sizeof(text), "%s", n->parent == -1 ? "storage" : "");
	cop_html_cell(out, text);
	cop_html_cell_number(out, cop_html_count, n->requests);
	cop_html_cell_number(out, cop_html_size, n->read_bytes);
	cop_html_cell_number(out, cop_html_size, n->parent_bytes);
	cop_html_cell_number(out, cop_html_size, n->sent_bytes);
	cop_html_cell_number(out, cop_html_count, n->origin_operations);
	cop_html_cell_number(out, cop_html_size, n->origin_bytes);
	cop_html_cell_number(out, cop_html_time, n->wait_parent_ms * 1e-3);
	cop_html_cell_number(out, cop_html_time, n->wait_origin_ms * 1e-3);
	cop_html_cell_number(out, cop_html_count, n->failovers);
	cop_html_cell_number(out, cop_html_time, n->cpu_ms * 1e-3);
	cop_html_row_end(out);
}

/* The numbers for which a node gets a row: bytes that it moved, and seconds that it waited. */
static double weight_of(const struct cop_jobdata_node *n)
{
	return fmax(0, n->sent_bytes) + fmax(0, n->origin_bytes) +
	       1e4 * fmax(0, n->wait_parent_ms + n->wait_origin_ms) + 1e12 * fmax(0, n->failovers);
}

static int most_first(const void *a, const void *b)
{
	const struct cop_jobdata_node *x = *(const struct cop_jobdata_node *const *)a;
	const struct cop_jobdata_node *y = *(const struct cop_jobdata_node *const *)b;

	if ((x->rank < 0) != (y->rank < 0))
		return x->rank < 0 ? -1 : 1;
	if (x->rank >= 0 && weight_of(x) != weight_of(y))
		return weight_of(x) < weight_of(y) ? 1 : -1;
	return x->rank < 0 ? (x->rank < y->rank) - (x->rank > y->rank)
			   : (x->rank > y->rank) - (x->rank < y->rank);
}

static void table(const struct cop_jobdata *j, struct cop_buf *out)
{
	static const struct cop_html_col col[] = {{"node", false}, {"parent", false},
		{"requests", true}, {"read by programs", true}, {"from nodes", true},
		{"sent", true}, {"storage operations", true}, {"from storage", true},
		{"waited for parent", true}, {"for storage", true}, {"failovers", true},
		{"processor", true}};
	const struct cop_jobdata_node **at = calloc(j->node_n, sizeof(*at));
	size_t shown = COP_MIN(j->node_n, (size_t)PAGE_NODES_LISTED);

	if (!at) {
		out->failed = true;
		return;
	}
	for (size_t i = 0; i < j->node_n; i++)
		at[i] = &j->node[i];
	if (shown < j->node_n)
		qsort(at, j->node_n, sizeof(*at), most_first);
	cop_buf_printf(out, "<details%s><summary>The numbers</summary>\n",
		j->node[0].rank < 0 ? " open" : "");
	cop_html_table(out,
		shown < j->node_n || j->node[0].rank < 0 ? "The nodes that stand out" : "All nodes",
		col, COP_ARRAY_SIZE(col));
	for (size_t i = 0; i < shown; i++)
		node_row(at[i], out);
	cop_html_table_end(out);
	cop_buf_str(out, "</details>\n");
	free(at);
}

static void say_sums(const struct cop_page *p, struct cop_buf *out)
{
	double in = cop_jobdata_value(&p->job->fabric, "fabric_bytes_in");
	double storage = cop_jobdata_value(&p->job->fabric, "origin_bytes");
	char a[COP_HTML_NUMBER], b[COP_HTML_NUMBER];

	if (in >= 0 && storage >= 0)
		cop_page_say(out,
			"All nodes together received %s from each other, and read %s from the storage.",
			cop_html_size(in, a), cop_html_size(storage, b));
}

void cop_page_tree(const struct cop_page *p, struct cop_buf *out)
{
	const struct cop_jobdata *j = p->job;
	char a[COP_HTML_NUMBER];

	say_sums(p, out);
	if (!j->node_n) {
		cop_page_no_telemetry(out, p, "Which node read how much from which");
		return;
	}
	cop_page_partial(out, p);
	if (j->node[0].rank >= 0)
		draw(j, out);
	else
		cop_page_missing(out,
			"The tree of %s nodes is not drawn: of so many, the job kept only the rows of those that stand out, and the lowest, middle and highest values",
			cop_html_count(j->nodes, a));
	if (j->node_n > COP_CHART_TREE_DRAWN && j->node[0].rank >= 0)
		cop_page_say(out,
			"A number below a node says how many nodes it has below that are not drawn.");
	if (j->trees > 1)
		cop_page_say(out,
			"The job used %u trees over the same nodes; the first is drawn, the bytes are those of all.",
			j->trees);
	table(j, out);
}
