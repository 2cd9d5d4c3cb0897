/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "base/base/htab.h"

#define MANY 10000u

struct item {
	unsigned key;
	bool met;
	struct cop_hlink link;
};

static struct item *item_of(struct cop_hlink *l)
{
	return COP_CONTAINER_OF(l, struct item, link);
}

static struct item *find_item(const struct cop_htab *t, uint64_t hash, unsigned key)
{
	struct cop_hlink *l = cop_htab_first(t, hash);

	while (l && item_of(l)->key != key)
		l = cop_htab_next(l);
	return l ? item_of(l) : NULL;
}

static uint64_t hash_of(unsigned key)
{
	return cop_hash64(&key, sizeof(key), 0);
}

static void zeroed_memory_is_an_empty_table(void **state)
{
	struct cop_htab t = {0};

	(void)state;
	assert_null(cop_htab_first(&t, 0));
	assert_null(cop_htab_first(&t, UINT64_MAX));
	assert_null(cop_htab_after(&t, NULL));
	cop_htab_fini(&t);
}

static void every_entry_is_found_however_many_there_are(void **state)
{
	struct item *item = calloc(MANY, sizeof(*item));
	struct cop_htab t = {0};

	(void)state;
	for (unsigned i = 0; i < MANY; i++) {
		item[i].key = i;
		cop_htab_add(&t, &item[i].link, hash_of(i));
		assert_int_equal(t.count, i + 1);
		/* At least one head per entry, and at most two. */
		assert_true(t.mask + 1 >= t.count && t.mask + 1 < COP_MAX(64u, 2 * t.count) + 1);
	}
	for (unsigned i = 0; i < MANY; i++)
		assert_ptr_equal(find_item(&t, hash_of(i), i), &item[i]);
	assert_null(find_item(&t, hash_of(MANY), MANY));
	cop_htab_fini(&t);
	assert_int_equal(t.count, 0);
	assert_null(cop_htab_first(&t, hash_of(1)));
	free(item);
}

static void the_caller_tells_entries_with_the_same_hash_apart(void **state)
{
	struct item item[200] = {{0}};
	struct cop_htab t = {0};

	(void)state;
	for (unsigned i = 0; i < 200; i++) {
		item[i].key = i;
		cop_htab_add(&t, &item[i].link, 7);
	}
	/* The same chain, but another hash. */
	assert_null(cop_htab_first(&t, 7 + ((uint64_t)1 << 40)));
	for (unsigned i = 0; i < 200; i++)
		assert_ptr_equal(find_item(&t, 7, i), &item[i]);
	cop_htab_fini(&t);
}

static void only_the_removed_entry_is_gone(void **state)
{
	struct item item[300] = {{0}};
	struct cop_htab t = {0};

	(void)state;
	for (unsigned i = 0; i < 300; i++) {
		item[i].key = i;
		cop_htab_add(&t, &item[i].link, i / 3); /* three with each hash */
	}
	for (unsigned i = 0; i < 300; i += 2)
		cop_htab_remove(&t, &item[i].link);
	assert_int_equal(t.count, 150);
	for (unsigned i = 0; i < 300; i++)
		assert_ptr_equal(find_item(&t, i / 3, i), i % 2 ? &item[i] : NULL);
	cop_htab_add(&t, &item[0].link, 0);
	assert_ptr_equal(find_item(&t, 0, 0), &item[0]);
	cop_htab_fini(&t);
}

static void each_entry_is_visited_once_and_may_be_removed_on_the_way(void **state)
{
	struct item *item = calloc(MANY, sizeof(*item));
	struct cop_htab t = {0};
	unsigned met = 0;

	(void)state;
	for (unsigned i = 0; i < MANY; i++)
		cop_htab_add(&t, &item[i].link, hash_of(i) & ~(uint64_t)3);
	for (struct cop_hlink *l = cop_htab_after(&t, NULL), *next; l; l = next, met++) {
		next = cop_htab_after(&t, l);
		assert_false(item_of(l)->met);
		item_of(l)->met = true;
		if (met % 3)
			cop_htab_remove(&t, l);
	}
	assert_int_equal(met, MANY);
	met = 0;
	for (struct cop_hlink *l = cop_htab_after(&t, NULL); l; l = cop_htab_after(&t, l))
		met++;
	assert_int_equal(met, (MANY + 2) / 3);
	assert_int_equal(t.count, met);
	cop_htab_fini(&t);
	free(item);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(zeroed_memory_is_an_empty_table),
		cmocka_unit_test(every_entry_is_found_however_many_there_are),
		cmocka_unit_test(the_caller_tells_entries_with_the_same_hash_apart),
		cmocka_unit_test(only_the_removed_entry_is_gone),
		cmocka_unit_test(each_entry_is_visited_once_and_may_be_removed_on_the_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
