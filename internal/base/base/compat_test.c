/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base/base_priv.h"

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* Runs in a child, because it closes descriptors. Returns 0, or the step that failed. */
static int close_some(int (*close_from_to)(unsigned first, unsigned last))
{
	int pid = fork(), status = 0;

	if (pid)
		return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
									    : 99;
	for (int fd = 300; fd <= 900; fd++)
		if (dup2(0, fd) != fd)
			_exit(1);
	if (close_from_to(301, 899))
		_exit(2);
	if (!is_open(300) || !is_open(900))
		_exit(3);
	for (int fd = 301; fd < 900; fd++)
		if (is_open(fd))
			_exit(4);
	if (close_from_to(3, 2) == 0 && !is_open(2))
		_exit(5);
	if (close_from_to(3, ~0U))
		_exit(6);
	for (int fd = 0; fd <= 900; fd++)
		if (is_open(fd) != (fd < 3))
			_exit(7);
	_exit(0);
}

static void a_range_of_descriptors_is_closed_and_no_other(void **state)
{
	(void)state;
	assert_int_equal(close_some(cop_close_range), 0);
}

static void the_same_where_the_kernel_cannot(void **state)
{
	(void)state;
	assert_int_equal(close_some(cop_base_close_each), 0);
}

static void programs_get_no_descriptor_from_a_number_on(void **state)
{
	int fd[2] = {open("/dev/null", O_RDONLY), open("/dev/null", O_RDONLY)};

	(void)state;
	assert_true(fd[0] > 2 && fd[1] > fd[0]);
	assert_int_equal(cop_close_on_exec((unsigned)fd[1]), 0);
	assert_int_equal(fcntl(fd[0], F_GETFD), 0);
	assert_int_equal(fcntl(fd[1], F_GETFD), FD_CLOEXEC);
	close(fd[0]);
	close(fd[1]);
}

/* ---- paths that stay below a directory ---- */

static char top[64];

static int setup(void **state)
{
	(void)state;
	strcpy(top, "/tmp/cop-beneath-XXXXXX");
	return mkdtemp(top) && chdir(top) == 0 && mkdir("in", 0700) == 0 &&
			       mkdir("in/deep", 0700) == 0 && mkdir("out", 0700) == 0 &&
			       symlink("deep", "in/link") == 0 && symlink("../out", "in/away") == 0
		       ? 0
		       : -1;
}

static int teardown(void **state)
{
	(void)state;
	return unlink("in/link") | unlink("in/away") | rmdir("in/deep") | rmdir("in") |
	       rmdir("out") | chdir("/") | rmdir(top);
}

static void assert_stays_beneath(bool has_openat2)
{
	int in = open("in", O_PATH | O_DIRECTORY | O_CLOEXEC), fd;
	static const char *const no[] = {"link", "away", "link/.", "away/x", "none"};
	char name[300];
	unsigned calls = 0;
	struct stat want, got;

	assert_true(in >= 0);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(fstatat(in, i ? "deep" : ".", &want, 0), 0);
		fd = cop_open_beneath(
			in, i ? "deep" : "", O_RDONLY | O_DIRECTORY, has_openat2, &calls);
		assert_true(fd >= 0);
		assert_int_equal(calls, 1);
		assert_int_equal(fstat(fd, &got), 0);
		assert_int_equal(got.st_ino, want.st_ino);
		assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
		close(fd);
	}
	for (size_t i = 0; i < COP_ARRAY_SIZE(no); i++)
		assert_true(cop_open_beneath(
				    in, no[i], O_RDONLY | O_DIRECTORY, has_openat2, &calls) < 0);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(cop_open_beneath(in, name, O_RDONLY, has_openat2, &calls), -ENAMETOOLONG);
	close(in);
}

static void nothing_leads_out_of_a_directory(void **state)
{
	int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool has = cop_has_openat2(here);

	(void)state;
	close(here);
	if (!has) {
		print_message("there is no openat2 here\n");
		skip();
	}
	assert_stays_beneath(true);
}

static void nothing_leads_out_of_it_component_by_component(void **state)
{
	(void)state;
	assert_stays_beneath(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_range_of_descriptors_is_closed_and_no_other),
		cmocka_unit_test(the_same_where_the_kernel_cannot),
		cmocka_unit_test(programs_get_no_descriptor_from_a_number_on),
		cmocka_unit_test_setup_teardown(nothing_leads_out_of_a_directory, setup, teardown),
		cmocka_unit_test_setup_teardown(
			nothing_leads_out_of_it_component_by_component, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
