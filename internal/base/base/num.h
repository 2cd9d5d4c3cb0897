/* SPDX-License-Identifier: BSD-3-Clause */
/* num: parsing and formatting numbers, saturating addition, byte ranges. */
#ifndef COP_BASE_NUM_H
#define COP_BASE_NUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Saturates at 2^64-1, so that the sum of untrusted numbers does not depend on their order. */
static inline uint64_t cop_add_saturating(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Decimal digits only; -EINVAL for anything else, -ERANGE past 64 bits. */
int cop_parse_u64(const char *text, uint64_t *out);
/* "4096", "64K", "16M", "2G", "1T" (binary; "KiB", "MB" etc. are synonyms); -EINVAL, -ERANGE. */
int cop_parse_size(const char *text, uint64_t *bytes);
/* "1.5 MiB"; out has at least 16 bytes. Returns out. */
char *cop_format_size(uint64_t bytes, char out[16]);

/* ---- byte ranges ---- */

struct cop_range {
	uint64_t start, end; /* end is exclusive */
};
/* Adds the bytes [start, end) to n sorted, disjoint ranges and merges adjacent ones; r has room for
 * max + 1. If more than max would remain, the smallest gap is closed, which adds a few bytes.
 * Returns the new number of ranges. */
unsigned cop_range_add(struct cop_range *r, unsigned n, unsigned max, uint64_t start, uint64_t end);

#endif
