/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of a running node again and again: what has changed per second stands beside each
 * counter. */
#ifndef COP_CMD_WATCH_H
#define COP_CMD_WATCH_H

#include "base/base.h"

/* Prints now as it is, but each line "  NAME NUMBER  MEANING" with what its number has grown by per
 * second since the text before (NULL: none), elapsed_ms ago. Lines are told apart by the line
 * without blanks before them, and their name. */
void cop_cmd_watch_table(
	const char *before, const char *now, uint64_t elapsed_ms, struct cop_buf *out);
/* The same for a table whose last line is "total ...": its numbers per second are a line below it.
 */
void cop_cmd_watch_all(
	const char *before, const char *now, uint64_t elapsed_ms, struct cop_buf *out);

#endif
