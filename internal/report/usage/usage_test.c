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

#include "base/walk/dir_testing.h"
#include "report/usage/usage.h"

static const char *in_dir(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void write_table(const char *name, const char *text)
{
	assert_int_equal(cop_write_file(in_dir(name), text, strlen(text), 0644), 0);
}

static struct cop_usage read_dir(int want)
{
	struct cop_usage u = {0};
	struct cop_err err = {0};

	assert_int_equal(cop_usage_read(&u, dir, &err), want);
	assert_int_equal(err.code, -want);
	return u;
}

static void an_empty_directory_is_a_sentence(void **state)
{
	struct cop_usage u = read_dir(-ENOENT);

	(void)state;
	write_table("output.txt", "/a: 1\n");
	write_table("xdata_cache_size.output", "/a: 1\n");
	assert_int_equal(cop_usage_read(&u, dir, NULL), -ENOENT);
	assert_int_equal(cop_usage_read(&u, in_dir("none"), NULL), -ENOENT);
	assert_int_equal(cop_usage_read(&u, in_dir("output.txt"), NULL), -ENOTDIR);
	cop_usage_free(&u);
}

static void files_of_many_ranks_and_of_both_versions_are_summed_up(void **state)
{
	struct cop_usage u;
	struct cop_buf csv = {0}, text = {0};

	(void)state;
	write_table("n1-12-data_cache_size.output",
		"/a: b: 7: 10\n/c\\nd: 5\nTotal bytes: 15\ntotal number of files: 2\n");
	write_table("n-2-7-ioctl-snapshot-data_cache_size.output",
		"Total bytes: 100\ntotal number of files: 3\n");
	write_table("tree_cache_size.output",
		"/: 1\r\nTotal bytes: 1\r\ntotal number of entries: 1\r\n");
	write_table("md_cache_size.output",
		"/x: 1023\nTotal bytes: 1024\ntotal number of entries: 1\n");
	u = read_dir(0);
	assert_int_equal(u.faults, 1);
	assert_non_null(strstr(u.named.data, "md_cache_size.output: its lines do not add up"));
	u.has_budget = true;
	u.limit_bytes = 1 << 20;
	u.used_bytes = 2048;
	cop_usage_csv(&u, &csv);
	assert_string_equal(csv.data,
		"table,files_found,used_bytes,used_human,entries\n"
		"data,2,115,115 B,5\ntree,1,1,1 B,1\nmetadata,1,1024,1.0 KiB,1\ncombined,4,1140,1.1 KiB,7\n"
		"budget_limit,0,1048576,1.0 MiB,0\nbudget_used,0,2048,2.0 KiB,0\nbudget_remaining,0,1046528,1022.0 KiB,0\n");
	csv.len = 0;
	cop_usage_json(&u, &csv);
	assert_string_equal(csv.data,
		"{\"data\":{\"files\":2,\"bytes\":115,\"entries\":5},\"tree\":{\"files\":1,\"bytes\":1,\"entries\":1},"
		"\"metadata\":{\"files\":1,\"bytes\":1024,\"entries\":1},\"combined\":{\"files\":4,\"bytes\":1140,\"entries\":7},"
		"\"budget_limit\":1048576,\"budget_used\":2048,\"budget_remaining\":1046528,\"faults\":1}\n");
	cop_usage_text(&u, &text);
	assert_non_null(strstr(text.data, "1022.0 KiB"));
	cop_buf_free(&csv);
	cop_buf_free(&text);
	cop_usage_free(&u);
}

static void a_job_directory_is_read_where_its_tables_are(void **state)
{
	struct cop_usage u;

	(void)state;
	assert_int_equal(cop_make_dirs(in_dir("tables/final"), 0755), 0);
	write_table("tables/final/n1-1-tree_cache_size.output",
		"/a: 3\nTotal bytes: 3\ntotal number of entries: 1\n");
	u = read_dir(0);
	assert_int_equal(u.table[COP_USAGE_TREE].bytes, 3);
	assert_int_equal(u.faults, 0);
	cop_usage_free(&u);
}

#define BAR "=============================================\n"

static void the_lists_of_copper_1_0_are_nothing_to_complain_of(void **state)
{
	struct cop_usage u;

	(void)state;
	write_table("h-1-data_cache_size.output",
		"/b: 5\n/a: 10\n" BAR "Total bytes: 15\ntotal number of files: 2\n" BAR);
	write_table("h-1-tree_cache_size.output",
		BAR "Total bytes: 0\ntotal number of entries: 0\n" BAR);
	write_table("h-1-md_cache_size.output",
		"all entries should be 144 bytes\n/a: 144\n" BAR
		"Total bytes: 144\ntotal number of entries: 1\n" BAR);
	u = read_dir(0);
	assert_int_equal(u.faults, 0);
	assert_int_equal(u.table[COP_USAGE_DATA].bytes, 15);
	assert_int_equal(u.table[COP_USAGE_METADATA].bytes, 144);
	assert_int_equal(u.table[COP_USAGE_METADATA].entries, 1);
	cop_usage_free(&u);
}

static void put_total(const char *name, unsigned bytes)
{
	char text[96], *slash = strrchr(name, '/'),
		       *folder = strndup(in_dir(name), strlen(dir) + 1 + (size_t)(slash - name));

	assert_non_null(folder);
	assert_int_equal(cop_make_dirs(folder, 0755), 0);
	free(folder);
	snprintf(text, sizeof(text), "Total bytes: %u\ntotal number of files: 1\n", bytes);
	write_table(name, text);
}

static void check_data(uint64_t files, uint64_t bytes)
{
	struct cop_usage u = read_dir(0);

	assert_int_equal(u.table[COP_USAGE_DATA].files, files);
	assert_int_equal(u.table[COP_USAGE_DATA].bytes, bytes);
	assert_int_equal(u.faults, 0);
	cop_usage_free(&u);
}

static void lists_below_the_directory_count_too(void **state)
{
	(void)state;
	put_total("one/data_cache_size.output", 1);
	put_total("two/deep/er/data_cache_size.output", 20);
	put_total("two/h-7-data_cache_size.output", 300);
	assert_int_equal(symlink(".", in_dir("two/loop")), 0);
	check_data(3, 321);
}

static void set_time(const char *name, time_t seconds)
{
	const struct timespec when[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};

	assert_int_equal(utimensat(AT_FDCWD, in_dir(name), when, 0), 0);
}

static void a_node_counts_once_with_the_latest_that_is_known(void **state)
{
	(void)state;
	put_total("tables/pre-destroy/n-1-5-pre-destroy-data_cache_size.output", 1);
	put_total("tables/runtime-snapshot/n-1-5-runtime-snapshot-data_cache_size.output", 2);
	set_time("tables/runtime-snapshot/n-1-5-runtime-snapshot-data_cache_size.output", 1000);
	set_time("tables/pre-destroy/n-1-5-pre-destroy-data_cache_size.output", 900);
	put_total("tables/mine/n-2-6-mine-data_cache_size.txt", 50);
	check_data(2, 52);
	put_total("tables/final/n-1-5-data_cache_size.txt", 4);
	set_time("tables/final/n-1-5-data_cache_size.txt", 1);
	check_data(2, 54);
	/* Lists that somebody wrote elsewhere into the job directory count as copies. */
	put_total("held/data_cache_size.output", 1000);
	check_data(2, 54);
	put_total("tables/final/n-3-9-data_cache_size.output", 600);
	check_data(3, 654);
}

static void faults_are_named_and_the_rest_is_used(void **state)
{
	struct cop_usage u;

	(void)state;
	write_table("1-data_cache_size.output", "");
	write_table("2-data_cache_size.output", "not a file of ours\n");
	write_table("3-data_cache_size.output", "/a: 10\n/b: 20\n/c: 3");
	write_table("4-data_cache_size.output",
		"/a: 99999999999999999999\nTotal bytes: 5\ntotal number of files: 1\n");
	assert_int_equal(mkfifo(in_dir("5-data_cache_size.output"), 0600), 0);
	assert_int_equal(mkdir(in_dir("6-data_cache_size.output"), 0700), 0);
	assert_int_equal(symlink("/dev/zero", in_dir("7-data_cache_size.output")), 0);
	assert_int_equal(symlink("nowhere", in_dir("8-data_cache_size.output")), 0);
	write_table(
		"9-data_cache_size.output", "/z: 1\nTotal bytes: 1\ntotal number of files: 1\n");
	u = read_dir(0);
	assert_int_equal(u.table[COP_USAGE_DATA].files, 3);
	assert_int_equal(u.table[COP_USAGE_DATA].bytes, 33 + 5 + 1);
	assert_int_equal(u.faults, 8);
	assert_non_null(strstr(u.named.data, "1-data_cache_size.output: it is empty\n"));
	assert_non_null(strstr(u.named.data, "3-data_cache_size.output: it is truncated"));
	assert_non_null(
		strstr(u.named.data, "5-data_cache_size.output: it is not a regular file\n"));
	cop_usage_free(&u);
}

static void files_that_are_all_of_no_use_are_a_failure(void **state)
{
	struct cop_usage u;
	static char zeros[300 * COP_KIB];

	(void)state;
	memset(zeros, 'x', sizeof(zeros) - 1);
	write_table("data_cache_size.output", zeros);
	u = read_dir(-ENODATA);
	assert_int_equal(u.faults, 1);
	assert_non_null(strstr(u.named.data, "longer than any path"));
	cop_usage_free(&u);
}

static void sums_stop_at_the_largest_number(void **state)
{
	struct cop_usage u;

	(void)state;
	write_table("1-md_cache_size.output",
		"Total bytes: 18446744073709551615\ntotal number of entries: 1\n");
	write_table("2-md_cache_size.output", "Total bytes: 5\ntotal number of entries: 1\n");
	u = read_dir(0);
	assert_true(u.table[COP_USAGE_METADATA].bytes == UINT64_MAX);
	cop_usage_free(&u);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_empty_directory_is_a_sentence),
		T(files_that_are_all_of_no_use_are_a_failure),
		T(faults_are_named_and_the_rest_is_used),
		T(the_lists_of_copper_1_0_are_nothing_to_complain_of),
		T(lists_below_the_directory_count_too),
		T(a_node_counts_once_with_the_latest_that_is_known),
		T(sums_stop_at_the_largest_number),
		T(a_job_directory_is_read_where_its_tables_are),
		T(files_of_many_ranks_and_of_both_versions_are_summed_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
