/* SPDX-License-Identifier: BSD-3-Clause */
/* paths: compares the part of its environment that a job used with what is on disk: the lists of
 * copper-formats.5, and what could be omitted. The files in a job's directory are untrusted; it
 * changes only its own output. */
#ifndef COP_REPORT_PATHS_H
#define COP_REPORT_PATHS_H

#include "base/base/base.h"

struct cop_paths_conf {
	const char *job_dir;
	const char *output_dir; /* NULL: JOBDIR/paths_dir */
	const char *const *usage_root;
	unsigned usage_roots;
	const char *home; /* NULL: no root is inferred from it */
	bool no_sizes;    /* omit sizes, which cost a storage operation per file */
	/* Called at intervals with the number of things examined so far, and a word for what they
	 * are; NULL: never. */
	void (*progress)(void *arg, uint64_t n, const char *what);
	void *arg;
};

struct cop_paths_usage; /* private to this module */

struct cop_paths_result {
	char *job, *input, *output; /* directories, absolute */
	uint64_t faults;            /* tables that are unusable or truncated */
	struct cop_buf
		named; /* the first of them by name, one per line, and how many others there are */
	struct cop_buf notes; /* other things that the user should know, one per line */
	struct cop_paths_usage *usage;
};

/* Reads JOBDIR/tables/final, or JOBDIR if that is missing, walks the usage roots and writes the
 * lists, roots_and_counts.txt and paths_summary.md (copper-formats.5). Memory grows with the
 * distinct paths and with the names below the roots, not with ranks. -ENOENT if there is no raw
 * table, -ENODATA if none can be used (out->named says why), both with the likely causes. out is
 * filled as completely as possible; the caller frees it even after an error. */
int cop_paths_run(
	const struct cop_paths_conf *what, struct cop_paths_result *out, struct cop_err *err);
void cop_paths_result_free(struct cop_paths_result *p);
/* The totals and the files written, for a terminal, and as one JSON object. */
void cop_paths_result_table(const struct cop_paths_result *p, struct cop_buf *out);
void cop_paths_result_json(const struct cop_paths_result *p, struct cop_buf *out);

#endif
