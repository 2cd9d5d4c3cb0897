/* SPDX-License-Identifier: BSD-3-Clause */
/* Each table is in a box of its own, which scrolls if it is wider than the window and can be
 * reached with the keyboard. Optional end tags are written, so that XML parsers can read the
 * page. */
#include "markup.h"

void cop_html_table(
	struct cop_buf *out, const char *caption, const struct cop_html_col *col, unsigned cols)
{
	cop_buf_str(out, "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"");
	cop_html_text(out, caption);
	cop_buf_str(out, "\"><table><caption>");
	cop_html_text(out, caption);
	cop_buf_str(out, "</caption>\n<thead><tr>");
	for (unsigned i = 0; i < cols; i++) {
		cop_buf_str(out,
			col[i].number ? "<th scope=\"col\" class=\"n\">" : "<th scope=\"col\">");
		cop_html_text(out, col[i].heading);
		cop_buf_str(out, "</th>");
	}
	cop_buf_str(out, "</tr></thead>\n<tbody>");
}

void cop_html_row(struct cop_buf *out)
{
	cop_buf_str(out, "\n<tr>");
}

void cop_html_row_end(struct cop_buf *out)
{
	cop_buf_str(out, "</tr>");
}

void cop_html_cell(struct cop_buf *out, const char *text)
{
	cop_buf_str(out, "<td>");
	cop_html_text(out, text);
	cop_buf_str(out, "</td>");
}

void cop_html_cell_path(struct cop_buf *out, const char *text, size_t len)
{
	cop_buf_str(out, "<td><code>");
	cop_html_bytes(out, text, len);
	cop_buf_str(out, "</code></td>");
}

void cop_html_cell_number(struct cop_buf *out, cop_html_show *show, double n)
{
	char text[COP_HTML_NUMBER];

	cop_buf_str(out, "<td class=\"n\">");
	cop_html_text(out, show(n, text));
	cop_buf_str(out, "</td>");
}

void cop_html_table_end(struct cop_buf *out)
{
	cop_buf_str(out, "\n</tbody></table></div>\n");
}
