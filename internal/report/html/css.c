/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/html/html_priv.h"

/* The contents of the file and a NUL byte. The path is relative to the top of the source tree. */
__asm__(".pushsection .rodata\n"
	".global cop_page_css\n"
	".type cop_page_css, %object\n"
	"cop_page_css:\n"
	".incbin \"internal/report/html/html.css\"\n"
	".byte 0\n"
	".size cop_page_css, . - cop_page_css\n"
	".popsection\n");
