/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_REPORT_HTML_PRIV_H
#define COP_REPORT_HTML_PRIV_H

#include "chart.h"
#include "report/html/html.h"

#define PAGE_NODES_DRAWN 40 /* maximum number of rows in a map */
#define PAGE_NODES_LISTED 64
#define PAGE_LABEL 72

typedef void cop_page_section(const struct cop_page *p, struct cop_buf *out);
cop_page_section cop_page_job, cop_page_when, cop_page_operations, cop_page_tree, cop_page_paths,
	cop_page_environment, cop_page_memory, cop_page_start, cop_page_events, cop_page_before,
	cop_page_curves, cop_page_spans, cop_page_from;

/* Whether a program recorded metrics over time. */
bool cop_page_has_curves(const struct cop_page *p);
/* Whether the job recorded where its bytes came from. */
bool cop_page_has_from(const struct cop_page *p);
/* Whether a program recorded spans. */
bool cop_page_has_spans(const struct cop_page *p);

/* html.css, embedded by the assembler. */
extern const char cop_page_css[];

/* Appends a paragraph about missing data and how to record it; escapes the text. */
void cop_page_missing(struct cop_buf *out, const char *fmt, ...) COP_PRINTF(2, 3);
/* Appends a paragraph. */
void cop_page_say(struct cop_buf *out, const char *fmt, ...) COP_PRINTF(2, 3);
/* Label for tables and charts, such as "7 n007" or "min". */
void cop_page_label(int32_t rank, const char *host, char out[PAGE_LABEL]);
/* Label for sentences, such as "node 7 (n007)". */
void cop_page_node(int32_t rank, const char *host, char out[PAGE_LABEL]);
/* The row of this rank or statistic, or NULL. */
const struct cop_jobdata_node *cop_page_find(const struct cop_jobdata *j, int32_t rank);
/* Appends a paragraph that explains why there is no telemetry. */
void cop_page_no_telemetry(struct cop_buf *out, const struct cop_page *p, const char *what);
/* Appends a sentence if some nodes have no rows. */
void cop_page_partial(struct cop_buf *out, const struct cop_page *p);
/* The sum over all nodes of a field of struct cop_jobdata_node; NAN if some nodes have no row. */
double cop_page_sum(const struct cop_jobdata *j, size_t offset);
#define PAGE_SUM(j, field) cop_page_sum(j, offsetof(struct cop_jobdata_node, field))

#endif
