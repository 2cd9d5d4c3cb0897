/* SPDX-License-Identifier: BSD-3-Clause */
/* paths: compares the job's use of its environment with the files on disk. Writes the lists
 * described in copper-formats.5, including what can be omitted. Files in a job directory are
 * untrusted. Writes nothing but its own output. */
#ifndef COP_REPORT_PATHS_H
#define COP_REPORT_PATHS_H

#include "base/base/base.h"

struct cop_paths_conf {
	const char *job_dir;
	const char *output_dir; /* NULL: JOBDIR/paths_dir */
	const char *const *usage_root;
	unsigned usage_roots;
	const char *home; /* the home directory; NULL: do not infer a root from it */
	bool no_sizes;    /* omit sizes, which cost one stat per file */
	/* Called at intervals with the number of items processed and what they are; may be NULL. */
	void (*progress)(void *arg, uint64_t n, const char *what);
	void *arg;
};

struct cop_paths_usage; /* private to this module */

struct cop_paths_result {
	char *job, *input, *output; /* absolute paths of directories */
	uint64_t faults;            /* unusable or truncated tables */
	struct cop_buf named; /* the first few faulty files with the reason, one per line, then a
				 count of the rest */
	struct cop_buf notes; /* other messages for the user, one per line */
	struct cop_paths_usage *usage;
};

/* Reads JOBDIR/tables/final, or JOBDIR if that is missing, walks the usage roots and writes the
 * lists, roots_and_counts.txt and paths_summary.md (copper-formats.5). Memory use grows with the
 * number of distinct paths and of names below the roots, not with the number of ranks. -ENOENT if
 * there is no raw table, -ENODATA if none is usable (out->named has the reasons), both with the
 * likely causes. After an error, out contains the results so far; the caller frees it in any
 * case. */
int cop_paths_run(
	const struct cop_paths_conf *what, struct cop_paths_result *out, struct cop_err *err);
void cop_paths_result_free(struct cop_paths_result *p);
/* Print the totals and the names of the files written, as a table for a terminal and as one JSON
 * object. */
void cop_paths_result_table(const struct cop_paths_result *p, struct cop_buf *out);
void cop_paths_result_json(const struct cop_paths_result *p, struct cop_buf *out);

#endif
