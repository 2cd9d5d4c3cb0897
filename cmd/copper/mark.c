/* SPDX-License-Identifier: BSD-3-Clause */
/* mark: records a region of a shell script, or a whole command, as trace events. */
#include <fcntl.h>
#include <sys/prctl.h>

#include "child.h"
#include "cmd.h"
#include "trace/mark/mark.h"
#include "base/opt/opt.h"

/* The exit status if copper mark itself fails, as in env(1), timeout(1) and others. */
#define FAILED 125

struct args {
	const char *category;
	int64_t shell; /* -1: the process that called this command */
	char **words;
};

static const struct cop_opt rows[] = {
	COP_OPT(STRING, "category", struct args, category, "the category of the events",
		.letter = 'c', .arg = "WORD", .initial = "shell"),
	COP_OPT(I64, "pid", struct args, shell, "the shell of begin and end", .letter = 'p',
		.arg = "PID", .shown = "the caller", .max = INT32_MAX),
};

static bool is_region(char **words)
{
	return !words[1] || strcmp(words[1], "--") != 0;
}

static int check_args(void *into, struct cop_err *err)
{
	const struct args *a = into;
	char **w = a->words;

	if (!w || !w[0][0])
		return cop_err_set(err, EINVAL, "NAME is %s (see copper mark --help)",
			w ? "empty" : "missing");
	if (!is_region(w))
		return w[2] ? 0 : cop_err_set(err, EINVAL, "COMMAND is missing after --");
	if (strcmp(w[0], "begin") != 0 && strcmp(w[0], "end") != 0)
		return cop_err_set(err, EINVAL,
			"'%s' is not followed by -- and a COMMAND, and is neither begin nor end",
			w[0]);
	if (!w[1] || !w[1][0])
		return cop_err_set(err, EINVAL, "NAME is missing after %s", w[0]);
	return w[2] ? cop_err_set(err, EINVAL, "one NAME after %s is enough: '%s'", w[0], w[2]) : 0;
}

static void init_args(void *into)
{
	*(struct args *)into = (struct args){.shell = -1};
}

static const struct cop_opt_table table = {.command = "copper mark",
	.summary = "mark a command, or a region of a shell script, in a trace",
	COP_OPT_ROWS(rows),
	.init = init_args,
	.check = check_args,
	.rest = "NAME -- COMMAND... | begin|end NAME",
	.rest_offset = offsetof(struct args, words)};

static pid_t shell_of(const struct args *a)
{
	return a->shell > 0 ? (pid_t)a->shell : getppid();
}

/* A write failure does not affect the command, before or after it has run. */
static int write_events(const struct args *a, const struct cop_mark_event *events, unsigned n)
{
	struct cop_err err = {0};

	if (!cop_mark_append(shell_of(a), events, n, &err))
		return 0;
	fprintf(stderr, "copper mark: %s\n", err.text);
	return 1;
}

static int mark_region(const struct args *a)
{
	struct cop_mark_event e = {.name = a->words[1],
		.category = a->category,
		.phase = a->words[0][0] == 'b' ? 'B' : 'E',
		.pid = shell_of(a),
		.ts_ns = cop_wall_ns(),
		.dur_ns = -1};

	return cop_mark_options().enabled ? write_events(a, &e, 1) : 0;
}

/* ---- a command ---- */

static int exec_command(char **command)
{
	struct cop_err err = {0};
	int code = cop_exec(command, &err);

	fprintf(stderr, "copper mark: %s\n", err.text);
	return code;
}

static double seconds_of(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

/* Creates PerfFlowAspect's cpu-mem-usage events. */
static void make_usage_events(const struct cop_mark_event *began, int64_t end_ns,
	const struct rusage *usage, struct cop_mark_event out[2])
{
	double cpu = seconds_of(&usage->ru_utime) + seconds_of(&usage->ru_stime);
	double wall = (double)(end_ns - began->ts_ns) / 1e9;

	out[0] = out[1] = *began;
	out[0].phase = out[1].phase = 'C';
	out[0].counts = out[1].counts = true;
	out[0].cpu_percent = wall > 0 ? 100 * cpu / wall : 0;
	out[0].memory_kib = (double)usage->ru_maxrss;
	out[1].ts_ns = end_ns;
}

static void mark_end(
	const struct args *a, const struct cop_mark_event *began, const struct rusage *usage)
{
	struct cop_mark_options o = cop_mark_options();
	struct cop_mark_event e[3] = {*began};
	int64_t end_ns = cop_wall_ns();

	make_usage_events(began, end_ns, usage, e);
	e[2] = *began;
	e[2].phase = o.compact ? 'X' : 'E';
	if (o.compact)
		e[2].dur_ns = COP_MAX(end_ns - began->ts_ns, 0);
	else
		e[2].ts_ns = end_ns;
	if (o.usage)
		write_events(a, e, 3);
	else
		write_events(a, e + 2, 1);
}

/* Runs in the child: waits until the begin event has been written, so that it precedes all other
 * events. */
static int run_command(char **command, int go, const struct cop_child_signals *before, pid_t parent)
{
	char word;

	while (read(go, &word, 1) < 0 && errno == EINTR)
		continue;
	close(go);
	cop_child_restore(before);
	cop_child_tie(parent);
	return exec_command(command);
}

static pid_t start_command(char **command, const struct cop_child_signals *before, int *go)
{
	pid_t parent = getpid(), pid;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return -1;
	pid = fork();
	if (pid == 0) {
		close(ends[1]);
		_exit(run_command(command, ends[0], before, parent));
	}
	close(ends[0]);
	*go = ends[1];
	return pid;
}

static int mark_command(const struct args *a)
{
	struct cop_mark_event began = {
		.name = a->words[0], .category = a->category, .phase = 'B', .dur_ns = -1};
	struct cop_child_signals before;
	struct rusage usage = {0};
	bool lost = false;
	int status, go;

	cop_child_expect(&before);
	cop_child_hold(&before);
	began.pid = start_command(a->words + 2, &before, &go);
	if (began.pid < 0) {
		fprintf(stderr, "copper mark: cannot start a process: %s\n", strerror(errno));
		return FAILED;
	}
	began.ts_ns = cop_wall_ns();
	if (!cop_mark_options().compact)
		lost = write_events(a, &began, 1);
	close(go);
	status = cop_child_wait(began.pid, &usage);
	if (!lost)
		mark_end(a, &began, &usage);
	return cop_child_end_as(status);
}

int cop_cmd_mark(int argc, char **argv)
{
	struct args a;
	int code;

	if (!cop_opt_start(&table, argc, argv, &a, &code))
		return code;
	if (is_region(a.words))
		return mark_region(&a);
	return cop_mark_options().enabled ? mark_command(&a) : exec_command(a.words + 2);
}
