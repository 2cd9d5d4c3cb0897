/* SPDX-License-Identifier: BSD-3-Clause */
/* grow: makes room for one more element in an array by doubling it. */
#ifndef COP_GROW_H
#define COP_GROW_H

#include <stdlib.h>

static inline void *cop_grown(void *at, size_t n, size_t *cap, size_t size)
{
	size_t more = *cap ? 2 * *cap : 16;
	void *out = at;

	if (n < *cap)
		return at;
	out = reallocarray(at, more, size);
	if (out)
		*cap = more;
	return out;
}

static inline void *cop_grown_plain(void *at, size_t n, size_t size)
{
	return n & (n - 1) ? at : reallocarray(at, n ? 2 * n : 1, size);
}

/* Makes room for more than n elements and returns the array, which may have moved. If out of
 * memory, returns NULL and leaves the array unchanged. n and cap may be of any integer type; cap
 * must be an lvalue. */
#define COP_GROW(array, n, cap)                                                                    \
	({                                                                                         \
		size_t cap_ = cap;                                                                 \
		void *grown_ = cop_grown(array, n, &cap_, sizeof(*(array)));                       \
		cap = (__typeof__(cap))cap_;                                                       \
		if (grown_)                                                                        \
			array = grown_;                                                            \
		grown_;                                                                            \
	})
/* Same for an array without a capacity field that only ever grows one element at a time. */
#define COP_GROW_PLAIN(array, n)                                                                   \
	({                                                                                         \
		void *grown_ = cop_grown_plain(array, n, sizeof(*(array)));                        \
		if (grown_)                                                                        \
			array = grown_;                                                            \
		grown_;                                                                            \
	})

#endif
