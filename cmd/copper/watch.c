/* SPDX-License-Identifier: BSD-3-Clause */
/* At most one request is in flight, so requests do not pile up if the tree is slow. The page shows
 * how late the reply is. */
#include "watch.h"

#include <signal.h>

#include "report/watch/watch.h"
#include "node/ctl/ctl.h"

#define CONNECT_MS 1000
/* The delay after a dropped request, by which time the state of the node will be known. */
#define AGAIN_MS 300
#define DROPPED_MOST 3
/* The pause between a late reply and the next request. */
#define BREATH_MS 100
/* The maximum number of keys processed before a redraw. */
#define EVENTS_MOST 256

struct watch {
	const char *path;
	struct cop_screen *screen;
	struct cop_board *board;
	struct cop_screen_frame frame;
	struct cop_ctl_question *question; /* NULL: none in flight */
	uint64_t asked_ms, due_ms;
	unsigned dropped; /* consecutive unanswered requests */
	uint64_t late_s;  /* delay of the reply as last drawn */
	bool changed, over, utf8;
	bool heard; /* the node has replied before */
	int code, signal;
	struct cop_err err; /* reason for the end of the page, if any */
};

static void end_watch(struct watch *w, int code)
{
	w->over = true;
	w->code = code;
}

/* ---- requests ---- */

static void ask_node(struct watch *w, uint64_t now)
{
	int rc = cop_ctl_ask(w->path, "lines", CONNECT_MS, &w->question, &w->err);

	w->asked_ms = now;
	w->due_ms = now + cop_board_interval_s(w->board) * 1000ull;
	/* The node has too many clients to accept another one. */
	if (!rc || rc == -ETIMEDOUT)
		return;
	if (w->heard && rc == -ENOENT)
		cop_err_set(&w->err, ENOENT,
			"the node here has ended: the tree, or this node, was stopped");
	else if (w->heard && rc == -ECONNREFUSED)
		cop_err_set(&w->err, ECONNREFUSED,
			"the node here was killed; 'copper stop MOUNTPOINT' removes what it left behind");
	end_watch(w, 1);
}

static void end_on_refusal(struct watch *w, const struct cop_ctl_reply *reply)
{
	cop_err_set(&w->err, reply->status < 0 ? -reply->status : EIO, "%.*s",
		(int)strcspn(reply->text, "\n"), reply->text);
	end_watch(w, 1);
}

static void show_reply(struct watch *w, struct cop_ctl_reply *reply)
{
	int rc;

	if (reply->status) {
		end_on_refusal(w, reply);
		return;
	}
	rc = cop_board_update(w->board, reply->text);
	if (rc) {
		cop_err_set(&w->err, -rc,
			rc == -ENOMEM
				? "out of memory"
				: "the answer comes from another version; use the copper that started the node");
		end_watch(w, 1);
	}
	w->changed = w->heard = true;
}

/* A node that is shutting down may drop a request; the next one shows the state of the node. */
static void note_lost_connection(struct watch *w, uint64_t now)
{
	w->due_ms = now + AGAIN_MS;
	if (++w->dropped >= DROPPED_MOST)
		end_watch(w, 1);
}

static void have_some(struct watch *w)
{
	struct cop_ctl_reply reply = {0};
	uint64_t now = cop_now_ms();
	int rc = cop_ctl_question_read(w->question, &reply, &w->err);

	if (rc == -EAGAIN)
		return;
	cop_ctl_question_free(w->question);
	w->question = NULL;
	if (rc == -ECONNRESET) {
		note_lost_connection(w, now);
		return;
	}
	if (rc) {
		end_watch(w, 1);
		return;
	}
	w->dropped = 0;
	w->due_ms = COP_MAX(w->due_ms, now + BREATH_MS);
	show_reply(w, &reply);
	free(reply.text);
}

/* How long the reply is overdue, counted from the time the next request was due. */
static uint64_t late_ms(const struct watch *w, uint64_t now)
{
	return w->question && now > w->due_ms ? now - w->asked_ms : 0;
}

/* ---- the screen ---- */

static void draw_frame(struct watch *w, uint64_t now)
{
	unsigned rows, columns;
	int rc;

	w->changed = false;
	w->late_s = late_ms(w, now) / 1000;
	cop_screen_size(w->screen, &rows, &columns);
	cop_screen_frame_begin(&w->frame, rows, columns, w->utf8);
	cop_board_draw(w->board, w->late_s * 1000, &w->frame);
	rc = cop_screen_draw(w->screen, &w->frame);
	if (rc) {
		cop_err_set(&w->err, -rc, "cannot write to the terminal: %s", strerror(-rc));
		end_watch(w, 1);
	}
}

static void have_key(struct watch *w, int key)
{
	switch (cop_board_key(w->board, key)) {
	case COP_BOARD_LEAVE:
		end_watch(w, 0);
		break;
	case COP_BOARD_ASK:
		w->due_ms = w->question ? w->asked_ms + cop_board_interval_s(w->board) * 1000ull
					: cop_now_ms();
		w->changed = true;
		break;
	case COP_BOARD_DRAW:
		w->changed = true;
		break;
	default:
		break;
	}
}

static void have_ended(struct watch *w, int signal)
{
	w->signal = signal == SIGINT ? 0 : signal;
	if (!signal)
		cop_err_set(&w->err, EIO, "the terminal is gone");
	end_watch(w, signal == SIGINT ? 0 : 1);
}

static void handle_event(struct watch *w, const struct cop_screen_event *e)
{
	switch (e->what) {
	case COP_SCREEN_KEY:
		have_key(w, e->key);
		break;
	case COP_SCREEN_RESIZED:
		w->changed = true;
		break;
	case COP_SCREEN_READY:
		have_some(w);
		break;
	case COP_SCREEN_ENDED:
		have_ended(w, e->signal);
		break;
	default:
		break;
	}
}

/* Time until the next action without an event. */
static int wait_ms(const struct watch *w, uint64_t now)
{
	if (w->question || cop_board_is_paused(w->board))
		return 1000;
	return w->due_ms > now ? (int)COP_MIN(w->due_ms - now, 60000ull) : 0;
}

static void wait_for_events(struct watch *w, uint64_t now)
{
	int timeout_ms = wait_ms(w, now);

	for (unsigned i = 0; i < EVENTS_MOST && !w->over; i++) {
		struct cop_screen_event e;
		int fd = w->question ? cop_ctl_question_fd(w->question) : -1;

		cop_screen_wait(w->screen, fd, timeout_ms, &e);
		if (e.what == COP_SCREEN_IDLE)
			return;
		handle_event(w, &e);
		timeout_ms = 0;
	}
}

static void run_screen(struct watch *w)
{
	w->changed = true;
	while (!w->over) {
		uint64_t now = cop_now_ms();

		if (!w->question && !cop_board_is_paused(w->board) && now >= w->due_ms)
			ask_node(w, now);
		if (!w->over && (w->changed || late_ms(w, now) / 1000 != w->late_s))
			draw_frame(w, now);
		if (!w->over)
			wait_for_events(w, now);
	}
}

/* ---- entry points ---- */

bool cop_cmd_can_watch(void)
{
	return cop_screen_usable(STDIN_FILENO, STDOUT_FILENO);
}

/* The terminal no longer shows the page, so print its last contents again. */
static int leave_page(struct watch *w)
{
	struct cop_buf last = {0};

	if (w->signal) {
		raise(w->signal);
		return 128 + w->signal;
	}
	if (w->code == 0)
		return 0;
	cop_board_last(w->board, &last);
	fprintf(stderr, "copper cache-stats: %s; last known: %s\n", w->err.text,
		last.data ? last.data : "nothing");
	cop_buf_free(&last);
	return w->code;
}

int cop_cmd_watch(const char *path, uint32_t interval_s)
{
	struct watch w = {
		.path = path, .board = cop_board_new(interval_s), .utf8 = cop_screen_is_utf8()};
	int code = 1;

	if (!w.board)
		cop_err_set(&w.err, ENOMEM, "out of memory");
	else if (cop_screen_open(STDIN_FILENO, STDOUT_FILENO, &w.screen, &w.err) == 0)
		run_screen(&w);
	cop_ctl_question_free(w.question);
	cop_screen_close(w.screen);
	cop_buf_free(&w.frame.out);
	if (w.screen)
		code = leave_page(&w);
	else
		fprintf(stderr, "copper cache-stats: %s\n", w.err.text);
	cop_board_free(w.board);
	return code;
}
