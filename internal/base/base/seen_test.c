/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base/base.h"

#define MOST 5000u

static void a_hash_is_new_once(void **state)
{
	struct cop_seen s = {0};

	(void)state;
	assert_false(cop_seen_has(&s, 7));
	assert_int_equal(cop_seen_add(&s, 7, MOST), COP_SEEN_NEW);
	assert_int_equal(cop_seen_add(&s, 7, MOST), COP_SEEN_BEFORE);
	assert_true(cop_seen_has(&s, 7));
	assert_false(cop_seen_has(&s, 8));
	cop_seen_forget(&s);
	assert_false(cop_seen_has(&s, 7));
	assert_int_equal(s.slots, 0);
}

static void zero_is_a_hash_too(void **state)
{
	struct cop_seen s = {0};

	(void)state;
	assert_int_equal(cop_seen_add(&s, 1000, MOST), COP_SEEN_NEW);
	assert_false(cop_seen_has(&s, 0));
	assert_int_equal(cop_seen_add(&s, 0, MOST), COP_SEEN_NEW);
	assert_true(cop_seen_has(&s, 0));
	cop_seen_forget(&s);
}

/* All hashes map to the same slot, however many slots there are. */
static void it_keeps_what_it_had_while_it_grows_up_to_its_limit(void **state)
{
	struct cop_seen s = {0};

	(void)state;
	for (uint64_t i = 1; i <= MOST; i++)
		assert_int_equal(cop_seen_add(&s, i << 20, MOST), COP_SEEN_NEW);
	assert_int_equal(cop_seen_add(&s, 3, MOST), COP_SEEN_FULL);
	assert_false(cop_seen_has(&s, 3));
	for (uint64_t i = 1; i <= MOST; i++)
		assert_int_equal(cop_seen_add(&s, i << 20, MOST), COP_SEEN_BEFORE);
	assert_int_equal(s.count, MOST);
	assert_true(2 * s.count <= s.slots);
	cop_seen_forget(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hash_is_new_once),
		cmocka_unit_test(zero_is_a_hash_too),
		cmocka_unit_test(it_keeps_what_it_had_while_it_grows_up_to_its_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
