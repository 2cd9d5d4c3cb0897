/* SPDX-License-Identifier: BSD-3-Clause */
/* Which paths of the source are pseudo file systems of this node, or the mount point itself. They are found once, at the start, in
 * /proc/self/mountinfo (proc(5)); what is mounted later is not seen. */
#include "fs/fs_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLACES_MAX 256

static bool is_pseudo(const char *type)
{
	static const char *const types[] = {"proc", "sysfs", "devtmpfs", "devpts", "cgroup", "cgroup2",
		"tmpfs", "ramfs", "mqueue", "hugetlbfs", "debugfs", "tracefs", "securityfs", "bpf", "pstore",
		"configfs", "efivarfs", "binfmt_misc", "fusectl", "selinuxfs", "rpc_pipefs", "nsfs"};

	for (size_t i = 0; i < COP_ARRAY_SIZE(types); i++)
		if (strcmp(type, types[i]) == 0)
			return true;
	return false;
}

/* mountinfo writes space, tab, newline and backslash as \ooo. */
static void unescape(char *s)
{
	char *out = s;

	while (*s) {
		unsigned code;

		if (*s == '\\' && sscanf(s + 1, "%3o", &code) == 1) {
			*out++ = (char)code;
			s += 4;
		} else {
			*out++ = *s++;
		}
	}
	*out = '\0';
}

/* path relative to the source if it lies strictly below, else NULL. */
static const char *below(const char *source, const char *path)
{
	size_t n = strlen(source);

	if (n == 1)
		return path[0] == '/' && path[1] ? path + 1 : NULL;
	return strncmp(path, source, n) == 0 && path[n] == '/' && path[n + 1] ? path + n + 1 : NULL;
}

static int add(struct cop_fs *fs, const char *relative, enum place place)
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
	return p[fs->n_places++].path ? 0 : -ENOMEM;
}

static int add_mount(struct cop_fs *fs, char *line)
{
	char *dash = strstr(line, " - "), type[64], mount[PATH_BYTES];
	const char *relative;

	if (!dash || sscanf(dash, " - %63s", type) != 1 ||
	    sscanf(line, "%*s %*s %*s %*s %4095s", mount) != 1)
		return 0;
	unescape(mount);
	relative = below(fs->conf.source, mount);
	if (!relative || strcmp(mount, fs->conf.mountpoint) == 0)
		return 0;
	if (strcmp(type, "fuse.copper") == 0)
		return add(fs, relative, PLACE_SELF);
	return is_pseudo(type) ? add(fs, relative, PLACE_LOCAL) : 0;
}

int cop_fs_places_find(struct cop_fs *fs)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	const char *self = below(fs->conf.source, fs->conf.mountpoint);
	char *line = NULL;
	size_t size = 0;
	int rc = self ? add(fs, self, PLACE_SELF) : 0;

	while (f && !rc && getline(&line, &size, f) > 0)
		rc = add_mount(fs, line);
	free(line);
	if (f)
		fclose(f);
	for (size_t i = 0; i < fs->n_places; i++)
		fs->deliver_opens |= fs->places[i].place == PLACE_LOCAL;
	return rc;
}

void cop_fs_places_free(struct cop_fs *fs)
{
	for (size_t i = 0; i < fs->n_places; i++)
		free(fs->places[i].path);
	free(fs->places);
}

enum place cop_fs_place(const struct cop_fs *fs, const char *path)
{
	enum place found = PLACE_TREE;
	size_t longest = 0;

	for (size_t i = 0; i < fs->n_places; i++) {
		const char *p = fs->places[i].path;
		size_t n = strlen(p);

		if (n > longest && strncmp(path, p, n) == 0 && (path[n] == '\0' || path[n] == '/')) {
			found = fs->places[i].place;
			longest = n;
		}
	}
	return found;
}
