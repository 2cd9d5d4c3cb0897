/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_BASE_OPT_PRIV_H
#define COP_BASE_OPT_PRIV_H

#include "base/opt/opt.h"

/* Parses text according to the row's kind into its field; -EINVAL with a sentence that begins
 * with the option, and the field unchanged. */
int cop_opt_set(const struct cop_opt *o, const char *text, void *into, struct cop_err *err);
/* Whether the option takes no value on the command line. */
bool cop_opt_lone(const struct cop_opt *o);
/* "--name", or "-x" if there is no long name. */
const char *cop_opt_label(const struct cop_opt *o, char out[64]);
/* "1..64", "64.0 KiB..16.0 MiB", "file, stdout", or "" for an unlimited value. */
void cop_opt_range(const struct cop_opt *o, struct cop_buf *out);
/* The field of the row or operand, as the type of its kind. */
static inline void *cop_opt_field(void *into, size_t offset)
{
	return (char *)into + offset;
}

#endif
