/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "fabric/wire/wire.h"

static const uint8_t key[16] = {9, 8, 7, 6, 5, 4, 3, 2, 1};

static struct cop_frame_tx sender(void)
{
	struct cop_frame_tx tx = {.counter = 0};

	memcpy(tx.key, key, sizeof(key));
	return tx;
}

static struct cop_frame_rx receiver(void)
{
	struct cop_frame_rx rx = {.highest = 0};

	memcpy(rx.key, key, sizeof(key));
	return rx;
}

static size_t make(struct cop_frame_tx *tx, uint8_t *msg, size_t size, const char *payload)
{
	struct cop_frame f = {.type = COP_FRAME_REQUEST,
		.flags = 0x1234,
		.session = 0x1122334455667788ULL,
		.request = 42};
	struct cop_wr w = cop_frame_begin(msg, size, &f);

	cop_wr_bytes(&w, payload, strlen(payload));
	return cop_frame_seal(tx, &w);
}

static void a_sealed_message_opens(void **state)
{
	struct cop_frame_tx tx = sender();
	struct cop_frame_rx rx = receiver();
	struct cop_frame f;
	uint8_t msg[128];
	size_t len = make(&tx, msg, sizeof(msg), "hello");

	(void)state;
	assert_int_equal(len, COP_FRAME_OVERHEAD + 5);
	assert_int_equal(cop_frame_open(&rx, msg, len, &f), 0);
	assert_int_equal(f.type, COP_FRAME_REQUEST);
	assert_int_equal(f.flags, 0x1234);
	assert_true(f.session == 0x1122334455667788ULL);
	assert_int_equal(f.counter, 1);
	assert_int_equal(f.request, 42);
	assert_int_equal(f.payload_len, 5);
	assert_memory_equal(f.payload, "hello", 5);
}

static void an_empty_payload_is_a_message(void **state)
{
	struct cop_frame_tx tx = sender();
	struct cop_frame_rx rx = receiver();
	struct cop_frame f;
	uint8_t msg[COP_FRAME_OVERHEAD];
	size_t len = make(&tx, msg, sizeof(msg), "");

	(void)state;
	assert_int_equal(len, sizeof(msg));
	assert_int_equal(cop_frame_open(&rx, msg, len, &f), 0);
	assert_int_equal(f.payload_len, 0);
}

static void a_message_that_does_not_fit_is_not_sealed(void **state)
{
	struct cop_frame_tx tx = sender();
	uint8_t msg[COP_FRAME_OVERHEAD + 4];

	(void)state;
	assert_int_equal(make(&tx, msg, sizeof(msg), "hello"), 0);
	assert_int_equal(make(&tx, msg, COP_FRAME_HEAD + 6, "hello"), 0);
	assert_int_equal(make(&tx, msg, 7, ""), 0);
}

static void a_message_cut_anywhere_is_refused(void **state)
{
	struct cop_frame_tx tx = sender();
	struct cop_frame_rx rx = receiver();
	struct cop_frame f;
	uint8_t msg[128];
	size_t len = make(&tx, msg, sizeof(msg), "hello");

	(void)state;
	for (size_t cut = 0; cut < len; cut++)
		assert_int_equal(cop_frame_open(&rx, msg, cut, &f), -EBADMSG);
	msg[len] = 0;
	assert_int_equal(cop_frame_open(&rx, msg, len + 1, &f), -EBADMSG);
	assert_int_equal(cop_frame_open(&rx, msg, len, &f), 0);
}

static void a_message_with_any_bit_flipped_is_refused(void **state)
{
	struct cop_frame_tx tx = sender();
	struct cop_frame_rx rx = receiver(), before = rx;
	struct cop_frame f;
	uint8_t msg[128];
	size_t len = make(&tx, msg, sizeof(msg), "hello");

	(void)state;
	for (size_t bit = 0; bit < 8 * len; bit++) {
		int rc;

		msg[bit / 8] ^= (uint8_t)(1u << bit % 8);
		rc = cop_frame_open(&rx, msg, len, &f);
		assert_true(rc == -EBADMSG || rc == -EACCES);
		assert_memory_equal(&rx, &before, sizeof(rx));
		msg[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_int_equal(cop_frame_open(&rx, msg, len, &f), 0);
}

static void another_key_opens_nothing(void **state)
{
	struct cop_frame_tx tx = sender();
	struct cop_frame_rx rx = receiver();
	struct cop_frame f;
	uint8_t msg[128];
	size_t len = make(&tx, msg, sizeof(msg), "hello");

	(void)state;
	for (unsigned bit = 0; bit < 8 * sizeof(rx.key); bit++) {
		rx.key[bit / 8] ^= 1u << bit % 8;
		assert_int_equal(cop_frame_open(&rx, msg, len, &f), -EACCES);
		rx.key[bit / 8] ^= 1u << bit % 8;
	}
	/* The refused messages have not used up the message's counter. */
	assert_int_equal(cop_frame_open(&rx, msg, len, &f), 0);
}

static void a_handshake_message_is_never_a_sealed_one(void **state)
{
	struct cop_frame_tx tx = sender();
	struct cop_frame_rx rx = receiver();
	struct cop_frame f = {.type = COP_FRAME_HELLO};
	uint8_t msg[128];
	struct cop_wr w = cop_frame_begin(msg, sizeof(msg), &f);
	size_t len;

	(void)state;
	cop_wr_bytes(&w, "0123456789abcdef0123456789abcdef", 32);
	len = cop_frame_seal(&tx, &w);
	assert_int_equal(cop_frame_open(&rx, msg, len, &f), -EBADMSG);
}

/* Writes messages 1 to n into msgs, all of one length. */
static size_t make_many(uint8_t msgs[][64], size_t n)
{
	struct cop_frame_tx tx = sender();
	size_t len = 0;

	for (size_t i = 0; i < n; i++)
		len = make(&tx, msgs[i], 64, "x");
	return len;
}

static void a_replayed_message_is_refused(void **state)
{
	static uint8_t msgs[300][64];
	struct cop_frame_rx rx = receiver();
	struct cop_frame f;
	size_t len = make_many(msgs, 300);

	(void)state;
	for (size_t i = 0; i < 300; i++) {
		assert_int_equal(cop_frame_open(&rx, msgs[i], len, &f), 0);
		for (size_t j = 0; j <= i; j++)
			assert_int_equal(cop_frame_open(&rx, msgs[j], len, &f), -EALREADY);
	}
}

static void messages_out_of_order_pass_once_inside_the_window(void **state)
{
	static uint8_t msgs[300][64];
	struct cop_frame_rx rx = receiver();
	struct cop_frame f;
	size_t len = make_many(msgs, 300);

	(void)state;
	assert_int_equal(cop_frame_open(&rx, msgs[99], len, &f), 0);
	assert_int_equal(cop_frame_open(&rx, msgs[36], len, &f), 0);
	assert_int_equal(cop_frame_open(&rx, msgs[36], len, &f), -EALREADY);
	assert_int_equal(cop_frame_open(&rx, msgs[35], len, &f), -EALREADY);
	assert_int_equal(cop_frame_open(&rx, msgs[98], len, &f), 0);
	assert_int_equal(cop_frame_open(&rx, msgs[98], len, &f), -EALREADY);
	/* A jump of a whole window forgets earlier counters and refuses them. */
	assert_int_equal(cop_frame_open(&rx, msgs[163], len, &f), 0);
	assert_int_equal(cop_frame_open(&rx, msgs[99], len, &f), -EALREADY);
	assert_int_equal(cop_frame_open(&rx, msgs[100], len, &f), 0);
	assert_int_equal(cop_frame_open(&rx, msgs[299], len, &f), 0);
	assert_int_equal(cop_frame_open(&rx, msgs[163], len, &f), -EALREADY);
}

static void a_window_shift_of_63_keeps_the_oldest_bit(void **state)
{
	static uint8_t msgs[64][64];
	struct cop_frame_rx rx = receiver();
	struct cop_frame f;
	size_t len = make_many(msgs, 64);

	(void)state;
	assert_int_equal(cop_frame_open(&rx, msgs[0], len, &f), 0);
	assert_int_equal(cop_frame_open(&rx, msgs[63], len, &f), 0);
	assert_int_equal(cop_frame_open(&rx, msgs[0], len, &f), -EALREADY);
	for (size_t i = 1; i < 63; i++)
		assert_int_equal(cop_frame_open(&rx, msgs[i], len, &f), 0);
}

static void counter_zero_is_refused(void **state)
{
	struct cop_frame_tx tx = sender();
	struct cop_frame_rx rx = receiver();
	struct cop_frame f;
	uint8_t msg[64];
	size_t len;

	(void)state;
	tx.counter = UINT64_MAX;
	len = make(&tx, msg, sizeof(msg), "x");
	assert_int_equal(cop_frame_open(&rx, msg, len, &f), -EALREADY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sealed_message_opens),
		cmocka_unit_test(an_empty_payload_is_a_message),
		cmocka_unit_test(a_message_that_does_not_fit_is_not_sealed),
		cmocka_unit_test(a_message_cut_anywhere_is_refused),
		cmocka_unit_test(a_message_with_any_bit_flipped_is_refused),
		cmocka_unit_test(another_key_opens_nothing),
		cmocka_unit_test(a_handshake_message_is_never_a_sealed_one),
		cmocka_unit_test(a_replayed_message_is_refused),
		cmocka_unit_test(messages_out_of_order_pass_once_inside_the_window),
		cmocka_unit_test(a_window_shift_of_63_keeps_the_oldest_bit),
		cmocka_unit_test(counter_zero_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
