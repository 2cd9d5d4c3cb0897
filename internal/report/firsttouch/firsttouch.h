/* SPDX-License-Identifier: BSD-3-Clause */
/* touched: creates a job's manifest, for --prefetch of the next job, from the order in which its
 * ranks first touched paths. */
#ifndef COP_REPORT_FIRSTTOUCH_H
#define COP_REPORT_FIRSTTOUCH_H

#include "base/base/base.h"

/* Zero-initialised by the caller, then filled in. */
struct cop_firsttouch {
	char *input;    /* the input directory */
	uint64_t ranks; /* ranks with complete files */
	uint64_t items, directories, files;
	uint64_t bytes;    /* bytes the job read of these files, each file once */
	uint64_t gone;     /* files that no longer exist: omitted from the manifest */
	uint64_t left_out; /* items beyond the maximum size of a manifest */
	bool unseen; /* the source is not accessible here: sizes are estimates, and deleted files
			are not detected */
	uint64_t faults; /* unusable or truncated files of ranks */
	struct cop_buf
		named; /* the first faults by name, one per line, and the number of the rest */
};

/* Writes the job's manifest to file, completely or not at all, from JOBDIR/profiling/final, or
 * JOBDIR if that is missing. -ENOENT if no rank recorded first touches, -ENODATA if no file is
 * usable. */
int cop_firsttouch_manifest(
	const char *job_dir, const char *file, struct cop_firsttouch *out, struct cop_err *err);
void cop_firsttouch_free(struct cop_firsttouch *m);

#endif
