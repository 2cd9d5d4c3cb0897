/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of tab-separated fields, in run records and in program logs. */
#ifndef COP_WRITERS_RUNS_LINE_PRIV_H
#define COP_WRITERS_RUNS_LINE_PRIV_H

#include "writers/runs/runs.h"

#define LINE_PARTS 5

struct line {
	char *part[LINE_PARTS];
	unsigned n;
};

/* ---- text.c: all return 0 or -EBADMSG ---- */

/* Splits a line and unescapes its fields, in place. */
int cop_line_split(char *text, struct line *l);
int cop_line_time(const char *text, double *out);
/* Also accepts "nan", "inf" and "-inf". */
int cop_line_value(const char *text, double *out);
int cop_line_whole(const char *text, uint64_t most, uint64_t *out);
bool cop_line_is_id(const char *text);

/* ---- logline.c ---- */

/* No writer produces longer lines. */
#define LOG_LINE_MAX 16384
#define LOG_FORM 1

struct logline {
	enum logline_kind {
		LOGLINE_HEAD,
		LOGLINE_NAME,
		LOGLINE_PAIR,
		LOGLINE_POINT,
		LOGLINE_STATUS
	} kind;
	enum cop_runrec_list list; /* list of a pair */
	const char *key, *value;   /* HEAD: run or "-", and host; STATUS: value is the reason */
	enum cop_runrec_status status;
	uint64_t form, step;
	double time_s, number;
};

/* Parses a line in place; out points into it. text has len bytes, then a NUL, and no line feed. 0
 * or -EBADMSG. */
int cop_logline_parse(char *text, size_t len, struct logline *out);

#endif
