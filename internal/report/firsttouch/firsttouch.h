/* SPDX-License-Identifier: BSD-3-Clause */
/* firsttouch: writes a manifest for the next job's --prefetch, in the order in which this job's
 * ranks first touched paths. */
#ifndef COP_REPORT_FIRSTTOUCH_H
#define COP_REPORT_FIRSTTOUCH_H

#include "base/base/base.h"

/* Zero-initialised by the caller, then filled in. */
struct cop_firsttouch {
	char *input;    /* the input directory */
	uint64_t ranks; /* ranks with complete files */
	uint64_t items, directories, files;
	uint64_t bytes;    /* bytes the job read from these files, counting each byte range once */
	uint64_t gone;     /* files omitted from the manifest because they no longer exist */
	uint64_t left_out; /* items dropped because the manifest had reached its maximum size */
	bool unseen; /* the source is not accessible here, so sizes are estimates and deleted files
			go undetected */
	uint64_t faults;      /* rank files that are unusable or truncated */
	struct cop_buf named; /* the first few faulty files with the reason, one per line, then a
				 count of the rest */
};

/* Writes the job's manifest to file atomically, from JOBDIR/profiling/final or, if that is missing,
 * from JOBDIR. -ENOENT if no rank recorded first touches, -ENODATA if no file is usable. */
int cop_firsttouch_manifest(
	const char *job_dir, const char *file, struct cop_firsttouch *out, struct cop_err *err);
void cop_firsttouch_free(struct cop_firsttouch *m);

#endif
