/* SPDX-License-Identifier: BSD-3-Clause */
/* Environment variables for this job's commands, besides the job directory. Rank 0 chooses them
 * before the tree is ready, and stores them in the job directory for commands on other ranks. */
#include "node/node/node_priv.h"

#include "job/dir/dir.h"

static void add_line(struct cop_buf *out, const char *name, const char *value)
{
	if (*value && !strchr(value, '\n'))
		cop_buf_printf(out, "%s=%s\n", name, value);
}

/* Writes the file, or removes one that an earlier job left. */
static void leave_file(const struct cop_node *n)
{
	char path[4096 + 32];
	int rc;

	snprintf(path, sizeof(path), "%s/" COP_JOB_ENVIRONMENT, n->log.job_dir);
	if (!n->environment.len) {
		unlink(path);
		return;
	}
	rc = cop_write_file(path, n->environment.data, n->environment.len, 0644);
	if (rc)
		cop_log_warn(
			"cannot write %s error=\"%s\": commands of other ranks do not learn the run",
			path, strerror(-rc));
}

/* Whether programs of an earlier job have logged here. If so, this job needs an id of its own, or
 * its programs could not be told apart from theirs. */
static bool has_earlier_logs(const struct cop_node *n)
{
	char path[4096 + 32];

	snprintf(path, sizeof(path), "%s/runs", n->log.job_dir);
	return *n->log.job_dir && cop_take_has_logs(path);
}

int cop_node_choose_run(struct cop_node *n, struct cop_err *err)
{
	char store[COP_RUNLOG_STORE], parent[COP_OTEL_PARENT_SIZE], id[COP_RUNREC_ID_LEN + 1];

	(void)err;
	if (n->rank != 0)
		return 0;
	if (cop_runlog_new(n->conf, n->run_id, store)) {
		add_line(&n->environment, "COPPER_RUN_ID", n->run_id);
		add_line(&n->environment, "COPPER_STORE", store);
	} else if (has_earlier_logs(n) && !cop_runrec_new_id(id)) {
		add_line(&n->environment, "COPPER_RUN_ID", id);
	}
	if (n->conf->otel && *n->log.job_dir)
		n->trace = cop_otel_trace_new();
	if (n->trace) {
		cop_otel_trace_parent(n->trace, parent);
		add_line(&n->environment, "TRACEPARENT", parent);
	}
	if (*n->log.job_dir)
		leave_file(n);
	return 0;
}
