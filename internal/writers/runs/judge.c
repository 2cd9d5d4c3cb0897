/* SPDX-License-Identifier: BSD-3-Clause */
/* Decides whether a job failed, and why, from the state of its nodes and commands. */
#include "writers/runs/runs.h"

#include <signal.h>
#include <sys/wait.h>

#include "base/base/cpu.h"

/* The scheduler may signal a job up to this long before its time limit. */
#define TIME_LIMIT_S 5

static const char *signal_word(int number)
{
	switch (number) {
	case SIGKILL:
		return "killed";
	case SIGTERM:
		return "terminated";
	case SIGINT:
		return "interrupted";
	case SIGSEGV:
		return "segmentation fault";
	case SIGABRT:
		return "aborted";
	case SIGBUS:
		return "bus error";
	default:
		return strsignal(number);
	}
}

/* Whether the scheduler ended the job at its time limit. */
static bool is_time_over(void)
{
	const char *end = getenv("SLURM_JOB_END_TIME");
	uint64_t end_s;

	return end && !cop_parse_u64(end, &end_s) &&
	       (uint64_t)cop_wall_ns() / COP_NS_PER_S + TIME_LIMIT_S >= end_s;
}

static void put_worst(const struct cop_judge *j, struct cop_buf *out)
{
	const struct cop_op_exits *e = &j->exits;

	if (WIFSIGNALED(e->worst) && WTERMSIG(e->worst) == SIGKILL &&
		cop_memory_kills("") > j->kills)
		cop_buf_printf(out, "signal %d (out of memory)", SIGKILL);
	else if (WIFSIGNALED(e->worst))
		cop_buf_printf(
			out, "signal %d (%s)", WTERMSIG(e->worst), signal_word(WTERMSIG(e->worst)));
	else
		cop_buf_printf(out, "exit %d", WEXITSTATUS(e->worst));
	cop_buf_printf(out, " on rank %" PRIu32, e->rank);
	if (e->commands > 1)
		cop_buf_printf(out, "; %" PRIu32 " of %" PRIu32 " commands failed", e->failed,
			e->commands);
}

/* Unless every command of the run is known to have exited with 0, appends why the run did not
 * finish although the node did. */
static void judge_commands(const struct cop_judge *j, struct cop_buf *out)
{
	const struct cop_op_exits *e = &j->exits;
	uint32_t unknown = e->commands - COP_MIN(e->commands, e->good + e->failed + e->running);

	if ((e->failed || e->running) && is_time_over()) {
		cop_buf_str(out, "time limit");
	} else if (e->failed) {
		put_worst(j, out);
	} else if (e->running) {
		cop_buf_printf(out, "%s while %" PRIu32 " command%s ran",
			strcmp(j->reason, "signal") == 0 ? "the node was ended by a signal"
							 : j->reason,
			e->running, e->running > 1 ? "s" : "");
	}
	if (unknown)
		cop_buf_printf(out, "%show %" PRIu32 " of %" PRIu32 " commands ended is not known",
			out->len ? "; " : "", unknown, e->commands);
}

/* Appends how many nodes did not report the exit status of their commands, if any. */
static void judge_nodes(const struct cop_judge *j, struct cop_buf *out)
{
	uint32_t silent = j->all_asked ? j->missing : j->nodes - 1;

	if (silent && j->all_asked)
		cop_buf_printf(out,
			"; %" PRIu32 " of %" PRIu32
			" nodes did not answer: how commands ended there is not known",
			silent, j->nodes);
	else if (silent)
		cop_buf_printf(out,
			"; how commands ended on %" PRIu32 " of %" PRIu32 " nodes is not known",
			silent, j->nodes);
}

bool cop_judge_end(const struct cop_judge *j, struct cop_buf *reason)
{
	struct cop_buf nodes = {0};
	bool failed = j->failed;

	if (!failed) {
		judge_commands(j, reason);
		judge_nodes(j, &nodes);
		failed = reason->len || nodes.len;
	}
	if (!reason->len)
		cop_buf_str(reason, j->reason);
	cop_buf_add(reason, nodes.data, nodes.len);
	reason->failed |= nodes.failed;
	cop_buf_free(&nodes);
	return failed;
}
