/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "prof/profile/profile_testing.h"

static void a_profile_that_is_off_counts_and_writes_nothing(void **state)
{
	struct cop_prof *p = profile(COP_PROF_OFF, 5);

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct cop_prof *who = i ? p : NULL;

		cop_prof_op(who, COP_PROF_OP_READ, COP_PROF_HIT, 1);
		cop_prof_path(who, COP_PROF_DATA, "a", 1, COP_PROF_HIT);
		cop_prof_read(who, "a", 1, COP_PROF_HIT, 0, 1);
		cop_prof_ttl(who, "a", 1, COP_PROF_SERVE);
		assert_int_equal(cop_prof_level(who), COP_PROF_OFF);
		assert_int_equal(cop_prof_snapshot(who, NULL, NULL, NULL), 0);
		assert_int_equal(cop_prof_each_touch(who, NULL, NULL), 0);
	}
	check_names("", "");
	cop_prof_free(p);
	cop_prof_free(NULL);
}

static void without_a_job_directory_the_sentence_names_the_option(void **state)
{
	struct cop_prof_conf conf = {.level = COP_PROF_FULL, .host = "h", .pid = 1};
	struct cop_prof *p = cop_prof_new(&conf);
	struct cop_err err = {0};

	(void)state;
	assert_non_null(p);
	assert_int_equal(cop_prof_snapshot(p, NULL, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, "--job-dir"));
	cop_prof_free(p);
}

static void each_level_has_its_files(void **state)
{
	struct cop_prof *p = profile(COP_PROF_AGGREGATE, 5);
	static const char aggregate[] =
		"nid-01.site-4711-profiling_aggregate.csv nid-01.site-4711-profiling_latency.csv "
		"nid-01.site-4711-profiling_operations.csv nid-01.site-4711-profiling_summary.md ";

	(void)state;
	cop_prof_path(p, COP_PROF_DATA, "a", 1, COP_PROF_HIT);
	snapshot(p, NULL, NULL);
	check_names("profiling/final", aggregate);
	check_names("tables", "none");
	cop_prof_free(p);
	p = profile(COP_PROF_TOP, 5);
	snapshot(p, "top", NULL);
	check_names("profiling/top",
		"nid-01.site-4711-top-profiling_aggregate.csv nid-01.site-4711-top-profiling_latency.csv "
		"nid-01.site-4711-top-profiling_operations.csv nid-01.site-4711-top-profiling_summary.md "
		"nid-01.site-4711-top-profiling_top_paths.csv ");
	check_names("tables", "none");
	cop_prof_free(p);
	p = profile(COP_PROF_FULL, 0);
	snapshot(p, "", NULL);
	check_names("profiling/final",
		"nid-01.site-4711-profiling_aggregate.csv nid-01.site-4711-profiling_first_touch.csv "
		"nid-01.site-4711-profiling_latency.csv nid-01.site-4711-profiling_operations.csv "
		"nid-01.site-4711-profiling_summary.md ");
	check_names("tables/final",
		"nid-01.site-4711-data_table_cache_event.output "
		"nid-01.site-4711-md_table_cache_event.output nid-01.site-4711-md_ttl_cache_event.output "
		"nid-01.site-4711-tree_table_cache_event.output ");
	cop_prof_free(p);
}

static void a_top_level_without_rows_is_the_aggregate_level(void **state)
{
	struct cop_prof *p = profile(COP_PROF_TOP, 0);

	(void)state;
	assert_int_equal(cop_prof_level(p), COP_PROF_AGGREGATE);
	cop_prof_free(p);
}

static void a_tag_stays_inside_its_folder(void **state)
{
	struct cop_prof *p = profile(COP_PROF_AGGREGATE, 0);
	struct cop_err err = {0};

	(void)state;
	snapshot(p, "../x", NULL);
	check_names("profiling", "___x ");
	assert_int_equal(cop_prof_snapshot(p, "final", NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, "\"final\""));
	assert_int_equal(cop_prof_snapshot(p, "cluster", NULL, &err), -EINVAL);
	check_names("profiling", "___x ");
	cop_prof_free(p);
}

static void a_host_cannot_lead_out_of_the_folder(void **state)
{
	struct cop_prof_conf conf = {
		.level = COP_PROF_AGGREGATE, .job_dir = job, .host = "../../n", .pid = 1};
	struct cop_prof *p = cop_prof_new(&conf);

	(void)state;
	assert_non_null(p);
	snapshot(p, NULL, NULL);
	check_names("profiling/final",
		"_._.._n-1-profiling_aggregate.csv _._.._n-1-profiling_latency.csv "
		"_._.._n-1-profiling_operations.csv _._.._n-1-profiling_summary.md ");
	cop_prof_free(p);
}

static void count_something(struct cop_prof *p)
{
	char path[64];

	for (unsigned i = 0; i < 5000; i++)
		cop_prof_path(p, COP_PROF_METADATA, path,
			(size_t)snprintf(path, sizeof(path), "some/folder/file-%u", i),
			COP_PROF_MISS);
}

/* Small files fit within the limit and exist; no other files do. */
static void check_partial(struct cop_prof *p, int code)
{
	struct cop_err err = {0};
	const char *names =
		"nid-01.site-4711-data_table_cache_event.output nid-01.site-4711-md_ttl_cache_event.output "
		"nid-01.site-4711-tree_table_cache_event.output ";

	assert_int_equal(cop_prof_snapshot(p, NULL, NULL, &err), -code);
	assert_int_equal(err.code, code);
	check_has(err.text, "md_table_cache_event.output");
	check_has(err.text, strerror(code));
	assert_null(strchr(err.text, '\n'));
	check_names("tables/final", names);
	check_names("profiling/final",
		"nid-01.site-4711-profiling_aggregate.csv nid-01.site-4711-profiling_latency.csv "
		"nid-01.site-4711-profiling_operations.csv nid-01.site-4711-profiling_summary.md ");
}

static void a_file_past_the_size_limit_leaves_no_half_of_it(void **state)
{
	struct cop_prof *p = profile(COP_PROF_FULL, 0);
	struct rlimit old, limit;

	(void)state;
	count_something(p);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = old;
	limit.rlim_cur = 32 * COP_KIB;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	check_partial(p, EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	signal(SIGXFSZ, SIG_DFL);
	cop_prof_free(p);
}

/* Runs in its own mount namespace, so that no mount is left behind. Where that is not allowed, the
 * test above must suffice. */
static void a_full_disk_leaves_no_half_file_and_a_sentence(void **state)
{
	struct cop_prof *p;

	(void)state;
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		mount("none", job, "tmpfs", 0, "size=64k"))
		skip();
	p = profile(COP_PROF_FULL, 0);
	count_something(p);
	check_partial(p, ENOSPC);
	cop_prof_free(p);
	assert_int_equal(umount(job), 0);
}

static void a_job_directory_that_cannot_be_written_is_named(void **state)
{
	struct cop_prof_conf conf = {
		.level = COP_PROF_AGGREGATE, .job_dir = "/proc/nowhere", .host = "n", .pid = 1};
	struct cop_prof *p = cop_prof_new(&conf);
	struct cop_err err = {0};

	(void)state;
	assert_non_null(p);
	assert_true(cop_prof_snapshot(p, NULL, NULL, &err) < 0);
	check_has(err.text, "/proc/nowhere/profiling/final");
	cop_prof_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_profile_that_is_off_counts_and_writes_nothing),
		T(without_a_job_directory_the_sentence_names_the_option),
		T(a_job_directory_that_cannot_be_written_is_named),
		T(a_tag_stays_inside_its_folder),
		T(a_host_cannot_lead_out_of_the_folder),
		T(a_file_past_the_size_limit_leaves_no_half_of_it),
		T(a_full_disk_leaves_no_half_file_and_a_sentence),
		T(a_top_level_without_rows_is_the_aggregate_level),
		T(each_level_has_its_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
