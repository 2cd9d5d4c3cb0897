/* SPDX-License-Identifier: BSD-3-Clause */
#include "job/hosts/hosts.h"

bool cop_job_mark(char mark[COP_JOB_MARK_SIZE])
{
	static const char *const names[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"};

	mark[0] = '\0';
	for (size_t i = 0; i < COP_ARRAY_SIZE(names) && !mark[0]; i++) {
		const char *id = getenv(names[i]);

		if (!id || !*id ||
			snprintf(mark, COP_JOB_MARK_SIZE, "%s=%s", names[i], id) >=
				COP_JOB_MARK_SIZE)
			mark[0] = '\0';
	}
	return mark[0];
}

/* Slurm, PBS and OAR number each task of an array as a job of its own; LSF, Grid Engine and
 * Fujitsu's TCS do not. Processes of `flux run` in an allocation have their own job numbers, but
 * belong to the allocation. */
static const struct {
	const char *name, *part;
} jobs[] = {{"SLURM_HET_JOB_ID", NULL}, {"SLURM_JOB_ID", NULL}, {"PBS_JOBID", NULL},
	{"LSB_JOBID", "LSB_JOBINDEX"}, {"FLUX_ENCLOSING_ID", NULL}, {"FLUX_JOB_ID", NULL},
	{"JOB_ID", "SGE_TASK_ID"}, {"OAR_JOB_ID", NULL}, {"PJM_JOBID", "PJM_BULKNUM"},
	{"COBALT_JOBID", NULL}};

static const char *text_of(const char *name)
{
	const char *text = name ? getenv(name) : NULL;

	return text ? text : "";
}

uint64_t cop_job_identity(char label[COP_JOB_MARK_SIZE])
{
	for (size_t i = 0; i < COP_ARRAY_SIZE(jobs); i++) {
		const char *id = text_of(jobs[i].name), *part = text_of(jobs[i].part);
		char text[2 * COP_JOB_MARK_SIZE];
		int len;

		/* Other programs set a variable JOB_ID, too. */
		if (!*id || (strcmp(jobs[i].name, "JOB_ID") == 0 && !*part))
			continue;
		len = snprintf(text, sizeof(text), "%s=%.100s%s%.100s", jobs[i].name, id,
			*part ? "," : "", part);
		snprintf(label, COP_JOB_MARK_SIZE, "%.*s", COP_JOB_MARK_SIZE - 1, text);
		return cop_hash64(text, (size_t)len, 0);
	}
	label[0] = '\0';
	return 0;
}
