/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "writers/cluster/cluster_priv.h"

#define OPERATIONS                                                                                 \
	"operation,total_calls,cache_hits,cache_misses,negative_results,avg_latency_us,total_latency_s\n"
#define TOP                                                                                        \
	"category,path,total_events,cache_hits,cache_misses,negative_results,ttl_stores,ttl_serves,ttl_expires,ttl_clears\n"

static char dir[64];
static struct rank_reader reader;

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/cop-rank-XXXXXX");
	return mkdtemp(dir) && !cop_report_reader_open(&reader) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	cop_report_reader_close(&reader);
	snprintf(command, sizeof(command), "rm -r '%s'", dir);
	return system(command);
}

static void check_tagged(const char *name, const char *tag, const char *want_stem, int want_kind)
{
	enum cop_report_kind kind;
	size_t len;

	assert_true(cop_report_rank_name(name, tag, &len, &kind));
	assert_int_equal(len, strlen(want_stem));
	assert_memory_equal(name, want_stem, len);
	assert_int_equal(kind, want_kind);
}

static void check_name(const char *name, const char *want_stem, int want_kind)
{
	check_tagged(name, "", want_stem, want_kind);
}

static void names_are_taken_apart_from_the_right(void **state)
{
	(void)state;
	check_name("h-1-profiling_aggregate.csv", "h-1", COP_REPORT_AGGREGATE);
	check_name("x4000c0s0b0n0-114357-profiling_operations.csv", "x4000c0s0b0n0-114357",
		COP_REPORT_OPERATIONS);
	check_name("login-7-100-profiling_top_paths.csv", "login-7-100", COP_REPORT_TOP_PATHS);
	check_name("1-2-3-profiling_top_paths.csv", "1-2-3", COP_REPORT_TOP_PATHS);
	check_name("--1-profiling_aggregate.csv", "--1", COP_REPORT_AGGREGATE);
	check_name("h-1-profiling_aggregate.csv-2-profiling_aggregate.csv",
		"h-1-profiling_aggregate.csv-2", COP_REPORT_AGGREGATE);
}

static void names_of_a_snapshot_have_its_tag(void **state)
{
	enum cop_report_kind kind;
	size_t len;

	(void)state;
	check_tagged("h-1-runtime-snapshot-profiling_aggregate.csv", "runtime-snapshot",
		"h-1-runtime-snapshot", COP_REPORT_AGGREGATE);
	check_tagged("a-2-b-77-pre-destroy-profiling_top_paths.csv", "pre-destroy",
		"a-2-b-77-pre-destroy", COP_REPORT_TOP_PATHS);
	check_tagged("h-1-2-profiling_aggregate.csv", "2", "h-1-2", COP_REPORT_AGGREGATE);
	assert_false(cop_report_rank_name(
		"h-1-pre-destroy-profiling_aggregate.csv", "runtime-snapshot", &len, &kind));
	assert_false(cop_report_rank_name(
		"h-1-profiling_aggregate.csv", "runtime-snapshot", &len, &kind));
	assert_false(cop_report_rank_name(
		"h-runtime-snapshot-profiling_aggregate.csv", "runtime-snapshot", &len, &kind));
	assert_false(cop_report_rank_name(
		"runtime-snapshot-profiling_aggregate.csv", "runtime-snapshot", &len, &kind));
	assert_false(cop_report_rank_name(
		"snapshot-profiling_aggregate.csv", "runtime-snapshot", &len, &kind));
}

static void other_names_are_not_of_a_rank(void **state)
{
	static const char *const names[] = {"", ".", "profiling_aggregate.csv",
		"-profiling_aggregate.csv", "h-profiling_aggregate.csv",
		"1-profiling_aggregate.csv", "-1-profiling_aggregate.csv",
		"h--profiling_aggregate.csv", "h-1x-profiling_aggregate.csv",
		"h-1-profiling_aggregate.csv.abcdef", "h-1-profiling_latency.csv",
		"h-1-profiling_summary.md", "h-1profiling_aggregate.csv",
		"h-1-pre-destroy-profiling_aggregate.csv", "cluster-profiling_aggregate.csv"};
	enum cop_report_kind kind;
	size_t len;

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(names); i++)
		if (cop_report_rank_name(names[i], "", &len, &kind))
			fail_msg("%s", names[i]);
}

static int read_name(const char *name, enum cop_report_kind kind, struct cop_buf *why)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY), rc;

	assert_true(fd >= 0);
	rc = cop_report_read_file(&reader, fd, name, kind, why);
	close(fd);
	return rc;
}

static const char *in_dir(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void refused(const char *name, enum cop_report_kind kind, const char *want)
{
	struct cop_buf why = {0};

	assert_int_equal(read_name(name, kind, &why), -EBADMSG);
	assert_string_equal(why.data, want);
	cop_buf_free(&why);
}

static void read_text(enum cop_report_kind kind, const char *text)
{
	struct cop_buf why = {0};

	assert_int_equal(cop_write_file(in_dir("f"), text, strlen(text), 0644), 0);
	assert_int_equal(read_name("f", kind, &why), 0);
	assert_null(why.data);
}

static void refuse_text(enum cop_report_kind kind, const char *text, const char *want)
{
	assert_int_equal(cop_write_file(in_dir("f"), text, strlen(text), 0644), 0);
	refused("f", kind, want);
}

static void a_file_that_is_not_regular_is_refused_without_waiting(void **state)
{
	struct cop_buf why = {0};

	(void)state;
	alarm(20);
	assert_int_equal(mkfifo(in_dir("fifo"), 0644), 0);
	refused("fifo", COP_REPORT_AGGREGATE, "it is not a regular file");
	assert_int_equal(symlink("/dev/zero", in_dir("zero")), 0);
	refused("zero", COP_REPORT_AGGREGATE, "it is not a regular file");
	assert_int_equal(mkdir(in_dir("dir"), 0755), 0);
	refused("dir", COP_REPORT_AGGREGATE, "it is not a regular file");
	assert_int_equal(symlink("loop", in_dir("loop")), 0);
	refused("loop", COP_REPORT_AGGREGATE,
		"it cannot be opened: Too many levels of symbolic links");
	assert_int_equal(symlink("nowhere", in_dir("dangling")), 0);
	assert_int_equal(read_name("dangling", COP_REPORT_AGGREGATE, &why), -ENOENT);
	assert_null(why.data);
	alarm(0);
}

static void a_file_without_end_is_refused_before_it_is_read(void **state)
{
	int fd = open(in_dir("big"), O_WRONLY | O_CREAT, 0644);

	(void)state;
	assert_int_equal(ftruncate(fd, (off_t)1 << 40), 0);
	refused("big", COP_REPORT_AGGREGATE, "it is larger than any that Copper writes");
	assert_int_equal(ftruncate(fd, (off_t)1 << 29), 0);
	refused("big", COP_REPORT_AGGREGATE,
		"it is not a CSV file: line 1: it has a NUL byte, so it is not text");
	close(fd);
}

static void descriptions_are_passed_over(void **state)
{
	(void)state;
	read_text(COP_REPORT_AGGREGATE,
		"metric,value\nmode,full-path\na,12\n\"b, c\",\"1.5\"\nnote,\nttl,2000 ms\n");
	assert_int_equal(reader.file->ranks, 1);
	assert_int_equal(reader.file->metrics.n, 2);
	assert_true(cop_report_rows_find(&reader.file->metrics, "b, c")->sum == 1500000);
	refuse_text(COP_REPORT_AGGREGATE, "metric,value\n,1\n",
		"a row has no name, or one that is too long (line 2)");
}

static void a_rank_that_did_nothing_has_operations_and_paths_without_rows(void **state)
{
	(void)state;
	read_text(COP_REPORT_OPERATIONS, OPERATIONS);
	assert_int_equal(reader.file->ops.n, 0);
	read_text(COP_REPORT_TOP_PATHS, TOP);
	assert_int_equal(cop_pathclass_seen(&reader.file->classes), 0);
	refuse_text(COP_REPORT_AGGREGATE, "metric,value\n", "it has only a header");
	refuse_text(COP_REPORT_OPERATIONS, "", "it is empty");
	refuse_text(COP_REPORT_OPERATIONS, "\n\n", "it is empty");
}

static void doubted(const char *want)
{
	assert_string_equal(reader.doubt.data, want);
}

static void a_row_with_a_negative_number_is_left_out_and_said(void **state)
{
	(void)state;
	read_text(COP_REPORT_AGGREGATE, "metric,value\na,12\nb,-4\nc,-0.5\nd,-e\ne,3\n");
	assert_int_equal(reader.file->metrics.n, 2);
	assert_int_equal(reader.doubts, 2);
	doubted("a number is negative, and its row is left out (line 3), and 1 more");
	read_text(COP_REPORT_OPERATIONS,
		OPERATIONS "read,1,0,-2,0,1,1\nopen,1,0,0,0,1,1\nstat,1,0,0,0,1,-1\n");
	assert_int_equal(reader.file->ops.n, 1);
	assert_int_equal(reader.doubts, 2);
	read_text(COP_REPORT_TOP_PATHS,
		TOP "data,\"/e/a\",-2,1,1,0,0,0,0,0\ndata,\"/e/b\",1,1,1,0,0,0,0,0\n");
	assert_int_equal(reader.file->classes.of[COP_PATHCLASS_PREFIX].entries, 1);
	doubted("a number is negative, and its row is left out (line 2)");
	read_text(COP_REPORT_AGGREGATE, "metric,value\na,12\n");
	assert_int_equal(reader.doubts, 0);
}

static void counts_beyond_64_bits_are_the_largest(void **state)
{
	const struct row *op;

	(void)state;
	read_text(COP_REPORT_AGGREGATE, "metric,value\na,18446744073709551615\n");
	assert_int_equal(reader.doubts, 0);
	read_text(COP_REPORT_AGGREGATE, "metric,value\na,18446744073709551616\n");
	assert_true(cop_report_rows_find(&reader.file->metrics, "a")->sum == COP_NUMBER_MAX);
	doubted("a number is above 2^64-1 and counts as 2^64-1 (line 2)");
	read_text(COP_REPORT_OPERATIONS,
		OPERATIONS "read,18446744073709551616,18446744073709551615,0,007,1,1e30\r\n");
	doubted("a number is above 2^64-1 and counts as 2^64-1 (line 2), and 1 more");
	op = cop_report_rows_find(&reader.file->ops, "read");
	assert_true(op->count[0] == UINT64_MAX && op->count[1] == UINT64_MAX && op->count[3] == 7);
	assert_true(op->sum == COP_NUMBER_MAX);
	refuse_text(COP_REPORT_OPERATIONS, OPERATIONS "read,1.0,0,0,0,1,1\n",
		"a count is not a number (line 2)");
	refuse_text(COP_REPORT_OPERATIONS, OPERATIONS "read,,0,0,0,1,1\n",
		"a count is not a number (line 2)");
	refuse_text(COP_REPORT_OPERATIONS, OPERATIONS "read,1,0,0,0,1,x\n",
		"a latency is not a number (line 2)");
}

static void every_beginning_of_a_file_is_refused_or_has_whole_lines(void **state)
{
	static const char text[] = TOP
		"data,\"/e/a\",2,1,1,0,0,0,0,0\nmetadata_ttl,\"/e/\"\"b\nc.so\",12,0,0,0,1,11,0,0\n";
	struct cop_buf why = {0};

	(void)state;
	for (size_t len = 0; len < sizeof(text) - 1; len++) {
		bool whole = len == sizeof(TOP) - 1 ||
			     len == sizeof(TOP "data,\"/e/a\",2,1,1,0,0,0,0,0\n") - 1;

		assert_int_equal(cop_write_file(in_dir("f"), text, len, 0644), 0);
		assert_int_equal(read_name("f", COP_REPORT_TOP_PATHS, &why), whole ? 0 : -EBADMSG);
		assert_true(whole == !why.len);
		cop_buf_free(&why);
	}
	read_text(COP_REPORT_TOP_PATHS, text);
	assert_int_equal(reader.file->classes.of[COP_PATHCLASS_MISSING_LIBRARY].events, 12);
	assert_string_equal(
		reader.file->classes.of[COP_PATHCLASS_MISSING_LIBRARY].example, "/e/\"b\nc.so");
	assert_true(reader.file->absences_served);
}

static void a_file_with_too_many_rows_is_refused(void **state)
{
	struct cop_buf text = {0};

	(void)state;
	cop_buf_str(&text, "metric,value\n");
	for (unsigned i = 0; i <= CLUSTER_NAMES_MAX; i++)
		cop_buf_printf(&text, "m%u,1\n", i);
	refuse_text(COP_REPORT_AGGREGATE, text.data,
		"it has more rows than any version of Copper writes (line 1026)");
	cop_buf_free(&text);
}

static void faults_are_named_in_order_and_counted(void **state)
{
	struct cop_observed_faults f;
	struct cop_buf text = {0};
	char name[16];

	(void)state;
	cop_observed_faults_init(&f);
	for (unsigned i = 0; i < 30; i++) {
		snprintf(name, sizeof(name), "n%02u", i * 7 % 30);
		cop_observed_faults_add(&f, name, "bad");
	}
	cop_observed_faults_add(&f, "a\x1b[2J\nb", "worse");
	cop_observed_faults_list(&f, &text);
	assert_int_equal(f.count, 31);
	assert_memory_equal(text.data, "a\\x1b[2J\\x0ab: worse\nn00: bad\nn01: bad\n", 37);
	assert_non_null(strstr(text.data, "\nn18: bad\nand 11 more\n"));
	assert_null(strstr(text.data, "n19"));
	cop_buf_free(&text);
	cop_observed_faults_fini(&f);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(names_are_taken_apart_from_the_right),
		T(names_of_a_snapshot_have_its_tag),
		T(other_names_are_not_of_a_rank),
		T(a_file_that_is_not_regular_is_refused_without_waiting),
		T(a_file_without_end_is_refused_before_it_is_read),
		T(descriptions_are_passed_over),
		T(a_rank_that_did_nothing_has_operations_and_paths_without_rows),
		T(a_row_with_a_negative_number_is_left_out_and_said),
		T(counts_beyond_64_bits_are_the_largest),
		T(every_beginning_of_a_file_is_refused_or_has_whole_lines),
		T(a_file_with_too_many_rows_is_refused),
		T(faults_are_named_in_order_and_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
