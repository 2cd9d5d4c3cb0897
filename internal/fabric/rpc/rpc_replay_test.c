/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that an eavesdropper sends again. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "fabric/rpc/rpc_testing.h"

#define TIMEOUT 3000
#define COPIES 64

/* Copies of recorded messages. */
static struct {
	bool lose_welcomes;
	size_t from_n1_to_evil;
	struct {
		size_t len;
		uint8_t msg[COP_ENDPOINT_MSG_MAX];
	} copy[COPIES];
	unsigned copies;
} tap;

static bool tap_message(void *arg, const char *from, const char *to, void *msg, size_t len)
{
	(void)arg;
	(void)from;
	if (strstr(to, "evil"))
		tap.from_n1_to_evil++;
	if (tap.copies < COPIES) {
		memcpy(tap.copy[tap.copies].msg, msg, len);
		tap.copy[tap.copies++].len = len;
	}
	return !tap.lose_welcomes || ((uint8_t *)msg)[5] != COP_FRAME_WELCOME;
}

static int setup(void **state)
{
	struct t_world *w = t_new();

	memset(&tap, 0, sizeof(tap));
	cop_endpoint_fake_tap(w->net, tap_message, NULL);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	t_free(*state);
	return 0;
}

static void replayed_messages_change_nothing(void **state)
{
	struct t_world *w = *state;
	struct cop_endpoint *evil = t_evil(w);
	struct t_result *t;
	unsigned copies;

	t_connect(w, 0, 1);
	t = t_call_body(w, 0, 1, 100000, NULL, 0);
	t_run(w);
	assert_int_equal(t->status, 0);
	copies = tap.copies;
	assert_true(copies >= 6);
	for (int round = 0; round < 3; round++)
		for (unsigned i = 0; i < copies; i++) {
			t_shoot(w, evil, "fake://n0", tap.copy[i].msg, tap.copy[i].len);
			t_shoot(w, evil, "fake://n1", tap.copy[i].msg, tap.copy[i].len);
		}
	assert_int_equal(w->node[1].served, 2);
	assert_int_equal(w->result[0].times, 1);
	assert_int_equal(w->result[1].times, 1);
	assert_true(t_stat(w, 1, COP_FABRIC_REJECTED) > 0);
	assert_true(t_stat(w, 0, COP_FABRIC_REJECTED) > 0);
	t_connect(w, 0, 1);
	cop_endpoint_close(evil);
}

/* Records the HELLO of rank 0 to rank 1, and lets rank 0 open another session afterwards. */
static void replace_session(struct t_world *w)
{
	t_connect(w, 0, 1);
	assert_int_equal(tap.copy[0].msg[5], COP_FRAME_HELLO);
	t_close(w, 0);
	assert_int_equal(t_open(w, 0, &t_secret), 0);
	t_connect(w, 0, 1);
}

static void an_old_hello_does_not_disturb_a_later_session(void **state)
{
	struct t_world *w = *state;
	struct cop_endpoint *evil = t_evil(w);
	struct t_result *t;

	replace_session(w);
	t = t_call(w, 0, 1, T_HOLD, NULL, 0);
	t_run(w);
	for (unsigned i = 1; i <= 3; i++) {
		t_shoot(w, evil, "fake://n1", tap.copy[0].msg, tap.copy[0].len);
		assert_int_equal(w->node[1].rpc->half_count, 0);
		assert_int_equal(t_stat(w, 1, COP_FABRIC_REJECTED), i);
		assert_int_equal(t_stat(w, 1, COP_FABRIC_REJECTED_REPLAY), i);
	}
	t_answer_held(&w->node[1]);
	t_run(w);
	assert_int_equal(t->times, 1);
	assert_int_equal(t->status, 0);
	t_connect(w, 0, 1);
	cop_endpoint_close(evil);
}

static void a_hello_to_another_node_is_refused_and_counted(void **state)
{
	struct t_world *w = *state;
	struct cop_endpoint *evil = t_evil(w);

	t_connect(w, 0, 1);
	for (unsigned i = 1; i <= 3; i++) {
		t_shoot(w, evil, "fake://n2", tap.copy[0].msg, tap.copy[0].len);
		assert_int_equal(t_stat(w, 2, COP_FABRIC_REJECTED), i);
		assert_int_equal(t_stat(w, 2, COP_FABRIC_REJECTED_OTHER), i);
	}
	assert_int_equal(w->node[2].rpc->half_count, 0);
	assert_null(w->node[2].rpc->peers[0]);
	t_connect(w, 0, 2);
	t_connect(w, 2, 1);
	cop_endpoint_close(evil);
}

/* The process that got the HELLO has ended, and its successor cannot know that the HELLO is old. */
static void a_hello_to_the_process_before_opens_nothing(void **state)
{
	struct t_world *w = *state;
	struct cop_endpoint *evil = t_evil(w);
	unsigned served;

	t_connect(w, 0, 1);
	t_close(w, 1);
	w->node[1].stats = (struct cop_stats){0};
	assert_int_equal(t_open(w, 1, &t_secret), 0);
	served = w->node[1].served;
	for (unsigned i = 0, copies = tap.copies; i < copies; i++)
		t_shoot(w, evil, "fake://n1", tap.copy[i].msg, tap.copy[i].len);
	assert_int_equal(w->node[1].rpc->half_count, 1);
	assert_int_equal(w->node[1].served, served);
	t_advance(w, 3 * TIMEOUT);
	assert_int_equal(w->node[1].rpc->half_count, 0);
	assert_int_equal(t_stat(w, 1, COP_FABRIC_REJECTED), 0);
	assert_true(t_stat(w, 1, COP_FABRIC_DROPPED) > 1);
	assert_int_equal(tap.from_n1_to_evil, 0);
	assert_true(t_until(w, t_call(w, 0, 1, T_ECHO, "hi", 2), TIMEOUT) <= TIMEOUT);
	t_connect(w, 0, 1);
	t_connect(w, 1, 0);
	cop_endpoint_close(evil);
}

/* The answer was lost, which is nobody's fault. The node may repeat the HELLO until it gives up. */
static void a_hello_whose_answers_are_lost_is_answered_again(void **state)
{
	struct t_world *w = *state;
	struct t_result *t;

	w->node[1].lives_on = true;
	tap.lose_welcomes = true;
	t = t_call(w, 0, 1, T_ECHO, "hi", 2);
	t_advance(w, (COP_RPC_PATIENCE - 2) * TIMEOUT);
	assert_int_equal(t->times, 0);
	tap.lose_welcomes = false;
	t_advance(w, TIMEOUT);
	assert_int_equal(t->times, 1);
	assert_int_equal(t->status, 0);
	assert_int_equal(t_stat(w, 1, COP_FABRIC_REJECTED), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(replayed_messages_change_nothing),
		T(an_old_hello_does_not_disturb_a_later_session),
		T(a_hello_to_another_node_is_refused_and_counted),
		T(a_hello_to_the_process_before_opens_nothing),
		T(a_hello_whose_answers_are_lost_is_answered_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
