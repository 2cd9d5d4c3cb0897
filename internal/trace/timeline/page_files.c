/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace/timeline/timeline_priv.h"

/* Defines a symbol that holds the contents of a file and a NUL byte. The assembler runs in the top
 * directory of the source tree. */
#define TAKE(symbol, path)                                                                         \
	__asm__(".pushsection .rodata\n"                                                           \
		".global " #symbol "\n"                                                            \
		".type " #symbol ", %object\n" #symbol ":\n"                                       \
		".incbin \"internal/trace/timeline/" path "\"\n"                                   \
		".byte 0\n"                                                                        \
		".size " #symbol ", . - " #symbol "\n"                                             \
		".popsection\n")
TAKE(cop_timeline_css, "page.css");
TAKE(cop_timeline_js, "page.js");
TAKE(cop_timeline_html, "page.html");
