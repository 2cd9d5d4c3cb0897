/* SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>

#include "cmd.h"
#include "node/ctl/ctl.h"
#include "ending.h"
#include "mount/fuse/fuse.h"
#include "base/opt/opt.h"
#include "node/mountdir/mountdir.h"
#include "socket.h"
#include "sweep.h"
#include "node/remotestop/remotestop.h"

/* copper stop --job-dir: stops the nodes of a job directory, even if none runs on this machine. */

/* Removes the mount of a node that was killed together with its guard. */
static int clear_mount(const char *mountpoint)
{
	char path[PATH_MAX];
	int rc;

	if (!mountpoint || cop_cmd_realpath(mountpoint, path) || !cop_fuse_is_dead(path))
		return 0;
	rc = cop_fuse_unmount_dead(path);
	if (rc)
		fprintf(stderr,
			"copper stop: %s: the node there is dead, and its mount cannot be removed: %s\n",
			path, strerror(-rc));
	else
		fprintf(stderr, "copper stop: %s: the node there was dead; its mount was removed\n",
			path);
	return rc ? 1 : 0;
}

struct stop_job {
	const char *job_dir, *secret_file, *runtime_dir;
	const char *mountpoint; /* a dead mount to remove; may be NULL */
	uint32_t timeout_ms;
};

struct here {
	const char *runtime_dir;
	struct cop_cmd_ending ending;
};

static void note_tree(void *arg, const char *tree)
{
	struct here *h = arg;

	cop_cmd_ending_tree(&h->ending, h->runtime_dir, tree);
}

/* Prints the result of a stop; returns 0, or 1 with a message if printing failed. */
static int print_stopped(unsigned stopped, unsigned of)
{
	if (printf("stopped %u/%u nodes\n", stopped, of) >= 0 && !fflush(stdout))
		return 0;
	fprintf(stderr,
		"copper stop: stopped %u/%u nodes, but that cannot be written to standard output\n",
		stopped, of);
	return 1;
}

static int show_stopped(const struct cop_remotestop_stopped *s)
{
	int rc = print_stopped(s->stopped, s->of);

	fprintf(stderr, "%s", s->remarks.data ? s->remarks.data : "");
	if (s->unknown)
		fprintf(stderr,
			"copper stop: %u of %u nodes may still run; run it again, or on a machine that can reach them\n",
			s->unknown, s->of);
	else if (!s->stopped)
		fprintf(stderr, "copper stop: no node of this job runs any more\n");
	return rc || s->unknown || s->unwritten || s->mounted ? 1 : 0;
}

/* Stops the nodes of a job directory and prints the result; returns the exit code. If the tree is a
 * single node on this machine, leaves the stopping to the caller: socket is then set to its path,
 * else to "". */
static int stop_job(const struct stop_job *what, char socket[108])
{
	struct here here = {.runtime_dir = what->runtime_dir};
	struct cop_remotestop_stopped result;
	struct cop_err err = {0};
	unsigned left;
	int rc = cop_remotestop_stop(&(struct cop_remotestop_stop){.job_dir = what->job_dir,
					     .secret_file = what->secret_file,
					     .timeout_ms = what->timeout_ms,
					     .known = note_tree,
					     .arg = &here},
		    &result, &err),
	    code = 1;

	socket[0] = '\0';
	if (rc == -EALREADY) {
		fprintf(stderr, "copper stop: nothing to stop: %s\n", err.text);
		code = print_stopped(0, 0);
	} else if (rc) {
		fprintf(stderr, "copper stop: %s\n", err.text);
	} else if (result.socket[0]) {
		memcpy(socket, result.socket, sizeof(result.socket));
		code = 0;
	} else {
		code = show_stopped(&result);
	}
	left = cop_cmd_ending_wait(&here.ending);
	if (left)
		fprintf(stderr, "copper stop: %u processes of these nodes have not ended yet\n",
			left);
	cop_buf_free(&result.remarks);
	return clear_mount(what->mountpoint) | code;
}

struct args {
	const char *mountpoint, *runtime_dir, *job_dir, *secret_file;
	uint32_t timeout_ms;
	bool local;
};

static const struct cop_opt rows[] = {
	COP_OPT(FLAG, "local", struct args, local, "stop only the local node, not the whole job"),
	COP_OPT(STRING, "job-dir", struct args, job_dir,
		"stop all nodes of this job directory, anywhere", .letter = 'd', .arg = "DIR"),
	COP_OPT(STRING, "secret-file", struct args, secret_file,
		"the nodes' secret, if it was moved", .arg = "FILE", .rare = true),
	COP_OPT(DURATION, "timeout", struct args, timeout_ms,
		"give up after this long without an answer", .arg = "TIME", .initial = "60",
		.min = 1, .max = 3600000),
	COP_OPT(STRING, "runtime-dir", struct args, runtime_dir,
		"directory of control sockets, as for mount", .arg = "DIR", .rare = true),
};
static const struct cop_opt_operand operands[] = {
	{.name = "MOUNTPOINT", .offset = offsetof(struct args, mountpoint)},
};
static int check(void *args, struct cop_err *err)
{
	const struct args *a = args;

	if (a->local && a->job_dir)
		return cop_err_set(err, EINVAL,
			"--local stops one node here, --job-dir all of them: give one");
	if (a->secret_file && !a->job_dir)
		return cop_err_set(err, EINVAL,
			"--secret-file needs --job-dir: a node on this machine is asked without it");
	return 0;
}

static const struct cop_opt_table table = {.command = "copper stop",
	.summary = "stop every node of the job: unmount, report, end",
	COP_OPT_ROWS(rows),
	COP_OPT_OPERANDS(operands),
	.check = check};

#define OTHERS "; if other nodes of its job still run, 'copper stop -d JOBDIR' stops them"

/* Called if no node answers for this mount point. Removes what a killed node left there (its
 * socket, if not NULL, and its mount); if it left nothing, there is nothing to do. */
static int nobody_there(const struct args *a, const char *socket, const struct cop_err *why)
{
	struct cop_err ignored;
	char path[PATH_MAX];
	int rc, dead = 0;
	bool cleared;

	if (socket)
		cop_mountdir_wait_ended(socket);
	rc = a->mountpoint ? cop_cmd_realpath(a->mountpoint, path)
			   : cop_cmd_only_mount(a->runtime_dir, path);
	if (rc == 0)
		dead = cop_mountdir_remove_dead(path, socket);
	cleared = socket && cop_ctl_clear(socket, &ignored) == 0;
	if (dead < 0) {
		fprintf(stderr,
			"copper stop: %s: the node there is dead, and its mount cannot be removed: %s\n",
			path, strerror(-dead));
		return 1;
	}
	if (dead) {
		fprintf(stderr,
			"copper stop: %s: the node there was dead; its mount was removed" OTHERS
			"\n",
			path);
		return print_stopped(0, 0);
	}
	if (cleared)
		fprintf(stderr,
			"copper stop: nothing to stop: the node here was killed; its control socket %s was removed" OTHERS
			"\n",
			socket);
	else
		fprintf(stderr, "copper stop: nothing to stop: %s\n", why->text);
	return print_stopped(0, 0);
}

/* Returns the exit status after the request to the node at this socket has failed. */
static int no_answer(const struct args *a, int rc, const char *socket, const struct cop_err *err)
{
	if (rc == -ENOENT || rc == -ECONNREFUSED)
		return nobody_there(a, rc == -ECONNREFUSED ? socket : NULL, err);
	fprintf(stderr, "copper stop: %s\n", err->text);
	return 1;
}

/* The kernel may have closed the node's connection just before the stop, in which case the node
 * exits without unmounting. */
static void remove_dead_mount(const char *mountpoint)
{
	char path[PATH_MAX];

	if (mountpoint && cop_cmd_realpath(mountpoint, path) == 0 && cop_fuse_is_dead(path))
		cop_fuse_unmount_dead(path);
}

/* Prints a reply: the result in its first line, then remarks about single nodes. Returns 0, or
 * another value if printing failed. */
static int print_answer(char *answer)
{
	char *rest = strchr(answer, '\n');
	int rc;

	if (rest)
		*rest++ = '\0';
	rc = puts(answer) == EOF || fflush(stdout);
	if (rc)
		fprintf(stderr, "copper stop: %s, but that cannot be written to standard output\n",
			answer);
	if (rest && *rest)
		fprintf(stderr, "%s", rest);
	return rc;
}

/* Sends a request to stop the tree, or only the node, to this control socket. Returns the exit
 * status. */
static int stop_by(const struct args *a, const char *path)
{
	struct cop_cmd_ending ending = {0};
	struct cop_ctl_reply reply = {0};
	struct cop_err err = {0};
	unsigned left;
	int rc;

	cop_cmd_ending_begin(&ending, path, a->local);
	rc = cop_ctl_call(path, a->local ? "stop local" : "stop", a->timeout_ms, &reply, &err);
	if (rc)
		return no_answer(a, rc, path, &err);
	if (reply.status == -ESHUTDOWN) {
		cop_cmd_ending_wait(&ending);
		free(reply.text);
		cop_err_set(&err, ESHUTDOWN, "the node here was ending already");
		return nobody_there(a, NULL, &err);
	}
	rc = print_answer(reply.text);
	free(reply.text);
	left = cop_cmd_ending_wait(&ending);
	remove_dead_mount(a->mountpoint);
	if (left)
		fprintf(stderr, "copper stop: %u processes of these nodes have not ended yet\n",
			left);
	return rc || reply.status ? 1 : 0;
}

int cop_cmd_stop(int argc, char **argv)
{
	struct args a = {0};
	struct cop_err err = {0};
	char path[COP_CTL_PATH_SIZE];
	int code, rc = 0;

	if (!cop_opt_start(&table, argc, argv, &a, &code))
		return code;
	if (a.job_dir) {
		code = stop_job(&(struct stop_job){a.job_dir, a.secret_file, a.runtime_dir,
					a.mountpoint, a.timeout_ms},
			path);
		if (!path[0])
			return code;
	} else {
		rc = cop_cmd_socket(a.mountpoint, a.runtime_dir, path, &err);
	}
	if (rc == -EINVAL)
		return cop_opt_misuse(&table, &err);
	code = rc ? no_answer(&a, rc, path, &err) : stop_by(&a, path);
	cop_cmd_sweep(a.runtime_dir);
	return code;
}
