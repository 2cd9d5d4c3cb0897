/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that die, pause, restart and come back. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "fabric/rpc/rpc_testing.h"

#define TIMEOUT 3000

static int setup(void **state)
{
	*state = t_new();
	return 0;
}

static int teardown(void **state)
{
	t_free(*state);
	return 0;
}

static void a_dead_peer_ends_calls_in_time(void **state)
{
	struct t_world *w = *state;
	struct t_result *held, *fresh;
	uint8_t landing[64];

	t_connect(w, 0, 1);
	held = t_call(w, 0, 1, T_HOLD, NULL, 0);
	t_run(w);
	t_advance(w, 20000);
	assert_int_equal(held->times, 0);
	cop_endpoint_fake_cut(w->net, "n1", true);
	fresh = t_call_body(w, 0, 1, 10, landing, sizeof(landing));
	assert_true(t_until(w, held, 2 * TIMEOUT) <= TIMEOUT + 200);
	assert_int_equal(held->status, -EHOSTDOWN);
	assert_false(held->answered);
	assert_int_equal(fresh->times, 1);
	assert_int_equal(fresh->status, -EHOSTDOWN);
	/* During the pause a call fails without waiting. */
	fresh = t_call(w, 0, 1, T_ECHO, NULL, 0);
	t_run(w);
	assert_int_equal(fresh->times, 1);
	assert_int_equal(fresh->status, -EHOSTDOWN);
	/* Once at the start, and once more while the peer was silent. */
	assert_int_equal(w->node[0].resolves, 2);
}

static void a_peer_that_was_never_there_is_dead_too(void **state)
{
	struct t_world *w = *state;
	struct t_result *t;

	cop_endpoint_fake_cut(w->net, "n1", true);
	t = t_call(w, 0, 1, T_ECHO, NULL, 0);
	assert_true(t_until(w, t, 2 * TIMEOUT) <= TIMEOUT + 200);
	assert_int_equal(t->status, -EHOSTDOWN);
}

static void the_pause_before_the_next_try_grows_to_ten_seconds(void **state)
{
	static const uint64_t pauses[] = {1000, 2000, 4000, 8000, 10000, 10000};
	struct t_world *w = *state;
	struct cop_buf json = {0};

	cop_endpoint_fake_cut(w->net, "n1", true);
	for (size_t i = 0; i < COP_ARRAY_SIZE(pauses); i++) {
		struct t_result *t = t_call(w, 0, 1, T_ECHO, NULL, 0);

		assert_true(t_until(w, t, 2 * TIMEOUT) >= TIMEOUT - 200);
		assert_int_equal(t->status, -EHOSTDOWN);
		/* Once to connect, and once more in the silence that followed. */
		assert_int_equal(w->node[0].resolves, 2 * (i + 1));
		t_advance(w, pauses[i] - 200);
		t = t_call(w, 0, 1, T_ECHO, NULL, 0);
		assert_true(t_until(w, t, 100) == 0);
		assert_int_equal(t->status, -EHOSTDOWN);
		cop_rpc_peers_json(w->node[0].rpc, &json);
		assert_non_null(strstr(json.data, "\"state\":\"dead\""));
		cop_buf_free(&json);
		t_advance(w, 300);
	}
	cop_endpoint_fake_cut(w->net, "n1", false);
	t_connect(w, 0, 1);
}

static void a_slow_peer_that_answers_pings_is_alive(void **state)
{
	struct t_world *w = *state;
	struct t_result *t;
	struct cop_buf json = {0};

	t_connect(w, 0, 1);
	t = t_call(w, 0, 1, T_HOLD, NULL, 0);
	t_advance(w, 120000);
	assert_int_equal(t->times, 0);
	assert_int_equal(w->node[1].held_count, 1);
	cop_rpc_peers_json(w->node[0].rpc, &json);
	assert_non_null(strstr(json.data, "\"state\":\"up\",\"calls\":1,\"oldest_ms\":119900"));
	assert_non_null(strstr(json.data, "\"waits_for\":\"answer\""));
	cop_buf_free(&json);
	t_answer_held(&w->node[1]);
	t_run(w);
	assert_int_equal(t->times, 1);
	assert_int_equal(t->status, 0);
	assert_int_equal(t_stat(w, 0, COP_FABRIC_RETRIES), 0);
	assert_int_equal(t_stat(w, 0, COP_FABRIC_REJECTED) + t_stat(w, 1, COP_FABRIC_REJECTED), 0);
}

/* A process that is stopped or gets no processor does not answer, but the look-up sees it. */
static void a_silent_peer_whose_process_is_there_is_waited_for(void **state)
{
	struct t_world *w = *state;
	struct t_result *held, *fresh, *other;

	t_connect(w, 0, 1);
	held = t_call(w, 0, 1, T_HOLD, NULL, 0);
	t_run(w);
	w->node[1].lives_on = w->node[2].lives_on = true;
	cop_endpoint_fake_cut(w->net, "n1", true);
	cop_endpoint_fake_cut(w->net, "n2", true);
	fresh = t_call(w, 0, 1, T_ECHO, "hi", 2);
	other = t_call(w, 0, 2, T_ECHO, "hi", 2);
	t_advance(w, (COP_RPC_PATIENCE - 1) * TIMEOUT);
	assert_int_equal(held->times + fresh->times + other->times, 0);
	cop_endpoint_fake_cut(w->net, "n1", false);
	cop_endpoint_fake_cut(w->net, "n2", false);
	t_advance(w, TIMEOUT);
	t_answer_held(&w->node[1]);
	t_run(w);
	assert_int_equal(held->times + fresh->times + other->times, 3);
	assert_int_equal(held->status, 0);
	assert_int_equal(fresh->status, 0);
	assert_int_equal(other->status, 0);
}

static void a_silent_peer_whose_process_ends_is_dead_at_once(void **state)
{
	struct t_world *w = *state;
	struct t_result *t;

	t_connect(w, 0, 1);
	w->node[1].lives_on = true;
	cop_endpoint_fake_cut(w->net, "n1", true);
	t = t_call(w, 0, 1, T_ECHO, "hi", 2);
	t_advance(w, 2 * TIMEOUT);
	assert_int_equal(t->times, 0);
	w->node[1].lives_on = false;
	assert_true(t_until(w, t, TIMEOUT) <= TIMEOUT / 2 + 200);
	assert_int_equal(t->status, -EHOSTDOWN);
}

static void patience_has_an_end(void **state)
{
	struct t_world *w = *state;
	struct t_result *t;

	t_connect(w, 0, 1);
	w->node[1].lives_on = true;
	cop_endpoint_fake_cut(w->net, "n1", true);
	t = t_call(w, 0, 1, T_ECHO, "hi", 2);
	assert_true(
		t_until(w, t, 2 * COP_RPC_PATIENCE * TIMEOUT) >= COP_RPC_PATIENCE * TIMEOUT - 200);
	assert_int_equal(t->status, -EHOSTDOWN);
}

/* The look-up found a process that was too busy to give its address. */
static void an_address_that_is_late_is_waited_for(void **state)
{
	struct t_world *w = *state;
	struct t_result *t;

	w->node[0].no_address = w->node[0].lives_on = true;
	w->node[1].lives_on = true;
	t = t_call(w, 0, 1, T_ECHO, "hi", 2);
	t_advance(w, 2 * TIMEOUT);
	assert_int_equal(t->times, 0);
	w->node[0].no_address = false;
	assert_true(t_until(w, t, TIMEOUT) != UINT64_MAX);
	assert_int_equal(t->status, 0);
}

static void a_peer_that_comes_back_is_used_again(void **state)
{
	struct t_world *w = *state;
	struct t_result *t;

	t_connect(w, 0, 1);
	cop_endpoint_fake_cut(w->net, "n1", true);
	t = t_call(w, 0, 1, T_ECHO, NULL, 0);
	t_until(w, t, 2 * TIMEOUT);
	assert_int_equal(t->status, -EHOSTDOWN);
	cop_endpoint_fake_cut(w->net, "n1", false);
	t_advance(w, 1100);
	t_connect(w, 0, 1);
	assert_int_equal(w->node[0].resolves, 3);
}

static void a_sign_of_life_ends_the_pause(void **state)
{
	struct t_world *w = *state;
	struct t_result *t;

	cop_endpoint_fake_cut(w->net, "n1", true);
	t = t_call(w, 0, 1, T_ECHO, NULL, 0);
	t_until(w, t, 2 * TIMEOUT);
	assert_int_equal(t->status, -EHOSTDOWN);
	cop_endpoint_fake_cut(w->net, "n1", false);
	t_connect(w, 1, 0);
	t_connect(w, 0, 1);
}

static void calls_to_a_restarted_peer_are_sent_again(void **state)
{
	struct t_world *w = *state;
	struct t_result *held, *body;
	uint8_t *landing = malloc(200000);

	assert_non_null(landing);
	t_connect(w, 0, 1);
	held = t_call(w, 0, 1, T_HOLD, "a", 1);
	t_run(w);
	t_close(w, 1);
	w->node[1].held_count = 0;
	cop_rpc_reply(w->node[1].held[0], &(struct cop_rpc_answer){.status = 0});
	assert_int_equal(t_open(w, 1, &t_secret), 0);
	body = t_call_body(w, 0, 1, 200000, landing, 200000);
	assert_true(t_until(w, body, 2 * TIMEOUT) < TIMEOUT);
	assert_int_equal(body->status, 0);
	assert_true(body->in_landing);
	assert_true(body->body_hash == t_pattern_hash(200000));
	assert_int_equal(held->times, 0);
	assert_int_equal(w->node[1].held_count, 1);
	t_answer_held(&w->node[1]);
	t_run(w);
	assert_int_equal(held->times, 1);
	assert_int_equal(held->status, 0);
	assert_true(t_stat(w, 0, COP_FABRIC_RETRIES) >= 2);
	free(landing);
}

/* A message that is under way when a node ends, or is declared dead, arrives at a node that no
 * longer knows its sender. */
static void nodes_of_the_job_are_not_unverified_when_they_come_too_late(void **state)
{
	struct t_world *w = *state;
	struct t_result *held, *again;

	t_connect(w, 0, 1);
	held = t_call(w, 0, 1, T_HOLD, NULL, 0);
	t_run(w);
	cop_endpoint_fake_cut(w->net, "n1", true);
	t_until(w, held, 2 * TIMEOUT);
	assert_int_equal(held->status, -EHOSTDOWN);
	cop_endpoint_fake_cut(w->net, "n1", false);
	t_answer_held(&w->node[1]);
	t_run(w);
	assert_true(t_stat(w, 0, COP_FABRIC_DROPPED) > 0);
	t_advance(w, 1100);
	t_connect(w, 0, 1);
	t_close(w, 1);
	assert_int_equal(t_open(w, 1, &t_secret), 0);
	again = t_call(w, 0, 1, T_ECHO, NULL, 0);
	t_until(w, again, 2 * TIMEOUT);
	assert_int_equal(again->status, 0);
	assert_true(t_stat(w, 1, COP_FABRIC_DROPPED) > 0);
	assert_int_equal(t_stat(w, 0, COP_FABRIC_REJECTED) + t_stat(w, 1, COP_FABRIC_REJECTED), 0);
}

static void a_peer_that_was_restarted_elsewhere_is_followed(void **state)
{
	struct t_world *w = *state;
	struct t_result *body;
	uint8_t *landing = malloc(200000);

	assert_non_null(landing);
	t_connect(w, 0, 1);
	cop_endpoint_fake_cut(w->net, "n1", true);
	t_close(w, 1);
	w->node[1].lives = 1;
	assert_int_equal(t_open(w, 1, &t_secret), 0);
	body = t_call_body(w, 0, 1, 200000, landing, 200000);
	assert_true(t_until(w, body, 2 * TIMEOUT) < TIMEOUT);
	assert_int_equal(body->status, 0);
	assert_true(body->body_hash == t_pattern_hash(200000));
	free(landing);
}

static void a_restarted_caller_replaces_its_old_session(void **state)
{
	struct t_world *w = *state;

	t_connect(w, 0, 1);
	t_call(w, 0, 1, T_HOLD, NULL, 0);
	t_call_body(w, 0, 1, 30, NULL, 0);
	t_run(w);
	t_close(w, 0);
	assert_int_equal(t_open(w, 0, &t_secret), 0);
	t_connect(w, 0, 1);
	/* The answer goes nowhere. */
	t_answer_held(&w->node[1]);
	t_run(w);
	t_connect(w, 0, 1);
	t_connect(w, 1, 0);
	assert_int_equal(w->node[1].releases, w->node[1].bodies);
}

static void a_stopped_process_does_not_find_its_peers_dead(void **state)
{
	struct t_world *w = *state;
	struct t_result *t;
	struct cop_rpc *r = w->node[0].rpc;
	struct cop_endpoint_events e = cop_rpc_events(r);

	t_connect(w, 0, 1);
	t = t_call(w, 0, 1, T_HOLD, NULL, 0);
	t_advance(w, 500);
	/* One tick, a minute late. */
	e.tick(e.ctx, r->last_tick_ms + 60000);
	t_run(w);
	assert_int_equal(t->times, 0);
	t_answer_held(&w->node[1]);
	t_run(w);
	assert_int_equal(t->status, 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_dead_peer_ends_calls_in_time),
		T(a_peer_that_was_never_there_is_dead_too),
		T(the_pause_before_the_next_try_grows_to_ten_seconds),
		T(a_slow_peer_that_answers_pings_is_alive),
		T(a_silent_peer_whose_process_is_there_is_waited_for),
		T(a_silent_peer_whose_process_ends_is_dead_at_once),
		T(patience_has_an_end),
		T(an_address_that_is_late_is_waited_for),
		T(a_peer_that_comes_back_is_used_again),
		T(a_sign_of_life_ends_the_pause),
		T(calls_to_a_restarted_peer_are_sent_again),
		T(nodes_of_the_job_are_not_unverified_when_they_come_too_late),
		T(a_peer_that_was_restarted_elsewhere_is_followed),
		T(a_restarted_caller_replaces_its_old_session),
		T(a_stopped_process_does_not_find_its_peers_dead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
