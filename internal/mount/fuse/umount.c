/* SPDX-License-Identifier: BSD-3-Clause */
/* Unmounts, with the system call as root and otherwise through fusermount3 or umount(8), and finds
 * the processes that use a mount. */
#include "mount/fuse/fuse_priv.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <sys/wait.h>

extern char **environ;

/* The helper programs report EBUSY only as text, so every failure counts as EBUSY. */
static int run_quietly(char *const argv[])
{
	posix_spawn_file_actions_t quiet;
	int status, rc;
	pid_t pid;

	posix_spawn_file_actions_init(&quiet);
	posix_spawn_file_actions_addopen(&quiet, 2, "/dev/null", O_WRONLY, 0);
	rc = posix_spawnp(&pid, argv[0], &quiet, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&quiet);
	if (rc)
		return -rc;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EBUSY;
}

/* fusermount3 relies on /etc/mtab, which some containers lack. util-linux's umount(8) reads /proc,
 * and lets users unmount their own fusermount3 mounts. */
static int run_helper(const char *mountpoint, bool lazy)
{
	char *fusermount[] = {
		"fusermount3", "-u", "-q", lazy ? "-z" : "--", (char *)mountpoint, NULL};
	char *umount[] = {"umount", lazy ? "-l" : "--", (char *)mountpoint, NULL};

	return run_quietly(fusermount) && run_quietly(umount) ? -EBUSY : 0;
}

int cop_fuse_umount(const char *mountpoint, bool lazy)
{
	if (umount2(mountpoint, UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) == 0)
		return 0;
	if (errno != EPERM)
		return -errno;
	return run_helper(mountpoint, lazy);
}

/* While a killed process is closing its descriptors, a request fails with ECONNABORTED, so it is
 * repeated. */
bool cop_fuse_is_dead(const char *mountpoint)
{
	struct statfs fs;
	int tries = 100, rc;

	do
		rc = statfs(mountpoint, &fs) ? errno : 0;
	while ((rc == ECONNABORTED || rc == EINTR) && --tries);
	return rc == ENOTCONN || rc == ECONNABORTED;
}

int cop_fuse_unmount_dead(const char *mountpoint)
{
	return cop_fuse_umount(mountpoint, true);
}

int cop_fuse_unmount_unused(const char *mountpoint)
{
	return cop_fuse_umount(mountpoint, false);
}

static bool link_is_under(int proc, const char *name, const char *mountpoint)
{
	char target[PATH_BYTES];
	ssize_t n = readlinkat(proc, name, target, sizeof(target) - 1);
	size_t len = strlen(mountpoint);

	if (n < 0)
		return false;
	target[n] = '\0';
	return strncmp(target, mountpoint, len) == 0 && (target[len] == '\0' || target[len] == '/');
}

static bool any_link_is_under(int proc, const char *dir_name, const char *mountpoint)
{
	int fd = openat(proc, dir_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	bool found = false;
	struct dirent *d;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	while (!found && (d = readdir(dir)))
		found = d->d_name[0] != '.' && link_is_under(fd, d->d_name, mountpoint);
	closedir(dir);
	return found;
}

/* Checks the working directory, root, executable, open files and mappings. Reading
 * /proc/PID/map_files takes privileges; without them only exe shows a mapping. */
static bool uses_mount(int proc, const char *mountpoint)
{
	return link_is_under(proc, "cwd", mountpoint) || link_is_under(proc, "root", mountpoint) ||
	       link_is_under(proc, "exe", mountpoint) ||
	       any_link_is_under(proc, "fd", mountpoint) ||
	       any_link_is_under(proc, "map_files", mountpoint);
}

static void add_holder(int proc, const char *pid, struct cop_buf *out)
{
	char name[64] = "?";
	int fd = openat(proc, "comm", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		ssize_t n = cop_read_full(fd, name, sizeof(name) - 1);

		name[n > 0 ? n - 1 : 0] = '\0';
		close(fd);
	}
	cop_buf_printf(out, "%s%s[%s]", out->len ? ", " : "", name, pid);
}

void cop_fuse_holders(const char *mountpoint, struct cop_buf *out)
{
	DIR *dir = opendir("/proc");
	struct dirent *d;

	while (dir && (d = readdir(dir))) {
		int proc;

		if (!isdigit((unsigned char)d->d_name[0]))
			continue;
		proc = openat(dirfd(dir), d->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (proc < 0)
			continue;
		if (atoi(d->d_name) != getpid() && uses_mount(proc, mountpoint))
			add_holder(proc, d->d_name, out);
		close(proc);
	}
	if (dir)
		closedir(dir);
}
