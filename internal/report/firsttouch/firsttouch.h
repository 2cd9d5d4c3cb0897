/* SPDX-License-Identifier: BSD-3-Clause */
/* touched: makes the manifest of a job, for --prefetch of the next job, from the order in which its
 * ranks first touched paths. */
#ifndef COP_REPORT_FIRSTTOUCH_H
#define COP_REPORT_FIRSTTOUCH_H

#include "base/base/base.h"

/* Zero-initialised by the caller, then filled. */
struct cop_firsttouch {
	char *input;    /* the directory that was read */
	uint64_t ranks; /* ranks whose files were used completely */
	uint64_t items, directories, files;
	uint64_t bytes;    /* how much the job read of those files, counted once */
	uint64_t gone;     /* files that no longer exist: not in the manifest */
	uint64_t left_out; /* items beyond the largest size of a manifest */
	bool unseen;     /* the source is not visible here, so sizes are guesses, and files that no
			    longer exist are not noticed */
	uint64_t faults; /* files of ranks that are unusable or truncated */
	struct cop_buf
		named; /* the first of them by name, one per line, and the number of the others */
};

/* Writes the manifest of the job to file, whole or not at all, from JOBDIR/profiling/final, or
 * JOBDIR if that is missing. -ENOENT if no rank wrote the order of its first touches, -ENODATA if
 * none of the files can be used. */
int cop_firsttouch_manifest(
	const char *job_dir, const char *file, struct cop_firsttouch *out, struct cop_err *err);
void cop_firsttouch_free(struct cop_firsttouch *m);

#endif
