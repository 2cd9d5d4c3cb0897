/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that lie, unverified peers, and messages that are lost, changed or repeated. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "fabric/rpc/rpc_testing.h"

#define TIMEOUT 3000

/* What the tap does to messages. */
struct tap {
	struct t_world *w;
	uint8_t flip; /* change messages of this type */
	uint8_t drop; /* drop messages of this type, this many */
	unsigned drops;
	void (*on_request)(void *world);
	uint8_t *spoil; /* flip a byte here when a REPLY passes */
	size_t from_n1_to_evil;
};

static bool tap_message(void *arg, const char *from, const char *to, void *msg, size_t len)
{
	struct tap *t = arg;
	uint8_t *m = msg;
	uint8_t type = len > 5 ? m[5] : 0;

	(void)from;
	if (strstr(to, "evil"))
		t->from_n1_to_evil++;
	if (type && t->flip == type)
		m[len / 2] ^= 1;
	if (type && t->drop == type && t->drops) {
		t->drops--;
		return false;
	}
	if (t->on_request && type == COP_FRAME_REQUEST)
		t->on_request(t->w);
	if (t->spoil && type == COP_FRAME_REPLY)
		t->spoil[3] ^= 1;
	return true;
}

static struct tap tap;

static int setup(void **state)
{
	struct t_world *w = t_new();

	memset(&tap, 0, sizeof(tap));
	tap.w = w;
	cop_endpoint_fake_tap(w->net, tap_message, &tap);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	t_free(*state);
	return 0;
}

/* ---- secrets ---- */

static void a_node_with_another_secret_is_not_served(void **state)
{
	static const struct cop_wire_secret other = {{1, 2, 4}};
	struct t_world *w = *state;
	struct t_result *t;

	t_close(w, 0);
	assert_int_equal(t_open(w, 0, &other), 0);
	t = t_call(w, 0, 1, T_ECHO, NULL, 0);
	assert_true(t_until(w, t, 2 * TIMEOUT) <= TIMEOUT + 200);
	assert_int_equal(t->status, -EHOSTDOWN);
	assert_false(t->answered);
	assert_int_equal(w->node[1].served, 0);
	assert_true(t_stat(w, 1, COP_FABRIC_REJECTED) > 0);
	assert_int_equal(w->node[1].rpc->half_count, 0);
	/* The other side sent back not one byte. */
	assert_int_equal(t_stat(w, 1, COP_FABRIC_BYTES_OUT), 0);
}

static void an_answer_without_the_secret_ends_in_eacces(void **state)
{
	struct t_world *w = *state;
	struct t_result *t;

	tap.flip = COP_FRAME_WELCOME;
	t = t_call(w, 0, 1, T_ECHO, NULL, 0);
	assert_true(t_until(w, t, 2 * TIMEOUT) <= TIMEOUT + 200);
	assert_int_equal(t->status, -EACCES);
	assert_true(t_stat(w, 0, COP_FABRIC_REJECTED) > 0);
	assert_int_equal(w->node[1].served, 0);
}

static void a_forged_answer_does_not_keep_the_true_one_out(void **state)
{
	struct t_world *w = *state;
	struct t_result *t;

	tap.flip = COP_FRAME_WELCOME;
	t = t_call(w, 0, 1, T_ECHO, NULL, 0);
	t_advance(w, 300);
	assert_int_equal(t->times, 0);
	tap.flip = 0;
	assert_true(t_until(w, t, TIMEOUT) < 1000);
	assert_int_equal(t->status, 0);
}

/* ---- an unverified peer ---- */

static void an_unverified_peer_gets_no_answer_and_costs_no_state(void **state)
{
	struct t_world *w = *state;
	struct cop_endpoint *evil = t_evil(w);
	struct cop_wire_secret wrong = {{9}};
	struct cop_hello h = {
		.from = 0, .to = 1, .session = 4, .address = "fake://evil", .address_len = 11};
	uint8_t msg[COP_HELLO_MAX];
	size_t len = cop_hello_write(&wrong, &h, msg);
	uint64_t before = t_stat(w, 1, COP_FABRIC_REJECTED);

	for (size_t cut = 0; cut <= len; cut++)
		t_shoot(w, evil, "fake://n1", msg, cut);
	assert_int_equal(t_stat(w, 1, COP_FABRIC_REJECTED) - before, len + 1);
	assert_int_equal(tap.from_n1_to_evil, 0);
	assert_int_equal(w->node[1].rpc->half_count, 0);
	assert_null(w->node[1].rpc->peers[0]);
	cop_endpoint_close(evil);
}

static void garbage_with_the_right_session_id_ends_nothing(void **state)
{
	struct t_world *w = *state;
	struct cop_endpoint *evil = t_evil(w);
	struct t_result *t;
	uint8_t msg[200] = {0};
	struct cop_frame_tx tx = {.key = {1}};

	t_connect(w, 0, 1);
	t = t_call(w, 0, 1, T_HOLD, NULL, 0);
	t_run(w);
	for (uint8_t type = COP_FRAME_WELCOME; type < COP_FRAME_TYPES; type++) {
		struct cop_frame f = {
			.type = type, .session = w->node[0].rpc->peers[1]->sid, .request = 1};
		struct cop_wr wr = cop_frame_begin(msg, sizeof(msg), &f);
		size_t len;

		cop_wr_bytes(&wr, "payload of no meaning", 21);
		len = cop_frame_seal(&tx, &wr);
		t_shoot(w, evil, "fake://n0", msg, len);
		f.session = w->node[1].rpc->peers[0]->in->sid;
		wr = cop_frame_begin(msg, sizeof(msg), &f);
		cop_wr_bytes(&wr, "payload of no meaning", 21);
		len = cop_frame_seal(&tx, &wr);
		t_shoot(w, evil, "fake://n1", msg, len);
	}
	assert_int_equal(t->times, 0);
	assert_int_equal(w->node[1].served, 2);
	t_answer_held(&w->node[1]);
	t_run(w);
	assert_int_equal(t->status, 0);
	cop_endpoint_close(evil);
}

static void half_open_sessions_are_bounded(void **state)
{
	struct t_world *w = *state;
	struct cop_endpoint *evil = t_evil(w);
	uint8_t msg[COP_HELLO_MAX];

	for (unsigned i = 0; i < 2 * HALF_OPEN_MAX; i++) {
		struct cop_hello h = {.from = 2,
			.to = 1,
			.session = 5 + i,
			.address = "fake://evil",
			.address_len = 11,
			.nonce = {(uint8_t)i, (uint8_t)(i >> 8)}};
		size_t len = cop_hello_write(&t_secret, &h, msg);

		t_shoot(w, evil, "fake://n1", msg, len);
		assert_true(w->node[1].rpc->half_count <= HALF_OPEN_MAX);
	}
	assert_int_equal(w->node[1].rpc->half_count, HALF_OPEN_MAX);
	t_connect(w, 0, 1);
	t_advance(w, 2 * TIMEOUT + 500);
	assert_int_equal(w->node[1].rpc->half_count, 0);
	cop_endpoint_close(evil);
}

static void nodes_with_different_config_hashes_refuse_each_other_at_once(void **state)
{
	struct t_world *w = *state;
	struct t_result *t;

	t_close(w, 0);
	w->node[0].config_hash = 7;
	assert_int_equal(t_open(w, 0, &t_secret), 0);
	t = t_call(w, 0, 1, T_ECHO, NULL, 0);
	t_run(w);
	assert_int_equal(t->times, 1);
	assert_int_equal(t->status, -EPROTO);
	assert_false(t->answered);
	assert_int_equal(w->node[1].served, 0);
	assert_int_equal(w->node[1].mismatch, 1);
	t = t_call(w, 1, 0, T_ECHO, NULL, 0);
	t_run(w);
	assert_int_equal(t->status, -EPROTO);
	assert_int_equal(w->node[0].served, 0);
	assert_int_equal(w->node[0].mismatch, 1);
	t_advance(w, 3 * TIMEOUT);
	assert_int_equal(w->node[0].rpc->half_count + w->node[1].rpc->half_count, 0);
}

static void a_peer_that_comes_back_with_another_config_hash_is_not_asked(void **state)
{
	struct t_world *w = *state;
	struct t_result *t;

	t_connect(w, 1, 0);
	t_close(w, 0);
	w->node[0].config_hash = 7;
	assert_int_equal(t_open(w, 0, &t_secret), 0);
	t = t_call(w, 1, 0, T_ECHO, NULL, 0);
	assert_true(t_until(w, t, 2 * TIMEOUT) <= TIMEOUT);
	assert_int_equal(t->status, -EPROTO);
	assert_false(t->answered);
	/* The one request came in the node's first life. */
	assert_int_equal(w->node[0].served, 1);
}

/* What a node with another host list says about ranks is not believed, but it is answered. */
static void another_configuration_is_answered_whatever_the_ranks(void **state)
{
	static const uint32_t ranks[][2] = {{0, 2}, {1, 1}, {T_NODES, 1}, {UINT32_MAX, 1}};
	struct t_world *w = *state;
	struct cop_endpoint *evil = t_evil(w);
	uint8_t msg[COP_HELLO_MAX];

	for (size_t i = 0; i < COP_ARRAY_SIZE(ranks); i++) {
		struct cop_hello h = {.from = ranks[i][0],
			.to = ranks[i][1],
			.session = 5,
			.config_hash = 7,
			.address = "fake://evil",
			.address_len = 11};
		size_t len = cop_hello_write(&t_secret, &h, msg);

		t_shoot(w, evil, "fake://n1", msg, len);
	}
	assert_int_equal(w->node[1].mismatch, COP_ARRAY_SIZE(ranks));
	assert_int_equal(w->node[1].rpc->half_count, COP_ARRAY_SIZE(ranks));
	t_advance(w, 3 * TIMEOUT);
	assert_int_equal(w->node[1].rpc->half_count, 0);
	cop_endpoint_close(evil);
}

static void a_hello_for_or_from_the_wrong_rank_is_refused(void **state)
{
	static const uint32_t ranks[][2] = {{0, 2}, {1, 1}, {T_NODES, 1}, {UINT32_MAX, 1}};
	struct t_world *w = *state;
	struct cop_endpoint *evil = t_evil(w);
	uint8_t msg[COP_HELLO_MAX];

	for (size_t i = 0; i < COP_ARRAY_SIZE(ranks); i++) {
		struct cop_hello h = {.from = ranks[i][0],
			.to = ranks[i][1],
			.session = 5,
			.address = "fake://evil",
			.address_len = 11};
		size_t len = cop_hello_write(&t_secret, &h, msg);

		t_shoot(w, evil, "fake://n1", msg, len);
	}
	assert_int_equal(t_stat(w, 1, COP_FABRIC_REJECTED), COP_ARRAY_SIZE(ranks));
	assert_int_equal(w->node[1].rpc->half_count, 0);
	cop_endpoint_close(evil);
}

/* ---- lost and changed messages ---- */

static void a_changed_message_is_dropped_and_sent_again(void **state)
{
	static const uint8_t types[] = {COP_FRAME_REQUEST, COP_FRAME_REPLY};
	struct t_world *w = *state;

	t_connect(w, 0, 1);
	for (size_t i = 0; i < COP_ARRAY_SIZE(types); i++) {
		struct t_result *t;

		tap.flip = types[i];
		t = t_call(w, 0, 1, T_ECHO, "again", 5);
		t_run(w);
		assert_int_equal(t->times, 0);
		tap.flip = 0;
		assert_true(t_until(w, t, TIMEOUT) <= TIMEOUT / 2);
		assert_int_equal(t->times, 1);
		assert_int_equal(t->status, 0);
		assert_string_equal(t->head, "again");
		assert_int_equal(t_stat(w, 0, COP_FABRIC_RETRIES), i + 1);
	}
	assert_true(t_stat(w, 1, COP_FABRIC_REJECTED) > 0);
	assert_true(t_stat(w, 0, COP_FABRIC_REJECTED) > 0);
	assert_int_equal(t_stat(w, 0, COP_FABRIC_REQUESTS_SENT), 3);
}

static void a_lost_message_is_made_up_for(void **state)
{
	struct t_world *w = *state;
	uint8_t *landing = malloc(100000);

	assert_non_null(landing);
	for (uint8_t type = COP_FRAME_HELLO; type <= COP_FRAME_PULL; type++) {
		struct t_result *t, *u;

		/* This is for another session, which begins with a greeting. */
		t_close(w, 0);
		assert_int_equal(t_open(w, 0, &t_secret), 0);
		/* Both requests wait for the session, so they leave together. */
		tap.drop = type == COP_FRAME_REQUEST ? COP_FRAME_REQUESTS : type;
		tap.drops = 1;
		t = t_call_body(w, 0, 1, 100000, NULL, 0);
		u = t_call_body(w, 0, 1, 100000, landing, 100000);
		assert_true(t_until(w, t, 2 * TIMEOUT) != UINT64_MAX);
		assert_true(t_until(w, u, 2 * TIMEOUT) != UINT64_MAX);
		assert_int_equal(tap.drops, 0);
		assert_int_equal(t->status, 0);
		assert_int_equal(u->status, 0);
		assert_true(t->body_hash == t_pattern_hash(100000));
		assert_true(u->body_hash == t_pattern_hash(100000));
		assert_int_equal(t->times + u->times, 2);
		assert_int_equal(w->node[1].releases, w->node[1].bodies);
	}
	free(landing);
}

static void a_lost_ping_or_pong_makes_no_peer_dead(void **state)
{
	struct t_world *w = *state;

	t_connect(w, 0, 1);
	for (uint8_t type = COP_FRAME_PING; type <= COP_FRAME_PONG; type++) {
		struct t_result *t = t_call(w, 0, 1, T_HOLD, NULL, 0);

		tap.drop = type;
		tap.drops = 1;
		t_advance(w, 3 * TIMEOUT);
		assert_int_equal(tap.drops, 0);
		assert_int_equal(t->times, 0);
		t_answer_held(&w->node[1]);
		t_run(w);
		assert_int_equal(t->times, 1);
		assert_int_equal(t->status, 0);
	}
}

/* The first few copies of every message that carries or confirms an answer are lost: the server
 * keeps the answer until the caller has it and has said so. */
static void an_answer_is_kept_until_the_caller_has_confirmed_it(void **state)
{
	static const uint32_t sizes[] = {0, 100, 100000};
	struct t_world *w = *state;
	uint32_t rank;

	t_connect(w, 0, 1);
	for (size_t i = 0; i < COP_ARRAY_SIZE(sizes); i++) {
		for (uint8_t type = COP_FRAME_REPLY; type <= COP_FRAME_PULL; type++) {
			struct t_result *t;

			tap.drop = type;
			tap.drops = 2;
			t = t_call_sized(w, 0, 1, T_KEEP, sizes[i], NULL, 0);
			t_run(w);
			assert_int_equal(cop_rpc_unconfirmed(w->node[1].rpc, &rank, 1), 1);
			assert_int_equal(rank, 0);
			assert_int_equal(w->node[1].releases, w->node[1].bodies - 1);
			assert_true(t_until(w, t, 4 * TIMEOUT) != UINT64_MAX);
			t_advance(w, 3 * SAY_AGAIN_MS);
			assert_int_equal(t->status, 0);
			assert_int_equal(t->times, 1);
			assert_true(!sizes[i] || t->body_hash == t_pattern_hash(sizes[i]));
			assert_int_equal(cop_rpc_unconfirmed(w->node[1].rpc, &rank, 1), 0);
			assert_int_equal(w->node[1].releases, w->node[1].bodies);
		}
	}
	assert_int_equal(t_stat(w, 0, COP_FABRIC_RETRIES), 0);
}

static void an_answer_that_nobody_confirms_is_freed(void **state)
{
	struct t_world *w = *state;
	uint32_t rank;

	t_connect(w, 0, 1);
	tap.drop = COP_FRAME_PULL;
	tap.drops = 1000;
	t_call_sized(w, 0, 1, T_KEEP, 10, NULL, 0);
	t_run(w);
	t_advance(w, CONFIRM_MS - 1000);
	assert_int_equal(cop_rpc_unconfirmed(w->node[1].rpc, &rank, 1), 1);
	t_advance(w, 2000);
	assert_int_equal(cop_rpc_unconfirmed(w->node[1].rpc, &rank, 1), 0);
	assert_int_equal(w->node[1].releases, 1);
	assert_false(w->node[1].rpc->ticking);
}

static void one_lost_call_among_many_is_found(void **state)
{
	struct t_world *w = *state;
	struct t_result *t;

	t_connect(w, 0, 1);
	tap.drop = COP_FRAME_REQUEST;
	tap.drops = 1;
	t = t_call(w, 0, 1, T_ECHO, "lost", 4);
	t_run(w);
	/* The peer is never silent, so silence cannot reveal the loss. */
	for (unsigned i = 0; i < 100 && !t->times; i++) {
		t_connect(w, 0, 1);
		t_advance(w, 100);
	}
	assert_int_equal(t->times, 1);
	assert_int_equal(t->status, 0);
	assert_true(w->ms <= TIMEOUT + 500);
}

static void corrupt_bytes_in_the_landing_buffer_are_noticed(void **state)
{
	struct t_world *w = *state;
	uint8_t *landing = malloc(100000);
	struct t_result *t;

	assert_non_null(landing);
	t_connect(w, 0, 1);
	tap.spoil = landing;
	t = t_call_body(w, 0, 1, 100000, landing, 100000);
	t_run(w);
	assert_int_equal(t->times, 1);
	assert_int_equal(t->status, -EBADMSG);
	assert_false(t->answered);
	assert_int_equal(t->body_len, 0);
	assert_int_equal(t_stat(w, 0, COP_FABRIC_CORRUPT), 1);
	tap.spoil = NULL;
	t = t_call_body(w, 0, 1, 100000, landing, 100000);
	t_run(w);
	assert_int_equal(t->status, 0);
	free(landing);
}

static void a_body_that_nobody_pulls_is_freed(void **state)
{
	struct t_world *w = *state;

	tap.drop = COP_FRAME_PULL;
	tap.drops = 1000;
	t_call_body(w, 0, 1, 100000, NULL, 0);
	t_run(w);
	assert_int_equal(w->node[1].bodies, 1);
	assert_int_equal(w->node[1].releases, 0);
	cop_endpoint_fake_cut(w->net, "n0", true);
	t_advance(w, PIN_MS + 500);
	assert_int_equal(w->node[1].releases, 1);
}

static void cut_n0(void *arg)
{
	cop_endpoint_fake_cut(((struct t_world *)arg)->net, "n0", true);
}

static void a_body_that_cannot_be_written_is_freed(void **state)
{
	struct t_world *w = *state;
	uint8_t *landing = malloc(100000);
	struct t_result *t;

	assert_non_null(landing);
	t_connect(w, 0, 1);
	tap.on_request = cut_n0;
	t = t_call_body(w, 0, 1, 100000, landing, 100000);
	t_run(w);
	assert_int_equal(w->node[1].bodies, 1);
	t_advance(w, PIN_MS + 1000);
	assert_int_equal(w->node[1].releases, 1);
	assert_int_equal(t->status, -EHOSTDOWN);
	assert_false(w->node[1].rpc->ticking);
	free(landing);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_node_with_another_secret_is_not_served),
		T(an_answer_without_the_secret_ends_in_eacces),
		T(a_forged_answer_does_not_keep_the_true_one_out),
		T(an_unverified_peer_gets_no_answer_and_costs_no_state),
		T(garbage_with_the_right_session_id_ends_nothing),
		T(half_open_sessions_are_bounded),
		T(nodes_with_different_config_hashes_refuse_each_other_at_once),
		T(a_peer_that_comes_back_with_another_config_hash_is_not_asked),
		T(another_configuration_is_answered_whatever_the_ranks),
		T(a_hello_for_or_from_the_wrong_rank_is_refused),
		T(a_changed_message_is_dropped_and_sent_again),
		T(a_lost_message_is_made_up_for),
		T(a_lost_ping_or_pong_makes_no_peer_dead),
		T(an_answer_is_kept_until_the_caller_has_confirmed_it),
		T(an_answer_that_nobody_confirms_is_freed),
		T(one_lost_call_among_many_is_found),
		T(corrupt_bytes_in_the_landing_buffer_are_noticed),
		T(a_body_that_nobody_pulls_is_freed),
		T(a_body_that_cannot_be_written_is_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
