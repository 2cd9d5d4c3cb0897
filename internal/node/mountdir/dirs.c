/* SPDX-License-Identifier: BSD-3-Clause */
/* The directories of a place: their names, creation, removal, and the lock on the folder of a
 * private place. */
#include <dirent.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "node/mountdir/mountdir_priv.h"

#define OLD_S 5

void cop_mountdir_above(const char *path, char out[PATH_MAX])
{
	char copy[PATH_MAX];

	snprintf(copy, sizeof(copy), "%s", path);
	snprintf(out, PATH_MAX, "%s", dirname(copy));
}

int cop_mountdir_resolve(const char *path, char out[PATH_MAX], unsigned depth)
{
	char copy[PATH_MAX], parent[PATH_MAX];
	size_t len;
	int rc;

	if (realpath(path, out))
		return 0;
	if ((errno != ENOENT && errno != ENOTCONN && errno != ECONNABORTED) ||
		depth == COP_MOUNTDIR_MADE_MAX)
		return -errno;
	cop_mountdir_above(path, parent);
	rc = cop_mountdir_resolve(parent, out, depth + 1);
	if (rc)
		return rc;
	snprintf(copy, sizeof(copy), "%s", path);
	len = strlen(out);
	if (snprintf(out + len, PATH_MAX - len, "%s%s", len > 1 ? "/" : "", basename(copy)) >=
		(int)(PATH_MAX - len))
		return -ENAMETOOLONG;
	return 0;
}

static int make_dirs(const char *path, mode_t mode, unsigned *made, unsigned depth)
{
	char parent[PATH_MAX];
	int rc;

	if (mkdir(path, mode) == 0) {
		(*made)++;
		return 0;
	}
	if (errno != ENOENT || depth == COP_MOUNTDIR_MADE_MAX)
		return errno == EEXIST ? 0 : -errno;
	cop_mountdir_above(path, parent);
	if (strcmp(parent, path) == 0)
		return -ENOENT;
	rc = make_dirs(parent, mode, made, depth + 1);
	if (!rc && mkdir(path, mode) == 0)
		(*made)++;
	else if (!rc && errno != EEXIST)
		rc = -errno;
	/* A failure must have no side effects, so remove the parent that was created here. */
	if (rc && *made && rmdir(parent) == 0)
		(*made)--;
	return rc;
}

int cop_mountdir_make_dirs(const char *path, mode_t mode, unsigned *made)
{
	return make_dirs(path, mode, made, 0);
}

void cop_mountdir_remember(struct cop_mountdir *p)
{
	struct stat st;

	if (lstat(p->path, &st) == 0) {
		p->dev = st.st_dev;
		p->ino = st.st_ino;
	}
}

/* Removes the created directories, innermost first, up to one that is not empty. */
void cop_mountdir_remove_made(const struct cop_mountdir *p)
{
	char path[PATH_MAX], parent[PATH_MAX];
	struct stat st;

	if (!p->path[0])
		return;
	if (p->made && lstat(p->path, &st) == 0 && (st.st_dev != p->dev || st.st_ino != p->ino))
		return;
	snprintf(path, sizeof(path), "%s", p->path);
	for (unsigned i = 0; i < p->made && (rmdir(path) == 0 || errno == ENOENT); i++) {
		cop_mountdir_above(path, parent);
		snprintf(path, sizeof(path), "%s", parent);
	}
}

int cop_mountdir_make_folder(const char *folder, struct cop_err *err)
{
	return mkdir(folder, 0700) == 0 || errno == EEXIST
		       ? 0
		       : cop_err_set(err, errno, "cannot create the directory %s: %s", folder,
				 strerror(errno));
}

static int open_folder(const char *folder, struct stat *st, struct cop_err *err)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	*st = (struct stat){0};
	if (fd < 0)
		return cop_err_set(
			err, errno, "cannot open the directory %s: %s", folder, strerror(errno));
	if (fstat(fd, st) == 0 && st->st_uid == geteuid() && !(st->st_mode & 077))
		return fd;
	close(fd);
	return cop_err_set(err, EACCES,
		"the directory %s is not yours alone (user %u, mode %o): remove it, or name a mount point",
		folder, (unsigned)st->st_uid, st->st_mode & 07777);
}

int cop_mountdir_lock(const char *folder, struct cop_err *err)
{
	struct stat st, now;
	int fd = open_folder(folder, &st, err), rc;

	if (fd < 0)
		return fd;
	rc = flock(fd, LOCK_EX | LOCK_NB) ? -errno : 0;
	if (rc)
		cop_err_set(err, -rc, "cannot lock the directory %s: %s; name a mount point",
			folder, strerror(-rc));
	else if (lstat(folder, &now) || now.st_dev != st.st_dev || now.st_ino != st.st_ino)
		rc = cop_err_set(
			err, ENOENT, "the directory %s vanished; name a mount point", folder);
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

/* ---- remains of killed nodes ---- */

/* Whether the folder is older than OLD_S. A node locks its folder much sooner after creating it. */
static bool is_old(const char *folder)
{
	struct stat st;

	return lstat(folder, &st) == 0 && S_ISDIR(st.st_mode) &&
	       st.st_mtim.tv_sec + OLD_S < cop_wall_ns() / (int64_t)COP_NS_PER_S;
}

/* Mount points and nonempty directories stay, because rmdir fails on them. */
static void remove_empty(const char *folder)
{
	int fd = cop_mountdir_lock(folder, NULL);
	DIR *d = fd < 0 ? NULL : opendir(folder);
	struct dirent *entry;

	while (d && (entry = readdir(d)))
		if (entry->d_name[0] != '.')
			unlinkat(fd, entry->d_name, AT_REMOVEDIR);
	if (d)
		closedir(d);
	if (fd >= 0) {
		rmdir(folder);
		close(fd);
	}
}

void cop_mountdir_sweep(const char *dir)
{
	char folder[PATH_MAX];
	DIR *d = opendir(dir);
	struct dirent *entry;

	while (d && (entry = readdir(d))) {
		if (strncmp(entry->d_name, COP_MOUNTDIR_FOLDER, strlen(COP_MOUNTDIR_FOLDER)) != 0)
			continue;
		snprintf(folder, sizeof(folder), "%.3000s/%s", dir, entry->d_name);
		if (is_old(folder))
			remove_empty(folder);
	}
	if (d)
		closedir(d);
}
