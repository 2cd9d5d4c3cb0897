/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mount/mountguard/mountguard_priv.h"

#define MINUTE_MS (60 * 1000ULL)
#define HOUR_MS (60 * MINUTE_MS)

static int no_job(void **state)
{
	(void)state;
	unsetenv("SLURM_JOB_ID");
	unsetenv("PBS_JOBID");
	unsetenv("LSB_JOBID");
	return 0;
}

static void put_pid(int fd)
{
	int pid = (int)getpid();

	if (write(fd, &pid, sizeof(pid)) != sizeof(pid))
		_exit(1);
}

/* Starts a program with this word in its environment, in a session of its own. It runs until it is
 * killed. */
static pid_t start(const char *word)
{
	char *argv[] = {"sleep", "600", NULL}, *envp[] = {(char *)word, NULL};
	int fds[2];
	pid_t pid, told;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		setsid();
		put_pid(fds[1]);
		execve("/bin/sleep", argv, envp);
		_exit(1);
	}
	assert_int_equal(read(fds[0], &told, sizeof(told)), sizeof(told));
	close(fds[0]);
	close(fds[1]);
	return pid;
}

/* Retries, because the process may not have executed its program yet. */
static bool is_seen(const struct audience *a, pid_t pid)
{
	for (int i = 0; i < 1000; i++) {
		if (cop_mountguard_audience_one(a) == pid)
			return true;
		usleep(10000);
	}
	return false;
}

static void end_process(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void programs_of_a_scheduler_s_job_are_known_by_their_environment(void **state)
{
	struct audience a;
	pid_t pid;

	(void)state;
	setenv("PBS_JOBID", "4711.audience-test", 1);
	cop_mountguard_audience_init(&a, getsid(0));
	cop_mountguard_audience_begin(&a);
	assert_int_equal(cop_mountguard_audience_one(&a), 0);
	pid = start("PBS_JOBID=4711.audience-tes");
	assert_int_equal(cop_mountguard_audience_one(&a), 0);
	end_process(pid);
	pid = start("PBS_JOBID=4711.audience-test");
	assert_true(is_seen(&a, pid));
	end_process(pid);
	assert_int_equal(cop_mountguard_audience_one(&a), 0);
}

static void the_next_program_of_a_job_may_come_within_ten_minutes(void **state)
{
	struct audience a;

	(void)state;
	setenv("SLURM_JOB_ID", "4711", 1);
	cop_mountguard_audience_init(&a, 0);
	assert_false(cop_mountguard_audience_gone(&a, 0));
	assert_false(cop_mountguard_audience_gone(&a, 9 * MINUTE_MS));
	assert_true(cop_mountguard_audience_gone(&a, 10 * MINUTE_MS));
	assert_false(cop_mountguard_audience_tells_little(&a, 1000 * HOUR_MS));
}

static void without_a_job_the_session_counts_until_it_ends(void **state)
{
	struct audience a;
	pid_t pid = start("A=B");

	(void)state;
	cop_mountguard_audience_init(&a, pid);
	assert_true(is_seen(&a, pid));
	cop_mountguard_audience_begin(&a);
	assert_int_equal(a.session, pid);
	end_process(pid);
	assert_int_equal(cop_mountguard_audience_one(&a), 0);
	assert_true(cop_mountguard_audience_gone(&a, 0));
	assert_false(cop_mountguard_audience_tells_little(&a, 1000 * HOUR_MS));
}

static void a_session_that_was_only_for_the_command_leaves_all_of_the_user_for_a_day(void **state)
{
	struct audience a;
	pid_t pid = start("A=B");

	(void)state;
	cop_mountguard_audience_init(&a, pid);
	end_process(pid);
	cop_mountguard_audience_begin(&a);
	assert_int_equal(a.session, 0);
	pid = start("A=B");
	assert_true(cop_mountguard_audience_one(&a) > 0);
	end_process(pid);
	assert_false(cop_mountguard_audience_gone(&a, 9 * MINUTE_MS));
	assert_true(cop_mountguard_audience_gone(&a, 10 * MINUTE_MS));
	assert_false(cop_mountguard_audience_tells_little(&a, 23 * HOUR_MS));
	assert_true(cop_mountguard_audience_tells_little(&a, 24 * HOUR_MS));
}

static void nodes_guards_and_ended_processes_do_not_count(void **state)
{
	struct audience a;
	int fds[2];
	pid_t pid;
	char byte;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		setsid();
		close(fds[0]);
		put_pid(fds[1]);
		for (;;)
			pause();
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &byte, 1), 1);
	cop_mountguard_audience_init(&a, pid);
	assert_int_equal(cop_mountguard_audience_one(&a), 0);
	a.exe_ino++;
	assert_int_equal(cop_mountguard_audience_one(&a), pid);
	kill(pid, SIGKILL);
	while (read(fds[0], &byte, 1) > 0)
		continue;
	siginfo_t info;
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(cop_mountguard_audience_one(&a), 0);
	waitpid(pid, NULL, 0);
	close(fds[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(
			programs_of_a_scheduler_s_job_are_known_by_their_environment, no_job),
		cmocka_unit_test_setup(
			the_next_program_of_a_job_may_come_within_ten_minutes, no_job),
		cmocka_unit_test_setup(without_a_job_the_session_counts_until_it_ends, no_job),
		cmocka_unit_test_setup(
			a_session_that_was_only_for_the_command_leaves_all_of_the_user_for_a_day,
			no_job),
		cmocka_unit_test_setup(nodes_guards_and_ended_processes_do_not_count, no_job),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
