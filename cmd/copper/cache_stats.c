/* SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>
#include <time.h>

#include "cmd.h"
#include "node/ctl/ctl.h"
#include "node/remotestop/remotestop.h"
#include "base/opt/opt.h"
#include "report/watch/watch.h"
#include "socket.h"
#include "watch.h"
#include "report/usage/usage.h"

/* A node with a million objects needs some seconds to list them. */
#define LISTING_TIMEOUT_MS 120000

static int report_failure(const struct cop_err *err)
{
	fprintf(stderr, "copper cache-stats: %s\n", err->text);
	return 1;
}

/* Prints the summary and the names of the files written. */
static int print_usage(const struct cop_usage *u, bool json)
{
	struct cop_buf out = {0};
	int rc;

	if (json)
		cop_usage_json(u, &out);
	else
		cop_usage_text(u, &out);
	rc = cop_cmd_print("copper cache-stats", &out, NULL);
	cop_buf_free(&out);
	return rc;
}

static int write_summary(const struct cop_usage *u, const char *dir, struct cop_err *err)
{
	int rc = cop_make_dirs(dir, 0755);

	if (rc)
		return cop_err_set(err, -rc, "cannot create %s: %s", dir, strerror(-rc));
	return cop_usage_write(u, dir, err);
}

/* Sums up the files in from and, if output_dir is given, writes the two summaries there. Returns
 * the exit code. */
static int sum_up_usage(const char *from, const char *output_dir, bool json)
{
	struct cop_usage u = {0};
	struct cop_err err = {0};
	int rc = cop_usage_read(&u, from, &err), code;

	if (u.named.len)
		fprintf(stderr, "%s", u.named.data);
	if (!rc && output_dir)
		rc = write_summary(&u, output_dir, &err);
	code = rc ? report_failure(&err) : print_usage(&u, json);
	cop_usage_free(&u);
	return code;
}

/* ---- a node's reply: three times "budget LIMIT USED", then "table NAME LENGTH" and LENGTH
 * bytes ---- */

struct listing {
	struct cop_usage usage;
	struct {
		const char *text;
		size_t len;
	} table[COP_USAGE_TABLES];
};

struct input {
	const char *text;
	size_t left;
};

static ssize_t read_input(void *arg, void *data, size_t len)
{
	struct input *in = arg;
	size_t n = COP_MIN(in->left, len);

	memcpy(data, in->text, n);
	in->text += n;
	in->left -= n;
	return (ssize_t)n;
}

static int parse_table(struct listing *l, const char **at, const char *end)
{
	static const char *const names[COP_USAGE_TABLES] = {"data", "tree", "md"};
	char name[8];
	const char *why = NULL;
	struct input in;
	size_t len;
	int n = 0;

	if (sscanf(*at, "table %7s %zu%n", name, &len, &n) != 2 || (*at)[n] != '\n' ||
		len > (size_t)(end - *at - n - 1))
		return -EBADMSG;
	*at += n + 1;
	for (unsigned t = 0; t < COP_USAGE_TABLES; t++) {
		if (strcmp(name, names[t]))
			continue;
		l->table[t].text = *at;
		l->table[t].len = len;
		in = (struct input){*at, len};
		*at += len;
		return cop_usage_add(&l->usage, t, read_input, &in, &why) || why ? -EBADMSG : 0;
	}
	return -EBADMSG;
}

static int parse_listing(const struct cop_ctl_reply *reply, struct listing *l)
{
	const char *at = reply->text, *end = at + reply->len;
	int n = 0, rc = 0;

	if (sscanf(at, "budget %" SCNu64 " %" SCNu64 "%n", &l->usage.limit_bytes,
		    &l->usage.used_bytes, &n) != 2 ||
		at[n] != '\n')
		return -EBADMSG;
	l->usage.has_budget = true;
	at += n + 1;
	for (unsigned t = 0; t < COP_USAGE_TABLES && !rc; t++)
		rc = parse_table(l, &at, end);
	return rc;
}

static int write_listing(const struct listing *l, const char *dir, struct cop_err *err)
{
	int rc = write_summary(&l->usage, dir, err);

	for (unsigned t = 0; t < COP_USAGE_TABLES && !rc; t++) {
		char *path;

		if (asprintf(&path, "%s/%s", dir, cop_usage_name(t)) < 0)
			return cop_err_set(err, ENOMEM, "no memory to write into %s", dir);
		rc = cop_write_file(path, l->table[t].text, l->table[t].len, 0644);
		if (rc)
			cop_err_set(err, -rc, "cannot write %s: %s", path, strerror(-rc));
		free(path);
	}
	return rc;
}

/* Writes the cache contents of the node at this socket to five files in output_dir, which is
 * created if necessary. */
static int ask_usage(const char *socket, const char *output_dir, bool json)
{
	struct cop_ctl_reply reply = {0};
	struct listing l = {0};
	struct cop_err err = {0};
	int rc = cop_ctl_call(socket, "sizes", LISTING_TIMEOUT_MS, &reply, &err);

	if (!rc && reply.status)
		rc = cop_err_set(&err, EIO, "%.*s", (int)strcspn(reply.text, "\n"), reply.text);
	if (!rc && parse_listing(&reply, &l))
		rc = cop_err_set(&err, EBADMSG,
			"cannot understand the node's answer; it may run another version of copper");
	if (!rc)
		rc = write_listing(&l, output_dir, &err);
	rc = rc ? report_failure(&err) : print_usage(&l.usage, json);
	cop_usage_free(&l.usage);
	free(reply.text);
	return rc;
}

#define TIMEOUT_MS 30000
/* Snapshots can take a long time: disks may be slow, and a job may have many nodes. */
#define SNAPSHOT_TIMEOUT_MS 600000

struct args {
	const char *mountpoint, *runtime_dir, *from, *output_dir, *job_dir, *secret_file;
	uint32_t watch_s;
	const char *path;
	bool json, table, all, invalidate, snapshot, local, reset;
};

static const struct cop_opt rows[] = {
	COP_OPT(FLAG, "json", struct args, json, "for scripts; keys are stable"),
	COP_OPT(FLAG, "all", struct args, all, "every node of the job, and their total"),
	COP_OPT(STRING, "job-dir", struct args, job_dir,
		"every node of this job directory, anywhere", .letter = 'd', .arg = "DIR"),
	COP_OPT(STRING, "secret-file", struct args, secret_file,
		"the nodes' secret, if it was moved", .arg = "FILE", .rare = true),
	COP_OPT(FLAG, "table", struct args, table, "a table instead of JSON, also with --all"),
	COP_OPT(U32, "watch", struct args, watch_s, "refresh at this interval", .arg = "SECONDS",
		.min = 1, .max = 86400),
	COP_OPT(STRING, "output-dir", struct args, output_dir,
		"write lists of the cached objects to DIR", .arg = "DIR"),
	COP_OPT(STRING, "from", struct args, from, "add up such lists without contacting a node",
		.arg = "DIR"),
	COP_OPT(FLAG, "snapshot", struct args, snapshot,
		"every node writes the reports of --profile now"),
	COP_OPT(FLAG, "local", struct args, local, "with --snapshot: only the local node"),
	COP_OPT(FLAG, "reset", struct args, reset, "write the reports, then reset all counters"),
	COP_OPT(FLAG, "invalidate", struct args, invalidate,
		"make every node drop PATH, or everything"),
	COP_OPT(STRING, "runtime-dir", struct args, runtime_dir,
		"directory of control sockets, as for mount", .arg = "DIR", .rare = true),
};
static const struct cop_opt_operand operands[] = {
	{.name = "MOUNTPOINT", .offset = offsetof(struct args, mountpoint)},
	{.name = "PATH", .offset = offsetof(struct args, path)},
};
static const struct cop_opt_table table = {.command = "copper cache-stats",
	.summary = "show what a running node holds, serves and waits for",
	COP_OPT_ROWS(rows),
	COP_OPT_OPERANDS(operands)};

/* Sends a line to the node; the caller frees the reply. Returns 0, or 1 after a message on standard
 * error. */
static int call_node(
	const char *path, const char *line, uint32_t timeout_ms, struct cop_ctl_reply *reply)
{
	struct cop_err err = {0};

	*reply = (struct cop_ctl_reply){0};
	if (cop_ctl_call(path, line, timeout_ms, reply, &err)) {
		fprintf(stderr, "copper cache-stats: %s\n", err.text);
		return 1;
	}
	if (!reply->status)
		return 0;
	fputs(reply->text, stderr);
	free(reply->text);
	reply->text = NULL;
	return 1;
}

/* Sends a request to the node and prints its reply. */
static int ask_and_print(const char *path, const char *line, uint32_t timeout_ms)
{
	struct cop_ctl_reply reply;
	struct cop_buf text;
	int rc;

	if (call_node(path, line, timeout_ms, &reply))
		return 1;
	text = (struct cop_buf){.data = reply.text, .len = strlen(reply.text)};
	rc = cop_cmd_print("copper cache-stats", &text, NULL);
	free(reply.text);
	return rc;
}

/* Converts PATH, which is below the mount point, into a relative path without "." or empty
 * components. PATH may be relative to the mount point or lead through the mount. -EINVAL for "..",
 * newlines, and absolute paths elsewhere. out has COP_CTL_LINE_MAX bytes. */
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

static int invalidate_path(const struct args *a, const char *path)
{
	char below[COP_CTL_LINE_MAX], line[COP_CTL_LINE_MAX + 16];

	if (path_below(a, below)) {
		fprintf(stderr,
			"copper cache-stats: --invalidate: '%s' is not a path below the mount point; give it as seen through the mount, without '..'\n",
			a->path);
		return 2;
	}
	snprintf(line, sizeof(line), "invalidate %s", below);
	return ask_and_print(path, line, TIMEOUT_MS);
}

/* On a terminal, --all prints a table; for scripts it prints JSON. */
static bool wants_table(const struct args *a)
{
	return a->table || (!a->json && (!a->all || isatty(STDOUT_FILENO)));
}

static const char *node_command(const struct args *a)
{
	if (!wants_table(a))
		return a->all ? "stats all" : "stats";
	if (a->watch_s)
		return a->all ? "watch all" : "watch";
	return a->all ? "table all" : "table";
}

/* ---- periodic output ---- */

struct watch {
	struct cop_stats before;
	uint64_t at_ms; /* when it was requested; 0: never */
};

/* Appends the table with what has grown since the previous round. */
static int show_growth(
	const struct args *a, struct watch *w, uint64_t now_ms, char *reply, struct cop_buf *out)
{
	struct cop_stats now;
	struct cop_status_watch grown = {.now = &now,
		.before = w->at_ms ? &w->before : NULL,
		.elapsed_ms = now_ms - w->at_ms};
	const char *text = cop_stats_read_lines(reply, &now);

	if (!text) {
		fputs("copper cache-stats: the answer comes from another version; use the copper that started the node\n",
			stderr);
		return 1;
	}
	if (cop_screen_usable(STDOUT_FILENO, STDOUT_FILENO))
		cop_buf_str(out, "\033[H\033[2J");
	cop_buf_str(out, text);
	(a->all ? cop_status_all_watched : cop_status_table_watched)(&grown, out);
	*w = (struct watch){now, now_ms};
	return 0;
}

static int watch_once(const struct args *a, const char *path, struct watch *w)
{
	uint64_t now_ms = cop_now_ms();
	struct cop_ctl_reply reply;
	struct cop_buf out = {0};
	int rc = 0;

	if (call_node(path, node_command(a), TIMEOUT_MS, &reply))
		return 1;
	if (wants_table(a))
		rc = show_growth(a, w, now_ms, reply.text, &out);
	else
		cop_buf_str(&out, reply.text);
	if (!rc)
		rc = cop_cmd_print("copper cache-stats", &out, NULL);
	cop_buf_free(&out);
	free(reply.text);
	return rc;
}

static int watch_node(const struct args *a, const char *path)
{
	struct watch w = {.at_ms = 0};
	int code;

	if (!a->json && !a->table && cop_cmd_can_watch())
		return cop_cmd_watch(path, a->watch_s);
	while (!(code = watch_once(a, path, &w)))
		nanosleep(&(struct timespec){.tv_sec = a->watch_s}, NULL);
	return code;
}

/* Refuses mutually exclusive options. */
static int check_options(const struct args *a, struct cop_err *err)
{
	bool shows = (a->all && !a->reset) || a->table || a->watch_s,
	     files = a->from || a->output_dir;

	if (a->path && !a->invalidate)
		return cop_err_set(err, EINVAL, "PATH '%s' needs --invalidate", a->path);
	if (a->local && !a->snapshot)
		return cop_err_set(err, EINVAL, "--local needs --snapshot");
	if (a->secret_file && !a->job_dir)
		return cop_err_set(err, EINVAL,
			"--secret-file needs --job-dir: a node on this machine is asked without it");
	if (a->job_dir &&
		(a->mountpoint || a->watch_s || a->invalidate || a->snapshot || a->reset || files))
		return cop_err_set(err, EINVAL,
			"--job-dir only shows the state of all nodes, with --json or as a table; for the rest, give MOUNTPOINT on a machine of the job");
	if (a->from && a->mountpoint)
		return cop_err_set(
			err, EINVAL, "--from reads files and asks no node: leave MOUNTPOINT out");
	if (a->invalidate + a->snapshot + a->reset + files + shows > 1 ||
		(a->json && (a->table || a->invalidate || a->snapshot || a->reset)))
		return cop_err_set(err, EINVAL,
			"these options cannot be combined: see copper cache-stats --help");
	return 0;
}

static int run_action(const struct args *a, const char *path)
{
	if (a->invalidate)
		return invalidate_path(a, path);
	if (a->snapshot)
		return ask_and_print(
			path, a->local ? "snapshot local" : "snapshot", SNAPSHOT_TIMEOUT_MS);
	if (a->reset)
		return ask_and_print(path, a->all ? "reset all" : "reset", SNAPSHOT_TIMEOUT_MS);
	if (a->output_dir)
		return ask_usage(path, a->output_dir, a->json);
	return a->watch_s ? watch_node(a, path) : ask_and_print(path, node_command(a), TIMEOUT_MS);
}

/* ---- from any machine ---- */

static int show_sum(const struct args *a, struct cop_op_sum *sum)
{
	struct cop_buf out = {0};
	int rc;

	if (a->json)
		cop_status_all_json(sum, &out);
	else
		cop_status_all_table(sum, &out);
	if (a->json)
		cop_buf_str(&out, "\n");
	rc = cop_cmd_print("copper cache-stats", &out, NULL);
	cop_buf_free(&out);
	return rc;
}

static int ask_job(const struct args *a)
{
	struct cop_remotestop_stop what = {
		.job_dir = a->job_dir, .secret_file = a->secret_file, .timeout_ms = TIMEOUT_MS};
	char socket[COP_CTL_PATH_SIZE];
	struct cop_err err = {0};
	struct cop_op_sum sum;
	int code = 1;

	if (cop_remotestop_ask(&what, a->json ? COP_OP_STATS : COP_OP_TABLE, &sum, socket, &err))
		fprintf(stderr, "copper cache-stats: %s\n", err.text);
	else if (*socket)
		code = ask_and_print(socket, a->json ? "stats all" : "table all", TIMEOUT_MS);
	else
		code = show_sum(a, &sum);
	cop_op_sum_free(&sum);
	return code;
}

int cop_cmd_cache_stats(int argc, char **argv)
{
	struct args a = {0};
	struct cop_err err = {0};
	char path[COP_CTL_PATH_SIZE];
	int code, rc;

	if (!cop_opt_start(&table, argc, argv, &a, &code))
		return code;
	if (check_options(&a, &err))
		return cop_opt_misuse(&table, &err);
	if (a.from)
		return sum_up_usage(a.from, a.output_dir, a.json);
	if (a.job_dir)
		return ask_job(&a);
	rc = cop_cmd_socket(a.mountpoint, a.runtime_dir, path, &err);
	if (rc == -EINVAL)
		return cop_opt_misuse(&table, &err);
	if (rc) {
		fprintf(stderr, "copper cache-stats: %s\n", err.text);
		return 1;
	}
	return run_action(&a, path);
}
