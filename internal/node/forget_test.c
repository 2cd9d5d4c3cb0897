/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "node/node_priv.h"

static unsigned times;

static void forgotten(void *arg)
{
	(void)arg;
	times++;
}

static void an_invalidation_may_come_before_there_is_anything_to_forget(void **state)
{
	struct cop_node *n = calloc(1, sizeof(*n));

	(void)state;
	assert_non_null(n);
	n->cache = cop_cache_new(COP_MIB, &n->stats);
	assert_non_null(n->cache);
	cop_node_forget(n, "some/path", forgotten, NULL);
	assert_int_equal(times, 1);
	/* The mount, which may be made at this moment, is told later. */
	assert_true(n->forgot_early);
	cop_cache_free(n->cache);
	free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_invalidation_may_come_before_there_is_anything_to_forget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
