/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "writers/rank/rank.h"

/* A job of three nodes in its own directory. */
struct job {
	char dir[64], tmp[80];
	struct cop_job_host host[3];
	struct cop_job_hosts hosts;
	struct cop_conf conf;
	struct cop_stats stats;
	struct cop_cache *cache;
	struct cop_tally *tally;
};

static int setup(void **state)
{
	static char names[3][2] = {"a", "b", "c"};
	struct job *j = calloc(1, sizeof(*j));

	strcpy(j->dir, "/tmp/copper-tally-test-XXXXXX");
	if (!mkdtemp(j->dir))
		return -1;
	snprintf(j->tmp, sizeof(j->tmp), "%s/tmp", j->dir);
	for (int i = 0; i < 3; i++)
		j->host[i].name = names[i];
	j->hosts = (struct cop_job_hosts){.host = j->host, .count = 3};
	j->conf.profile = true;
	j->cache = cop_cache_new(COP_MIB, &j->stats);
	*state = j;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)type, (void)at;
	return remove(path);
}

static int teardown(void **state)
{
	struct job *j = *state;

	cop_tally_free(j->tally);
	cop_cache_free(j->cache);
	nftw(j->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	free(j);
	return 0;
}

static struct cop_tally_job job_of(struct job *j)
{
	return (struct cop_tally_job){
		.job_dir = j->dir, .source = "/src", .topo = {3, 2, 1}, .hosts = &j->hosts};
}

static void open_rank(struct job *j, uint32_t rank)
{
	struct cop_tally_conf conf = {
		.job = job_of(j), .rank = rank, .conf = &j->conf, .stats = &j->stats};
	struct cop_err err = {0};

	assert_int_equal(cop_tally_new(&conf, &j->tally, &err), 0);
	cop_tally_use_cache(j->tally, j->cache);
}

static bool is_there(struct job *j, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", j->dir, name);
	return access(path, F_OK) == 0;
}

/* Puts a file where a directory should be. */
static void spoil(struct job *j, const char *name)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/profiling", j->dir);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/%s", j->dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fclose(f);
}

/* ---- one node ---- */

static void the_first_rank_makes_the_folders(void **state)
{
	struct job *j = *state;

	open_rank(j, 1);
	assert_non_null(cop_tally_prof(j->tally));
	assert_false(is_there(j, "profiling"));
	cop_tally_free(j->tally);
	open_rank(j, 0);
	assert_true(is_there(j, "profiling/final"));
	assert_true(is_there(j, "profiling/cluster"));
	assert_true(is_there(j, "tables/final"));
}

static void whose_reports_are_written(void **state)
{
	struct job *j = *state;
	struct cop_err err = {0};

	j->conf.rank_files = COP_CONF_RANK_FILES_ROOT;
	open_rank(j, 1);
	assert_int_equal(cop_tally_write(j->tally, "tag", &err), -ENOENT);
	assert_false(is_there(j, "profiling/tag"));
	cop_tally_free(j->tally);
	open_rank(j, 0);
	assert_int_equal(cop_tally_write(j->tally, "tag", &err), 0);
	assert_true(is_there(j, "profiling/tag"));
	j->conf.rank_files = COP_CONF_RANK_FILES_NONE;
	assert_int_equal(cop_tally_write(j->tally, "other", &err), -ENOENT);
	assert_false(is_there(j, "profiling/other"));
}

static void without_a_profile_there_is_nothing_to_write_but_counters_start_anew(void **state)
{
	struct job *j = *state;
	struct cop_err err = {0};

	j->conf.profile = false;
	open_rank(j, 0);
	assert_null(cop_tally_prof(j->tally));
	assert_int_equal(cop_tally_write(j->tally, NULL, &err), -ENOENT);
	cop_stats_add(&j->stats, COP_FABRIC_RETRIES, 5);
	assert_int_equal(cop_tally_reset(j->tally, &err), 0);
	assert_int_equal(cop_stats_get(&j->stats, COP_FABRIC_RETRIES), 0);
}

static void a_reset_writes_the_reports_of_before(void **state)
{
	struct job *j = *state;
	struct cop_err err = {0};

	open_rank(j, 2);
	cop_stats_add(&j->stats, COP_FABRIC_RETRIES, 5);
	assert_int_equal(cop_tally_reset(j->tally, &err), 0);
	assert_int_equal(cop_stats_get(&j->stats, COP_FABRIC_RETRIES), 0);
	assert_true(is_there(j, "profiling/pre-reset"));
}

static void counters_go_on_where_the_reports_of_before_cannot_be_written(void **state)
{
	struct job *j = *state;
	struct cop_err err = {0};

	open_rank(j, 2);
	spoil(j, "profiling/pre-reset");
	cop_stats_add(&j->stats, COP_FABRIC_RETRIES, 5);
	assert_int_not_equal(cop_tally_reset(j->tally, &err), 0);
	assert_int_equal(cop_stats_get(&j->stats, COP_FABRIC_RETRIES), 5);
	assert_true(err.text[0] != '\0');
}

static void the_cache_is_listed(void **state)
{
	struct job *j = *state;
	struct cop_buf out = {0};

	open_rank(j, 0);
	cop_tally_sizes(j->tally, &out);
	assert_int_equal(strncmp(out.data, "budget 1048576 0\ntable data ", 28), 0);
	assert_non_null(strstr(out.data, "table tree "));
	assert_non_null(strstr(out.data, "table md "));
	cop_buf_free(&out);
}

/* ---- all nodes ---- */

/* Sums up two of the three nodes; the last one has not answered. */
static void sum_up(struct job *j, struct cop_op_sum *sum)
{
	*sum = (struct cop_op_sum){.nodes = 2, .dead = 1, .missing = 1, .lost = {2}};
	cop_stats_add(&j->stats, COP_FABRIC_RETRIES, 5);
	for (uint32_t r = 0; r < 2; r++) {
		open_rank(j, r);
		cop_tally_add(j->tally, sum);
		cop_tally_free(j->tally);
		j->tally = NULL;
	}
	assert_int_equal(cop_stats_get(&sum->stats, COP_FABRIC_RETRIES), 10);
	assert_int_equal(cop_prof_sum_nodes(sum->prof), 2);
}

static void the_sums_name_the_nodes_that_are_missing(void **state)
{
	struct job *j = *state;
	struct cop_tally_job job = job_of(j);
	struct cop_op_sum sum;
	struct cop_err err = {0};
	char path[256], *text;
	size_t len;

	sum_up(j, &sum);
	assert_int_equal(cop_tally_write_sums(&job, &sum, &err), 0);
	snprintf(path, sizeof(path), "%s/profiling/cluster/cluster-profiling_summary.md", j->dir);
	assert_int_equal(cop_read_file(path, COP_MIB, &text, &len), 0);
	assert_non_null(strstr(text, "- Nodes of the job that are not in these sums: `1`"));
	assert_non_null(strstr(text, "- Nodes that did not answer: `c` (rank 2)\n"));
	free(text);
	cop_op_sum_free(&sum);
}

static char *content(struct job *j, const char *name)
{
	char path[256], *text;
	size_t len;

	snprintf(path, sizeof(path), "%s/%s", j->dir, name);
	assert_int_equal(cop_read_file(path, COP_MIB, &text, &len), 0);
	return text;
}

/* A file changed on each of two nodes, and the cache of one node was too small. */
static void warnings_are_in_the_files_and_told(void **state)
{
	struct job *j = *state;
	struct cop_tally_job job = job_of(j);
	struct cop_op_sum sum;
	struct cop_err err = {0};
	struct cop_buf told = {0};
	char *text;

	cop_stats_add(&j->stats, COP_ORIGIN_CHANGED, 1);
	sum_up(j, &sum);
	assert_int_equal(sum.memory_bytes, 2 * COP_MIB);
	assert_int_equal(cop_tally_write_sums(&job, &sum, &err), 0);
	text = content(j, "profiling/cluster/cluster_warnings.csv");
	assert_int_equal(strncmp(text, "code,weight,sentence,option\nchanged,91,\"", 40), 0);
	free(text);
	text = content(j, "profiling/cluster/cluster-profiling_summary.md");
	assert_non_null(strstr(text, "\n\n## Warnings\n\n- files changed"));
	assert_non_null(strstr(text, "\n\n## Aggregate Metrics\n"));
	free(text);
	cop_tally_warn(&sum, &told);
	assert_int_equal(strncmp(told.data, "copper: note: files changed", 27), 0);
	assert_null(strchr(told.data, '\n'));
	cop_buf_free(&told);
	cop_op_sum_free(&sum);
	open_rank(j, 0);
	cop_tally_warn_own(j->tally, &told);
	assert_non_null(strstr(told.data, ": 1 read found another version"));
	cop_buf_free(&told);
}

static void sums_that_find_no_room_are_kept_elsewhere(void **state)
{
	struct job *j = *state;
	struct cop_tally_job job = job_of(j);
	struct cop_op_sum sum;
	struct cop_err err = {0};
	char where[160];

	assert_int_equal(mkdir(j->tmp, 0700), 0);
	setenv("TMPDIR", j->tmp, 1);
	sum_up(j, &sum);
	snprintf(where, sizeof(where), "%s/profiling/cluster", j->dir);
	assert_int_equal(rmdir(where), 0);
	spoil(j, "profiling/cluster");
	assert_int_not_equal(cop_tally_write_sums(&job, &sum, &err), 0);
	snprintf(where, sizeof(where), "; the sums of 2 nodes are kept in %s/copper-sums-", j->tmp);
	assert_non_null(strstr(err.text, where));
	unsetenv("TMPDIR");
	cop_op_sum_free(&sum);
}

static void without_a_job_directory_nothing_is_written(void **state)
{
	struct job *j = *state;
	struct cop_tally_job job = job_of(j);
	struct cop_op_sum sum;
	struct cop_err err = {0};

	sum_up(j, &sum);
	job.job_dir = "";
	assert_int_equal(cop_tally_write_sums(&job, &sum, &err), 0);
	assert_false(is_there(j, "profiling/cluster/cluster-profiling_summary.md"));
	cop_op_sum_free(&sum);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_first_rank_makes_the_folders),
		T(whose_reports_are_written),
		T(without_a_profile_there_is_nothing_to_write_but_counters_start_anew),
		T(a_reset_writes_the_reports_of_before),
		T(counters_go_on_where_the_reports_of_before_cannot_be_written),
		T(the_cache_is_listed),
		T(the_sums_name_the_nodes_that_are_missing),
		T(warnings_are_in_the_files_and_told),
		T(sums_that_find_no_room_are_kept_elsewhere),
		T(without_a_job_directory_nothing_is_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
