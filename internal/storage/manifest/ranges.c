/* SPDX-License-Identifier: BSD-3-Clause */
#include "storage/manifest/manifest.h"

void cop_manifest_range_add(struct cop_manifest_item *item, uint64_t start, uint64_t end)
{
	struct cop_range r[COP_MANIFEST_RANGES_MAX + 1];

	memcpy(r, item->range, item->ranges * sizeof(*r));
	item->ranges = cop_range_add(r, item->ranges, COP_MANIFEST_RANGES_MAX, start, end);
	memcpy(item->range, r, item->ranges * sizeof(*r));
}
