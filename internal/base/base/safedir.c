/* SPDX-License-Identifier: BSD-3-Clause */
/* Directories in which we trust only this user's files. If another user can rename or create
 * entries in a directory, any write by path can be redirected: a link named logs is all it takes.
 * So below a guarded directory, each component of a path is opened relative to the previous one and
 * never through a link (openat(2), O_NOFOLLOW; openat2(2) would need a single call, but some sites'
 * kernels predate it). Each component must belong to a user who has full access anyway. */
#include <fcntl.h>
#include <limits.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/base/base.h"

#define GUARDED_MAX 64
#define TRIES 100
#define WAY_OUT "choose a directory that is yours alone"

static struct {
	pthread_mutex_t lock;
	unsigned count;
	char *dir[GUARDED_MAX];
} guarded = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_trusted(uid_t uid)
{
	return uid == 0 || uid == geteuid();
}

/* Many systems give each user a private group with the user's number (useradd(8), USERGROUPS_ENAB
 * in login.defs(5)). Only the name service knows the group's name and members, and a static program
 * cannot load name service modules. */
static bool is_own_group(gid_t gid)
{
	return gid == getegid() && gid == geteuid();
}

/* If there is an access control list, the group bits are the upper bound of what it grants. */
static bool group_may_write(int fd, const struct stat *st)
{
	return (st->st_mode & S_IWGRP) &&
	       (!is_own_group(st->st_gid) || fgetxattr(fd, "system.posix_acl_access", NULL, 0) > 0);
}

static int refuse_owner(uid_t uid, const char *path, int len, struct cop_err *err)
{
	return cop_err_set(err, EPERM,
		"%.*s belongs to user %u, who could change what is written there: " WAY_OUT, len,
		path, uid);
}

static int check_dir(int fd, const char *path, int len, struct cop_err *err)
{
	struct stat st;

	if (fstat(fd, &st))
		return cop_err_set(err, errno, "%.*s: %s", len, path, strerror(errno));
	if (!is_trusted(st.st_uid))
		return refuse_owner(st.st_uid, path, len, err);
	if ((st.st_mode & S_IWOTH) || group_may_write(fd, &st))
		return cop_err_set(err, EPERM,
			"others may write to %.*s (mode %04o), and could change what is written there: chmod go-w it, or " WAY_OUT,
			len, path, st.st_mode & 07777);
	return 0;
}

/* Links on the way to the directory must belong to root or this user. */
static int check_above(const char *path, struct cop_err *err)
{
	char *copy = strdup(path);
	struct stat st;
	int rc = copy ? 0 : cop_err_set(err, ENOMEM, "no memory for a path");

	for (char *end = copy; !rc && *end;) {
		char cut;

		end += strspn(end, "/");
		end += strcspn(end, "/");
		cut = *end;
		*end = '\0';
		if (lstat(copy, &st) == 0 && S_ISLNK(st.st_mode) && !is_trusted(st.st_uid))
			rc = cop_err_set(err, EPERM, "%s is a symbolic link of user %u: " WAY_OUT,
				copy, st.st_uid);
		*end = cut;
	}
	free(copy);
	return rc;
}

static int remember_dir(const char *dir)
{
	char *copy = strdup(dir);
	int rc = copy ? 0 : -ENOMEM;

	for (size_t len = copy ? strlen(copy) : 0; len > 1 && copy[len - 1] == '/'; len--)
		copy[len - 1] = '\0';
	pthread_mutex_lock(&guarded.lock);
	for (unsigned i = 0; i < guarded.count && copy; i++)
		if (strcmp(guarded.dir[i], copy) == 0) {
			free(copy);
			copy = NULL;
		}
	if (copy && guarded.count == GUARDED_MAX) {
		free(copy);
		rc = -ENOSPC;
	} else if (copy) {
		guarded.dir[guarded.count++] = copy;
	}
	pthread_mutex_unlock(&guarded.lock);
	return rc;
}

int cop_safedir(const char *dir, struct cop_err *err)
{
	int fd, rc = check_above(dir, err);
	struct stat st;

	if (rc)
		return rc;
	/* Check before opening, because the owner may have denied us access. */
	if (stat(dir, &st) == 0 && !is_trusted(st.st_uid))
		return refuse_owner(st.st_uid, dir, (int)strlen(dir), err);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return cop_err_set(err, errno, "%s: %s", dir, strerror(errno));
	rc = check_dir(fd, dir, (int)strlen(dir), err);
	close(fd);
	if (!rc && (rc = remember_dir(dir)))
		cop_err_set(err, -rc, "%s: %s", dir, strerror(-rc));
	return rc;
}

/* The length of the guarded directory that path starts with; 0 if none. */
static size_t guarded_part(const char *path)
{
	size_t found = 0;

	pthread_mutex_lock(&guarded.lock);
	for (unsigned i = 0; i < guarded.count; i++) {
		size_t len = strlen(guarded.dir[i]);

		if (strncmp(path, guarded.dir[i], len) == 0 && path[len] == '/' &&
			path[len + strspn(path + len, "/")] && len > found)
			found = len;
	}
	pthread_mutex_unlock(&guarded.lock);
	return found;
}

static int enter_part(int dir, const char *path, const char *part, size_t len, struct cop_err *err)
{
	char name[NAME_MAX + 1];
	int fd, rc;

	if (len > NAME_MAX)
		return cop_err_set(err, ENAMETOOLONG, "%s: %s", path, strerror(ENAMETOOLONG));
	memcpy(name, part, len);
	name[len] = '\0';
	if (strcmp(name, "..") == 0)
		return cop_err_set(
			err, EINVAL, "%s leads out of a directory that is guarded", path);
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		struct stat st;

		rc = errno;
		if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
			return cop_err_set(err, ELOOP,
				"%.*s is a symbolic link, and Copper never writes through one: remove it",
				(int)(part + len - path), path);
		return cop_err_set(
			err, rc, "%.*s: %s", (int)(part + len - path), path, strerror(rc));
	}
	rc = check_dir(fd, path, (int)(part + len - path), err);
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

/* Opens the last directory of path, starting from the guarded one. With last, the last component is
 * also treated as a directory. */
static int walk_path(
	const char *path, size_t from, bool last, const char **name, struct cop_err *err)
{
	const char *part = path + from + strspn(path + from, "/");
	char *root = strndup(path, from);
	int fd = root ? open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1, next;

	next = fd < 0 ? cop_err_set(err, root ? errno : ENOMEM, "%.*s: %s", (int)from, path,
				strerror(errno))
		      : check_dir(fd, path, (int)from, err);
	free(root);
	while (fd >= 0 && next >= 0 && *part) {
		size_t len = strcspn(part, "/"), slashes = strspn(part + len, "/");

		if (!last && !part[len + slashes])
			break;
		next = enter_part(fd, path, part, len, err);
		if (next < 0)
			break;
		close(fd);
		fd = next;
		part += len + slashes;
	}
	*name = part;
	if (next >= 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return next;
}

int cop_safedir_check(const char *path, struct cop_err *err)
{
	size_t from = guarded_part(path);
	const char *name;
	int fd = from ? walk_path(path, from, true, &name, err) : -ENOENT;

	if (fd >= 0)
		close(fd);
	return fd >= 0 || fd == -ENOENT ? 0 : fd;
}

int cop_dir_of(const char *path, struct cop_dir *at)
{
	size_t from = guarded_part(path);

	*at = (struct cop_dir){.fd = AT_FDCWD, .name = path};
	if (!from)
		return 0;
	at->fd = walk_path(path, from, false, &at->name, NULL);
	at->nofollow = O_NOFOLLOW;
	return at->fd < 0 ? at->fd : 0;
}

void cop_dir_done(struct cop_dir *at)
{
	if (at->fd >= 0)
		close(at->fd);
}

int cop_open_temp(const struct cop_dir *at, char **tmp)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz012345";

	for (int i = 0; i < TRIES; i++) {
		unsigned char raw[6];
		char end[sizeof(raw) + 1] = {0};
		int fd;

		if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
			return -EIO;
		for (size_t k = 0; k < sizeof(raw); k++)
			end[k] = letters[raw[k] % 32];
		if (asprintf(tmp, "%s.%d.%s", at->name, (int)getpid(), end) < 0)
			return -ENOMEM;
		fd = openat(at->fd, *tmp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd >= 0)
			return fd;
		free(*tmp);
		*tmp = NULL;
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

int cop_unlink(const char *path)
{
	struct cop_dir at;
	int rc = cop_dir_of(path, &at);

	if (!rc && unlinkat(at.fd, at.name, 0))
		rc = -errno;
	cop_dir_done(&at);
	return rc;
}

int cop_rename(const char *from, const char *to)
{
	struct cop_dir old, new;
	int rc = cop_dir_of(from, &old);

	if (rc)
		return rc;
	rc = cop_dir_of(to, &new);
	if (!rc && renameat(old.fd, old.name, new.fd, new.name))
		rc = -errno;
	cop_dir_done(&old);
	cop_dir_done(&new);
	return rc;
}
