/* SPDX-License-Identifier: BSD-3-Clause */
/* html: the HTML report of a job: one self-contained file without scripts. Each section shows its
 * data, or which data is missing and the option that provides it. The size is bounded for any
 * number of nodes. Pure: no input or output. */
#ifndef COP_REPORT_HTML_H
#define COP_REPORT_HTML_H

#include "report/jobdata/jobdata.h"
#include "writers/runs/runs.h"

/* Spans of programs and of Copper, from the OpenTelemetry files. Times are seconds on one axis.
 * Names are untrusted. */
#define COP_PAGE_SPAN_NAME 96
struct cop_page_span {
	char name[COP_PAGE_SPAN_NAME];
	unsigned process; /* 0: Copper */
	double from_s, for_s;
};
struct cop_page_spans {
	struct cop_page_span *at; /* sorted by process and start, then longest first */
	size_t n;
	char (*process)[COP_PAGE_SPAN_NAME]; /* process names */
	unsigned processes;
	uint64_t shorter;  /* spans too short for the list */
	uint64_t elsewhen; /* spans before or after this job */
	double seconds;    /* end of the axis */
	double job_s;      /* start of the job, the origin of its telemetry's times */
};

struct cop_page {
	const struct cop_jobdata *job;
	const struct cop_runrec *run;      /* this job's record in the run store, or NULL */
	const struct cop_runrec *before;   /* the record of the previous run, or NULL */
	const struct cop_runrec *compared; /* runs to draw metrics of beside this run's */
	size_t compared_n;
	const struct cop_page_spans *spans; /* or NULL */
	const char *store;                  /* the run store used, or NULL */
};

/* Appends the page. 0 or -ENOMEM. */
int cop_page_write(const struct cop_page *p, struct cop_buf *out);

#endif
