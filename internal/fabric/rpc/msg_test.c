/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "fabric/rpc/rpc_priv.h"

static uint8_t buf[COP_ENDPOINT_MSG_MAX];

static struct cop_frame frame_of(size_t len)
{
	return (struct cop_frame){.payload = buf, .payload_len = len};
}

static size_t put_reply(const struct msg_reply *m)
{
	struct cop_wr w = cop_wr_init(buf, sizeof(buf));

	cop_rpc_msg_put_reply(&w, m);
	assert_false(w.bad);
	return cop_wr_len(&w);
}

static int get_reply(size_t len, struct msg_reply *m)
{
	struct cop_frame f = frame_of(len);

	return cop_rpc_msg_get_reply(&f, m);
}

static void a_request_comes_back(void **state)
{
	struct msg_request m = {.op = 200,
				   .land_addr = 1,
				   .land_key = UINT64_MAX,
				   .land_len = 3,
				   .payload = "pay",
				   .payload_len = 3},
			   got;
	struct cop_wr w = cop_wr_init(buf, sizeof(buf));
	struct cop_frame f;

	(void)state;
	cop_rpc_msg_put_request(&w, &m);
	assert_int_equal(cop_wr_len(&w), MSG_REQUEST_FIXED + 3);
	for (size_t cut = 0; cut < MSG_REQUEST_FIXED; cut++) {
		f = frame_of(cut);
		assert_int_equal(cop_rpc_msg_get_request(&f, &got), -EBADMSG);
	}
	f = frame_of(cop_wr_len(&w));
	assert_int_equal(cop_rpc_msg_get_request(&f, &got), 0);
	assert_int_equal(got.op, 200);
	assert_true(got.land_addr == 1 && got.land_key == UINT64_MAX && got.land_len == 3);
	assert_int_equal(got.payload_len, 3);
	assert_memory_equal(got.payload, "pay", 3);
	f = frame_of(MSG_REQUEST_FIXED + COP_RPC_PAYLOAD_MAX);
	assert_int_equal(cop_rpc_msg_get_request(&f, &got), 0);
	f = frame_of(MSG_REQUEST_FIXED + COP_RPC_PAYLOAD_MAX + 1);
	assert_int_equal(cop_rpc_msg_get_request(&f, &got), -EBADMSG);
}

static void a_reply_comes_back(void **state)
{
	struct msg_reply m = {.status = -ENOENT,
				 .mode = MODE_INLINE,
				 .body_len = 4,
				 .body_hash = 77,
				 .head = "he",
				 .head_len = 2,
				 .body = "body"},
			 got;
	size_t len = put_reply(&m);

	(void)state;
	assert_int_equal(len, MSG_REPLY_FIXED + 6);
	for (size_t cut = 0; cut < len; cut++)
		assert_int_equal(get_reply(cut, &got), -EBADMSG);
	assert_int_equal(get_reply(len + 1, &got), -EBADMSG);
	assert_int_equal(get_reply(len, &got), 0);
	assert_int_equal(got.status, -ENOENT);
	assert_int_equal(got.body_len, 4);
	assert_int_equal(got.body_hash, 77);
	assert_int_equal(got.head_len, 2);
	assert_memory_equal(got.head, "he", 2);
	assert_memory_equal(got.body, "body", 4);
}

static void the_largest_inline_reply_fits_a_message(void **state)
{
	static uint8_t body[MSG_INLINE_MAX];
	static uint8_t msg[COP_ENDPOINT_MSG_MAX];
	struct cop_frame f = {.type = COP_FRAME_REPLY};
	struct cop_frame_tx tx = {.counter = 0};
	struct cop_wr w = cop_frame_begin(msg, sizeof(msg), &f);
	struct msg_reply m = {.mode = MODE_INLINE,
		.body = body,
		.head = body,
		.head_len = COP_RPC_HEAD_MAX,
		.body_len = MSG_INLINE_MAX - COP_RPC_HEAD_MAX};

	(void)state;
	cop_rpc_msg_put_reply(&w, &m);
	assert_int_equal(cop_frame_seal(&tx, &w), COP_ENDPOINT_MSG_MAX);
}

static void a_status_must_be_an_error_number(void **state)
{
	struct msg_reply m = {.status = -4095, .mode = MODE_INLINE}, got;
	size_t len = put_reply(&m);

	(void)state;
	assert_int_equal(get_reply(len, &got), 0);
	assert_int_equal(got.status, -4095);
	m.status = -4096;
	assert_int_equal(get_reply(put_reply(&m), &got), -EBADMSG);
	m.status = 1;
	assert_int_equal(get_reply(put_reply(&m), &got), -EBADMSG);
}

static void a_reply_of_no_known_form_is_refused(void **state)
{
	struct msg_reply m = {.mode = MODES, .body_len = 5}, got;

	(void)state;
	assert_int_equal(get_reply(put_reply(&m), &got), -EBADMSG);
	for (uint8_t mode = MODE_LANDED; mode <= MODE_ANNOUNCE; mode++) {
		m.mode = mode;
		m.body_len = 0;
		assert_int_equal(get_reply(put_reply(&m), &got), -EBADMSG);
		m.body_len = 1;
		assert_int_equal(get_reply(put_reply(&m), &got), 0);
		/* The message has bytes where none belong. */
		assert_int_equal(get_reply(put_reply(&m) + 1, &got), -EBADMSG);
	}
}

static void an_unable_server_sends_its_error_and_no_body(void **state)
{
	struct msg_reply m = {.mode = MODE_UNABLE, .status = -ENOMEM}, got;

	(void)state;
	assert_int_equal(get_reply(put_reply(&m), &got), 0);
	assert_int_equal(got.mode, MODE_UNABLE);
	assert_int_equal(got.status, -ENOMEM);
	m.body_len = 1;
	assert_int_equal(get_reply(put_reply(&m), &got), -EBADMSG);
	m = (struct msg_reply){.mode = MODE_UNABLE};
	assert_int_equal(get_reply(put_reply(&m), &got), -EBADMSG);
}

static void a_head_over_the_limit_is_refused(void **state)
{
	static uint8_t head[COP_RPC_HEAD_MAX + 1];
	struct msg_reply m = {.mode = MODE_FAILED, .head = head, .head_len = COP_RPC_HEAD_MAX}, got;

	(void)state;
	assert_int_equal(get_reply(put_reply(&m), &got), 0);
	m.head_len++;
	assert_int_equal(get_reply(put_reply(&m), &got), -EBADMSG);
}

static void a_pull_is_exactly_24_bytes(void **state)
{
	struct msg_pull m = {.addr = 1, .key = 2, .len = 3}, got;
	struct cop_wr w = cop_wr_init(buf, sizeof(buf));

	(void)state;
	cop_rpc_msg_put_pull(&w, &m);
	for (size_t len = 0; len < 30; len++) {
		struct cop_frame f = frame_of(len);

		assert_int_equal(cop_rpc_msg_get_pull(&f, &got), len == 24 ? 0 : -EBADMSG);
	}
	assert_int_equal(cop_wr_len(&w), 24);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_comes_back),
		cmocka_unit_test(a_reply_comes_back),
		cmocka_unit_test(the_largest_inline_reply_fits_a_message),
		cmocka_unit_test(a_status_must_be_an_error_number),
		cmocka_unit_test(a_reply_of_no_known_form_is_refused),
		cmocka_unit_test(an_unable_server_sends_its_error_and_no_body),
		cmocka_unit_test(a_head_over_the_limit_is_refused),
		cmocka_unit_test(a_pull_is_exactly_24_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
