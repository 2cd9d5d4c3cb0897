/* SPDX-License-Identifier: BSD-3-Clause */
/* The channel between the command and the node that it starts in the background. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job/startnote/startnote.h"

static struct cop_err err;

/* What the command receives if this runs in the background. */
static int start(void (*background)(int fd))
{
	int fd = -1, rc;

	err = (struct cop_err){0};
	rc = cop_startnote_background(&fd, -1, &err);
	if (rc == 1) {
		background(fd);
		_exit(0);
	}
	assert_int_equal(fd, -1);
	return rc;
}

static pid_t *node; /* shared with the background process */

static void is_ready_and_lives_on(int fd)
{
	*node = getpid();
	cop_startnote_say(fd, NULL);
	for (;;)
		pause();
}

static void ready_ends_the_wait_and_not_the_node(void **state)
{
	int status = 0;

	(void)state;
	node = mmap(NULL, sizeof(*node), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(node, MAP_FAILED);
	alarm(120); /* ends the test if the command waits forever */
	assert_int_equal(start(is_ready_and_lives_on), 0);
	alarm(0);
	assert_string_equal(err.text, "");
	assert_int_equal(waitpid(*node, &status, WNOHANG), 0);
	assert_int_equal(kill(*node, SIGKILL), 0);
	assert_int_equal(waitpid(*node, &status, 0), *node);
	assert_true(WIFSIGNALED(status));
	munmap(node, sizeof(*node));
}

static void fails(int fd)
{
	struct cop_err why;

	cop_err_set(&why, ENOENT, "n7 (rank 7) did not start: /lus/x: No such file or directory");
	cop_startnote_say(fd, &why);
	_exit(1);
}

static void a_failure_comes_with_its_sentence(void **state)
{
	(void)state;
	assert_int_equal(start(fails), -EIO);
	assert_string_equal(
		err.text, "n7 (rank 7) did not start: /lus/x: No such file or directory");
}

static void fails_at_length(int fd)
{
	struct cop_err why;
	char text[sizeof(why.text)];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	cop_err_set(&why, EIO, "%s", text);
	cop_startnote_say(fd, &why);
	_exit(1);
}

static void a_sentence_of_any_length_arrives_but_for_the_last_letters(void **state)
{
	(void)state;
	assert_int_equal(start(fails_at_length), -EIO);
	assert_true(strlen(err.text) >= sizeof(err.text) - 4);
	assert_true(strspn(err.text, "x") == strlen(err.text));
}

static void ends_without_a_word(int fd)
{
	(void)fd;
	_exit(3);
}

static void is_killed(int fd)
{
	(void)fd;
	kill(getpid(), SIGKILL);
}

static void a_node_that_ends_without_a_report_has_failed(void **state)
{
	(void)state;
	assert_int_equal(start(ends_without_a_word), -EIO);
	assert_string_equal(err.text, "the node ended before it was ready");
	assert_int_equal(start(is_killed), -EIO);
	assert_string_equal(
		err.text, "the node was ended by signal 9 (Killed) before it was ready");
}

/* A launcher that waits for its descriptors to be closed would wait for the node. */
static void looks_at_what_it_has(int fd)
{
	struct cop_err why;
	int left = 0;

	for (int i = 3; i < 1024; i++)
		left += i != fd && fcntl(i, F_GETFD) >= 0;
	cop_err_set(&why, EIO, "%d left, %s", left, getsid(0) == getpid() ? "own" : "no");
	cop_startnote_say(fd, &why);
}

static void the_background_has_its_own_session_and_no_descriptor_of_before(void **state)
{
	int low = dup(1), high = fcntl(1, F_DUPFD, 600);

	(void)state;
	assert_true(low >= 0 && high >= 600);
	assert_int_equal(start(looks_at_what_it_has), -EIO);
	assert_string_equal(err.text, "0 left, own");
	close(low);
	close(high);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ready_ends_the_wait_and_not_the_node),
		cmocka_unit_test(a_failure_comes_with_its_sentence),
		cmocka_unit_test(a_sentence_of_any_length_arrives_but_for_the_last_letters),
		cmocka_unit_test(a_node_that_ends_without_a_report_has_failed),
		cmocka_unit_test(the_background_has_its_own_session_and_no_descriptor_of_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
