/* SPDX-License-Identifier: BSD-3-Clause */
/* Pipes play the descriptors of a view. For poll(2) the end that is written to has an error once
 * the other one is closed: so mounts change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base/base.h"
#include "node/spare/spare.h"

#define KEEP_MS 2000
#define KEY 7

static uint64_t clock_ms;

static uint64_t test_clock(void)
{
	return clock_ms * COP_NS_PER_MS;
}

struct test {
	struct cop_spare spare;
	struct cop_spare_tree tree;
	unsigned before; /* descriptors that were open */
	int view[COP_SPARE_FDS];
	int other_end[COP_SPARE_FDS];
};

static unsigned open_fds(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static int setup(void **state)
{
	struct test *t = calloc(1, sizeof(*t));

	clock_ms = 100000;
	cop_clocks_for_test(test_clock, NULL);
	t->before = open_fds();
	cop_spare_init(&t->spare, KEEP_MS);
	*state = t;
	return 0;
}

/* Whoever has a view is the only one to have it open. */
static int teardown(void **state)
{
	struct test *t = *state;

	cop_spare_fini(&t->spare);
	for (int i = 0; i < COP_SPARE_FDS; i++)
		if (t->other_end[i] > 0)
			close(t->other_end[i]);
	cop_clocks_for_test(NULL, NULL);
	assert_int_equal(open_fds(), t->before);
	free(t);
	return 0;
}

static void make_view(struct test *t)
{
	for (int i = 0; i < COP_SPARE_FDS; i++) {
		int fds[2];

		assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
		if (t->other_end[i] > 0)
			close(t->other_end[i]);
		t->other_end[i] = fds[0];
		t->view[i] = fds[1];
	}
}

static void change_mounts(struct test *t, enum cop_spare_fd which)
{
	close(t->other_end[which]);
	t->other_end[which] = 0;
}

static uint64_t refused(struct test *t, uint64_t key)
{
	int given[COP_SPARE_GIVEN];
	uint64_t number = 99;

	assert_false(cop_spare_ask(&t->spare, key, &t->tree, given, &number));
	return number;
}

static int offer(struct test *t, uint64_t number)
{
	make_view(t);
	return cop_spare_offer(&t->spare, number, t->view, &t->tree);
}

static void keep_view(struct test *t, uint64_t key)
{
	uint64_t number = refused(t, key);

	assert_int_not_equal(number, 0);
	assert_int_equal(offer(t, number), 0);
}

static void expect_given(struct test *t, uint64_t key)
{
	int given[COP_SPARE_GIVEN];
	uint64_t number = 99;

	assert_true(cop_spare_ask(&t->spare, key, &t->tree, given, &number));
	assert_int_equal(number, 0);
	for (int i = 0; i < COP_SPARE_GIVEN; i++) {
		struct stat want, got;

		assert_int_equal(fstat(t->other_end[i], &want) | fstat(given[i], &got), 0);
		assert_int_equal(want.st_ino, got.st_ino);
		assert_true(fcntl(given[i], F_GETFD) & FD_CLOEXEC);
		close(given[i]);
	}
}

static void the_next_command_gets_the_view_of_the_first(void **state)
{
	struct test *t = *state;

	assert_int_equal(cop_spare_tend(&t->spare, &t->tree), -1);
	keep_view(t, KEY);
	for (int i = 0; i < 3; i++)
		expect_given(t, KEY);
	assert_in_range(cop_spare_tend(&t->spare, &t->tree), 1, KEEP_MS);
}

static void a_view_is_kept_from_the_moment_its_command_asked(void **state)
{
	struct test *t = *state;
	uint64_t number = refused(t, KEY);

	clock_ms += 900;
	assert_int_equal(offer(t, number), 0);
	clock_ms += KEEP_MS - 900 - 1;
	expect_given(t, KEY);
	assert_int_equal(cop_spare_tend(&t->spare, &t->tree), 1);
	clock_ms++;
	assert_int_not_equal(refused(t, KEY), 0);
}

static void a_view_that_nobody_asks_for_is_let_go_in_time(void **state)
{
	struct test *t = *state;

	keep_view(t, KEY);
	clock_ms += KEEP_MS - 1;
	assert_int_equal(cop_spare_tend(&t->spare, &t->tree), 1);
	assert_int_equal(open_fds(), t->before + 2 * COP_SPARE_FDS);
	clock_ms++;
	assert_int_equal(cop_spare_tend(&t->spare, &t->tree), -1);
	assert_int_equal(open_fds(), t->before + COP_SPARE_FDS);
}

static void one_command_at_a_time_may_offer(void **state)
{
	struct test *t = *state;
	uint64_t first = refused(t, KEY), second;

	assert_int_equal(refused(t, KEY), 0);
	clock_ms += 999;
	assert_int_equal(refused(t, KEY), 0);
	clock_ms++;
	second = refused(t, KEY);
	assert_true(second && second != first);
	assert_int_equal(offer(t, first), -ESTALE);
	assert_int_equal(offer(t, second), 0);
	assert_int_equal(offer(t, second), -ESTALE);
	assert_int_equal(offer(t, 0), -ESTALE);
}

static void a_command_that_is_different_gets_no_view_and_may_replace_it(void **state)
{
	struct test *t = *state;

	keep_view(t, KEY);
	keep_view(t, KEY + 1);
	expect_given(t, KEY + 1);
	assert_int_not_equal(refused(t, KEY), 0);
	expect_given(t, KEY + 1);
}

static void what_is_new_in_the_tree_ends_it(void **state)
{
	struct test *t = *state;
	uint64_t number;

	keep_view(t, KEY);
	t->tree.changes++;
	number = refused(t, KEY);
	assert_int_not_equal(number, 0);
	/* Also between the question and the offer. */
	t->tree.changes++;
	assert_int_equal(offer(t, number), -ESTALE);
	keep_view(t, KEY);
	t->tree.changes++;
	assert_int_equal(cop_spare_tend(&t->spare, &t->tree), -1);
}

static void no_view_is_wanted_that_may_outlive_what_the_kernel_has_of_a_young_file(void **state)
{
	struct test *t = *state;

	t->tree.young_ms = clock_ms + KEEP_MS;
	assert_int_equal(refused(t, KEY), 0);
	clock_ms += KEEP_MS - 1;
	assert_int_equal(refused(t, KEY), 0);
	clock_ms++;
	keep_view(t, KEY);
	/* The kernel has this one for longer than the view is kept. */
	t->tree.young_ms = clock_ms + KEEP_MS;
	expect_given(t, KEY);
}

static void mounts_that_change_end_it(void **state)
{
	struct test *t = *state;
	uint64_t number;

	keep_view(t, KEY);
	change_mounts(t, COP_SPARE_MOUNTS);
	assert_int_not_equal(number = refused(t, KEY), 0);
	assert_int_equal(offer(t, number), 0);
	change_mounts(t, COP_SPARE_BEFORE);
	assert_int_equal(cop_spare_tend(&t->spare, &t->tree), -1);
	number = refused(t, KEY);
	make_view(t);
	change_mounts(t, COP_SPARE_BEFORE);
	assert_int_equal(cop_spare_offer(&t->spare, number, t->view, &t->tree), -ESTALE);
}

static _Atomic bool over;
static _Atomic unsigned kept;

/* Plays commands that get a view, or offer one. */
static void *many_commands(void *arg)
{
	struct test *t = arg;

	while (!over) {
		struct cop_spare_tree tree = {0};
		int given[COP_SPARE_GIVEN], view[COP_SPARE_FDS];
		uint64_t number;

		if (cop_spare_ask(&t->spare, KEY, &tree, given, &number)) {
			for (int i = 0; i < COP_SPARE_GIVEN; i++)
				close(given[i]);
		} else if (number) {
			for (int i = 0; i < COP_SPARE_FDS; i++)
				view[i] = fcntl(t->view[i], F_DUPFD_CLOEXEC, 3);
			kept += cop_spare_offer(&t->spare, number, view, &tree) == 0;
		}
	}
	return NULL;
}

/* The teardown finds what was left open, and the thread sanitizer what was not locked. */
static void commands_at_the_same_time_as_the_node_lose_no_descriptor(void **state)
{
	struct test *t = *state;
	struct cop_spare_tree tree = {0}, changed = {.changes = 1};
	pthread_t thread[4];

	over = false;
	kept = 0;
	make_view(t);
	for (int i = 0; i < 4; i++)
		assert_int_equal(cop_thread_start(&thread[i], "command", many_commands, t), 0);
	for (int i = 0; i < 3000 || kept < 100; i++)
		cop_spare_tend(&t->spare, i % 3 ? &tree : &changed);
	cop_spare_stop(&t->spare);
	over = true;
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < COP_SPARE_FDS; i++)
		close(t->view[i]);
}

static void nothing_is_kept_after_the_stop(void **state)
{
	struct test *t = *state;
	uint64_t number;

	keep_view(t, KEY);
	number = refused(t, KEY + 1);
	cop_spare_stop(&t->spare);
	assert_int_equal(open_fds(), t->before + COP_SPARE_FDS);
	assert_int_equal(refused(t, KEY), 0);
	assert_int_equal(offer(t, number), -ESTALE);
	assert_int_equal(cop_spare_tend(&t->spare, &t->tree), -1);
}

static void a_node_that_may_keep_none_wants_none(void **state)
{
	struct test *t = *state;

	cop_spare_fini(&t->spare);
	cop_spare_init(&t->spare, 0);
	assert_int_equal(refused(t, KEY), 0);
	assert_int_equal(offer(t, 1), -ESTALE);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_next_command_gets_the_view_of_the_first),
		T(a_view_is_kept_from_the_moment_its_command_asked),
		T(a_view_that_nobody_asks_for_is_let_go_in_time),
		T(one_command_at_a_time_may_offer),
		T(a_command_that_is_different_gets_no_view_and_may_replace_it),
		T(what_is_new_in_the_tree_ends_it),
		T(no_view_is_wanted_that_may_outlive_what_the_kernel_has_of_a_young_file),
		T(mounts_that_change_end_it),
		T(commands_at_the_same_time_as_the_node_lose_no_descriptor),
		T(nothing_is_kept_after_the_stop),
		T(a_node_that_may_keep_none_wants_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
