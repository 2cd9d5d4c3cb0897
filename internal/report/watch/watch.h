/* SPDX-License-Identifier: BSD-3-Clause */
/* watch: the page of cache-stats --watch, without a terminal. It computes the current rates of each
 * node (from two of its lines) and their history, selects and sorts the nodes, and draws them into
 * a frame of a given size. It takes keys and produces frames. It sends no requests and reads no
 * clock.
 *
 * Its memory is bounded by the number of nodes, about 400 bytes for each, and does not grow with
 * time. */
#ifndef COP_REPORT_WATCH_H
#define COP_REPORT_WATCH_H

#include "base/base/base.h"

/* screen: uses a terminal as a page that is drawn again and again: raw mode, keys, the size,
 * signals, whole frames with one write, and everything restored at the end. It writes plain
 * sequences of ECMA-48 and xterm, which all later terminals know, and reads no terminal database
 * (vendor/README.md says why). It does not know what a page shows.
 *
 * Text in a frame may come from anywhere. Control characters are shown as \x1b, and so is anything
 * that may not be one column wide, so that only this module sends sequences. */

/* ---- frames ---- */

enum cop_screen_style { COP_SCREEN_PLAIN, COP_SCREEN_BOLD, COP_SCREEN_REVERSE };

#define COP_SCREEN_ROWS_MAX 1000u
#define COP_SCREEN_COLUMNS_MAX 1000u

/* A page that is being composed, from its first line on. The owner frees out. */
struct cop_screen_frame {
	unsigned rows, columns; /* at least 1 */
	bool utf8;              /* characters beyond ASCII may be shown */
	unsigned lines;         /* so far */
	struct cop_buf out;     /* the bytes for the terminal; `failed` if memory was short */
};

/* Begins a frame of this size (cut to the limits above); frees what f held. */
void cop_screen_frame_begin(struct cop_screen_frame *f, unsigned rows, unsigned columns, bool utf8);
/* Adds a line, cut at the last column; adds nothing past the last row. */
void cop_screen_frame_line(struct cop_screen_frame *f, enum cop_screen_style style, const char *fmt,
	...) COP_PRINTF(3, 4);
/* Clears the lines that are left. */
void cop_screen_frame_end(struct cop_screen_frame *f);
/* Appends text as a frame shows it, at most this many columns wide, and returns how many columns it
 * takes. */
unsigned cop_screen_show(const char *text, bool utf8, unsigned columns, struct cop_buf *out);

/* ---- keys ---- */

/* Other keys are the character itself, from 0x20 to 0x7e. */
enum cop_screen_key {
	COP_SCREEN_KEY_NONE,
	COP_SCREEN_KEY_REDRAW = 12, /* Ctrl-L */
	COP_SCREEN_KEY_ESCAPE = 27,
	COP_SCREEN_KEY_UP = 256,
	COP_SCREEN_KEY_DOWN,
	COP_SCREEN_KEY_PAGE_UP,
	COP_SCREEN_KEY_PAGE_DOWN,
	COP_SCREEN_KEY_HOME,
	COP_SCREEN_KEY_END,
};

/* The part of a sequence received so far; zeroed memory: none. */
struct cop_screen_keys {
	char text[8];
	unsigned len;
	bool in_sequence, skips; /* skips: it is too long for text and ends without a key */
};

/* Takes one byte from the terminal. COP_SCREEN_KEY_NONE: the sequence is incomplete, or the key is
 * none of these. */
int cop_screen_keys_take(struct cop_screen_keys *k, unsigned char byte);
/* Called after a pause: ends a sequence, which may have been the Escape key. */
int cop_screen_keys_idle(struct cop_screen_keys *k);

/* ---- a terminal ---- */

struct cop_screen;

enum cop_screen_what {
	COP_SCREEN_IDLE,    /* the timeout has passed */
	COP_SCREEN_KEY,     /* key */
	COP_SCREEN_RESIZED, /* or the page has to be drawn again, as after Ctrl-Z and fg */
	COP_SCREEN_READY,   /* fd is readable */
	COP_SCREEN_ENDED,   /* by signal; 0: the terminal is gone */
};
struct cop_screen_event {
	enum cop_screen_what what;
	int key;
	int signal;
};

/* Whether these descriptors are a terminal on which pages can be drawn: TERM is set and is not
 * "dumb". */
bool cop_screen_usable(int in, int out);
/* Whether the locale of the environment uses UTF-8. */
bool cop_screen_is_utf8(void);
/* Takes over the terminal. From now on SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT and
 * SIGWINCH are blocked in this thread, which must be the only one, and come as events. Only one
 * screen is open at a time; the descriptors stay the caller's. 0, or -errno with a sentence. */
int cop_screen_open(int in, int out, struct cop_screen **s, struct cop_err *err);
/* Restores the terminal and the signals. NULL is fine. */
void cop_screen_close(struct cop_screen *s);
/* The current size; 24 and 80 if the terminal does not say. */
void cop_screen_size(const struct cop_screen *s, unsigned *rows, unsigned *columns);
/* Writes a frame that was ended. If the terminal accepts nothing for a second, or a signal comes,
 * the rest of the frame is dropped; the next frame is whole again. 0 or -errno. */
int cop_screen_draw(struct cop_screen *s, const struct cop_screen_frame *f);
/* Waits for the next event, at most timeout_ms. fd: the wait also ends when it is readable; -1:
 * none. Ctrl-Z stops the process inside this call, with the terminal restored meanwhile. */
void cop_screen_wait(struct cop_screen *s, int fd, int timeout_ms, struct cop_screen_event *e);

/* ---- the page ---- */

/* Trees with more nodes are refused. */
#define COP_BOARD_NODES_MAX (1u << 20)

struct cop_board;

/* NULL: out of memory. */
struct cop_board *cop_board_new(uint32_t interval_s);
void cop_board_free(struct cop_board *b);

/* Takes an answer: "nodes N", and a line (nodeline) for each known node, in any order; other lines
 * and other ranks are ignored. Changes the text. Returns 0; -EBADMSG if it is no such answer, and
 * then nothing has changed; or -ENOMEM. */
int cop_board_update(struct cop_board *b, char *answer);

enum cop_board_act {
	COP_BOARD_NOTHING,
	COP_BOARD_DRAW, /* the page has changed */
	COP_BOARD_ASK,  /* also when to ask: the interval or the pause has changed */
	COP_BOARD_LEAVE,
};
/* What a key (enum cop_screen_key) does. */
enum cop_board_act cop_board_key(struct cop_board *b, int key);
uint32_t cop_board_interval_s(const struct cop_board *b);
bool cop_board_is_paused(const struct cop_board *b);

/* Draws the page into a frame that was begun, and ends it. late_ms: how long the answer has been
 * awaited, if that is longer than it should be; else 0. */
void cop_board_draw(struct cop_board *b, uint64_t late_ms, struct cop_screen_frame *f);
/* Describes the last known state in a few words; "nothing" before the first answer. */
void cop_board_last(const struct cop_board *b, struct cop_buf *out);

#endif
