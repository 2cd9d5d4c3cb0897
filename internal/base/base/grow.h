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

/* Returns the array, possibly moved, with space for more than n elements; NULL if out of memory,
 * with the array unchanged. n and cap are lvalues of type size_t. */
#define COP_GROW(array, n, cap)                                                                    \
	({                                                                                         \
		void *more = cop_grown(array, n, &(cap), sizeof(*(array)));                        \
		if (more)                                                                          \
			array = more;                                                              \
		more;                                                                              \
	})

#endif
