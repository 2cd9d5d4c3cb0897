/* SPDX-License-Identifier: BSD-3-Clause */
/* Each value below 64 has its own bucket. Above that, every power of two is divided into 32 buckets
 * of equal width. A bucket's width is at most 1/32 of any value in it, so its midpoint is within
 * 1/64 of each of them. */
#include "prof/profile/profile_priv.h"

unsigned cop_prof_hist_index(uint64_t value)
{
	unsigned bit;

	if (value < 2 * HIST_SUB)
		return (unsigned)value;
	bit = 63 - (unsigned)__builtin_clzll(value);
	if (bit >= HIST_TOP_BIT)
		return HIST_BUCKETS - 1;
	return 2 * HIST_SUB + (bit - HIST_SUB_BITS - 1) * HIST_SUB +
	       (unsigned)((value >> (bit - HIST_SUB_BITS)) & (HIST_SUB - 1));
}

uint64_t cop_prof_hist_value(unsigned i)
{
	unsigned shift;

	if (i < 2 * HIST_SUB)
		return i;
	i -= 2 * HIST_SUB;
	shift = i / HIST_SUB + 1;
	return ((uint64_t)(HIST_SUB + i % HIST_SUB) << shift) + (1ull << (shift - 1));
}

uint64_t cop_prof_hist_quantile(
	const uint64_t bucket[HIST_BUCKETS], uint64_t total, unsigned permille, uint64_t max)
{
	uint64_t rank = total / 1000 * permille + (total % 1000 * permille + 999) / 1000, seen = 0;

	for (unsigned i = 0; i < HIST_BUCKETS - 1; i++) {
		uint64_t value = cop_prof_hist_value(i);

		if (bucket[i] >= rank - seen)
			return COP_MIN(value, max);
		seen += bucket[i];
	}
	return max;
}
