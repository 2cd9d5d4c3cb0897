/* SPDX-License-Identifier: BSD-3-Clause */
/* Node-local file systems below a root are not part of the shared tree, and a Copper mount would
 * show the same tree again. We find both beforehand, without touching the storage. */
#include "base/walk/walk_priv.h"

int cop_walk_mounts_add(void *arg, const char *dir, const char *type)
{
	struct mounts *m = arg;
	char **grown;

	if (m->n == MOUNTS_MAX || (!cop_mount_is_pseudo(type) && strcmp(type, "fuse.copper")))
		return 0;
	grown = reallocarray(m->path, m->n + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	m->path = grown;
	grown[m->n] = strdup(dir);
	return grown[m->n] ? (m->n++, 0) : -ENOMEM;
}

int cop_walk_mounts_load(struct mounts *m)
{
	int rc = cop_mounts_each(cop_walk_mounts_add, m);

	return rc == -ENOMEM ? rc : 0;
}

void cop_walk_mounts_free(struct mounts *m)
{
	for (size_t i = 0; i < m->n; i++)
		free(m->path[i]);
	free(m->path);
	*m = (struct mounts){0};
}

/* What follows the directory and a slash in path, or NULL. */
static const char *rest_of(const char *path, const char *dir, size_t len)
{
	if (len == 1)
		return path + 1;
	return strncmp(path, dir, len) == 0 && path[len] == '/' ? path + len + 1 : NULL;
}

bool cop_walk_mounts_in(const struct mounts *m, const char *dir, size_t len)
{
	for (size_t i = 0; i < m->n; i++) {
		const char *rest = rest_of(m->path[i], dir, len);

		if (rest && *rest && !strchr(rest, '/'))
			return true;
	}
	return false;
}

bool cop_walk_mounts_is(
	const struct mounts *m, const char *dir, size_t dir_len, const char *name, size_t len)
{
	for (size_t i = 0; i < m->n; i++) {
		const char *rest = rest_of(m->path[i], dir, dir_len);

		if (rest && strlen(rest) == len && memcmp(rest, name, len) == 0)
			return true;
	}
	return false;
}
