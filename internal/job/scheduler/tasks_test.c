/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/stat.h>

#include "job/scheduler/tasks_testing.h"

/* ---- one generation ---- */

static void the_keepers_word_reaches_the_waiting_tasks(void **state)
{
	struct cop_tasks keeper, second = one_of(1, 2);
	struct cop_err why = {0};
	char word[64];

	(void)state;
	start_keeper(&keeper, 0, 2);
	assert_int_equal(cop_tasks_join(&second, dir, &err), 0);
	assert_int_equal(await_now(&second, word), -ETIMEDOUT);
	assert_non_null(strstr(err.text, "another task of this machine starts it"));
	assert_int_equal(cop_tasks_tell(&keeper, "/place", NULL), 0);
	assert_int_equal(await_now(&second, word), 0);
	assert_string_equal(word, "/place");
	cop_err_set(&why, EIO, "the storage is gone");
	assert_int_equal(cop_tasks_tell(&keeper, NULL, &why), 0);
	assert_int_equal(await_now(&second, word), -EIO);
	assert_string_equal(err.text, "the storage is gone");
	cop_tasks_leave(&second);
	end_keeper(&keeper);
}

/* If the path is too long for the node's socket, the node reports it. */
static void a_directory_with_a_long_name_is_not_cut(void **state)
{
	struct cop_tasks only = one_of(0, 1);
	char deep[108], word[64];

	(void)state;
	snprintf(deep, sizeof(deep), "%s/%0*d", dir, (int)(sizeof(deep) - 2 - strlen(dir)), 1);
	assert_int_equal(mkdir(deep, 0700), 0);
	assert_int_equal(cop_tasks_join(&only, deep, &err), 0);
	assert_int_equal(await_now(&only, word), 1);
	cop_tasks_keep(&only);
	end_keeper(&only);
	assert_int_equal(rmdir(deep), 0);
}

/* Mixed programs: the task with the number 0 never calls. */
static void whoever_comes_may_lead(void **state)
{
	struct cop_tasks second = one_of(1, 3), third = one_of(2, 3);
	char word[64];

	(void)state;
	assert_int_equal(cop_tasks_join(&third, dir, &err), 0);
	assert_int_equal(cop_tasks_join(&second, dir, &err), 0);
	assert_int_equal(await_now(&third, word), 1);
	assert_int_equal(await_now(&second, word), -ETIMEDOUT);
	/* It is killed before it has started a keeper. */
	cop_tasks_leave(&third);
	assert_int_equal(await_now(&second, word), 1);
	assert_string_equal(word, "");
	cop_tasks_keep(&second);
	end_keeper(&second);
}

static void a_call_whose_own_keeper_was_killed_does_not_wait(void **state)
{
	struct cop_tasks t = one_of(0, 1);
	char word[64];

	(void)state;
	assert_int_equal(cop_tasks_join(&t, dir, &err), 0);
	assert_int_equal(await_now(&t, word), 1);
	cop_tasks_hand_over(&t);
	assert_int_equal(cop_tasks_await(&t, 60000, NULL, word, sizeof(word), &err), -ECANCELED);
	cop_tasks_leave(&t);
	cop_tasks_sweep(dir, NULL, NULL);
}

/* ---- several generations ---- */

static void a_call_that_comes_late_joins_as_long_as_others_live(void **state)
{
	struct cop_tasks keeper, first = one_of(0, 2), late = one_of(0, 2);
	char word[64];

	(void)state;
	start_keeper(&keeper, 1, 2);
	assert_int_equal(cop_tasks_join(&first, dir, &err), 0);
	assert_int_equal(cop_tasks_tell(&keeper, "/place", NULL), 0);
	assert_int_equal(cop_tasks_join(&late, dir, &err), 0);
	assert_int_equal(await_now(&late, word), 0);
	assert_string_equal(word, "/place");
	cop_tasks_leave(&first);
	assert_true(cop_tasks_live(&keeper));
	cop_tasks_leave(&late);
	end_keeper(&keeper);
}

static void a_call_that_comes_after_the_end_begins_the_next_generation(void **state)
{
	struct cop_tasks old, late = one_of(0, 1);
	char word[64];

	(void)state;
	start_keeper(&old, 0, 1);
	assert_int_equal(cop_tasks_tell(&old, "/old", NULL), 0);
	assert_int_equal(cop_tasks_wait_idle(&old, 0, &err), 0);
	cop_tasks_close(&old);
	/* The old keeper is still stopping its node. */
	assert_int_equal(cop_tasks_join(&late, dir, &err), 0);
	assert_int_equal(await_now(&late, word), -ETIMEDOUT);
	cop_tasks_end(&old);
	assert_int_equal(await_now(&late, word), 1);
	assert_string_equal(word, "");
	assert_int_equal(cop_tasks_tell(&late, "/new", NULL), 0);
	cop_tasks_keep(&late);
	end_keeper(&late);
}

/* The keeper closes a generation that a call has joined, but not entered, while it was suspended.
 */
static void a_call_that_waits_at_the_end_is_of_the_next_generation(void **state)
{
	struct cop_tasks old, late = one_of(0, 1);
	char word[64];

	(void)state;
	start_keeper(&old, 0, 1);
	assert_int_equal(cop_tasks_tell(&old, "/old", NULL), 0);
	assert_int_equal(cop_tasks_wait_idle(&old, 0, &err), 0);
	assert_int_equal(cop_tasks_suspend(&old), 0);
	assert_false(cop_tasks_live(&old));
	assert_int_equal(cop_tasks_join(&late, dir, &err), 0);
	assert_true(cop_tasks_live(&old));
	assert_int_equal(await_now(&late, word), -ETIMEDOUT);
	cop_tasks_close(&old);
	cop_tasks_end(&old);
	assert_int_equal(await_now(&late, word), 1);
	cop_tasks_keep(&late);
	end_keeper(&late);
}

/* On several machines, each task calls once per generation, unless others may need its next
 * call. */
static void a_second_call_waits_for_the_next_generation(void **state)
{
	struct cop_tasks keeper = one_of(0, 1), late = one_of(0, 1), next = one_of(0, 1);
	char word[64];

	(void)state;
	keeper.elsewhere = late.elsewhere = next.elsewhere = true;
	late.again = next.again = true;
	assert_int_equal(cop_tasks_join(&keeper, dir, &err), 0);
	assert_int_equal(await_now(&keeper, word), 1);
	cop_tasks_keep(&keeper);
	assert_int_equal(cop_tasks_tell(&keeper, "/place", NULL), 0);
	assert_int_equal(cop_tasks_join(&next, dir, &err), 0);
	assert_int_equal(await_now(&next, word), -ETIMEDOUT);
	assert_false(cop_tasks_live(&keeper));
	late.again_ms = 50;
	assert_int_equal(cop_tasks_join(&late, dir, &err), 0);
	assert_int_equal(cop_tasks_await(&late, 10000, NULL, word, sizeof(word), &err), 0);
	assert_string_equal(word, "/place");
	cop_tasks_leave(&late);
	end_keeper(&keeper);
	assert_int_equal(await_now(&next, word), 1);
	cop_tasks_keep(&next);
	end_keeper(&next);
}

static void a_keeper_that_was_suspended_can_go_on(void **state)
{
	struct cop_tasks keeper, late = one_of(0, 1);
	char word[64];

	(void)state;
	start_keeper(&keeper, 0, 1);
	assert_int_equal(cop_tasks_tell(&keeper, "/place", NULL), 0);
	assert_int_equal(cop_tasks_wait_idle(&keeper, 0, &err), 0);
	assert_int_equal(cop_tasks_suspend(&keeper), 0);
	assert_int_equal(cop_tasks_join(&late, dir, &err), 0);
	assert_int_equal(cop_tasks_tell(&keeper, "/place", NULL), 0);
	assert_int_equal(await_now(&late, word), 0);
	assert_string_equal(word, "/place");
	cop_tasks_leave(&late);
	end_keeper(&keeper);
}

#define T(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_dir)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_keepers_word_reaches_the_waiting_tasks),
		T(a_directory_with_a_long_name_is_not_cut),
		T(whoever_comes_may_lead),
		T(a_call_whose_own_keeper_was_killed_does_not_wait),
		T(a_call_that_comes_late_joins_as_long_as_others_live),
		T(a_call_that_comes_after_the_end_begins_the_next_generation),
		T(a_call_that_waits_at_the_end_is_of_the_next_generation),
		T(a_second_call_waits_for_the_next_generation),
		T(a_keeper_that_was_suspended_can_go_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
