/* SPDX-License-Identifier: BSD-3-Clause */
/* table: a table of named columns, printed for a terminal, as CSV (RFC 4180) or as a JSON array of
 * objects. It asks for the cells one by one and keeps none; it sorts and computes nothing. */
#ifndef COP_BASE_TABLE_H
#define COP_BASE_TABLE_H

#include "base/base/base.h"

enum cop_grid_form { COP_GRID_PLAIN, COP_GRID_CSV, COP_GRID_JSON };

enum cop_grid_kind {
	COP_GRID_TEXT,
	COP_GRID_LABEL,   /* text; JSON has it as a number where it is a whole one */
	COP_GRID_NUMBER,  /* the text of a number, or empty: null */
	COP_GRID_SECONDS, /* to the nanosecond, on a terminal to the microsecond */
	COP_GRID_WHOLE,   /* bytes or a count; three decimals if it is a mean, none on a terminal */
	COP_GRID_RATIO,   /* six decimals, on a terminal two */
	COP_GRID_REAL /* as many digits as it takes to read the same value back; six on a terminal
		       */
};

struct cop_grid_col {
	const char *name; /* any text; also the member of the JSON objects */
	enum cop_grid_kind kind;
};
/* By the kind of its column: text, which is borrowed for the call, or a value, NAN if there is
 * none. */
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

/* A number as COP_GRID_REAL has it; whole ones below 2^64 have all their digits. */
void cop_grid_put_real(long double v, struct cop_buf *out);
/* Whole lines; JSON ends with a newline, too. out->failed says whether memory sufficed. */
void cop_grid_show(const struct cop_grid *g, enum cop_grid_form form, struct cop_buf *out);

/* csv: writes names with any bytes into text files and reads them back: CSV fields, lines of raw
 * tables, cells of Markdown. It also reads CSV records from untrusted bytes. Pure: it opens no file
 * and knows no column. */

/* ---- writing ---- */

/* Writes the text in double quotes, and doubles its quotes. */
void cop_csv_quoted(struct cop_buf *out, const char *text, size_t len);
/* Writes the text unquoted if that is unambiguous, else quoted. */
void cop_csv_field(struct cop_buf *out, const char *text, size_t len);
/* Writes the text for a line of a raw table: newline as \n, backslash as \\. */
void cop_csv_escaped(struct cop_buf *out, const char *text, size_t len);
/* Undoes this escaping in place and returns the new length; a backslash before any other byte
 * stays, as Copper 1.0 wrote it. */
size_t cop_csv_unescape(char *text, size_t len);
/* Writes a code span that fits into a table cell and has no control bytes. */
void cop_csv_markdown(struct cop_buf *out, const char *text, size_t len);

/* ---- reading ---- */

#define COP_CSV_FIELDS_MAX 64
#define COP_CSV_RECORD_MAX (256 * COP_KIB)

/* Fills data with up to len bytes; 0 at the end, or -errno. */
typedef ssize_t cop_csv_read(void *arg, void *data, size_t len);

/* Reads one record after the other, in COP_CSV_RECORD_MAX bytes of memory however long the input
 * is. */
struct cop_csv {
	cop_csv_read *read;
	void *arg;
	char *data;
	size_t start, len; /* the bytes not yet returned */
	uint64_t line;     /* of the record returned last, from 1 */
	uint64_t lines;    /* lines begun so far */
	bool ended;        /* the input has */
	const char *why;   /* after -EBADMSG: "a quote is not closed" */
};

struct cop_csv_record {
	unsigned n;
	bool cut; /* this is the last record, and no line end follows it */
	struct {
		const char *text; /* NUL-terminated, quotes undone; until the next record */
		size_t len;
	} field[COP_CSV_FIELDS_MAX];
};

/* 0 or -ENOMEM. A reader may be opened again for another input without being freed. */
int cop_csv_open(struct cop_csv *c, cop_csv_read *read, void *arg);
void cop_csv_free(struct cop_csv *c);
/* 1: a record; 0: the end; -EBADMSG: not CSV, see why; else what read returned. Empty lines are
 * skipped; a line ends with LF or CR LF (RFC 4180); a quoted field may hold line ends; no field
 * holds a NUL byte. */
int cop_csv_next(struct cop_csv *c, struct cop_csv_record *out);

#endif
