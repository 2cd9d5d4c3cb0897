/* SPDX-License-Identifier: BSD-3-Clause */
/* Determines what it means that a directory's listing lacks a name.
 *
 * A name can exist without being listed: snapshots on NFS, ZFS or GPFS, .lustre, mounts that an
 * automounter creates on lookup, any name spelled in another case. Only file systems known to list
 * all names are trusted; a FUSE or unknown file system may do anything. */
#include "storage/origin/origin_priv.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#ifndef FS_CASEFOLD_FL
#define FS_CASEFOLD_FL 0x40000000
#endif
#define MOUNTINFO_MAX (64 * COP_MIB)
/* The kernel allows two nested overlays. */
#define OVERLAYS 3

/* Numbers from linux/magic.h and from the drivers' sources. */
enum cop_origin_lists cop_origin_type_lists(uint32_t type)
{
	static const struct {
		uint32_t type;
		enum cop_origin_lists lists;
	} known[] = {{AUTOFS_SUPER_MAGIC, COP_ORIGIN_LISTS_NOTHING},
		{EXT4_SUPER_MAGIC, COP_ORIGIN_LISTS_BY_FLAG},
		{F2FS_SUPER_MAGIC, COP_ORIGIN_LISTS_BY_FLAG},
		{TMPFS_MAGIC, COP_ORIGIN_LISTS_BY_FLAG}, {BTRFS_SUPER_MAGIC, COP_ORIGIN_LISTS_ALL},
		{XFS_SUPER_MAGIC, COP_ORIGIN_LISTS_ALL}, {RAMFS_MAGIC, COP_ORIGIN_LISTS_ALL},
		{SQUASHFS_MAGIC, COP_ORIGIN_LISTS_ALL}, {CRAMFS_MAGIC, COP_ORIGIN_LISTS_ALL},
		{0xE0F5E1E2 /* erofs */, COP_ORIGIN_LISTS_ALL},
		/* These accept alternative spellings of names, whatever the server. */
		{MSDOS_SUPER_MAGIC, COP_ORIGIN_LISTS_SPELLINGS},
		{0x2011BAB0 /* exfat */, COP_ORIGIN_LISTS_SPELLINGS},
		{0x5346544E /* ntfs */, COP_ORIGIN_LISTS_SPELLINGS},
		{0x7366746E /* ntfs3 */, COP_ORIGIN_LISTS_SPELLINGS},
		{SMB_SUPER_MAGIC, COP_ORIGIN_LISTS_SPELLINGS},
		{0xFF534D42 /* cifs */, COP_ORIGIN_LISTS_SPELLINGS},
		{0xFE534D42 /* smb2 */, COP_ORIGIN_LISTS_SPELLINGS},
		{0x4244 /* hfs */, COP_ORIGIN_LISTS_SPELLINGS},
		{0x482B /* hfsplus */, COP_ORIGIN_LISTS_SPELLINGS},
		{ISOFS_SUPER_MAGIC, COP_ORIGIN_LISTS_SPELLINGS},
		{0x786F4256 /* vboxsf */, COP_ORIGIN_LISTS_SPELLINGS}};

	for (size_t i = 0; i < COP_ARRAY_SIZE(known); i++)
		if (type == known[i].type)
			return known[i].lists;
	return COP_ORIGIN_LISTS_HIDES;
}

/* ---- case ---- */

/* Inverts the case of the letters of a name; false: it has no letters. */
static bool respell(const char *name, char out[256])
{
	bool letters = false;
	size_t i;

	for (i = 0; i < 255 && name[i]; i++) {
		bool letter = (name[i] | 0x20) >= 'a' && (name[i] | 0x20) <= 'z';

		out[i] = letter ? (char)(name[i] ^ 0x20) : name[i];
		letters |= letter;
	}
	out[i] = '\0';
	return letters;
}

/* Looks up the names of a block in another spelling. Returns 1 if such a name does not exist, 0 if
 * it is the same file, -1 if no name has letters. */
static int try_spellings(struct cop_origin_real *o, int dir, const char *block, ssize_t n)
{
	char other[256];
	struct stat st;

	for (ssize_t at = 0; at < n;) {
		const struct dirent64 *d = (const void *)(block + at);

		at += d->d_reclen;
		if (!respell(d->d_name, other))
			continue;
		cop_origin_count(o);
		if (fstatat(dir, other, &st, AT_SYMLINK_NOFOLLOW))
			return errno == ENOENT;
		if (st.st_ino == d->d_ino)
			return 0;
	}
	return -1;
}

/* XFS has no flag for case folding per directory: mkfs.xfs -n version=ci applies to the whole file
 * system. Returns -1 if this directory does not tell. */
static int keeps_case(struct cop_origin_real *o, int fd)
{
	char block[4096] __attribute__((aligned(8)));
	int dir = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), keeps = -1;
	ssize_t n;

	cop_origin_count(o);
	if (dir < 0)
		return -1;
	cop_origin_count(o);
	n = getdents64(dir, block, sizeof(block));
	if (n > 0)
		keeps = try_spellings(o, dir, block, n);
	close(dir);
	return keeps;
}

/* The kernel answers this from the cached inode of the directory. File systems without these flags
 * have no directories that fold case. */
static bool folds_case(int fd)
{
	int dir = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), flags = 0;
	bool folds =
		dir < 0 || (ioctl(dir, FS_IOC_GETFLAGS, &flags) == 0 && flags & FS_CASEFOLD_FL);

	if (dir >= 0)
		close(dir);
	return folds;
}

/* ---- overlays ---- */

struct layers {
	struct cop_origin_real *o;
	unsigned depth;
	enum cop_origin_lists lists; /* the weakest guarantee of any layer */
	bool known;
};

static enum cop_origin_lists find_lists(
	struct cop_origin_real *o, int fd, uint64_t dev, unsigned depth, bool *known);

static bool add_layer(void *arg, const char *dir)
{
	struct layers *l = arg;
	enum cop_origin_lists lists;
	struct stat st;
	int fd;

	cop_origin_count(l->o);
	fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (fstat(fd, &st)) {
		close(fd);
		return false;
	}
	lists = find_lists(l->o, fd, st.st_dev, l->depth, &l->known);
	close(fd);
	l->lists = COP_MIN(l->lists, lists);
	return lists >= COP_ORIGIN_LISTS_BY_FLAG;
}

/* Handles an option that lists one or more directories. Colons and backslashes in names are escaped
 * with a backslash; an overlay with such names is not trusted. */
static bool add_layers(char *dirs, bool (*fn)(void *arg, const char *dir), void *arg)
{
	char *save = NULL;

	cop_mount_unescape(dirs);
	if (strchr(dirs, '\\'))
		return false;
	for (char *dir = strtok_r(dirs, ":", &save); dir; dir = strtok_r(NULL, ":", &save))
		if (*dir != '/' || !fn(arg, dir))
			return false;
	return true;
}

bool cop_origin_layers(char *options, bool (*fn)(void *arg, const char *dir), void *arg)
{
	static const char *const names[] = {"lowerdir=", "lowerdir+=", "upperdir=", "datadir+="};
	char *save = NULL;
	bool any = false;

	for (char *at = strtok_r(options, ",", &save); at; at = strtok_r(NULL, ",", &save))
		for (size_t i = 0; i < COP_ARRAY_SIZE(names); i++) {
			size_t len = strlen(names[i]);

			if (strncmp(at, names[i], len))
				continue;
			if (!add_layers(at + len, fn, arg))
				return false;
			any = true;
		}
	return any;
}

/* Finds the options of an overlay in mountinfo: ... major:minor ... - overlay SOURCE OPTIONS. */
static char *find_options(char *mounts, uint64_t dev)
{
	char *save = NULL, *dash, *options;
	unsigned major, minor;

	for (char *line = strtok_r(mounts, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (sscanf(line, "%*u %*u %u:%u", &major, &minor) != 2 ||
			makedev(major, minor) != dev || !(dash = strstr(line, " - overlay ")))
			continue;
		options = strchr(dash + strlen(" - overlay "), ' ');
		return options ? options + 1 : NULL;
	}
	return NULL;
}

/* An overlay shows the names of its layers, so it lists all names if every layer does. A layer may
 * be inaccessible: inside a container, its path refers to the host. */
static enum cop_origin_lists find_overlay(
	struct cop_origin_real *o, uint64_t dev, unsigned depth, bool *known)
{
	struct layers l = {o, depth + 1, COP_ORIGIN_LISTS_ALL, true};
	char *text = NULL, *options = NULL;
	bool all = false;
	size_t len;

	if (depth < OVERLAYS &&
		cop_read_file("/proc/self/mountinfo", MOUNTINFO_MAX, &text, &len) == 0)
		options = find_options(text, dev);
	if (options)
		all = cop_origin_layers(options, add_layer, &l);
	free(text);
	*known = l.known;
	return all ? l.lists : COP_MIN(l.lists, COP_ORIGIN_LISTS_HIDES);
}

/* ---- all file systems ---- */

/* Sets *known if the result applies to all directories of this file system. */
static enum cop_origin_lists find_lists(
	struct cop_origin_real *o, int fd, uint64_t dev, unsigned depth, bool *known)
{
	struct statfs fs;
	int keeps;

	*known = true;
	cop_origin_count(o);
	if (fstatfs(fd, &fs)) {
		*known = false;
		return COP_ORIGIN_LISTS_HIDES;
	}
	if ((uint32_t)fs.f_type == OVERLAYFS_SUPER_MAGIC)
		return find_overlay(o, dev, depth, known);
	if ((uint32_t)fs.f_type != XFS_SUPER_MAGIC)
		return cop_origin_type_lists((uint32_t)fs.f_type);
	keeps = keeps_case(o, fd);
	*known = keeps >= 0;
	return keeps == 1 ? COP_ORIGIN_LISTS_ALL : COP_ORIGIN_LISTS_SPELLINGS;
}

static bool is_known(struct cop_origin_types *t, uint64_t dev, enum cop_origin_lists *lists)
{
	bool known = false;

	pthread_mutex_lock(&t->lock);
	for (unsigned i = 0; i < t->count && !known; i++) {
		known = t->dev[i].dev == dev;
		if (known)
			*lists = t->dev[i].lists;
	}
	pthread_mutex_unlock(&t->lock);
	return known;
}

static void note(struct cop_origin_types *t, uint64_t dev, enum cop_origin_lists lists)
{
	pthread_mutex_lock(&t->lock);
	if (t->count < COP_ORIGIN_TYPES) {
		t->dev[t->count].dev = dev;
		t->dev[t->count++].lists = lists;
	}
	pthread_mutex_unlock(&t->lock);
}

/* Each device is a separate file system, so one check per device is enough. */
static enum cop_origin_lists lists_of(struct cop_origin_real *o, int fd, uint64_t dev)
{
	enum cop_origin_lists lists = COP_ORIGIN_LISTS_HIDES;
	bool known;

	if (is_known(&o->types, dev, &lists))
		return lists;
	lists = find_lists(o, fd, dev, 0, &known);
	if (known)
		note(&o->types, dev, lists);
	return lists;
}

uint32_t cop_origin_listing_flags(struct cop_origin_real *o, int fd, uint64_t dev)
{
	enum cop_origin_lists lists = lists_of(o, fd, dev);

	if (lists == COP_ORIGIN_LISTS_NOTHING)
		return 0;
	if (lists == COP_ORIGIN_LISTS_ALL ||
		(lists == COP_ORIGIN_LISTS_HIDES && o->trusts_listings) ||
		(lists == COP_ORIGIN_LISTS_BY_FLAG && !folds_case(fd)))
		return COP_LISTING_COMPLETE;
	return COP_LISTING_COMPLETE | COP_LISTING_HIDES;
}

bool cop_origin_lists_all(struct cop_origin *base)
{
	struct cop_origin_real *o = cop_origin_real_of(base);

	return cop_origin_listing_flags(o, base->dirfd, o->dev) == COP_LISTING_COMPLETE;
}
