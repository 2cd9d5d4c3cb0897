/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "job/hosts/hosts.h"
#include "base/log/log.h"

static const char *const variables[] = {"SLURM_JOB_NODELIST", "SLURM_NODEID", "PALS_NODEID",
	"PMIX_RANK", "PMI_RANK", "FLUX_TASK_RANK", "PBS_NODEFILE", "SLURM_LOCALID",
	"PALS_LOCAL_RANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "FLUX_TASK_LOCAL_ID"};
static struct cop_job_hosts hosts;
static struct cop_err err;
static char here[256];
static uint32_t rank;

static int clean(void **state)
{
	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(variables); i++)
		unsetenv(variables[i]);
	cop_job_hosts_free(&hosts);
	return 0;
}

static void given(const char *list)
{
	cop_job_hosts_free(&hosts);
	assert_int_equal(cop_job_hosts_load(list, 7720, &hosts, NULL), 0);
}

static void slurm_says(const char *list)
{
	cop_job_hosts_free(&hosts);
	setenv("SLURM_JOB_NODELIST", list, 1);
	assert_int_equal(cop_job_hosts_env(7720, &hosts, NULL), 0);
}

static int find_wanting(int64_t want)
{
	err = (struct cop_err){0};
	rank = 12345;
	return cop_job_rank(&hosts, want, &rank, &err);
}

static void a_rank_out_of_range_is_named_with_the_range(void **state)
{
	(void)state;
	given("a,b,c");
	assert_int_equal(find_wanting(3), -EINVAL);
	assert_string_equal(err.text, "--rank: 3 is out of range 0..2");
	assert_int_equal(find_wanting(INT64_MAX), -EINVAL);
	assert_int_equal(find_wanting(2), 0);
	assert_int_equal(rank, 2);
}

/* For example, eight tasks on each host. */
static void the_number_of_a_task_is_not_a_rank(void **state)
{
	char list[300] = "no-such-host,";

	(void)state;
	assert_int_equal(gethostname(list + strlen(list), 200), 0);
	slurm_says(list);
	setenv("PMI_RANK", "7", 1);
	assert_int_equal(find_wanting(-1), -EINVAL);
	hosts.of_tasks = true;
	assert_int_equal(find_wanting(-1), 0);
	assert_int_equal(rank, 1);
	/* Any of them may start the node of its machine. */
	setenv("MPI_LOCALRANKID", "3", 1);
	assert_int_equal(find_wanting(-1), 0);
	hosts.of_tasks = false;
	assert_int_equal(find_wanting(-1), -EINVAL);
	assert_non_null(strstr(err.text, "several copper processes were started on"));
}

static void without_hosts_there_is_rank_0_only(void **state)
{
	(void)state;
	assert_int_equal(find_wanting(-1), 0);
	assert_int_equal(rank, 0);
	assert_int_equal(find_wanting(0), 0);
	assert_int_equal(find_wanting(1), -EINVAL);
	assert_string_equal(err.text, "--rank: 1 is out of range 0..0");
}

static void a_machine_that_is_not_in_the_list_is_refused(void **state)
{
	(void)state;
	given("no-such-host-a,192.0.2.1");
	assert_int_equal(find_wanting(-1), -ENOENT);
	assert_non_null(strstr(err.text, "is not among the 2 hosts of --hosts no-such-host-a"));
	assert_non_null(strstr(err.text, here));
}

static void several_hosts_on_this_machine_need_a_rank(void **state)
{
	(void)state;
	given("127.0.0.11,127.0.0.12,192.0.2.1");
	assert_int_equal(find_wanting(-1), -EINVAL);
	assert_non_null(strstr(err.text, "2 of the 3 hosts"));
	assert_non_null(strstr(err.text, "--rank"));
}

static void this_machine_is_found_by_its_name(void **state)
{
	char list[600];

	(void)state;
	snprintf(list, sizeof(list), "other,%s", here);
	given(list);
	assert_int_equal(find_wanting(-1), 0);
	assert_int_equal(rank, 1);
}

static void this_machine_is_found_by_its_name_with_a_domain(void **state)
{
	char list[600];

	(void)state;
	if (strchr(here, '.'))
		snprintf(list, sizeof(list), "other,x,%.*s", (int)strcspn(here, "."), here);
	else
		snprintf(list, sizeof(list), "other,x,%s.some.site", here);
	given(list);
	assert_int_equal(find_wanting(-1), 0);
	assert_int_equal(rank, 2);
}

static void a_name_that_only_begins_alike_is_another_host(void **state)
{
	char list[600];

	(void)state;
	snprintf(list, sizeof(list), "%.*sx,y", (int)strcspn(here, "."), here);
	given(list);
	assert_int_equal(find_wanting(-1), -ENOENT);
}

static void this_machine_is_found_by_an_address(void **state)
{
	(void)state;
	given("192.0.2.1,127.0.0.77");
	assert_int_equal(find_wanting(-1), 0);
	assert_int_equal(rank, 1);
	given("192.0.2.1,localhost");
	assert_int_equal(find_wanting(-1), 0);
	assert_int_equal(rank, 1);
	given("2001:db8::1,::1");
	assert_int_equal(find_wanting(-1), 0);
	assert_int_equal(rank, 1);
}

static void the_environment_counts_only_for_the_schedulers_list(void **state)
{
	(void)state;
	setenv("SLURM_NODEID", "0", 1);
	given("192.0.2.1,127.0.0.77");
	assert_int_equal(find_wanting(-1), 0);
	assert_int_equal(rank, 1);
	slurm_says("a,b,c");
	setenv("SLURM_NODEID", "2", 1);
	assert_int_equal(find_wanting(-1), 0);
	assert_int_equal(rank, 2);
}

static void variables_are_tried_in_order(void **state)
{
	(void)state;
	slurm_says("a,b,c,d,e");
	setenv("FLUX_TASK_RANK", "1", 1);
	assert_int_equal(find_wanting(-1), 0);
	assert_int_equal(rank, 1);
	setenv("PMI_RANK", "2", 1);
	assert_int_equal(find_wanting(-1), 0);
	assert_int_equal(rank, 2);
	setenv("PMIX_RANK", "3", 1);
	assert_int_equal(find_wanting(-1), 0);
	assert_int_equal(rank, 3);
	setenv("PALS_NODEID", "4", 1);
	assert_int_equal(find_wanting(-1), 0);
	assert_int_equal(rank, 4);
	setenv("SLURM_NODEID", "0", 1);
	assert_int_equal(find_wanting(-1), 0);
	assert_int_equal(rank, 0);
}

static void a_bad_rank_in_the_environment_is_named(void **state)
{
	(void)state;
	slurm_says("a,b");
	setenv("SLURM_NODEID", "x", 1);
	assert_int_equal(find_wanting(-1), -EINVAL);
	assert_non_null(strstr(err.text, "SLURM_NODEID is 'x'"));
	setenv("SLURM_NODEID", "2", 1);
	assert_int_equal(find_wanting(-1), -EINVAL);
	assert_non_null(
		strstr(err.text, "SLURM_NODEID is 2, but SLURM_JOB_NODELIST names 2 hosts"));
}

/* srun on the second node of the allocation sets SLURM_NODEID=0. */
static void a_name_without_doubt_beats_a_step_that_counts_from_0(void **state)
{
	char list[600];

	(void)state;
	snprintf(list, sizeof(list), "other,%s", here);
	slurm_says(list);
	setenv("SLURM_NODEID", "0", 1);
	cop_log_open(COP_LOG_NONE, COP_LOG_FILE, NULL, NULL);
	assert_int_equal(find_wanting(-1), 0);
	cop_log_close();
	assert_int_equal(rank, 1);
}

static void the_environment_distinguishes_several_hosts_on_one_machine(void **state)
{
	(void)state;
	slurm_says("127.0.0.11,127.0.0.12,127.0.0.13");
	setenv("SLURM_NODEID", "1", 1);
	assert_int_equal(find_wanting(-1), 0);
	assert_int_equal(rank, 1);
}

/* mpiexec without -ppn 1 starts one task on each core. */
static void a_second_task_on_a_host_is_refused(void **state)
{
	(void)state;
	slurm_says("a,b,c,d");
	setenv("PMIX_RANK", "1", 1);
	setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1", 1);
	assert_int_equal(find_wanting(-1), -EINVAL);
	assert_non_null(strstr(err.text, "start one copper on each host"));
	assert_int_equal(find_wanting(2), 0);
	assert_int_equal(rank, 2);
	setenv("OMPI_COMM_WORLD_LOCAL_RANK", "0", 1);
	assert_int_equal(find_wanting(-1), 0);
	assert_int_equal(rank, 1);
}

static void several_tasks_are_right_where_several_hosts_are_this_machine(void **state)
{
	(void)state;
	slurm_says("127.0.0.11,127.0.0.12");
	setenv("PMI_RANK", "1", 1);
	setenv("MPI_LOCALRANKID", "1", 1);
	assert_int_equal(find_wanting(-1), 0);
	assert_int_equal(rank, 1);
}

static int find_both(const char *list, uint16_t port, int64_t want)
{
	struct cop_job_want w = {.hosts = list, .port = port, .rank = want};

	cop_job_hosts_free(&hosts);
	err = (struct cop_err){0};
	rank = 12345;
	return cop_job_find(&w, &hosts, &rank, &err);
}

static void hosts_and_rank_are_found_together(void **state)
{
	(void)state;
	assert_int_equal(find_both("a,b:81", 0, 1), 0);
	assert_int_equal(hosts.count, 2);
	assert_int_equal(rank, 1);
	assert_int_equal(hosts.host[0].port, COP_JOB_PORT);
	assert_int_equal(hosts.host[1].port, 81);
	assert_int_equal(find_both("a,b:81", 82, 0), 0);
	assert_int_equal(hosts.host[0].port, 82);
	assert_string_equal(cop_job_host_name(&hosts, 1), "b");
	assert_int_equal(cop_job_host_port(&hosts, 1, 82), 81);
	assert_int_equal(find_both("a,b", 0, 2), -EINVAL);
}

static void alone_is_rank_0_of_a_tree_of_one_node(void **state)
{
	(void)state;
	assert_int_equal(find_both(NULL, 0, -1), 0);
	assert_int_equal(hosts.count, 0);
	assert_int_equal(rank, 0);
	assert_string_equal(cop_job_host_name(&hosts, 0), "localhost");
	assert_int_equal(cop_job_host_port(&hosts, 0, 82), 82);
	assert_int_equal(cop_job_host_port(&hosts, 0, 0), COP_JOB_PORT);
	assert_int_equal(find_both(NULL, 0, 1), -EINVAL);
	assert_string_equal(
		err.text, "--rank 1 needs --hosts: without it this is a tree of one node");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, clean, clean)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_rank_out_of_range_is_named_with_the_range),
		TEST(without_hosts_there_is_rank_0_only),
		TEST(the_number_of_a_task_is_not_a_rank),
		TEST(a_machine_that_is_not_in_the_list_is_refused),
		TEST(several_hosts_on_this_machine_need_a_rank),
		TEST(this_machine_is_found_by_its_name),
		TEST(this_machine_is_found_by_its_name_with_a_domain),
		TEST(a_name_that_only_begins_alike_is_another_host),
		TEST(this_machine_is_found_by_an_address),
		TEST(the_environment_counts_only_for_the_schedulers_list),
		TEST(variables_are_tried_in_order),
		TEST(a_bad_rank_in_the_environment_is_named),
		TEST(a_name_without_doubt_beats_a_step_that_counts_from_0),
		TEST(the_environment_distinguishes_several_hosts_on_one_machine),
		TEST(a_second_task_on_a_host_is_refused),
		TEST(several_tasks_are_right_where_several_hosts_are_this_machine),
		TEST(hosts_and_rank_are_found_together),
		TEST(alone_is_rank_0_of_a_tree_of_one_node),
	};

	if (gethostname(here, sizeof(here) - 1))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
