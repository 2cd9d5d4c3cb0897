/* SPDX-License-Identifier: BSD-3-Clause */
/* A terminal of the test's own (a pseudo-terminal pair), whose other side the test reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "report/watch/watch.h"

struct terminal {
	int master, slave;
	struct termios was;
	struct cop_screen *screen;
};

static int setup(void **state)
{
	static struct terminal t;
	struct winsize size = {.ws_row = 10, .ws_col = 40};

	t.master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (t.master < 0 || grantpt(t.master) || unlockpt(t.master))
		return -1;
	t.slave = open(ptsname(t.master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (t.slave < 0 || ioctl(t.slave, TIOCSWINSZ, &size) || tcgetattr(t.slave, &t.was))
		return -1;
	*state = &t;
	return cop_screen_open(t.slave, t.slave, &t.screen, NULL);
}

static int teardown(void **state)
{
	struct terminal *t = *state;

	cop_screen_close(t->screen);
	t->screen = NULL;
	close(t->slave);
	if (t->master >= 0)
		close(t->master);
	return 0;
}

/* What the terminal was sent so far. */
static const char *sent(struct terminal *t)
{
	static char text[65536];
	struct pollfd p = {.fd = t->master, .events = POLLIN};
	size_t len = 0;

	while (len < sizeof(text) - 1 && poll(&p, 1, 0) > 0) {
		ssize_t n = read(t->master, text + len, sizeof(text) - 1 - len);

		if (n <= 0)
			break;
		len += (size_t)n;
	}
	text[len] = '\0';
	return text;
}

static struct cop_screen_event next(struct terminal *t)
{
	struct cop_screen_event e;

	cop_screen_wait(t->screen, -1, 10000, &e);
	return e;
}

static void the_terminal_is_given_back_as_it_was(void **state)
{
	struct terminal *t = *state;
	struct termios now;
	sigset_t blocked;

	assert_int_equal(tcgetattr(t->slave, &now), 0);
	assert_false(now.c_lflag & (ICANON | ECHO));
	assert_true(now.c_lflag & ISIG);
	assert_non_null(strstr(sent(t), "\033[?1049h\033[?25l"));
	cop_screen_close(t->screen);
	t->screen = NULL;
	assert_int_equal(tcgetattr(t->slave, &now), 0);
	assert_int_equal(now.c_lflag, t->was.c_lflag);
	assert_int_equal(now.c_iflag, t->was.c_iflag);
	assert_int_equal(now.c_oflag, t->was.c_oflag);
	assert_non_null(strstr(sent(t), "\033[?7h\033[?25h\033[10;1H"));
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	assert_false(sigismember(&blocked, SIGTERM));
}

static void a_frame_arrives_whole(void **state)
{
	struct terminal *t = *state;
	struct cop_screen_frame f = {0};
	unsigned rows, columns;

	sent(t);
	cop_screen_size(t->screen, &rows, &columns);
	assert_int_equal(rows, 10);
	assert_int_equal(columns, 40);
	cop_screen_frame_begin(&f, rows, columns, true);
	cop_screen_frame_line(&f, COP_SCREEN_PLAIN, "%s", "hello");
	cop_screen_frame_end(&f);
	assert_int_equal(cop_screen_draw(t->screen, &f), 0);
	assert_string_equal(sent(t), f.out.data);
	cop_buf_free(&f.out);
}

static void keys_and_signals_and_a_descriptor_are_events(void **state)
{
	struct terminal *t = *state;
	struct cop_screen_event e;
	int pipes[2];

	assert_int_equal(write(t->master, "w\033[6~", 5), 5);
	e = next(t);
	assert_int_equal(e.what, COP_SCREEN_KEY);
	assert_int_equal(e.key, 'w');
	assert_int_equal(next(t).key, COP_SCREEN_KEY_PAGE_DOWN);
	raise(SIGWINCH);
	assert_int_equal(next(t).what, COP_SCREEN_RESIZED);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(write(pipes[1], "x", 1), 1);
	cop_screen_wait(t->screen, pipes[0], 10000, &e);
	assert_int_equal(e.what, COP_SCREEN_READY);
	cop_screen_wait(t->screen, -1, 1, &e);
	assert_int_equal(e.what, COP_SCREEN_IDLE);
	raise(SIGTERM);
	e = next(t);
	assert_int_equal(e.what, COP_SCREEN_ENDED);
	assert_int_equal(e.signal, SIGTERM);
	close(pipes[0]);
	close(pipes[1]);
}

static void escape_alone_comes_when_nothing_follows_it(void **state)
{
	struct terminal *t = *state;

	assert_int_equal(write(t->master, "\033", 1), 1);
	assert_int_equal(next(t).key, COP_SCREEN_KEY_ESCAPE);
}

static void a_terminal_that_is_gone_is_the_end(void **state)
{
	struct terminal *t = *state;
	struct cop_screen_frame f = {0};
	struct cop_screen_event e;

	close(t->master);
	t->master = -1;
	e = next(t);
	assert_int_equal(e.what, COP_SCREEN_ENDED);
	assert_int_equal(e.signal, 0);
	cop_screen_frame_begin(&f, 1, 10, false);
	cop_screen_frame_line(&f, COP_SCREEN_PLAIN, "%s", "x");
	assert_int_equal(cop_screen_draw(t->screen, &f), -EIO);
	cop_buf_free(&f.out);
}

/* As after Ctrl-S: nobody reads what is drawn, and a signal is still noticed. */
static void a_terminal_that_takes_nothing_holds_up_no_signal(void **state)
{
	struct terminal *t = *state;
	struct cop_screen_frame f = {0};

	cop_screen_frame_begin(&f, 1000, 1000, false);
	for (unsigned i = 0; i < 1000; i++)
		cop_screen_frame_line(&f, COP_SCREEN_PLAIN, "%01000d", 0);
	raise(SIGTERM);
	assert_int_equal(cop_screen_draw(t->screen, &f), 0);
	assert_int_equal(next(t).signal, SIGTERM);
	cop_buf_free(&f.out);
	sent(t);
}

static void what_is_no_terminal_is_refused(void **state)
{
	struct terminal *t = *state;
	struct cop_screen *s = NULL;
	struct cop_err err = {0};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	assert_int_equal(cop_screen_open(null, null, &s, &err), -ENOTTY);
	assert_null(s);
	assert_non_null(strstr(err.text, "cannot use the terminal"));
	setenv("TERM", "xterm", 1);
	assert_true(cop_screen_usable(t->slave, t->slave));
	assert_false(cop_screen_usable(null, t->slave));
	assert_false(cop_screen_usable(t->slave, null));
	setenv("TERM", "dumb", 1);
	assert_false(cop_screen_usable(t->slave, t->slave));
	unsetenv("TERM");
	assert_false(cop_screen_usable(t->slave, t->slave));
	close(null);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_terminal_is_given_back_as_it_was),
		T(a_frame_arrives_whole),
		T(keys_and_signals_and_a_descriptor_are_events),
		T(escape_alone_comes_when_nothing_follows_it),
		T(a_terminal_that_is_gone_is_the_end),
		T(a_terminal_that_takes_nothing_holds_up_no_signal),
		T(what_is_no_terminal_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
