/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
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

#include "job/scheduler/scheduler.h"

static char dir[64];

static int make_dir(void **state)
{
	char path[4200];

	(void)state;
	strcpy(dir, "/tmp/ask_test.XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s:%s", dir, getenv("PATH"));
	return setenv("PATH", path, 1) || setenv("SLURM_JOB_ID", "7", 1) ||
	       unsetenv("SLURM_RESTART_COUNT");
}

static int remove_dir(void **state)
{
	char command[128];

	(void)state;
	unsetenv("SLURM_JOB_ID");
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return system(command);
}

/* From now on scontrol is this script. */
static void put_scontrol(const char *script)
{
	char path[96];
	FILE *f;

	snprintf(path, sizeof(path), "%s/scontrol", dir);
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "#!/bin/sh\n%s\n", script);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, 0755), 0);
}

static void expect_why(const char *line, const char *word)
{
	char script[512];
	const char *got;

	snprintf(script, sizeof(script), "[ \"$*\" = '-o show job 7' ] && echo '%s'", line);
	put_scontrol(script);
	got = cop_slurm_why(60000);
	if (word)
		assert_string_equal(got, word);
	else
		assert_null(got);
}

/* The script is still running when Slurm is asked for the first time. */
static void a_job_that_completes_is_asked_for_again(void **state)
{
	(void)state;
	put_scontrol("[ -e \"${0%/*}/asked\" ] && code=15\n"
		     ": >\"${0%/*}/asked\"\n"
		     "echo \"JobState=COMPLETING Restarts=0 ExitCode=0:${code:-0}\"");
	assert_string_equal(cop_slurm_why(60000), "cancelled");
	put_scontrol(
		"echo 'JobState=COMPLETING Restarts=0 ExitCode=0:0 RunTime=00:10:00 TimeLimit=UNLIMITED'");
	assert_null(cop_slurm_why(300));
}

static void slurm_says_why_it_ends_a_job(void **state)
{
	(void)state;
	expect_why("JobId=7 JobState=CANCELLED Reason=None", "cancelled");
	expect_why("JobId=7 JobState=TIMEOUT", "time limit");
	expect_why("JobId=7 JobState=COMPLETING Restarts=1 ExitCode=0:0", "requeued");
	expect_why(
		"JobState=COMPLETING Restarts=0 ExitCode=0:15 RunTime=00:00:59 TimeLimit=00:01:00",
		"cancelled");
	expect_why(
		"JobState=COMPLETING Restarts=0 ExitCode=0:15 RunTime=1-00:00:00 TimeLimit=23:00:00",
		"time limit");
	setenv("SLURM_RESTART_COUNT", "1", 1);
	expect_why("JobState=COMPLETING Restarts=1 ExitCode=0:15 TimeLimit=UNLIMITED", "cancelled");
	expect_why("JobState=RUNNING", NULL);
	expect_why("", NULL);
}

static void a_slurm_that_does_not_answer_is_left_alone(void **state)
{
	char *argv[] = {"scontrol", NULL}, *none[] = {"copper-no-such-command", NULL};
	struct cop_buf out = {0};

	(void)state;
	put_scontrol("exec sleep 60");
	assert_int_equal(cop_slurm_command(argv, 50, &out), -ETIMEDOUT);
	put_scontrol("sleep 60");
	assert_int_equal(cop_slurm_command(argv, 50, &out), -ETIMEDOUT);
	put_scontrol("exec >&-; exec sleep 60");
	assert_int_equal(cop_slurm_command(argv, 50, &out), -ETIMEDOUT);
	put_scontrol("exit 1");
	assert_int_equal(cop_slurm_command(argv, 60000, &out), -EIO);
	assert_int_equal(cop_slurm_command(none, 60000, &out), -ENOENT);
	cop_buf_free(&out);
	unsetenv("SLURM_JOB_ID");
	assert_null(cop_slurm_why(60000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_job_that_completes_is_asked_for_again, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(slurm_says_why_it_ends_a_job, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(
			a_slurm_that_does_not_answer_is_left_alone, make_dir, remove_dir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
