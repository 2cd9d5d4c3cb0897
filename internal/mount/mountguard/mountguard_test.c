/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests without a mount how the two processes communicate and how they end.
 * scripts/t/t0185-dead-mount.sh and the following tests have a mount. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mount/mountguard/mountguard_priv.h"

static char dir[64]; /* nothing is mounted here */

static struct cop_mountguard start(bool above)
{
	struct cop_mountguard_conf conf = {.mountpoint = dir, .above = above, .session = getsid(0)};

	return cop_mountguard_start(&conf);
}

static int status_of(pid_t pid)
{
	int status = 0;

	alarm(60); /* fails a test that hangs */
	assert_int_equal(waitpid(pid, &status, 0), pid);
	alarm(0);
	return status;
}

static void without_a_mount_there_is_no_guard(void **state)
{
	struct cop_mountguard_conf conf = {.mountpoint = ""};
	struct cop_mountguard g = cop_mountguard_start(&conf);

	(void)state;
	assert_int_equal(g.fd, -1);
	assert_int_equal(cop_mountguard_last(&g), getpid());
	cop_mountguard_end(&g, false);
}

/* Waits until the process has a session of its own, as it soon will. */
static bool has_own_session(pid_t pid)
{
	for (int i = 0; i < 1000 && getsid(pid) != pid; i++)
		usleep(10000);
	return getsid(pid) == pid;
}

static void a_node_that_ends_takes_its_guard_along(void **state)
{
	struct cop_mountguard g = start(false);

	(void)state;
	assert_true(g.fd >= 0);
	assert_int_equal(cop_mountguard_last(&g), getpid());
	assert_true(has_own_session(g.pid));
	cop_mountguard_end(&g, false);
	assert_int_equal(kill(g.pid, 0), -1);
	assert_int_equal(errno, ESRCH);
}

/* Starts a node and kills it. This process must wait for the node's guard. */
static pid_t guard_of_a_killed_node(void)
{
	int fds[2];
	pid_t node, guard = 0;

	assert_int_equal(pipe(fds), 0);
	node = fork();
	if (node == 0) {
		guard = start(false).pid;
		if (write(fds[1], &guard, sizeof(guard)) == sizeof(guard))
			kill(getpid(), SIGKILL);
		_exit(1);
	}
	assert_int_equal(read(fds[0], &guard, sizeof(guard)), sizeof(guard));
	assert_true(WIFSIGNALED(status_of(node)));
	close(fds[0]);
	close(fds[1]);
	return guard;
}

static void without_a_dead_mount_the_guard_of_a_killed_node_ends(void **state)
{
	int status;

	(void)state;
	if (prctl(PR_SET_CHILD_SUBREAPER, 1)) {
		assert_int_equal(errno, EINVAL);
		print_message(
			"no process can be a subreaper here, so nobody can wait for the guard\n");
		skip();
	}
	status = status_of(guard_of_a_killed_node());
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void note_that_it_is_gone(void *arg)
{
	(void)arg;
	rmdir(dir);
}

/* The kernel closes the pipe of a killed node before the node has exited. */
static void the_guard_judges_the_mount_when_the_node_has_ended(void **state)
{
	struct cop_mountguard_conf conf = {
		.mountpoint = dir, .session = getsid(0), .gone = note_that_it_is_gone};
	pid_t node = fork();
	int status;

	(void)state;
	if (node == 0) {
		close(cop_mountguard_start(&conf).fd);
		usleep(500000);
		_exit(access(dir, F_OK) == 0 ? 0 : 1);
	}
	status = status_of(node);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	for (int i = 0; i < 6000 && access(dir, F_OK) == 0; i++)
		usleep(10000);
	assert_int_equal(access(dir, F_OK), -1);
	assert_int_equal(mkdir(dir, 0700), 0);
}

/* Runs node in a child, below a guard; returns the guard's pid. */
static pid_t start_above(void (*node)(const struct cop_mountguard *g))
{
	pid_t pid = fork();

	if (pid == 0) {
		struct cop_mountguard g = start(true);

		if (g.fd >= 0 && cop_mountguard_last(&g) == getppid())
			node(&g);
		_exit(99);
	}
	return pid;
}

static void ends_with_7(const struct cop_mountguard *g)
{
	cop_mountguard_end(g, false);
	_exit(7);
}

static void is_killed(const struct cop_mountguard *g)
{
	(void)g;
	kill(getpid(), SIGKILL);
}

static void a_guard_above_ends_as_its_node_does(void **state)
{
	int status;

	(void)state;
	status = status_of(start_above(ends_with_7));
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
	status = status_of(start_above(is_killed));
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 128 + SIGKILL);
}

static void waits_for_sigint(const struct cop_mountguard *g)
{
	sigset_t set;
	int got = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigwait(&set, &got);
	cop_mountguard_end(g, false);
	_exit(got == SIGINT ? 5 : 98);
}

static void a_guard_above_passes_signals_on(void **state)
{
	sigset_t set, before;
	int status;
	pid_t pid;

	(void)state;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, &before);
	pid = start_above(waits_for_sigint);
	kill(pid, SIGINT);
	status = status_of(pid);
	sigprocmask(SIG_SETMASK, &before, NULL);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_mount_there_is_no_guard),
		cmocka_unit_test(a_node_that_ends_takes_its_guard_along),
		cmocka_unit_test(without_a_dead_mount_the_guard_of_a_killed_node_ends),
		cmocka_unit_test(the_guard_judges_the_mount_when_the_node_has_ended),
		cmocka_unit_test(a_guard_above_ends_as_its_node_does),
		cmocka_unit_test(a_guard_above_passes_signals_on),
	};
	int failed;

	strcpy(dir, "/tmp/cop-guard-test.XXXXXX");
	if (!mkdtemp(dir))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(dir);
	return failed;
}
