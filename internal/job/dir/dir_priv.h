/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_JOB_DIR_PRIV_H
#define COP_JOB_DIR_PRIV_H

#include "job/dir/dir.h"

#define COP_JOB_SECRET_MAX 4096 /* maximum size of a secret file, in bytes */

int cop_job_secret_read(const char *path, struct cop_job_secret *out, struct cop_err *err);
/* Gets the secret from JOBDIR/secret; from->job_dir must be set. */
int cop_job_secret_shared(
	const struct cop_job_secret_from *from, struct cop_job_secret *out, struct cop_err *err);

/* The parser behind cop_job_tree_read, for tests and fuzzing. */
int cop_job_tree_parse(const char *text, size_t len, const char *name, struct cop_job_tree *tree,
	struct cop_err *err);

#endif
