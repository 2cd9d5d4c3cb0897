/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>

#include "base/walk/walk_priv.h"

/* Compares bytewise. */
static int compare_names(const char *a, size_t a_len, const char *b, size_t b_len)
{
	int first = memcmp(a, b, COP_MIN(a_len, b_len));

	return first ? first : a_len < b_len ? -1 : a_len > b_len;
}

struct cop_walk_entry *cop_walk_dir_find(const struct cop_walk_dir *d, const char *name, size_t len)
{
	uint32_t low = 0, high = d->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int is = compare_names(d->entry[middle].name, d->entry[middle].len, name, len);

		if (!is)
			return &d->entry[middle];
		if (is < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

struct cop_walk_entry *cop_walk_tree_root(
	const struct cop_walk_tree *t, const char *path, size_t len, size_t *taken)
{
	struct cop_walk_entry *e;

	for (size_t n = len; n > 1; n--) {
		if ((n == len || path[n] == '/') && (e = cop_walk_dir_find(&t->top, path, n))) {
			*taken = n;
			return e;
		}
	}
	*taken = 0; /* below "/", the next component follows immediately */
	e = len ? cop_walk_dir_find(&t->top, "/", 1) : NULL;
	if (e && len == 1)
		*taken = 1;
	return e;
}

struct cop_walk_entry *cop_walk_tree_find(
	const struct cop_walk_tree *t, const char *path, size_t len, bool *absent)
{
	size_t at;
	struct cop_walk_entry *e = cop_walk_tree_root(t, path, len, &at);
	bool proof = e && !e->type;

	while (e && at < len) {
		const char *name = path + at + 1, *end = memchr(name, '/', len - at - 1);
		size_t n = end ? (size_t)(end - name) : len - at - 1;

		if (!e->dir) {
			/* A path below a link may exist, but not one below a file. */
			proof = e->type && e->type != DT_LNK;
			e = NULL;
			break;
		}
		proof = e->dir->state == COP_WALK_READ;
		e = cop_walk_dir_find(e->dir, name, n);
		at += n + 1;
	}
	if (absent)
		*absent = !e && proof;
	return e && e->type ? e : NULL;
}

/* ---- sorted by full path ---- */

/* Sorting names alone puts "lib" before "lib-x"; but by full path "lib/a" comes after "lib-x",
 * because a slash is greater than a dash. So the contents of a directory are held back until a name
 * is greater than the directory's name with a slash. Each directory held back is a prefix of the
 * next, so they form a stack. */
struct each {
	cop_walk_visit *visit;
	void *arg;
	struct cop_buf path;
	const struct cop_walk_entry **waiting;
	size_t n, cap;
	int rc;
};

static void each_in(struct each *x, const struct cop_walk_dir *d);

/* On entry and on return, x->path is the directory with a slash. */
static void enter_entry(struct each *x, const struct cop_walk_entry *e)
{
	size_t before = x->path.len;

	cop_buf_add(&x->path, e->name, e->len);
	if (e->len != 1 || e->name[0] != '/')
		cop_buf_add(&x->path, "/", 1);
	each_in(x, e->dir);
	x->path.len = before;
}

static int wait_for_more(struct each *x, const struct cop_walk_entry *e)
{
	size_t cap = x->cap ? 2 * x->cap : 64;
	const struct cop_walk_entry **grown;

	if (x->n == x->cap) {
		grown = reallocarray(x->waiting, cap, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		x->waiting = grown;
		x->cap = cap;
	}
	x->waiting[x->n++] = e;
	return 0;
}

/* Whether this name, and so any later one, sorts after the contents of dir. */
static bool is_past(const struct cop_walk_entry *e, const struct cop_walk_entry *dir)
{
	int first = memcmp(e->name, dir->name, COP_MIN(e->len, dir->len));

	return first || e->len <= dir->len || (unsigned char)e->name[dir->len] > '/';
}

static void visit_entry(struct each *x, const struct cop_walk_entry *e)
{
	size_t before = x->path.len;

	cop_buf_add(&x->path, e->name, e->len);
	x->rc = x->path.failed ? -ENOMEM : x->visit(x->arg, e, x->path.data, x->path.len);
	x->path.len = before;
}

static void each_in(struct each *x, const struct cop_walk_dir *d)
{
	size_t bottom = x->n;

	for (uint32_t i = 0; !x->rc && i < d->n; i++) {
		const struct cop_walk_entry *e = &d->entry[i];

		while (!x->rc && x->n > bottom && is_past(e, x->waiting[x->n - 1]))
			enter_entry(x, x->waiting[--x->n]);
		if (!x->rc && e->type)
			visit_entry(x, e);
		if (!x->rc && e->dir && e->dir->n)
			x->rc = wait_for_more(x, e);
	}
	while (!x->rc && x->n > bottom)
		enter_entry(x, x->waiting[--x->n]);
	x->n = bottom;
}

int cop_walk_tree_each(const struct cop_walk_tree *t, cop_walk_visit *fn, void *arg)
{
	struct each x = {.visit = fn, .arg = arg};

	each_in(&x, &t->top);
	cop_buf_free(&x.path);
	free(x.waiting);
	return x.rc;
}
