/* SPDX-License-Identifier: BSD-3-Clause */
/* args: copies the text of arguments as valid JSON. */
#ifndef COP_TRACE_TIMELINE_ARGS_H
#define COP_TRACE_TIMELINE_ARGS_H

#include "trace/read/read.h"

/* Appends a value, or the inside of a string, as valid JSON: control characters are escaped,
 * invalid UTF-8 becomes U+FFFD, and what is not a number becomes null. */
void cop_members_copy(struct cop_buf *out, struct cop_trace_str value);
void cop_members_copy_inside(struct cop_buf *out, struct cop_trace_str text);

#endif
