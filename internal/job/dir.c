/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/job_priv.h"

int cop_job_dir_make(const char *job_dir, struct cop_err *err)
{
	char *path;
	int rc;

	if (!*job_dir)
		return cop_err_set(err, EINVAL, "the job directory's name is empty");
	if (asprintf(&path, "%s/logs", job_dir) < 0)
		return cop_err_set(err, ENOMEM, "no memory for the job directory's name");
	/* Every node of a job does this at once: a folder that is there is as good as one just made. */
	rc = cop_make_dirs(path, 0700);
	free(path);
	return rc ? cop_err_set(err, -rc, "cannot make %s/logs: %s", job_dir, strerror(-rc)) : 0;
}
