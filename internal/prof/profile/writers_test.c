/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "prof/profile/profile_testing.h"

/* The events behind the golden files below. */
static void play(struct cop_prof *p)
{
	static const char odd[] = "say \"hi\",\nback\\slash \xff";

	cop_prof_op(p, COP_PROF_OP_READ, COP_PROF_HIT, 10000);
	cop_prof_op(p, COP_PROF_OP_READ, COP_PROF_MISS, 2000000);
	cop_prof_op(p, COP_PROF_OP_LOOKUP, COP_PROF_HIT, 50);
	cop_prof_op(p, COP_PROF_OP_LOOKUP, COP_PROF_HIT, 51);
	cop_prof_op(p, COP_PROF_OP_LOOKUP, COP_PROF_NEGATIVE, 54);
	cop_prof_op(p, COP_PROF_OP_LOOKUP, COP_PROF_ERROR, 60);
	cop_prof_op(p, COP_PROF_OP_MKDIR, COP_PROF_NEGATIVE, 0);
	cop_prof_op(p, COP_PROF_OP_INIT, COP_PROF_DONE, 1);
	cop_prof_path(p, COP_PROF_METADATA, "lib/libz.so", 11, COP_PROF_MISS);
	cop_prof_path(p, COP_PROF_METADATA, "", 0, COP_PROF_HIT);
	cop_prof_path(p, COP_PROF_METADATA, "lib/libz.so", 11, COP_PROF_HIT);
	cop_prof_path(p, COP_PROF_METADATA, "denied", 6, COP_PROF_ERROR);
	cop_prof_path(p, COP_PROF_METADATA, odd, sizeof(odd) - 1, COP_PROF_NEGATIVE);
	cop_prof_read(p, "lib/libz.so", 11, COP_PROF_MISS, 0, 4096);
	cop_prof_path(p, COP_PROF_TREE, "lib", 3, COP_PROF_MISS);
	cop_prof_ttl(p, "lib/libq.so", 11, COP_PROF_STORE);
	cop_prof_ttl(p, "lib/libq.so", 11, COP_PROF_SERVE);
	cop_prof_ttl(p, "lib/libq.so", 11, COP_PROF_SERVE);
	cop_prof_ttl(p, "lib/libq.so", 11, COP_PROF_EXPIRE);
	cop_prof_ttl(p, "bin/pyvenv.cfg", 14, COP_PROF_CLEAR);
}

static const char golden_operations[] =
	"operation,total_calls,cache_hits,cache_misses,negative_results,avg_latency_us,total_latency_s\n"
	"lookup,4,2,0,1,0.05,0.000000\n"
	"read,2,1,1,0,1005.00,0.002010\n"
	"init,1,0,0,0,0.00,0.000000\n"
	"mkdir,1,0,0,1,0.00,0.000000\n";

static const char golden_aggregate[] = "metric,value\n"
				       "total_counted_fuse_operations,8\n"
				       "total_cache_hits,3\n"
				       "total_cache_misses,1\n"
				       "total_negative_results,2\n"
				       "estimated_cache_served_operations_saved_by_copper,3\n"
				       "metadata_enoent_ttl_stores,1\n"
				       "metadata_enoent_ttl_serves,2\n"
				       "metadata_enoent_ttl_expires,1\n"
				       "metadata_enoent_ttl_clears_on_success_or_non_enoent,1\n"
				       "estimated_repeated_metadata_lookups_avoided_by_ttl,2\n"
				       "total_measured_latency_seconds,0.002010\n";

/* 10,000 is in the bucket that begins at 9,984 and is 256 wide. 2,000,000 is the maximum, and below
 * the midpoint of its bucket. */
static const char golden_latency[] = "operation,count,p50_us,p90_us,p99_us,p999_us,max_us\n"
				     "lookup,4,0.05,0.06,0.06,0.06,0.06\n"
				     "read,2,10.11,2000.00,2000.00,2000.00,2000.00\n"
				     "init,1,0.00,0.00,0.00,0.00,0.00\n"
				     "mkdir,1,0.00,0.00,0.00,0.00,0.00\n";

static const char golden_top[] =
	"category,path,total_events,cache_hits,cache_misses,negative_results,ttl_stores,ttl_serves,ttl_expires,ttl_clears\n"
	"metadata,\"/soft/lib/libz.so\",2,1,1,0,0,0,0,0\n"
	"metadata,\"/soft\",1,1,0,0,0,0,0,0\n"
	"metadata,\"/soft/say \"\"hi\"\",\nback\\slash \xff\",1,0,0,1,0,0,0,0\n"
	"data,\"/soft/lib/libz.so\",1,0,1,0,0,0,0,0\n"
	"tree,\"/soft/lib\",1,0,1,0,0,0,0,0\n"
	"metadata_ttl,\"/soft/lib/libq.so\",4,0,0,0,1,2,1,0\n"
	"metadata_ttl,\"/soft/bin/pyvenv.cfg\",1,0,0,0,0,0,0,1\n";

static const char golden_md[] =
	"md_cache_event_table {\n"
	"/soft/lib/libz.so {\ncache hits: 1,\ncache misses: 1,\nneg: 0\n}\n"
	"/soft {\ncache hits: 1,\ncache misses: 0,\nneg: 0\n}\n"
	"/soft/denied {\ncache hits: 0,\ncache misses: 0,\nneg: 0\n}\n"
	"/soft/say \"hi\",\\nback\\\\slash \xff {\ncache hits: 0,\ncache misses: 0,\nneg: 1\n}\n"
	"}\n";

static const char golden_ttl[] =
	"Metadata ENOENT TTL Events {\n"
	"/soft/lib/libq.so {\nstores: 1,\nserves: 2,\nexpires: 1,\nclears: 0\n}\n"
	"/soft/bin/pyvenv.cfg {\nstores: 0,\nserves: 0,\nexpires: 0,\nclears: 1\n}\n"
	"}\n";

static const char golden_touch[] = "order,table,path,ranges\n"
				   "0,source,\"/soft\",\n"
				   "1,metadata,\"/soft/lib/libz.so\",\n"
				   "2,metadata,\"/soft\",\n"
				   "3,metadata,\"/soft/denied\",\n"
				   "4,metadata,\"/soft/say \"\"hi\"\",\nback\\slash \xff\",\n"
				   "5,data,\"/soft/lib/libz.so\",0-4096\n"
				   "6,tree,\"/soft/lib\",\n";

static void the_files_of_a_small_story_are_these(void **state)
{
	struct cop_prof *p = profile(COP_PROF_FULL, 3);

	(void)state;
	play(p);
	snapshot(p, NULL, NULL);
	check_file("profiling/final/nid-01.site-4711-profiling_operations.csv", golden_operations);
	check_file("profiling/final/nid-01.site-4711-profiling_aggregate.csv", golden_aggregate);
	check_file("profiling/final/nid-01.site-4711-profiling_latency.csv", golden_latency);
	check_file("profiling/final/nid-01.site-4711-profiling_top_paths.csv", golden_top);
	check_file("profiling/final/nid-01.site-4711-profiling_first_touch.csv", golden_touch);
	check_file("tables/final/nid-01.site-4711-md_table_cache_event.output", golden_md);
	check_file("tables/final/nid-01.site-4711-md_ttl_cache_event.output", golden_ttl);
	check_file("tables/final/nid-01.site-4711-data_table_cache_event.output",
		"data_cache_event_table {\n/soft/lib/libz.so {\ncache hits: 0,\ncache misses: 1,\nneg: 0\n}\n}\n");
	check_file("tables/final/nid-01.site-4711-tree_table_cache_event.output",
		"tree_cache_event_table {\n/soft/lib {\ncache hits: 0,\ncache misses: 1,\nneg: 0\n}\n}\n");
	cop_prof_free(p);
}

static void the_top_level_writes_the_same_top_paths_as_the_full_one(void **state)
{
	struct cop_prof *p = profile(COP_PROF_TOP, 3);

	(void)state;
	play(p);
	snapshot(p, NULL, NULL);
	check_file("profiling/final/nid-01.site-4711-profiling_top_paths.csv", golden_top);
	cop_prof_free(p);
}

static void a_node_without_events_writes_headers(void **state)
{
	struct cop_prof *p = profile(COP_PROF_FULL, 3);
	char *summary;

	(void)state;
	snapshot(p, NULL, NULL);
	check_file("profiling/final/nid-01.site-4711-profiling_operations.csv",
		"operation,total_calls,cache_hits,cache_misses,negative_results,avg_latency_us,total_latency_s\n");
	check_file("tables/final/nid-01.site-4711-md_table_cache_event.output",
		"md_cache_event_table {\n}\n");
	summary = read_job("profiling/final/nid-01.site-4711-profiling_summary.md");
	assert_null(strstr(summary, "## Path Class Heuristics"));
	free(summary);
	cop_prof_free(p);
}

static void the_summary_is_as_in_the_golden_file(void **state)
{
	struct cop_prof *p = profile(COP_PROF_TOP, 20);
	char *text;

	(void)state;
	play(p);
	snapshot(p, "pre-destroy", NULL);
	text = read_job("profiling/pre-destroy/nid-01.site-4711-pre-destroy-profiling_summary.md");
	check_has(text,
		"- Profiling mode: `top-path`\n- Metadata ENOENT TTL (ms): `2000`\n- Top-path limit: `20`\n"
		"- Full path outputs enabled: `no`\n- Snapshot tag: `pre-destroy`\n- Node: `nid-01.site-4711`\n");
	check_has(text, "count first uses; `copper mount --observe` counts every use.\n");
	check_has(text,
		"## Aggregate Operation Metrics\n\n| Operation | Total Calls | Cache Hits | Cache Misses | Negative Results | "
		"Avg Latency (us) | Total Latency (s) | Errors | p99 (us) | Max (us) |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
	check_has(text, "| `lookup` | 4 | 2 | 0 | 1 | 0.05 | 0.000000 | 1 | 0.06 | 0.06 |\n");
	check_has(text, "## Derived High-Level Metrics\n\n| Metric | Value |\n|---|---:|\n");
	check_has(text, "| Total counted FUSE operations | 8 |\n");
	check_has(text, "| Metadata ENOENT TTL serves | 2 |\n");
	check_has(text, "| Total measured latency across counted operations (s) | 0.002010 |\n");
	check_has(text, "`nid-01.site-4711-pre-destroy-profiling_top_paths.csv`");
	check_has(text, "| Path Class | Entries | Total Events | Example |\n|---|---:|---:|---|\n"
			"| `missing_shared_library_probe` | 1 | 4 | `/soft/lib/libq.so` |\n"
			"| `shared_library` | 2 | 3 | `/soft/lib/libz.so` |\n"
			"| `environment_prefix` | 3 | 3 | `/soft` |\n"
			"| `virtual_env_probe` | 1 | 1 | `/soft/bin/pyvenv.cfg` |\n");
	check_has(text, "LD_LIBRARY_PATH");
	assert_null(strstr(text, "Torch"));
	assert_null(strstr(text, "Storage"));
	assert_null(strstr(text, "estimates:"));
	free(text);
	cop_prof_free(p);
}

static void the_summary_states_estimates_and_what_was_dropped(void **state)
{
	struct cop_prof_conf conf = {
		.level = COP_PROF_FULL, .job_dir = job, .host = "n", .pid = 1, .max_path_bytes = 1};
	struct cop_prof *p = cop_prof_new(&conf);
	char path[32], *text;

	(void)state;
	assert_non_null(p);
	play(p);
	snapshot(p, NULL, NULL);
	text = read_job("profiling/final/n-1-profiling_summary.md");
	check_has(text, "The memory for paths was used up: 12 events are missing");
	check_has(text, "- Profiling mode: `full-path`\n");
	free(text);
	cop_prof_free(p);
	p = profile(COP_PROF_TOP, 1);
	for (unsigned i = 0; i < 40000; i++)
		cop_prof_path(p, COP_PROF_DATA, path,
			(size_t)snprintf(path, sizeof(path), "f%u", i), COP_PROF_MISS);
	snapshot(p, NULL, NULL);
	text = read_job("profiling/final/nid-01.site-4711-profiling_summary.md");
	check_has(text,
		"Counts of category `data` are estimates: none is too high, and none is too low by more than ");
	assert_null(strstr(text, "category `tree`"));
	free(text);
	cop_prof_free(p);
}

static void the_final_summary_has_no_tag_and_says_whether_everything_is_seen(void **state)
{
	struct cop_prof_conf conf = {.level = COP_PROF_AGGREGATE,
		.job_dir = job,
		.host = "n",
		.pid = 1,
		.observe = true};
	struct cop_prof *p = cop_prof_new(&conf);
	char *text;

	(void)state;
	assert_non_null(p);
	snapshot(p, NULL, NULL);
	text = read_job("profiling/final/n-1-profiling_summary.md");
	assert_ptr_equal(
		strstr(text, "# Copper Profiling Summary\n\n- Profiling mode: `aggregate-only`\n"),
		text);
	assert_null(strstr(text, "Snapshot tag"));
	check_has(text,
		"- With `--observe` the kernel caches nothing: all counts, including those by path, count every use.\n");
	free(text);
	cop_prof_free(p);
}

static void the_part_of_the_storage_is_in_the_sums_and_in_the_summary(void **state)
{
	static struct cop_stats stats;
	struct cop_prof_conf conf = {.level = COP_PROF_AGGREGATE,
		.job_dir = job,
		.host = "n",
		.pid = 1,
		.stats = &stats};
	struct cop_prof *p = cop_prof_new(&conf);
	char *text;

	(void)state;
	assert_non_null(p);
	cop_stats_add(&stats, COP_ORIGIN_OPERATIONS, 12);
	cop_stats_add(&stats, COP_ORIGIN_BYTES, 4096);
	cop_stats_add(&stats, COP_ORIGIN_TIME_US, 3000007);
	snapshot(p, NULL, NULL);
	text = read_job("profiling/final/n-1-profiling_aggregate.csv");
	check_has(text,
		"total_measured_latency_seconds,0.000000\nstorage_operations,12\nstorage_bytes,4096\nstorage_time_seconds,3.000007\n");
	free(text);
	text = read_job("profiling/final/n-1-profiling_summary.md");
	check_has(text,
		"| Storage operations | 12 |\n| Storage bytes read | 4096 |\n| Storage time (s) | 3.000007 |\n");
	free(text);
	cop_prof_free(p);
}

static void fabric_rows_are_the_counters_of_fabric_and_origin(void **state)
{
	static struct cop_stats stats;
	struct cop_prof_conf conf = {.level = COP_PROF_AGGREGATE,
		.job_dir = job,
		.host = "n",
		.pid = 1,
		.stats = &stats};
	struct cop_prof *p = cop_prof_new(&conf);
	char *text;

	(void)state;
	assert_non_null(p);
	cop_stats_add(&stats, COP_ORIGIN_BYTES, 5);
	cop_stats_add(&stats, COP_FABRIC_REQUESTS_SENT, 7);
	cop_stats_add(&stats, COP_FUSE_LOOKUP, 9);
	snapshot(p, NULL, NULL);
	text = read_job("profiling/final/n-1-profiling_fabric.csv");
	assert_memory_equal(text, "metric,value\n", 13);
	check_has(text, "\norigin_operations,0\n");
	check_has(text, "\norigin_bytes,5\n");
	check_has(text, "\nfabric_requests_sent,7\n");
	check_has(text, "\nfabric_requests_served,0\n");
	check_has(text, "\nfabric_failovers,0\n");
	assert_null(strstr(text, "lookup"));
	free(text);
	cop_prof_free(p);
}

static void three_objects(void *ctx, enum cop_prof_table table, cop_prof_emit *emit, void *arg)
{
	assert_string_equal(ctx, "cache");
	if (table == COP_PROF_TREE)
		return;
	emit(arg, "b\n", 2, 5);
	emit(arg, "a", 1, 1000);
	emit(arg, "b\n", 2, 7);
}

static const char golden_sizes[] =
	"/soft/a: 1000\n/soft/b\\n: 12\nTotal bytes: 1012\ntotal number of files: 2\n";

static void sizes_of_one_path_are_added_up(void **state)
{
	struct cop_prof_sizes sizes = {.ctx = "cache", .each = three_objects, .asked = true};
	struct cop_prof *p = profile(COP_PROF_AGGREGATE, 0);

	(void)state;
	snapshot(p, "asked", &sizes);
	check_file("tables/asked/nid-01.site-4711-asked-data_cache_size.output", golden_sizes);
	check_file("tables/asked/nid-01.site-4711-asked-md_cache_size.output",
		"/soft/a: 1000\n/soft/b\\n: 12\nTotal bytes: 1012\ntotal number of entries: 2\n");
	check_file("tables/asked/nid-01.site-4711-asked-tree_cache_size.output",
		"Total bytes: 0\ntotal number of entries: 0\n");
	sizes.asked = false;
	snapshot(p, NULL, &sizes);
	check_file("tables/final/nid-01.site-4711-data_cache_size.txt", golden_sizes);
	check_names("tables/final",
		"nid-01.site-4711-data_cache_size.txt nid-01.site-4711-md_cache_size.txt nid-01.site-4711-tree_cache_size.txt ");
	cop_prof_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_node_without_events_writes_headers),
		T(the_files_of_a_small_story_are_these),
		T(the_top_level_writes_the_same_top_paths_as_the_full_one),
		T(the_summary_is_as_in_the_golden_file),
		T(the_summary_states_estimates_and_what_was_dropped),
		T(the_final_summary_has_no_tag_and_says_whether_everything_is_seen),
		T(the_part_of_the_storage_is_in_the_sums_and_in_the_summary),
		T(fabric_rows_are_the_counters_of_fabric_and_origin),
		T(sizes_of_one_path_are_added_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
