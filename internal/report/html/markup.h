/* SPDX-License-Identifier: BSD-3-Clause */
/* html: writes untrusted text as safe HTML: escapes all special characters, and prints invalid
 * UTF-8, invisible characters and bidirectional controls as numbers. Also tables and human-readable
 * numbers. Pure. */
#ifndef COP_REPORT_HTML_MARKUP_H
#define COP_REPORT_HTML_MARKUP_H

#include "base/base/base.h"

/* Escape text for element content and double-quoted attribute values. */
void cop_html_bytes(struct cop_buf *out, const char *text, size_t len);
void cop_html_text(struct cop_buf *out, const char *text);
/* Formats the text, then escapes it. */
void cop_html_printf(struct cop_buf *out, const char *fmt, ...) COP_PRINTF(2, 3);

/* ---- numbers: out has 32 bytes and is returned; NAN is printed as "-" ---- */

#define COP_HTML_NUMBER 32
char *cop_html_count(double n, char out[COP_HTML_NUMBER]); /* 1,234,567 */
char *cop_html_size(double n, char out[COP_HTML_NUMBER]);  /* 1.5 MiB */
char *cop_html_time(double s, char out[COP_HTML_NUMBER]);  /* 1.5 ms, 3.1 s, 4 min 10 s */
char *cop_html_share(double part, double of, char out[COP_HTML_NUMBER]); /* 12 % */
typedef char *cop_html_show(double n, char out[COP_HTML_NUMBER]);

/* ---- tables ---- */

struct cop_html_col {
	const char *heading; /* trusted text */
	bool number;
};
/* Opens a table and escapes its caption. The caller writes complete rows, with one cell per
 * column. */
void cop_html_table(
	struct cop_buf *out, const char *caption, const struct cop_html_col *col, unsigned cols);
void cop_html_row(struct cop_buf *out);
void cop_html_row_end(struct cop_buf *out);
void cop_html_cell(struct cop_buf *out, const char *text);
void cop_html_cell_path(struct cop_buf *out, const char *text, size_t len);
void cop_html_cell_number(struct cop_buf *out, cop_html_show *show, double n);
void cop_html_table_end(struct cop_buf *out);

#endif
