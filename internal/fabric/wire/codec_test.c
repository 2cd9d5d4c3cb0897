/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "fabric/wire/wire.h"

static void an_empty_message_reads_as_zero_and_is_done(void **state)
{
	struct cop_rd r = cop_rd_init("", 0);
	size_t len = 9;

	(void)state;
	assert_true(cop_rd_done(&r));
	cop_rd_rest(&r, &len);
	assert_int_equal(len, 0);
	assert_true(cop_rd_done(&r));
	assert_int_equal(cop_rd_u8(&r), 0);
	assert_false(cop_rd_done(&r));
}

static void integers_are_little_endian(void **state)
{
	uint8_t buf[15];
	struct cop_wr w = cop_wr_init(buf, sizeof(buf));
	static const uint8_t want[15] = {0xfe, 0x02, 0x01, 0x06, 0x05, 0x04, 0x03, 0x0e, 0x0d, 0x0c,
		0x0b, 0x0a, 0x09, 0x08, 0xf7};
	struct cop_rd r;

	(void)state;
	cop_wr_u8(&w, 0xfe);
	cop_wr_u16(&w, 0x0102);
	cop_wr_u32(&w, 0x03040506);
	cop_wr_u64(&w, 0xf708090a0b0c0d0eULL);
	assert_false(w.bad);
	assert_int_equal(cop_wr_len(&w), 15);
	assert_memory_equal(buf, want, 15);
	r = cop_rd_init(buf, 15);
	assert_int_equal(cop_rd_u8(&r), 0xfe);
	assert_int_equal(cop_rd_u16(&r), 0x0102);
	assert_int_equal(cop_rd_u32(&r), 0x03040506);
	assert_true(cop_rd_u64(&r) == 0xf708090a0b0c0d0eULL);
	assert_true(cop_rd_done(&r));
}

static void a_short_read_spoils_everything_after_it(void **state)
{
	struct cop_rd r = cop_rd_init("abc", 3);
	size_t len = 5;

	(void)state;
	assert_int_equal(cop_rd_u32(&r), 0);
	assert_true(r.bad);
	assert_int_equal(cop_rd_u8(&r), 0);
	assert_non_null(cop_rd_str(&r, &len));
	assert_int_equal(len, 0);
	cop_rd_rest(&r, &len);
	assert_int_equal(len, 0);
	assert_false(cop_rd_done(&r));
}

static void a_string_longer_than_the_message_is_refused(void **state)
{
	static const uint8_t msg[] = {4, 0, 'a', 'b', 'c'};
	size_t len = 5;

	(void)state;
	for (size_t cut = 0; cut <= sizeof(msg); cut++) {
		struct cop_rd r = cop_rd_init(msg, cut);

		assert_non_null(cop_rd_str(&r, &len));
		assert_int_equal(len, 0);
		assert_true(r.bad);
	}
}

static void strings_and_the_rest_come_back(void **state)
{
	uint8_t buf[32];
	struct cop_wr w = cop_wr_init(buf, sizeof(buf));
	struct cop_rd r;
	const char *s;
	const void *rest;
	size_t len;

	(void)state;
	cop_wr_str(&w, "", 0);
	cop_wr_str(&w, "a\0b", 3);
	cop_wr_bytes(&w, "tail", 4);
	assert_false(w.bad);
	r = cop_rd_init(buf, cop_wr_len(&w));
	cop_rd_str(&r, &len);
	assert_int_equal(len, 0);
	s = cop_rd_str(&r, &len);
	assert_int_equal(len, 3);
	assert_memory_equal(s, "a\0b", 3);
	rest = cop_rd_rest(&r, &len);
	assert_int_equal(len, 4);
	assert_memory_equal(rest, "tail", 4);
	assert_true(cop_rd_done(&r));
}

static void bytes_left_over_are_noticed(void **state)
{
	struct cop_rd r = cop_rd_init("ab", 2);

	(void)state;
	cop_rd_u8(&r);
	assert_false(cop_rd_done(&r));
	cop_rd_u8(&r);
	assert_true(cop_rd_done(&r));
}

static void a_full_writer_writes_nothing_more(void **state)
{
	uint8_t buf[6] = {0, 0, 0, 0, 0x55, 0x55};
	struct cop_wr w = cop_wr_init(buf, 4);

	(void)state;
	cop_wr_u16(&w, 0x1111);
	cop_wr_u32(&w, 0x22222222);
	assert_true(w.bad);
	cop_wr_u8(&w, 0x33);
	assert_int_equal(cop_wr_len(&w), 2);
	assert_int_equal(buf[2], 0);
	assert_int_equal(buf[4], 0x55);
}

static void a_string_that_does_not_fit_leaves_no_half_of_it(void **state)
{
	uint8_t buf[8] = {0};
	struct cop_wr w = cop_wr_init(buf, 4);
	static char longer[UINT16_MAX + 1];
	static uint8_t big[UINT16_MAX + 100];

	(void)state;
	cop_wr_str(&w, "abc", 3);
	assert_true(w.bad);
	assert_int_equal(cop_wr_len(&w), 0);
	w = cop_wr_init(big, sizeof(big));
	cop_wr_str(&w, longer, sizeof(longer));
	assert_true(w.bad);
	w = cop_wr_init(big, sizeof(big));
	cop_wr_str(&w, longer, UINT16_MAX);
	assert_false(w.bad);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_message_reads_as_zero_and_is_done),
		cmocka_unit_test(integers_are_little_endian),
		cmocka_unit_test(a_short_read_spoils_everything_after_it),
		cmocka_unit_test(a_string_longer_than_the_message_is_refused),
		cmocka_unit_test(strings_and_the_rest_come_back),
		cmocka_unit_test(bytes_left_over_are_noticed),
		cmocka_unit_test(a_full_writer_writes_nothing_more),
		cmocka_unit_test(a_string_that_does_not_fit_leaves_no_half_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
