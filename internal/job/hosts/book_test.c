/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "job/hosts/hosts_priv.h"

#define BOOK_LINES 10000

static struct cop_job_hosts hosts;
static char *address[BOOK_LINES];
static struct cop_err err;

static void drop_addresses(void)
{
	for (size_t i = 0; i < BOOK_LINES; i++) {
		free(address[i]);
		address[i] = NULL;
	}
}

static int teardown(void **state)
{
	(void)state;
	drop_addresses();
	cop_job_hosts_free(&hosts);
	return 0;
}

static void given(const char *list)
{
	cop_job_hosts_free(&hosts);
	assert_int_equal(cop_job_hosts_load(list, 7720, &hosts, NULL), 0);
}

static int parse(const char *text)
{
	drop_addresses();
	err = (struct cop_err){0};
	return cop_job_book_parse(text, strlen(text), "book", &hosts, NULL, address, &err);
}

static void an_empty_book_is_refused_with_the_missing_hosts(void **state)
{
	(void)state;
	given("a,b");
	assert_int_equal(parse(""), -ENOENT);
	assert_string_equal(err.text, "address book book: no address of a, b");
	assert_int_equal(parse("b x\n"), -ENOENT);
	assert_string_equal(err.text, "address book book: no address of a");
	assert_null(address[1]);
}

static void a_host_whose_address_is_NA_is_missing(void **state)
{
	(void)state;
	given("a,b");
	assert_int_equal(parse("a NA\nb x\n"), -ENOENT);
	assert_string_equal(err.text, "address book book: no address of a");
	assert_int_equal(parse("a NA\nb x\na NAb\n"), 0);
	assert_string_equal(address[0], "NAb");
}

static void at_most_8_missing_hosts_are_named(void **state)
{
	(void)state;
	given("n[1-20]");
	assert_int_equal(parse("n1 x"), -ENOENT);
	assert_string_equal(err.text,
		"address book book: no address of n2, n3, n4, n5, n6, n7, n8, n9 and 11 more");
}

static void a_bad_line_is_named_by_its_number(void **state)
{
	static const char *const bad[] = {
		"a", "a x y", "a: x", "a:0 x", ":::1 x", "a/b x", "a \x01", "-a x", "a \xc3\xa4"};

	(void)state;
	given("a");
	for (size_t i = 0; i < COP_ARRAY_SIZE(bad); i++) {
		char text[64];

		snprintf(text, sizeof(text), "# head\na x\n%s\n", bad[i]);
		assert_int_equal(parse(text), -EINVAL);
		assert_non_null(strstr(err.text, "address book book: line 3: '"));
	}
}

static void an_address_has_at_most_255_bytes(void **state)
{
	char text[300];

	(void)state;
	given("a");
	memset(text, 'x', sizeof(text));
	memcpy(text, "a ", 2);
	text[2 + 256] = '\0';
	assert_int_equal(parse(text), -EINVAL);
	text[2 + 255] = '\0';
	assert_int_equal(parse(text), 0);
	assert_int_equal(strlen(address[0]), 255);
}

static void two_addresses_of_a_host_of_the_job_are_refused(void **state)
{
	(void)state;
	given("a");
	assert_int_equal(parse("a x\nb y\na z\n"), -EINVAL);
	assert_string_equal(err.text, "address book book: lines 1 and 3 give a two addresses");
	assert_int_equal(parse("a x\nb y\nb z\na x\n"), 0);
}

static void addresses_come_in_the_order_of_the_hosts_as_they_are(void **state)
{
	(void)state;
	given("x4000c0s1b0n0,x4000c0s0b0n0");
	assert_int_equal(parse("# Aurora\n\nx4000c0s0b0n0 ofi+cxi://0x00916600\r\n"
			       "other ofi+cxi://0x1\n  x4000c0s1b0n0\tofi+cxi://0x0060e600"),
		0);
	assert_string_equal(address[0], "ofi+cxi://0x0060e600");
	assert_string_equal(address[1], "ofi+cxi://0x00916600");
}

static void a_short_name_finds_a_long_one_and_the_other_way_round(void **state)
{
	(void)state;
	given("a.site.org,b");
	assert_int_equal(parse("a x\nb.hsn.site y\n"), 0);
	assert_string_equal(address[0], "x");
	assert_string_equal(address[1], "y");
	given("a.one");
	assert_int_equal(parse("a.two x\n"), -ENOENT);
	assert_int_equal(parse("a x\na.one y\n"), 0);
	assert_string_equal(address[0], "y");
	assert_int_equal(parse("a.one y\na x\n"), 0);
	assert_string_equal(address[0], "y");
}

static void a_short_name_of_two_hosts_is_neither(void **state)
{
	(void)state;
	given("a.one,a.two");
	assert_int_equal(parse("a x\n"), -ENOENT);
	assert_int_equal(parse("a.one x\na.two y\n"), 0);
	assert_string_equal(address[1], "y");
}

static void addresses_of_the_interface_have_no_short_form(void **state)
{
	(void)state;
	given("127.0.0.11,127.0.0.12");
	assert_int_equal(parse("127 x\n"), -ENOENT);
	assert_int_equal(parse("127.0.0.11 x\n127.0.0.12 y\n"), 0);
	assert_string_equal(address[1], "y");
}

static void addresses_of_ipv6_are_found_in_every_spelling(void **state)
{
	(void)state;
	given("fd77::1,[fd77::2]:1,[fd77::2]:2");
	assert_int_equal(parse("FD77:0::1 x\n[fd77::2]:1 y\n[fd77:0:0::2]:2 z\n"), 0);
	assert_string_equal(address[0], "x");
	assert_string_equal(address[1], "y");
	assert_string_equal(address[2], "z");
	assert_int_equal(parse("fd77::1 x\nfd77::2 y\n"), -ENOENT);
	assert_string_equal(err.text, "address book book: no address of [fd77::2]:1, [fd77::2]:2");
}

static void nodes_that_share_a_name_are_told_apart_by_port(void **state)
{
	(void)state;
	given("a:1,a:2,b");
	assert_int_equal(parse("a x\nb z\n"), -ENOENT);
	assert_string_equal(err.text, "address book book: no address of a:1, a:2");
	assert_int_equal(parse("a:2 y\na:1 x\nb z\n"), 0);
	assert_string_equal(address[0], "x");
	assert_string_equal(address[1], "y");
}

static void a_missing_book_is_named(void **state)
{
	(void)state;
	given("a");
	assert_int_equal(cop_job_book_load("/nowhere/book", &hosts, NULL, address, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nowhere/book"));
}

static void a_book_that_is_written_can_be_read(void **state)
{
	char path[] = "/tmp/cop_book_test.XXXXXX", *text;
	char *known[] = {
		(char *)"ofi+tcp://127.0.0.1:1", (char *)"ofi+tcp://127.0.0.1:2", (char *)"z"};
	size_t len;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	given("a:1,a:2,b");
	assert_int_equal(cop_job_book_write(path, &hosts, known, &err), 0);
	assert_int_equal(cop_read_file(path, 4096, &text, &len), 0);
	assert_string_equal(text, "a:1 ofi+tcp://127.0.0.1:1\na:2 ofi+tcp://127.0.0.1:2\nb z\n");
	free(text);
	assert_int_equal(cop_job_book_load(path, &hosts, NULL, address, &err), 0);
	for (size_t i = 0; i < 3; i++)
		assert_string_equal(address[i], known[i]);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(cop_job_book_write("/nowhere/book", &hosts, known, &err), -ENOENT);
}

/* Processor time, because other processes use the machine too. */
static uint64_t parse_ns(const struct cop_buf *text, unsigned lines)
{
	struct timespec before, after;
	char list[32];

	snprintf(list, sizeof(list), "nid[00000-%05u]", lines - 1);
	given(list);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
	assert_int_equal(
		cop_job_book_parse(text->data, text->len, "b", &hosts, NULL, address, &err), 0);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
	assert_string_equal(address[460], "ofi+cxi://0x000001cc");
	return (uint64_t)(after.tv_sec - before.tv_sec) * COP_NS_PER_S + (uint64_t)after.tv_nsec -
	       (uint64_t)before.tv_nsec;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return COP_MIN(a, b);
}

static void ten_times_the_hosts_do_not_take_ten_times_as_long(void **state)
{
	struct cop_buf text = {0};
	uint64_t few = UINT64_MAX / 8, many = UINT64_MAX;

	for (int i = BOOK_LINES - 1; i >= 0; i--)
		cop_buf_printf(&text, "nid%05d ofi+cxi://0x%08x\n", i, i);
	assert_false(text.failed);
	/* Another process on the processor empties its caches now and then: the minimum of several
	 * rounds is the parser's own time. */
	for (int round = 0; round < 10 && many >= 6 * few; round++) {
		few = least(few, parse_ns(&text, BOOK_LINES / 10));
		teardown(state);
		many = least(many, parse_ns(&text, BOOK_LINES));
		teardown(state);
	}
	assert_true(many < 6 * few);
	cop_buf_free(&text);
}

#define TEST(f) cmocka_unit_test_teardown(f, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_empty_book_is_refused_with_the_missing_hosts),
		TEST(a_host_whose_address_is_NA_is_missing),
		TEST(at_most_8_missing_hosts_are_named),
		TEST(a_bad_line_is_named_by_its_number),
		TEST(an_address_has_at_most_255_bytes),
		TEST(two_addresses_of_a_host_of_the_job_are_refused),
		TEST(addresses_come_in_the_order_of_the_hosts_as_they_are),
		TEST(a_short_name_finds_a_long_one_and_the_other_way_round),
		TEST(a_short_name_of_two_hosts_is_neither),
		TEST(addresses_of_the_interface_have_no_short_form),
		TEST(addresses_of_ipv6_are_found_in_every_spelling),
		TEST(nodes_that_share_a_name_are_told_apart_by_port),
		TEST(a_missing_book_is_named),
		TEST(a_book_that_is_written_can_be_read),
		TEST(ten_times_the_hosts_do_not_take_ten_times_as_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
