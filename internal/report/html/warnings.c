/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/html/html_priv.h"

void cop_page_warnings(const struct cop_page *p, struct cop_buf *out)
{
	const struct cop_jobdata *j = p->job;

	if (!j->warnings)
		cop_buf_str(out, "<p class=\"good\">Nothing: the job went well.</p>\n");
	for (size_t i = 0; i < j->warnings; i++) {
		cop_buf_str(out, "<p class=\"warning\">");
		if (*j->warning[i].option) {
			cop_buf_str(out, "<strong><code>");
			cop_html_text(out, j->warning[i].option);
			cop_buf_str(out, "</code></strong> ");
		}
		cop_html_text(out, j->warning[i].sentence);
		cop_buf_str(out, "</p>\n");
	}
}
