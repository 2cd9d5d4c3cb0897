/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "fabric/rpc/rpc_testing.h"

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

static void a_call_is_answered(void **state)
{
	struct t_world *w = *state;
	struct t_result *t = t_call(w, 0, 1, T_ECHO, "hello", 5);

	assert_int_equal(t->times, 0);
	t_run(w);
	assert_int_equal(t->times, 1);
	assert_int_equal(t->status, 0);
	assert_true(t->answered);
	assert_string_equal(t->head, "hello");
	assert_int_equal(t->body_len, 0);
	assert_int_equal(t_stat(w, 0, COP_FABRIC_REQUESTS_SENT), 1);
	assert_int_equal(t_stat(w, 1, COP_FABRIC_REQUESTS_SERVED), 1);
	assert_true(t_stat(w, 0, COP_FABRIC_BYTES_OUT) > 0);
	assert_int_equal(t_stat(w, 0, COP_FABRIC_BYTES_OUT), t_stat(w, 1, COP_FABRIC_BYTES_IN));
	assert_int_equal(t_stat(w, 1, COP_FABRIC_BYTES_OUT), t_stat(w, 0, COP_FABRIC_BYTES_IN));
	assert_int_equal(t_stat(w, 0, COP_FABRIC_REJECTED) + t_stat(w, 1, COP_FABRIC_REJECTED), 0);
}

static void an_error_of_the_peer_is_its_own_answer(void **state)
{
	struct t_world *w = *state;
	struct t_result *t = t_call(w, 0, 1, T_FAIL, NULL, 0);

	t_run(w);
	assert_int_equal(t->times, 1);
	assert_int_equal(t->status, -EACCES);
	assert_true(t->answered);
	assert_false(t->unable);
	assert_string_equal(t->head, "no");
}

static void an_unable_peer_sends_its_error_and_nothing_else(void **state)
{
	struct t_world *w = *state;
	struct t_result *t = t_call(w, 0, 1, T_UNABLE, NULL, 0);

	t_run(w);
	assert_int_equal(t->times, 1);
	assert_int_equal(t->status, -EMFILE);
	assert_true(t->answered);
	assert_true(t->unable);
	assert_int_equal(t->head_len, 0);
}

static void calls_that_cannot_be_are_refused_at_once(void **state)
{
	struct t_world *w = *state;
	static uint8_t big[COP_RPC_PAYLOAD_MAX + 1];
	struct t_result *t;

	t = t_call(w, 0, 0, T_ECHO, NULL, 0);
	assert_int_equal(t->times, 1);
	assert_int_equal(t->status, -EINVAL);
	t = t_call(w, 0, T_NODES, T_ECHO, NULL, 0);
	assert_int_equal(t->status, -EINVAL);
	t = t_call(w, 0, 1, T_ECHO, big, sizeof(big));
	assert_int_equal(t->status, -EINVAL);
	t = t_call(w, 0, 1, T_ECHO, big, sizeof(big) - 1);
	t_run(w);
	assert_int_equal(t->status, 0);
	assert_int_equal(t->head_len, COP_RPC_HEAD_MAX);
}

static void a_body_of_any_size_lands_where_it_was_wanted(void **state)
{
	static const uint32_t sizes[] = {1, MSG_INLINE_MAX - 4, MSG_INLINE_MAX - 3, 65536, PIECE,
		PIECE + 1, 3 * PIECE + 17, OUTSTANDING + PIECE + 5};
	struct t_world *w = *state;
	uint8_t *landing = malloc(OUTSTANDING + 2 * PIECE);

	assert_non_null(landing);
	for (size_t i = 0; i < COP_ARRAY_SIZE(sizes); i++) {
		struct t_result *t;

		memset(landing, 0xee, sizes[i] + 1);
		t = t_call_body(w, 0, 1, sizes[i], landing, sizes[i]);
		t_run(w);
		assert_int_equal(t->times, 1);
		assert_int_equal(t->status, 0);
		assert_true(t->in_landing);
		assert_int_equal(t->body_len, sizes[i]);
		assert_true(t->body_hash == t_pattern_hash(sizes[i]));
		assert_int_equal(landing[sizes[i]], 0xee);
		assert_string_equal(t->head, "head");
	}
	assert_int_equal(w->node[1].releases, COP_ARRAY_SIZE(sizes));
	free(landing);
}

static void a_body_without_a_landing_buffer_is_pulled(void **state)
{
	static const uint32_t sizes[] = {
		0, 1, 100, MSG_INLINE_MAX - 4, MSG_INLINE_MAX - 3, 65536, 2 * PIECE + 1};
	struct t_world *w = *state;

	for (size_t i = 0; i < COP_ARRAY_SIZE(sizes); i++) {
		struct t_result *t = t_call_body(w, 0, 1, sizes[i], NULL, 0);

		t_run(w);
		assert_int_equal(t->times, 1);
		assert_int_equal(t->status, 0);
		assert_false(t->in_landing);
		assert_int_equal(t->body_len, sizes[i]);
		assert_true(!sizes[i] || t->body_hash == t_pattern_hash(sizes[i]));
		assert_string_equal(t->head, "head");
	}
	assert_int_equal(w->node[1].releases, COP_ARRAY_SIZE(sizes));
}

static void a_body_larger_than_the_landing_buffer_is_pulled(void **state)
{
	struct t_world *w = *state;
	uint8_t landing[64];
	struct t_result *t;

	memset(landing, 0xee, sizeof(landing));
	t = t_call_body(w, 0, 1, 100000, landing, sizeof(landing));
	t_run(w);
	assert_int_equal(t->status, 0);
	assert_false(t->in_landing);
	assert_true(t->body_hash == t_pattern_hash(100000));
	t = t_call_body(w, 0, 1, 65, landing, sizeof(landing));
	t_run(w);
	assert_int_equal(t->status, 0);
	assert_false(t->in_landing);
	assert_true(t->body_hash == t_pattern_hash(65));
	for (size_t i = 0; i < sizeof(landing); i++)
		assert_int_equal(landing[i], 0xee);
}

static void take_body(void *arg, const struct cop_rpc_result *r)
{
	assert_int_equal(r->status, 0);
	*(void **)arg = r->body;
	*r->body_kept = true;
}

static void a_body_can_be_taken(void **state)
{
	static const uint32_t sizes[] = {5, 200000};
	struct t_world *w = *state;

	for (size_t i = 0; i < COP_ARRAY_SIZE(sizes); i++) {
		uint8_t want[4] = {
			(uint8_t)sizes[i], (uint8_t)(sizes[i] >> 8), (uint8_t)(sizes[i] >> 16)};
		void *body = NULL;
		struct cop_rpc_call c = {.rank = 1,
			.op = T_BODY,
			.payload = want,
			.payload_len = 4,
			.done = take_body,
			.arg = &body};

		cop_rpc_call(w->node[0].rpc, &c);
		t_run(w);
		assert_non_null(body);
		assert_true(cop_hash64(body, sizes[i], 0) == t_pattern_hash(sizes[i]));
		free(body);
	}
}

static void a_body_over_the_limit_is_an_error(void **state)
{
	struct t_world *w = *state;
	struct t_result *t = t_call_body(w, 0, 1, COP_RPC_BODY_MAX + 1, NULL, 0);

	t_run(w);
	assert_int_equal(t->times, 1);
	assert_int_equal(t->status, -EMSGSIZE);
	assert_int_equal(w->node[1].releases, 1);
}

static void a_body_that_is_longer_than_wanted_is_left_where_it_is(void **state)
{
	struct t_world *w = *state;
	struct t_result *t = t_next(w);
	uint8_t want[4] = {0, 0, 4, 0}; /* 256 KiB */
	struct cop_rpc_call c = {.rank = 1,
		.op = T_BODY,
		.payload = want,
		.payload_len = 4,
		.done = t_done,
		.arg = t,
		.body_max = 256 * COP_KIB - 1};

	cop_rpc_call(w->node[0].rpc, &c);
	t_run(w);
	assert_int_equal(t->times, 1);
	assert_false(t->answered);
	assert_int_equal(t->status, -EMSGSIZE);
	assert_int_equal(t->body_len, 256 * COP_KIB);
	assert_int_equal(w->node[1].releases, 1);
	t = c.arg = t_next(w);
	c.body_max++;
	cop_rpc_call(w->node[0].rpc, &c);
	t_run(w);
	assert_int_equal(t->status, 0);
	assert_int_equal(t->body_len, 256 * COP_KIB);
}

static void calls_wait_while_the_address_is_looked_up(void **state)
{
	struct t_world *w = *state;
	struct cop_buf json = {0};
	struct t_result *t, *u;

	w->node[0].mute_resolver = true;
	t = t_call(w, 0, 1, T_ECHO, "a", 1);
	u = t_call(w, 0, 1, T_ECHO, "b", 1);
	t_advance(w, 5000);
	assert_int_equal(t->times + u->times, 0);
	assert_int_equal(w->node[0].resolves, 1);
	cop_rpc_peers_json(w->node[0].rpc, &json);
	assert_string_equal(json.data,
		"[{\"rank\":1,\"state\":\"connecting\",\"calls\":2,"
		"\"oldest_ms\":4900,\"left\":false,\"lags\":0,\"waits_for\":\"address\"}]");
	cop_buf_free(&json);
	cop_rpc_resolved(w->node[0].rpc, 1, "fake://n1", false);
	t_run(w);
	assert_int_equal(t->status + u->status, 0);
	assert_int_equal(t->times + u->times, 2);
	cop_rpc_peers_json(w->node[0].rpc, &json);
	assert_string_equal(json.data,
		"[{\"rank\":1,\"state\":\"up\",\"calls\":0,\"oldest_ms\":0,\"left\":false,\"lags\":0}]");
	cop_buf_free(&json);
}

static void without_an_address_calls_end(void **state)
{
	struct t_world *w = *state;
	struct t_result *t;

	w->node[0].no_address = true;
	t = t_call(w, 0, 1, T_ECHO, NULL, 0);
	t_run(w);
	assert_int_equal(t->times, 1);
	assert_int_equal(t->status, -EHOSTDOWN);
	assert_false(t->answered);
	/* The look-up is tried again after the pause. */
	w->node[0].no_address = false;
	t_advance(w, 1100);
	t = t_call(w, 0, 1, T_ECHO, NULL, 0);
	t_run(w);
	assert_int_equal(t->status, 0);
}

static void a_bad_address_ends_calls_too(void **state)
{
	struct t_world *w = *state;
	struct t_result *t;
	char longer[COP_HELLO_ADDRESS_MAX + 2];

	w->node[0].mute_resolver = true;
	t = t_call(w, 0, 1, T_ECHO, NULL, 0);
	t_run(w);
	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	cop_rpc_resolved(w->node[0].rpc, 7, "fake://n1", false);
	cop_rpc_resolved(w->node[0].rpc, 2, "fake://n2", false);
	cop_rpc_resolved(w->node[0].rpc, 1, longer, false);
	t_run(w);
	assert_int_equal(t->times, 1);
	assert_int_equal(t->status, -EHOSTDOWN);
}

static void two_nodes_may_call_each_other_at_once(void **state)
{
	struct t_world *w = *state;
	struct t_result *t[20];

	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < 20; i++)
			t[i] = t_call(w, i % 2, 1 - i % 2, T_ECHO, "x", 1);
		t_run(w);
		for (uint32_t i = 0; i < 20; i++) {
			assert_int_equal(t[i]->times, 1);
			assert_int_equal(t[i]->status, 0);
		}
	}
	assert_int_equal(t_stat(w, 0, COP_FABRIC_REJECTED), 0);
	assert_int_equal(t_stat(w, 1, COP_FABRIC_REJECTED), 0);
}

static void a_chain_of_nodes_passes_the_answer_back(void **state)
{
	struct t_world *w = *state;
	struct t_result *t = t_call(w, 0, 1, T_FORWARD, "deep", 4);

	t_run(w);
	assert_int_equal(t->times, 1);
	assert_int_equal(t->status, 0);
	assert_string_equal(t->head, "deep");
	assert_int_equal(w->node[1].served, 1);
	assert_int_equal(w->node[2].served, 1);
	assert_int_equal(w->node[3].served, 1);
}

static void no_more_than_a_window_is_on_the_wire(void **state)
{
	struct t_world *w = *state;
	unsigned done = 0;

	for (unsigned i = 0; i < 3000; i++)
		t_call(w, 0, 1, T_HOLD, NULL, 0);
	t_run(w);
	while (done < 3000) {
		unsigned held = w->node[1].held_count;

		assert_true(held > 0 && held <= PEER_WINDOW);
		done += held;
		t_answer_held(&w->node[1]);
		t_run(w);
	}
	for (unsigned i = 0; i < 3000; i++) {
		assert_int_equal(w->result[i].times, 1);
		assert_int_equal(w->result[i].status, 0);
	}
	assert_int_equal(w->node[1].served, 3000);
}

static void close_ends_every_call_once(void **state)
{
	struct t_world *w = *state;
	struct t_result *held, *waiting, *fresh;

	held = t_call(w, 0, 1, T_HOLD, NULL, 0);
	t_run(w);
	w->node[0].mute_resolver = true;
	waiting = t_call(w, 0, 2, T_ECHO, NULL, 0);
	t_run(w);
	fresh = t_call(w, 0, 1, T_ECHO, NULL, 0);
	t_close(w, 0);
	assert_int_equal(held->times, 1);
	assert_int_equal(held->status, -ECANCELED);
	assert_int_equal(waiting->times, 1);
	assert_int_equal(waiting->status, -ECANCELED);
	assert_int_equal(fresh->times, 1);
	assert_int_equal(fresh->status, -ECANCELED);
	t_answer_held(&w->node[1]);
	t_run(w);
	assert_int_equal(held->times, 1);
}

static void a_request_may_be_answered_after_close(void **state)
{
	struct t_world *w = *state;
	struct t_result *t = t_call(w, 0, 1, T_HOLD, NULL, 0);

	t_run(w);
	assert_int_equal(w->node[1].held_count, 1);
	t_close(w, 1);
	t_answer_body(&w->node[1], w->node[1].held[0], 100000);
	w->node[1].held_count = 0;
	assert_int_equal(w->node[1].releases, 1);
	assert_int_equal(t->times, 0);
}

static void close_releases_bodies_on_their_way(void **state)
{
	struct t_world *w = *state;
	struct t_result *t;

	t = t_call_body(w, 0, 1, 20 * PIECE, NULL, 0);
	while (w->node[1].bodies == 0)
		assert_true(cop_endpoint_fake_run(w->net, 1) == 1);
	cop_endpoint_fake_run(w->net, 3);
	t_close(w, 1);
	assert_int_equal(w->node[1].releases, 1);
	assert_int_equal(t->times, 0);
}

static void an_idle_node_stops_ticking(void **state)
{
	struct t_world *w = *state;

	t_call(w, 0, 1, T_ECHO, NULL, 0);
	t_call_body(w, 0, 1, 100000, NULL, 0);
	t_run(w);
	t_advance(w, 7000);
	assert_false(w->node[0].rpc->ticking);
	assert_false(w->node[1].rpc->ticking);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_call_is_answered),
		T(an_error_of_the_peer_is_its_own_answer),
		T(an_unable_peer_sends_its_error_and_nothing_else),
		T(calls_that_cannot_be_are_refused_at_once),
		T(a_body_of_any_size_lands_where_it_was_wanted),
		T(a_body_without_a_landing_buffer_is_pulled),
		T(a_body_larger_than_the_landing_buffer_is_pulled),
		T(a_body_can_be_taken),
		T(a_body_over_the_limit_is_an_error),
		T(a_body_that_is_longer_than_wanted_is_left_where_it_is),
		T(calls_wait_while_the_address_is_looked_up),
		T(without_an_address_calls_end),
		T(a_bad_address_ends_calls_too),
		T(two_nodes_may_call_each_other_at_once),
		T(a_chain_of_nodes_passes_the_answer_back),
		T(no_more_than_a_window_is_on_the_wire),
		T(close_ends_every_call_once),
		T(a_request_may_be_answered_after_close),
		T(close_releases_bodies_on_their_way),
		T(an_idle_node_stops_ticking),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
