/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_BASE_OPT_PRIV_H
#define COP_BASE_OPT_PRIV_H

#include "base/opt/opt.h"

/* Parses text as the row's kind and stores it in the row's field. On -EINVAL, err begins with the
 * option's name, and the field is unchanged. */
int cop_opt_set(const struct cop_opt *o, const char *text, void *into, struct cop_err *err);
/* Whether the option takes no value on the command line. */
bool cop_opt_lone(const struct cop_opt *o);
/* "--name", or "-x" if there is no long name. */
const char *cop_opt_label(const struct cop_opt *o, char out[64]);
/* Appends "1..64", "64.0 KiB..16.0 MiB" or "file, stdout"; nothing if values are unlimited. */
void cop_opt_range(const struct cop_opt *o, struct cop_buf *out);
/* A pointer to the field of a row or operand. */
static inline void *cop_opt_field(void *into, size_t offset)
{
	return (char *)into + offset;
}

#endif
