/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/paths/paths_priv.h"

static uint64_t probes_of(const struct cop_observed_path *p)
{
	return COP_MAX(p->absent, p->ttl);
}

/* Inserts a row into the sorted list of top rows. Returns its index, or PRUNE_ROWS if it is not
 * among them. */
static unsigned insert_row(void *rows, unsigned *n, size_t size, const void *row,
	int (*order)(const void *a, const void *b))
{
	char *at = rows;
	unsigned i = *n;

	while (i && order(row, at + (i - 1) * size) < 0)
		i--;
	if (i == PRUNE_ROWS)
		return i;
	if (*n < PRUNE_ROWS)
		++*n;
	memmove(at + (i + 1) * size, at + i * size, (*n - 1 - i) * size);
	memcpy(at + i * size, row, size);
	return i;
}

static int larger_first(uint64_t a, uint64_t b)
{
	return a > b ? -1 : a < b;
}

static int by_text(const char *a, size_t a_len, const char *b, size_t b_len)
{
	int first = memcmp(a, b, COP_MIN(a_len, b_len));

	return first ? first : a_len < b_len ? -1 : a_len > b_len;
}

/* ---- unused directories ---- */

struct below {
	struct prune *out;
	struct cop_buf path; /* path of the directory being searched */
	int rc;
};

static void count_below(const struct cop_walk_dir *d, struct unused_dir *sum)
{
	sum->dirs++;
	for (uint32_t i = 0; i < d->n; i++) {
		sum->files += d->entry[i].type && !d->entry[i].dir;
		sum->bytes = cop_add_saturating(sum->bytes, d->entry[i].size);
		if (d->entry[i].dir)
			count_below(d->entry[i].dir, sum);
	}
}

static int by_size(const void *a, const void *b)
{
	const struct unused_dir *x = a, *y = b;
	int by_bytes = larger_first(x->bytes, y->bytes);
	int by_files = larger_first(x->files, y->files);

	return by_bytes ? by_bytes : by_files ? by_files : strcmp(x->path, y->path);
}

static void take_dir(struct below *b, struct unused_dir *row)
{
	struct prune *p = b->out;
	char *last = p->dirs == PRUNE_ROWS ? p->dir[PRUNE_ROWS - 1].path : NULL;

	p->all_dirs++;
	row->path = b->path.failed ? NULL : strdup(b->path.data);
	if (!row->path) {
		b->rc = -ENOMEM;
		return;
	}
	if (insert_row(p->dir, &p->dirs, sizeof(*row), row, by_size) == PRUNE_ROWS)
		free(row->path);
	else
		free(last);
}

static void unused_below(struct below *b, const struct cop_walk_dir *d)
{
	for (uint32_t i = 0; !b->rc && i < d->n; i++) {
		const struct cop_walk_entry *e = &d->entry[i];
		struct unused_dir row = {0};
		size_t before = b->path.len;

		if (!e->dir || (!e->dir->n && !(e->flags & COP_WALK_KEEP) &&
				       e->dir->state == COP_WALK_SKIPPED))
			continue;
		if (before > 1)
			cop_buf_add(&b->path, "/", 1);
		cop_buf_add(&b->path, e->name, e->len);
		if (e->flags & COP_WALK_KEEP) {
			unused_below(b, e->dir);
		} else {
			count_below(e->dir, &row);
			take_dir(b, &row);
		}
		b->path.len = before;
	}
}

/* ---- absent names ---- */

/* An absent path, split into directory and name. */
struct probe {
	const char *path, *name;
	size_t dir_len, name_len;
	uint64_t probes;
};

static int by_name(const void *a, const void *b)
{
	const struct probe *x = a, *y = b;

	return by_text(x->name, x->name_len, y->name, y->name_len);
}

static int by_dir(const void *a, const void *b)
{
	const struct probe *x = a, *y = b;

	return by_text(x->path, x->dir_len, y->path, y->dir_len);
}

static int by_directories(const void *a, const void *b)
{
	const struct probed_name *x = a, *y = b;

	return larger_first(x->directories, y->directories) ?: larger_first(x->probes, y->probes) ?:
		by_text(x->name, x->len, y->name, y->len);
}

static int by_names(const void *a, const void *b)
{
	const struct vain_dir *x = a, *y = b;
	int by_count = larger_first(x->names, y->names);
	int by_probes = larger_first(x->probes, y->probes);

	if (by_count)
		return by_count;
	return by_probes ? by_probes : by_text(x->path, x->len, y->path, y->len);
}

static void same_names(struct prune *out, struct probe *probe, size_t n)
{
	qsort(probe, n, sizeof(*probe), by_name);
	for (size_t i = 0, end; i < n; i = end) {
		struct probed_name row = {.name = probe[i].name, .len = probe[i].name_len};

		for (end = i; end < n && !by_name(&probe[i], &probe[end]); end++)
			row.probes = cop_add_saturating(row.probes, probe[end].probes);
		row.directories = end - i;
		if (row.directories < 2)
			continue;
		out->all_names++;
		insert_row(out->name, &out->names, sizeof(row), &row, by_directories);
	}
}

static bool gave_something(const struct usage *u, const char *path, size_t len)
{
	const struct cop_walk_entry *e = cop_walk_tree_find(u->tree, path, len, NULL);

	if (!e || !e->dir || e->dir->state != COP_WALK_READ)
		return true; /* not known, so assume it has */
	for (uint32_t i = 0; i < e->dir->n; i++)
		if (e->dir->entry[i].flags & COP_WALK_USED)
			return true;
	return false;
}

static void vain_dirs(const struct usage *u, struct prune *out, struct probe *probe, size_t n)
{
	qsort(probe, n, sizeof(*probe), by_dir);
	for (size_t i = 0, end; i < n; i = end) {
		struct vain_dir row = {.path = probe[i].path, .len = probe[i].dir_len};

		for (end = i; end < n && !by_dir(&probe[i], &probe[end]); end++)
			row.probes = cop_add_saturating(row.probes, probe[end].probes);
		row.names = end - i;
		if (gave_something(u, row.path, row.len))
			continue;
		out->all_vains++;
		insert_row(out->vain, &out->vains, sizeof(row), &row, by_names);
	}
}

static int absent_names(const struct usage *u, struct prune *out)
{
	struct probe *probe = calloc(u->missing.n + 1, sizeof(*probe));
	size_t n = 0;

	if (!probe)
		return -ENOMEM;
	for (size_t i = 0; i < u->missing.n; i++) {
		const struct path_ref *ref = &u->missing.ref[i];
		const char *slash = memrchr(ref->text, '/', ref->len);
		struct probe *p = &probe[n];

		if (ref->len < 2)
			continue;
		*p = (struct probe){
			.path = ref->text, .name = slash + 1, .probes = probes_of(ref->from)};
		p->dir_len = COP_MAX((size_t)(slash - ref->text), 1u);
		p->name_len = ref->len - (size_t)(slash + 1 - ref->text);
		n++;
	}
	same_names(out, probe, n);
	vain_dirs(u, out, probe, n);
	free(probe);
	return 0;
}

/* ---- classes ---- */

static int classify_paths(const struct usage *u, struct prune *out)
{
	const struct cop_pathset *s = &u->seen->set;
	int rc = 0;

	for (size_t i = 0; !rc && i < u->missing.n; i++) {
		const struct path_ref *ref = &u->missing.ref[i];

		out->absences = true;
		rc = cop_pathclass_add(
			&out->classes, true, ref->text, ref->len, probes_of(ref->from));
	}
	for (const struct cop_observed_path *p = NULL;
		!rc && (p = cop_observed_pathset_next(s, p));) {
		const struct cop_walk_entry *e = cop_walk_tree_find(u->tree, p->text, p->len, NULL);

		if (e)
			rc = cop_pathclass_add(&out->classes, false, p->text, p->len, p->events);
	}
	return rc;
}

int cop_paths_prune(const struct usage *u, struct prune *out)
{
	struct below b = {.out = out};

	*out = (struct prune){0};
	unused_below(&b, &u->tree->top);
	cop_buf_free(&b.path);
	return b.rc ?: absent_names(u, out) ?: classify_paths(u, out);
}

void cop_paths_prune_free(struct prune *p)
{
	for (unsigned i = 0; i < p->dirs; i++)
		free(p->dir[i].path);
	cop_pathclass_totals_free(&p->classes);
}
