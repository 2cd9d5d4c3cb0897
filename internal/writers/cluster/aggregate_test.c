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
#include <sys/stat.h>
#include <unistd.h>

#include "writers/cluster/cluster_priv.h"

#define OPERATIONS                                                                                 \
	"operation,total_calls,cache_hits,cache_misses,negative_results,avg_latency_us,total_latency_s\n"
#define TOP                                                                                        \
	"category,path,total_events,cache_hits,cache_misses,negative_results,ttl_stores,ttl_serves,ttl_expires,ttl_clears\n"

static char dir[64];
static struct cop_report_aggregated got;
static struct cop_err err;

static void run_in_dir(const char *command)
{
	char line[512];

	snprintf(line, sizeof(line), "cd '%s' && %s", dir, command);
	assert_int_equal(system(line), 0);
}

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/cop-aggregate-XXXXXX");
	got = (struct cop_report_aggregated){0};
	err = (struct cop_err){0};
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	cop_report_aggregated_free(&got);
	run_in_dir("rm -r \"$PWD\"");
	return 0;
}

static int aggregate(const char *prefix)
{
	cop_report_aggregated_free(&got);
	err = (struct cop_err){0};
	return cop_report_aggregate(
		&(struct cop_report_aggregate){.job_dir = dir, .prefix = prefix}, &got, &err);
}

static void write_table(const char *name, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(cop_write_file(path, text, strlen(text), 0644), 0);
}

static void put_rank(unsigned rank, const char *folder)
{
	char name[128], text[256];

	snprintf(name, sizeof(name), "%sn%u-%u-profiling_aggregate.csv", folder, rank, rank);
	snprintf(text, sizeof(text), "metric,value\nhits,%u\nseconds,0.%06u\n", rank, rank);
	write_table(name, text);
	snprintf(name, sizeof(name), "%sn%u-%u-profiling_operations.csv", folder, rank, rank);
	snprintf(text, sizeof(text), OPERATIONS "lookup,%u,1,0,0,1.00,0.000001\n", rank);
	write_table(name, text);
	snprintf(name, sizeof(name), "%sn%u-%u-profiling_top_paths.csv", folder, rank, rank);
	snprintf(text, sizeof(text), TOP "data,\"/e/%u\",%u,0,0,0,0,0,0,0\n", rank, rank % 100);
	write_table(name, text);
}

static uint64_t metric(const char *name)
{
	const struct row *row = cop_report_rows_find(&got.cluster->metrics, name);

	return row ? (uint64_t)(row->sum / COP_NUMBER_UNIT) : 0;
}

static void an_empty_directory_is_said_to_be_so_with_the_likely_causes(void **state)
{
	char want[160];

	(void)state;
	assert_int_equal(aggregate("cluster"), -ENOENT);
	snprintf(want, sizeof(want), "failed to find profiling csv files under: %s\n", dir);
	assert_memory_equal(err.text, want, strlen(want));
	assert_non_null(strstr(err.text, "copper stop"));
	run_in_dir("mkdir -p profiling/final && test ! -e profiling/cluster");
	assert_int_equal(aggregate("cluster"), -ENOENT);
	assert_non_null(strstr(err.text, "/profiling/final\n"));
	run_in_dir("test ! -e profiling/cluster");
}

static void the_sums_that_the_job_wrote_itself_are_mentioned(void **state)
{
	(void)state;
	run_in_dir("mkdir -p profiling/cluster profiling/final");
	write_table("profiling/cluster/cluster-profiling_aggregate.csv",
		"metric,value\nranks_with_aggregate_files,64\nhits,1\n");
	assert_int_equal(aggregate("cluster"), -ENOENT);
	assert_non_null(strstr(err.text, "sums over 64 ranks"));
}

static void sums_over_more_ranks_are_not_replaced(void **state)
{
	(void)state;
	run_in_dir("mkdir -p profiling/cluster");
	write_table("profiling/cluster/cluster-profiling_aggregate.csv",
		"metric,value\nranks_with_aggregate_files,2\nhits,1\n");
	put_rank(1, "");
	assert_int_equal(aggregate("cluster"), -EEXIST);
	assert_non_null(strstr(err.text, "2 ranks, and files of 1 were found"));
	run_in_dir("test `ls profiling/cluster | wc -l` = 1");
	assert_int_equal(aggregate("other"), 0);
	put_rank(2, "");
	assert_int_equal(aggregate("cluster"), 0);
	assert_int_equal(metric("hits"), 3);
}

static void nothing_usable_is_a_failure_that_names_all(void **state)
{
	(void)state;
	write_table("h-1-profiling_aggregate.csv", "");
	write_table("h-1-profiling_operations.csv", "x\n");
	assert_int_equal(aggregate("cluster"), -ENODATA);
	assert_int_equal(got.faults, 2);
	assert_non_null(strstr(got.named.data, "h-1-profiling_aggregate.csv: it is empty\n"));
	assert_non_null(strstr(err.text, "failed to find profiling csv files under: "));
	run_in_dir("test ! -e profiling");
}

static void the_folder_of_the_final_files_comes_first(void **state)
{
	(void)state;
	run_in_dir("mkdir -p profiling/final");
	put_rank(1, "");
	put_rank(2, "profiling/final/");
	assert_int_equal(aggregate("cluster"), 0);
	assert_int_equal(got.files[COP_REPORT_AGGREGATE], 1);
	assert_int_equal(metric("hits"), 2);
	run_in_dir("test `ls profiling/cluster | wc -l` = 4");
}

static void put_tagged(const char *folder, const char *name, unsigned hits)
{
	char path[192], text[64];

	snprintf(path, sizeof(path), "%s/%s-profiling_aggregate.csv", folder, name);
	snprintf(text, sizeof(text), "metric,value\nhits,%u\n", hits);
	write_table(path, text);
}

static int aggregate_below(const char *folder)
{
	size_t len = strlen(dir);
	int rc;

	snprintf(dir + len, sizeof(dir) - len, "/%s", folder);
	rc = aggregate("cluster");
	dir[len] = '\0';
	return rc;
}

static void the_folder_of_a_snapshot_counts_each_rank_once(void **state)
{
	(void)state;
	run_in_dir("mkdir -p profiling/final profiling/pre-reset profiling/odd");
	put_tagged("profiling/pre-reset", "n-1-5-pre-reset", 3);
	put_tagged("profiling/pre-reset", "n-1-6-pre-reset", 4);
	put_tagged("profiling/pre-reset", "n-1-7-pre-destroy", 5);
	assert_int_equal(aggregate("cluster"), -ENOENT);
	assert_non_null(
		strstr(err.text, "there is a snapshot from while it ran: copper aggregate /tmp/"));
	assert_non_null(strstr(err.text, "/profiling/pre-reset"));
	assert_int_equal(aggregate_below("profiling/pre-reset"), 0);
	assert_int_equal(metric("hits"), 7);
	put_tagged("profiling/pre-reset", "n-1-5", 100);
	run_in_dir("rm -r profiling/pre-reset/profiling");
	assert_int_equal(aggregate_below("profiling/pre-reset"), 0);
	assert_int_equal(metric("hits"), 100);
}

static void several_runs_in_one_directory_are_noticed(void **state)
{
	struct cop_buf text = {0};

	(void)state;
	run_in_dir("mkdir -p profiling/final logs");
	put_tagged("profiling/final", "n1-5", 1);
	put_tagged("profiling/final", "n2-5", 1);
	write_table("logs/node_file.txt", "n1\nn2\n");
	assert_int_equal(aggregate("cluster"), 0);
	cop_report_aggregated_mixed(&got, &text);
	assert_int_equal(text.len, 0);
	put_tagged("profiling/final", "n2-6", 1);
	assert_int_equal(aggregate("cluster"), 0);
	cop_report_aggregated_mixed(&got, &text);
	assert_non_null(strstr(
		text.data, "3 ranks left files in this job directory, and its last run had 2: "));
	assert_int_equal(metric("hits"), 3);
	run_in_dir(
		"grep -q '^- 3 ranks left files' profiling/cluster/cluster-profiling_summary.md");
	cop_buf_free(&text);
	run_in_dir("rm logs/node_file.txt");
	assert_int_equal(aggregate("cluster"), 0);
	cop_report_aggregated_mixed(&got, &text);
	assert_int_equal(text.len, 0);
}

static void a_node_that_left_nothing_is_named(void **state)
{
	struct cop_buf text = {0}, json = {0};

	(void)state;
	run_in_dir("mkdir -p profiling/final logs");
	put_tagged("profiling/final", "n1-5", 1);
	put_tagged("profiling/final", "n3-5", 1);
	write_table("logs/node_file.txt", "n1\nn2\nn3\n");
	assert_int_equal(aggregate("cluster"), 0);
	cop_report_aggregated_missing(&got, &text);
	assert_string_equal(text.data,
		"1 of the 3 nodes of the job left no file at all, and the sums do not include them: n2");
	run_in_dir(
		"grep -q '^- 1 of the 3 nodes of the job left no file at all, .*: n2$' profiling/cluster/cluster-profiling_summary.md");
	cop_report_aggregated_json(&got, "cluster", &json);
	assert_non_null(
		strstr(json.data, "},\"missing_nodes\":1,\"missing\":\"n2\",\"ending\":\"\"}\n"));
	cop_buf_free(&json);
	cop_buf_free(&text);
	put_tagged("profiling/final", "n2-5", 1);
	assert_int_equal(aggregate("cluster"), 0);
	cop_report_aggregated_missing(&got, &text);
	assert_int_equal(text.len, 0);
	run_in_dir("! grep -q 'left no file' profiling/cluster/cluster-profiling_summary.md");
}

static void files_that_are_no_files_do_not_stop_it(void **state)
{
	(void)state;
	alarm(30);
	put_rank(1, "");
	run_in_dir(
		"mkfifo a-1-profiling_aggregate.csv; ln -s /dev/zero b-1-profiling_operations.csv; mkdir c-1-profiling_top_paths.csv; "
		"ln -s nowhere d-1-profiling_aggregate.csv; truncate -s 2T e-1-profiling_aggregate.csv");
	assert_int_equal(aggregate("cluster"), 0);
	assert_int_equal(got.files[COP_REPORT_AGGREGATE], 1);
	/* None of the five ranks' files is usable. */
	assert_int_equal(got.faults, 15);
	alarm(0);
}

static void many_ranks_are_all_read_by_many_readers(void **state)
{
	uint64_t want = 0;

	(void)state;
	for (unsigned r = 1; r <= 700; r++) {
		put_rank(r, "");
		want += r;
	}
	assert_int_equal(aggregate("cluster"), 0);
	assert_int_equal(got.faults, 0);
	for (unsigned k = 0; k < COP_REPORT_KINDS; k++)
		assert_int_equal(got.files[k], 700);
	assert_int_equal(metric("hits"), want);
	assert_int_equal(cop_report_rows_find(&got.cluster->ops, "lookup")->count[0], want);
	assert_int_equal(got.cluster->classes.of[COP_PATHCLASS_PREFIX].entries, 700);
	assert_string_equal(got.cluster->classes.of[COP_PATHCLASS_PREFIX].example, "/e/199");
}

/* With just -P, no rank has top paths; with -N, all ranks do. */
static void top_paths_are_missing_only_if_others_have_them(void **state)
{
	(void)state;
	put_rank(1, "");
	put_rank(2, "");
	run_in_dir("rm n1-1-profiling_top_paths.csv");
	assert_int_equal(aggregate("cluster"), 0);
	assert_int_equal(got.faults, 1);
	assert_non_null(strstr(got.named.data, "n1-1-profiling_top_paths.csv: it is missing"));
	run_in_dir("rm n2-2-profiling_top_paths.csv");
	assert_int_equal(aggregate("cluster"), 0);
	assert_int_equal(got.faults, 0);
}

static void a_job_directory_that_cannot_be_read_is_named(void **state)
{
	(void)state;
	strcat(dir, "/x");
	assert_int_equal(aggregate("cluster"), -ENOENT);
	assert_non_null(strstr(err.text, "cannot read the job directory"));
	*strrchr(dir, '/') = '\0';
	write_table("x", "");
	strcat(dir, "/x");
	assert_int_equal(aggregate("cluster"), -ENOTDIR);
	assert_non_null(strstr(err.text, "is not a directory"));
	*strrchr(dir, '/') = '\0';
	assert_int_equal(aggregate("../x"), -EINVAL);
}

static void a_table_and_json_show_the_sums(void **state)
{
	struct cop_buf text = {0};

	(void)state;
	put_rank(1, "");
	write_table(
		"\"x\"-7-profiling_operations.csv", OPERATIONS "a\x1b[31m,4,3,1,0,2.5,0.000010\n");
	assert_int_equal(aggregate("cluster"), 0);
	cop_report_aggregated_table(&got, &text);
	assert_null(strchr(text.data, '\x1b'));
	assert_non_null(strstr(text.data,
		"\nlookup                          1            1          0          0       1.00        0.000\n"));
	assert_non_null(strstr(text.data,
		"\ntotal                           5            4          1          0       2.20        0.000\n"));
	cop_buf_free(&text);
	cop_report_aggregated_json(&got, "cluster", &text);
	assert_non_null(strstr(text.data,
		"\"ranks\":1,\"files\":{\"aggregate\":1,\"operations\":2,\"top_paths\":1},\"unusable\":2,\"doubtful\":0,\"found\":2,\"job_nodes\":0,"
		"\"metrics\":{\"hits\":1,\"seconds\":0.000001},\"operations\":{\"a\\u001b[31m\":{\"total_calls\":4,\"cache_hits\":3,"
		"\"cache_misses\":1,\"negative_results\":0,\"avg_latency_us\":2.50,\"total_latency_s\":0.000010},"));
	cop_buf_free(&text);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_empty_directory_is_said_to_be_so_with_the_likely_causes),
		T(the_sums_that_the_job_wrote_itself_are_mentioned),
		T(sums_over_more_ranks_are_not_replaced),
		T(nothing_usable_is_a_failure_that_names_all),
		T(the_folder_of_the_final_files_comes_first),
		T(the_folder_of_a_snapshot_counts_each_rank_once),
		T(several_runs_in_one_directory_are_noticed),
		T(a_node_that_left_nothing_is_named),
		T(files_that_are_no_files_do_not_stop_it),
		T(many_ranks_are_all_read_by_many_readers),
		T(top_paths_are_missing_only_if_others_have_them),
		T(a_job_directory_that_cannot_be_read_is_named),
		T(a_table_and_json_show_the_sums),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
