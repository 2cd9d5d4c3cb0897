/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base/base.h"

static unsigned close_smallest_gap(struct cop_range *r, unsigned n)
{
	unsigned at = 0;

	for (unsigned i = 1; i + 1 < n; i++)
		if (r[i + 1].start - r[i].end < r[at + 1].start - r[at].end)
			at = i;
	r[at].end = r[at + 1].end;
	memmove(&r[at + 1], &r[at + 2], (n - at - 2) * sizeof(*r));
	return n - 1;
}

unsigned cop_range_add(struct cop_range *r, unsigned n, unsigned max, uint64_t start, uint64_t end)
{
	unsigned first = 0, past;

	if (start >= end)
		return n;
	while (first < n && r[first].end < start)
		first++;
	for (past = first; past < n && r[past].start <= end; past++) {
		start = COP_MIN(start, r[past].start);
		end = COP_MAX(end, r[past].end);
	}
	memmove(&r[first + 1], &r[past], (n - past) * sizeof(*r));
	r[first] = (struct cop_range){start, end};
	n += 1 - (past - first);
	return n > max ? close_smallest_gap(r, n) : n;
}
