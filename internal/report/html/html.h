/* SPDX-License-Identifier: BSD-3-Clause */
/* html: one HTML page about a job, for a person: complete in one file, with no script and
 * nothing to load. Each section shows its data, or says in one sentence what is missing and
 * which option would provide it. Its size is bounded, however many nodes the job had. Pure: no
 * input or output. */
#ifndef COP_REPORT_HTML_H
#define COP_REPORT_HTML_H

#include "report/jobdata/jobdata.h"
#include "writers/runs/runs.h"

struct cop_page {
	const struct cop_jobdata *job;
	const struct cop_runrec *run;      /* this job's record in the run store, or NULL */
	const struct cop_runrec *before;   /* the record of the run before it, or NULL */
	const struct cop_runrec *compared; /* whose metrics are drawn beside this run's */
	size_t compared_n;
	const char *store; /* the run store that was consulted, or NULL */
};

/* Appends the page. 0 or -ENOMEM. */
int cop_page_write(const struct cop_page *p, struct cop_buf *out);

#endif
