/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/walk/walk_priv.h"

#define BUFFER (128 * COP_KIB)
#define STATS 256u /* maximum number of entries per batch of attribute reads */

void cop_walk_fault(struct walk *walk, struct cop_walk_dir *d, const char *path, int error)
{
	struct cop_walk_tree *t = walk->tree;

	d->state = COP_WALK_FAILED;
	d->error = error;
	pthread_mutex_lock(&walk->lock);
	t->unreadable++;
	if (t->faults < COP_WALK_NAMED && (t->fault[t->faults].path = strdup(path)))
		t->fault[t->faults++].error = error;
	pthread_mutex_unlock(&walk->lock);
}

/* No component may be a link or lead out of the root, even if it was replaced after we read its
 * name. */
static int open_dir(const struct walk *walk, int root, const char *path)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOCTTY;
	unsigned calls;

	return cop_open_beneath(root, path, flags, !walk->no_openat2, &calls);
}

/* Writes the path of d below its root to w->path, which is always large enough, because names and
 * kernel paths are limited in length. */
static const char *path_below(struct worker *w, const struct cop_walk_dir *d, uint32_t *root)
{
	char *at = w->path + sizeof(w->path) - 1;

	*at = '\0';
	while (d->parent->parent) {
		const struct cop_walk_entry *e = &d->parent->entry[d->in_parent];

		if ((size_t)(at - w->path) < e->len + 1u)
			return NULL;
		if (*at)
			*--at = '/';
		at -= e->len;
		memcpy(at, e->name, e->len);
		d = d->parent;
	}
	*root = d->in_parent;
	return at;
}

static int reserve_task(struct worker *w)
{
	size_t cap = w->batch_cap ? 2 * w->batch_cap : 64;
	struct walk_batch *grown;

	if (w->batches < w->batch_cap)
		return 0;
	grown = reallocarray(w->batch, cap, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	w->batch = grown;
	w->batch_cap = cap;
	return 0;
}

static int add_task(struct worker *w, struct cop_walk_dir *d, uint32_t from, uint32_t n)
{
	int rc = reserve_task(w);

	if (!rc)
		w->batch[w->batches++] = (struct walk_batch){d, from, n};
	return rc;
}

static int add_entry(struct worker *w, const char *name, uint8_t type)
{
	size_t len = strlen(name);
	struct cop_walk_entry *e;

	if (w->n == w->cap) {
		size_t cap = w->cap ? 2 * w->cap : 256;

		e = reallocarray(w->entry, cap, sizeof(*e));
		if (!e)
			return -ENOMEM;
		w->entry = e;
		w->cap = cap;
	}
	e = &w->entry[w->n];
	*e = (struct cop_walk_entry){.len = (uint16_t)len, .type = type};
	e->name = cop_walk_arena_copy(w->arena, name, len);
	if (!e->name)
		return -ENOMEM;
	w->n++;
	return 0;
}

/* Reads the names in fd into w->entry. A positive result is an errno from the storage; a negative
 * one ends the walk. */
static int read_names(struct worker *w, int fd)
{
	uint64_t max = w->walk->conf->max_entries;
	ssize_t got;
	int rc = 0;

	if (!w->buffer && !(w->buffer = malloc(BUFFER)))
		return -ENOMEM;
	w->n = 0;
	while (!rc && (got = getdents64(fd, w->buffer, BUFFER)) > 0) {
		size_t before = w->n;

		for (ssize_t at = 0; !rc && at < got;) {
			const struct dirent64 *d = (const void *)(w->buffer + at);

			at += d->d_reclen;
			if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
				rc = add_entry(w, d->d_name, d->d_type);
		}
		if (!rc &&
			atomic_fetch_add(&w->walk->entries, w->n - before) + (w->n - before) > max)
			rc = -E2BIG;
	}
	return rc ? rc : got < 0 ? errno : 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(
		((const struct cop_walk_entry *)a)->name, ((const struct cop_walk_entry *)b)->name);
}

/* Creates a batch for a directory below d, unless a node-local file system is mounted there. */
static int enter_dir(struct worker *w, struct cop_walk_dir *d, uint32_t i, const char *skip_in)
{
	struct cop_walk_entry *e = &d->entry[i];
	struct cop_walk_dir *below = cop_walk_arena_alloc(w->arena, sizeof(*below));

	if (!below)
		return -ENOMEM;
	*below = (struct cop_walk_dir){.parent = d, .in_parent = i, .fd = -1};
	e->dir = below;
	w->dirs++;
	if (skip_in &&
		cop_walk_mounts_is(&w->walk->mounts, skip_in, strlen(skip_in), e->name, e->len)) {
		below->state = COP_WALK_SKIPPED;
		w->skipped++;
		return 0;
	}
	return add_task(w, below, 0, 0);
}

static void read_attributes(struct worker *w, struct cop_walk_dir *d, uint32_t from, uint32_t n)
{
	const unsigned flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC;
	bool sizes = w->walk->conf->sizes;
	struct statx st;

	for (uint32_t i = from; i < from + n; i++) {
		struct cop_walk_entry *e = &d->entry[i];

		if (e->type != DT_UNKNOWN && (e->type != DT_REG || !sizes))
			continue;
		if (statx(d->fd, e->name, (int)flags,
			    STATX_TYPE | (sizes ? STATX_SIZE | STATX_MODE : 0), &st))
			continue;
		e->type = IFTODT(st.stx_mode);
		if (e->type == DT_REG && sizes)
			e->size = st.stx_size;
		if (e->type == DT_REG && sizes && (st.stx_mode & 0111) &&
			(st.stx_mode & 0444) != 0444)
			e->flags |= COP_WALK_HALF_CLOSED;
		w->bytes += e->size;
	}
}

/* Turns entries whose types are known into batches and totals. */
static int classify_entries(struct worker *w, struct cop_walk_dir *d, const char *skip_in)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < d->n; i++) {
		if (d->entry[i].type == DT_DIR)
			rc = enter_dir(w, d, i, skip_in);
		else
			w->files++;
	}
	return rc;
}

/* Splits reading the sizes in a large directory among idle threads. */
static int share_attributes(struct worker *w, struct cop_walk_dir *d)
{
	uint32_t pieces = (d->n + STATS - 1) / STATS;
	int rc = 0;

	atomic_store(&d->batches, pieces);
	for (uint32_t i = 0; !rc && i < pieces; i++)
		rc = add_task(w, d, i * STATS, COP_MIN(STATS, d->n - i * STATS));
	return rc;
}

static int take_entries(struct worker *w, struct cop_walk_dir *d)
{
	struct cop_walk_entry *copy;

	if (!w->n)
		return 0;
	copy = cop_walk_arena_alloc(w->arena, w->n * sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	qsort(w->entry, w->n, sizeof(*w->entry), by_name);
	memcpy(copy, w->entry, w->n * sizeof(*copy));
	d->entry = copy;
	d->n = (uint32_t)w->n;
	return 0;
}

/* The types decide which entries to enter, so missing types are read first; sizes can wait. */
static int read_entries(struct worker *w, struct cop_walk_dir *d, const char *whole)
{
	bool sizes = w->walk->conf->sizes, unknown = false, shared = sizes && d->n > STATS;
	int rc;

	for (uint32_t i = 0; i < d->n; i++)
		unknown |= d->entry[i].type == DT_UNKNOWN;
	if (unknown || (sizes && !shared)) {
		read_attributes(w, d, 0, d->n);
		shared = false;
	}
	rc = classify_entries(
		w, d, cop_walk_mounts_in(&w->walk->mounts, whole, strlen(whole)) ? whole : NULL);
	if (rc || !shared)
		close(d->fd);
	return !rc && shared ? share_attributes(w, d) : rc;
}

static int scan_dir(struct worker *w, struct cop_walk_dir *d)
{
	uint32_t root = 0;
	const char *path = path_below(w, d, &root);
	struct walk_root *r = &w->walk->root[root];
	struct cop_buf whole = {0};
	int rc;

	d->fd = path ? open_dir(w->walk, r->fd, path) : -ENAMETOOLONG;
	cop_buf_printf(&whole, "%s%s%s", r->real, path && *path && r->real[1] ? "/" : "",
		path ? path : "");
	if (whole.failed) {
		rc = -ENOMEM;
	} else if (d->fd < 0) {
		cop_walk_fault(w->walk, d, whole.data, -d->fd);
		rc = 0;
	} else {
		rc = read_names(w, d->fd);
		if (rc > 0)
			cop_walk_fault(w->walk, d, whole.data, rc);
		rc = rc < 0 ? rc : take_entries(w, d);
		if (rc)
			close(d->fd);
		else
			rc = read_entries(w, d, whole.data);
	}
	cop_buf_free(&whole);
	return rc;
}

int cop_walk_run(struct worker *w, const struct walk_batch *batch)
{
	w->batches = 0;
	if (!batch->n)
		return scan_dir(w, batch->dir);
	read_attributes(w, batch->dir, batch->from, batch->n);
	if (atomic_fetch_sub(&batch->dir->batches, 1) == 1)
		close(batch->dir->fd);
	return 0;
}
