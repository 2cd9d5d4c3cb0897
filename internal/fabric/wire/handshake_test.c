/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "fabric/wire/wire_priv.h"

static const struct cop_wire_secret secret = {{1, 2, 3}}, other_secret = {{1, 2, 4}};

struct pair {
	uint8_t hello[COP_HELLO_MAX], welcome[COP_WELCOME_LEN];
	size_t hello_len, welcome_len;
	struct cop_frame_keys at_responder, at_initiator;
};

static struct cop_hello hello_of(uint32_t from, uint32_t to)
{
	struct cop_hello h = {.from = from,
		.to = to,
		.session = 77,
		.current = 5,
		.config_hash = 1234567,
		.address = "fake://a",
		.address_len = 8};

	cop_wire_random(h.nonce, sizeof(h.nonce));
	return h;
}

static void shake(struct pair *p)
{
	struct cop_hello h = hello_of(3, 4);
	uint64_t id = 0;

	p->hello_len = cop_hello_write(&secret, &h, p->hello);
	assert_true(p->hello_len > 0);
	p->welcome_len = cop_welcome_write(
		&secret, p->hello, p->hello_len, 99, p->welcome, &p->at_responder);
	assert_int_equal(p->welcome_len, COP_WELCOME_LEN);
	assert_int_equal(cop_welcome_read(&secret, p->hello, p->hello_len, p->welcome,
				 p->welcome_len, &id, &p->at_initiator),
		0);
	assert_int_equal(id, 99);
}

static void both_sides_get_the_same_keys_crosswise(void **state)
{
	struct pair p;

	(void)state;
	shake(&p);
	assert_memory_equal(p.at_initiator.tx.key, p.at_responder.rx.key, 16);
	assert_memory_equal(p.at_initiator.rx.key, p.at_responder.tx.key, 16);
	assert_memory_not_equal(p.at_initiator.rx.key, p.at_initiator.tx.key, 16);
	assert_true(p.at_initiator.body_seed == p.at_responder.body_seed);
	assert_true(p.at_initiator.body_seed != 0);
}

static void a_hello_says_who_and_where(void **state)
{
	uint8_t msg[COP_HELLO_MAX];
	struct cop_hello h = hello_of(3, 4), got;
	size_t len = cop_hello_write(&secret, &h, msg);

	(void)state;
	assert_int_equal(cop_hello_read(&secret, msg, len, &got), 0);
	assert_int_equal(got.from, 3);
	assert_int_equal(got.to, 4);
	assert_int_equal(got.session, 77);
	assert_int_equal(got.current, 5);
	assert_int_equal(got.config_hash, 1234567);
	assert_int_equal(got.address_len, 8);
	assert_memory_equal(got.address, "fake://a", 8);
	assert_memory_equal(got.nonce, h.nonce, sizeof(h.nonce));
}

static void two_handshakes_never_share_keys(void **state)
{
	enum { SHAKES = 64 };
	uint8_t keys[2 * SHAKES][16];
	uint64_t seeds[SHAKES];
	struct pair p;

	(void)state;
	for (unsigned i = 0; i < SHAKES; i++) {
		shake(&p);
		memcpy(keys[2 * i], p.at_initiator.tx.key, 16);
		memcpy(keys[2 * i + 1], p.at_initiator.rx.key, 16);
		seeds[i] = p.at_initiator.body_seed;
	}
	for (unsigned i = 0; i < 2 * SHAKES; i++)
		for (unsigned j = 0; j < i; j++)
			assert_memory_not_equal(keys[i], keys[j], 16);
	for (unsigned i = 0; i < SHAKES; i++)
		for (unsigned j = 0; j < i; j++)
			assert_true(seeds[i] != seeds[j]);
}

static void a_message_of_one_handshake_is_refused_after_another(void **state)
{
	struct cop_frame f = {.type = COP_FRAME_REQUEST};
	struct pair p, q;
	uint8_t msg[128];
	struct cop_wr w = cop_frame_begin(msg, sizeof(msg), &f);
	size_t len;

	(void)state;
	shake(&p);
	shake(&q);
	cop_wr_bytes(&w, "hello", 5);
	len = cop_frame_seal(&p.at_initiator.tx, &w);
	assert_int_equal(cop_frame_open(&q.at_responder.rx, msg, len, &f), -EACCES);
	assert_int_equal(cop_frame_open(&p.at_responder.rx, msg, len, &f), 0);
}

static void a_hello_under_another_secret_is_refused(void **state)
{
	uint8_t msg[COP_HELLO_MAX], welcome[COP_WELCOME_LEN];
	struct cop_hello h = hello_of(3, 4), got;
	struct cop_frame_keys keys;
	size_t len = cop_hello_write(&other_secret, &h, msg);

	(void)state;
	assert_int_equal(cop_hello_read(&secret, msg, len, &got), -EACCES);
	assert_int_equal(cop_welcome_write(&secret, msg, len, 1, welcome, &keys), 0);
}

static void a_hello_cut_anywhere_is_refused(void **state)
{
	uint8_t msg[COP_HELLO_MAX + 1];
	struct cop_hello h = hello_of(3, 4), got;
	size_t len = cop_hello_write(&secret, &h, msg);

	(void)state;
	for (size_t cut = 0; cut < len; cut++) {
		assert_int_equal(cop_hello_read(&secret, msg, cut, &got), -EBADMSG);
		/* Also truncated, with a matching length field. */
		if (cut >= COP_FRAME_HEAD) {
			uint8_t copy[COP_HELLO_MAX];

			memcpy(copy, msg, len);
			copy[8] = (uint8_t)cut;
			copy[9] = (uint8_t)(cut >> 8);
			assert_true(cop_hello_read(&secret, copy, cut, &got) < 0);
		}
	}
	msg[len] = 0;
	assert_int_equal(cop_hello_read(&secret, msg, len + 1, &got), -EBADMSG);
}

static void a_hello_with_any_bit_flipped_is_refused(void **state)
{
	uint8_t msg[COP_HELLO_MAX];
	struct cop_hello h = hello_of(3, 4), got;
	size_t len = cop_hello_write(&secret, &h, msg);

	(void)state;
	for (size_t bit = 0; bit < 8 * len; bit++) {
		msg[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_true(cop_hello_read(&secret, msg, len, &got) < 0);
		msg[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_int_equal(cop_hello_read(&secret, msg, len, &got), 0);
}

static void an_address_must_be_there_and_not_too_long(void **state)
{
	uint8_t msg[COP_HELLO_MAX];
	static char longest[COP_HELLO_ADDRESS_MAX + 1];
	struct cop_hello h = hello_of(3, 4), got;

	(void)state;
	memset(longest, 'a', sizeof(longest));
	h.address = longest;
	h.address_len = 0;
	assert_int_equal(cop_hello_write(&secret, &h, msg), 0);
	h.address_len = sizeof(longest);
	assert_int_equal(cop_hello_write(&secret, &h, msg), 0);
	h.address_len = COP_HELLO_ADDRESS_MAX;
	assert_int_equal(cop_hello_write(&secret, &h, msg), COP_HELLO_MAX);
	assert_int_equal(cop_hello_read(&secret, msg, COP_HELLO_MAX, &got), 0);
	assert_int_equal(got.address_len, COP_HELLO_ADDRESS_MAX);
	longest[7] = '\0';
	assert_int_equal(cop_hello_write(&secret, &h, msg), COP_HELLO_MAX);
	assert_int_equal(cop_hello_read(&secret, msg, COP_HELLO_MAX, &got), -EBADMSG);
}

static int read_welcome(const struct pair *p, const uint8_t *welcome)
{
	struct cop_frame_keys keys;
	uint64_t id;

	return cop_welcome_read(
		&secret, p->hello, p->hello_len, welcome, COP_WELCOME_LEN, &id, &keys);
}

static void a_welcome_with_any_bit_flipped_is_refused(void **state)
{
	struct pair p;

	(void)state;
	shake(&p);
	for (size_t bit = 0; bit < 8 * sizeof(p.welcome); bit++) {
		p.welcome[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_true(read_welcome(&p, p.welcome) < 0);
		p.welcome[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_int_equal(read_welcome(&p, p.welcome), 0);
}

static void a_welcome_cut_anywhere_is_refused(void **state)
{
	struct pair p;
	struct cop_frame_keys keys;
	uint64_t id;

	(void)state;
	shake(&p);
	for (size_t cut = 0; cut < sizeof(p.welcome); cut++)
		assert_int_equal(
			cop_welcome_read(&secret, p.hello, p.hello_len, p.welcome, cut, &id, &keys),
			-EBADMSG);
}

static void a_welcome_to_another_hello_is_refused(void **state)
{
	struct pair p, q;

	(void)state;
	shake(&p);
	shake(&q);
	assert_int_equal(read_welcome(&p, q.welcome), -EACCES);
	assert_int_equal(read_welcome(&q, p.welcome), -EACCES);
}

static void a_welcome_under_another_secret_is_refused(void **state)
{
	struct pair p;
	struct cop_frame_keys keys;
	uint8_t forged[COP_HELLO_MAX];
	struct cop_hello h;
	uint64_t id;

	(void)state;
	shake(&p);
	/* A peer that has another secret answers our HELLO as if it had been made under that
	 * secret. */
	assert_int_equal(cop_hello_read(&secret, p.hello, p.hello_len, &h), 0);
	assert_int_equal(cop_hello_write(&other_secret, &h, forged), p.hello_len);
	assert_int_equal(cop_welcome_write(&other_secret, forged, p.hello_len, 9, p.welcome, &keys),
		COP_WELCOME_LEN);
	assert_int_equal(cop_welcome_read(&secret, p.hello, p.hello_len, p.welcome, COP_WELCOME_LEN,
				 &id, &keys),
		-EACCES);
}

static void a_refusal_is_distinguished_from_an_answer(void **state)
{
	struct pair p;
	struct cop_frame_keys keys;
	uint64_t id = 1;

	(void)state;
	shake(&p);
	assert_int_equal(cop_welcome_write(&secret, p.hello, p.hello_len, 0, p.welcome, &keys),
		COP_WELCOME_LEN);
	assert_int_equal(read_welcome(&p, p.welcome), -EPROTO);
	p.welcome[COP_WELCOME_LEN - 1] ^= 1;
	assert_int_equal(cop_welcome_read(&secret, p.hello, p.hello_len, p.welcome, COP_WELCOME_LEN,
				 &id, &keys),
		-EACCES);
	assert_int_equal(id, 1);
}

static void a_reflected_message_is_refused(void **state)
{
	struct pair p;
	struct cop_hello got;
	struct cop_frame f = {.type = COP_FRAME_REQUEST, .session = 99};
	uint8_t msg[64];
	struct cop_wr w;
	size_t len;

	(void)state;
	shake(&p);
	/* A WELCOME is not a HELLO, nor the reverse, whatever the type field says. */
	assert_int_equal(cop_hello_read(&secret, p.welcome, COP_WELCOME_LEN, &got), -EBADMSG);
	p.welcome[5] = COP_FRAME_HELLO;
	assert_true(cop_hello_read(&secret, p.welcome, COP_WELCOME_LEN, &got) < 0);
	assert_int_equal(read_welcome(&p, p.hello), -EBADMSG);
	p.hello[5] = COP_FRAME_WELCOME;
	assert_true(read_welcome(&p, p.hello) < 0);
	/* The initiator cannot open what it has sealed itself. */
	w = cop_frame_begin(msg, sizeof(msg), &f);
	len = cop_frame_seal(&p.at_initiator.tx, &w);
	assert_int_equal(cop_frame_open(&p.at_initiator.rx, msg, len, &f), -EACCES);
	assert_int_equal(cop_frame_open(&p.at_responder.rx, msg, len, &f), 0);
}

static void every_field_of_the_hello_enters_the_keys(void **state)
{
	struct cop_hello h = hello_of(3, 4), got;
	uint8_t hello[COP_HELLO_MAX], welcome[COP_WELCOME_LEN], changed[COP_HELLO_MAX];
	struct cop_frame_keys keys;
	uint64_t id;
	size_t len = cop_hello_write(&secret, &h, hello);

	(void)state;
	assert_int_equal(
		cop_welcome_write(&secret, hello, len, 9, welcome, &keys), COP_WELCOME_LEN);
	for (int i = 0; i < 6; i++) {
		got = h;
		got.from ^= i == 0;
		got.to ^= i == 1;
		got.session ^= i == 2;
		got.current ^= i == 3;
		got.nonce[31] ^= i == 4;
		if (i == 5)
			got.address = "fake://b";
		assert_int_equal(cop_hello_write(&secret, &got, changed), len);
		assert_int_equal(cop_welcome_read(&secret, changed, len, welcome, COP_WELCOME_LEN,
					 &id, &keys),
			-EACCES);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_sides_get_the_same_keys_crosswise),
		cmocka_unit_test(a_hello_says_who_and_where),
		cmocka_unit_test(two_handshakes_never_share_keys),
		cmocka_unit_test(a_message_of_one_handshake_is_refused_after_another),
		cmocka_unit_test(a_hello_under_another_secret_is_refused),
		cmocka_unit_test(a_hello_cut_anywhere_is_refused),
		cmocka_unit_test(a_hello_with_any_bit_flipped_is_refused),
		cmocka_unit_test(an_address_must_be_there_and_not_too_long),
		cmocka_unit_test(a_welcome_with_any_bit_flipped_is_refused),
		cmocka_unit_test(a_welcome_cut_anywhere_is_refused),
		cmocka_unit_test(a_welcome_to_another_hello_is_refused),
		cmocka_unit_test(a_welcome_under_another_secret_is_refused),
		cmocka_unit_test(a_refusal_is_distinguished_from_an_answer),
		cmocka_unit_test(a_reflected_message_is_refused),
		cmocka_unit_test(every_field_of_the_hello_enters_the_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
