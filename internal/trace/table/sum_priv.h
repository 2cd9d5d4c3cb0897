/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of the summary. */
#ifndef COP_TRACE_TABLE_SUM_PRIV_H
#define COP_TRACE_TABLE_SUM_PRIV_H

#include "trace/table/table_priv.h"

/* ---- classes.c ---- */

bool cop_sum_is_posix(const struct cop_trace_event *e);
unsigned cop_classes_count(const struct cop_classes *c);
const char *cop_classes_name(const struct cop_classes *c, unsigned i);
/* Whether an event belongs to the i-th class. */
bool cop_classes_test(
	const struct cop_classes *c, unsigned i, unsigned worker, const struct cop_trace_event *e);

#endif
