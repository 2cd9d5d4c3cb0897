/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "job/job/job.h"

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
