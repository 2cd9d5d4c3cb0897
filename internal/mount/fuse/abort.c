/* SPDX-License-Identifier: BSD-3-Clause */
/* Ending a FUSE connection from outside (Documentation/filesystems/fuse.rst, "Aborting a filesystem
 * connection").
 *
 * The kernel ends a connection when its last descriptor is closed. A thread that notifies the
 * kernel of a changed name waits there for the directory's lock, which a lookup holds until it is
 * answered. If the process is killed meanwhile, nobody answers the lookup. The thread then never
 * leaves the kernel, the descriptor stays open, and every program that looks at the mount waits for
 * ever and cannot be killed. So it is with a thread that reads the mount of its own process: a
 * signal ends no request that the process has taken, not even SIGKILL. */
#include "mount/fuse/fuse_priv.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static int is_ours_at(void *arg, const char *dir, const char *type)
{
	return strcmp(dir, arg) == 0 && strncmp(type, "fuse", 4) == 0;
}

/* AT_STATX_DONT_SYNC returns what the kernel knows and does not ask the node. */
unsigned cop_fuse_connection(const char *mountpoint)
{
	struct statx st;

	if (cop_mounts_each(is_ours_at, (void *)mountpoint) != 1 ||
		statx(AT_FDCWD, mountpoint,
			AT_STATX_DONT_SYNC | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_TYPE,
			&st) ||
		st.stx_dev_major)
		return 0;
	return st.stx_dev_minor;
}

/* Opens the control file system. Where none is mounted, root mounts one that has no path. */
static int open_control(void)
{
	int fs = (int)syscall(SYS_fsopen, "fusectl", FSOPEN_CLOEXEC), mnt = -1;

	if (fs < 0)
		return -1;
	if (syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
		mnt = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, 0);
	close(fs);
	return mnt;
}

static int write_abort(int dir, const char *path)
{
	int fd = openat(dir, path, O_WRONLY | O_CLOEXEC), rc;

	if (fd < 0)
		return -errno;
	rc = write(fd, "1", 1) == 1 ? 0 : -errno;
	close(fd);
	return rc;
}

int cop_fuse_abort(unsigned connection)
{
	char path[64], *name = path + sizeof("/sys/fs/fuse/connections/") - 1;
	int control, rc;

	snprintf(path, sizeof(path), "/sys/fs/fuse/connections/%u/abort", connection);
	rc = write_abort(AT_FDCWD, path);
	if (rc != -ENOENT && rc != -EACCES)
		return rc;
	control = open_control();
	if (control < 0)
		return rc;
	rc = write_abort(control, name);
	close(control);
	return rc;
}
