/* SPDX-License-Identifier: BSD-3-Clause */
/* A node stays within its byte budget whatever it is asked for, and every requester gets a
 * share. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tree/fetch/fetch_testing.h"

static void put_directory(struct tree *t, const char *dir, unsigned names)
{
	char path[128];

	for (unsigned i = 0; i < names; i++) {
		snprintf(path, sizeof(path), "%s/a-name-of-some-length-%u", dir, i);
		put_file(t, path, "x", 1);
	}
}

static void check_budgets(struct tree *t)
{
	for (uint32_t r = 0; r < t->count; r++) {
		struct cop_cache_usage u;

		cop_cache_usage(t->node[r].cache, &u);
		assert_true(u.used_bytes <= u.limit_bytes);
	}
}

/* Runs every possible event one at a time and checks the budgets after each. */
static void run_slowly(struct tree *t)
{
	size_t events;

	do {
		events = cop_endpoint_fake_run(t->net, 1);
		check_budgets(t);
		for (uint32_t r = 0; r < t->count; r++) {
			events += cop_origin_fake_run(t->node[r].origin, 1);
			check_budgets(t);
		}
	} while (events);
}

#define DIRS 8
#define LONG 1200 /* names, whose listing is longer than what is reserved at first */

static void listings_are_charged_before_they_are_kept(void **state)
{
	struct tree *t = open_tree(3, 1, 1, 400000);
	struct asked a[3][DIRS];
	char dir[DIRS][8];

	(void)state;
	for (unsigned d = 0; d < DIRS; d++) {
		snprintf(dir[d], sizeof(dir[d]), "dir%u", d);
		put_directory(t, dir[d], LONG);
	}
	for (uint32_t r = 0; r < 3; r++)
		for (unsigned d = 0; d < DIRS; d++)
			ask_fetch(t, r, listing(dir[d]), &a[r][d]);
	for (unsigned left = 3 * DIRS; left;) {
		unsigned before = left;

		run_slowly(t);
		for (uint32_t r = 0; r < 3; r++)
			for (unsigned d = 0; d < DIRS; d++)
				if (a[r][d].calls && a[r][d].obj) {
					assert_int_equal(a[r][d].rc, 0);
					assert_true(a[r][d].obj->len > COP_FETCH_LISTING_BYTES);
					assert_int_equal(
						cop_listing_count(a[r][d].obj->data), LONG);
					forget(&a[r][d]);
					left--;
				}
		assert_true(left < before);
	}
	/* The latest object is kept. */
	check_budgets(t);
	ask_fetch(t, 2, listing(dir[0]), &a[0][0]);
	run_slowly(t);
	forget(&a[0][0]);
	ask_fetch(t, 2, listing(dir[0]), &a[0][0]);
	assert_int_equal(a[0][0].calls, 1);
	forget(&a[0][0]);
	close_tree(t);
}

static void a_long_listing_that_fits_is_read_only_once(void **state)
{
	struct tree *t = open_tree(3, 1, 1, 4 << 20);
	struct asked a;

	(void)state;
	put_directory(t, "d", 8000);
	ask_fetch(t, 2, listing("d"), &a);
	run_slowly(t);
	assert_int_equal(a.calls, 1);
	assert_int_equal(a.rc, 0);
	assert_int_equal(cop_listing_count(a.obj->data), 8000);
	assert_int_equal(origin_jobs(t), 1);
	forget(&a);
	close_tree(t);
}

/* The budget of the root is too small; its child's is not. */
static void an_object_beyond_the_budget_is_a_shortage_of_that_node(void **state)
{
	struct tree *t = open_tree(2, 1, 1, 4 << 20);
	struct asked a;

	(void)state;
	cop_fetch_free(t->node[0].fetch);
	cop_cache_free(t->node[0].cache);
	cop_origin_close(t->node[0].origin);
	cop_rpc_close(t->node[0].rpc);
	open_node(t, 0, 1, 1, 200000);
	put_directory(t, "d", 8000);
	ask_fetch(t, 1, listing("d"), &a);
	run_slowly(t);
	assert_int_equal(a.calls, 1);
	assert_int_equal(a.rc, 0);
	assert_int_equal(cop_listing_count(a.obj->data), 8000);
	forget(&a);
	ask_fetch(t, 0, listing("d"), &a);
	run_slowly(t);
	assert_int_equal(a.calls, 1);
	assert_int_equal(a.rc, -ENOMEM);
	forget(&a);
	close_tree(t);
}

/* ---- shares ---- */

#define CHILDREN 8
#define FIRST_CHILD 9
#define EACH 60 /* chunks that each child wants */
#define READS 8 /* chunks that the local reader wants, one after the other */

struct counted {
	struct cop_waiter w;
	unsigned *count;
};

static void count_call(struct cop_waiter *w, struct cop_obj *obj, int rc)
{
	struct counted *c = COP_CONTAINER_OF(w, struct counted, w);

	(void)obj;
	assert_int_equal(rc, 0);
	++*c->count;
}

static void begin_chunk(struct tree *t, uint32_t rank, const struct cop_attr *attr,
	const char *path, uint64_t index, struct counted *c)
{
	struct cop_ask what = chunk(attr, path, index);
	struct cop_obj *obj;

	c->w.completed = count_call;
	assert_int_equal(cop_fetch_get(t->node[rank].fetch, &what, &c->w, &obj), 0);
}

static void step(struct tree *t)
{
	cop_endpoint_fake_run(t->net, 20);
	for (uint32_t r = 0; r < t->count; r++)
		cop_origin_fake_run(t->node[r].origin, 1);
	check_budgets(t);
}

/* Node 1 stands between the root and eight children that want more than it can hold at a time. A
 * program on it reads, too. */
static void eight_busy_children_and_a_local_reader_all_make_progress(void **state)
{
	static struct counted wanted[CHILDREN][EACH], own[READS];
	struct tree *t = open_tree(17, 8, 1, 24 * CHUNK);
	uint8_t *data = calloc(EACH, CHUNK);
	unsigned of_children = 0, of_reader = 0;
	char path[CHILDREN][8];
	struct cop_attr attr[CHILDREN], own_attr;

	(void)state;
	put_file(t, "own", data, READS * CHUNK);
	own_attr = attr_of(t, 0, "own");
	for (unsigned i = 0; i < CHILDREN; i++) {
		snprintf(path[i], sizeof(path[i]), "f%u", i);
		put_file(t, path[i], data, EACH * CHUNK);
		attr[i] = attr_of(t, 0, path[i]);
	}
	for (unsigned i = 0; i < CHILDREN * EACH; i++) {
		wanted[i % CHILDREN][i / CHILDREN].count = &of_children;
		begin_chunk(t, FIRST_CHILD + i % CHILDREN, &attr[i % CHILDREN], path[i % CHILDREN],
			i / CHILDREN, &wanted[i % CHILDREN][i / CHILDREN]);
	}
	for (unsigned n = 0; n < READS; n++) {
		own[n].count = &of_reader;
		begin_chunk(t, 1, &own_attr, "own", n, &own[n]);
		for (unsigned steps = 0; of_reader <= n && steps < 10000; steps++)
			step(t);
		assert_int_equal(of_reader, n + 1);
	}
	/* The reader got all its chunks while the children were still reading, and they made
	 * progress meanwhile. */
	assert_in_range(of_children, READS, CHILDREN * EACH * 3 / 4);
	run_until_idle(t);
	assert_int_equal(of_children, CHILDREN * EACH);
	free(data);
	close_tree(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(listings_are_charged_before_they_are_kept),
		cmocka_unit_test(a_long_listing_that_fits_is_read_only_once),
		cmocka_unit_test(an_object_beyond_the_budget_is_a_shortage_of_that_node),
		cmocka_unit_test(eight_busy_children_and_a_local_reader_all_make_progress),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
