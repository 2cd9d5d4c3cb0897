/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the mounts from /proc/self/mountinfo (proc(5)), which does not touch the file systems
 * themselves: even a hung one is listed. */
#include "base/base/base.h"

#include <limits.h>

#define MOUNTINFO_MAX (64 * COP_MIB)

static bool is_among(const char *type, const char *const *types, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(type, types[i]) == 0)
			return true;
	return false;
}

bool cop_mount_is_pseudo(const char *type)
{
	static const char *const types[] = {"proc", "sysfs", "devtmpfs", "devpts", "cgroup",
		"cgroup2", "tmpfs", "ramfs", "mqueue", "hugetlbfs", "debugfs", "tracefs",
		"securityfs", "bpf", "pstore", "configfs", "efivarfs", "binfmt_misc", "fusectl",
		"selinuxfs", "rpc_pipefs", "nsfs"};

	return is_among(type, types, COP_ARRAY_SIZE(types));
}

/* FUSE file systems are usually remote (sshfs, dfuse, glusterfs); the ones listed here are
 * local. */
static bool is_fuse_of_elsewhere(const char *type)
{
	static const char *const local[] = {"fuse.copper", "fuse.fuse-overlayfs", "fuse.squashfuse",
		"fuse.squashfuse_ll", "fuse.lxcfs", "fuse.portal", "fuse.gvfsd-fuse",
		"fuse.snapfuse"};

	return strncmp(type, "fuse.", 5) == 0 && !is_among(type, local, COP_ARRAY_SIZE(local));
}

bool cop_mount_is_shared(const char *type)
{
	static const char *const types[] = {"nfs", "nfs4", "lustre", "gpfs", "beegfs", "ceph",
		"cifs", "smb3", "afs", "pvfs2", "panfs", "wekafs", "dvs", "gfs2", "ocfs2"};

	return is_among(type, types, COP_ARRAY_SIZE(types)) || is_fuse_of_elsewhere(type);
}

void cop_mount_unescape(char *text)
{
	char *out = text;
	unsigned code;

	while (*text) {
		if (*text == '\\' && strlen(text) >= 4 && sscanf(text + 1, "%3o", &code) == 1 &&
			code < 256) {
			*out++ = (char)code;
			text += 4;
		} else {
			*out++ = *text++;
		}
	}
	*out = '\0';
}

/* A line: id parent major:minor root DIRECTORY options [fields] - TYPE source options */
static int visit_line(char *line, cop_mount_visit *visit, void *arg)
{
	char *dash = strstr(line, " - "), *save = NULL, *dir = NULL, type[COP_MOUNT_TYPE_SIZE];

	if (!dash || sscanf(dash, " - %63s", type) != 1)
		return 0;
	*dash = '\0';
	for (unsigned i = 0; i < 5; i++)
		dir = strtok_r(i ? NULL : line, " ", &save);
	if (!dir || dir[0] != '/')
		return 0;
	cop_mount_unescape(dir);
	return visit(arg, dir, type);
}

int cop_mounts_parse(char *text, cop_mount_visit *visit, void *arg)
{
	char *save = NULL;
	int rc = 0;

	for (char *line = strtok_r(text, "\n", &save); !rc && line;
		line = strtok_r(NULL, "\n", &save))
		rc = visit_line(line, visit, arg);
	return rc;
}

int cop_mounts_each(cop_mount_visit *visit, void *arg)
{
	char *text;
	size_t len;
	int rc = cop_read_file("/proc/self/mountinfo", MOUNTINFO_MAX, &text, &len);

	if (rc)
		return rc;
	rc = cop_mounts_parse(text, visit, arg);
	free(text);
	return rc;
}

struct search {
	const char *path;
	size_t longest;
	char *type;
};

/* If several file systems are mounted on one directory, the last is on top. */
static int keep_deepest(void *arg, const char *dir, const char *type)
{
	struct search *s = arg;
	size_t len = strcmp(dir, "/") ? strlen(dir) : 0;

	if (len < s->longest || strncmp(s->path, dir, len) || (s->path[len] && s->path[len] != '/'))
		return 0;
	s->longest = len;
	snprintf(s->type, COP_MOUNT_TYPE_SIZE, "%s", type);
	return 0;
}

int cop_mount_type(const char *path, char type[COP_MOUNT_TYPE_SIZE])
{
	char real[PATH_MAX];
	struct search s = {.path = real, .type = type};

	*type = '\0';
	if (!realpath(path, real))
		return -errno;
	return cop_mounts_each(keep_deepest, &s);
}
