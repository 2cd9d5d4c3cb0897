/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the paths in the source that are pseudo file systems of this node, or the mount point
 * itself. It runs once, at the start, and does not see later mounts. */
#include "mount/fuse/fuse_priv.h"

#define PLACES_MAX 256

/* Returns path relative to the source if it is strictly below the source, else NULL. */
static const char *path_below(const char *source, const char *path)
{
	size_t n = strlen(source);

	if (n == 1)
		return path[0] == '/' && path[1] ? path + 1 : NULL;
	return strncmp(path, source, n) == 0 && path[n] == '/' && path[n + 1] ? path + n + 1 : NULL;
}

static int add_place(struct cop_fuse *fs, const char *relative, enum place place, bool proc)
{
	struct place_path *p;

	if (fs->n_places == PLACES_MAX)
		return 0;
	p = realloc(fs->places, (fs->n_places + 1) * sizeof(*p));
	if (!p)
		return -ENOMEM;
	fs->places = p;
	p[fs->n_places].path = strdup(relative);
	p[fs->n_places].place = place;
	p[fs->n_places].proc = proc;
	return p[fs->n_places++].path ? 0 : -ENOMEM;
}

static int add_mount(void *arg, const char *dir, const char *type)
{
	struct cop_fuse *fs = arg;
	const char *relative = path_below(fs->conf.source, dir);

	if (!relative || strcmp(dir, fs->conf.mountpoint) == 0)
		return 0;
	if (strcmp(type, "fuse.copper") == 0)
		return add_place(fs, relative, PLACE_SELF, false);
	return cop_mount_is_pseudo(type)
		       ? add_place(fs, relative, PLACE_LOCAL, strcmp(type, "proc") == 0)
		       : 0;
}

/* If /proc is unreadable, only the mount point itself is known. */
int cop_fuse_places_find(struct cop_fuse *fs)
{
	const char *self = path_below(fs->conf.source, fs->conf.mountpoint);
	int rc = self ? add_place(fs, self, PLACE_SELF, false) : 0;

	if (!rc)
		rc = cop_mounts_each(add_mount, fs);
	for (size_t i = 0; i < fs->n_places; i++)
		fs->deliver_opens |= fs->places[i].place == PLACE_LOCAL;
	return rc == -ENOMEM ? rc : 0;
}

void cop_fuse_places_free(struct cop_fuse *fs)
{
	for (size_t i = 0; i < fs->n_places; i++)
		free(fs->places[i].path);
	free(fs->places);
}

bool cop_fuse_is_below_proc(const struct cop_fuse *fs, const char *path)
{
	for (size_t i = 0; i < fs->n_places; i++) {
		size_t n = strlen(fs->places[i].path);

		if (fs->places[i].proc && strncmp(path, fs->places[i].path, n) == 0 &&
			path[n] == '/')
			return true;
	}
	return false;
}

enum place cop_fuse_place(const struct cop_fuse *fs, const char *path)
{
	enum place found = PLACE_TREE;
	size_t longest = 0;

	for (size_t i = 0; i < fs->n_places; i++) {
		const char *p = fs->places[i].path;
		size_t n = strlen(p);

		if (n > longest && strncmp(path, p, n) == 0 &&
			(path[n] == '\0' || path[n] == '/')) {
			found = fs->places[i].place;
			longest = n;
		}
	}
	return found;
}
