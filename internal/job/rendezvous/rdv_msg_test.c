/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "job/rendezvous/rdv_priv.h"

/* Enough of a keyed hash for a test: four hashes, seeded by the key. */
static void test_mac(void *ctx, const void *data, size_t len, uint8_t out[32])
{
	for (uint64_t i = 0; i < 4; i++) {
		uint64_t h = cop_hash64(data, len, *(uint64_t *)ctx + i);

		memcpy(out + 8 * i, &h, 8);
	}
}

static uint64_t ours = 1000, theirs = 2000;
static const struct rdv_key key = {test_mac, &ours}, other_key = {test_mac, &theirs};
/* Where the ask comes from, and how long it is. */
#define ASKER "ofi+tcp://127.0.0.7:70"
#define ASK_BYTES (RDV_FIXED + sizeof(ASKER) - 1)

static uint8_t nonce[RDV_NONCE], ask[RDV_MESSAGE_MAX], answer[RDV_MESSAGE_MAX];
static char address[COP_JOB_ADDRESS_MAX + 1];

static int build(const char *text)
{
	assert_int_equal(cop_rdv_ask_build(&key, "n1:7720", ASKER, nonce, ask), ASK_BYTES);
	return cop_rdv_answer_build(&key, "n1:7720", ask, text, answer);
}

static void an_ask_is_incomplete_at_every_shorter_length(void **state)
{
	(void)state;
	build("x");
	for (size_t len = 0; len < ASK_BYTES; len++)
		assert_int_equal(cop_rdv_ask_check(&key, "n1:7720", ask, len, address), 0);
	assert_int_equal(cop_rdv_ask_check(&key, "n1:7720", ask, ASK_BYTES, address), ASK_BYTES);
	assert_string_equal(address, ASKER);
	assert_int_equal(cop_rdv_ask_check(&key, "n1:7720", ask, ASK_BYTES + 1, address), -EBADMSG);
}

static void an_ask_with_any_byte_changed_is_refused(void **state)
{
	(void)state;
	build("x");
	for (size_t i = 0; i < ASK_BYTES; i++) {
		/* A longer length waits for bytes that never come. */
		int want = i == 6 ? 0 : i < RDV_HEAD ? -EBADMSG : -EACCES;

		ask[i] ^= 1;
		assert_int_equal(cop_rdv_ask_check(&key, "n1:7720", ask, ASK_BYTES, address), want);
		ask[i] ^= 1;
	}
}

static void an_unverified_peer_is_known_by_the_first_wrong_byte(void **state)
{
	(void)state;
	assert_int_equal(
		cop_rdv_ask_check(&key, "n1:7720", (const uint8_t *)"G", 1, address), -EBADMSG);
	assert_int_equal(
		cop_rdv_ask_check(&key, "n1:7720", (const uint8_t *)"COPS", 4, address), -EBADMSG);
	assert_int_equal(
		cop_rdv_answer_check(&key, "n1:7720", nonce, (const uint8_t *)"HTTP", 4, address),
		-EBADMSG);
}

static void an_ask_with_another_secret_or_for_another_host_is_refused(void **state)
{
	(void)state;
	build("x");
	assert_int_equal(
		cop_rdv_ask_check(&other_key, "n1:7720", ask, ASK_BYTES, address), -EACCES);
	assert_int_equal(cop_rdv_ask_check(&key, "n2:7720", ask, ASK_BYTES, address), -EACCES);
	assert_int_equal(cop_rdv_ask_check(&key, "n1:7721", ask, ASK_BYTES, address), -EACCES);
}

static void an_ask_is_not_an_answer(void **state)
{
	(void)state;
	build("x");
	assert_int_equal(
		cop_rdv_answer_check(&key, "n1:7720", nonce, ask, ASK_BYTES, address), -EBADMSG);
}

static void an_answer_carries_the_address(void **state)
{
	int len = build("ofi+cxi://0x00916600");

	(void)state;
	assert_int_equal(len, RDV_FIXED + 20);
	for (int i = 0; i < len; i++)
		assert_int_equal(
			cop_rdv_answer_check(&key, "n1:7720", nonce, answer, (size_t)i, address),
			0);
	assert_int_equal(
		cop_rdv_answer_check(&key, "n1:7720", nonce, answer, (size_t)len, address), len);
	assert_string_equal(address, "ofi+cxi://0x00916600");
}

static void an_answer_with_any_byte_changed_is_refused(void **state)
{
	int len = build("ofi+tcp://127.0.0.1:5");

	(void)state;
	for (int i = 0; i < len; i++) {
		int rc;

		answer[i] ^= 1;
		rc = cop_rdv_answer_check(&key, "n1:7720", nonce, answer, (size_t)len, address);
		/* A longer length waits for bytes that never come. */
		assert_true(rc < 0 || (i == 6 && rc == 0));
		answer[i] ^= 1;
	}
	assert_int_equal(
		cop_rdv_answer_check(&key, "n1:7720", nonce, answer, (size_t)len + 1, address),
		-EBADMSG);
}

static void an_answer_to_another_question_is_refused(void **state)
{
	uint8_t old[RDV_NONCE];
	int len;

	(void)state;
	build("x");
	memcpy(old, nonce, sizeof(old));
	len = build("x");
	assert_memory_not_equal(old, nonce, sizeof(old));
	assert_int_equal(
		cop_rdv_answer_check(&key, "n1:7720", old, answer, (size_t)len, address), -EACCES);
	assert_int_equal(cop_rdv_answer_check(&key, "n2:7720", nonce, answer, (size_t)len, address),
		-EACCES);
}

static void a_malformed_address_is_not_sent(void **state)
{
	char text[300];

	(void)state;
	memset(text, 'x', sizeof(text));
	text[256] = '\0';
	assert_int_equal(build(""), -EINVAL);
	assert_int_equal(build("a b"), -EINVAL);
	assert_int_equal(build(text), -EINVAL);
	text[255] = '\0';
	assert_int_equal(build(text), RDV_MESSAGE_MAX);
	assert_int_equal(
		cop_rdv_answer_check(&key, "n1:7720", nonce, answer, RDV_MESSAGE_MAX, address),
		RDV_MESSAGE_MAX);
	assert_string_equal(address, text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ask_is_incomplete_at_every_shorter_length),
		cmocka_unit_test(an_ask_with_any_byte_changed_is_refused),
		cmocka_unit_test(an_unverified_peer_is_known_by_the_first_wrong_byte),
		cmocka_unit_test(an_ask_with_another_secret_or_for_another_host_is_refused),
		cmocka_unit_test(an_ask_is_not_an_answer),
		cmocka_unit_test(an_answer_carries_the_address),
		cmocka_unit_test(an_answer_with_any_byte_changed_is_refused),
		cmocka_unit_test(an_answer_to_another_question_is_refused),
		cmocka_unit_test(a_malformed_address_is_not_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
