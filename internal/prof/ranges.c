/* SPDX-License-Identifier: BSD-3-Clause */
/* Byte ranges of a file, ascending, never touching each other. Programs read a file from its start or a few places of it, so an
 * array that begins with one range is all that is needed; one that would grow past its limit closes its smallest gap and
 * then claims a few bytes too many. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "prof/prof_priv.h"

/* One more than the limit is held for a moment. */
static int grow(struct ranges *r)
{
	unsigned cap = r->cap ? COP_MIN(r->cap * 4, COP_PROF_RANGES_MAX + 1u) : 1;
	struct cop_prof_range *range = realloc(r->range, cap * sizeof(*range));

	if (!range)
		return -ENOMEM;
	r->range = range;
	r->cap = cap;
	return 0;
}

static void close_smallest_gap(struct ranges *r)
{
	unsigned at = 0;

	for (unsigned i = 1; i + 1 < r->n; i++)
		if (r->range[i + 1].start - r->range[i].end < r->range[at + 1].start - r->range[at].end)
			at = i;
	r->range[at].end = r->range[at + 1].end;
	memmove(&r->range[at + 1], &r->range[at + 2], (r->n - at - 2) * sizeof(*r->range));
	r->n--;
}

int cop_prof_ranges_add(struct ranges *r, uint64_t start, uint64_t end)
{
	unsigned first = 0, past;

	if (start >= end)
		return 0;
	while (first < r->n && r->range[first].end < start)
		first++;
	for (past = first; past < r->n && r->range[past].start <= end; past++) {
		start = COP_MIN(start, r->range[past].start);
		end = COP_MAX(end, r->range[past].end);
	}
	if (past == first && r->n == r->cap) {
		int rc = grow(r);

		if (rc)
			return rc;
	}
	memmove(&r->range[first + 1], &r->range[past], (r->n - past) * sizeof(*r->range));
	r->range[first] = (struct cop_prof_range){start, end};
	r->n += 1 - (past - first);
	if (r->n > COP_PROF_RANGES_MAX)
		close_smallest_gap(r);
	return 0;
}
