/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "cache/cache/cache_priv.h"

#define CHUNK COP_MIB

static struct cop_cache *open_cache(uint64_t limit)
{
	struct cop_cache *c = cop_cache_new(limit, NULL);

	assert_non_null(c);
	cop_cache_pool(c, CHUNK);
	return c;
}

static void *whole(struct cop_cache *c, size_t bytes)
{
	char *data = cop_cache_alloc(c, bytes);

	assert_non_null(data);
	memset(data, 1, bytes);
	return data;
}

static void a_chunk_that_came_free_is_used_again(void **state)
{
	struct cop_cache *c = open_cache(64 * CHUNK);
	void *data = whole(c, CHUNK), *other = whole(c, CHUNK);

	(void)state;
	cop_cache_release(c, data, CHUNK);
	assert_int_equal(c->pool.count, 1);
	assert_ptr_equal(whole(c, CHUNK), data);
	assert_int_equal(c->pool.count, 0);
	cop_cache_release(c, data, CHUNK);
	cop_cache_release(c, other, CHUNK);
	cop_cache_free(c);
}

static void other_sizes_are_not_kept(void **state)
{
	static const size_t sizes[] = {1, 4096, 256 * COP_KIB, CHUNK - 1, CHUNK + 1, 3 * CHUNK + 5};
	struct cop_cache *c = open_cache(64 * CHUNK);

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(sizes); i++)
		cop_cache_release(c, whole(c, sizes[i]), sizes[i]);
	cop_cache_release(c, NULL, 0);
	cop_cache_release(c, NULL, CHUNK);
	assert_int_equal(c->pool.count, 0);
	cop_cache_free(c);
}

static void at_most_a_32nd_of_the_limit_is_kept(void **state)
{
	static const struct {
		uint64_t limit;
		unsigned kept;
	} cases[] = {{16 * CHUNK, 0}, {64 * CHUNK, 2}, {COP_GIB, POOL_MAX}};
	void *data[POOL_MAX + 1];

	(void)state;
	for (size_t k = 0; k < COP_ARRAY_SIZE(cases); k++) {
		struct cop_cache *c = open_cache(cases[k].limit);

		for (size_t i = 0; i < COP_ARRAY_SIZE(data); i++)
			data[i] = whole(c, CHUNK);
		for (size_t i = 0; i < COP_ARRAY_SIZE(data); i++)
			cop_cache_release(c, data[i], CHUNK);
		assert_int_equal(c->pool.count, cases[k].kept);
		cop_cache_free(c);
	}
}

static void a_failed_flight_gives_its_buffer_back(void **state)
{
	struct cop_cache *c = open_cache(64 * CHUNK);
	struct cop_key key = {.table = COP_TABLE_DATA, .path = "x", .path_len = 1};
	struct cop_obj *flight;

	(void)state;
	assert_int_equal(cop_cache_find(c, &key, NULL, &flight), COP_FOUND_LEAD);
	cop_cache_complete(c, flight,
		&(struct cop_completion){.rc = -5, .data = whole(c, CHUNK), .len = CHUNK});
	assert_int_equal(c->pool.count, 1);
	assert_int_equal(cop_cache_find(c, &key, NULL, &flight), COP_FOUND_LEAD);
	cop_cache_complete(c, flight,
		&(struct cop_completion){.data = whole(c, CHUNK), .len = CHUNK, .keep = true});
	assert_int_equal(c->pool.count, 0);
	assert_int_equal(cop_cache_drop_under(c, ""), 1);
	assert_int_equal(c->pool.count, 1);
	cop_cache_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_chunk_that_came_free_is_used_again),
		cmocka_unit_test(other_sizes_are_not_kept),
		cmocka_unit_test(at_most_a_32nd_of_the_limit_is_kept),
		cmocka_unit_test(a_failed_flight_gives_its_buffer_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
