/* SPDX-License-Identifier: BSD-3-Clause */
/* touched: the manifest of a job, for --prefetch of the next one, out of what its ranks touched
 * first. */
#ifndef COP_TOUCHED_H
#define COP_TOUCHED_H

#include "base/base.h"

/* Zero-initialised, then filled. */
struct cop_touched {
	char *input;    /* the directory that was read */
	uint64_t ranks; /* whose files were used whole */
	uint64_t items, directories, files;
	uint64_t bytes;    /* that the job read of those files, each once */
	uint64_t gone;     /* files that are not there any more: not in the manifest */
	uint64_t left_out; /* items past the size that a manifest may have */
	bool unseen; /* the source is not to be seen here, so sizes are guesses and nothing is known
			to be gone */
	uint64_t faults; /* files of ranks that are of no use, or not whole */
	struct cop_buf
		named; /* the first of them by name, a line each, and how many more there are */
};

/* Writes the manifest of the job to file, whole or not at all, from JOBDIR/profiling/final, or
 * JOBDIR where that is missing. -ENOENT if no rank wrote the order of its first touches, -ENODATA
 * if none of it can be used. */
int cop_touched_manifest(
	const char *job_dir, const char *file, struct cop_touched *out, struct cop_err *err);
void cop_touched_free(struct cop_touched *m);

#endif
