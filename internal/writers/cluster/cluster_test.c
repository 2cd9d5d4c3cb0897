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
#include <unistd.h>

#include "writers/cluster/cluster_priv.h"

static char dir[64];

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/cop-cluster-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r '%s'", dir);
	return system(command);
}

/* Returns the contents of this file; the caller frees them. */
static char *content(const char *name)
{
	char path[256], *data;
	size_t len;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(cop_read_file(path, COP_MIB, &data, &len), 0);
	return data;
}

static void check(const char *name, const char *want)
{
	char *got = content(name);

	assert_string_equal(got, want);
	free(got);
}

static struct cop_report_cluster *new (void)
{
	struct cop_report_cluster *c = cop_report_cluster_new();

	assert_non_null(c);
	return c;
}

static void write_in_dir(const struct cop_report_cluster *c, const char *prefix)
{
	struct cop_err err = {0};

	assert_int_equal(
		cop_report_cluster_write(c, dir, prefix, "/job/profiling/final", NULL, NULL, &err),
		0);
	assert_int_equal(err.code, 0);
}

static void an_empty_cluster_has_headers_only(void **state)
{
	struct cop_report_cluster *c = new ();

	(void)state;
	write_in_dir(c, "x");
	check("x-profiling_aggregate.csv", "metric,value\nranks_with_aggregate_files,0\n");
	check("x-profiling_operations.csv",
		"operation,total_calls,cache_hits,cache_misses,negative_results,avg_latency_us,total_latency_s\n");
	check("x-profiling_summary.md",
		"# Cluster Profiling Summary\n\n"
		"- Input directory: `/job/profiling/final`\n- Rank summaries aggregated: `0`\n\n"
		"## Aggregate Metrics\n\n| Metric | Value |\n|---|---:|\n| Ranks with aggregate files | 0 |\n\n"
		"## Operation Totals\n\n"
		"| Operation | Total Calls | Cache Hits | Cache Misses | Negative Results | Avg Latency (us) | Total Latency (s) |\n"
		"|---|---:|---:|---:|---:|---:|---:|\n");
	cop_report_cluster_free(c);
}

static void rows_are_sums_in_order_of_name(void **state)
{
	struct cop_report_cluster *c = new ();
	const struct cop_report_op read = {
		.calls = 3, .hits = 2, .misses = 1, .latency_s = 0.000001};
	const struct cop_report_op lookup = {.calls = UINT64_MAX, .negatives = 4, .latency_s = 1.5};

	(void)state;
	cop_report_cluster_ranks(c, 1);
	cop_report_cluster_ranks(c, 1);
	assert_int_equal(cop_report_cluster_metric(c, "b,\"c", "18446744073709551615"), 0);
	assert_int_equal(cop_report_cluster_metric(c, "b,\"c", "1"), 0);
	assert_int_equal(cop_report_cluster_metric(c, "a", "9007199254740993"), 0);
	assert_int_equal(cop_report_cluster_metric(c, "a", "9007199254740993"), 0);
	assert_int_equal(cop_report_cluster_metric(c, "c", "0.25"), 0);
	assert_int_equal(cop_report_cluster_metric(c, "c", "1"), 0);
	assert_int_equal(cop_report_cluster_op(c, "read", &read), 0);
	assert_int_equal(cop_report_cluster_op(c, "lookup", &lookup), 0);
	assert_int_equal(cop_report_cluster_op(c, "lookup", &lookup), 0);
	write_in_dir(c, "x");
	check("x-profiling_aggregate.csv",
		"metric,value\nranks_with_aggregate_files,2\na,18014398509481986\n"
		"\"b,\"\"c\",18446744073709551615\nc,1.250000\n");
	check("x-profiling_operations.csv",
		"operation,total_calls,cache_hits,cache_misses,negative_results,avg_latency_us,total_latency_s\n"
		"lookup,18446744073709551615,0,0,8,0.00,3.000000\n"
		"read,3,2,1,0,0.33,0.000001\n");
	cop_report_cluster_free(c);
}

static void a_malformed_number_or_name_is_refused(void **state)
{
	struct cop_report_cluster *c = new ();
	char name[300];

	(void)state;
	assert_int_equal(cop_report_cluster_metric(c, "mode", "full-path"), -EINVAL);
	assert_int_equal(cop_report_cluster_metric(c, "", "1"), -ENOBUFS);
	memset(name, 'x', sizeof(name));
	name[256] = '\0';
	assert_int_equal(cop_report_cluster_metric(c, name, "1"), -ENOBUFS);
	name[255] = '\0';
	assert_int_equal(cop_report_cluster_metric(c, name, "1"), 0);
	for (unsigned i = 1; i < CLUSTER_NAMES_MAX; i++) {
		snprintf(name, sizeof(name), "%u", i);
		assert_int_equal(cop_report_cluster_metric(c, name, "1"), 0);
	}
	assert_int_equal(cop_report_cluster_metric(c, "one more", "1"), -ENOBUFS);
	assert_int_equal(cop_report_cluster_metric(c, "1", "1"), 0);
	cop_report_cluster_free(c);
}

static void too_many_names_are_merged_not_at_all(void **state)
{
	struct cop_report_cluster *into = new (), *from = new ();
	char name[16];

	(void)state;
	for (unsigned i = 0; i + 1 < CLUSTER_NAMES_MAX; i++) {
		snprintf(name, sizeof(name), "%u", i);
		assert_int_equal(cop_report_cluster_metric(into, name, "1"), 0);
	}
	cop_report_cluster_ranks(from, 1);
	assert_int_equal(cop_report_cluster_metric(from, "0", "1"), 0);
	assert_int_equal(cop_report_cluster_metric(from, "a", "1"), 0);
	assert_int_equal(cop_report_cluster_metric(from, "b", "1"), 0);
	assert_int_equal(cop_report_cluster_merge(into, from), -ENOBUFS);
	assert_int_equal(into->ranks, 0);
	assert_true(cop_report_rows_find(&into->metrics, "0")->sum == COP_NUMBER_UNIT);
	assert_null(cop_report_rows_find(&into->metrics, "a"));
	cop_report_cluster_free(from);
	cop_report_cluster_free(into);
}

static const char *const words[] = {"getattr", "lookup", "open", "read", "readdir"};

/* Adds numbers derived from the rank; some are at the limits of their type. */
static void add_rank(struct cop_report_cluster *c, unsigned rank)
{
	char value[32];

	cop_report_cluster_ranks(c, 1);
	for (unsigned i = 0; i < COP_ARRAY_SIZE(words); i++) {
		uint64_t n = (rank * 2654435761u + i * 40503u) % 100003;
		const struct cop_report_op op = {.calls = n,
			.hits = rank == 7 ? UINT64_MAX - 5 : n / 2,
			.misses = n % 3,
			.negatives = i,
			.latency_s = (double)n / 1e6};
		const uint64_t top[COP_REPORT_TOP_COUNTS] = {n % 5, 0, 0, 0, 0, n % 7};

		if ((rank + i) % 4 == 0)
			continue;
		snprintf(value, sizeof(value), i == 3 ? "%u.%06u" : "%u", (unsigned)n,
			(unsigned)(n * 7 % 1000000));
		assert_int_equal(cop_report_cluster_metric(c, words[i], value), 0);
		assert_int_equal(cop_report_cluster_op(c, words[i], &op), 0);
		snprintf(value, sizeof(value), "/e/%s/%u", i % 2 ? "bin" : "lib/python3", rank % 3);
		assert_int_equal(cop_report_cluster_top(c, i == 4 ? "metadata_ttl" : "data", value,
					 strlen(value), top),
			0);
	}
}

static void aggregates_of_parts_are_the_aggregate_of_the_whole(void **state)
{
	static const char *const names[] = {
		"profiling_aggregate.csv", "profiling_operations.csv", "profiling_summary.md"};
	struct cop_report_cluster *whole = new ();
	const unsigned ranks = 24;

	(void)state;
	for (unsigned r = 0; r < ranks; r++)
		add_rank(whole, r);
	write_in_dir(whole, "whole");
	for (unsigned parts = 1; parts <= ranks; parts += 3) {
		struct cop_report_cluster *sum = new (), *part = new ();

		for (unsigned p = parts; p-- > 0;) {
			for (unsigned r = ranks; r-- > 0;)
				if (r * 7 % ranks % parts == p)
					add_rank(part, r);
			assert_int_equal(cop_report_cluster_merge(sum, part), 0);
			cop_report_cluster_clear(part);
		}
		write_in_dir(sum, "parts");
		for (unsigned f = 0; f < COP_ARRAY_SIZE(names); f++) {
			char name[64], *want;

			snprintf(name, sizeof(name), "whole-%s", names[f]);
			want = content(name);
			snprintf(name, sizeof(name), "parts-%s", names[f]);
			check(name, want);
			free(want);
		}
		cop_report_cluster_free(sum);
		cop_report_cluster_free(part);
	}
	cop_report_cluster_free(whole);
}

static void classes_and_advice_follow_the_operations(void **state)
{
	struct cop_report_cluster *c = new ();
	const uint64_t busy[COP_REPORT_TOP_COUNTS] = {9, 8, 1},
		       absent[COP_REPORT_TOP_COUNTS] = {5, 0, 0, 0, 1, 4};
	struct cop_err err = {0};
	char *got;

	(void)state;
	assert_int_equal(cop_report_cluster_top(c, "data", "/e/bin/python", 13, busy), 0);
	assert_int_equal(cop_report_cluster_top(c, "metadata_ttl", "/e/libm.so.6", 12, absent), 0);
	assert_int_equal(
		cop_report_cluster_write(c, dir, "x", "in", NULL, "nothing to cover\n", &err), 0);
	got = content("x-profiling_summary.md");
	assert_non_null(
		strstr(got, "\n| `environment_bin` | 1 | 9 | `/e/bin/python` |\n"
			    "| `missing_shared_library_probe` | 1 | 5 | `/e/libm.so.6` |\n"));
	assert_non_null(strstr(got, "## Pruning Guidance"));
	assert_non_null(strstr(got, "leave the ENOENT TTL on"));
	assert_non_null(strstr(got, "\n\n## Path Coverage Analysis\n\nnothing to cover\n"));
	free(got);
	cop_report_cluster_free(c);
}

static void files_that_cannot_be_written_are_named(void **state)
{
	struct cop_report_cluster *c = new ();
	struct cop_err err = {0};
	char path[128];

	(void)state;
	assert_int_equal(cop_report_cluster_write(c, dir, "a/b", "in", NULL, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, "PREFIX 'a/b'"));
	assert_int_equal(cop_report_cluster_write(c, dir, "", "in", NULL, NULL, &err), -EINVAL);
	snprintf(path, sizeof(path), "%s/file", dir);
	assert_int_equal(cop_write_file(path, "", 0, 0600), 0);
	assert_int_equal(cop_report_cluster_write(c, path, "x", "in", NULL, NULL, &err), -ENOTDIR);
	assert_non_null(strstr(err.text, path));
	cop_report_cluster_free(c);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_empty_cluster_has_headers_only),
		T(rows_are_sums_in_order_of_name),
		T(a_malformed_number_or_name_is_refused),
		T(too_many_names_are_merged_not_at_all),
		T(aggregates_of_parts_are_the_aggregate_of_the_whole),
		T(classes_and_advice_follow_the_operations),
		T(files_that_cannot_be_written_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
