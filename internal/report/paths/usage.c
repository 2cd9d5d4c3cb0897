/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <limits.h>

#include "base/base/grow.h"
#include "report/paths/paths_priv.h"

/* Decides what a reduced copy must contain to be complete: for each file, also its parents, and for
 * each link, also its target. Paths are resolved in the tree as the kernel does: ".." is the parent
 * of the directory reached, not the previous component. */

#define LINKS_MAX 40 /* as in the kernel */

struct step {
	struct usage *u;
	unsigned links;
	char path[2 * PATH_MAX]; /* the rest of the path starts at offset `at` */
	size_t at, len;
	struct cop_walk_entry *entry; /* the entry reached so far */
	struct cop_walk_dir *dir;     /* its directory */
};

static void mark_kept(struct cop_walk_entry *e, struct cop_walk_dir *d)
{
	while (!(e->flags & COP_WALK_KEEP)) {
		e->flags |= COP_WALK_KEEP;
		if (!d->parent)
			return;
		e = &d->parent->entry[d->in_parent];
		d = d->parent;
	}
}

/* The entry's full path. */
static void entry_path(
	const struct cop_walk_entry *e, const struct cop_walk_dir *d, struct cop_buf *out)
{
	if (d->parent) {
		entry_path(&d->parent->entry[d->in_parent], d->parent, out);
		if (out->len > 1)
			cop_buf_add(out, "/", 1);
	}
	cop_buf_add(out, e->name, e->len);
}

/* Begins an absolute path; false if it is outside all roots. Only here is ".." resolved textually,
 * because the directories above a root are not walked. */
static bool begin_path(struct step *s, const char *path)
{
	char *normal = cop_walk_path_normal("/", path);
	size_t taken;

	s->entry = NULL;
	if (normal && strlen(normal) < sizeof(s->path)) {
		strcpy(s->path, normal);
		s->len = strlen(normal);
		s->entry = cop_walk_tree_root(s->u->tree, s->path, s->len, &taken);
		s->dir = &s->u->tree->top;
		s->at = s->entry ? taken : 0;
	}
	free(normal);
	if (s->entry && s->entry->type)
		mark_kept(s->entry, s->dir);
	return s->entry;
}

static int add_ref(
	struct usage *u, struct path_refs *in, const char *path, size_t len, uint8_t type)
{
	struct path_ref ref = {.len = (uint32_t)len, .type = type};

	ref.text = cop_walk_arena_copy(&u->arena, path, len);
	return ref.text ? cop_paths_refs_add(in, &ref) : -ENOMEM;
}

/* Prepends a link's target to the rest of the path. */
static int follow_link(struct step *s)
{
	struct cop_buf link = {0}, next = {0};
	char target[PATH_MAX];
	ssize_t n;
	int rc = 0;

	entry_path(s->entry, s->dir, &link);
	n = link.failed ? -1 : readlink(link.data, target, sizeof(target) - 1);
	if (n > 0 && s->links++ < LINKS_MAX) {
		target[n] = '\0';
		cop_buf_printf(&next, "%s%s", target, s->path + s->at);
		if (target[0] == '/') {
			if (!next.failed && !begin_path(s, next.data))
				rc = add_ref(s->u, &s->u->links_out, link.data, link.len, DT_LNK);
		} else if (next.len + 2 > sizeof(s->path)) {
			s->entry = NULL;
		} else if (!next.failed) {
			/* Continue in the directory of the link. */
			s->path[0] = '/';
			memcpy(s->path + 1, next.data, next.len + 1);
			s->len = next.len + 1;
			s->at = 0;
			s->entry =
				s->dir->parent ? &s->dir->parent->entry[s->dir->in_parent] : NULL;
			s->dir = s->dir->parent;
		}
	} else {
		s->entry = NULL;
	}
	rc = link.failed || next.failed ? -ENOMEM : rc;
	cop_buf_free(&link);
	cop_buf_free(&next);
	return rc;
}

/* Follows ".." from the entry, which is a directory; false if that leaves the root. */
static bool go_up(struct step *s)
{
	if (!s->dir->parent)
		return false;
	s->entry = &s->dir->parent->entry[s->dir->in_parent];
	s->dir = s->dir->parent;
	return true;
}

/* The path leaves its root through "..", possibly for another root: restarts as an absolute
 * path. */
static int leave_root(struct step *s, const char *rest)
{
	struct cop_buf here = {0}, next = {0};
	int rc = 0;

	entry_path(s->entry, s->dir, &here);
	cop_buf_printf(&next, "%s/../%s", here.data ? here.data : "", rest);
	if (!next.failed && !begin_path(s, next.data))
		rc = add_ref(s->u, &s->u->links_out, here.data, here.len, DT_DIR);
	rc = here.failed || next.failed ? -ENOMEM : rc;
	cop_buf_free(&here);
	cop_buf_free(&next);
	return rc;
}

/* The name does not exist, unless the directory could not be read. */
static int not_found(struct step *s, const char *name)
{
	const struct cop_walk_dir *d = s->entry->dir;
	struct cop_buf path = {0};
	int rc = 0;

	if (d && d->state == COP_WALK_FAILED) {
		entry_path(s->entry, s->dir, &path);
		cop_buf_printf(&path, "/%s", name);
		rc = path.failed
			     ? -ENOMEM
			     : add_ref(s->u, &s->u->keep_beyond, path.data, path.len, DT_UNKNOWN);
		cop_buf_free(&path);
	}
	s->entry = NULL;
	return rc;
}

static int one_name(struct step *s, const char *name, size_t n)
{
	struct cop_walk_entry *e;

	s->at = (size_t)(name - s->path) + n;
	if (!n || (n == 1 && name[0] == '.'))
		return 0;
	if (n == 2 && memcmp(name, "..", 2) == 0)
		return go_up(s) ? 0 : leave_root(s, name + n);
	e = s->entry->dir ? cop_walk_dir_find(s->entry->dir, name, n) : NULL;
	if (!e || !e->type)
		return not_found(s, name);
	s->dir = s->entry->dir;
	s->entry = e;
	mark_kept(e, s->dir);
	return e->type == DT_LNK ? follow_link(s) : 0;
}

/* Marks everything that an existing path needs: itself, its parents, and the links on the way with
 * their targets. Returns 0 or -ENOMEM. */
static int keep(struct usage *u, const char *path, size_t len)
{
	struct step *s = malloc(sizeof(*s));
	int rc = 0;

	if (!s)
		return -ENOMEM;
	s->u = u;
	s->links = 0;
	if (len < PATH_MAX && begin_path(s, path))
		while (!rc && s->entry && s->at < s->len) {
			const char *name = s->path + s->at + (s->path[s->at] == '/');

			rc = one_name(s, name, strcspn(name, "/"));
		}
	free(s);
	return rc;
}

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

/* Sorts by bytes and removes duplicates. */
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
		/* As in the job, link loops and overlong names count as absent. */
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
			rc = cop_paths_refs_add(&u->beyond, ref) ?: keep(u, ref->text, ref->len);
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
		return keep(u, p->text, p->len);
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
	/* Keep a root even if it is empty: it is the destination of the copy. */
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
