/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads /proc for one process (proc(5)): its start time, its mounts, and its mapped and open files.
 * The paths there are relative to the process's own root. */
#include "node/bypass/bypass_priv.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#define MOUNTINFO_MAX (4 * COP_MIB)
#define MAPS_AT_ONCE (32 * COP_KIB)
#define OF_THE_KERNEL 0x00200000u /* PF_KTHREAD */

ssize_t cop_bypass_text(int dir, const char *name, char *text, size_t size)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t len;

	if (fd < 0)
		return -errno;
	len = cop_read_full(fd, text, size - 1);
	close(fd);
	if (len >= 0)
		text[len] = '\0';
	return len;
}

/* The process's name is in parentheses and may contain any character, including parentheses. */
int cop_bypass_began(int dir, unsigned long long *began)
{
	char text[1024], *end;
	unsigned flags;
	ssize_t len = cop_bypass_text(dir, "stat", text, sizeof(text));

	if (len < 0)
		return (int)len;
	end = strrchr(text, ')');
	if (!end ||
		sscanf(end + 1,
			" %*c %*d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
			&flags, began) != 2)
		return -EBADMSG;
	return flags & OF_THE_KERNEL ? -ESRCH : 0;
}

int cop_bypass_identity(int dir, const char *name, uint64_t id[2])
{
	struct stat st;

	if (fstatat(dir, name, &st, 0))
		return -errno;
	id[0] = st.st_dev;
	id[1] = st.st_ino;
	return 0;
}

bool cop_bypass_is_below(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	return strncmp(path, dir, len) == 0 && (path[len] == '/' || !path[len]);
}

/* ---- views ---- */

/* Whether this is a Copper mount, other than the node's own, that overlaps the source: a view's
 * bind mount, the lower layer of its overlay, or an administrator's bind mount. */
static int is_a_view(void *arg, const char *dir, const char *type)
{
	const struct cop_bypass *p = arg;

	return strcmp(type, "fuse.copper") == 0 && strcmp(dir, p->conf.mountpoint) != 0 &&
	       (cop_bypass_is_below(dir, p->conf.source) ||
		       cop_bypass_is_below(p->conf.source, dir));
}

/* Checked once per process, and only if the process uses a path of the source. If its mounts are
 * unreadable, none of its files count. */
static bool is_in_a_view(struct cop_bypass *p, struct cop_bypass_process *q)
{
	char *text;

	if (q->checked)
		return q->in_a_view;
	q->checked = q->in_a_view = true;
	text = malloc(MOUNTINFO_MAX);
	if (text && cop_bypass_text(q->dir, "mountinfo", text, MOUNTINFO_MAX) > 0)
		q->in_a_view = cop_mounts_parse(text, is_a_view, p) != 0;
	free(text);
	return q->in_a_view;
}

/* Whether the path is below the source, but not below the mount point, which may itself be below
 * the source. */
static bool is_candidate(const struct cop_bypass *p, const char *path)
{
	return cop_bypass_is_below(path, p->conf.source) &&
	       !cop_bypass_is_below(path, p->conf.mountpoint);
}

/* ---- maps ---- */

/* FROM-TO rwxs OFFSET MAJOR:MINOR INODE PATH; only the path contains a slash. The path of a deleted
 * file ends with " (deleted)", and does not count as a source path. */
static void read_map(struct cop_bypass *p, struct cop_bypass_process *q, const char *line)
{
	const char *path = strchr(line, '/');
	unsigned major, minor;
	char perms[8];

	if (!path || !is_candidate(p, path) ||
		sscanf(line, "%*s %7s %*s %x:%x", perms, &major, &minor) != 3 ||
		strlen(perms) != 4 || (perms[1] == 'w' && perms[3] == 's') || is_in_a_view(p, q) ||
		(q->apart && (major != p->source_major || minor != p->source_minor)))
		return;
	cop_bypass_found(p, q, path);
}

unsigned cop_bypass_maps(struct cop_bypass *p, struct cop_bypass_process *q, unsigned max)
{
	int fd = openat(q->dir, "maps", O_RDONLY | O_CLOEXEC);
	FILE *in = fd < 0 ? NULL : fdopen(fd, "r");
	char *line = NULL;
	size_t size = 0;
	unsigned n = 0;
	ssize_t len;

	if (!in) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	/* The C library's default buffer would mean reads of one kilobyte. */
	setvbuf(in, NULL, _IOFBF, MAPS_AT_ONCE);
	while (n < max && !q->in_a_view && (len = getline(&line, &size, in)) > 0) {
		line[len - 1] = '\0';
		read_map(p, q, line);
		n++;
	}
	free(line);
	fclose(in);
	return n;
}

/* ---- descriptors ---- */

/* A descriptor opened with O_PATH is not for reading. */
static bool is_for_reading(int dir, const char *name)
{
	char path[64], text[512];
	const char *flags;
	unsigned value;

	snprintf(path, sizeof(path), "fdinfo/%.32s", name);
	if (cop_bypass_text(dir, path, text, sizeof(text)) < 0)
		return false;
	flags = strstr(text, "flags:");
	return flags && sscanf(flags, "flags: %o", &value) == 1 &&
	       (value & O_ACCMODE) == O_RDONLY && !(value & O_PATH);
}

static void read_fd(struct cop_bypass *p, struct cop_bypass_process *q, int fds, const char *name)
{
	char path[PATH_MAX];
	ssize_t len = readlinkat(fds, name, path, sizeof(path) - 1);

	if (len <= 0)
		return;
	path[len] = '\0';
	if (is_candidate(p, path) && is_for_reading(q->dir, name) && !is_in_a_view(p, q))
		cop_bypass_found(p, q, path);
}

/* Unlike a line of maps, a link shows no device number, so it proves nothing about a process in
 * another mount namespace. */
unsigned cop_bypass_fds(struct cop_bypass *p, struct cop_bypass_process *q, unsigned max)
{
	int fd = q->apart || q->in_a_view
			 ? -1
			 : openat(q->dir, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	unsigned n = 0;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	for (; n < max && (e = readdir(d)); n++)
		read_fd(p, q, fd, e->d_name);
	closedir(d);
	return n;
}
