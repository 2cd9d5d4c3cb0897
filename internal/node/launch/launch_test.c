/* SPDX-License-Identifier: BSD-3-Clause */
/* A start that fails before there is a node: which processes learn of it. All other cases need a
 * mount and are in scripts/t. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/launch/launch.h"

static char dir[64], logs[80], word_file[112];
static struct cop_conf conf;
static struct cop_err err;

static int set_up(void **state)
{
	(void)state;
	unsetenv("SLURM_JOB_NODELIST");
	unsetenv("COPPER_STEP");
	unsetenv("COPPER_DISABLE_CAPS");
	strcpy(dir, "/tmp/cop-launch-test.XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(logs, sizeof(logs), "%s/logs", dir);
	snprintf(word_file, sizeof(word_file), "%s/not_started.txt", logs);
	cop_conf_init(&conf, false);
	conf.mountpoint = "/proc/none"; /* nothing can be created there */
	conf.job_dir = dir;
	err = (struct cop_err){0};
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(word_file);
	rmdir(logs);
	rmdir(dir);
	return 0;
}

static int launch(void)
{
	char *argv[] = {(char *)"mount", NULL};

	return cop_launch(&conf, argv, &err);
}

static void the_nodes_of_other_hosts_need_not_wait_for_one_that_has_no_mount_point(void **state)
{
	char want[400], *text;
	size_t len;

	(void)state;
	conf.hosts = "127.0.0.41,127.0.0.42";
	conf.rank = 1;
	assert_int_equal(launch(), -ENOENT);
	assert_non_null(strstr(err.text, "cannot be created"));
	assert_int_equal(cop_read_file(word_file, 4096, &text, &len), 0);
	snprintf(want, sizeof(want), "1 %.380s\n", err.text);
	assert_string_equal(text, want);
	free(text);
}

static void a_node_alone_leaves_no_note(void **state)
{
	(void)state;
	conf.hosts = "127.0.0.41";
	assert_int_equal(launch(), -ENOENT);
	assert_int_equal(access(word_file, F_OK), -1);
}

/* Reads what a node of a step writes to its standard output. */
static void the_command_that_started_a_step_reads_it(void **state)
{
	char line[1200] = "", want[1200];
	int fds[2];
	pid_t pid;

	(void)state;
	assert_int_equal(launch(), -ENOENT);
	snprintf(want, sizeof(want), "copper-step failed n1: %.1000s\n", err.text);
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		setenv("COPPER_STEP", "1", 1);
		setenv("SLURMD_NODENAME", "n1", 1);
		conf.foreground = true;
		_exit(dup2(fds[1], 1) != 1 || launch() != -ENOENT);
	}
	close(fds[1]);
	assert_true(cop_read_full(fds[0], line, sizeof(line) - 1) > 0);
	close(fds[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_string_equal(line, want);
}

static void a_node_that_may_open_few_files_does_not_start(void **state)
{
	const struct rlimit few = {16, 16};
	int status = -1;
	pid_t pid;

	(void)state;
	pid = fork();
	if (pid == 0) {
		if (setrlimit(RLIMIT_NOFILE, &few) || launch() != -EMFILE)
			_exit(1);
		_exit(!strstr(err.text, "only 16 files") || !strstr(err.text, "ulimit -Hn"));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_nodes_of_other_hosts_need_not_wait_for_one_that_has_no_mount_point),
		TEST(a_node_alone_leaves_no_note),
		TEST(the_command_that_started_a_step_reads_it),
		TEST(a_node_that_may_open_few_files_does_not_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
