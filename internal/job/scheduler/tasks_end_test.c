/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "job/scheduler/tasks_testing.h"

/* ---- when the keeper ends ---- */

/* Starts a process that joins and waits to be killed. */
static pid_t start_task(uint32_t local, uint32_t here)
{
	struct cop_tasks t = one_of(local, here);
	int fds[2];
	char c;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		close(fds[0]);
		if (cop_tasks_join(&t, dir, &err) || write(fds[1], "j", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	close(fds[1]);
	assert_int_equal(cop_read_full(fds[0], &c, 1), 1);
	close(fds[0]);
	return pid;
}

static void a_generation_is_over_when_all_tasks_have_come_and_were_killed(void **state)
{
	struct cop_tasks keeper;
	pid_t two, three;
	uint64_t began;

	(void)state;
	start_keeper(&keeper, 0, 3);
	two = start_task(1, 3);
	three = start_task(2, 3);
	began = cop_now_ms();
	if (fork() == 0) {
		cop_tasks_leave(&keeper);
		usleep(200000);
		kill(two, SIGKILL);
		kill(three, SIGKILL);
		_exit(0);
	}
	assert_int_equal(cop_tasks_wait_idle(&keeper, 60000, &err), 0);
	assert_true(cop_now_ms() - began >= 200);
	while (wait(NULL) > 0)
		continue;
	cop_tasks_close(&keeper);
	cop_tasks_end(&keeper);
}

/* Starts a process that looks like a task of this launch but does not call. */
static pid_t start_other_program(const char *number, const char *seconds)
{
	pid_t pid = fork();

	if (pid == 0) {
		setenv("MPI_LOCALRANKID", number, 1);
		execlp("sleep", "sleep", seconds, NULL);
		_exit(127);
	}
	return pid;
}

static void a_task_that_may_still_call_is_waited_for_until_it_ends(void **state)
{
	struct cop_tasks keeper, found_here;
	uint64_t began = cop_now_ms(), waited;
	pid_t other;

	(void)state;
	/* As a launcher would: it does not have the variable, the tasks have it. */
	other = start_other_program("1", "1");
	start_keeper(&keeper, 0, 2);
	setenv("MPI_LOCALRANKID", "0", 1);
	setenv("MPI_LOCALNRANKS", "2", 1);
	setenv("PMI_SIZE", "2", 1);
	assert_int_equal(cop_tasks_find(&found_here, &err), 0);
	keeper.variable = found_here.variable;
	assert_int_equal(waitpid(other, NULL, WNOHANG), 0);
	assert_int_equal(cop_tasks_wait_idle(&keeper, 100, &err), 0);
	waited = cop_now_ms() - began;
	/* It is still alive, but the time is up. */
	assert_int_equal(waitpid(other, NULL, WNOHANG), 0);
	assert_true(waited >= 100);
	cop_tasks_suspend(&keeper);
	assert_int_equal(waitpid(other, NULL, 0), other);
	began = cop_now_ms();
	assert_int_equal(cop_tasks_wait_idle(&keeper, 60000, &err), 0);
	assert_true(cop_now_ms() - began < 30000);
	cop_tasks_close(&keeper);
	cop_tasks_end(&keeper);
}

/* Runs a process that finishes and reports whether it was the last to leave. */
static void finish_in_child(uint32_t local, uint32_t here, bool well, int said_fd)
{
	struct cop_tasks t = one_of(local, here);
	pid_t pid;

	assert_int_equal(cop_tasks_join(&t, dir, &err), 0);
	pid = fork();
	if (pid == 0) {
		char said = cop_tasks_finish(&t, well) ? 'l' : 'o';

		_exit(write(said_fd, &said, 1) != 1);
	}
	cop_tasks_leave(&t);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Makes the first task, and its keeper. */
static void start_first(
	struct cop_tasks *keeper, struct cop_tasks *first, uint32_t here, bool again)
{
	char word[64];

	*keeper = one_of(0, here);
	keeper->again = again;
	assert_int_equal(cop_tasks_join(keeper, dir, &err), 0);
	assert_int_equal(await_now(keeper, word), 1);
	*first = *keeper;
	first->first_fd = -1;
	keeper->fd = -1;
	assert_int_equal(cop_tasks_tell(keeper, "/place", NULL), 0);
}

/* As in the program, its process is the only one that has its lock. */
static void finish_first(struct cop_tasks *keeper, struct cop_tasks *first, bool well, int said_fd)
{
	int left[2];

	assert_int_equal(pipe(left), 0);
	if (fork() == 0) {
		char said;

		close(left[1]);
		cop_read_full(left[0], &said, 1);
		cop_tasks_leave(keeper);
		close(keeper->word_fd);
		said = cop_tasks_finish(first, well) ? 'l' : 'o';
		_exit(write(said_fd, &said, 1) != 1);
	}
	cop_tasks_leave(first);
	close(left[0]);
	close(left[1]);
}

static void only_the_last_task_waits_for_the_keeper(void **state)
{
	struct cop_tasks keeper, first;
	char said[3];
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	start_first(&keeper, &first, 3, false);
	finish_in_child(1, 3, false, fds[1]);
	finish_in_child(2, 3, true, fds[1]);
	assert_int_equal(cop_read_full(fds[0], said, 2), 2);
	assert_memory_equal(said, "oo", 2);
	assert_false(cop_tasks_is_waited_for(&keeper));
	finish_first(&keeper, &first, true, fds[1]);
	assert_int_equal(cop_tasks_wait_idle(&keeper, 60000, &err), 0);
	assert_true(cop_tasks_is_waited_for(&keeper));
	/* It still waits when its generation is suspended, or closed. */
	assert_int_equal(cop_tasks_suspend(&keeper), 0);
	assert_true(cop_tasks_is_waited_for(&keeper));
	cop_tasks_close(&keeper);
	cop_tasks_end(&keeper);
	assert_int_equal(cop_read_full(fds[0], said, 1), 1);
	assert_int_equal(said[0], 'l');
	while (wait(NULL) > 0)
		continue;
	close(fds[0]);
	close(fds[1]);
}

/* A script may call again, which the other machines may be waiting for. */
static void the_last_call_of_a_script_does_not_wait_for_long(void **state)
{
	struct cop_tasks keeper, first, next = one_of(0, 1);
	uint64_t began = cop_now_ms();
	int fds[2];
	char said;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	start_first(&keeper, &first, 1, true);
	first.again_ms = 300;
	finish_first(&keeper, &first, true, fds[1]);
	assert_int_equal(cop_tasks_wait_idle(&keeper, 60000, &err), 0);
	assert_true(keeper.again_came);
	assert_int_equal(cop_tasks_suspend(&keeper), 0);
	assert_int_equal(cop_read_full(fds[0], &said, 1), 1);
	assert_int_equal(said, 'o');
	assert_true(cop_now_ms() - began >= 300);
	/* Nor does the next call of the task wait for the other machines once more. */
	next.elsewhere = next.again = true;
	assert_int_equal(cop_tasks_join(&next, dir, &err), 0);
	assert_true(next.fd >= 0);
	cop_tasks_leave(&next);
	cop_tasks_close(&keeper);
	cop_tasks_end(&keeper);
	while (wait(NULL) > 0)
		continue;
	close(fds[0]);
	close(fds[1]);
}

static void the_last_task_repeats_the_keepers_message(void **state)
{
	struct cop_tasks keeper, first;
	int fds[2], said[2], before = dup(STDERR_FILENO);
	char text[8] = "";

	(void)state;
	assert_int_equal(pipe(fds) | pipe(said), 0);
	start_first(&keeper, &first, 1, false);
	cop_tasks_give_back_stderr(&keeper);
	dprintf(STDERR_FILENO, "hello\n");
	dup2(said[1], STDERR_FILENO);
	finish_first(&keeper, &first, true, fds[1]);
	dup2(before, STDERR_FILENO);
	close(before);
	end_keeper(&keeper);
	assert_int_equal(cop_read_full(said[0], text, 6), 6);
	assert_string_equal(text, "hello\n");
	while (wait(NULL) > 0)
		continue;
	for (int i = 0; i < 2; i++) {
		close(fds[i]);
		close(said[i]);
	}
}

static void a_last_task_that_failed_does_not_ask_the_keeper_to_go_on(void **state)
{
	struct cop_tasks keeper, first;
	int fds[2];
	char said;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	start_first(&keeper, &first, 1, false);
	finish_first(&keeper, &first, false, fds[1]);
	assert_int_equal(cop_tasks_wait_idle(&keeper, 60000, &err), 0);
	assert_false(cop_tasks_is_waited_for(&keeper));
	cop_tasks_close(&keeper);
	cop_tasks_end(&keeper);
	assert_int_equal(cop_read_full(fds[0], &said, 1), 1);
	assert_int_equal(said, 'l');
	while (wait(NULL) > 0)
		continue;
	close(fds[0]);
	close(fds[1]);
}

/* ---- killed ---- */

/* Makes a launch of two tasks; the kernel has the locks of those that are still alive. */
static void start_of_two(struct cop_tasks *keeper, struct cop_tasks *second)
{
	int before = dup(STDERR_FILENO);

	start_keeper(keeper, 0, 2);
	*second = one_of(1, 2);
	assert_int_equal(cop_tasks_join(second, dir, &err), 0);
	assert_int_equal(cop_tasks_tell(keeper, "/place", NULL), 0);
	cop_tasks_give_back_stderr(keeper);
	dup2(before, STDERR_FILENO);
	close(before);
}

static void kill_keeper(struct cop_tasks *keeper)
{
	cop_tasks_leave(keeper);
	close(keeper->word_fd);
}

static unsigned finds;
static char word[64];

static void found(void *arg, const char *what)
{
	finds += arg == &finds;
	snprintf(word, sizeof(word), "%s", what);
}

static unsigned sweep(void)
{
	finds = 0;
	cop_tasks_sweep(dir, found, &finds);
	return finds;
}

static void what_a_start_leaves_of_which_all_were_killed_is_removed(void **state)
{
	struct cop_tasks keeper, second;

	(void)state;
	start_of_two(&keeper, &second);
	assert_int_equal(sweep(), 0);
	cop_tasks_leave(&second);
	/* The keeper still has something to do. */
	assert_int_equal(sweep(), 0);
	assert_int_equal(access(keeper.names[0], F_OK), 0);
	kill_keeper(&keeper);
	assert_int_equal(sweep(), 1);
	assert_string_equal(word, "/place");
	assert_int_equal(sweep(), 0);
}

static void a_task_whose_keeper_was_killed_is_left_alone(void **state)
{
	struct cop_tasks keeper, second;

	(void)state;
	start_of_two(&keeper, &second);
	kill_keeper(&keeper);
	assert_int_equal(sweep(), 0);
	assert_int_equal(access(keeper.names[0], F_OK), 0);
	/* This is the last task, and it leaves nothing behind. */
	assert_true(cop_tasks_finish(&second, true));
}

static void a_call_after_a_killed_keeper_begins_the_next_generation(void **state)
{
	struct cop_tasks keeper, second, late = one_of(0, 2);
	char left[64];

	(void)state;
	start_of_two(&keeper, &second);
	kill_keeper(&keeper);
	/* The second task still uses what the keeper provided. */
	assert_int_equal(cop_tasks_join(&late, dir, &err), 0);
	assert_int_equal(await_now(&late, left), 1);
	assert_string_equal(left, "");
	cop_tasks_leave(&second);
	cop_tasks_keep(&late);
	end_keeper(&late);
}

static void a_start_whose_first_task_was_killed_before_its_keeper_lived_is_removed(void **state)
{
	struct cop_tasks first = one_of(0, 1);
	char left[64];

	(void)state;
	assert_int_equal(cop_tasks_join(&first, dir, &err), 0);
	assert_int_equal(await_now(&first, left), 1);
	assert_int_equal(sweep(), 0);
	cop_tasks_leave(&first);
	/* The keeper had not reported its word yet. */
	assert_int_equal(sweep(), 0);
	assert_int_not_equal(access(first.names[0], F_OK), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_dir)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_generation_is_over_when_all_tasks_have_come_and_were_killed),
		T(a_task_that_may_still_call_is_waited_for_until_it_ends),
		T(only_the_last_task_waits_for_the_keeper),
		T(the_last_call_of_a_script_does_not_wait_for_long),
		T(the_last_task_repeats_the_keepers_message),
		T(a_last_task_that_failed_does_not_ask_the_keeper_to_go_on),
		T(what_a_start_leaves_of_which_all_were_killed_is_removed),
		T(a_task_whose_keeper_was_killed_is_left_alone),
		T(a_call_after_a_killed_keeper_begins_the_next_generation),
		T(a_start_whose_first_task_was_killed_before_its_keeper_lived_is_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
