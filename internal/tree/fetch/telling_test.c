/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests a node whose kernel is slow to drop names. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tree/fetch/fetch_testing.h"

#define PENDING_MAX 64

/* The kernel of node 1 queues requests in order; those of the other nodes answer at once. */
static struct {
	void (*then)(void *arg);
	void *arg;
	bool names;
} pending[PENDING_MAX];
static unsigned pending_count;
static int kernel_rc; /* of node 1, if not 0 */

static int forget_later(void *ctx, const char *dir, void (*then)(void *arg), void *arg)
{
	struct node *n = ctx;

	if (n->rank != 1) {
		then(arg);
		return 0;
	}
	if (kernel_rc)
		return kernel_rc;
	assert_true(pending_count < PENDING_MAX);
	pending[pending_count].then = then;
	pending[pending_count].arg = arg;
	pending[pending_count++].names = dir != NULL;
	return 0;
}

static void kernel_forgets(void)
{
	for (unsigned i = 0; i < pending_count; i++)
		pending[i].then(pending[i].arg);
	pending_count = 0;
}

/* A chain of three nodes that know the old names of d, whose files have changed. */
static struct tree *open_chain(struct cop_attr *old)
{
	struct tree *t;
	struct asked a;

	forget_names = forget_later;
	pending_count = 0;
	kernel_rc = 0;
	t = open_tree(3, 1, 1, 1 << 20);
	put_file(t, "d/f", "old", 3);
	put_file(t, "d/g", "old", 3);
	ask_fetch(t, 2, listing("d"), &a);
	run_until_idle(t);
	assert_int_equal(a.rc, 0);
	forget(&a);
	*old = attr_of(t, 2, "d/f");
	put_file(t, "d/f", "newer", 5);
	put_file(t, "d/g", "newer", 5);
	return t;
}

static bool knows_names(struct tree *t, uint32_t rank)
{
	struct cop_ask what = listing("d");
	struct cop_obj *obj = cop_fetch_peek(t->node[rank].fetch, &what);

	if (obj)
		cop_obj_put(t->node[rank].cache, obj);
	return obj != NULL;
}

static void a_child_is_answered_when_the_kernel_has_forgotten(void **state)
{
	struct cop_attr old;
	struct tree *t = open_chain(&old);
	struct asked a;

	(void)state;
	ask_fetch(t, 2, chunk(&old, "d/f", 0), &a);
	run_until_idle(t);
	assert_int_equal(a.calls, 0);
	assert_true(pending_count > 1 && pending[0].names && !pending[pending_count - 1].names);
	assert_true(knows_names(t, 1));
	kernel_forgets();
	assert_false(knows_names(t, 1));
	run_until_idle(t);
	assert_int_equal(a.calls, 1);
	assert_int_equal(a.rc, -ESTALE);
	pass_time(t, 2 * FORGET_MS);
	assert_int_equal(a.calls, 1);
	forget(&a);
	close_tree(t);
}

static void a_slow_kernel_delays_the_answer_for_two_seconds(void **state)
{
	struct cop_attr old;
	struct tree *t = open_chain(&old);
	struct asked a, again;

	(void)state;
	ask_fetch(t, 2, chunk(&old, "d/f", 0), &a);
	run_until_idle(t);
	pass_time(t, FORGET_MS - 200);
	assert_int_equal(a.calls, 0);
	pass_time(t, 400);
	assert_int_equal(a.calls, 1);
	assert_int_equal(a.rc, -ESTALE);
	forget(&a);
	/* The names stay at one version until the kernel has forgotten, and then nothing is
	 * answered twice. */
	assert_true(knows_names(t, 1));
	ask_fetch(t, 2, chunk(&old, "d/f", 0), &again);
	run_until_idle(t);
	assert_int_equal(again.calls, 0);
	kernel_forgets();
	run_until_idle(t);
	assert_int_equal(a.calls, 1);
	assert_int_equal(again.calls, 1);
	assert_int_equal(again.rc, -ESTALE);
	forget(&again);
	assert_false(knows_names(t, 1));
	close_tree(t);
}

static void each_of_many_children_is_answered_in_its_time(void **state)
{
	struct cop_attr old;
	struct tree *t = open_chain(&old);
	struct asked first, second;
	struct cop_attr g = attr_of(t, 1, "d/g");

	(void)state;
	ask_fetch(t, 2, chunk(&old, "d/f", 0), &first);
	run_until_idle(t);
	pass_time(t, FORGET_MS / 2);
	g.version = old.version;
	g.size = old.size;
	ask_fetch(t, 2, chunk(&g, "d/g", 0), &second);
	run_until_idle(t);
	pass_time(t, FORGET_MS / 2 + 200);
	assert_int_equal(first.calls, 1);
	assert_int_equal(second.calls, 0);
	pass_time(t, FORGET_MS / 2);
	assert_int_equal(second.calls, 1);
	assert_int_equal(second.rc, -ESTALE);
	forget(&first);
	forget(&second);
	kernel_forgets();
	close_tree(t);
}

/* Other nodes drop the names as well, and the answer does not wait. */
static void names_stay_if_the_kernel_cannot_be_told(void **state)
{
	struct cop_attr old;
	struct tree *t = open_chain(&old);
	struct asked a;

	(void)state;
	kernel_rc = -ENOMEM;
	ask_fetch(t, 2, chunk(&old, "d/f", 0), &a);
	run_until_idle(t);
	assert_int_equal(a.calls, 1);
	assert_int_equal(a.rc, -ESTALE);
	forget(&a);
	assert_true(knows_names(t, 1));
	kernel_rc = 0;
	ask_fetch(t, 2, chunk(&old, "d/f", 0), &a);
	run_until_idle(t);
	assert_int_equal(a.calls, 0);
	kernel_forgets();
	run_until_idle(t);
	assert_int_equal(a.calls, 1);
	forget(&a);
	assert_false(knows_names(t, 1));
	close_tree(t);
}

/* The tree ends before the kernel has forgotten; the answer is dropped, and only once. */
static void a_kernel_may_finish_after_the_network_has_ended(void **state)
{
	struct cop_attr old;
	struct tree *t = open_chain(&old);
	struct asked a;

	(void)state;
	ask_fetch(t, 2, chunk(&old, "d/f", 0), &a);
	run_until_idle(t);
	for (uint32_t r = 3; r-- > 0;) {
		cop_origin_close(t->node[r].origin);
		t->node[r].origin = NULL;
		cop_rpc_close(t->node[r].rpc);
		t->node[r].rpc = NULL;
	}
	kernel_forgets();
	assert_int_equal(a.calls, 1);
	assert_true(a.rc < 0);
	forget(&a);
	for (uint32_t r = 0; r < 3; r++) {
		cop_fetch_free(t->node[r].fetch);
		cop_cache_free(t->node[r].cache);
	}
	cop_endpoint_net_free(t->net);
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_child_is_answered_when_the_kernel_has_forgotten),
		cmocka_unit_test(a_slow_kernel_delays_the_answer_for_two_seconds),
		cmocka_unit_test(each_of_many_children_is_answered_in_its_time),
		cmocka_unit_test(names_stay_if_the_kernel_cannot_be_told),
		cmocka_unit_test(a_kernel_may_finish_after_the_network_has_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
