/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "manifest/manifest.h"

/* Closes the smallest gap: a few bytes too many are claimed. */
static void close_gap(struct cop_manifest_range *r, unsigned n)
{
	unsigned at = 0;

	for (unsigned i = 1; i + 1 < n; i++)
		if (r[i + 1].start - r[i].end < r[at + 1].start - r[at].end)
			at = i;
	r[at].end = r[at + 1].end;
	memmove(&r[at + 1], &r[at + 2], (n - at - 2) * sizeof(*r));
}

void cop_manifest_range_add(struct cop_manifest_item *item, uint64_t start, uint64_t end)
{
	struct cop_manifest_range r[COP_MANIFEST_RANGES_MAX + 1];
	unsigned n = item->ranges, first = 0, past;

	if (start >= end)
		return;
	memcpy(r, item->range, n * sizeof(*r));
	while (first < n && r[first].end < start)
		first++;
	for (past = first; past < n && r[past].start <= end; past++) {
		start = COP_MIN(start, r[past].start);
		end = COP_MAX(end, r[past].end);
	}
	memmove(&r[first + 1], &item->range[past], (n - past) * sizeof(*r));
	r[first] = (struct cop_manifest_range){start, end};
	n += 1 - (past - first);
	if (n > COP_MANIFEST_RANGES_MAX)
		close_gap(r, n--);
	memcpy(item->range, r, n * sizeof(*r));
	item->ranges = n;
}
