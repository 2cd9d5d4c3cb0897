/* SPDX-License-Identifier: BSD-3-Clause */
/* Several requests in one message. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "fabric/rpc/rpc_testing.h"

static unsigned lose; /* how many messages with several requests the network loses */

static bool tap_message(void *arg, const char *from, const char *to, void *msg, size_t len)
{
	(void)arg, (void)from, (void)to, (void)len;
	if (!lose || ((uint8_t *)msg)[5] != COP_FRAME_REQUESTS)
		return true;
	lose--;
	return false;
}

static int setup(void **state)
{
	struct t_world *w = t_new();

	lose = 0;
	cop_endpoint_fake_tap(w->net, tap_message, NULL);
	t_connect(w, 0, 1);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	t_free(*state);
	return 0;
}

/* Messages with requests that rank 0 has sent, not counting the first. */
static uint64_t messages(struct t_world *w)
{
	return t_stat(w, 0, COP_FABRIC_REQUEST_MESSAGES) - 1;
}

static void all_ended(const struct t_result *t, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(t[i].times, 1);
		assert_int_equal(t[i].status, 0);
	}
}

static struct t_result *corked_calls(struct t_world *w, unsigned count, size_t payload_len)
{
	static uint8_t payload[COP_RPC_PAYLOAD_MAX];
	struct t_result *first = &w->result[w->results];

	cop_rpc_cork(w->node[0].rpc);
	for (unsigned i = 0; i < count; i++)
		t_call(w, 0, 1, T_ECHO, payload, payload_len);
	t_run(w);
	assert_int_equal(messages(w), 0);
	cop_rpc_uncork(w->node[0].rpc);
	t_run(w);
	return first;
}

static void corked_calls_leave_in_one_message(void **state)
{
	struct t_world *w = *state;
	struct t_result *t = corked_calls(w, 10, 20);

	all_ended(t, 10);
	assert_int_equal(messages(w), 1);
	assert_int_equal(t_stat(w, 0, COP_FABRIC_REQUESTS_SENT), 11);
	assert_int_equal(t_stat(w, 1, COP_FABRIC_REQUESTS_SERVED), 11);
	assert_int_equal(t_stat(w, 1, COP_FABRIC_REJECTED), 0);
}

static void a_message_takes_64_requests_and_16000_bytes(void **state)
{
	struct t_world *w = *state;

	all_ended(corked_calls(w, MSG_MEMBERS_MAX + 1, 20), MSG_MEMBERS_MAX + 1);
	assert_int_equal(messages(w), 2);
	t_free(w);
	setup(state);
	w = *state;
	all_ended(corked_calls(w, 3, COP_RPC_PAYLOAD_MAX), 3);
	assert_int_equal(messages(w), 3);
	assert_int_equal(t_stat(w, 1, COP_FABRIC_REJECTED), 0);
}

static void each_answer_lands_in_its_own_buffer(void **state)
{
	struct t_world *w = *state;
	struct t_result *t = &w->result[w->results];
	uint8_t *landing = calloc(3, 70000);

	assert_non_null(landing);
	cop_rpc_cork(w->node[0].rpc);
	for (unsigned i = 0; i < 3; i++)
		t_call_body(w, 0, 1, 40000 + 10000 * i, landing + 70000 * (size_t)i, 70000);
	cop_rpc_uncork(w->node[0].rpc);
	t_run(w);
	all_ended(t, 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_true(t[i].in_landing);
		assert_true(t[i].body_hash == t_pattern_hash(40000 + 10000 * i));
	}
	assert_int_equal(messages(w), 1);
	free(landing);
}

static void calls_for_several_ranks_are_told_apart(void **state)
{
	struct t_world *w = *state;
	struct t_result *t = &w->result[w->results];

	cop_rpc_cork(w->node[0].rpc);
	cop_rpc_cork(w->node[0].rpc);
	for (unsigned i = 0; i < 6; i++)
		t_call(w, 0, 1 + i % 3, T_ECHO, "hello", 5);
	cop_rpc_uncork(w->node[0].rpc);
	t_run(w);
	assert_int_equal(t[0].times, 0); /* the outer cork still holds them back */
	cop_rpc_uncork(w->node[0].rpc);
	t_run(w);
	all_ended(t, 6);
	for (unsigned rank = 1; rank < 4; rank++)
		assert_int_equal(t_stat(w, rank, COP_FABRIC_REQUESTS_SERVED), rank == 1 ? 3 : 2);
}

static void a_lost_message_is_noticed_and_all_of_it_is_sent_again(void **state)
{
	struct t_world *w = *state;
	struct t_result *t;

	lose = 1;
	t = corked_calls(w, 10, 20);
	assert_int_equal(t->times, 0);
	assert_true(t_until(w, t, 10000) < 10000);
	all_ended(t, 10);
	assert_int_equal(t_stat(w, 0, COP_FABRIC_REQUESTS_SENT), 11);
	assert_int_equal(t_stat(w, 0, COP_FABRIC_RETRIES), 10);
}

static void what_is_corked_when_the_node_ends_ends_too(void **state)
{
	struct t_world *w = *state;
	struct t_result *t;

	cop_rpc_cork(w->node[0].rpc);
	t = t_call(w, 0, 1, T_ECHO, "hello", 5);
	cop_rpc_quiet(w->node[0].rpc);
	cop_rpc_uncork(w->node[0].rpc);
	t_run(w);
	assert_int_equal(t->times, 1);
	assert_int_equal(t->status, -ECANCELED);
}

/* ---- a node of this job that sends nonsense ---- */

static void send_sealed(struct t_world *w, struct cop_endpoint *evil, const void *data, size_t len)
{
	struct peer *p = w->node[0].rpc->peers[1];
	struct cop_frame f = {.type = COP_FRAME_REQUESTS, .session = p->remote_sid};
	uint8_t msg[COP_ENDPOINT_MSG_MAX];
	struct cop_wr wr = cop_frame_begin(msg, sizeof(msg), &f);

	cop_wr_bytes(&wr, data, len);
	len = cop_frame_seal(&p->keys.tx, &wr);
	assert_true(len > 0);
	t_shoot(w, evil, "fake://n1", msg, len);
}

static struct cop_wr put_member(struct cop_wr w, uint64_t id)
{
	cop_rpc_msg_put_member(
		&w, id, &(struct msg_request){.op = T_HOLD, .payload = "x", .payload_len = 1});
	return w;
}

static void nonsense_ends_at_the_first_wrong_member(void **state)
{
	struct t_world *w = *state;
	struct cop_endpoint *evil = t_evil(w);
	unsigned served = w->node[1].served;
	uint8_t data[4096];
	struct cop_wr wr = cop_wr_init(data, sizeof(data));

	send_sealed(w, evil, data, 0);
	assert_int_equal(t_stat(w, 1, COP_FABRIC_REJECTED), 1);
	wr = put_member(put_member(wr, 1000), 1001);
	send_sealed(w, evil, data, cop_wr_len(&wr) - 1);
	assert_int_equal(w->node[1].served, served + 1);
	assert_int_equal(t_stat(w, 1, COP_FABRIC_REJECTED), 2);
	wr = cop_wr_init(data, sizeof(data));
	wr = put_member(put_member(wr, 2000), 2000);
	send_sealed(w, evil, data, cop_wr_len(&wr));
	assert_int_equal(w->node[1].served, served + 2);
	assert_int_equal(t_stat(w, 1, COP_FABRIC_REJECTED), 3);
	wr = cop_wr_init(data, sizeof(data));
	for (unsigned i = 0; i <= MSG_MEMBERS_MAX; i++)
		wr = put_member(wr, 3000 + i);
	send_sealed(w, evil, data, cop_wr_len(&wr));
	assert_int_equal(w->node[1].served, served + 2 + MSG_MEMBERS_MAX);
	assert_int_equal(t_stat(w, 1, COP_FABRIC_REJECTED), 4);
	t_connect(w, 0, 1);
	cop_endpoint_close(evil);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(corked_calls_leave_in_one_message),
		T(a_message_takes_64_requests_and_16000_bytes),
		T(each_answer_lands_in_its_own_buffer),
		T(calls_for_several_ranks_are_told_apart),
		T(a_lost_message_is_noticed_and_all_of_it_is_sent_again),
		T(what_is_corked_when_the_node_ends_ends_too),
		T(nonsense_ends_at_the_first_wrong_member),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
