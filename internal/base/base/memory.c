/* SPDX-License-Identifier: BSD-3-Clause */
/* How much memory the control groups allow this process: the smallest of the limits of its group
 * and of all groups above it (cgroups(7)). Version 2 has memory.max, and memory.high, past which
 * the kernel slows a group down. Version 1 may be mounted as well. In a container /proc/self/cgroup
 * may name a path that does not exist; then the mounted hierarchy is the container's own group. */
#include "base/base/base_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "max" is not a number: no limit. */
static void one_limit(const char *path, uint64_t *least)
{
	uint64_t bytes;
	char *text;
	size_t len;

	if (cop_read_file(path, 256, &text, &len))
		return;
	if (sscanf(text, "%" SCNu64, &bytes) == 1 && bytes < *least)
		*least = bytes;
	free(text);
}

static void least_limit(
	const char *root, const char *mount, const char *group, const char *file, uint64_t *least)
{
	char dir[4096], path[8400], *slash;

	snprintf(dir, sizeof(dir), "%s", group);
	for (;;) {
		snprintf(path, sizeof(path), "%s%s%s/%s", root, mount, dir, file);
		one_limit(path, least);
		slash = strrchr(dir, '/');
		if (!slash)
			return;
		*slash = '\0';
	}
}

/* "0::/a/b" in version 2, "4:memory:/a/b" in version 1. */
static void limits_of_line(const char *root, const char *line, uint64_t *least)
{
	char controllers[256], group[4096];

	if (sscanf(line, "0::%4095[^\n]", group) == 1) {
		least_limit(root, "/sys/fs/cgroup", group, "memory.max", least);
		least_limit(root, "/sys/fs/cgroup", group, "memory.high", least);
	} else if (sscanf(line, "%*u:%255[^:\n]:%4095[^\n]", controllers, group) == 2 &&
		   strcmp(controllers, "memory") == 0) {
		least_limit(root, "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes", least);
	}
}

uint64_t cop_memory_limit(const char *root)
{
	uint64_t least = UINT64_MAX;
	char path[4200], *text, *line, *save;
	size_t len;

	snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	if (cop_read_file(path, 65536, &text, &len))
		return least;
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		limits_of_line(root, line, &least);
	free(text);
	return least;
}

/* The number behind key in a file of /proc; 0 if there is none. */
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
