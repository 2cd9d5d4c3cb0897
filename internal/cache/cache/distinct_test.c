/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "cache/cache/cache_priv.h"

#define KIB ((size_t)1024)

static struct cop_stats stats;

/* A part of a file is fetched, and dropped again if the cache is small. */
static void fetch(struct cop_cache *c, unsigned n, size_t len, enum cop_duty duty)
{
	char path[32];
	struct cop_key key = {.table = COP_TABLE_DATA, .path = path, .version = 1};
	struct cop_obj *obj;

	key.path_len = (size_t)snprintf(path, sizeof(path), "file-%u", n);
	if (cop_cache_find(c, &key, NULL, &obj) == COP_FOUND_HIT) {
		cop_obj_put(c, obj);
		return;
	}
	cop_cache_set_duty(c, obj, duty);
	cop_cache_complete(c, obj,
		&(struct cop_completion){
			.data = cop_cache_alloc(c, len), .len = len, .keep = true});
}

static void is_about(uint64_t is, uint64_t wanted, unsigned percent)
{
	assert_true(is * 100 >= wanted * (100 - percent));
	assert_true(is * 100 <= wanted * (100 + percent));
}

static void what_is_fetched_again_counts_once(void **state)
{
	struct cop_cache *c = cop_cache_new(COP_MIB, &stats);
	struct cop_cache_seen seen;

	(void)state;
	for (unsigned round = 0; round < 5; round++)
		for (unsigned n = 0; n < 400; n++)
			fetch(c, n, 16 * KIB, COP_DUTY_NONE);
	cop_cache_seen(c, &seen);
	is_about(seen.data_bytes, 400 * 16 * KIB, 10);
	assert_int_equal(seen.needed_bytes, seen.data_bytes);
	/* Many are estimated in another way. */
	for (unsigned round = 0; round < 2; round++)
		for (unsigned n = 0; n < 40000; n++)
			fetch(c, n, 16 * KIB, COP_DUTY_NONE);
	cop_cache_seen(c, &seen);
	is_about(seen.data_bytes, 40000 * 16 * KIB, 15);
	cop_cache_free(c);
}

static void copies_are_needed_but_are_no_data(void **state)
{
	struct cop_cache *c = cop_cache_new(COP_MIB, &stats);
	struct cop_cache_seen seen;

	(void)state;
	cop_cache_seen(c, &seen);
	assert_true(seen.data_bytes == 0 && seen.needed_bytes == 0);
	for (unsigned n = 0; n < 100; n++)
		fetch(c, n, 16 * KIB, n < 50 ? COP_DUTY_COPY : COP_DUTY_HOME);
	cop_cache_seen(c, &seen);
	is_about(seen.data_bytes, 50 * 16 * KIB, 10);
	is_about(seen.needed_bytes, 100 * 16 * KIB, 10);
	cop_cache_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_fetched_again_counts_once),
		cmocka_unit_test(copies_are_needed_but_are_no_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
