/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "job/job_priv.h"

/* Every node of a job does this at once: a folder that is there is as good as one just made. */
static int make_one(const char *path)
{
	struct stat st;

	if (!mkdir(path, 0700))
		return 0;
	if (errno != EEXIST)
		return -errno;
	if (stat(path, &st))
		return -errno;
	return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

/* Makes path and what is missing above it. */
static int make_all(char *path)
{
	for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
		int rc;

		*p = '\0';
		rc = make_one(path);
		*p = '/';
		/* A parent that is there but may not be looked into by mkdir (read-only,
		 * automounted) fails with something else than EEXIST; whether that matters
		 * shows at the last component. */
		if (rc == -ENOTDIR)
			return rc;
	}
	return make_one(path);
}

int cop_job_dir_make(const char *job_dir, struct cop_err *err)
{
	char *path;
	int rc;

	if (!*job_dir)
		return cop_err_set(err, EINVAL, "the job directory's name is empty");
	if (asprintf(&path, "%s/logs", job_dir) < 0)
		return cop_err_set(err, ENOMEM, "no memory for the job directory's name");
	rc = make_all(path);
	free(path);
	return rc ? cop_err_set(err, -rc, "cannot make %s/logs: %s", job_dir, strerror(-rc)) : 0;
}
