/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include "base/base/base.h"

static cpu_set_t before;
static unsigned first, count; /* processors that this test may use */

static int setup(void **state)
{
	(void)state;
	if (sched_getaffinity(0, sizeof(before), &before))
		return -1;
	count = (unsigned)CPU_COUNT(&before);
	for (first = 0; !CPU_ISSET(first, &before);)
		first++;
	return 0;
}

static int back(void **state)
{
	(void)state;
	return sched_setaffinity(0, sizeof(before), &before);
}

static void refused(const char *list, const char *why)
{
	struct cop_err err = {0};
	cpu_set_t now;

	assert_int_equal(cop_cpus_pin(list, &err), -EINVAL);
	if (!strstr(err.text, why))
		fail_msg("%s: %s", list, err.text);
	assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
	assert_true(CPU_EQUAL(&now, &before));
}

static void a_text_that_is_not_a_list_is_refused(void **state)
{
	static const char *const bad[] = {"", ",", "0,", ",0", "-", "0-", "-1", "1-0", "0,,1", "a",
		"0 ", " 0", "0x1", "65536", "99999999999999999999", "0-99999999999999999999",
		"0\n\n"};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(bad); i++)
		refused(bad[i], "is not a list of processors");
}

static void a_processor_that_is_not_there_is_named_and_nothing_changes(void **state)
{
	char list[64];

	(void)state;
	refused("65000-65002,65535",
		"processor 65000-65002,65535 does not exist: this machine has 0");
	snprintf(list, sizeof(list), "%u,65000", first);
	refused(list, "processor 65000 does not exist");
}

static void one_processor_is_all_that_a_pinned_process_has(void **state)
{
	struct cop_buf now = {0};
	char list[16];

	(void)state;
	snprintf(list, sizeof(list), "%u", first);
	assert_int_equal(cop_cpus_pin(list, NULL), 0);
	cop_cpus_list(&now);
	assert_string_equal(now.data, list);
	cop_buf_free(&now);
}

struct sleeper {
	sem_t born, end;
	cpu_set_t seen;
};

static void *sleeps(void *arg)
{
	struct sleeper *s = arg;

	sem_post(&s->born);
	sem_wait(&s->end);
	sched_getaffinity(0, sizeof(s->seen), &s->seen);
	return NULL;
}

static void a_thread_that_runs_already_is_pinned_too(void **state)
{
	struct sleeper s = {0};
	char list[16];
	pthread_t t;

	(void)state;
	sem_init(&s.born, 0, 0);
	sem_init(&s.end, 0, 0);
	assert_int_equal(cop_thread_start(&t, "sleeper", sleeps, &s), 0);
	sem_wait(&s.born);
	snprintf(list, sizeof(list), "%u", first);
	assert_int_equal(cop_cpus_pin(list, NULL), 0);
	sem_post(&s.end);
	pthread_join(t, NULL);
	assert_int_equal(CPU_COUNT(&s.seen), 1);
	assert_true(CPU_ISSET(first, &s.seen));
}

/* -b may ask for processors in the cpuset that the launcher excluded, because the user decides. */
static void a_pinned_process_may_ask_for_other_processors(void **state)
{
	struct cop_buf all = {0}, now = {0};
	char list[16];

	(void)state;
	if (count < 2)
		skip();
	cop_cpus_list(&all);
	snprintf(list, sizeof(list), "%u", first);
	assert_int_equal(cop_cpus_pin(list, NULL), 0);
	assert_int_equal(cop_cpus_pin(all.data, NULL), 0);
	cop_cpus_list(&now);
	assert_string_equal(now.data, all.data);
	cop_buf_free(&all);
	cop_buf_free(&now);
}

static void a_thread_that_its_launcher_bound_to_one_core_knows(void **state)
{
	struct cop_buf all = {0}, mine = {0}, cpuset = {0};
	char list[16];

	(void)state;
	if (count < 2)
		skip();
	cop_cpus_list(&all);
	assert_false(cop_cpus_bound(&mine, &cpuset));
	snprintf(list, sizeof(list), "%u", first);
	assert_int_equal(cop_cpus_pin(list, NULL), 0);
	assert_true(cop_cpus_bound(&mine, &cpuset));
	assert_string_equal(mine.data, list);
	assert_string_equal(cpuset.data, all.data);
	cop_buf_free(&mine);
	cop_cpus_list(&mine);
	assert_string_equal(mine.data, list);
	cop_buf_free(&all);
	cop_buf_free(&mine);
	cop_buf_free(&cpuset);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_text_that_is_not_a_list_is_refused, back),
		cmocka_unit_test_teardown(
			a_processor_that_is_not_there_is_named_and_nothing_changes, back),
		cmocka_unit_test_teardown(one_processor_is_all_that_a_pinned_process_has, back),
		cmocka_unit_test_teardown(a_thread_that_runs_already_is_pinned_too, back),
		cmocka_unit_test_teardown(a_pinned_process_may_ask_for_other_processors, back),
		cmocka_unit_test_teardown(a_thread_that_its_launcher_bound_to_one_core_knows, back),
	};

	return cmocka_run_group_tests(tests, setup, back);
}
