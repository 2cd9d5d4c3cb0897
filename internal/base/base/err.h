/* SPDX-License-Identifier: BSD-3-Clause */
/* err: error messages for users, and classes of errors. */
#ifndef COP_BASE_ERR_H
#define COP_BASE_ERR_H

#include "base/base/macros.h"

#include <stdbool.h>

/* One sentence for the user: what happened, to what, and the remedy. code is a positive errno
 * value; 0 means no error. */
struct cop_err {
	int code;
	char text[1024];
};

/* Fills err (which may be NULL) and returns -code, so that callers can write `return
 * cop_err_set(err, ENOENT, "...", ...)`. */
int cop_err_set(struct cop_err *err, int code, const char *fmt, ...) COP_PRINTF(3, 4);

/* Whether rc (a -errno) means that memory, descriptors or buffers ran out, rather than that the
 * request itself failed. */
bool cop_is_shortage(int rc);

#endif
