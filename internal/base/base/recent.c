/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base/base.h"

static uint64_t first_of(const void *number)
{
	uint64_t first;

	memcpy(&first, number, sizeof(first));
	return first;
}

bool cop_recent_has(const struct cop_recent *r, const void *number)
{
	uint64_t first = first_of(number);

	/* A zero slot is unused, so zero never matches. */
	for (unsigned at = 0; first && at < COP_RECENT; at++)
		if (r->first[at] == first)
			return true;
	return false;
}

void cop_recent_add(struct cop_recent *r, const void *number)
{
	r->first[r->next] = first_of(number);
	r->next = (r->next + 1) % COP_RECENT;
}
