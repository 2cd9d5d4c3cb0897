/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "inflate.h"

/* Returns text of n lines, which the caller frees. */
static struct cop_buf lines(unsigned n)
{
	struct cop_buf b = {0};

	for (unsigned i = 0; i < n; i++)
		cop_buf_printf(&b, "line %u of a file that repeats itself\n", i);
	assert_false(b.failed);
	return b;
}

static void add_at_level(struct cop_buf *out, const char *data, size_t len, int level)
{
	uLong bound;
	z_stream z = {0};
	char *room;

	assert_int_equal(deflateInit2(&z, level, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	bound = deflateBound(&z, len) + 64;
	room = malloc(bound);
	assert_non_null(room);
	z.next_in = (Bytef *)data;
	z.avail_in = (uInt)len;
	z.next_out = (Bytef *)room;
	z.avail_out = (uInt)bound;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	cop_buf_add(out, room, z.total_out);
	deflateEnd(&z);
	free(room);
}

/* Appends one gzip member with this content. */
static void add_member(struct cop_buf *out, const char *data, size_t len)
{
	add_at_level(out, data, len, 6);
}

/* The same, uncompressed. */
static void store_member(struct cop_buf *out, const char *data, size_t len)
{
	add_at_level(out, data, len, 0);
}

static int file_with(const char *data, size_t len)
{
	char name[] = "/tmp/copper-inflate.XXXXXX";
	int fd = mkstemp(name);

	assert_true(fd >= 0);
	unlink(name);
	assert_int_equal(cop_write_full(fd, data, len), len);
	return fd;
}

/* Number of threads besides the reader, in half of the runs. */
static unsigned helpers;

struct beside {
	struct cop_inflate *in;
	_Atomic bool stop;
};

static void *help(void *arg)
{
	struct beside *b = arg;

	while (!atomic_load(&b->stop))
		cop_inflate_ahead(b->in, 4);
	return NULL;
}

/* Returns the whole content, read in steps. */
static struct cop_buf read_all(const struct cop_buf *file, size_t step, const char **fault)
{
	int fd = file_with(file->data, file->len);
	struct beside beside = {0};
	struct cop_buf got = {0};
	char *data = malloc(step);
	pthread_t thread[4];
	ssize_t n;

	assert_int_equal(cop_inflate_open(fd, &beside.in), 0);
	n = cop_inflate_read(beside.in, data, step);
	for (unsigned i = 0; i < helpers; i++)
		assert_int_equal(cop_thread_start(&thread[i], "help", help, &beside), 0);
	for (; n > 0; n = cop_inflate_read(beside.in, data, step))
		cop_buf_add(&got, data, (size_t)n);
	assert_int_equal(n, 0);
	assert_int_equal(cop_inflate_read(beside.in, data, step), 0);
	atomic_store(&beside.stop, true);
	for (unsigned i = 0; i < helpers; i++)
		pthread_join(thread[i], NULL);
	*fault = cop_inflate_fault(beside.in);
	cop_inflate_close(beside.in);
	free(data);
	close(fd);
	return got;
}

static void check(const struct cop_buf *file, const struct cop_buf *want, const char *why)
{
	static const size_t steps[] = {7, 4096, 1 << 20};

	for (size_t i = 0; i < COP_ARRAY_SIZE(steps); i++) {
		const char *fault;
		struct cop_buf got = read_all(file, steps[i], &fault);

		assert_int_equal(got.len, want->len);
		assert_true(!want->len || !memcmp(got.data, want->data, want->len));
		if (why)
			assert_string_equal(fault, why);
		else
			assert_null(fault);
		cop_buf_free(&got);
	}
}

static void a_plain_file_comes_as_it_is(void **state)
{
	struct cop_buf text = lines(20000), none = {0}, byte = {0};

	(void)state;
	cop_buf_str(&byte, "\x1f");
	check(&text, &text, NULL);
	check(&none, &none, NULL);
	check(&byte, &byte, NULL);
	cop_buf_free(&text);
	cop_buf_free(&byte);
}

static void one_member_or_many_are_one_stream(void **state)
{
	struct cop_buf text = lines(20000), one = {0}, many = {0};

	(void)state;
	add_member(&one, text.data, text.len);
	check(&one, &text, NULL);
	for (size_t at = 0; at < text.len; at += 9973)
		add_member(&many, text.data + at, COP_MIN((size_t)9973, text.len - at));
	check(&many, &text, NULL);
	cop_buf_free(&text);
	cop_buf_free(&one);
	cop_buf_free(&many);
}

static void zeros_after_the_last_member_count_for_nothing(void **state)
{
	static const char zeros[700000];
	struct cop_buf text = lines(10), gz = {0};

	(void)state;
	add_member(&gz, text.data, text.len);
	cop_buf_add(&gz, zeros, sizeof(zeros));
	check(&gz, &text, NULL);
	cop_buf_str(&gz, "?");
	check(&gz, &text, "something that is not gzip follows the gzip data");
	cop_buf_free(&text);
	cop_buf_free(&gz);
}

static void what_is_before_the_cut_comes_out(void **state)
{
	struct cop_buf text = lines(3000), gz = {0}, got;
	const char *fault;
	size_t last = 0;

	(void)state;
	add_member(&gz, text.data, text.len / 2);
	add_member(&gz, text.data + text.len / 2, text.len - text.len / 2);
	for (size_t cut = 2; cut < gz.len; cut += 97) {
		struct cop_buf part = {.data = gz.data, .len = cut};

		got = read_all(&part, 1000, &fault);
		assert_true(got.len >= last && got.len <= text.len);
		assert_true(!got.len || !memcmp(got.data, text.data, got.len));
		last = got.len;
		if (fault)
			assert_string_equal(fault, "the gzip data is cut off");
		cop_buf_free(&got);
	}
	assert_true(last > text.len / 2);
	cop_buf_free(&text);
	cop_buf_free(&gz);
}

static void damage_ends_the_stream_and_is_told(void **state)
{
	struct cop_buf text = lines(20000), gz = {0}, got, none = {0};
	const char *fault;

	(void)state;
	add_member(&gz, text.data, text.len);
	memset(gz.data + gz.len / 2, 0x55, 64);
	got = read_all(&gz, 4096, &fault);
	assert_string_equal(fault, "the gzip data is damaged");
	assert_true(got.len < text.len);
	cop_buf_free(&got);
	cop_buf_str(&none, "\x1f\x8bno gzip at all");
	got = read_all(&none, 4096, &fault);
	assert_string_equal(fault, "the gzip data is damaged");
	assert_int_equal(got.len, 0);
	cop_buf_free(&none);
	cop_buf_free(&text);
	cop_buf_free(&gz);
}

/* Returns how many members can be inflated ahead once the first byte has been read, and checks that
 * the content stays the same. */
static unsigned ahead_of(const struct cop_buf *file, const struct cop_buf *want, unsigned most)
{
	int fd = file_with(file->data, file->len);
	char *data = malloc(want->len + 1);
	struct cop_inflate *in;
	unsigned n = 0;

	assert_int_equal(cop_inflate_open(fd, &in), 0);
	assert_int_equal(cop_inflate_read(in, data, 1), 1);
	while (cop_inflate_ahead(in, most))
		n++;
	assert_int_equal(cop_inflate_read(in, data + 1, want->len), want->len - 1);
	assert_memory_equal(data, want->data, want->len);
	assert_null(cop_inflate_fault(in));
	cop_inflate_close(in);
	close(fd);
	free(data);
	return n;
}

static void members_further_on_are_inflated_ahead(void **state)
{
	struct cop_buf text = lines(20000), gz = {0};

	(void)state;
	for (size_t i = 0; i < 10; i++)
		add_member(&gz, text.data + text.len / 10 * i,
			i < 9 ? text.len / 10 : text.len - text.len / 10 * 9);
	assert_int_equal(ahead_of(&gz, &text, 0), 0);
	assert_int_equal(ahead_of(&gz, &text, 3), 3);
	assert_int_equal(ahead_of(&gz, &text, 100), 9);
	assert_int_equal(ahead_of(&text, &text, 100), 0);
	cop_buf_free(&text);
	cop_buf_free(&gz);
}

/* Members: one whose uncompressed content is a whole member, one that is too large, empty ones, and
 * zeros in between. */
static void a_guess_that_is_wrong_changes_nothing(void **state)
{
	static const char zeros[1000];
	struct cop_buf text = lines(52000), inner = {0}, want = {0}, gz = {0};

	(void)state;
	assert_true(text.len > COP_INFLATE_AHEAD_BYTES);
	add_member(&inner, text.data, 50000);
	for (unsigned i = 0; i < 5; i++) {
		cop_buf_add(&want, text.data, 1000);
		add_member(&gz, text.data, 1000);
		cop_buf_add(&want, inner.data, inner.len);
		store_member(&gz, inner.data, inner.len);
		add_member(&gz, "", 0);
		if (i == 2) {
			add_member(&gz, text.data, text.len);
			cop_buf_add(&want, text.data, text.len);
			cop_buf_add(&gz, zeros, sizeof(zeros));
		}
	}
	check(&gz, &want, NULL);
	assert_in_range(ahead_of(&gz, &want, 3), 3, 3);
	cop_buf_free(&text);
	cop_buf_free(&inner);
	cop_buf_free(&want);
	cop_buf_free(&gz);
}

/* The search for the next start scans a large member while the reader finishes small ones. */
static void a_long_search_beside_short_members(void **state)
{
	struct cop_buf text = lines(52000), want = {0}, gz = {0};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		for (size_t at = 0; at < 200; at++) {
			cop_buf_add(&want, text.data + at, 30);
			add_member(&gz, text.data + at, 30);
		}
		cop_buf_add(&want, text.data, text.len);
		store_member(&gz, text.data, text.len);
	}
	check(&gz, &want, NULL);
	cop_buf_free(&text);
	cop_buf_free(&want);
	cop_buf_free(&gz);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plain_file_comes_as_it_is),
		cmocka_unit_test(one_member_or_many_are_one_stream),
		cmocka_unit_test(zeros_after_the_last_member_count_for_nothing),
		cmocka_unit_test(what_is_before_the_cut_comes_out),
		cmocka_unit_test(damage_ends_the_stream_and_is_told),
		cmocka_unit_test(members_further_on_are_inflated_ahead),
		cmocka_unit_test(a_guess_that_is_wrong_changes_nothing),
		cmocka_unit_test(a_long_search_beside_short_members),
	};
	int alone = cmocka_run_group_tests_name("alone", tests, NULL, NULL);

	helpers = 3;
	return alone + cmocka_run_group_tests_name("with helpers", tests, NULL, NULL);
}
