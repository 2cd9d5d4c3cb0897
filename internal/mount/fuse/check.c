/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks whether a directory can be a mount point, before anything starts. */
#include "mount/fuse/fuse_priv.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/utsname.h>

/* The mount on exactly this directory. If there are several, the last one covers the others. */
struct on {
	const char *dir;
	char type[COP_MOUNT_TYPE_SIZE];
};

static int is_on(void *arg, const char *dir, const char *type)
{
	struct on *on = arg;

	if (strcmp(dir, on->dir) == 0)
		snprintf(on->type, sizeof(on->type), "%s", type);
	return 0;
}

static int check_type(const char *path, struct cop_err *err)
{
	char *whole = realpath(path, NULL);
	struct on on = {.dir = whole ? whole : path};

	cop_mounts_each(is_on, &on);
	free(whole);
	if (strcmp(on.type, "fuse.copper") == 0)
		return cop_err_set(err, EBUSY,
			"%s: a copper node is mounted there already; stop it with 'copper stop %s'",
			path, path);
	if (strncmp(on.type, "fuse", 4) == 0)
		return cop_err_set(err, EBUSY,
			"%s: a %s file system is mounted there already; choose another mount point",
			path, on.type);
	return 0;
}

static int check_empty(const char *path, struct cop_err *err)
{
	DIR *dir = opendir(path);
	struct dirent *d;
	int rc = 0;

	if (!dir)
		return cop_err_set(err, errno, "%s: cannot be used as a mount point: %s", path,
			strerror(errno));
	while (!rc && (d = readdir(dir)))
		if (strcmp(d->d_name, ".") && strcmp(d->d_name, ".."))
			rc = cop_err_set(err, ENOTEMPTY,
				"%s: is not empty (it holds '%s'), and a mount would hide that; choose an empty directory",
				path, d->d_name);
	closedir(dir);
	return rc;
}

static bool is_in(const char *dir, size_t len)
{
	char file[PATH_BYTES];

	return snprintf(file, sizeof(file), "%.*s/fusermount3", (int)len, dir) <
		       (int)sizeof(file) &&
	       access(file, X_OK) == 0;
}

static bool is_in_any(const char *dirs)
{
	for (size_t len; *dirs; dirs += len + (dirs[len] == ':')) {
		len = strcspn(dirs, ":");
		if (len && is_in(dirs, len))
			return true;
	}
	return false;
}

bool cop_fuse_have_fusermount(void)
{
	const char *path = getenv("PATH");

	return (path && is_in_any(path)) || is_in_any("/usr/bin:/bin");
}

int cop_fuse_check_machine(struct cop_err *err)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return cop_err_set(err, ENOENT,
			"/dev/fuse is not there; load the kernel module ('modprobe fuse') or ask for it in this container");
	if (fd < 0)
		return cop_err_set(err, errno, "/dev/fuse cannot be opened: %s%s", strerror(errno),
			errno == EACCES
				? "; it must be open to ordinary users (mode 0666, as distributions have it): ask those who run this machine"
				: "");
	close(fd);
	if (geteuid() != 0 && !cop_fuse_have_fusermount())
		return cop_err_set(err, ENOENT,
			"fusermount3 is not installed, and only root can mount without it; install the package fuse3");
	return 0;
}

int cop_fuse_check(const char *mountpoint, struct cop_err *err)
{
	unsigned off;
	struct stat st;
	int rc = cop_fuse_caps_parse(getenv("COPPER_DISABLE_CAPS"), &off, err);

	if (rc)
		return rc;
	if (cop_fuse_is_dead(mountpoint))
		return cop_err_set(err, ENOTCONN,
			"%s: a node that died left its mount there; remove it with 'copper stop %s'",
			mountpoint, mountpoint);
	if (stat(mountpoint, &st)) {
		if (errno == ENOENT)
			return cop_err_set(err, ENOENT,
				"%s: there is no such directory; make the mount point first ('mkdir -p %s')",
				mountpoint, mountpoint);
		return cop_err_set(err, errno, "%s: %s", mountpoint, strerror(errno));
	}
	if (!S_ISDIR(st.st_mode))
		return cop_err_set(err, ENOTDIR,
			"%s: is not a directory; a mount point is an empty directory", mountpoint);
	/* Before the check for write permission, which nobody has on a read-only mount. */
	rc = check_type(mountpoint, err);
	if (rc)
		return rc;
	if (geteuid() != 0 && access(mountpoint, W_OK))
		return cop_err_set(err, EACCES,
			"%s: you may not write to it, and an ordinary user can only mount on a directory of their own; choose another mount point",
			mountpoint);
	rc = check_empty(mountpoint, err);
	return rc ? rc : cop_fuse_check_machine(err);
}

bool cop_fuse_check_shared(const char *mountpoint, struct cop_err *why)
{
	char type[COP_MOUNT_TYPE_SIZE];

	if (cop_mount_type(mountpoint, type) || !cop_mount_is_shared(type))
		return false;
	cop_err_set(why, EREMOTE,
		"%s is on %s, so each path through the mount begins at the shared file system; choose a directory of the node itself, such as one below /tmp",
		mountpoint, type);
	return true;
}

int cop_fuse_check_allow_other(struct cop_err *err)
{
	FILE *f = geteuid() ? fopen("/etc/fuse.conf", "re") : NULL;
	char line[256], word[32], rest[2];
	bool allowed = geteuid() == 0;

	while (f && !allowed && fgets(line, sizeof(line), f))
		allowed = sscanf(line, "%31s %1s", word, rest) == 1 &&
			  strcmp(word, "user_allow_other") == 0;
	if (f)
		fclose(f);
	return allowed ? 0
		       : cop_err_set(err, EPERM,
				 "--allow-other needs the line user_allow_other in /etc/fuse.conf; ask the administrator of this machine, or leave it out");
}

/* The kernel features that the mount uses, with the kernel version that introduced each (FUSE
 * protocols 7.21 to 7.30). */
void cop_fuse_check_kernel(char release[65], struct cop_buf *lacks)
{
	static const struct {
		unsigned major, minor;
		const char *name;
	} since[] = {{3, 9, "readdirplus"}, {3, 15, "no_open"}, {4, 7, "parallel_dirops"},
		{4, 20, "cache_symlinks"}, {5, 1, "no_opendir"}, {5, 2, "explicit_inval_data"}};
	unsigned major = 0, minor = 0;
	struct utsname u;

	release[0] = '\0';
	if (uname(&u) || sscanf(u.release, "%u.%u", &major, &minor) != 2)
		return;
	snprintf(release, 65, "%s", u.release);
	for (size_t i = 0; i < COP_ARRAY_SIZE(since); i++)
		if (major < since[i].major || (major == since[i].major && minor < since[i].minor))
			cop_buf_printf(lacks, "%s%s", lacks->len ? ", " : "", since[i].name);
}
