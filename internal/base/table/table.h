/* SPDX-License-Identifier: BSD-3-Clause */
/* table: a table of named columns, printed for a terminal, as CSV (RFC 4180) or as a JSON array
 * of objects. It requests the cells one by one through a callback and stores none. */
#ifndef COP_BASE_TABLE_H
#define COP_BASE_TABLE_H

#include "base/base/base.h"

enum cop_grid_form { COP_GRID_PLAIN, COP_GRID_CSV, COP_GRID_JSON };

enum cop_grid_kind {
	COP_GRID_TEXT,
	COP_GRID_LABEL,   /* text; a JSON number if it is a whole number */
	COP_GRID_NUMBER,  /* the text of a number, or empty: null */
	COP_GRID_SECONDS, /* to the nanosecond; on a terminal to the microsecond */
	COP_GRID_WHOLE,   /* bytes or a count; three decimals for a mean, none on a terminal */
	COP_GRID_RATIO,   /* six decimals, on a terminal two */
	COP_GRID_REAL /* shortest form that reads back to the same value; six digits on a terminal
		       */
};

struct cop_grid_col {
	const char *name; /* any text; also the key in the JSON objects */
	enum cop_grid_kind kind;
};
/* By column kind: text, borrowed for the call, or a value, NAN if missing. */
struct cop_grid_cell {
	const char *text;
	size_t len;
	long double value;
};
struct cop_grid {
	const struct cop_grid_col *col;
	unsigned cols;
	size_t rows;
	struct cop_grid_cell (*cell)(const void *arg, size_t row, unsigned col);
	const void *arg;
};

/* A number in COP_GRID_REAL format; whole numbers below 2^64 keep all digits. */
void cop_grid_put_real(long double v, struct cop_buf *out);
/* Complete lines; JSON ends with a newline, too. out->failed reports a lack of memory. */
void cop_grid_show(const struct cop_grid *g, enum cop_grid_form form, struct cop_buf *out);

/* csv: writes names with arbitrary bytes into text files and reads them back: CSV fields, lines
 * of raw tables, cells of Markdown. It also reads CSV records from untrusted input. Pure: no
 * files, no column semantics. */

/* ---- writing ---- */

/* Writes the text in double quotes, with inner quotes doubled. */
void cop_csv_quoted(struct cop_buf *out, const char *text, size_t len);
/* Writes the text unquoted if that is unambiguous, else quoted. */
void cop_csv_field(struct cop_buf *out, const char *text, size_t len);
/* Writes the text for a line of a raw table: newline as \n, backslash as \\. */
void cop_csv_escaped(struct cop_buf *out, const char *text, size_t len);
/* Decodes this escaping in place and returns the new length; a backslash before any other byte
 * is kept, as in Copper 1.0's files. */
size_t cop_csv_unescape(char *text, size_t len);
/* Writes a code span valid in a table cell, without control bytes. */
void cop_csv_markdown(struct cop_buf *out, const char *text, size_t len);

/* ---- reading ---- */

#define COP_CSV_FIELDS_MAX 64
#define COP_CSV_RECORD_MAX (256 * COP_KIB)

/* Fills data with up to len bytes; 0 at the end, or -errno. */
typedef ssize_t cop_csv_read(void *arg, void *data, size_t len);

/* Reads one record at a time, in COP_CSV_RECORD_MAX bytes of memory for input of any length. */
struct cop_csv {
	cop_csv_read *read;
	void *arg;
	char *data;
	size_t start, len; /* bytes not yet returned */
	uint64_t line;     /* first line of the last record, from 1 */
	uint64_t lines;    /* lines begun so far */
	bool ended;        /* end of input reached */
	const char *why;   /* after -EBADMSG: "a quote is not closed" */
};

struct cop_csv_record {
	unsigned n;
	bool cut; /* the last record lacks its line end */
	struct {
		const char *text; /* NUL-terminated, unquoted; valid until the next record */
		size_t len;
	} field[COP_CSV_FIELDS_MAX];
};

/* 0 or -ENOMEM. A reader may be reopened for another input without freeing it. */
int cop_csv_open(struct cop_csv *c, cop_csv_read *read, void *arg);
void cop_csv_free(struct cop_csv *c);
/* 1: a record; 0: the end; -EBADMSG: invalid CSV, see why; else the result of read. Skips empty
 * lines; a line ends with LF or CR LF (RFC 4180); a quoted field may contain line ends; no field
 * contains a NUL byte. */
int cop_csv_next(struct cop_csv *c, struct cop_csv_record *out);

#endif
