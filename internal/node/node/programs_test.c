/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/node/programs.h"

static struct cop_programs *p;

static int setup(void **state)
{
	(void)state;
	p = cop_programs_new(3);
	return p ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	cop_programs_free(p);
	return 0;
}

/* Starts a process that waits until it is told to end. */
static pid_t start(int code, int *go)
{
	int ends[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		close(ends[1]);
		while (read(ends[0], &c, 1) > 0)
			continue;
		_exit(code);
	}
	close(ends[0]);
	*go = ends[1];
	return pid;
}

static struct cop_op_exits exits(void)
{
	struct cop_op_exits e;

	cop_programs_exits(p, &e);
	return e;
}

/* Ends the process. If the kernel does not report its status, its parent does. */
static int end(pid_t pid, int go)
{
	int status;

	close(go);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void an_end_is_counted_once_whoever_tells_it(void **state)
{
	int go[2], status;
	pid_t pid[2];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		pid[i] = start(i ? 5 : 0, &go[i]);
		cop_programs_add(p, pid[i]);
	}
	assert_int_equal(exits().running, 2);
	/* In reverse order, because the second process has a copy of the first one's pipe. */
	for (unsigned i = 2; i-- > 0;) {
		status = end(pid[i], go[i]);
		exits();
		cop_programs_ended(p, pid[i], status);
		cop_programs_ended(p, pid[i], status);
	}
	assert_int_equal(exits().commands, 2);
	assert_int_equal(exits().running, 0);
	assert_int_equal(exits().good, 1);
	assert_int_equal(exits().failed, 1);
	assert_int_equal(WEXITSTATUS(exits().worst), 5);
	assert_int_equal(exits().rank, 3);
}

static void a_process_that_never_was_has_an_unknown_end(void **state)
{
	int go;
	pid_t pid = start(0, &go);

	(void)state;
	end(pid, go);
	cop_programs_add(p, pid);
	assert_int_equal(exits().commands, 1);
	assert_int_equal(exits().running + exits().good + exits().failed, 0);
	cop_programs_ended(p, pid + 1, 256);
	assert_int_equal(exits().failed, 0);
}

static void no_number_of_commands_is_too_large(void **state)
{
	int go;
	pid_t pid = start(0, &go);

	(void)state;
	for (unsigned i = 0; i < 3000; i++)
		assert_true(cop_programs_add(p, (pid_t)(4200000 + i)));
	cop_programs_add(p, pid);
	assert_int_equal(exits().commands, 3001);
	for (unsigned i = 0; i < 3000; i++)
		cop_programs_ended(p, (pid_t)(4200000 + i), 0);
	assert_int_equal(exits().good, 3000);
	end(pid, go);
}

static void an_end_is_known_before_the_parent_has_waited(void **state)
{
	siginfo_t info;
	int go;
	pid_t pid = start(9, &go);

	(void)state;
	cop_programs_add(p, pid);
	close(go);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(exits().running, 0);
	assert_int_equal(WEXITSTATUS(exits().worst), 9);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(exits().failed, 1);
}

static void the_worst_of_two_nodes_does_not_depend_on_their_order(void **state)
{
	struct cop_op_exits a = {0}, b = {0}, ab = {0}, ba = {0};

	(void)state;
	cop_op_exits_count(&a, 4, 7 << 8);
	cop_op_exits_count(&a, 4, 0);
	cop_op_exits_count(&b, 2, SIGKILL);
	cop_op_exits_add(&ab, &a);
	cop_op_exits_add(&ab, &b);
	cop_op_exits_add(&ba, &b);
	cop_op_exits_add(&ba, &a);
	assert_memory_equal(&ab, &ba, sizeof(ab));
	assert_int_equal(ab.worst, SIGKILL);
	assert_int_equal(ab.rank, 2);
	assert_int_equal(ab.failed, 2);
	assert_int_equal(ab.good, 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(an_end_is_counted_once_whoever_tells_it),
		T(a_process_that_never_was_has_an_unknown_end),
		T(no_number_of_commands_is_too_large),
		T(an_end_is_known_before_the_parent_has_waited),
		T(the_worst_of_two_nodes_does_not_depend_on_their_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
