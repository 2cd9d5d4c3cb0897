/* SPDX-License-Identifier: BSD-3-Clause */
/* html: the HTML report of a job: one self-contained file without scripts. Each section shows its
 * data, or says which data is missing and which option would provide it. Its size is bounded,
 * however many nodes the job had. Pure: no input or output. */
#ifndef COP_REPORT_HTML_H
#define COP_REPORT_HTML_H

#include "report/jobdata/jobdata.h"
#include "writers/runs/runs.h"

/* Spans of programs and of Copper, as written for OpenTelemetry. Times are seconds on one axis.
 * Names are of unknown origin. */
#define COP_PAGE_SPAN_NAME 96
struct cop_page_span {
	char name[COP_PAGE_SPAN_NAME];
	unsigned process; /* 0: Copper */
	double from_s, for_s;
};
struct cop_page_spans {
	struct cop_page_span *at; /* by process, start and length, the longest first */
	size_t n;
	char (*process)[COP_PAGE_SPAN_NAME]; /* what each is called */
	unsigned processes;
	uint64_t shorter;  /* spans that are too short for the list */
	uint64_t elsewhen; /* spans from before or after this job */
	double seconds;    /* the end of the axis */
	double job_s;      /* when the job began, whose telemetry counts from there */
};

struct cop_page {
	const struct cop_jobdata *job;
	const struct cop_runrec *run;      /* this job's record in the run store, or NULL */
	const struct cop_runrec *before;   /* the record of the run before it, or NULL */
	const struct cop_runrec *compared; /* whose metrics are drawn beside this run's */
	size_t compared_n;
	const struct cop_page_spans *spans; /* or NULL */
	const char *store;                  /* the run store that was consulted, or NULL */
};

/* Appends the page. 0 or -ENOMEM. */
int cop_page_write(const struct cop_page *p, struct cop_buf *out);

#endif
