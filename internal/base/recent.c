/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base.h"

#include <string.h>

static uint64_t first_of(const void *number)
{
	uint64_t first;

	memcpy(&first, number, sizeof(first));
	return first;
}

/* Its place, or COP_RECENT. What is zeroed is a place without a number. */
static unsigned place_of(const struct cop_recent *r, uint64_t first)
{
	unsigned at = 0;

	while (at < COP_RECENT && (!first || r->first[at] != first))
		at++;
	return at;
}

bool cop_recent_has(const struct cop_recent *r, const void *number)
{
	return place_of(r, first_of(number)) < COP_RECENT;
}

void cop_recent_add(struct cop_recent *r, const void *number)
{
	r->first[r->next] = first_of(number);
	r->next = (r->next + 1) % COP_RECENT;
}

void cop_recent_drop(struct cop_recent *r, const void *number)
{
	unsigned at = place_of(r, first_of(number));

	if (at < COP_RECENT)
		r->first[at] = 0;
}
