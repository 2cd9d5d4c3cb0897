/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <time.h>
#include <string.h>

#include "base/base/base.h"

static void an_error_is_a_code_and_a_sentence_that_is_cut_to_fit(void **state)
{
	struct cop_err err = {0};
	char text[3000];

	(void)state;
	assert_int_equal(cop_err_set(&err, ENOENT, "no %s in %d", "x", 3), -ENOENT);
	assert_int_equal(err.code, ENOENT);
	assert_string_equal(err.text, "no x in 3");
	memset(text, 't', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(cop_err_set(&err, EIO, "%s", text), -EIO);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	assert_int_equal(cop_err_set(NULL, EIO, "%s", text), -EIO);
}

static void the_clock_does_not_go_back(void **state)
{
	uint64_t before = cop_now_ns();

	(void)state;
	for (int i = 0; i < 1000; i++) {
		uint64_t now = cop_now_ns();

		assert_true(now >= before);
		before = now;
	}
	assert_true(cop_now_ms() >= before / COP_NS_PER_MS);
}

static void numbers_are_decimal_digits_and_nothing_else(void **state)
{
	static const char *const bad[] = {
		"", " 1", "1 ", "+1", "-1", "0x10", "1.5", "1e3", "a", "\n"};
	uint64_t v = 7;

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(bad); i++)
		assert_int_equal(cop_parse_u64(bad[i], &v), -EINVAL);
	assert_int_equal(cop_parse_u64("18446744073709551616", &v), -ERANGE);
	assert_int_equal(cop_parse_u64("99999999999999999999999", &v), -ERANGE);
	assert_int_equal(v, 7);
	assert_int_equal(cop_parse_u64("18446744073709551615", &v), 0);
	assert_true(v == UINT64_MAX);
	assert_int_equal(cop_parse_u64("0", &v), 0);
	assert_int_equal(v, 0);
	assert_int_equal(cop_parse_u64("007", &v), 0);
	assert_int_equal(v, 7);
}

static void sizes_have_binary_units_in_any_spelling(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {{"0", 0}, {"4096", 4096}, {"64K", 65536}, {"64k", 65536}, {"64KB", 65536},
		{"64KiB", 65536}, {"16M", 16 << 20}, {"2G", 2ull << 30}, {"1T", 1ull << 40},
		{"5B", 5}, {"16777215T", 16777215ull << 40}};
	static const char *const bad[] = {
		"", "K", "1KK", "1 K", "1.5G", "-1", "1P", "1Kx", "1BB", "1iB"};
	uint64_t v = 7;

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(good); i++) {
		assert_int_equal(cop_parse_size(good[i].text, &v), 0);
		assert_true(v == good[i].bytes);
	}
	v = 7;
	for (size_t i = 0; i < COP_ARRAY_SIZE(bad); i++)
		assert_int_equal(cop_parse_size(bad[i], &v), -EINVAL);
	assert_int_equal(cop_parse_size("16777216T", &v), -ERANGE);
	assert_int_equal(cop_parse_size("18446744073709551616", &v), -ERANGE);
	assert_int_equal(v, 7);
}

static void sizes_are_written_as_people_read_them(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} rows[] = {{0, "0 B"}, {1023, "1023 B"}, {1024, "1.0 KiB"}, {1536, "1.5 KiB"},
		{3ull << 30, "3.0 GiB"}, {UINT64_MAX, "16.0 EiB"}};
	char out[16];

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(rows); i++)
		assert_string_equal(cop_format_size(rows[i].bytes, out), rows[i].text);
	/* No size prints longer than the buffer. */
	for (unsigned shift = 0; shift < 64; shift++)
		assert_true(strlen(cop_format_size(((uint64_t)1 << shift) - 1, out)) < 15);
}

static void hashes_depend_on_bytes_length_and_seed(void **state)
{
	(void)state;
	assert_true(cop_hash64("abc", 3, 0) == cop_hash64("abcd", 3, 0));
	assert_true(cop_hash64("abc", 3, 0) != cop_hash64("abc", 2, 0));
	assert_true(cop_hash64("abc", 3, 0) != cop_hash64("abc", 3, 1));
	assert_true(cop_hash64("", 0, 0) != cop_hash64("", 0, 1));
	/* XXH3-64 of empty input: stored keys and checksums must not change. */
	assert_true(cop_hash64("", 0, 0) == 0x2d06800538d394c2ull);
}

struct item {
	int value;
	struct cop_list link;
};

static int pop(struct cop_list *l)
{
	struct cop_list *i = cop_list_pop_front(l);

	return i ? COP_CONTAINER_OF(i, struct item, link)->value : -1;
}

static void lists_keep_their_order(void **state)
{
	struct item item[4] = {{.value = 0}, {.value = 1}, {.value = 2}, {.value = 3}};
	struct cop_list a, b;

	(void)state;
	cop_list_init(&a);
	cop_list_init(&b);
	assert_true(cop_list_empty(&a));
	assert_int_equal(pop(&a), -1);
	cop_list_push_back(&a, &item[1].link);
	cop_list_push_back(&a, &item[2].link);
	cop_list_push_front(&a, &item[0].link);
	cop_list_push_back(&b, &item[3].link);
	cop_list_splice(&a, &b);
	assert_true(cop_list_empty(&b));
	cop_list_splice(&a, &b);
	cop_list_remove(&item[1].link);
	cop_list_remove(&item[1].link);
	assert_int_equal(pop(&a), 0);
	assert_int_equal(pop(&a), 2);
	assert_int_equal(pop(&a), 3);
	assert_true(cop_list_empty(&a));
	cop_list_push_back(&b, &item[1].link);
	cop_list_splice(&a, &b);
	assert_int_equal(pop(&a), 1);
}

static void the_last_of_many_numbers_are_known(void **state)
{
	static struct cop_recent r;
	uint64_t n = 0;

	(void)state;
	assert_false(cop_recent_has(&r, &n));
	for (n = 1; n <= 3 * COP_RECENT; n++) {
		assert_false(cop_recent_has(&r, &n));
		cop_recent_add(&r, &n);
	}
	for (n = 1; n <= 3 * COP_RECENT; n++)
		assert_int_equal(cop_recent_has(&r, &n), n > 2 * COP_RECENT);
}

struct seen {
	char name[32];
	bool blocked;
};

static void *look_at_self(void *arg)
{
	struct seen *s = arg;
	sigset_t set;

	/* The creator sets the thread's name a moment after starting it. */
	for (int i = 0; i < 1000 && strncmp(s->name, "a-name", 6) != 0; i++) {
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		pthread_getname_np(pthread_self(), s->name, sizeof(s->name));
	}
	pthread_sigmask(SIG_SETMASK, NULL, &set);
	s->blocked = sigismember(&set, SIGTERM) && sigismember(&set, SIGINT);
	return NULL;
}

static void a_thread_has_a_name_that_is_cut_and_no_signals(void **state)
{
	struct seen s = {0};
	sigset_t mine;
	pthread_t t;

	(void)state;
	assert_int_equal(cop_thread_start(&t, "a-name-that-is-too-long", look_at_self, &s), 0);
	pthread_join(t, NULL);
	assert_string_equal(s.name, "a-name-that-is-");
	assert_true(s.blocked);
	pthread_sigmask(SIG_SETMASK, NULL, &mine);
	assert_false(sigismember(&mine, SIGTERM));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_error_is_a_code_and_a_sentence_that_is_cut_to_fit),
		cmocka_unit_test(the_clock_does_not_go_back),
		cmocka_unit_test(numbers_are_decimal_digits_and_nothing_else),
		cmocka_unit_test(sizes_have_binary_units_in_any_spelling),
		cmocka_unit_test(sizes_are_written_as_people_read_them),
		cmocka_unit_test(hashes_depend_on_bytes_length_and_seed),
		cmocka_unit_test(lists_keep_their_order),
		cmocka_unit_test(the_last_of_many_numbers_are_known),
		cmocka_unit_test(a_thread_has_a_name_that_is_cut_and_no_signals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
