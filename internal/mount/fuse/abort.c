/* SPDX-License-Identifier: BSD-3-Clause */
/* Aborts a FUSE connection from outside (Documentation/filesystems/fuse.rst, "Aborting a filesystem
 * connection").
 *
 * The kernel closes a connection when its last descriptor is closed. A thread that notifies the
 * kernel of a changed name waits in the kernel for the directory's lock, which a lookup holds until
 * it is answered. If the process is killed in this state, the lookup is never answered: the thread
 * cannot leave the kernel, the descriptor stays open, and every program that accesses the mount
 * blocks unkillably. The same happens to a thread that reads its own process's mount: no signal,
 * not even SIGKILL, ends a request that the process has already received. */
#include "mount/fuse/fuse_priv.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static int is_ours_at(void *arg, const char *dir, const char *type)
{
	return strcmp(dir, arg) == 0 && strncmp(type, "fuse", 4) == 0;
}

/* With AT_STATX_DONT_SYNC the kernel answers from its cache, without a request to the node. */
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

/* Opens the FUSE control file system in a detached mount, which only root can create. */
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
