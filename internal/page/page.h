/* SPDX-License-Identifier: BSD-3-Clause */
/* page: one HTML page about a job, for a person: complete in one file, with nothing to load and no
 * script. Each section shows its data or says in one sentence what is missing and which option
 * would give it. Its size has a bound however many nodes the job had. Pure. */
#ifndef COP_PAGE_H
#define COP_PAGE_H

#include "jobdata/jobdata.h"
#include "runrec/runrec.h"

struct cop_page {
	const struct cop_jobdata *job;
	const struct cop_runrec *run;    /* this job in the run store, or NULL */
	const struct cop_runrec *before; /* the run before it, or NULL */
	const char *store;               /* the run store that was asked, or NULL */
};

/* Appends the page. 0 or -ENOMEM. */
int cop_page_write(const struct cop_page *p, struct cop_buf *out);

#endif
