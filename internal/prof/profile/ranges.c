/* SPDX-License-Identifier: BSD-3-Clause */
/* The byte ranges read from a file. Programs read a file from its start or in a few places, so an
 * array that begins with room for one range will do. */
#include "prof/profile/profile_priv.h"

static int grow_ranges(struct ranges *r)
{
	unsigned cap = r->cap ? COP_MIN(r->cap * 4, (unsigned)COP_PROF_RANGES_MAX) : 1;
	struct cop_range *range = realloc(r->range, cap * sizeof(*range));

	if (!range)
		return -ENOMEM;
	r->range = range;
	r->cap = cap;
	return 0;
}

int cop_prof_ranges_add(struct ranges *r, uint64_t start, uint64_t end)
{
	struct cop_range all[COP_PROF_RANGES_MAX + 1];
	unsigned n;

	if (start >= end)
		return 0;
	if (r->n)
		memcpy(all, r->range, r->n * sizeof(*all));
	n = cop_range_add(all, r->n, COP_PROF_RANGES_MAX, start, end);
	if (n > r->cap) {
		int rc = grow_ranges(r);

		if (rc)
			return rc;
	}
	memcpy(r->range, all, n * sizeof(*all));
	r->n = n;
	return 0;
}
