/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache/cache/cache.h"

struct test_waiter {
	struct cop_waiter w;
	int calls, rc;
	struct cop_obj *obj;
};

static void note_call(struct cop_waiter *w, struct cop_obj *obj, int rc)
{
	struct test_waiter *t = COP_CONTAINER_OF(w, struct test_waiter, w);

	t->calls++;
	t->rc = rc;
	t->obj = obj;
}

static struct cop_key chunk_key(const char *path, uint64_t index)
{
	return (struct cop_key){.table = COP_TABLE_DATA,
		.path = path,
		.path_len = strlen(path),
		.version = 7,
		.index = index};
}

static struct cop_obj *lead(struct cop_cache *c, const char *path, uint64_t index)
{
	struct cop_key key = chunk_key(path, index);
	struct cop_obj *obj;

	assert_int_equal(cop_cache_find(c, &key, NULL, &obj), COP_FOUND_LEAD);
	return obj;
}

static void put_bytes(struct cop_cache *c, const char *path, uint64_t index, size_t len)
{
	cop_cache_complete(c, lead(c, path, index),
		&(struct cop_completion){.data = calloc(1, len), .len = len, .keep = true});
}

static void count_start(void *arg)
{
	++*(int *)arg;
}

/* Reserves bytes that must be free immediately. */
static void reserve(struct cop_cache *c, struct cop_obj *flight, size_t bytes)
{
	int started = 0;

	cop_cache_reserve(c, flight, bytes, true, count_start, &started);
	assert_int_equal(started, 1);
}

static uint64_t used(struct cop_cache *c)
{
	struct cop_cache_usage u;

	cop_cache_usage(c, &u);
	return u.used_bytes;
}

static void the_first_to_ask_leads_and_the_others_join(void **state)
{
	struct cop_cache *c = cop_cache_new(1 << 20, NULL);
	struct test_waiter a = {.w.completed = note_call}, b = {.w.completed = note_call};
	struct cop_key key = chunk_key("d/f", 0);
	struct cop_obj *flight, *obj;

	(void)state;
	assert_int_equal(cop_cache_find(c, &key, &a.w, &flight), COP_FOUND_LEAD);
	assert_int_equal(cop_cache_find(c, &key, &b.w, &obj), COP_FOUND_JOINED);
	cop_cache_check(c);
	cop_cache_complete(c, flight,
		&(struct cop_completion){
			.data = strdup("hello"), .len = 5, .sum = 42, .keep = true});
	assert_int_equal(a.calls, 1);
	assert_int_equal(b.calls, 1);
	assert_ptr_equal(a.obj, b.obj);
	assert_int_equal(cop_cache_find(c, &key, NULL, &obj), COP_FOUND_HIT);
	assert_memory_equal(obj->data, "hello", 5);
	assert_int_equal(obj->sum, 42);
	cop_obj_put(c, obj);
	cop_cache_check(c);
	cop_cache_free(c);
}

static void a_flight_that_nobody_waits_for_can_be_withdrawn(void **state)
{
	struct cop_cache *c = cop_cache_new(1 << 20, NULL);
	struct test_waiter w = {.w.completed = note_call};
	struct test_waiter guess = {.w = {.completed = note_call, .guesses = true}};
	struct cop_key key = chunk_key("d/f", 0);
	struct cop_obj *first = lead(c, "d/f", 0), *second, *obj;

	(void)state;
	assert_int_equal(cop_cache_find(c, &key, &guess.w, &obj), COP_FOUND_JOINED);
	assert_true(cop_cache_withdraw(c, first));
	assert_true(cop_cache_withdraw(c, first));
	/* Whoever asks now leads another flight, which the end of the first does not affect. */
	second = lead(c, "d/f", 0);
	assert_int_equal(cop_cache_find(c, &key, &w.w, &obj), COP_FOUND_JOINED);
	assert_false(cop_cache_withdraw(c, second));
	cop_cache_complete(c, first, &(struct cop_completion){.rc = -ENOENT, .keep = true});
	assert_int_equal(w.calls, 0);
	assert_int_equal(guess.calls, 1);
	assert_int_equal(guess.rc, -ENOENT);
	cop_cache_complete(
		c, second, &(struct cop_completion){.data = calloc(1, 5), .len = 5, .keep = true});
	assert_int_equal(w.calls, 1);
	assert_int_equal(w.rc, 0);
	assert_true(cop_cache_has(c, &key));
	cop_cache_check(c);
	cop_cache_free(c);
}

static void keys_that_differ_in_one_part_are_different_objects(void **state)
{
	struct cop_cache *c = cop_cache_new(1 << 20, NULL);
	struct cop_key base = chunk_key("d/f", 1), key;
	struct cop_obj *obj;

	(void)state;
	put_bytes(c, "d/f", 1, 10);
	for (int i = 0; i < 5; i++) {
		key = base;
		if (i == 0)
			key.table = COP_TABLE_TREE;
		if (i == 1)
			key.facet = COP_FACET_HOLES;
		if (i == 2)
			key.version++;
		if (i == 3)
			key.index++;
		if (i == 4)
			key.path_len--;
		assert_int_equal(cop_cache_find(c, &key, NULL, &obj), COP_FOUND_LEAD);
		cop_cache_complete(c, obj, &(struct cop_completion){.rc = -ENOENT});
	}
	cop_cache_free(c);
}

static void an_error_can_be_kept_or_forgotten(void **state)
{
	struct cop_cache *c = cop_cache_new(1 << 20, NULL);
	struct test_waiter a = {.w.completed = note_call};
	struct cop_key key = chunk_key("x", 0);
	struct cop_obj *obj;

	(void)state;
	cop_cache_find(c, &key, &a.w, &obj);
	cop_cache_complete(c, obj, &(struct cop_completion){.rc = -EIO});
	assert_int_equal(a.rc, -EIO);
	assert_int_equal(cop_cache_find(c, &key, NULL, &obj), COP_FOUND_LEAD);
	cop_cache_complete(c, obj, &(struct cop_completion){.rc = -ENOENT, .keep = true});
	assert_int_equal(cop_cache_find(c, &key, NULL, &obj), COP_FOUND_HIT);
	assert_int_equal(obj->error, -ENOENT);
	cop_obj_put(c, obj);
	cop_cache_free(c);
	assert_int_equal(a.calls, 1);
}

static void bytes_in_use_never_pass_the_limit(void **state)
{
	struct cop_cache *c = cop_cache_new(100000, NULL);

	(void)state;
	for (int i = 0; i < 1000; i++) {
		struct cop_obj *obj = lead(c, "file", (uint64_t)i);
		int started = 0;

		cop_cache_reserve(c, obj, 9000, true, count_start, &started);
		assert_int_equal(started, 1);
		assert_true(used(c) <= 100000);
		cop_cache_complete(c, obj,
			&(struct cop_completion){
				.data = calloc(1, 9000), .len = 9000, .keep = true});
		assert_true(used(c) <= 100000);
	}
	assert_true(used(c) > 80000);
	cop_cache_check(c);
	cop_cache_free(c);
}

static void an_object_that_is_used_survives_one_that_is_not(void **state)
{
	struct cop_cache *c = cop_cache_new(100000, NULL);
	struct cop_key hot = chunk_key("hot", 0), cold = chunk_key("cold", 0);
	struct cop_obj *obj;

	(void)state;
	put_bytes(c, "cold", 0, 1000);
	put_bytes(c, "hot", 0, 1000);
	for (int i = 0; i < 300; i++) {
		if (cop_cache_find(c, &hot, NULL, &obj) == COP_FOUND_HIT)
			cop_obj_put(c, obj);
		else
			fail_msg("evicted in round %d", i);
		obj = lead(c, "stream", (uint64_t)i);
		reserve(c, obj, 2000);
		cop_cache_complete(c, obj,
			&(struct cop_completion){
				.data = calloc(1, 2000), .len = 2000, .keep = true});
	}
	assert_false(cop_cache_has(c, &cold));
	cop_cache_free(c);
}

static void what_comes_again_after_its_eviction_is_counted(void **state)
{
	static struct cop_stats stats;
	struct cop_cache *c = cop_cache_new(300000, &stats);
	uint64_t gone;

	(void)state;
	for (uint64_t i = 0; i < 4; i++)
		put_bytes(c, "f", i, 100000);
	gone = cop_stats_get(&stats, COP_CACHE_EVICTIONS);
	assert_in_range(gone, 1, 3);
	assert_int_equal(cop_stats_get(&stats, COP_CACHE_REFETCHES), 0);
	/* New objects do not count as fetched again; each of those that were evicted counts
	 * once. */
	for (uint64_t i = 0; i < 4; i++) {
		struct cop_key key = chunk_key("f", i);

		if (!cop_cache_has(c, &key))
			put_bytes(c, "f", i, 100000);
	}
	assert_true(cop_stats_get(&stats, COP_CACHE_REFETCHES) >= gone);
	assert_true(cop_stats_get(&stats, COP_CACHE_REFETCHED_BYTES) >= gone * 100000);
	assert_true(cop_stats_get(&stats, COP_CACHE_REFETCHED_BYTES) <=
		    cop_stats_get(&stats, COP_CACHE_EVICTED_BYTES));
	cop_cache_free(c);
}

static void a_chunk_kept_for_a_root_is_not_counted_as_fetched_again(void **state)
{
	static struct cop_stats stats;
	struct cop_cache *c = cop_cache_new(300000, &stats);

	(void)state;
	for (uint64_t i = 0; i < 8; i++) {
		struct cop_key key = chunk_key("f", i % 4);
		struct cop_obj *obj;

		key.facet = COP_FACET_HOME;
		if (cop_cache_find(c, &key, NULL, &obj) == COP_FOUND_LEAD) {
			cop_cache_set_duty(c, obj, COP_DUTY_HOME);
			reserve(c, obj, 100000);
			cop_cache_complete(c, obj,
				&(struct cop_completion){
					.data = calloc(1, 100000), .len = 100000, .keep = true});
		} else {
			cop_obj_put(c, obj);
		}
	}
	assert_true(cop_stats_get(&stats, COP_CACHE_EVICTED_HOME_BYTES) >= 100000);
	assert_int_equal(cop_stats_get(&stats, COP_CACHE_EVICTED_HOME_BYTES),
		cop_stats_get(&stats, COP_CACHE_EVICTED_BYTES));
	assert_int_equal(cop_stats_get(&stats, COP_CACHE_REFETCHES), 0);
	cop_cache_free(c);
}

static void a_chunk_counts_once_for_each_who_takes_it(void **state)
{
	static struct cop_stats stats;
	struct cop_cache *c = cop_cache_new(1 << 20, &stats);
	struct cop_key key[3] = {chunk_key("f", 0), chunk_key("f", 1), chunk_key("f", 2)};
	struct cop_obj *obj[3];

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		put_bytes(c, "f", i, 1000);
		obj[i] = cop_cache_peek(c, &key[i]);
	}
	assert_int_equal(cop_stats_get(&stats, COP_CACHE_FETCHED_BYTES), 3000);
	assert_int_equal(cop_stats_get(&stats, COP_CACHE_WANTED_BYTES), 0);
	for (unsigned i = 0; i < 2; i++) {
		cop_cache_used(c, obj[0], COP_USE_HERE);
		cop_cache_used(c, obj[0], COP_USE_BELOW);
		cop_cache_used(c, obj[1], COP_USE_BELOW);
	}
	assert_int_equal(cop_stats_get(&stats, COP_CACHE_USED_BYTES), 1000);
	assert_int_equal(cop_stats_get(&stats, COP_CACHE_WANTED_BYTES), 2000);
	for (unsigned i = 0; i < 3; i++)
		cop_obj_put(c, obj[i]);
	cop_cache_free(c);
}

static void a_referenced_object_is_not_evicted(void **state)
{
	struct cop_cache *c = cop_cache_new(50000, NULL);
	struct cop_key key = chunk_key("held", 0);
	struct cop_obj *held, *again;

	(void)state;
	put_bytes(c, "held", 0, 5000);
	assert_int_equal(cop_cache_find(c, &key, NULL, &held), COP_FOUND_HIT);
	for (int i = 0; i < 50; i++) {
		struct cop_obj *obj = lead(c, "s", (uint64_t)i);

		reserve(c, obj, 5000);
		cop_cache_complete(c, obj,
			&(struct cop_completion){
				.data = calloc(1, 5000), .len = 5000, .keep = true});
	}
	assert_int_equal(cop_cache_find(c, &key, NULL, &again), COP_FOUND_HIT);
	assert_ptr_equal(held, again);
	cop_obj_put(c, held);
	cop_obj_put(c, again);
	cop_cache_free(c);
}

static void flights_wait_to_reserve_in_order_and_all_start(void **state)
{
	struct cop_cache *c = cop_cache_new(100000, NULL);
	struct cop_obj *obj[30];
	int started[30] = {0}, completed = 0;

	(void)state;
	for (int i = 0; i < 30; i++) {
		obj[i] = lead(c, "f", (uint64_t)i);
		cop_cache_reserve(c, obj[i], 20000, true, count_start, &started[i]);
	}
	assert_int_equal(started[0], 1);
	assert_int_equal(started[1], 1);
	assert_int_equal(started[29], 0);
	for (int i = 0; i < 30; i++) {
		assert_int_equal(started[i], 1);
		cop_cache_complete(c, obj[i],
			&(struct cop_completion){
				.data = calloc(1, 20000), .len = 20000, .keep = true});
		assert_true(used(c) <= 100000);
		completed++;
	}
	assert_int_equal(completed, 30);
	cop_cache_free(c);
}

static void local_flights_leave_bytes_for_those_of_other_nodes(void **state)
{
	struct cop_cache *c = cop_cache_new(100000, NULL);
	struct cop_obj *a = lead(c, "a", 0), *b = lead(c, "b", 0), *r = lead(c, "r", 0);
	int sa = 0, sb = 0, sr = 0;

	(void)state;
	cop_cache_reserve(c, a, 40000, true, count_start, &sa);
	cop_cache_reserve(c, b, 40000, true, count_start, &sb);
	cop_cache_reserve(c, r, 30000, false, count_start, &sr);
	assert_int_equal(sa, 1);
	assert_int_equal(sb, 0);
	assert_int_equal(sr, 1);
	cop_cache_complete(c, a, &(struct cop_completion){.rc = -EIO});
	assert_int_equal(sb, 1);
	cop_cache_complete(c, b, &(struct cop_completion){.rc = -EIO});
	cop_cache_complete(c, r, &(struct cop_completion){.rc = -EIO});
	assert_int_equal(used(c), 0);
	cop_cache_free(c);
}

static void reservations_are_shared_without_changing_the_sums(void **state)
{
	struct cop_cache *c = cop_cache_new(100000, NULL);
	struct cop_obj *a = lead(c, "f", 0), *b = lead(c, "f", 1);
	uint64_t before;

	(void)state;
	reserve(c, a, 20000);
	before = used(c);
	cop_cache_share_reservation(c, a, b, 8000);
	assert_int_equal(used(c), before);
	cop_cache_complete(
		c, b, &(struct cop_completion){.data = calloc(1, 8000), .len = 8000, .keep = true});
	assert_int_equal(used(c), before);
	cop_cache_complete(c, a,
		&(struct cop_completion){.data = calloc(1, 12000), .len = 12000, .keep = true});
	assert_int_equal(used(c), before);
	cop_cache_check(c);
	cop_cache_free(c);
}

static void dropping_a_directory_takes_what_is_below_and_nothing_else(void **state)
{
	struct cop_cache *c = cop_cache_new(1 << 20, NULL);
	struct cop_key in = chunk_key("a/b/c", 0), out = chunk_key("a/bc", 0),
		       fly = chunk_key("a/b", 0);
	struct cop_obj *flight;

	(void)state;
	put_bytes(c, "a/b/c", 0, 10);
	put_bytes(c, "a/bc", 0, 10);
	flight = lead(c, "a/b", 0);
	assert_int_equal(cop_cache_drop_under(c, "a/b"), 2);
	assert_false(cop_cache_has(c, &in));
	assert_true(cop_cache_has(c, &out));
	cop_cache_complete(
		c, flight, &(struct cop_completion){.data = calloc(1, 3), .len = 3, .keep = true});
	assert_false(cop_cache_has(c, &fly));
	cop_cache_check(c);
	cop_cache_free(c);
}

static struct cop_key page_key(const char *path, enum cop_facet facet, uint64_t index)
{
	return (struct cop_key){.table = COP_TABLE_TREE,
		.facet = facet,
		.path = path,
		.path_len = strlen(path),
		.version = 1 + index,
		.index = index};
}

static void dropping_a_facet_of_a_path_spares_all_else(void **state)
{
	struct cop_cache *c = cop_cache_new(1 << 20, NULL);
	const struct cop_key keep[] = {page_key("d", COP_FACET_MAIN, 0),
		page_key("d/e", COP_FACET_PAGE, 0), page_key("dd", COP_FACET_PAGE, 0),
		page_key("", COP_FACET_PAGE, 0)};
	struct cop_obj *obj;
	struct cop_key key;

	(void)state;
	put_bytes(c, "d", 0, 10);
	for (size_t i = 0; i < COP_ARRAY_SIZE(keep); i++) {
		assert_int_equal(cop_cache_find(c, &keep[i], NULL, &obj), COP_FOUND_LEAD);
		cop_cache_complete(c, obj, &(struct cop_completion){.keep = true});
	}
	for (uint64_t i = 0; i < 5; i++) {
		key = page_key("d", COP_FACET_PAGE, i);
		assert_int_equal(cop_cache_find(c, &key, NULL, &obj), COP_FOUND_LEAD);
		/* The last one is under way and is not kept. */
		if (i < 4)
			cop_cache_complete(c, obj, &(struct cop_completion){.keep = true});
	}
	assert_int_equal(cop_cache_drop_facet(c, COP_TABLE_TREE, COP_FACET_PAGE, "d", 1), 5);
	cop_cache_complete(c, obj, &(struct cop_completion){.keep = true});
	for (uint64_t i = 0; i < 5; i++) {
		key = page_key("d", COP_FACET_PAGE, i);
		assert_false(cop_cache_has(c, &key));
	}
	for (size_t i = 0; i < COP_ARRAY_SIZE(keep); i++)
		assert_true(cop_cache_has(c, &keep[i]));
	key = chunk_key("d", 0);
	assert_true(cop_cache_has(c, &key));
	cop_cache_check(c);
	cop_cache_free(c);
}

static void an_object_takes_the_place_of_another_only_where_that_is_still_there(void **state)
{
	struct cop_cache *c = cop_cache_new(4096, NULL);
	struct cop_key key = chunk_key("f", 0);
	struct cop_obj *was, *is;

	(void)state;
	put_bytes(c, "f", 0, 10);
	was = cop_cache_peek(c, &key);
	cop_cache_replace(c, was, calloc(1, 20), 20);
	is = cop_cache_peek(c, &key);
	assert_int_equal(is->len, 20);
	assert_int_equal(was->len, 10);
	cop_cache_check(c);
	cop_cache_replace(c, is, calloc(1, 5000), 5000);
	cop_cache_replace(c, was, calloc(1, 30), 30);
	cop_obj_put(c, was);
	was = cop_cache_peek(c, &key);
	assert_ptr_equal(was, is);
	cop_obj_put(c, was);
	cop_cache_forget(c, &key);
	cop_cache_replace(c, is, calloc(1, 30), 30);
	assert_false(cop_cache_has(c, &key));
	cop_obj_put(c, is);
	cop_cache_check(c);
	assert_int_equal(used(c), 0);
	cop_cache_free(c);
}

static void *hammer(void *arg)
{
	struct cop_cache *c = arg;
	unsigned seed = (unsigned)(uintptr_t)pthread_self();
	char path[32];

	for (int i = 0; i < 20000; i++) {
		struct test_waiter *w = calloc(1, sizeof(*w));
		struct cop_key key;
		struct cop_obj *obj;

		snprintf(path, sizeof(path), "p%d", rand_r(&seed) % 300);
		key = chunk_key(path, 0);
		switch (cop_cache_find(c, &key, NULL, &obj)) {
		case COP_FOUND_HIT:
			assert_int_equal(((char *)obj->data)[0], path[1]);
			cop_obj_put(c, obj);
			break;
		case COP_FOUND_LEAD: {
			char *data = calloc(1, 3000);
			int started = 0;

			data[0] = path[1];
			cop_cache_reserve(c, obj, 3000, true, count_start, &started);
			/* Two threads have at most two flights at a time, which always fit. */
			assert_int_equal(started, 1);
			cop_cache_complete(c, obj,
				&(struct cop_completion){.data = data, .len = 3000, .keep = true});
			break;
		}
		}
		if (i % 1000 == 0)
			cop_cache_drop_under(c, "p7");
		free(w);
	}
	return NULL;
}

static void threads_share_it(void **state)
{
	struct cop_cache *c = cop_cache_new(200000, NULL);
	pthread_t t[2];

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(cop_thread_start(&t[i], "hammer", hammer, c), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	cop_cache_check(c);
	assert_true(used(c) <= 200000);
	cop_cache_free(c);
}

struct visit {
	struct cop_cache *c;
	unsigned count;
	uint64_t bytes;
};

static void forget_it(void *arg, const struct cop_key *key, size_t bytes)
{
	struct visit *v = arg;

	cop_cache_forget(v->c, key);
	v->count++;
	v->bytes += bytes;
}

static void a_walk_over_the_objects_may_use_the_cache(void **state)
{
	struct visit v = {.c = cop_cache_new(1 << 20, NULL)};
	struct cop_cache_usage u;

	(void)state;
	for (uint64_t i = 0; i < 100; i++)
		put_bytes(v.c, "f", i, 100);
	cop_cache_usage(v.c, &u);
	cop_cache_each(v.c, COP_TABLE_DATA, forget_it, &v);
	assert_int_equal(v.count, 100);
	assert_int_equal(v.bytes, u.table[COP_TABLE_DATA].bytes);
	assert_int_equal(used(v.c), 0);
	cop_cache_free(v.c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_to_ask_leads_and_the_others_join),
		cmocka_unit_test(a_flight_that_nobody_waits_for_can_be_withdrawn),
		cmocka_unit_test(keys_that_differ_in_one_part_are_different_objects),
		cmocka_unit_test(an_error_can_be_kept_or_forgotten),
		cmocka_unit_test(bytes_in_use_never_pass_the_limit),
		cmocka_unit_test(an_object_that_is_used_survives_one_that_is_not),
		cmocka_unit_test(a_referenced_object_is_not_evicted),
		cmocka_unit_test(what_comes_again_after_its_eviction_is_counted),
		cmocka_unit_test(a_chunk_kept_for_a_root_is_not_counted_as_fetched_again),
		cmocka_unit_test(a_chunk_counts_once_for_each_who_takes_it),
		cmocka_unit_test(flights_wait_to_reserve_in_order_and_all_start),
		cmocka_unit_test(local_flights_leave_bytes_for_those_of_other_nodes),
		cmocka_unit_test(reservations_are_shared_without_changing_the_sums),
		cmocka_unit_test(dropping_a_directory_takes_what_is_below_and_nothing_else),
		cmocka_unit_test(dropping_a_facet_of_a_path_spares_all_else),
		cmocka_unit_test(
			an_object_takes_the_place_of_another_only_where_that_is_still_there),
		cmocka_unit_test(a_walk_over_the_objects_may_use_the_cache),
		cmocka_unit_test(threads_share_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
