/* SPDX-License-Identifier: BSD-3-Clause */
/* grow: space for one more element in an array that doubles. */
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

/* Returns the array, possibly moved, with space for more than n elements; NULL if out of memory,
 * with the array unchanged. n and cap are integers of any type, cap an lvalue. */
#define COP_GROW(array, n, cap)                                                                    \
	({                                                                                         \
		size_t cap_ = cap;                                                                 \
		void *grown_ = cop_grown(array, n, &cap_, sizeof(*(array)));                       \
		cap = (__typeof__(cap))cap_;                                                       \
		if (grown_)                                                                        \
			array = grown_;                                                            \
		grown_;                                                                            \
	})
/* The same for an array without a capacity, which has only grown by one element at a time. */
#define COP_GROW_PLAIN(array, n)                                                                   \
	({                                                                                         \
		void *grown_ = cop_grown_plain(array, n, sizeof(*(array)));                        \
		if (grown_)                                                                        \
			array = grown_;                                                            \
		grown_;                                                                            \
	})

#endif
