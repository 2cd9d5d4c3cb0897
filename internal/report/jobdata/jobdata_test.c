/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "report/jobdata/jobdata_priv.h"

static char dir[64];
static struct cop_jobdata job;
static struct cop_err err;

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/copper-jobdata.XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	cop_jobdata_free(&job);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static void put(const char *name, const char *text)
{
	char path[256], *slash;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	slash = strrchr(path, '/');
	*slash = '\0';
	assert_int_equal(cop_make_dirs(path, 0700), 0);
	*slash = '/';
	assert_int_equal(cop_write_file(path, text, strlen(text), 0600), 0);
}

static void load(void)
{
	cop_jobdata_free(&job);
	err.code = 0;
	assert_int_equal(cop_jobdata_read(dir, &job, &err), 0);
}

#define OPERATIONS                                                                                 \
	"operation,total_calls,cache_hits,cache_misses,negative_results,avg_latency_us,total_latency_s\n"
#define TOP                                                                                        \
	"category,path,total_events,cache_hits,cache_misses,negative_results,ttl_stores,ttl_serves,ttl_expires,ttl_clears\n"

static void an_empty_directory_is_refused_with_what_was_looked_for(void **state)
{
	(void)state;
	assert_int_equal(cop_jobdata_read(dir, &job, &err), -ENOENT);
	assert_non_null(strstr(err.text, "profiling/cluster"));
	assert_non_null(strstr(err.text, "copper mount -d"));
	cop_jobdata_free(&job);
	assert_int_equal(cop_jobdata_read("/nowhere", &job, &err), -ENOENT);
	cop_jobdata_free(&job);
	assert_int_equal(cop_jobdata_read("/dev/null", &job, &err), -ENOTDIR);
}

static void the_sums_of_a_stopped_job_are_read(void **state)
{
	(void)state;
	put("profiling/cluster/cluster-profiling_operations.csv",
		OPERATIONS "lookup,10,7,2,1,5.00,0.000050\nread,3,1,2,0,100.00,0.000300\n");
	put("profiling/cluster/cluster-profiling_aggregate.csv",
		"metric,value\nranks_with_aggregate_files,4\ntotal_cache_hits,8\n");
	put("profiling/cluster/cluster-profiling_latency.csv",
		"max_us,operation,p50_us\n900.5,read,12.25\n1,unknown,1\n");
	put("profiling/cluster/cluster-profiling_fabric.csv", "metric,value\nfabric_bytes_in,77\n");
	load();
	assert_int_equal(job.from, COP_JOBDATA_CLUSTER);
	assert_int_equal(job.ranks, 4);
	assert_int_equal(job.ops, 2);
	assert_string_equal(job.op[0].name, "read"); /* the most time */
	assert_int_equal(job.op[0].misses, 2);
	assert_true(job.op[0].has_quantiles);
	assert_true(job.op[0].p50_us == 12.25 && job.op[0].max_us == 900.5);
	assert_true(isnan(job.op[0].p99_us));
	assert_false(job.op[1].has_quantiles);
	assert_true(cop_jobdata_value(&job.fabric, "fabric_bytes_in") == 77);
	assert_true(isnan(cop_jobdata_value(&job.fabric, "none")));
}

static void without_sums_the_ranks_are_added_up(void **state)
{
	(void)state;
	put("profiling/final/n1-5-profiling_operations.csv",
		OPERATIONS "read,1,0,1,0,1.00,0.000001\n");
	put("profiling/final/n2-6-profiling_operations.csv",
		OPERATIONS "read,2,1,1,0,1.00,0.000002\n");
	put("profiling/final/n1-5-profiling_top_paths.csv",
		TOP "data,\"/a,\"\"b\"\"\",5,1,4,0,0,0,0,0\n");
	put("profiling/final/n2-6-profiling_top_paths.csv", TOP
		"data,\"/a,\"\"b\"\"\",6,1,5,0,0,0,0,0\nmetadata,\"/c\",1,1,0,0,0,0,0,0\nodd,\"/d\",1,0,0,0,0,0,0,0\n");
	load();
	assert_int_equal(job.from, COP_JOBDATA_RANKS);
	assert_int_equal(job.op[0].calls, 3);
	assert_int_equal(job.paths, 2);
	assert_string_equal(job.path[1].text, "/a,\"b\"");
	assert_int_equal(job.path[1].events, 11);
	assert_int_equal(job.path[1].misses, 9);
}

static void a_running_job_shows_its_snapshot(void **state)
{
	(void)state;
	put("profiling/runtime-snapshot/n1-5-runtime-snapshot-profiling_operations.csv",
		OPERATIONS "read,7,0,7,0,1.00,0.000007\n");
	load();
	assert_int_equal(job.from, COP_JOBDATA_SNAPSHOT);
	assert_int_equal(job.op[0].calls, 7);
}

static void rank_0_tells_of_itself_in_a_snapshot(void **state)
{
	(void)state;
	put("profiling/runtime-snapshot/cluster_nodes.csv", "rank,host,parent\n0,n0,-1\n");
	load();
	assert_int_equal(job.node_n, 1);
	put("profiling/cluster/cluster_nodes.csv", "rank,host,parent\n0,n0,-1\n1,n1,0\n");
	load();
	assert_int_equal(job.node_n, 2);
}

static void what_the_nodes_did_is_found_by_names_of_columns(void **state)
{
	(void)state;
	put("profiling/cluster/cluster_nodes.csv",
		"more,rank,host,parent,job_start_unix_s,ready_s,phase_fabric_s,phase_mount_s,requests,sent_bytes,stopped_s\n"
		"x,1,n1,0,1000.5,0.5,0.1,0.4,20,0,9\n"
		"x,0,n0,-1,1000.5,0.4,0.2,0.2,10,512,9.5\n"
		"x,max,,,1000.5,0.5,0.2,0.4,20,512,9.5\n"
		"x,min,,,1000.5,0.4,0.1,0.2,10,0,9\n"
		"x,nonsense,n9,0,,,,,,,\n");
	load();
	assert_int_equal(job.node_n, 4);
	assert_int_equal(job.node[0].rank, COP_JOBDATA_MIN);
	assert_int_equal(job.node[1].rank, COP_JOBDATA_MAX);
	assert_int_equal(job.node[1].parent, -2);
	assert_int_equal(job.node[2].rank, 0);
	assert_int_equal(job.node[2].parent, -1);
	assert_true(job.node[2].sent_bytes == 512);
	assert_true(isnan(job.node[2].evictions));
	assert_int_equal(job.phases, 2);
	assert_string_equal(job.phase[0], "fabric");
	assert_true(job.node[3].phase_s[1] == 0.4);
	assert_true(job.began_unix_s == 1000.5);
}

#define TIMES                                                                                      \
	"rank,host,start_s,seconds,requests,read_bytes,wait_ms,parent_bytes,origin_operations,origin_bytes,sent_bytes,cache_bytes,cpu_ms,resident_bytes\n"

static void intervals_find_their_places(void **state)
{
	(void)state;
	put("profiling/cluster/cluster_telemetry.csv", TIMES
		"1,n1,0,4,5,0,0,0,0,0,0,0,7,99\n1,n1,8,4,6,0,0,0,0,0,0,0,0,0\n"
		"median,,4,4,3,0,0,0,0,0,0,0,0,0\n0,n0,1000000,4,1,0,0,0,0,0,0,0,0,0\n0,n0,-4,4,1,0,0,0,0,0,0,0,0,0\n");
	load();
	assert_true(job.interval_s == 4);
	assert_int_equal(job.steps, 3);
	assert_int_equal(job.series_n, 2);
	assert_int_equal(job.series[0]->rank, COP_JOBDATA_MEDIAN);
	assert_string_equal(job.series[1]->host, "n1");
	assert_true(job.series[1]->value[COP_JOBDATA_REQUESTS][0] == 5);
	assert_true(isnan(job.series[1]->value[COP_JOBDATA_REQUESTS][1]));
	assert_true(job.series[1]->value[COP_JOBDATA_REQUESTS][2] == 6);
	assert_true(job.series[1]->value[COP_JOBDATA_CPU_MS][0] == 7);
	assert_true(job.series[1]->value[COP_JOBDATA_RESIDENT_BYTES][0] == 99);
}

static void more_nodes_than_there_is_room_for_are_left_out(void **state)
{
	struct cop_buf text = {0};

	(void)state;
	cop_buf_str(&text, TIMES);
	for (int i = 0; i < COP_JOBDATA_SERIES_MAX + 100; i++)
		cop_buf_printf(&text, "%d,n,0,1,1,1,1,1,1,1,1,1,1,1\n", i);
	put("profiling/cluster/cluster_telemetry.csv", text.data);
	cop_buf_free(&text);
	load();
	assert_int_equal(job.series_n, COP_JOBDATA_SERIES_MAX);
}

static void events_and_warnings_are_texts(void **state)
{
	(void)state;
	put("profiling/cluster/cluster_events.csv",
		"time_s,unix_ns,rank,host,event,detail\n1.5,1,3,n3,failover,\"rank 1, <n1>\"\ndropped,12\n");
	put("profiling/cluster/cluster_warnings.csv",
		"code,weight,sentence,option\ncache,60,\"too small, by far\",--cache-size\n");
	load();
	assert_int_equal(job.events, 1);
	assert_int_equal(job.event[0].rank, 3);
	assert_string_equal(job.event[0].detail, "rank 1, <n1>");
	assert_int_equal(job.events_dropped, 12);
	assert_true(job.has_warnings);
	assert_string_equal(job.warning[0].sentence, "too small, by far");
	assert_string_equal(job.warning[0].option, "--cache-size");
}

static void a_cut_file_gives_what_came_before(void **state)
{
	(void)state;
	put("profiling/cluster/cluster_nodes.csv", "rank,host,requests\n0,n0,10\n1,n1,2");
	load();
	assert_int_equal(job.node_n, 1);
	put("profiling/cluster/cluster_nodes.csv", "rank,host,requests\n0,n0,10\n\"open\n");
	load();
	assert_int_equal(job.node_n, 1);
	put("profiling/cluster/cluster_nodes.csv", "");
	load();
	assert_int_equal(job.node_n, 0);
}

static void what_copper_paths_found_is_read(void **state)
{
	(void)state;
	put("paths_dir/roots_and_counts.txt",
		"Paths of job x\n\nKept bytes: 4407180\nPrune candidates: 12\nno number: x\n");
	put("paths_dir/paths_summary.md",
		"# t\n\n## Largest directories that nothing used needs\n\n| Directory | Bytes | Size | Files | Directories |\n"
		"|---|---:|---:|---:|---:|\n| `/env/a\\|b` | 25297702 | 24.1 MiB | 14 | 1 |\n\n## Next\n\n| `/x` | 1 | 1 B | 1 | 1 |\n");
	load();
	assert_true(job.has_use);
	assert_true(cop_jobdata_value(&job.use, "Kept bytes") == 4407180);
	assert_int_equal(job.use.n, 2);
	assert_int_equal(job.unused_n, 1);
	assert_string_equal(job.unused[0].directory, "/env/a|b");
	assert_true(job.unused[0].bytes == 25297702 && job.unused[0].files == 14);
}

static void a_log_says_how_the_job_was_started(void **state)
{
	(void)state;
	put("logs/node_file.txt", "n1\nn2\n");
	put("logs/n1-7-output.log",
		"2026-11-23 15-11-55.686 [Info] (cop_joblog_begin) copper 0.2.0+4 (release, static) rank=0 nodes=2 source=/soft mountpoint=/m\n"
		"2026-11-23 15-11-55.686 [Info] (cop_joblog_begin) profile_metrics: enabled\n"
		"2026-11-23 15-11-55.686 [Info] (cop_joblog_begin) profile_top_n: 20\n"
		"2026-11-23 15-11-55.686 [Info] (cop_joblog_begin) profile_paths_full: enabled\n"
		"2026-11-23 15-11-55.700 [Info] (cop_net_open) provider=tcp;ofi_rxm because of --net-type tcp\n");
	put("logs/n1-x-7-output.log", "another host\n");
	load();
	assert_int_equal(job.nodes, 2);
	assert_string_equal(job.version, "0.2.0+4");
	assert_string_equal(job.build, "release, static");
	assert_string_equal(job.source, "/soft");
	assert_string_equal(job.provider, "tcp;ofi_rxm");
	assert_string_equal(job.began, "2026-11-23 15-11-55");
	assert_true(job.profile && job.paths_full && job.top_n == 20);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(an_empty_directory_is_refused_with_what_was_looked_for),
		T(the_sums_of_a_stopped_job_are_read),
		T(without_sums_the_ranks_are_added_up),
		T(a_running_job_shows_its_snapshot),
		T(rank_0_tells_of_itself_in_a_snapshot),
		T(what_the_nodes_did_is_found_by_names_of_columns),
		T(intervals_find_their_places),
		T(more_nodes_than_there_is_room_for_are_left_out),
		T(events_and_warnings_are_texts),
		T(a_cut_file_gives_what_came_before),
		T(what_copper_paths_found_is_read),
		T(a_log_says_how_the_job_was_started),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
