/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_CMD_REPORT_SPANS_H
#define COP_CMD_REPORT_SPANS_H

#include "report/html/html.h"

/* Reads the spans in JOBDIR/otel and in the files *.json and *.jsonl of JOBDIR itself. Files
 * without spans and unreadable files count as empty. The caller frees out. 0 or -ENOMEM. */
int cop_cmd_report_spans(const struct cop_jobdata *job, struct cop_page_spans *out);
void cop_cmd_report_spans_free(struct cop_page_spans *s);

#endif
