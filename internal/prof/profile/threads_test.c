/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "prof/profile/profile_testing.h"

struct crowd {
	struct cop_prof *p;
	_Atomic bool stop;
};

static void *keep_counting(void *arg)
{
	struct crowd *c = arg;
	char path[32];

	for (unsigned i = 0; i < 20000 || !c->stop; i++) {
		size_t len = (size_t)snprintf(path, sizeof(path), "p/%u", i % 500);

		cop_prof_op(c->p, i % COP_PROF_OPS, i % COP_PROF_OUTCOMES, i);
		cop_prof_read(c->p, path, len, COP_PROF_HIT, i, 10);
		cop_prof_ttl(c->p, path, len, i % COP_PROF_TTLS);
	}
	return NULL;
}

static void *take_snapshots(void *arg)
{
	struct crowd *c = arg;

	for (unsigned i = 0; i < 5; i++)
		snapshot(c->p, "runtime-snapshot", NULL);
	return NULL;
}

static void snapshots_run_while_others_count(void **state)
{
	static const enum cop_prof_level levels[] = {COP_PROF_TOP, COP_PROF_FULL};

	(void)state;
	for (size_t k = 0; k < COP_ARRAY_SIZE(levels); k++) {
		struct crowd c = {.p = profile(levels[k], 10)};
		pthread_t counter[3], writer[2];

		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(
				cop_thread_start(&counter[i], "count", keep_counting, &c), 0);
		for (unsigned i = 0; i < 2; i++)
			assert_int_equal(
				cop_thread_start(&writer[i], "snapshot", take_snapshots, &c), 0);
		for (unsigned i = 0; i < 2; i++)
			pthread_join(writer[i], NULL);
		c.stop = true;
		for (unsigned i = 0; i < 3; i++)
			pthread_join(counter[i], NULL);
		cop_prof_free(c.p);
	}
}

static void a_sum_has_what_all_threads_counted(void **state)
{
	struct crowd c = {.p = profile(COP_PROF_AGGREGATE, 0), .stop = true};
	struct cop_prof_sum *s = cop_prof_sum_new();
	struct cop_prof_op_sum all;
	pthread_t counter[4];

	(void)state;
	assert_non_null(s);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(cop_thread_start(&counter[i], "count", keep_counting, &c), 0);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(counter[i], NULL);
	cop_prof_sum_add(s, c.p);
	cop_prof_sum_all(s, &all);
	assert_int_equal(all.calls, 80000);
	for (unsigned o = 0; o < COP_PROF_OUTCOMES; o++)
		assert_int_equal(all.outcome[o], 16000);
	assert_int_equal(all.latency_ns, 4ull * 19999 * 20000 / 2);
	assert_int_equal(all.max_ns, 19999);
	for (unsigned e = 0; e < COP_PROF_TTLS; e++)
		assert_int_equal(cop_prof_sum_ttl(s, e), 20000);
	assert_int_equal(cop_prof_sum_nodes(s), 1);
	cop_prof_sum_add(s, NULL);
	assert_int_equal(cop_prof_sum_nodes(s), 1);
	cop_prof_sum_free(s);
	cop_prof_free(c.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(snapshots_run_while_others_count),
		T(a_sum_has_what_all_threads_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
