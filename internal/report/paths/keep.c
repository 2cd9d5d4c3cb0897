/* SPDX-License-Identifier: BSD-3-Clause */
/* A reduced copy must be complete: it has the parents of each file and the target of each link.
 * Paths are resolved in the tree as by the kernel: ".." is the parent of the directory reached, not
 * the previous component. */
#include <dirent.h>
#include <limits.h>

#include "report/paths/paths_priv.h"

#define LINKS_MAX 40 /* as in the kernel */

struct step {
	struct usage *u;
	unsigned links;
	char path[2 * PATH_MAX]; /* the rest of the path starts at at */
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

/* Begins an absolute path; false if it is outside all roots. Only here ".." is resolved textually,
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

/* Follows ".." from the entry, a directory. False if that leaves the root. */
static bool go_up(struct step *s)
{
	if (!s->dir->parent)
		return false;
	s->entry = &s->dir->parent->entry[s->dir->in_parent];
	s->dir = s->dir->parent;
	return true;
}

/* The path leaves its root by "..", possibly into another root: restarts as an absolute path. */
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

/* The directory does not contain the name, unless it could not be read. */
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

int cop_paths_keep(struct usage *u, const char *path, size_t len)
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
