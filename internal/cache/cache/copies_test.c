/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of large files: those that are at home here, and copies of those that are not. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cache/cache/cache.h"

static void count_start(void *arg)
{
	++*(int *)arg;
}

static struct cop_key part(uint64_t index)
{
	return (struct cop_key){.table = COP_TABLE_DATA,
		.path = "large",
		.path_len = 5,
		.version = 7,
		.index = index};
}

static struct cop_obj *lead(struct cop_cache *c, enum cop_duty duty, uint64_t index)
{
	struct cop_key key = part(index);
	struct cop_obj *obj;

	assert_int_equal(cop_cache_find(c, &key, NULL, &obj), COP_FOUND_LEAD);
	cop_cache_set_duty(c, obj, duty);
	return obj;
}

/* A flight with this duty, with its bytes reserved if that is possible at once. */
static struct cop_obj *lead_for(struct cop_cache *c, enum cop_duty duty, uint64_t index,
	size_t bytes, bool local, int *started)
{
	struct cop_obj *obj = lead(c, duty, index);

	*started = 0;
	cop_cache_reserve(c, obj, bytes, local, count_start, started);
	return obj;
}

static void keep_bytes(struct cop_cache *c, struct cop_obj *obj, size_t len)
{
	cop_cache_complete(
		c, obj, &(struct cop_completion){.data = calloc(1, len), .len = len, .keep = true});
}

static unsigned count_kept(struct cop_cache *c, uint64_t from, uint64_t end)
{
	unsigned kept = 0;

	for (; from < end; from++) {
		struct cop_key key = part(from);

		kept += cop_cache_has(c, &key);
	}
	return kept;
}

static void copies_leave_first_and_the_oldest_of_them(void **state)
{
	struct cop_cache *c = cop_cache_new(100000, NULL);
	struct cop_cache_usage u;
	int started;

	(void)state;
	for (uint64_t i = 0; i < 4; i++)
		keep_bytes(c, lead_for(c, COP_DUTY_HOME, i, 10000, true, &started), 10000);
	for (uint64_t i = 10; i < 40; i++)
		keep_bytes(c, lead_for(c, COP_DUTY_COPY, i, 10000, true, &started), 10000);
	cop_cache_check(c);
	assert_int_equal(count_kept(c, 0, 4), 4);
	assert_int_equal(count_kept(c, 35, 40), 5);
	assert_int_equal(count_kept(c, 10, 34), 0);
	keep_bytes(c, lead_for(c, COP_DUTY_NONE, 50, 40000, true, &started), 40000);
	assert_int_equal(count_kept(c, 0, 4), 4);
	cop_cache_usage(c, &u);
	assert_in_range(u.home_bytes, 40000, 45000);
	cop_cache_free(c);
}

static void copies_in_a_full_cache_share_an_eighth_of_it(void **state)
{
	struct cop_cache *c = cop_cache_new(100000, NULL);
	struct cop_obj *first, *second;
	int sa, sb;

	(void)state;
	for (uint64_t i = 0; i < 10; i++)
		keep_bytes(c, lead_for(c, COP_DUTY_HOME, i, 9000, true, &sa), 9000);
	assert_int_equal(cop_cache_room_for_copies(c), 12500);
	first = lead_for(c, COP_DUTY_COPY, 20, 6000, true, &sa);
	second = lead_for(c, COP_DUTY_COPY, 21, 6000, true, &sb);
	assert_int_equal(sa, 1);
	assert_int_equal(sb, 0);
	assert_false(cop_cache_can_copy(c, 6000));
	keep_bytes(c, first, 6000);
	assert_int_equal(sb, 1);
	keep_bytes(c, second, 6000);
	assert_true(count_kept(c, 0, 10) >= 9);
	cop_cache_free(c);
}

/* The local copy could wait for a node that waits for the home's flight here. */
static void a_home_waits_for_no_other_kind_and_copies_for_others_wait_for_none(void **state)
{
	struct cop_cache *c = cop_cache_new(100000, NULL);
	struct cop_obj *copy, *waiting, *home, *other, *refused;
	int sc, sw, sh;

	(void)state;
	copy = lead_for(c, COP_DUTY_COPY, 0, 50000, true, &sc);
	waiting = lead_for(c, COP_DUTY_COPY, 1, 50000, true, &sw);
	home = lead_for(c, COP_DUTY_HOME, 2, 40000, false, &sh);
	assert_true(sc == 1 && sw == 0 && sh == 1);
	other = lead(c, COP_DUTY_COPY, 3);
	assert_true(cop_cache_try_reserve(c, other, 5000));
	refused = lead(c, COP_DUTY_COPY, 4);
	assert_false(cop_cache_try_reserve(c, refused, 20000));
	cop_cache_complete(c, refused, &(struct cop_completion){.rc = -EBUSY});
	keep_bytes(c, copy, 50000);
	keep_bytes(c, home, 40000);
	assert_int_equal(sw, 1);
	keep_bytes(c, waiting, 50000);
	keep_bytes(c, other, 5000);
	cop_cache_check(c);
	cop_cache_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_leave_first_and_the_oldest_of_them),
		cmocka_unit_test(copies_in_a_full_cache_share_an_eighth_of_it),
		cmocka_unit_test(
			a_home_waits_for_no_other_kind_and_copies_for_others_wait_for_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
