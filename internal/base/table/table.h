/* SPDX-License-Identifier: BSD-3-Clause */
/* table: prints a table of named columns for a terminal, as CSV (RFC 4180) or as a JSON array of
 * objects. It gets the cells one by one from a callback and stores none. */
#ifndef COP_BASE_TABLE_H
#define COP_BASE_TABLE_H

#include "base/base/base.h"

enum cop_grid_form { COP_GRID_PLAIN, COP_GRID_CSV, COP_GRID_JSON };

enum cop_grid_kind {
	COP_GRID_TEXT,
	COP_GRID_LABEL,   /* text; in JSON a number if it is a whole number */
	COP_GRID_NUMBER,  /* the text of a number; null if empty */
	COP_GRID_SECONDS, /* to the nanosecond; to the microsecond on a terminal */
	COP_GRID_WHOLE,   /* bytes or a count; three decimals for a mean, but none on a terminal */
	COP_GRID_RATIO,   /* six decimals; two on a terminal */
	COP_GRID_REAL /* shortest form that reads back to the same value; six digits on a terminal
		       */
};

struct cop_grid_col {
	const char *name; /* any text; also the key in the JSON objects */
	enum cop_grid_kind kind;
};
/* Depending on the column's kind: text, valid during the call, or a value, NAN if missing. */
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

/* Appends a number in COP_GRID_REAL format; whole numbers below 2^64 keep all their digits. */
void cop_grid_put_real(long double v, struct cop_buf *out);
/* Writes complete lines; JSON output also ends with a newline. On lack of memory, out->failed is
 * set. */
void cop_grid_show(const struct cop_grid *g, enum cop_grid_form form, struct cop_buf *out);

/* csv: writes names that may contain any bytes to text files (CSV fields, lines of raw tables,
 * cells of Markdown) and reads them back. Also reads CSV records from untrusted input. It opens no
 * files and knows nothing about the columns. */

/* ---- writing ---- */

/* Writes the text in double quotes, with inner quotes doubled. */
void cop_csv_quoted(struct cop_buf *out, const char *text, size_t len);
/* Writes the text, quoted only if that is necessary. */
void cop_csv_field(struct cop_buf *out, const char *text, size_t len);
/* Writes the text as part of a line of a raw table: newline as \n, backslash as \\. */
void cop_csv_escaped(struct cop_buf *out, const char *text, size_t len);
/* Decodes these escapes in place and returns the new length. A backslash before any other byte is
 * kept, as in files written by Copper 1.0. */
size_t cop_csv_unescape(char *text, size_t len);
/* Writes a code span that is valid in a table cell, without control bytes. */
void cop_csv_markdown(struct cop_buf *out, const char *text, size_t len);

/* ---- reading ---- */

#define COP_CSV_FIELDS_MAX 64
#define COP_CSV_RECORD_MAX (256 * COP_KIB)

/* Fills data with up to len bytes. Returns the number of bytes, 0 at the end, or -errno. */
typedef ssize_t cop_csv_read(void *arg, void *data, size_t len);

/* Reads one record at a time, using COP_CSV_RECORD_MAX bytes of memory for input of any length. */
struct cop_csv {
	cop_csv_read *read;
	void *arg;
	char *data;
	size_t start, len; /* bytes not yet returned */
	uint64_t line;     /* first line of the last record, from 1 */
	uint64_t lines;    /* lines started so far */
	bool ended;        /* end of input reached */
	const char *why;   /* after -EBADMSG, the reason: "a quote is not closed" */
};

struct cop_csv_record {
	unsigned n;
	bool cut; /* the last record has no line end */
	struct {
		const char *text; /* NUL-terminated, unquoted; valid until the next record */
		size_t len;
	} field[COP_CSV_FIELDS_MAX];
};

/* Returns 0 or -ENOMEM. A reader may be opened again for another input without freeing it first. */
int cop_csv_open(struct cop_csv *c, cop_csv_read *read, void *arg);
void cop_csv_free(struct cop_csv *c);
/* Returns 1 for a record; 0 at the end; -EBADMSG for invalid CSV (see why); otherwise the error
 * from read. Skips empty lines. A line ends with LF or CR LF (RFC 4180), a quoted field may contain
 * line ends, and no field contains a NUL byte. */
int cop_csv_next(struct cop_csv *c, struct cop_csv_record *out);

#endif
