/* SPDX-License-Identifier: BSD-3-Clause */
/* The report of a node of a step about its start, and its parser: one line on standard output,
 * "copper-step ready" or "copper-step failed HOST: sentence", which srun forwards to the command
 * that started the step. For a node that never ran, or was killed, srun reports on its standard
 * error:
 *
 *     srun: error: task 1 launch failed: Slurmd could not execve job
 *     srun: error: Task launch for StepId=7.0 failed on node n2: Invalid job credential
 *     srun: error: n2: task 1: Exited with exit code 13
 *     srun: error: n2: tasks 1-3: Killed */
#include "job/scheduler/scheduler_priv.h"

#define WORD "copper-step "
#define READY "ready"
#define FAILED "failed "

void cop_slurm_tell(int fd, const struct cop_err *failure)
{
	const char *host = getenv("SLURMD_NODENAME");
	struct cop_buf line = {0};

	if (failure)
		cop_buf_printf(&line, WORD FAILED "%s%s%.1500s\n", host ? host : "",
			host ? ": " : "", failure->text);
	else
		cop_buf_str(&line, WORD READY "\n");
	if (line.data)
		cop_write_full(fd, line.data, line.len);
	cop_buf_free(&line);
	close(fd);
}

bool cop_slurm_hear(struct cop_slurm_heard *h, const char *line)
{
	const char *p = line + strlen(WORD);

	if (strncmp(line, WORD, strlen(WORD)))
		return false;
	if (strcmp(p, READY) == 0)
		h->ready++;
	else if (strncmp(p, FAILED, strlen(FAILED)) == 0 && !h->failure[0])
		snprintf(h->failure, sizeof(h->failure), "%s", p + strlen(FAILED));
	return true;
}

/* The part of a line from srun that describes a lost node, or NULL. */
static const char *lost_node(const char *line)
{
	static const char begin[] = "srun: error: ";
	const char *said = line + strlen(begin);

	if (strncmp(line, begin, strlen(begin)))
		return NULL;
	if (strstr(said, ": task ") || strstr(said, ": tasks "))
		return said;
	return strcasestr(said, "task") && strstr(said, "launch") && strstr(said, " failed") ? said
											     : NULL;
}

bool cop_slurm_hear_srun(struct cop_slurm_heard *h, char *text)
{
	char *rest = text, *line;

	while (!h->lost[0] && (line = strsep(&rest, "\n"))) {
		const char *said = lost_node(line);

		if (said)
			snprintf(h->lost, sizeof(h->lost), "%s", said);
	}
	return h->lost[0];
}
