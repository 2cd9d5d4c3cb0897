/* SPDX-License-Identifier: BSD-3-Clause */
/* Trees of nodes with a clock controlled by the test. */
#ifndef COP_TREE_FETCH_CLOCK_TESTING_H
#define COP_TREE_FETCH_CLOCK_TESTING_H

#include "tree/fetch/fetch_testing.h"

#define TTL_MS 2000

static uint64_t now_ns;
static int64_t wall_ns; /* time of day */

static inline uint64_t test_now(void)
{
	return now_ns;
}

static inline int64_t test_wall(void)
{
	return wall_ns;
}

/* The time of day is unchanged. */
static inline void pass(uint64_t ms)
{
	now_ns += ms * COP_NS_PER_MS;
}

/* Three nodes in a chain. */
static inline struct tree *open_clocked_tree(uint64_t budget)
{
	now_ns = 1000 * COP_NS_PER_S;
	wall_ns = 1700000000 * (int64_t)COP_NS_PER_S;
	cop_clocks_for_test(test_now, test_wall);
	ttl_ms = TTL_MS;
	return open_tree(3, 1, 1, budget);
}

static inline int close_clocked_tree(void **state)
{
	close_tree(*state);
	cop_clocks_for_test(NULL, NULL);
	return 0;
}

/* The tree has one directory with one file. */
static inline int open_small_tree(void **state)
{
	*state = open_clocked_tree(1 << 20);
	put_file(*state, "d/f", "hello", 5);
	return 0;
}

#endif
