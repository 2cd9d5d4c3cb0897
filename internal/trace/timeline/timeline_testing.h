/* SPDX-License-Identifier: BSD-3-Clause */
/* For the test and the fuzz target: a timeline in memory. */
#ifndef COP_TRACE_TIMELINE_TESTING_H
#define COP_TRACE_TIMELINE_TESTING_H

#include "trace/timeline/timeline.h"

/* Adds events from the reader; arg is the merge. */
static inline int cop_merge_add_all(
	void *arg, unsigned worker, const struct cop_trace_event *e, size_t n)
{
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++)
		rc = cop_merge_add(arg, worker, &e[i]);
	return rc;
}

/* arg is a struct cop_buf. */
static inline int cop_merge_put_in_buf(void *arg, const char *data, size_t len)
{
	cop_buf_add(arg, data, len);
	return 0;
}

#endif
