/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "storage/origin/origin_priv.h"

struct counted {
	struct cop_origin_job job;
	struct cop_origin_pool *pool;
	_Atomic int *now, *most, *done, *cancelled;
	struct counted *next; /* submitted by this one */
	unsigned us;
	_Atomic int *gate; /* it ends once this is not 0; may be NULL */
};

static void count_job(struct cop_origin_job *job, int rc)
{
	struct counted *c = COP_CONTAINER_OF(job, struct counted, job);
	int now;

	if (rc) {
		assert_int_equal(rc, -ECANCELED);
		(*c->cancelled)++;
		return;
	}
	now = ++*c->now;
	if (now > *c->most)
		*c->most = now;
	if (c->us)
		usleep(c->us);
	while (c->gate && !*c->gate)
		usleep(1000);
	if (c->next)
		cop_origin_pool_submit(c->pool, &c->next->job, true);
	--*c->now;
	++*c->done;
}

static _Atomic int now, most, done, cancelled;

static void prepare_jobs(
	struct cop_origin_pool *p, unsigned max, struct counted *c, int n, unsigned us)
{
	now = most = done = cancelled = 0;
	*p = (struct cop_origin_pool){0};
	assert_int_equal(cop_origin_pool_init(p, max), 0);
	for (int i = 0; i < n; i++)
		c[i] = (struct counted){.job = {.fn = count_job},
			.pool = p,
			.now = &now,
			.most = &most,
			.done = &done,
			.cancelled = &cancelled,
			.us = us};
}

static void wait_until(_Atomic int *value, int wanted)
{
	for (int i = 0; i < 5000 && *value < wanted; i++)
		usleep(1000);
	assert_int_equal(*value, wanted);
}

static unsigned threads(struct cop_origin_pool *p)
{
	unsigned n;

	pthread_mutex_lock(&p->lock);
	n = p->threads;
	pthread_mutex_unlock(&p->lock);
	return n;
}

static void wait_for_threads(struct cop_origin_pool *p, unsigned wanted)
{
	for (int i = 0; i < 5000 && threads(p) > wanted; i++)
		usleep(1000);
	assert_int_equal(threads(p), wanted);
}

static void no_thread_runs_before_there_is_work(void **state)
{
	struct cop_origin_pool p;

	(void)state;
	prepare_jobs(&p, 4, NULL, 0, 0);
	assert_int_equal(threads(&p), 0);
	cop_origin_pool_fini(&p);
}

static void never_more_jobs_run_than_the_limit(void **state)
{
	struct cop_origin_pool p;
	struct counted c[60];

	(void)state;
	prepare_jobs(&p, 3, c, 60, 500);
	for (int i = 0; i < 60; i++)
		cop_origin_pool_submit(&p, &c[i].job, i % 2);
	wait_until(&done, 60);
	assert_true(most <= 3);
	assert_true(most >= 2);
	assert_true(threads(&p) <= 3);
	cop_origin_pool_fini(&p);
	assert_int_equal(cancelled, 0);
}

static void one_thread_is_enough_for_jobs_that_submit_jobs(void **state)
{
	struct cop_origin_pool p;
	struct counted c[50];

	(void)state;
	prepare_jobs(&p, 1, c, 50, 0);
	for (int i = 0; i < 49; i++)
		c[i].next = &c[i + 1];
	cop_origin_pool_submit(&p, &c[0].job, false);
	wait_until(&done, 50);
	assert_int_equal(most, 1);
	cop_origin_pool_fini(&p);
}

static void threads_end_when_they_are_idle_and_come_back(void **state)
{
	struct cop_origin_pool p;
	struct counted c[8];

	(void)state;
	prepare_jobs(&p, 4, c, 8, 2000);
	p.idle_ms = 30;
	for (int i = 0; i < 4; i++)
		cop_origin_pool_submit(&p, &c[i].job, false);
	wait_until(&done, 4);
	wait_for_threads(&p, 0);
	for (int i = 4; i < 8; i++)
		cop_origin_pool_submit(&p, &c[i].job, false);
	wait_until(&done, 8);
	cop_origin_pool_fini(&p);
}

static void closing_cancels_what_waits_and_finishes_what_runs(void **state)
{
	struct cop_origin_pool p;
	struct counted c[10];

	(void)state;
	prepare_jobs(&p, 1, c, 10, 0);
	c[0].gate = &cancelled;
	for (int i = 0; i < 10; i++)
		cop_origin_pool_submit(&p, &c[i].job, false);
	wait_until(&now, 1);
	cop_origin_pool_fini(&p);
	assert_int_equal(done, 1);
	assert_int_equal(cancelled, 9);
}

static void a_job_submitted_by_a_running_job_during_the_close_is_cancelled(void **state)
{
	struct cop_origin_pool p;
	struct counted c[3];

	(void)state;
	/* The first one submits the second when the close has cancelled the third. */
	prepare_jobs(&p, 1, c, 3, 0);
	c[0].next = &c[1];
	c[0].gate = &cancelled;
	cop_origin_pool_submit(&p, &c[0].job, false);
	wait_until(&now, 1);
	cop_origin_pool_submit(&p, &c[2].job, false);
	cop_origin_pool_fini(&p);
	assert_int_equal(done, 1);
	assert_int_equal(cancelled, 2);
}

static void background_work_leaves_a_worker_free_for_other_jobs(void **state)
{
	_Atomic int others = 0, most_of_others = 0, others_done = 0;
	struct cop_origin_pool p;
	struct counted c[9];

	(void)state;
	prepare_jobs(&p, 4, c, 9, 0);
	c[8].now = &others;
	c[8].most = &most_of_others;
	c[8].done = &others_done;
	/* The others end only after it. */
	for (int i = 0; i < 8; i++) {
		c[i].job.background = true;
		c[i].gate = &others_done;
		cop_origin_pool_submit(&p, &c[i].job, i % 2);
	}
	wait_until(&now, 3);
	usleep(10000);
	cop_origin_pool_submit(&p, &c[8].job, false);
	wait_until(&others_done, 1);
	wait_until(&done, 8);
	assert_int_equal(most, 3);
	cop_origin_pool_fini(&p);
}

static void one_worker_does_the_background_work_last(void **state)
{
	_Atomic int urgent = 0, most_urgent = 0, urgent_done = 0, submitted = 0, looked = 0;
	struct cop_origin_pool p;
	struct counted c[4];

	(void)state;
	prepare_jobs(&p, 1, c, 4, 0);
	for (int i = 0; i < 3; i++) {
		c[i].job.background = true;
		c[i].gate = i ? &looked : &submitted;
	}
	c[3].now = &urgent;
	c[3].most = &most_urgent;
	c[3].done = &urgent_done;
	for (int i = 0; i < 4; i++) {
		cop_origin_pool_submit(&p, &c[i].job, false);
		wait_until(&now, 1);
	}
	submitted = 1;
	wait_until(&urgent_done, 1);
	assert_int_equal(done, 1);
	looked = 1;
	wait_until(&done, 3);
	cop_origin_pool_fini(&p);
}

static void background_work_that_somebody_waits_for_now_comes_first(void **state)
{
	_Atomic int wanted = 0, most_wanted = 0, wanted_done = 0, raised = 0, looked = 0;
	struct cop_origin_pool p;
	struct counted c[9];

	(void)state;
	prepare_jobs(&p, 1, c, 9, 0);
	c[8].now = &wanted;
	c[8].most = &most_wanted;
	c[8].done = &wanted_done;
	for (int i = 0; i < 9; i++) {
		c[i].job.background = true;
		c[i].job.path = i < 7 ? "other" : "file";
		c[i].job.from = i < 8 ? 0 : 4096;
		c[i].job.to = i < 8 ? 4096 : 8192;
		if (i < 8)
			c[i].gate = i ? &looked : &raised;
		cop_origin_pool_submit(&p, &c[i].job, false);
		wait_until(&now, 1);
	}
	cop_origin_pool_raise_priority(&p, "file", 8192);
	cop_origin_pool_raise_priority(&p, "file", 8191);
	raised = 1;
	wait_until(&wanted_done, 1);
	assert_int_equal(done, 1);
	looked = 1;
	/* Further jobs that it submits later, as a directory submits its parts. */
	cop_origin_pool_submit(&p, &c[8].job, false);
	assert_false(c[8].job.background);
	wait_until(&wanted_done, 2);
	wait_until(&done, 8);
	cop_origin_pool_fini(&p);
}

/* ---- the order ---- */

struct ordered {
	struct cop_origin_job job;
	char name;
};

static char order[64];
static _Atomic int ordered;

static void note_order(struct cop_origin_job *job, int rc)
{
	assert_int_equal(rc, 0);
	order[ordered] = COP_CONTAINER_OF(job, struct ordered, job)->name;
	ordered++;
}

/* Submits a job for each letter to a pool with one worker that is busy: q, s (soon), b
 * (background); then raises the priority of those about the path, and lets them run. */
static const char *order_of(const char *jobs, const char *raised)
{
	static _Atomic int gate;
	struct cop_origin_pool p;
	struct ordered o[64];
	struct counted c[1];
	int n = (int)strlen(jobs);

	gate = ordered = 0;
	memset(order, 0, sizeof(order));
	prepare_jobs(&p, 1, c, 1, 0);
	c[0].gate = &gate;
	cop_origin_pool_submit(&p, &c[0].job, false);
	wait_until(&now, 1);
	for (int i = 0; i < n; i++) {
		o[i] = (struct ordered){.name = jobs[i],
			.job = {.fn = note_order,
				.background = jobs[i] != 'q',
				.soon = jobs[i] == 's',
				.path = jobs[i] == 's' ? "soon" : "other",
				.to = 1}};
		cop_origin_pool_submit(&p, &o[i].job, false);
	}
	if (raised)
		cop_origin_pool_raise_priority(&p, raised, 0);
	gate = 1;
	wait_until(&ordered, n);
	cop_origin_pool_fini(&p);
	return order;
}

static void what_is_needed_soon_comes_between_the_others(void **state)
{
	(void)state;
	assert_string_equal(order_of("bsbsqsq", NULL), "qqsssbb");
	assert_string_equal(order_of("bsbsqsq", "other"), "qqbbsss");
}

static void what_is_needed_soon_has_its_turn_however_much_is_needed_now(void **state)
{
	(void)state;
	assert_string_equal(order_of("bssssqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq", NULL),
		"qqqqqqqqqqqqqqqqsqqqqqqqqqqqqqqqqsqqqssb");
}

static void closing_cancels_background_work_too(void **state)
{
	struct cop_origin_pool p;
	struct counted c[5];

	(void)state;
	prepare_jobs(&p, 1, c, 5, 50000);
	for (int i = 0; i < 5; i++) {
		c[i].job.background = i > 0;
		c[i].job.soon = i > 2;
		cop_origin_pool_submit(&p, &c[i].job, false);
	}
	wait_until(&now, 1);
	cop_origin_pool_fini(&p);
	assert_int_equal(done, 1);
	assert_int_equal(cancelled, 4);
}

static int detach_state(pthread_t thread)
{
	pthread_attr_t attr;
	int detached;

	assert_int_equal(pthread_getattr_np(thread, &attr), 0);
	assert_int_equal(pthread_attr_getdetachstate(&attr, &detached), 0);
	pthread_attr_destroy(&attr);
	return detached;
}

static unsigned in_state(const struct cop_origin_pool *p, int state)
{
	unsigned n = 0;

	for (unsigned i = 0; i < COP_ORIGIN_WORKERS(p->max); i++)
		n += (int)p->worker[i].state == state;
	return n;
}

/* The thread sanitizer also reports each thread that has ended and that nothing has joined. */
static void closing_joins_what_has_ended_and_lets_go_what_hangs(void **state)
{
	static struct cop_origin_pool p;
	static struct counted c[2];
	static _Atomic int answered;

	(void)state;
	prepare_jobs(&p, 2, c, 2, 0);
	p.idle_ms = p.end_ms = 1;
	c[0].gate = &answered;
	cop_origin_pool_submit(&p, &c[0].job, false);
	wait_until(&now, 1);
	cop_origin_pool_submit(&p, &c[1].job, false);
	wait_until(&done, 1);
	wait_for_threads(&p, 1);
	assert_false(cop_origin_pool_fini(&p));
	assert_int_equal(in_state(&p, COP_ORIGIN_ENDED), 0);
	assert_int_equal(detach_state(p.worker[0].thread), PTHREAD_CREATE_DETACHED);
	answered = 1;
	wait_for_threads(&p, 0);
}

static _Atomic int expired;

static unsigned expire_idle(void *ctx)
{
	(void)ctx;
	return ++expired < 3 ? 5 : 0;
}

static void an_idle_thread_expires_kept_descriptors_until_none_is_left(void **state)
{
	struct cop_origin_pool p;
	struct counted c[1];

	(void)state;
	expired = 0;
	prepare_jobs(&p, 1, c, 1, 0);
	p.expire_idle = expire_idle;
	cop_origin_pool_submit(&p, &c[0].job, false);
	wait_until(&expired, 3);
	usleep(30000);
	assert_int_equal(expired, 3);
	cop_origin_pool_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_thread_runs_before_there_is_work),
		cmocka_unit_test(never_more_jobs_run_than_the_limit),
		cmocka_unit_test(one_thread_is_enough_for_jobs_that_submit_jobs),
		cmocka_unit_test(threads_end_when_they_are_idle_and_come_back),
		cmocka_unit_test(closing_cancels_what_waits_and_finishes_what_runs),
		cmocka_unit_test(a_job_submitted_by_a_running_job_during_the_close_is_cancelled),
		cmocka_unit_test(background_work_leaves_a_worker_free_for_other_jobs),
		cmocka_unit_test(one_worker_does_the_background_work_last),
		cmocka_unit_test(background_work_that_somebody_waits_for_now_comes_first),
		cmocka_unit_test(what_is_needed_soon_comes_between_the_others),
		cmocka_unit_test(what_is_needed_soon_has_its_turn_however_much_is_needed_now),
		cmocka_unit_test(closing_cancels_background_work_too),
		cmocka_unit_test(closing_joins_what_has_ended_and_lets_go_what_hangs),
		cmocka_unit_test(an_idle_thread_expires_kept_descriptors_until_none_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
