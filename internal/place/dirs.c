/* SPDX-License-Identifier: BSD-3-Clause */
/* The directories of a place: their names, made and removed, and the lock on the folder of a
 * private one. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "place/place_priv.h"

void cop_place_above(const char *path, char out[PATH_MAX])
{
	char copy[PATH_MAX];

	snprintf(copy, sizeof(copy), "%s", path);
	snprintf(out, PATH_MAX, "%s", dirname(copy));
}

int cop_place_resolve(const char *path, char out[PATH_MAX], unsigned depth)
{
	char copy[PATH_MAX], parent[PATH_MAX];
	size_t len;
	int rc;

	if (realpath(path, out))
		return 0;
	if ((errno != ENOENT && errno != ENOTCONN && errno != ECONNABORTED) ||
		depth == COP_PLACE_MADE_MAX)
		return -errno;
	cop_place_above(path, parent);
	rc = cop_place_resolve(parent, out, depth + 1);
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
	if (errno != ENOENT || depth == COP_PLACE_MADE_MAX)
		return errno == EEXIST ? 0 : -errno;
	cop_place_above(path, parent);
	if (strcmp(parent, path) == 0)
		return -ENOENT;
	rc = make_dirs(parent, mode, made, depth + 1);
	if (!rc && mkdir(path, mode) == 0)
		(*made)++;
	else if (!rc && errno != EEXIST)
		rc = -errno;
	/* It was made here: who fails leaves nothing. */
	if (rc && *made && rmdir(parent) == 0)
		(*made)--;
	return rc;
}

int cop_place_make_dirs(const char *path, mode_t mode, unsigned *made)
{
	return make_dirs(path, mode, made, 0);
}

void cop_place_remember(struct cop_place *p)
{
	struct stat st;

	if (lstat(p->path, &st) == 0) {
		p->dev = st.st_dev;
		p->ino = st.st_ino;
	}
}

/* From the inside out, as many as were made; what is not empty stays. */
void cop_place_remove_made(const struct cop_place *p)
{
	char path[PATH_MAX], parent[PATH_MAX];
	struct stat st;

	if (!p->path[0])
		return;
	if (p->made && lstat(p->path, &st) == 0 && (st.st_dev != p->dev || st.st_ino != p->ino))
		return;
	snprintf(path, sizeof(path), "%s", p->path);
	for (unsigned i = 0; i < p->made && (rmdir(path) == 0 || errno == ENOENT); i++) {
		cop_place_above(path, parent);
		snprintf(path, sizeof(path), "%s", parent);
	}
}

int cop_place_make_folder(const char *folder, struct cop_err *err)
{
	return mkdir(folder, 0700) == 0 || errno == EEXIST
		       ? 0
		       : cop_err_set(err, errno, "cannot create the directory %s: %s", folder,
				 strerror(errno));
}

static int open_folder(const char *folder, struct stat *st, struct cop_err *err)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

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

/* A descriptor that holds the lock. -EWOULDBLOCK: a node has it; -ENOENT: it has vanished. */
int cop_place_lock(const char *folder, struct cop_err *err)
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
