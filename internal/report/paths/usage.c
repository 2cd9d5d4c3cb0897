/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/base/grow.h"
#include "report/paths/paths_priv.h"

int cop_paths_refs_add(struct path_refs *r, const struct path_ref *ref)
{
	if (!COP_GROW(r->ref, r->n, r->cap))
		return -ENOMEM;
	r->ref[r->n++] = *ref;
	return 0;
}

static int by_bytes(const void *a, const void *b)
{
	const struct path_ref *x = a, *y = b;
	int first = memcmp(x->text, y->text, COP_MIN(x->len, y->len));

	return first ? first : x->len < y->len ? -1 : x->len > y->len;
}

/* In order of bytes, without duplicates. */
static void sort_refs(struct path_refs *r)
{
	size_t kept = 0;

	if (!r->n)
		return;
	qsort(r->ref, r->n, sizeof(*r->ref), by_bytes);
	for (size_t i = 1; i < r->n; i++)
		if (by_bytes(&r->ref[kept], &r->ref[i]))
			r->ref[++kept] = r->ref[i];
	r->n = kept + 1;
}

/* ---- lookups on disk, by a few threads ---- */

enum { ASK_FAILED = 255 };

struct ask {
	struct path_refs refs;
	_Atomic uint64_t done;
	void (*tick)(void *arg, uint64_t paths);
	void *arg;
};

static void stat_path(void *arg, size_t i)
{
	struct ask *a = arg;
	struct path_ref *ref = &a->refs.ref[i];
	struct stat st;

	if (!lstat(ref->text, &st)) {
		ref->type = IFTODT(st.st_mode);
		ref->size = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
	} else {
		/* Like the job, treats link loops and overlong names as absent. */
		ref->type = errno == ENOENT || errno == ENOTDIR || errno == ELOOP ||
					    errno == ENAMETOOLONG
				    ? DT_UNKNOWN
				    : ASK_FAILED;
	}
	atomic_fetch_add(&a->done, 1);
}

static void report_progress(void *arg)
{
	struct ask *a = arg;

	a->tick(a->arg, atomic_load(&a->done));
}

static int sort_answers(struct usage *u, const struct ask *a)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < a->refs.n; i++) {
		const struct path_ref *ref = &a->refs.ref[i];

		if (ref->type == ASK_FAILED)
			u->unknown++;
		else if (ref->type == DT_UNKNOWN)
			rc = cop_paths_refs_add(&u->missing, ref);
		else
			rc = cop_paths_refs_add(&u->beyond, ref)
				     ?: cop_paths_keep(u, ref->text, ref->len);
	}
	return rc;
}

/* ---- all observed paths ---- */

static int find_one(struct usage *u, struct ask *ask, const struct cop_observed_path *p)
{
	const struct path_ref ref = {.text = p->text, .len = p->len, .from = p};
	struct cop_walk_entry *e;
	bool absent;

	if (cop_walk_roots_above(u->roots, p->text, p->len) < 0) {
		u->elsewhere++;
		return 0;
	}
	e = cop_walk_tree_find(u->tree, p->text, p->len, &absent);
	if (e) {
		e->flags |= COP_WALK_USED;
		return cop_paths_keep(u, p->text, p->len);
	}
	return cop_paths_refs_add(absent ? &u->missing : &ask->refs, &ref);
}

int cop_paths_usage_find(struct usage *u, void (*tick)(void *arg, uint64_t paths), void *arg)
{
	struct ask ask = {.tick = tick, .arg = arg};
	const struct cop_pathset *s = &u->seen->set;
	int rc = 0;

	for (const struct cop_observed_path *p = NULL;
		!rc && (p = cop_observed_pathset_next(s, p));)
		rc = find_one(u, &ask, p);
	if (!rc && ask.refs.n)
		rc = cop_walk_parallel(ask.refs.n, stat_path, tick ? report_progress : NULL, &ask);
	if (!rc)
		rc = sort_answers(u, &ask);
	/* A root is kept even if empty: it is the destination of the copy. */
	for (uint32_t i = 0; i < u->tree->top.n; i++)
		if (u->tree->top.entry[i].dir)
			u->tree->top.entry[i].flags |= COP_WALK_KEEP;
	sort_refs(&u->missing);
	sort_refs(&u->beyond);
	sort_refs(&u->keep_beyond);
	sort_refs(&u->links_out);
	free(ask.refs.ref);
	return rc;
}

void cop_paths_usage_free(struct usage *u)
{
	free(u->missing.ref);
	free(u->beyond.ref);
	free(u->keep_beyond.ref);
	free(u->links_out.ref);
	cop_walk_arena_free(&u->arena);
}
