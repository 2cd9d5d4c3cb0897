/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/watch/watch.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>

#define WRITE_MS 1000
/* The rest of a key's sequence follows immediately, even over a network. */
#define SEQUENCE_MS 100

/* Switches to the alternate screen, hides the cursor and disables line wrap. */
static const char enter[] = "\033[?1049h\033[?25l\033[?7l\033[2J";
static const char leave[] = "\033[0m\033[?7h\033[?25h\033[%u;1H\r\n\033[?1049l";

struct cop_screen {
	int in, out;
	int own; /* the same terminal, reopened so nonblocking writes do not affect other processes
		  */
	int signal_fd; /* delivers the blocked signals */
	sigset_t blocked, before;
	struct termios was;
	struct cop_screen_keys keys;
	bool taken;
};

bool cop_screen_usable(int in, int out)
{
	const char *term = getenv("TERM");

	return isatty(in) && isatty(out) && term && *term && strcmp(term, "dumb") != 0;
}

bool cop_screen_is_utf8(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	for (size_t i = 0; i < COP_ARRAY_SIZE(names); i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
	}
	return false;
}

void cop_screen_size(const struct cop_screen *s, unsigned *rows, unsigned *columns)
{
	struct winsize w = {0};

	if (ioctl(s->out, TIOCGWINSZ, &w) || !w.ws_row || !w.ws_col)
		w = (struct winsize){.ws_row = 24, .ws_col = 80};
	*rows = w.ws_row;
	*columns = w.ws_col;
}

/* ---- writing ---- */

/* Returns false if the terminal blocks or a signal arrived. */
static bool takes_more(struct cop_screen *s, bool hears)
{
	struct pollfd p[2] = {{.fd = s->own, .events = POLLOUT},
		{.fd = hears ? s->signal_fd : -1, .events = POLLIN}};

	return poll(p, 2, WRITE_MS) > 0 && p[0].revents;
}

static int write_terminal(struct cop_screen *s, const char *data, size_t len, bool hears)
{
	while (len) {
		ssize_t n = write(s->own, data, len);

		if (n < 0 && errno == EAGAIN) {
			if (!takes_more(s, hears))
				return -EAGAIN;
		} else if (n < 0 && errno != EINTR) {
			return -errno;
		} else if (n > 0) {
			data += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

int cop_screen_draw(struct cop_screen *s, const struct cop_screen_frame *f)
{
	int rc = f->out.failed ? -ENOMEM : write_terminal(s, f->out.data, f->out.len, true);

	return rc == -EAGAIN ? 0 : rc;
}

/* ---- taking over and restoring the terminal ---- */

/* Delivers keys one at a time and without echo, and Ctrl-S does not stop the output; Ctrl-C and
 * Ctrl-Z still send signals. */
static int take_terminal(struct cop_screen *s)
{
	struct termios raw;

	if (tcgetattr(s->in, &s->was))
		return -errno;
	raw = s->was;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN);
	raw.c_iflag &= ~(tcflag_t)(IXON | ISTRIP);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	/* If this process is in the background, the call stops it until it is in the foreground. */
	while (tcsetattr(s->in, TCSANOW, &raw))
		if (errno != EINTR)
			return -errno;
	s->taken = true;
	write_terminal(s, enter, sizeof(enter) - 1, false);
	return 0;
}

/* Discards unread keys, which must not reach the shell. If a script started this process, the shell
 * may already have taken over the terminal, in its own mode; changing the mode would then stop this
 * process. */
static void give_back(struct cop_screen *s)
{
	unsigned rows, columns;
	char text[64];

	if (!s->taken)
		return;
	s->taken = false;
	cop_screen_size(s, &rows, &columns);
	snprintf(text, sizeof(text), leave, rows);
	write_terminal(s, text, strlen(text), false);
	if (tcgetpgrp(s->in) > 0 && tcgetpgrp(s->in) != getpgrp())
		return;
	tcflush(s->in, TCIFLUSH);
	tcsetattr(s->in, TCSANOW, &s->was);
}

static void choose_signals(sigset_t *set)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};

	sigemptyset(set);
	for (size_t i = 0; i < COP_ARRAY_SIZE(signals); i++)
		sigaddset(set, signals[i]);
}

/* If the terminal cannot be reopened, as after su, writes may block. */
static int reopen_terminal(int out)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", out);
	fd = open(path, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	return fd >= 0 ? fd : fcntl(out, F_DUPFD_CLOEXEC, 3);
}

int cop_screen_open(int in, int out, struct cop_screen **result, struct cop_err *err)
{
	struct cop_screen *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return cop_err_set(err, ENOMEM, "no memory for the screen");
	s->in = in;
	s->out = out;
	choose_signals(&s->blocked);
	pthread_sigmask(SIG_BLOCK, &s->blocked, &s->before);
	s->own = reopen_terminal(out);
	s->signal_fd = signalfd(-1, &s->blocked, SFD_CLOEXEC | SFD_NONBLOCK);
	rc = s->own < 0 || s->signal_fd < 0 ? -errno : take_terminal(s);
	if (rc) {
		cop_screen_close(s);
		return cop_err_set(err, -rc, "cannot use the terminal: %s", strerror(-rc));
	}
	*result = s;
	return 0;
}

void cop_screen_close(struct cop_screen *s)
{
	if (!s)
		return;
	give_back(s);
	if (s->signal_fd >= 0)
		close(s->signal_fd);
	if (s->own >= 0)
		close(s->own);
	pthread_sigmask(SIG_SETMASK, &s->before, NULL);
	free(s);
}

/* ---- events ---- */

/* Unblocking the signal stops this process, except in an orphaned process group, where the kernel
 * discards it. */
static void stop_until_continued(struct cop_screen *s)
{
	sigset_t stop;

	give_back(s);
	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	raise(SIGTSTP);
	pthread_sigmask(SIG_UNBLOCK, &stop, NULL);
	pthread_sigmask(SIG_BLOCK, &stop, NULL);
}

/* The shell may have changed the terminal in the meantime, or restored this process's mode. */
static void note_continued(struct cop_screen *s, struct cop_screen_event *e)
{
	struct termios before = s->was;
	bool was_taken = s->taken;

	if (take_terminal(s)) {
		e->what = COP_SCREEN_ENDED;
		return;
	}
	if (was_taken || !(s->was.c_lflag & ICANON))
		s->was = before;
	e->what = COP_SCREEN_RESIZED;
}

static void have_signal(struct cop_screen *s, struct cop_screen_event *e)
{
	struct signalfd_siginfo info;

	if (read(s->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	switch (info.ssi_signo) {
	case SIGTSTP:
		stop_until_continued(s);
		note_continued(s, e);
		break;
	case SIGCONT:
		note_continued(s, e);
		break;
	case SIGWINCH:
		e->what = COP_SCREEN_RESIZED;
		break;
	default:
		*e = (struct cop_screen_event){COP_SCREEN_ENDED, 0, (int)info.ssi_signo};
		break;
	}
}

/* Takes one byte at a time, because pasted text is a series of keys. */
static void have_byte(struct cop_screen *s, struct cop_screen_event *e)
{
	unsigned char byte;
	ssize_t n = read(s->in, &byte, 1);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		*e = (struct cop_screen_event){.what = COP_SCREEN_ENDED};
		return;
	}
	if (n < 0)
		return;
	e->key = cop_screen_keys_take(&s->keys, byte);
	if (e->key != COP_SCREEN_KEY_NONE)
		e->what = COP_SCREEN_KEY;
}

/* Handles a timeout of the wait, or of a partial key sequence. */
static bool end_of_wait(struct cop_screen *s, bool over, struct cop_screen_event *e)
{
	if (s->keys.in_sequence) {
		e->key = cop_screen_keys_idle(&s->keys);
		if (e->key != COP_SCREEN_KEY_NONE) {
			e->what = COP_SCREEN_KEY;
			return true;
		}
	}
	return over;
}

void cop_screen_wait(struct cop_screen *s, int fd, int timeout_ms, struct cop_screen_event *e)
{
	uint64_t now = cop_now_ms(), until = now + (uint64_t)COP_MAX(timeout_ms, 0);

	*e = (struct cop_screen_event){.what = COP_SCREEN_IDLE};
	do {
		struct pollfd p[3] = {{.fd = s->signal_fd, .events = POLLIN},
			{.fd = s->in, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
		int left = until > now ? (int)(until - now) : 0;
		int n = poll(p, 3, s->keys.in_sequence ? COP_MIN(left, SEQUENCE_MS) : left);

		now = cop_now_ms();
		if (n == 0 && end_of_wait(s, now >= until, e))
			return;
		if (n <= 0)
			continue;
		if (p[0].revents)
			have_signal(s, e);
		else if (p[1].revents)
			have_byte(s, e);
		else if (p[2].revents)
			e->what = COP_SCREEN_READY;
	} while (e->what == COP_SCREEN_IDLE && now < until);
}
