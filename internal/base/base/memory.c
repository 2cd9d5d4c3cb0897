/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory limit that control groups impose on this process: the smallest limit of its group and
 * all ancestors (cgroups(7)). Version 2 has memory.max, and memory.high, beyond which the kernel
 * throttles a group; version 1 may be mounted alongside. In a container, /proc/self/cgroup may name
 * a path that does not exist; the root of the mounted hierarchy is then the container's own
 * group. */
#include "base/base/base_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct search {
	const char *root;
	void (*found)(const char *text, uint64_t *out);
	const char *v1, *v2[2]; /* file names */
	uint64_t out;
};

/* "max" does not parse as a number, which leaves the limit unchanged. */
static void take_limit(const char *text, uint64_t *least)
{
	uint64_t bytes;

	if (sscanf(text, "%" SCNu64, &bytes) == 1 && bytes < *least)
		*least = bytes;
}

static void take_kills(const char *text, uint64_t *sum)
{
	const char *at = strstr(text, "oom_kill ");
	uint64_t kills;

	if (at && sscanf(at, "oom_kill %" SCNu64, &kills) == 1)
		*sum += kills;
}

/* Visits the file in the group's directory and in each of its ancestors'. */
static void search_groups(struct search *s, const char *mount, const char *group, const char *file)
{
	char dir[4096], path[8400], *slash, *text;
	size_t len;

	snprintf(dir, sizeof(dir), "%s", group);
	for (;;) {
		snprintf(path, sizeof(path), "%s%s%s/%s", s->root, mount, dir, file);
		if (cop_read_file(path, 4096, &text, &len) == 0) {
			s->found(text, &s->out);
			free(text);
		}
		slash = strrchr(dir, '/');
		if (!slash)
			return;
		*slash = '\0';
	}
}

/* "0::/a/b" in version 2, "4:memory:/a/b" in version 1. */
static void search_line(struct search *s, const char *line)
{
	char controllers[256], group[4096];

	if (sscanf(line, "0::%4095[^\n]", group) == 1) {
		for (unsigned i = 0; i < 2 && s->v2[i]; i++)
			search_groups(s, "/sys/fs/cgroup", group, s->v2[i]);
	} else if (sscanf(line, "%*u:%255[^:\n]:%4095[^\n]", controllers, group) == 2 &&
		   strcmp(controllers, "memory") == 0) {
		search_groups(s, "/sys/fs/cgroup/memory", group, s->v1);
	}
}

static uint64_t search_all(struct search *s)
{
	char path[4200], *text, *line, *save;
	size_t len;

	snprintf(path, sizeof(path), "%s/proc/self/cgroup", s->root);
	if (cop_read_file(path, 65536, &text, &len))
		return s->out;
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		search_line(s, line);
	free(text);
	return s->out;
}

uint64_t cop_memory_limit(const char *root)
{
	struct search s = {.root = root,
		.found = take_limit,
		.v1 = "memory.limit_in_bytes",
		.v2 = {"memory.max", "memory.high"},
		.out = UINT64_MAX};

	return search_all(&s);
}

uint64_t cop_memory_kills(const char *root)
{
	struct search s = {.root = root,
		.found = take_kills,
		.v1 = "memory.oom_control",
		.v2 = {"memory.events"}};

	return search_all(&s);
}

/* The number after key in a file in /proc; 0 if missing. */
static double number_in(const char *root, const char *file, const char *key)
{
	char path[4200], *text, *at;
	double found = 0;
	size_t len;

	snprintf(path, sizeof(path), "%s/proc/%s", root, file);
	if (cop_read_file(path, 65536, &text, &len))
		return 0;
	at = strstr(text, key);
	if (at)
		found = strtod(at + strlen(key), NULL);
	free(text);
	return found;
}

uint64_t cop_memory_available(const char *root)
{
	return (uint64_t)number_in(root, "meminfo", "MemAvailable:") * 1024;
}

bool cop_memory_is_short(const char *root)
{
	uint64_t total = (uint64_t)number_in(root, "meminfo", "MemTotal:") * 1024;

	return cop_memory_available(root) < total / 16 ||
	       number_in(root, "pressure/memory", "some avg10=") > 5;
}
