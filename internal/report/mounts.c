/* SPDX-License-Identifier: BSD-3-Clause */
/* Node-local file systems below a root are no part of a shared tree, and a mount of Copper would be the tree once more. They are known
 * from /proc/self/mountinfo (proc(5)), so that walking asks nothing more of the storage. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/walk_priv.h"

#define MOUNTINFO_MAX (64 * COP_MIB)

static bool is_local(const char *type)
{
	static const char *const types[] = {"fuse.copper", "proc", "sysfs", "devtmpfs", "devpts", "cgroup",
		"cgroup2", "tmpfs", "ramfs", "mqueue", "hugetlbfs", "debugfs", "tracefs", "securityfs", "bpf",
		"pstore", "configfs", "efivarfs", "binfmt_misc", "fusectl", "selinuxfs", "rpc_pipefs", "nsfs"};

	for (size_t i = 0; i < COP_ARRAY_SIZE(types); i++)
		if (strcmp(type, types[i]) == 0)
			return true;
	return false;
}

/* Space, tab, newline and backslash stand as \ooo. */
static void unescape(char *text)
{
	char *out = text;
	unsigned code;

	while (*text) {
		if (*text == '\\' && strlen(text) >= 4 && sscanf(text + 1, "%3o", &code) == 1 && code < 256) {
			*out++ = (char)code;
			text += 4;
		} else {
			*out++ = *text++;
		}
	}
	*out = '\0';
}

/* A line: id parent major:minor root MOUNTPOINT options [fields] - TYPE source options */
static int add_line(struct mounts *m, char *line)
{
	char *dash = strstr(line, " - "), *save = NULL, *word = NULL, **grown, type[64];

	if (!dash || sscanf(dash, " - %63s", type) != 1 || !is_local(type) || m->n == MOUNTS_MAX)
		return 0;
	*dash = '\0';
	for (unsigned i = 0; i < 5; i++)
		word = strtok_r(i ? NULL : line, " ", &save);
	if (!word || word[0] != '/')
		return 0;
	unescape(word);
	grown = reallocarray(m->path, m->n + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	m->path = grown;
	grown[m->n] = strdup(word);
	return grown[m->n] ? (m->n++, 0) : -ENOMEM;
}

int cop_report_mounts_parse(struct mounts *m, char *text)
{
	char *save = NULL;
	int rc = 0;

	for (char *line = strtok_r(text, "\n", &save); !rc && line; line = strtok_r(NULL, "\n", &save))
		rc = add_line(m, line);
	return rc;
}

int cop_report_mounts_load(struct mounts *m)
{
	char *text;
	size_t len;
	int rc = cop_read_file("/proc/self/mountinfo", MOUNTINFO_MAX, &text, &len);

	if (rc)
		return rc == -ENOMEM ? rc : 0;
	rc = cop_report_mounts_parse(m, text);
	free(text);
	return rc;
}

void cop_report_mounts_free(struct mounts *m)
{
	for (size_t i = 0; i < m->n; i++)
		free(m->path[i]);
	free(m->path);
	*m = (struct mounts){0};
}

/* What is left of path after the directory and a slash, or NULL. */
static const char *rest_of(const char *path, const char *dir, size_t len)
{
	if (len == 1)
		return path + 1;
	return strncmp(path, dir, len) == 0 && path[len] == '/' ? path + len + 1 : NULL;
}

bool cop_report_mounts_in(const struct mounts *m, const char *dir, size_t len)
{
	for (size_t i = 0; i < m->n; i++) {
		const char *rest = rest_of(m->path[i], dir, len);

		if (rest && *rest && !strchr(rest, '/'))
			return true;
	}
	return false;
}

bool cop_report_mounts_is(const struct mounts *m, const char *dir, size_t dir_len, const char *name, size_t len)
{
	for (size_t i = 0; i < m->n; i++) {
		const char *rest = rest_of(m->path[i], dir, dir_len);

		if (rest && strlen(rest) == len && memcmp(rest, name, len) == 0)
			return true;
	}
	return false;
}
