/* SPDX-License-Identifier: BSD-3-Clause */
/* Computes which share of its directories the job used. Walks each root once, nested roots along
 * with their parents. Then looks up each observed path in the result, and counts it for every root
 * above it. */
#include <dirent.h>
#include <sys/stat.h>

#include "base/table/table.h"
#include "writers/cluster/cluster_priv.h"
#include "base/walk/walk.h"

#define ROWS_MAX 200u /* rows of the table */

struct counts {
	uint64_t files, dirs; /* files: all entries except directories */
};
struct cover {
	const char *root;
	unsigned place; /* its row in the table */
	bool exists;
	uint64_t observed, missing;
	struct counts used, total;
	const struct cop_observed_path *example;
};
struct coverage {
	const struct cop_observed_path **path; /* sorted by bytes */
	size_t paths;
	bool whole, full;
	uint64_t faults; /* unusable or truncated raw tables */
	struct cop_roots roots;
	struct cover *row; /* sorted by name */
	size_t n, left_out;
	struct cop_walk_tree *tree;
};

static int by_bytes(const void *a, const void *b)
{
	const struct cop_observed_path *x = *(const struct cop_observed_path *const *)a,
				       *y = *(const struct cop_observed_path *const *)b;
	int order = memcmp(x->text, y->text, COP_MIN(x->len, y->len));

	return order ? order : x->len < y->len ? -1 : x->len > y->len;
}

static int sort_paths(struct coverage *c, const struct cop_pathset *s)
{
	c->full = s->full;
	c->path = calloc(s->table.count + 1, sizeof(*c->path));
	if (!c->path)
		return -ENOMEM;
	for (const struct cop_observed_path *p = NULL; (p = cop_observed_pathset_next(s, p));)
		c->path[c->paths++] = p;
	qsort(c->path, c->paths, sizeof(*c->path), by_bytes);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct cover *)a)->root, ((const struct cover *)b)->root);
}

static int by_place(const void *a, const void *b)
{
	const struct cover *x = a, *y = b;

	return x->place < y->place ? -1 : x->place > y->place;
}

static void add_row(struct coverage *c, const char *root)
{
	for (size_t i = 0; i < c->n; i++)
		if (strcmp(c->row[i].root, root) == 0)
			return;
	if (c->n == ROWS_MAX)
		c->left_out++;
	else
		c->row[c->n] = (struct cover){.root = root, .place = (unsigned)c->n};
	c->n += c->n < ROWS_MAX;
}

static void add_rows(struct coverage *c, const struct cop_root_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		add_row(c, list->path[i]);
}

static int find_roots(struct coverage *c, const struct cop_report_aggregate *what)
{
	int rc = cop_walk_roots_init(&c->roots, what->home);

	for (unsigned i = 0; i < what->usage_roots && !rc; i++)
		rc = cop_walk_roots_give(&c->roots, what->usage_root[i]);
	for (size_t i = 0; i < c->paths && !rc; i++)
		rc = cop_walk_roots_observe(&c->roots, c->path[i]->text, c->path[i]->len);
	if (!rc)
		rc = cop_walk_roots_minimize(&c->roots);
	if (!rc && !(c->row = calloc(ROWS_MAX, sizeof(*c->row))))
		rc = -ENOMEM;
	if (rc)
		return rc;
	add_rows(c, &c->roots.given);
	add_rows(c, &c->roots.conda);
	if (c->roots.home_observed)
		add_row(c, c->roots.home);
	add_rows(c, &c->roots.children);
	qsort(c->row, c->n, sizeof(*c->row), by_name);
	return 0;
}

/* ---- counting ---- */

static void count_below(const struct cop_walk_entry *e, struct counts *total)
{
	if (e->type)
		*(e->dir || e->type == DT_DIR ? &total->dirs : &total->files) += 1;
	for (uint32_t i = 0; e->dir && i < e->dir->n; i++)
		count_below(&e->dir->entry[i], total);
}

static void count_totals(struct coverage *c)
{
	for (size_t i = 0; i < c->n; i++) {
		struct cover *row = &c->row[i];
		const struct cop_walk_entry *e =
			cop_walk_tree_find(c->tree, row->root, strlen(row->root), NULL);

		row->exists = e;
		if (e)
			count_below(e, &row->total);
	}
}

enum state { IS_MISSING, IS_FILE, IS_DIR };

/* The walk does not follow symbolic links, and may have been denied access, so look up unknown
 * paths in the file system. */
static enum state state_of(const struct coverage *c, const struct cop_observed_path *p)
{
	bool absent;
	const struct cop_walk_entry *e = cop_walk_tree_find(c->tree, p->text, p->len, &absent);
	struct stat st;

	if (e)
		return e->dir || e->type == DT_DIR ? IS_DIR : IS_FILE;
	if (absent || lstat(p->text, &st))
		return IS_MISSING;
	return S_ISDIR(st.st_mode) ? IS_DIR : IS_FILE;
}

/* The row of the root that consists of the first len bytes of path. */
static struct cover *row_of(struct coverage *c, const char *path, size_t len)
{
	size_t low = 0, high = c->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strncmp(c->row[middle].root, path, len);

		if (!order && !c->row[middle].root[len])
			return &c->row[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static void count_path(struct coverage *c, const struct cop_observed_path *p)
{
	enum state state = IS_MISSING;
	bool known = false;

	for (size_t n = p->len; n; n--) {
		struct cover *row =
			n == p->len || n == 1 || p->text[n] == '/' ? row_of(c, p->text, n) : NULL;

		if (!row)
			continue;
		row->observed++;
		if (!row->example)
			row->example = p;
		if (!row->exists)
			continue;
		if (!known)
			state = state_of(c, p);
		known = true;
		*(state == IS_MISSING     ? &row->missing
			: state == IS_DIR ? &row->used.dirs
					  : &row->used.files) += 1;
	}
}

/* ---- the table ---- */

static void print_share(struct cop_buf *out, uint64_t used, uint64_t total)
{
	if (total)
		cop_buf_printf(out, " | %.2f%%", 100.0 * (double)used / (double)total);
	else
		cop_buf_str(out, " | n/a");
}

static void print_rows(struct coverage *c, struct cop_buf *out)
{
	cop_buf_str(out,
		"| Root | Exists | Observed Paths | Observed Files | Total Files | File Coverage | Observed Dirs | Total Dirs | "
		"Dir Coverage | Missing Probe Paths | Example |\n|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---|\n");
	qsort(c->row, c->n, sizeof(*c->row), by_place);
	for (size_t i = 0; i < c->n; i++) {
		const struct cover *r = &c->row[i];

		cop_buf_str(out, "| ");
		cop_csv_markdown(out, r->root, strlen(r->root));
		cop_buf_printf(out, " | %s | %" PRIu64 " | %" PRIu64 " | %" PRIu64,
			r->exists ? "yes" : "no", r->observed, r->used.files, r->total.files);
		print_share(out, r->used.files, r->total.files);
		cop_buf_printf(out, " | %" PRIu64 " | %" PRIu64, r->used.dirs, r->total.dirs);
		print_share(out, r->used.dirs, r->total.dirs);
		cop_buf_printf(out, " | %" PRIu64 " | ", r->missing);
		if (r->example)
			cop_csv_markdown(out, r->example->text, r->example->len);
		cop_buf_str(out, " |\n");
	}
}

static void print_remarks(const struct coverage *c, struct cop_buf *out)
{
	const struct cop_walk_tree *t = c->tree;

	cop_buf_str(out, "\n");
	if (c->left_out || c->roots.conda.full || c->roots.children.full)
		cop_buf_str(out,
			"There are more roots than this table has room for; name those that matter with `--usage-root`.\n\n");
	if (c->faults)
		cop_buf_printf(out,
			"%" PRIu64
			" of the raw tables were truncated or unusable; `copper paths` names them.\n\n",
			c->faults);
	if (c->full)
		cop_buf_str(out,
			"More paths were observed than there is memory for: the observed figures are too low.\n\n");
	if (t->unreadable)
		cop_buf_printf(out,
			"%" PRIu64
			" directories below the roots could not be read, and their totals are too low.\n\n",
			t->unreadable);
	cop_buf_str(out,
		"This is what was seen, and proves nothing about what may be deleted: another run may need what this one did not.\n");
}

static void print_coverage(struct coverage *c, struct cop_buf *out)
{
	cop_buf_str(out,
		c->whole
			? "How much of some directories the job used, by all paths in `tables/final`, compared with what exists now.\n\n"
			: "How much of some directories the job used, by the most used paths of each rank (start it with `-A` for all of them), compared with what exists now.\n\n");
	print_rows(c, out);
	print_remarks(c, out);
}

static void report_progress(const struct cop_report_aggregate *what, const char *of, uint64_t n)
{
	if (what->progress)
		what->progress(what->arg, of, n);
}

static void names_tick(void *arg, uint64_t entries)
{
	report_progress(arg, "names", entries);
}

static int walk_roots(
	struct coverage *c, const struct cop_report_aggregate *what, struct cop_err *err)
{
	return cop_walk(&(struct cop_walk_conf){.root = (const char *const *)c->roots.all.path,
				.roots = c->roots.all.n,
				.tick = names_tick,
				.arg = (void *)what},
		&c->tree, err);
}

static void tables_tick(void *arg, uint64_t files)
{
	report_progress(arg, "raw tables", files);
}

/* If there are raw tables, they include all top paths. */
static int read_paths(struct coverage *c, const struct cop_report_aggregate *what,
	const char *tables, const struct cop_pathset *top, struct cop_observed *all)
{
	int rc;

	cop_observed_init(all);
	rc = cop_observed_read(all, tables, tables_tick, (void *)what);
	c->faults = all->faults.count;
	c->whole = rc == 0;
	return rc == -ENOMEM ? rc : sort_paths(c, c->whole ? &all->set : top);
}

static int write_coverage(struct coverage *c, const struct cop_report_aggregate *what,
	struct cop_buf *out, struct cop_err *err)
{
	int rc = walk_roots(c, what, err);

	if (rc == -E2BIG) {
		cop_buf_printf(out, "The use of directories was not examined: %s.\n", err->text);
		*err = (struct cop_err){0};
		return 0;
	}
	if (rc)
		return rc;
	count_totals(c);
	for (size_t i = 0; i < c->paths; i++)
		count_path(c, c->path[i]);
	print_coverage(c, out);
	return 0;
}

int cop_report_coverage(const struct cop_report_aggregate *what, const char *tables,
	const struct cop_pathset *top, struct cop_buf *out, struct cop_err *err)
{
	struct coverage c = {0};
	struct cop_observed all;
	int rc = read_paths(&c, what, tables, top, &all);

	if (!rc)
		rc = find_roots(&c, what);
	if (rc)
		cop_err_set(
			err, -rc, "looking for the directories that were used: %s", strerror(-rc));
	else if (c.n)
		rc = write_coverage(&c, what, out, err);
	if (c.tree)
		cop_walk_tree_free(c.tree);
	cop_observed_free(&all);
	cop_walk_roots_free(&c.roots);
	free(c.path);
	free(c.row);
	return rc;
}
