/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "cache/cache/cache_priv.h"

#define NO_LIMIT UINT64_MAX
#define LEAST (16 * COP_MIB)

static char note[COP_CACHE_NOTE_SIZE];

static uint64_t share(uint64_t asked, uint64_t least, uint64_t ram, uint64_t limit)
{
	return cop_cache_size_within(asked, least, ram, limit, note);
}

static void the_default_is_a_tenth_of_memory_or_of_the_limit_below_it(void **state)
{
	(void)state;
	assert_true(share(0, LEAST, 1000 * COP_MIB, NO_LIMIT) == 100 * COP_MIB);
	assert_true(share(0, LEAST, 10000 * COP_MIB, 1000 * COP_MIB) == 100 * COP_MIB);
	assert_true(share(0, LEAST, 1000 * COP_MIB, 10000 * COP_MIB) == 100 * COP_MIB);
	assert_string_equal(note, "");
}

static void little_memory_gives_a_cache_that_can_work(void **state)
{
	(void)state;
	assert_true(share(0, LEAST, 400 * COP_MIB, NO_LIMIT) == 64 * COP_MIB);
	assert_true(share(0, LEAST, 10000 * COP_MIB, 100 * COP_MIB) == 25 * COP_MIB);
	assert_true(share(0, LEAST, 10000 * COP_MIB, 20 * COP_MIB) == 16 * COP_MIB);
	assert_true(share(0, 64 * COP_MIB, 10000 * COP_MIB, 20 * COP_MIB) == 64 * COP_MIB);
}

static void the_users_size_is_used_up_to_the_limit(void **state)
{
	(void)state;
	assert_true(share(900 * COP_MIB, LEAST, 10000 * COP_MIB, 900 * COP_MIB) == 900 * COP_MIB);
	assert_string_equal(note, "");
	assert_true(share(900 * COP_MIB, LEAST, 100 * COP_MIB, NO_LIMIT) == 900 * COP_MIB);
	assert_string_equal(note, "");
	assert_true(share(901 * COP_MIB, LEAST, 10000 * COP_MIB, 900 * COP_MIB) == 450 * COP_MIB);
	assert_non_null(strstr(
		note, "--cache-size 901.0 MiB is more than the 900.0 MiB that this job may use"));
	assert_true(share(17 * COP_MIB, LEAST, 10000 * COP_MIB, COP_MIB) == 16 * COP_MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_default_is_a_tenth_of_memory_or_of_the_limit_below_it),
		cmocka_unit_test(little_memory_gives_a_cache_that_can_work),
		cmocka_unit_test(the_users_size_is_used_up_to_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
