/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the bytes came from that the kernel gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tree/fetch/fetch_testing.h"

static void give(struct tree *t, uint32_t rank, const char *path, size_t len, unsigned times)
{
	struct cop_attr attr = attr_of(t, 0, path);
	struct asked a;

	ask_fetch(t, rank, chunk(&attr, path, 0), &a);
	run_until_idle(t);
	assert_int_equal(a.rc, 0);
	while (times--)
		cop_fetch_given(t->node[rank].fetch, a.obj, len);
	forget(&a);
}

static void assert_given(
	const struct node *n, uint64_t own, uint64_t nodes, uint64_t passed, uint64_t storage)
{
	assert_int_equal(cop_stats_get(&n->stats, COP_FROM_OWN_BYTES), own);
	assert_int_equal(cop_stats_get(&n->stats, COP_FROM_NODES_BYTES), nodes);
	assert_int_equal(cop_stats_get(&n->stats, COP_FROM_PASSED_BYTES), passed);
	assert_int_equal(cop_stats_get(&n->stats, COP_FROM_STORAGE_BYTES), storage);
	assert_int_equal(cop_stats_get(&n->stats, COP_FROM_DISK_BYTES), 0);
	assert_int_equal(cop_stats_get(&n->stats, COP_FROM_PACK_BYTES), 0);
}

static void bytes_count_once_where_they_came_from_and_then_as_own(void **state)
{
	struct tree *t = open_tree(2, 2, 1, 64 * CHUNK);
	uint8_t data[CHUNK] = {0};

	(void)state;
	put_file(t, "a", data, 1000);
	put_file(t, "b", data, 1000);
	give(t, 0, "a", 600, 3);
	assert_given(&t->node[0], 800, 0, 0, 1000);
	give(t, 1, "a", 300, 1);
	assert_given(&t->node[1], 0, 300, 0, 0);
	give(t, 1, "b", 1000, 2);
	assert_given(&t->node[1], 1000, 300, 1000, 0);
	/* What the root read for the other node came from the storage, too. */
	give(t, 0, "b", 1000, 1);
	assert_given(&t->node[0], 800, 0, 0, 2000);
	close_tree(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_count_once_where_they_came_from_and_then_as_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
