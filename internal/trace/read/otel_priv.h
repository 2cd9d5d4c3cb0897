/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of the OpenTelemetry reader: otel.c walks resources and scopes and reads
 * spans, metrics and logs; otel_value.c reads values. Unescaped and composed strings are in the
 * sink's scratch and valid as long as the block. */
#ifndef COP_TRACE_OTEL_PRIV_H
#define COP_TRACE_OTEL_PRIV_H

#include "trace/read/read_priv.h"

struct otel_reader {
	struct sink *sink;
	const struct fields *fields; /* empty */
	struct cop_trace_event e;    /* members that all events of one resource and scope share */
	int rc;
};

/* ---- otel_value.c ---- */

/* Returns the verbatim value of a member; empty if absent. */
struct cop_trace_str cop_trace_otel_member(struct cop_trace_str object, const char *key);
/* The same for the first of two members that is present. */
struct cop_trace_str cop_trace_otel_either(
	struct cop_trace_str object, const char *a, const char *b);
/* Iterates over the elements of an array; next returns false at the end. */
struct cop_trace_members cop_trace_otel_elements(struct cop_trace_str array);
bool cop_trace_otel_next(struct cop_trace_members *m, struct cop_trace_str *element);
/* Returns a string, unquoted and unescaped, or a number; empty for anything else. */
struct cop_trace_str cop_trace_otel_plain(struct sink *s, struct cop_trace_str v);
/* Parses nanoseconds since 1970, or a date. Returns false if it is neither, or 0. */
bool cop_trace_otel_time(struct cop_trace_str v, int64_t *out);
/* Returns V from {"stringValue":V} and the like. */
struct cop_trace_str cop_trace_otel_any(struct cop_trace_str v);

/* A member that precedes the attributes in args; omitted if empty. */
struct otel_member {
	const char *key;
	struct cop_trace_str value;
};
/* Converts a list of attributes to a JSON object. Empty if it does not fit into scratch. */
struct cop_trace_str cop_trace_otel_object(struct sink *s, struct cop_trace_str list);
/* The same, with n members before the attributes. */
struct cop_trace_str cop_trace_otel_args(
	struct sink *s, const struct otel_member *first, size_t n, struct cop_trace_str list);
/* Converts a list of attributes to text: "operation=read,state=ok". */
struct cop_trace_str cop_trace_otel_labels(struct sink *s, struct cop_trace_str list);

#endif
