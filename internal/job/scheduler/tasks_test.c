/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job/scheduler/scheduler.h"

static char dir[64];
static struct cop_err err;

static int set_up(void **state)
{
	static const char *const names[] = {"SLURM_STEP_ID", "OMPI_COMM_WORLD_LOCAL_RANK",
		"MPI_LOCALRANKID", "MPI_LOCALNRANKS", "PMI_SIZE", "PALS_LOCAL_RANKID",
		"PALS_LOCAL_SIZE", "PMI_LOCAL_SIZE", "FLUX_TASK_LOCAL_ID", "FLUX_JOB_SIZE",
		"FLUX_JOB_NNODES"};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(names); i++)
		unsetenv(names[i]);
	strcpy(dir, "/tmp/cop-tasks-test.XXXXXX");
	assert_non_null(mkdtemp(dir));
	err = (struct cop_err){0};
	return 0;
}

/* Whatever ends the tasks, an empty directory must remain. */
static int tear_down(void **state)
{
	(void)state;
	return rmdir(dir);
}

static struct cop_tasks one_of(uint32_t local, uint32_t here)
{
	return (struct cop_tasks){.launched = true,
		.local = local,
		.here = here,
		.id = 7,
		.fd = -1,
		.first_fd = -1,
		.word_fd = -1};
}

/* ---- one generation ---- */

/* One look: 0, 1 (it leads), or an error. */
static int await_now(struct cop_tasks *t, char *word)
{
	return cop_tasks_await(t, 1, NULL, word, 64, &err);
}

/* A call that leads becomes its own keeper. */
static void start_keeper(struct cop_tasks *keeper, uint32_t local, uint32_t here)
{
	char word[64];

	*keeper = one_of(local, here);
	assert_int_equal(cop_tasks_join(keeper, dir, &err), 0);
	assert_int_equal(await_now(keeper, word), 1);
	assert_string_equal(word, "");
	cop_tasks_keep(keeper);
}

static void end_keeper(struct cop_tasks *keeper)
{
	assert_int_equal(cop_tasks_wait_idle(keeper, 0, &err), 0);
	cop_tasks_close(keeper);
	cop_tasks_end(keeper);
}

static void the_keepers_word_reaches_the_waiting_tasks(void **state)
{
	struct cop_tasks keeper, second = one_of(1, 2);
	struct cop_err why = {0};
	char word[64];

	(void)state;
	start_keeper(&keeper, 0, 2);
	assert_int_equal(cop_tasks_join(&second, dir, &err), 0);
	assert_int_equal(await_now(&second, word), -ETIMEDOUT);
	assert_non_null(strstr(err.text, "another task of this machine starts it"));
	assert_int_equal(cop_tasks_tell(&keeper, "/place", NULL), 0);
	assert_int_equal(await_now(&second, word), 0);
	assert_string_equal(word, "/place");
	cop_err_set(&why, EIO, "the storage is gone");
	assert_int_equal(cop_tasks_tell(&keeper, NULL, &why), 0);
	assert_int_equal(await_now(&second, word), -EIO);
	assert_string_equal(err.text, "the storage is gone");
	cop_tasks_leave(&second);
	end_keeper(&keeper);
}

/* Where the node's socket would have no room, the node says so. */
static void a_directory_with_a_long_name_is_not_cut(void **state)
{
	struct cop_tasks only = one_of(0, 1);
	char deep[108], word[64];

	(void)state;
	snprintf(deep, sizeof(deep), "%s/%0*d", dir, (int)(sizeof(deep) - 2 - strlen(dir)), 1);
	assert_int_equal(mkdir(deep, 0700), 0);
	assert_int_equal(cop_tasks_join(&only, deep, &err), 0);
	assert_int_equal(await_now(&only, word), 1);
	cop_tasks_keep(&only);
	end_keeper(&only);
	assert_int_equal(rmdir(deep), 0);
}

/* Mixed programs: the task with the number 0 never calls. */
static void whoever_comes_may_lead(void **state)
{
	struct cop_tasks second = one_of(1, 3), third = one_of(2, 3);
	char word[64];

	(void)state;
	assert_int_equal(cop_tasks_join(&third, dir, &err), 0);
	assert_int_equal(cop_tasks_join(&second, dir, &err), 0);
	assert_int_equal(await_now(&third, word), 1);
	assert_int_equal(await_now(&second, word), -ETIMEDOUT);
	/* It is killed before it has a keeper. */
	cop_tasks_leave(&third);
	assert_int_equal(await_now(&second, word), 1);
	assert_string_equal(word, "");
	cop_tasks_keep(&second);
	end_keeper(&second);
}

static void a_call_whose_own_keeper_was_killed_does_not_wait(void **state)
{
	struct cop_tasks t = one_of(0, 1);
	char word[64];

	(void)state;
	assert_int_equal(cop_tasks_join(&t, dir, &err), 0);
	assert_int_equal(await_now(&t, word), 1);
	cop_tasks_hand_over(&t);
	assert_int_equal(cop_tasks_await(&t, 60000, NULL, word, sizeof(word), &err), -ECANCELED);
	cop_tasks_leave(&t);
	cop_tasks_sweep(dir, NULL, NULL);
}

/* ---- several generations ---- */

static void a_call_that_comes_late_joins_as_long_as_others_live(void **state)
{
	struct cop_tasks keeper, first = one_of(0, 2), late = one_of(0, 2);
	char word[64];

	(void)state;
	start_keeper(&keeper, 1, 2);
	assert_int_equal(cop_tasks_join(&first, dir, &err), 0);
	assert_int_equal(cop_tasks_tell(&keeper, "/place", NULL), 0);
	assert_int_equal(cop_tasks_join(&late, dir, &err), 0);
	assert_int_equal(await_now(&late, word), 0);
	assert_string_equal(word, "/place");
	cop_tasks_leave(&first);
	assert_true(cop_tasks_live(&keeper));
	cop_tasks_leave(&late);
	end_keeper(&keeper);
}

static void a_call_that_comes_after_the_end_begins_the_next_generation(void **state)
{
	struct cop_tasks old, late = one_of(0, 1);
	char word[64];

	(void)state;
	start_keeper(&old, 0, 1);
	assert_int_equal(cop_tasks_tell(&old, "/old", NULL), 0);
	assert_int_equal(cop_tasks_wait_idle(&old, 0, &err), 0);
	cop_tasks_close(&old);
	/* The old keeper is still stopping its node. */
	assert_int_equal(cop_tasks_join(&late, dir, &err), 0);
	assert_int_equal(await_now(&late, word), -ETIMEDOUT);
	cop_tasks_end(&old);
	assert_int_equal(await_now(&late, word), 1);
	assert_string_equal(word, "");
	assert_int_equal(cop_tasks_tell(&late, "/new", NULL), 0);
	cop_tasks_keep(&late);
	end_keeper(&late);
}

/* The keeper closes a generation that a call has joined, but not entered, while it was suspended.
 */
static void a_call_that_waits_at_the_end_is_of_the_next_generation(void **state)
{
	struct cop_tasks old, late = one_of(0, 1);
	char word[64];

	(void)state;
	start_keeper(&old, 0, 1);
	assert_int_equal(cop_tasks_tell(&old, "/old", NULL), 0);
	assert_int_equal(cop_tasks_wait_idle(&old, 0, &err), 0);
	assert_int_equal(cop_tasks_suspend(&old), 0);
	assert_false(cop_tasks_live(&old));
	assert_int_equal(cop_tasks_join(&late, dir, &err), 0);
	assert_true(cop_tasks_live(&old));
	assert_int_equal(await_now(&late, word), -ETIMEDOUT);
	cop_tasks_close(&old);
	cop_tasks_end(&old);
	assert_int_equal(await_now(&late, word), 1);
	cop_tasks_keep(&late);
	end_keeper(&late);
}

/* On several machines each task calls once in a generation, unless the others may need it. */
static void a_second_call_waits_for_the_next_generation(void **state)
{
	struct cop_tasks keeper = one_of(0, 1), late = one_of(0, 1), next = one_of(0, 1);
	char word[64];

	(void)state;
	keeper.elsewhere = late.elsewhere = next.elsewhere = true;
	late.again = next.again = true;
	assert_int_equal(cop_tasks_join(&keeper, dir, &err), 0);
	assert_int_equal(await_now(&keeper, word), 1);
	cop_tasks_keep(&keeper);
	assert_int_equal(cop_tasks_tell(&keeper, "/place", NULL), 0);
	assert_int_equal(cop_tasks_join(&next, dir, &err), 0);
	assert_int_equal(await_now(&next, word), -ETIMEDOUT);
	assert_false(cop_tasks_live(&keeper));
	late.again_ms = 50;
	assert_int_equal(cop_tasks_join(&late, dir, &err), 0);
	assert_int_equal(cop_tasks_await(&late, 10000, NULL, word, sizeof(word), &err), 0);
	assert_string_equal(word, "/place");
	cop_tasks_leave(&late);
	end_keeper(&keeper);
	assert_int_equal(await_now(&next, word), 1);
	cop_tasks_keep(&next);
	end_keeper(&next);
}

static void a_keeper_that_was_suspended_can_go_on(void **state)
{
	struct cop_tasks keeper, late = one_of(0, 1);
	char word[64];

	(void)state;
	start_keeper(&keeper, 0, 1);
	assert_int_equal(cop_tasks_tell(&keeper, "/place", NULL), 0);
	assert_int_equal(cop_tasks_wait_idle(&keeper, 0, &err), 0);
	assert_int_equal(cop_tasks_suspend(&keeper), 0);
	assert_int_equal(cop_tasks_join(&late, dir, &err), 0);
	assert_int_equal(cop_tasks_tell(&keeper, "/place", NULL), 0);
	assert_int_equal(await_now(&late, word), 0);
	assert_string_equal(word, "/place");
	cop_tasks_leave(&late);
	end_keeper(&keeper);
}

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

/* Starts a process that looks like a task of this launch which does not call. */
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
	/* It lives on, but the time is over. */
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
	/* The second task still uses what the keeper had. */
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
	/* The keeper had given no word. */
	assert_int_equal(sweep(), 0);
	assert_int_not_equal(access(first.names[0], F_OK), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_keepers_word_reaches_the_waiting_tasks),
		T(a_directory_with_a_long_name_is_not_cut),
		T(whoever_comes_may_lead),
		T(a_call_whose_own_keeper_was_killed_does_not_wait),
		T(a_call_that_comes_late_joins_as_long_as_others_live),
		T(a_call_that_comes_after_the_end_begins_the_next_generation),
		T(a_call_that_waits_at_the_end_is_of_the_next_generation),
		T(a_second_call_waits_for_the_next_generation),
		T(a_keeper_that_was_suspended_can_go_on),
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
