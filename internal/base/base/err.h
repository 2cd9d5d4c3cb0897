/* SPDX-License-Identifier: BSD-3-Clause */
/* err: one sentence for a person about what went wrong, and classes of errors. */
#ifndef COP_BASE_ERR_H
#define COP_BASE_ERR_H

#include "base/base/macros.h"

#include <stdbool.h>

/* One sentence for a person: what happened, to what, and what to do. code is a positive errno
 * value; 0 means no error was recorded. */
struct cop_err {
	int code;
	char text[1024];
};

/* Fills err (which may be NULL) and returns -code, so that a function can end
 * with `return cop_err_set(err, ENOENT, "...", ...)`. */
int cop_err_set(struct cop_err *err, int code, const char *fmt, ...) COP_PRINTF(3, 4);

/* Whether this -errno means that a process lacks memory, descriptors or buffers, as opposed to an
 * answer to the request itself. */
bool cop_is_shortage(int rc);

#endif
