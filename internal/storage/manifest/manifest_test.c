/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/manifest/manifest_testing.h"

/* ---- ranges ---- */

static void assert_ranges(const struct cop_manifest_item *i, const char *want)
{
	struct cop_buf b = {0};

	cop_buf_str(&b, "");
	for (unsigned k = 0; k < i->ranges; k++)
		cop_buf_printf(&b, "%s%llu-%llu", k ? "," : "",
			(unsigned long long)i->range[k].start, (unsigned long long)i->range[k].end);
	assert_string_equal(b.data ? b.data : "", want);
	cop_buf_free(&b);
}

static void ranges_merge_where_they_touch(void **state)
{
	struct cop_manifest_item i = item(COP_MANIFEST_FILE, "f");

	(void)state;
	cop_manifest_range_add(&i, 5, 5);
	assert_int_equal(i.ranges, 0);
	cop_manifest_range_add(&i, 10, 20);
	cop_manifest_range_add(&i, 30, 40);
	assert_ranges(&i, "10-20,30-40");
	cop_manifest_range_add(&i, 0, 5);
	assert_ranges(&i, "0-5,10-20,30-40");
	cop_manifest_range_add(&i, 5, 10);
	assert_ranges(&i, "0-20,30-40");
	cop_manifest_range_add(&i, 12, 13);
	assert_ranges(&i, "0-20,30-40");
	cop_manifest_range_add(&i, 19, UINT64_MAX);
	assert_ranges(&i, "0-18446744073709551615");
}

static void past_the_limit_the_smallest_gap_is_closed(void **state)
{
	struct cop_manifest_item i = item(COP_MANIFEST_FILE, "f");

	(void)state;
	for (uint64_t k = 0; k < COP_MANIFEST_RANGES_MAX; k++)
		cop_manifest_range_add(&i, k * 1000, k * 1000 + 1);
	cop_manifest_range_add(&i, 5003, 5004);
	assert_int_equal(i.ranges, COP_MANIFEST_RANGES_MAX);
	assert_int_equal(i.range[5].start, 5000);
	assert_int_equal(i.range[5].end, 5004);
	assert_int_equal(
		i.range[COP_MANIFEST_RANGES_MAX - 1].end, (COP_MANIFEST_RANGES_MAX - 1) * 1000 + 1);
}

/* In whatever order bytes come, the ranges contain all of them, are sorted and do not touch. */
static void ranges_hold_all_that_was_added(void **state)
{
	(void)state;
	srand(1);
	for (int turn = 0; turn < 300; turn++) {
		struct cop_manifest_item i = item(COP_MANIFEST_FILE, "f");
		bool wanted[1024] = {false}, exact = true, full = false;

		for (int k = 0; k < 160; k++) {
			unsigned start = (unsigned)rand() % 1000;
			unsigned end = start + (unsigned)rand() % 6;

			for (unsigned b = start; b < end; b++)
				wanted[b] = true;
			cop_manifest_range_add(&i, start, end);
			full |= i.ranges == COP_MANIFEST_RANGES_MAX;
		}
		for (unsigned k = 0; k < i.ranges; k++) {
			assert_true(i.range[k].start < i.range[k].end);
			assert_true(k == 0 || i.range[k].start > i.range[k - 1].end);
		}
		for (unsigned b = 0; b < 1024; b++) {
			bool in = false;

			for (unsigned k = 0; k < i.ranges; k++)
				in |= b >= i.range[k].start && b < i.range[k].end;
			assert_true(in || !wanted[b]);
			exact &= in == wanted[b];
		}
		assert_true(exact || full);
	}
}

/* ---- paths ---- */

static void only_relative_paths_without_dots_stand_in_a_manifest(void **state)
{
	static const char *const good[] = {
		"", "a", "a/b", "...", ".a/b.", "a\nb", "\xff\\", "lib/python3/..x"};
	static const char *const bad[] = {
		"/", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/./b"};
	char name[300];

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(good); i++)
		assert_true(cop_manifest_path_ok(good[i], strlen(good[i])));
	for (size_t i = 0; i < COP_ARRAY_SIZE(bad); i++)
		assert_false(cop_manifest_path_ok(bad[i], strlen(bad[i])));
	assert_false(cop_manifest_path_ok("a\0b", 3));
	memset(name, 'x', sizeof(name));
	assert_true(cop_manifest_path_ok(name, 255));
	assert_false(cop_manifest_path_ok(name, 256));
}

/* ---- round trips ---- */

struct text {
	struct cop_buf b;
	size_t body;
	char source[COP_MANIFEST_PATH_MAX + 1];
};

static void read_head(struct text *t)
{
	struct cop_err err = {0};

	assert_int_equal(cop_manifest_head(t->b.data, t->b.len, t->source, &t->body, &err), 0);
}

static struct cop_manifest_reader reader(const struct text *t)
{
	return (struct cop_manifest_reader){.data = t->b.data + t->body, .len = t->b.len - t->body};
}

static void odd_names_survive_the_round_trip(void **state)
{
	static const char *const names[] = {"a b", "a\nb", "\\n", "\\", "n\\", "\xff\xfe", "end 1",
		"d x", "-", "...", " ", "\r", "\t#"};
	struct text t = {0};
	struct cop_manifest_reader r;
	struct cop_manifest_item i;

	(void)state;
	cop_manifest_begin(&t.b, "/odd\nsource\\");
	for (size_t k = 0; k < COP_ARRAY_SIZE(names); k++) {
		i = k % 2 ? file(names[k], k, 0, k) : item(COP_MANIFEST_NAME, names[k]);
		cop_manifest_add(&t.b, &i);
	}
	i = item(COP_MANIFEST_DIR, "");
	cop_manifest_add(&t.b, &i);
	cop_manifest_end(&t.b, COP_ARRAY_SIZE(names) + 1);
	read_head(&t);
	assert_string_equal(t.source, "/odd\nsource\\");
	r = reader(&t);
	for (size_t k = 0; k < COP_ARRAY_SIZE(names); k++) {
		assert_true(cop_manifest_next(&r, &i));
		assert_string_equal(i.path, names[k]);
		assert_int_equal(i.len, strlen(names[k]));
		assert_int_equal(i.kind, k % 2 ? COP_MANIFEST_FILE : COP_MANIFEST_NAME);
		assert_int_equal(i.size, k % 2 ? k : 0);
	}
	assert_true(cop_manifest_next(&r, &i));
	assert_int_equal(i.kind, COP_MANIFEST_DIR);
	assert_int_equal(i.len, 0);
	assert_false(cop_manifest_next(&r, &i));
	assert_true(r.ended);
	assert_int_equal(r.bad, 0);
	cop_buf_free(&t.b);
}

static void numbers_survive_to_their_ends(void **state)
{
	struct cop_manifest_item i = file("f", UINT64_MAX, 0, 1), got;
	struct text t = {0};
	struct cop_manifest_reader r;

	(void)state;
	i.mtime_s = INT64_MIN;
	i.mtime_nsec = 0;
	cop_manifest_range_add(&i, 7, UINT64_MAX);
	cop_manifest_begin(&t.b, "/");
	cop_manifest_add(&t.b, &i);
	i = item(COP_MANIFEST_FILE, "nothing/read");
	cop_manifest_add(&t.b, &i);
	read_head(&t);
	r = reader(&t);
	assert_true(cop_manifest_next(&r, &got));
	assert_true(got.size == UINT64_MAX && got.mtime_s == INT64_MIN && got.mtime_nsec == 0);
	assert_ranges(&got, "0-1,7-18446744073709551615");
	assert_true(cop_manifest_next(&r, &got));
	assert_int_equal(got.ranges, 0);
	assert_false(cop_manifest_next(&r, &got));
	assert_false(r.ended);
	cop_buf_free(&t.b);
}

/* The line of a file with this time, read and written again. */
static void assert_time(const char *text, int64_t s, uint32_t nsec, const char *again)
{
	struct cop_manifest_reader r = {0};
	struct cop_manifest_item i;
	struct cop_buf in = {0}, out = {0};
	char want[100];

	cop_buf_printf(&in, "f 5 %s 0-5 x\n", text);
	r.data = in.data;
	r.len = in.len;
	if (again) {
		assert_true(cop_manifest_next(&r, &i));
		assert_true(i.mtime_s == s && i.mtime_nsec == nsec);
		cop_manifest_add(&out, &i);
		snprintf(want, sizeof(want), "f 5 %s 0-5 x\n", again);
		assert_string_equal(out.data, want);
	} else {
		assert_false(cop_manifest_next(&r, &i));
		assert_int_equal(r.bad, 1);
	}
	cop_buf_free(&in);
	cop_buf_free(&out);
}

static void times_are_decimal_seconds_and_those_of_version_1_nanoseconds(void **state)
{
	(void)state;
	assert_time("0.000000000", 0, 0, "0.000000000");
	assert_time("10413792000.123456789", 10413792000, 123456789, "10413792000.123456789");
	assert_time("-0.250000000", -1, 750000000, "-0.250000000");
	assert_time("-5.000000000", -5, 0, "-5.000000000");
	assert_time("-5.000000001", -6, 999999999, "-5.000000001");
	assert_time("9223372036854775807.999999999", INT64_MAX, 999999999,
		"9223372036854775807.999999999");
	assert_time(
		"-9223372036854775808.000000000", INT64_MIN, 0, "-9223372036854775808.000000000");
	assert_time(
		"-9223372036854775807.999999999", INT64_MIN, 1, "-9223372036854775807.999999999");
	assert_time("1700000000123456789", 1700000000, 123456789, "1700000000.123456789");
	assert_time("-1", -1, 999999999, "-0.000000001");
	assert_time("-9223372036854775807", -9223372037, 145224193, "-9223372036.854775807");
	assert_time("-0", 0, 0, "0.000000000");
	assert_time("9223372036854775808.000000000", 0, 0, NULL);
	assert_time("-9223372036854775808.000000001", 0, 0, NULL);
	assert_time("18446744073709551616", 0, 0, NULL);
	assert_time("1.5", 0, 0, NULL);
	assert_time("1.0000000000", 0, 0, NULL);
	assert_time("1.", 0, 0, NULL);
	assert_time(".000000000", 0, 0, NULL);
	assert_time("--1", 0, 0, NULL);
}

/* ---- what is not valid ---- */

static int head_of(const char *text)
{
	char source[COP_MANIFEST_PATH_MAX + 1];
	struct cop_err err = {0};
	size_t body;
	int rc = cop_manifest_head(text, strlen(text), source, &body, &err);

	assert_int_equal(rc == 0, err.text[0] == '\0');
	assert_true(body <= strlen(text));
	return rc;
}

static void a_text_without_the_head_of_a_manifest_is_refused(void **state)
{
	(void)state;
	assert_int_equal(head_of("copper-manifest 1\nsource /\n"), 0);
	assert_int_equal(head_of("copper-manifest 1\nsource /usr"), 0);
	assert_int_equal(head_of(""), -EBADMSG);
	assert_int_equal(head_of("\n"), -EBADMSG);
	assert_int_equal(head_of("copper-manifest\nsource /\n"), -EBADMSG);
	assert_int_equal(head_of("copper-manifest 1 \nsource /\n"), -EBADMSG);
	assert_int_equal(head_of("copper-manifest 1\n"), -EBADMSG);
	assert_int_equal(head_of("copper-manifest 1\nd a\n"), -EBADMSG);
	assert_int_equal(head_of("copper-manifest 1\nsource usr\n"), -EBADMSG);
	assert_int_equal(head_of("copper-manifest 1\nsource \n"), -EBADMSG);
	assert_int_equal(head_of("copper-manifest 1\nsource /\\x\n"), -EBADMSG);
	assert_int_equal(head_of("copper-manifest 2\nsource /\n"), 0);
	assert_int_equal(head_of("copper-manifest 0\nsource /\n"), -EPROTO);
	assert_int_equal(head_of("copper-manifest 3\nsource /\n"), -EPROTO);
	assert_int_equal(head_of("copper-manifest 99999999999999999999\nsource /\n"), -EBADMSG);
}

static void a_line_that_is_not_valid_is_passed_over(void **state)
{
	static const char body[] =
		"d good\nd /bad\nd ..\nd \nd\nx y\nf 1 2 0-1 f\nf 1 2 1-0 f\nf 1 2 0-2,1-3 f\nf 1 2 0-1,f\n"
		"f -1 2 0-1 f\nf 1 2 0-1\nf 1 - - f\nn a\\\nn a\\x\nn .\n\nn last";
	struct cop_manifest_reader r = {.data = body, .len = sizeof(body) - 1};
	struct cop_manifest_item i;

	(void)state;
	assert_true(cop_manifest_next(&r, &i));
	assert_string_equal(i.path, "good");
	assert_true(cop_manifest_next(&r, &i));
	assert_string_equal(i.path, "f");
	assert_ranges(&i, "0-1");
	assert_true(cop_manifest_next(&r, &i));
	assert_string_equal(i.path, "last");
	assert_false(cop_manifest_next(&r, &i));
	assert_int_equal(r.items, 3);
	assert_int_equal(r.bad, 14);
}

static void a_manifest_that_was_cut_short_is_known_by_its_end(void **state)
{
	static const char whole[] = "d a\nd b\nend 2\n";

	(void)state;
	for (size_t len = 0; len < sizeof(whole); len++) {
		struct cop_manifest_reader r = {.data = whole, .len = len};
		struct cop_manifest_item i;

		while (cop_manifest_next(&r, &i))
			;
		assert_int_equal(r.ended, len >= sizeof(whole) - 2);
	}
}

/* ---- pieces ---- */

static void pieces_are_whole_lines_and_together_the_body(void **state)
{
	struct text t = {0};
	struct cop_manifest_item i;
	size_t at, n, items = 0, pieces = 0;
	char name[64];

	(void)state;
	cop_manifest_begin(&t.b, "/");
	for (int k = 0; k < 20000; k++) {
		snprintf(name, sizeof(name), "directory/%d/some-name-or-other-%d", k % 7, k);
		i = item(COP_MANIFEST_NAME, name);
		cop_manifest_add(&t.b, &i);
	}
	read_head(&t);
	for (at = t.body; (n = cop_manifest_piece(t.b.data, t.b.len, at)); at += n, pieces++) {
		struct cop_manifest_reader r = {.data = t.b.data + at, .len = n};

		assert_true(n <= COP_MANIFEST_PIECE);
		while (cop_manifest_next(&r, &i))
			items++;
		assert_int_equal(r.bad, 0);
	}
	assert_int_equal(at, t.b.len);
	assert_int_equal(items, 20000);
	assert_true(pieces > 2);
	assert_int_equal(cop_manifest_piece(t.b.data, t.b.len, t.b.len + 1), 0);
	cop_buf_free(&t.b);
}

static void a_line_without_end_is_cut_and_does_not_stop_the_pieces(void **state)
{
	size_t len = 3 * COP_MANIFEST_PIECE, at = 0, n;
	char *body = malloc(len);

	(void)state;
	memset(body, 'x', len);
	while ((n = cop_manifest_piece(body, len, at)))
		at += n;
	assert_int_equal(at, len);
	free(body);
}

static void a_reader_knows_what_was_not_needed(void **state)
{
	static const char body[] =
		"d a\nunused 1\nd b\nunused x\nunused 99999999999\nn c\nunused 0\nn d\nend 4\n";
	static const unsigned want[] = {0, 1, COP_MANIFEST_UNUSED_JOBS, 0};
	struct cop_manifest_reader r = {.data = body, .len = sizeof(body) - 1};
	struct cop_manifest_item i;

	(void)state;
	for (unsigned n = 0; n < COP_ARRAY_SIZE(want); n++) {
		assert_true(cop_manifest_next(&r, &i));
		assert_int_equal(i.unused, want[n]);
	}
	assert_false(cop_manifest_next(&r, &i));
	assert_true(r.ended);
	assert_int_equal(r.bad, 1);
}

/* Lines of parts past the limit continue the last one; those that are not valid are skipped. */
static void parts_begin_with_a_line_of_their_own(void **state)
{
	static const char text[] = "d .\nunused 2\nn a\npart 0 bin/a\nn a\npart 7 bin/b\\n\nn b\n"
				   "part x bin\npart 1 ../x\npart 1\nn c\nend 5\n";
	static const struct {
		unsigned part, unused, idle;
		const char *first;
	} want[] = {{0, 0, 0, ""}, {0, 2, 0, ""}, {0, 0, 0, "bin/a"}, {1, 0, 7, "bin/b\n"},
		{1, 0, 7, "bin/b\n"}};
	struct cop_manifest_reader r = {.data = text, .len = sizeof(text) - 1};
	struct cop_manifest_item item;

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		assert_true(cop_manifest_next(&r, &item));
		assert_int_equal(item.part, want[i].part);
		assert_int_equal(item.unused, want[i].unused);
		assert_int_equal(r.idle, want[i].idle);
		assert_string_equal(r.part_path, want[i].first);
	}
	assert_false(cop_manifest_next(&r, &item));
	assert_int_equal(r.bad, 3);
	assert_true(r.ended);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_merge_where_they_touch),
		cmocka_unit_test(past_the_limit_the_smallest_gap_is_closed),
		cmocka_unit_test(ranges_hold_all_that_was_added),
		cmocka_unit_test(only_relative_paths_without_dots_stand_in_a_manifest),
		cmocka_unit_test(odd_names_survive_the_round_trip),
		cmocka_unit_test(times_are_decimal_seconds_and_those_of_version_1_nanoseconds),
		cmocka_unit_test(numbers_survive_to_their_ends),
		cmocka_unit_test(a_text_without_the_head_of_a_manifest_is_refused),
		cmocka_unit_test(a_line_that_is_not_valid_is_passed_over),
		cmocka_unit_test(a_manifest_that_was_cut_short_is_known_by_its_end),
		cmocka_unit_test(pieces_are_whole_lines_and_together_the_body),
		cmocka_unit_test(a_line_without_end_is_cut_and_does_not_stop_the_pieces),
		cmocka_unit_test(a_reader_knows_what_was_not_needed),
		cmocka_unit_test(parts_begin_with_a_line_of_their_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
