/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses the directory of the file and opens it. */
#include "job/conf/conf.h"
#include "storage/spill/spill_priv.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

/* Opens a file that is inaccessible to others: unnamed or, on file systems without O_TMPFILE
 * (overlayfs before Linux 6.3), unlinked at once. */
static int open_file(const char *dir)
{
	int fd = open(dir, O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC | O_NOATIME, 0600);
	char *path;

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
		return fd < 0 ? -errno : fd;
	if (asprintf(&path, "%s/copper-spill-XXXXXX", dir) < 0)
		return -ENOMEM;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	else
		unlink(path);
	free(path);
	return fd;
}

static int check_type(const char *dir, struct cop_err *err)
{
	char type[COP_MOUNT_TYPE_SIZE];

	if (cop_mount_type(dir, type))
		return 0;
	if (cop_mount_is_shared(type))
		return cop_err_set(err, EINVAL,
			"--spill %s: this is a file system of type %s, which machines share over a network; name a directory on a disk of each node",
			dir, type);
	if (cop_mount_is_pseudo(type))
		return cop_err_set(err, EINVAL,
			"--spill %s: this is a file system of type %s, which is in memory itself; name a directory on a disk of each node, or give a larger --cache-size",
			dir, type);
	return 0;
}

static int check_dir(const char *dir, struct cop_err *err)
{
	struct stat st;

	if (stat(dir, &st))
		return cop_err_set(err, errno,
			"--spill %s: %m; name a directory that each node has on a disk of its own",
			dir);
	if (!S_ISDIR(st.st_mode))
		return cop_err_set(err, ENOTDIR, "--spill %s: this is not a directory", dir);
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return cop_err_set(err, EPERM,
			"--spill %s: this directory belongs to another user (%u); name one of your own, or of root, such as /tmp",
			dir, (unsigned)st.st_uid);
	return check_type(dir, err);
}

static int check_size(
	const char *dir, uint64_t *size, char note[COP_SPILL_NOTE_SIZE], struct cop_err *err)
{
	char asked[16], available[16], gets[16];
	struct statvfs fs;
	uint64_t free_bytes;

	note[0] = '\0';
	if (statvfs(dir, &fs))
		return cop_err_set(err, errno, "--spill %s: cannot see what is free: %m", dir);
	free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	cop_format_size(free_bytes, available);
	if (free_bytes / 2 < COP_CONF_SPILL_MIN)
		return cop_err_set(err, ENOSPC,
			"--spill %s: only %s are free there; remove something, or leave the option out",
			dir, available);
	if (*size > free_bytes)
		snprintf(note, COP_SPILL_NOTE_SIZE,
			"--spill %s: of the %s that it may use only %s are free, and it uses half of those, %s",
			dir, cop_format_size(*size, asked), available,
			cop_format_size(free_bytes / 2, gets));
	if (!*size || *size > free_bytes)
		*size = free_bytes / 2;
	return 0;
}

static int cannot_write(const char *dir, int rc, struct cop_err *err)
{
	return cop_err_set(err, -rc,
		"--spill %s: cannot make a file there: %s; name a directory that you may write to",
		dir, strerror(-rc));
}

int cop_spill_check(
	const char *dir, uint64_t *size, char note[COP_SPILL_NOTE_SIZE], struct cop_err *err)
{
	int rc = check_dir(dir, err), fd;

	if (!rc)
		rc = check_size(dir, size, note, err);
	if (rc)
		return rc;
	fd = open_file(dir);
	if (fd < 0)
		return cannot_write(dir, fd, err);
	close(fd);
	return 0;
}

int cop_spill_open(const struct cop_spill_conf *conf, char note[COP_SPILL_NOTE_SIZE],
	struct cop_spill **out, struct cop_err *err)
{
	struct cop_spill_conf checked = *conf;
	int rc = cop_spill_check(conf->dir, &checked.size, note, err), fd;

	if (rc)
		return rc;
	fd = open_file(conf->dir);
	if (fd < 0)
		return cannot_write(conf->dir, fd, err);
	rc = cop_spill_start(&checked, fd, out);
	return rc ? cop_err_set(err, -rc, "--spill: cannot start its threads: %s", strerror(-rc))
		  : 0;
}
