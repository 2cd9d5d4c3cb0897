/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd.h"
#include "ctl/ctl.h"
#include "opt/opt.h"
#include "socket.h"

#define TIMEOUT_MS 30000

struct args {
	const char *mountpoint, *runtime_dir;
	uint32_t watch_s;
	const char *path;
	bool json, all, invalidate;
};

static const struct cop_opt rows[] = {
	{.name = "json", .kind = COP_OPT_FLAG, .offset = offsetof(struct args, json),
		.help = "for scripts; keys are stable"},
	{.name = "all", .kind = COP_OPT_FLAG, .offset = offsetof(struct args, all),
		.help = "every node of the job and their total, as JSON"},
	{.name = "watch", .kind = COP_OPT_U32, .offset = offsetof(struct args, watch_s), .arg = "SECONDS",
		.min = 1, .max = 86400, .help = "again every so often, until interrupted"},
	{.name = "invalidate", .kind = COP_OPT_FLAG, .offset = offsetof(struct args, invalidate),
		.help = "every node forgets PATH and all below it, or all"},
	{.name = "runtime-dir", .kind = COP_OPT_STRING, .offset = offsetof(struct args, runtime_dir), .arg = "DIR",
		.help = "where control sockets stand, as given to mount", .rare = true},
};
static const struct cop_opt_operand operands[] = {
	{.name = "MOUNTPOINT", .offset = offsetof(struct args, mountpoint)},
	{.name = "PATH", .offset = offsetof(struct args, path)},
};
static const struct cop_opt_table table = {.command = "copper cache-stats",
	.summary = "what a running node holds, was asked and waits for", COP_OPT_ROWS(rows),
	COP_OPT_OPERANDS(operands)};

/* Asks the node and prints what it says. */
static int ask(const char *path, const char *line)
{
	struct cop_ctl_reply reply = {0};
	struct cop_err err = {0};
	int status;

	if (cop_ctl_call(path, line, TIMEOUT_MS, NULL, NULL, &reply, &err)) {
		fprintf(stderr, "copper cache-stats: %s\n", err.text);
		return 1;
	}
	status = reply.status;
	fputs(reply.text, status ? stderr : stdout);
	fflush(stdout);
	free(reply.text);
	return status ? 1 : 0;
}

/* PATH below the mount point, without "." and empty parts: as given from there, or as it looks through the mount. -EINVAL for
 * "..", newlines, and absolute paths elsewhere. out has COP_CTL_LINE_MAX bytes. */
static int path_below(const struct args *a, char *out)
{
	char mount[PATH_MAX], copy[PATH_MAX], *save, *part;
	const char *path = a->path ? a->path : "";
	size_t len = 0, n;

	if (path[0] == '/') {
		if (!a->mountpoint || cop_cmd_realpath(a->mountpoint, mount))
			return -EINVAL;
		n = strlen(mount);
		if (strncmp(path, mount, n) == 0 && (path[n] == '/' || !path[n]))
			path += n;
		else if (path[strspn(path, "/")])
			return -EINVAL;
	}
	if (strlen(path) >= sizeof(copy) || strchr(path, '\n'))
		return -EINVAL;
	strcpy(copy, path);
	out[0] = '\0';
	for (part = strtok_r(copy, "/", &save); part; part = strtok_r(NULL, "/", &save)) {
		if (strcmp(part, "..") == 0 || len + strlen(part) + 2 > COP_CTL_LINE_MAX - 16)
			return -EINVAL;
		if (strcmp(part, ".") != 0)
			len += (size_t)sprintf(out + len, "%s%s", len ? "/" : "", part);
	}
	return 0;
}

static int invalidate(const struct args *a, const char *path)
{
	char below[COP_CTL_LINE_MAX], line[COP_CTL_LINE_MAX + 16];

	if (path_below(a, below)) {
		fprintf(stderr, "copper cache-stats: --invalidate: '%s' is not a path below the mount point; give it as seen from there, without '..'\n",
			a->path);
		return 2;
	}
	snprintf(line, sizeof(line), "invalidate %s", below);
	return ask(path, line);
}

static int show_once(const struct args *a, const char *path)
{
	return ask(path, a->all ? "stats all" : a->json ? "stats" : "table");
}

int cop_cmd_cache_stats(int argc, char **argv)
{
	struct args a = {0};
	struct cop_err err = {0};
	char path[COP_CTL_PATH_SIZE];
	int code, rc;

	if (!cop_opt_start(&table, argc, argv, &a, &code))
		return code;
	if (a.path && !a.invalidate) {
		cop_err_set(&err, EINVAL, "PATH '%s' goes with --invalidate", a.path);
		return cop_opt_misuse(&table, &err);
	}
	rc = cop_cmd_socket(a.mountpoint, a.runtime_dir, path, &err);
	if (rc == -EINVAL)
		return cop_opt_misuse(&table, &err);
	if (rc) {
		fprintf(stderr, "copper cache-stats: %s\n", err.text);
		return 1;
	}
	if (a.invalidate)
		return invalidate(&a, path);
	code = show_once(&a, path);
	while (!code && a.watch_s) {
		nanosleep(&(struct timespec){.tv_sec = a.watch_s}, NULL);
		code = show_once(&a, path);
	}
	return code;
}
