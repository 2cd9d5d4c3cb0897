/* SPDX-License-Identifier: BSD-3-Clause */
/* html: the HTML report of a job: one self-contained file without scripts. Each section shows its
 * data or, if there is none, which option records it. The size of the page is bounded for any
 * number of nodes. Pure: no I/O. */
#ifndef COP_REPORT_HTML_H
#define COP_REPORT_HTML_H

#include "report/jobdata/jobdata.h"
#include "writers/runs/runs.h"

/* Spans recorded by programs and by Copper, from the OpenTelemetry files. All times are seconds on
 * one axis. Names are untrusted. */
#define COP_PAGE_SPAN_NAME 96
struct cop_page_span {
	char name[COP_PAGE_SPAN_NAME];
	unsigned process; /* index of the process; 0: Copper */
	double from_s, for_s;
};
struct cop_page_spans {
	struct cop_page_span *at; /* sorted by process and start, then by length, longest first */
	size_t n;
	char (*process)[COP_PAGE_SPAN_NAME]; /* process names */
	unsigned processes;
	uint64_t shorter;  /* spans omitted because they are too short */
	uint64_t elsewhen; /* spans from before or after this job */
	double seconds;    /* end of the axis */
	double job_s;      /* start of the job on this axis; telemetry times count from here */
};

struct cop_page {
	const struct cop_jobdata *job;
	const struct cop_runrec *run;      /* this job's record in the run store, or NULL */
	const struct cop_runrec *before;   /* the record of the previous run, or NULL */
	const struct cop_runrec *compared; /* runs whose metrics are drawn beside this run's */
	size_t compared_n;
	const struct cop_page_spans *spans; /* or NULL */
	const char *store;                  /* the run store used, or NULL */
};

/* Appends the page. Returns 0 or -ENOMEM. */
int cop_page_write(const struct cop_page *p, struct cop_buf *out);

#endif
