/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "report/html/html_priv.h"
#include "job/topo/topo.h"

#define TREE_MOST (1u << 20) /* maximum number of nodes in the layout; few of them are drawn */

/* Indices are ranks if the shape of the tree is known and some nodes have no row; otherwise they
 * are row numbers. */
struct tree {
	const struct cop_jobdata *j;
	const struct cop_jobdata_node **row; /* NULL: no row */
	int32_t *parent;
	uint32_t *first;
	unsigned n, first_n;
	char text[512];
};

/* Bytes received by a node from its parent, or by a root from the storage. */
static double weight(const void *arg, unsigned i)
{
	const struct tree *t = arg;
	const struct cop_jobdata_node *n = t->row[i];

	return !n ? NAN : t->parent[i] >= 0 || n->parent >= 0 ? n->parent_bytes : n->origin_bytes;
}

static const char *label(const void *arg, unsigned i)
{
	struct tree *t = (struct tree *)arg;

	snprintf(t->text, sizeof(t->text), "%d", t->row[i] ? t->row[i]->rank : (int)i);
	return t->text;
}

static const char *tooltip(const void *arg, unsigned i)
{
	struct tree *t = (struct tree *)arg;
	const struct cop_jobdata_node *n = t->row[i];
	char node[PAGE_LABEL], a[COP_HTML_NUMBER], b[COP_HTML_NUMBER], c[COP_HTML_NUMBER];

	if (!n) {
		snprintf(t->text, sizeof(t->text), "node %u: the job kept no row of it", i);
		return t->text;
	}
	cop_page_node(n->rank, n->host, node);
	snprintf(t->text, sizeof(t->text), "%s: %s from other nodes, %s from the storage, sent %s",
		node, cop_html_size(n->parent_bytes, a), cop_html_size(n->origin_bytes, b),
		cop_html_size(n->sent_bytes, c));
	return t->text;
}

static struct cop_topo topo_of(const struct cop_jobdata *j)
{
	return (struct cop_topo){j->nodes, j->fanout, COP_MAX(j->trees, 1u)};
}

/* Whether some nodes have no row but known positions in the tree. */
static bool has_shape(const struct cop_jobdata *j)
{
	struct cop_topo topo = topo_of(j);
	struct cop_err ignored = {0};

	return (j->node[0].rank < 0 || j->node_n < j->nodes) && j->nodes <= TREE_MOST &&
	       !cop_topo_check(&topo, &ignored);
}

static int by_rank(const void *key, const void *node)
{
	int32_t x = *(const int32_t *)key, y = ((const struct cop_jobdata_node *)node)->rank;

	return (x > y) - (x < y);
}

/* Rows are sorted by rank. */
static void place_rows(struct tree *t)
{
	const struct cop_jobdata *j = t->j;

	for (size_t i = 0; i < j->node_n; i++) {
		const struct cop_jobdata_node *at =
			j->node[i].parent < 0 ? NULL
					      : bsearch(&j->node[i].parent, j->node, j->node_n,
							sizeof(*j->node), by_rank);

		t->row[i] = &j->node[i];
		t->parent[i] = at ? (int32_t)(at - j->node) : -1;
	}
}

static void place_ranks(struct tree *t)
{
	const struct cop_jobdata *j = t->j;
	struct cop_topo topo = topo_of(j);

	for (unsigned r = 0; r < t->n; r++) {
		uint32_t parent = cop_topo_parent(&topo, 0, r);

		t->parent[r] = parent == COP_TOPO_NONE ? -1 : (int32_t)parent;
	}
	for (size_t i = 0; i < j->node_n; i++)
		if (j->node[i].rank >= 0 && (unsigned)j->node[i].rank < t->n)
			t->row[j->node[i].rank] = &j->node[i];
}

static void free_tree(struct tree *t)
{
	free(t->row);
	free(t->parent);
	free(t->first);
}

/* The values that decide whether a node gets a row: bytes transferred, and seconds waited. */
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

/* All rows, by rank, or outliers first; NULL: out of memory. */
static const struct cop_jobdata_node **order(const struct cop_jobdata *j, bool sort)
{
	const struct cop_jobdata_node **at = calloc(j->node_n, sizeof(*at));

	for (size_t i = 0; at && i < j->node_n; i++)
		at[i] = &j->node[i];
	if (at && sort)
		qsort(at, j->node_n, sizeof(*at), most_first);
	return at;
}

/* The row with the highest value at offset, possibly the maximum over all nodes; NULL if all are
 * 0. */
static const struct cop_jobdata_node *highest_node(const struct cop_jobdata *j, size_t offset)
{
	const struct cop_jobdata_node *most = NULL;
	double best = 0;

	for (size_t i = j->node_n; i-- > 0;) {
		double v = *(const double *)(const void *)((const char *)&j->node[i] + offset);

		if (v > best || (most && v == best && j->node[i].rank >= 0)) {
			best = v;
			most = &j->node[i];
		}
	}
	return most;
}
#define HIGHEST(j, field) highest_node(j, offsetof(struct cop_jobdata_node, field))

static bool list_first(struct tree *t, bool ranks)
{
	const struct cop_jobdata *j = t->j;
	const struct cop_jobdata_node **at = order(j, true),
				      *most[] = {HIGHEST(j, origin_bytes), HIGHEST(j, sent_bytes)};

	for (size_t i = 0; i < COP_ARRAY_SIZE(most); i++)
		if (most[i] && most[i]->rank >= 0)
			t->first[t->first_n++] =
				ranks ? (uint32_t)most[i]->rank : (uint32_t)(most[i] - j->node);
	for (size_t i = 0; at && i < j->node_n; i++)
		if (at[i]->rank >= 0)
			t->first[t->first_n++] =
				ranks ? (uint32_t)at[i]->rank : (uint32_t)(at[i] - j->node);
	free(at);
	return at != NULL;
}

static bool make_tree(struct tree *t, bool ranks)
{
	t->n = ranks ? t->j->nodes : (unsigned)t->j->node_n;
	t->row = calloc(t->n, sizeof(*t->row));
	t->parent = calloc(t->n, sizeof(*t->parent));
	t->first = calloc(t->j->node_n + 2, sizeof(*t->first));
	if (!t->row || !t->parent || !t->first)
		return false;
	if (ranks)
		place_ranks(t);
	else
		place_rows(t);
	return list_first(t, ranks);
}

/* In a large job, the node that sent most may have no row; the title then omits its name. */
static void make_title(const struct cop_jobdata *j, char title[400])
{
	const struct cop_jobdata_node *reads = HIGHEST(j, origin_bytes);
	const struct cop_jobdata_node *sends = HIGHEST(j, sent_bytes);
	char a[PAGE_LABEL] = "One node", b[PAGE_LABEL] = "", x[COP_HTML_NUMBER], y[COP_HTML_NUMBER];
	int n = 0;

	if (reads && reads->rank >= 0) {
		cop_page_node(reads->rank, reads->host, a);
		*a = 'N';
	}
	if (sends && sends->rank >= 0)
		cop_page_node(sends->rank, sends->host, b);
	if (reads)
		n = snprintf(title, 400, "%s read most from the storage: %s", a,
			cop_html_size(reads->origin_bytes, x));
	else
		n = snprintf(title, 400, "No node read bytes from the storage");
	if (sends && sends == reads)
		snprintf(title + n, 400 - (size_t)n, ", and sent most to others: %s",
			cop_html_size(sends->sent_bytes, y));
	else if (*b)
		snprintf(title + n, 400 - (size_t)n, "; %s sent most to others: %s", b,
			cop_html_size(sends->sent_bytes, y));
}

static void draw(const struct cop_jobdata *j, bool ranks, struct cop_buf *out)
{
	struct tree t = {.j = j};
	char title[400];

	make_title(j, title);
	if (!make_tree(&t, ranks))
		out->failed = true;
	else
		cop_chart_tree(out, &(struct cop_chart_tree){.title = title,
					    .n = t.n,
					    .parent = t.parent,
					    .first = t.first,
					    .first_n = t.first_n,
					    .top = "storage",
					    .show = cop_html_size,
					    .weight = weight,
					    .label = label,
					    .tooltip = tooltip,
					    .arg = &t});
	free_tree(&t);
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

static void table(const struct cop_jobdata *j, struct cop_buf *out)
{
	static const struct cop_html_col col[] = {{"node", false}, {"parent", false},
		{"requests", true}, {"read by programs", true}, {"from nodes", true},
		{"sent", true}, {"storage operations", true}, {"from storage", true},
		{"waited for parent", true}, {"for storage", true}, {"failovers", true},
		{"processor", true}};
	size_t shown = COP_MIN(j->node_n, (size_t)PAGE_NODES_LISTED);
	const struct cop_jobdata_node **at = order(j, shown < j->node_n);

	if (!at) {
		out->failed = true;
		return;
	}
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

static void say_what_is_drawn(const struct cop_jobdata *j, struct cop_buf *out)
{
	char a[COP_HTML_NUMBER];

	if (j->node[0].rank < 0 && has_shape(j))
		cop_page_say(out,
			"Drawn are those of %s nodes that stand out, with all nodes above them. The job kept no row of the others: a line that is thin says nothing of what went over it.",
			cop_html_count(j->nodes, a));
	else if (has_shape(j))
		cop_page_say(out,
			"Nodes that did not answer are drawn, too: a line that is thin says nothing of what went over it.");
	if (j->node[0].rank >= 0 || has_shape(j))
		cop_page_say(out,
			"The wider a line, the more bytes went over it. A number below a node says how many nodes it has below that are not drawn.");
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
	if (j->node[0].rank >= 0 || has_shape(j))
		draw(j, has_shape(j), out);
	else
		cop_page_missing(out,
			"The tree of %s nodes is not drawn: of so many, the job kept only the rows of those that stand out, and the lowest, middle and highest values",
			cop_html_count(j->nodes, a));
	say_what_is_drawn(j, out);
	if (j->trees > 1)
		cop_page_say(out,
			"The job used %u trees over the same nodes; the first is drawn, the bytes are those of all.",
			j->trees);
	table(j, out);
}
