/* SPDX-License-Identifier: BSD-3-Clause */
#include "job/dir/dir_priv.h"

/* The folders that nodes and reports create there. */
static const char *const folders[] = {"logs", "profiling", "profiling/final", "profiling/cluster",
	"tables", "tables/final", "paths_dir", "trace"};

int cop_job_dir_check(const char *job_dir, struct cop_err *err)
{
	char *path;
	int rc = cop_safedir(job_dir, err);

	for (size_t i = 0; i < COP_ARRAY_SIZE(folders) && !rc; i++) {
		if (asprintf(&path, "%s/%s", job_dir, folders[i]) < 0)
			return cop_err_set(err, ENOMEM, "no memory for the job directory's name");
		rc = cop_safedir_check(path, err);
		free(path);
	}
	return rc;
}

int cop_job_dir_make(const char *job_dir, struct cop_err *err)
{
	char *path;
	int rc;

	if (!*job_dir)
		return cop_err_set(err, EINVAL, "the job directory's name is empty");
	/* All nodes of a job do this concurrently, so an existing folder is fine. */
	rc = cop_make_dirs(job_dir, 0700);
	if (rc)
		return cop_err_set(
			err, -rc, "cannot create the job directory %s: %s", job_dir, strerror(-rc));
	rc = cop_job_dir_check(job_dir, err);
	if (rc)
		return rc;
	if (asprintf(&path, "%s/logs", job_dir) < 0)
		return cop_err_set(err, ENOMEM, "no memory for the job directory's name");
	rc = cop_make_dirs_said(path, 0700, err);
	free(path);
	return rc;
}
