/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/loop/loop.h"

#define THREADS 4
#define PIECES 10000

static struct cop_defer queue;
static _Atomic unsigned woken, ran, refused;
static unsigned order[COP_DEFER_MAX + 1];

struct piece {
	struct cop_deferred work;
	unsigned number;
	struct piece *adds; /* when it runs */
};

static void wake(void *ctx)
{
	if (ctx != &woken)
		abort();
	atomic_fetch_add(&woken, 1);
}

static int setup(void **state)
{
	(void)state;
	atomic_store(&woken, 0);
	atomic_store(&ran, 0);
	atomic_store(&refused, 0);
	cop_defer_init(&queue, wake, &woken);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	cop_defer_fini(&queue);
	return 0;
}

static void run_piece(struct cop_deferred *d)
{
	struct piece *p = COP_CONTAINER_OF(d, struct piece, work);

	order[atomic_fetch_add(&ran, 1)] = p->number;
	if (p->adds)
		assert_true(cop_defer_add(&queue, &p->adds->work));
}

static void work_is_run_in_the_order_in_which_it_came(void **state)
{
	struct piece p[3] = {{{.run = run_piece}, 7, NULL}, {{.run = run_piece}, 8, NULL},
		{{.run = run_piece}, 9, NULL}};

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_true(cop_defer_add(&queue, &p[i].work));
	assert_int_equal(atomic_load(&woken), 3);
	assert_int_equal(atomic_load(&ran), 0);
	cop_defer_run(&queue, false);
	assert_int_equal(atomic_load(&ran), 3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(order[i], 7 + i);
}

static void work_that_adds_work_is_followed_by_it_also_at_the_end(void **state)
{
	struct piece last = {{.run = run_piece}, 2, NULL}, first = {{.run = run_piece}, 1, &last};

	(void)state;
	assert_true(cop_defer_add(&queue, &first.work));
	cop_defer_run(&queue, true);
	assert_int_equal(atomic_load(&ran), 2);
	assert_int_equal(order[1], 2);
}

static void a_full_queue_refuses_and_takes_again_when_it_has_run(void **state)
{
	static struct piece p[COP_DEFER_MAX + 1];

	(void)state;
	for (unsigned i = 0; i <= COP_DEFER_MAX; i++) {
		p[i] = (struct piece){.work.run = run_piece, .number = i};
		assert_int_equal(cop_defer_add(&queue, &p[i].work), i < COP_DEFER_MAX);
	}
	assert_int_equal(atomic_load(&woken), COP_DEFER_MAX);
	cop_defer_run(&queue, false);
	assert_int_equal(atomic_load(&ran), COP_DEFER_MAX);
	assert_true(cop_defer_add(&queue, &p[COP_DEFER_MAX].work));
	cop_defer_run(&queue, false);
	assert_int_equal(order[COP_DEFER_MAX], COP_DEFER_MAX);
}

static void a_closed_queue_takes_nothing(void **state)
{
	struct piece p = {.work.run = run_piece};

	(void)state;
	cop_defer_run(&queue, true);
	assert_false(cop_defer_add(&queue, &p.work));
	assert_int_equal(atomic_load(&woken), 0);
	cop_defer_run(&queue, false);
	assert_int_equal(atomic_load(&ran), 0);
}

/* ---- many threads ---- */

static void count_one(struct cop_deferred *d)
{
	free(COP_CONTAINER_OF(d, struct piece, work));
	atomic_fetch_add(&ran, 1);
}

static void *add_many(void *arg)
{
	(void)arg;
	for (int i = 0; i < PIECES; i++) {
		struct piece *p = calloc(1, sizeof(*p));

		p->work.run = count_one;
		if (!cop_defer_add(&queue, &p->work)) {
			free(p);
			atomic_fetch_add(&refused, 1);
		}
	}
	return NULL;
}

static void accepted_work_has_run_when_the_queue_is_closed(void **state)
{
	pthread_t thread[THREADS];

	(void)state;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, add_many, NULL), 0);
	while (atomic_load(&ran) < PIECES / 2 && atomic_load(&refused) < PIECES / 2)
		cop_defer_run(&queue, false);
	cop_defer_run(&queue, true);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(atomic_load(&ran), atomic_load(&woken));
	assert_int_equal(atomic_load(&ran) + atomic_load(&refused), THREADS * PIECES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			work_is_run_in_the_order_in_which_it_came, setup, teardown),
		cmocka_unit_test_setup_teardown(
			work_that_adds_work_is_followed_by_it_also_at_the_end, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_full_queue_refuses_and_takes_again_when_it_has_run, setup, teardown),
		cmocka_unit_test_setup_teardown(a_closed_queue_takes_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(
			accepted_work_has_run_when_the_queue_is_closed, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
