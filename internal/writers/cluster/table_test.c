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

#include "writers/cluster/observed_testing.h"

struct input {
	const char *text;
	size_t left, step;
	int fail;
};

static ssize_t read_input(void *arg, void *to, size_t len)
{
	struct input *in = arg;
	size_t n = COP_MIN(COP_MIN(len, in->left), in->step);

	if (!n && in->fail)
		return in->fail;
	memcpy(to, in->text, n);
	in->text += n;
	in->left -= n;
	return (ssize_t)n;
}

/* Appends "path events absent ttl;". */
static int append_row(void *arg, const char *path, size_t len, const struct cop_path_counts *c)
{
	cop_buf_add(arg, path, len);
	cop_buf_printf(arg, " %ju %ju %ju;", (uintmax_t)c->events, (uintmax_t)c->absent,
		(uintmax_t)c->ttl);
	return 0;
}

static struct cop_table_result read_text(
	const char *text, size_t len, size_t step, enum cop_observed_kind kind, struct cop_buf *got)
{
	struct input in = {text, len, step, 0};
	struct cop_table_result r;

	cop_buf_add(got, "", 0);
	assert_int_equal(cop_observed_table_read(read_input, &in, kind, append_row, got, &r), 0);
	return r;
}

static void assert_table(const char *text, enum cop_observed_kind kind, const char *want,
	enum cop_observed_verdict verdict, uint64_t odd)
{
	static const size_t steps[] = {1, 2, 7, 100000};

	for (size_t i = 0; i < COP_ARRAY_SIZE(steps); i++) {
		struct cop_buf got = {0};
		struct cop_table_result r = read_text(text, strlen(text), steps[i], kind, &got);

		assert_string_equal(got.data, want);
		assert_int_equal(r.verdict, verdict);
		assert_int_equal(r.odd, odd);
		cop_buf_free(&got);
	}
}

static void events_of_the_metadata_table_are_added_up(void **state)
{
	const char text[] =
		"md_cache_event_table {\n/a {\ncache hits: 3,\ncache misses: 2,\nneg: 1\n}\n/b {\ncache hits: 0,\ncache misses: 0,\nneg: 7\n}\n}\n";

	(void)state;
	assert_table(text, COP_OBSERVED_METADATA, "/a 6 1 0;/b 7 7 0;", COP_OBSERVED_WHOLE, 0);
	assert_table(text, COP_OBSERVED_OTHER, "/a 0 0 0;/b 0 0 0;", COP_OBSERVED_WHOLE, 0);
}

static void absences_are_stores_and_serves(void **state)
{
	(void)state;
	assert_table(
		"Metadata ENOENT TTL Events {\n/a {\nstores: 1,\nserves: 20,\nexpires: 300,\nclears: 4000\n}\n}\n",
		COP_OBSERVED_ABSENCES, "/a 0 0 21;", COP_OBSERVED_WHOLE, 0);
}

static void sizes_name_paths_too(void **state)
{
	(void)state;
	assert_table("/a: 1\n/b: c: 22\nTotal bytes: 23\ntotal number of files: 2\n",
		COP_OBSERVED_OTHER, "/a 0 0 0;/b: c 0 0 0;", COP_OBSERVED_WHOLE, 0);
	assert_table("Total bytes: 0\ntotal number of files: 0\n", COP_OBSERVED_OTHER, "",
		COP_OBSERVED_WHOLE, 0);
}

static void names_that_look_like_the_format_survive(void **state)
{
	(void)state;
	assert_table("t {\n/a {b {\n}\n/c: 5 {\n}\n/ {\n}\n/ {/x {\n}\n/neg: 5 {\n}\n}\n",
		COP_OBSERVED_METADATA, "/a {b 0 0 0;/c: 5 0 0 0;/ 0 0 0;/ {/x 0 0 0;/neg: 5 0 0 0;",
		COP_OBSERVED_WHOLE, 0);
	assert_table("/a {: 5\ntotal number of files: 1\n", COP_OBSERVED_OTHER, "/a { 0 0 0;",
		COP_OBSERVED_WHOLE, 0);
}

static void escapes_are_undone(void **state)
{
	(void)state;
	assert_table("t {\n/a\\nb\\\\nc\\x\\ {\n}\n}\n", COP_OBSERVED_OTHER,
		"/a\nb\\nc\\x\\ 0 0 0;", COP_OBSERVED_WHOLE, 0);
}

static void lines_that_are_no_paths_are_counted(void **state)
{
	(void)state;
	assert_table("t {\n/a/../b {\n}\n//c {\n}\n/d/ {\n}\n/e\n/f: x\n/g {\n}\n}\n",
		COP_OBSERVED_OTHER, "/g 0 0 0;", COP_OBSERVED_WHOLE, 5);
}

static void other_files_are_not_taken_for_tables(void **state)
{
	(void)state;
	assert_table("", COP_OBSERVED_OTHER, "", COP_OBSERVED_EMPTY, 0);
	assert_table("\n", COP_OBSERVED_OTHER, "", COP_OBSERVED_NONE, 0);
	assert_table("metric,value\nx,1\n", COP_OBSERVED_METADATA, "", COP_OBSERVED_NONE, 0);
	assert_table("<html>\n/a {\n", COP_OBSERVED_METADATA, "", COP_OBSERVED_NONE, 0);
}

static void a_table_that_is_cut_gives_what_is_certain(void **state)
{
	(void)state;
	assert_table("t {\n/a {\nneg: 1\n}\n/b {\nneg: ", COP_OBSERVED_METADATA,
		"/a 1 1 0;/b 0 0 0;", COP_OBSERVED_CUT, 0);
	assert_table("t {\n/a {\n}\n/b", COP_OBSERVED_OTHER, "/a 0 0 0;", COP_OBSERVED_CUT, 1);
	assert_table("t {\n/a {\n}\n", COP_OBSERVED_OTHER, "/a 0 0 0;", COP_OBSERVED_CUT, 0);
	assert_table("/a: 1\n/b: 2", COP_OBSERVED_OTHER, "/a 0 0 0;", COP_OBSERVED_CUT, 1);
	assert_table("t {\n/a {\n}\n}", COP_OBSERVED_OTHER, "/a 0 0 0;", COP_OBSERVED_WHOLE, 0);
}

static void line_ends_and_indents_of_others_are_read(void **state)
{
	(void)state;
	assert_table("t {\r\n/a {\r\n  cache hits: 1,\r\n\tneg: 2\r\n  }\r\n}\r\n",
		COP_OBSERVED_METADATA, "/a 3 2 0;", COP_OBSERVED_WHOLE, 0);
}

static void counts_stop_at_the_end_of_their_range(void **state)
{
	(void)state;
	assert_table("t {\n/a {\nneg: 99999999999999999999999,\nneg: 5\n}\n}\n",
		COP_OBSERVED_METADATA, "/a 18446744073709551615 18446744073709551615 0;",
		COP_OBSERVED_WHOLE, 0);
}

static void the_first_count_past_that_range_is_named_by_its_line(void **state)
{
	static const char text[] =
		"t {\n/a {\ncache hits: 18446744073709551615,\nneg: 18446744073709551616\n}\n/b {\nneg: 99999999999999999999\n}\n}\n";
	struct cop_buf got = {0};
	struct cop_table_result r;

	(void)state;
	r = read_text(text, sizeof(text) - 1, SIZE_MAX, COP_OBSERVED_METADATA, &got);
	assert_int_equal(r.cut_line, 4);
	cop_buf_free(&got);
	r = read_text(text, 40, SIZE_MAX, COP_OBSERVED_METADATA, &got);
	assert_int_equal(r.cut_line, 0);
	cop_buf_free(&got);
}

static void the_ornaments_of_copper_1_0_around_lists_of_sizes_are_skipped(void **state)
{
	(void)state;
	assert_table(
		"all entries should be 144 bytes\n/a: 144\n====================\nTotal bytes: 144\ntotal number of entries: 1\n"
		"====================\n",
		COP_OBSERVED_OTHER, "/a 0 0 0;", COP_OBSERVED_WHOLE, 0);
	assert_table(
		"====================\nTotal bytes: 0\ntotal number of files: 0\n====================\n",
		COP_OBSERVED_OTHER, "", COP_OBSERVED_WHOLE, 0);
	assert_table(
		"all entries of a kind\n/a: 144\n", COP_OBSERVED_OTHER, "", COP_OBSERVED_NONE, 0);
}

static void a_line_longer_than_any_path_is_passed_over(void **state)
{
	static const size_t lens[] = {131134, 131200, 150000, 196000, 400000},
			    steps[] = {1000, 65536, SIZE_MAX};
	char *text = malloc(400000 + 64);

	(void)state;
	assert_non_null(text);
	for (size_t i = 0; i < COP_ARRAY_SIZE(lens) * COP_ARRAY_SIZE(steps); i++) {
		size_t len = lens[i / COP_ARRAY_SIZE(steps)],
		       step = steps[i % COP_ARRAY_SIZE(steps)];
		size_t at = (size_t)sprintf(text, "t {\n/");
		struct cop_buf got = {0};
		struct cop_table_result r;

		memset(text + at, 'x', len);
		strcpy(text + at + len, " {\n}\n/b {\n}\n}\n");
		r = read_text(text, strlen(text), step, COP_OBSERVED_OTHER, &got);
		assert_string_equal(got.data, "/b 0 0 0;");
		assert_int_equal(r.odd, 1);
		cop_buf_free(&got);
		/* As the first line, it makes the file no table, and the rest is not read. */
		r = read_text(text + 4, strlen(text + 4), step, COP_OBSERVED_OTHER, &got);
		assert_int_equal(r.verdict, COP_OBSERVED_NONE);
		assert_string_equal(got.data, "");
		cop_buf_free(&got);
	}
	free(text);
}

static void the_longest_path_with_every_byte_escaped_is_read(void **state)
{
	size_t name = COP_PATHSET_LEN_MAX - 1, at;
	char *text = malloc(2 * name + 64);
	struct cop_buf got = {0};
	struct cop_table_result r;

	(void)state;
	assert_non_null(text);
	at = (size_t)sprintf(text, "t {\n/");
	for (size_t i = 0; i < name; i++)
		at += (size_t)sprintf(text + at, "\\n");
	strcpy(text + at, " {\n}\n}\n");
	r = read_text(text, strlen(text), 4096, COP_OBSERVED_OTHER, &got);
	assert_int_equal(r.paths, 1);
	assert_int_equal(strlen(got.data), COP_PATHSET_LEN_MAX + strlen(" 0 0 0;"));
	cop_buf_free(&got);
	free(text);
}

static void an_error_of_the_reader_is_returned(void **state)
{
	struct input in = {"t {\n/a {\n", 9, 3, -EIO};
	struct cop_buf got = {0};
	struct cop_table_result r;

	(void)state;
	assert_int_equal(
		cop_observed_table_read(read_input, &in, COP_OBSERVED_OTHER, append_row, &got, &r),
		-EIO);
	cop_buf_free(&got);
}

/* ---- the set ---- */

static void a_path_is_stored_once_and_its_counts_add_up(void **state)
{
	struct cop_pathset s = {.seed = 9};
	const struct cop_observed_path *p;
	char path[32];

	(void)state;
	assert_null(find_in_set(&s, "/1", 2));
	for (unsigned i = 0; i < 60000; i++) {
		size_t len = (size_t)snprintf(path, sizeof(path), "/%u", i % 20000);

		assert_int_equal(cop_observed_pathset_add(&s, path, len,
					 cop_observed_pathset_hash(&s, path, len),
					 &(struct cop_path_counts){1, i, UINT64_MAX / 2, {0}}),
			0);
	}
	assert_int_equal(s.table.count, 20000);
	p = find_in_set(&s, "/12345", 6);
	assert_string_equal(p->text, "/12345");
	assert_int_equal(p->events, 3);
	assert_int_equal(p->absent, 12345 + 32345 + 52345);
	assert_true(p->ttl == UINT64_MAX);
	assert_null(find_in_set(&s, "/20000", 6));
	cop_observed_pathset_free(&s);
}

/* Neither the order of ranks matters, nor whether one file has all paths or each has its own. */
static void the_order_of_adding_does_not_matter(void **state)
{
	struct cop_pathset a = {.seed = 1}, b = {.seed = 2};
	uint32_t seed = 4711;

	(void)state;
	for (unsigned pass = 0; pass < 2; pass++)
		for (unsigned i = 0; i < 5000; i++) {
			struct cop_pathset *s = pass ? &b : &a;
			unsigned k = pass ? 4999 - i : i;
			char path[32];
			size_t len = (size_t)snprintf(
				path, sizeof(path), "/p/%u", (k * 2654435761u ^ seed) % 997);

			assert_int_equal(cop_observed_pathset_add(s, path, len,
						 cop_observed_pathset_hash(s, path, len),
						 &(struct cop_path_counts){k, k % 7, k % 3, {0}}),
				0);
		}
	assert_int_equal(a.table.count, b.table.count);
	for (const struct cop_observed_path *p = NULL; (p = cop_observed_pathset_next(&a, p));) {
		const struct cop_observed_path *q = find_in_set(&b, p->text, p->len);

		assert_non_null(q);
		assert_int_equal(p->events, q->events);
		assert_int_equal(p->absent, q->absent);
		assert_int_equal(p->ttl, q->ttl);
	}
	cop_observed_pathset_free(&a);
	cop_observed_pathset_free(&b);
}

static void count_one(void *arg, size_t i)
{
	_Atomic uint64_t *sum = arg;

	atomic_fetch_add(sum, i);
}

static void work_is_shared_and_each_piece_is_done_once(void **state)
{
	_Atomic uint64_t sum = 0;

	(void)state;
	assert_int_equal(cop_walk_parallel(0, count_one, NULL, &sum), 0);
	assert_int_equal(cop_walk_parallel(1, count_one, NULL, &sum), 0);
	assert_int_equal(sum, 0);
	assert_int_equal(cop_walk_parallel(10001, count_one, NULL, &sum), 0);
	assert_int_equal(sum, 10000 * 10001 / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_of_the_metadata_table_are_added_up),
		cmocka_unit_test(absences_are_stores_and_serves),
		cmocka_unit_test(sizes_name_paths_too),
		cmocka_unit_test(names_that_look_like_the_format_survive),
		cmocka_unit_test(escapes_are_undone),
		cmocka_unit_test(lines_that_are_no_paths_are_counted),
		cmocka_unit_test(other_files_are_not_taken_for_tables),
		cmocka_unit_test(a_table_that_is_cut_gives_what_is_certain),
		cmocka_unit_test(line_ends_and_indents_of_others_are_read),
		cmocka_unit_test(counts_stop_at_the_end_of_their_range),
		cmocka_unit_test(the_first_count_past_that_range_is_named_by_its_line),
		cmocka_unit_test(the_ornaments_of_copper_1_0_around_lists_of_sizes_are_skipped),
		cmocka_unit_test(a_line_longer_than_any_path_is_passed_over),
		cmocka_unit_test(the_longest_path_with_every_byte_escaped_is_read),
		cmocka_unit_test(an_error_of_the_reader_is_returned),
		cmocka_unit_test(a_path_is_stored_once_and_its_counts_add_up),
		cmocka_unit_test(the_order_of_adding_does_not_matter),
		cmocka_unit_test(work_is_shared_and_each_piece_is_done_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
