/* SPDX-License-Identifier: BSD-3-Clause */
/* watch: the page shown by cache-stats --watch, independent of any terminal. Computes each node's
 * rates (from two successive lines) and their history, sorts the nodes, handles keys and draws
 * frames of a given size. Sends no requests and reads no clock.
 *
 * Memory: about 400 bytes per node, constant over time. */
#ifndef COP_REPORT_WATCH_H
#define COP_REPORT_WATCH_H

#include "base/base/base.h"

/* screen: a full-screen terminal page: raw mode, keys, size, signals, one write per frame, and the
 * terminal restored at the end. Writes plain ECMA-48 and xterm sequences, which all current
 * terminals support, and uses no terminal database (reasons: vendor/README.md). Independent of the
 * page's contents.
 *
 * Text in a frame is untrusted: control characters, and characters that may not be one column wide,
 * are shown escaped, like \x1b, so that only this module sends escape sequences. */

/* ---- frames ---- */

enum cop_screen_style { COP_SCREEN_PLAIN, COP_SCREEN_BOLD, COP_SCREEN_REVERSE };

#define COP_SCREEN_ROWS_MAX 1000u
#define COP_SCREEN_COLUMNS_MAX 1000u

/* A page under construction; lines are added from the top. The caller frees out. */
struct cop_screen_frame {
	unsigned rows, columns; /* at least 1 */
	bool utf8;              /* the terminal can show non-ASCII characters */
	unsigned lines;         /* number of lines so far */
	struct cop_buf out;     /* bytes for the terminal; `failed` is set if out of memory */
};

/* Begins a frame of this size, clamped to the limits above; frees the previous contents of f. */
void cop_screen_frame_begin(struct cop_screen_frame *f, unsigned rows, unsigned columns, bool utf8);
/* Adds a line, truncated at the last column; ignored past the last row. */
void cop_screen_frame_line(struct cop_screen_frame *f, enum cop_screen_style style, const char *fmt,
	...) COP_PRINTF(3, 4);
/* Clears the remaining lines. */
void cop_screen_frame_end(struct cop_screen_frame *f);
/* Appends text as a frame would show it, at most this many columns wide, and returns its width. */
unsigned cop_screen_show(const char *text, bool utf8, unsigned columns, struct cop_buf *out);

/* ---- keys ---- */

/* Any other key is its own character, 0x20 to 0x7e. */
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

/* An escape sequence received so far. Zero-initialise it. */
struct cop_screen_keys {
	char text[8];
	unsigned len;
	bool in_sequence, skips; /* skips: too long for text; will not yield a key */
};

/* Takes one byte from the terminal. Returns the key, or COP_SCREEN_KEY_NONE if the sequence is
 * incomplete or the key is unknown. */
int cop_screen_keys_take(struct cop_screen_keys *k, unsigned char byte);
/* Called after a pause: ends a partial sequence, which may be the Escape key. */
int cop_screen_keys_idle(struct cop_screen_keys *k);

/* ---- a terminal ---- */

struct cop_screen;

enum cop_screen_what {
	COP_SCREEN_IDLE,    /* timeout */
	COP_SCREEN_KEY,     /* key */
	COP_SCREEN_RESIZED, /* the size changed, or a redraw is needed, as after Ctrl-Z and fg */
	COP_SCREEN_READY,   /* the caller's fd is readable */
	COP_SCREEN_ENDED,   /* a signal arrived, or the terminal was closed (signal 0) */
};
struct cop_screen_event {
	enum cop_screen_what what;
	int key;
	int signal;
};

/* Whether these descriptors are a terminal that can show pages: TERM is set and is not "dumb". */
bool cop_screen_usable(int in, int out);
/* Whether the locale is UTF-8. */
bool cop_screen_is_utf8(void);
/* Takes over the terminal. Until closed, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT and
 * SIGWINCH are blocked in this thread, which must be the only one, and reported as events. Only one
 * screen can be open; the descriptors are borrowed. 0, or -errno with a message. */
int cop_screen_open(int in, int out, struct cop_screen **s, struct cop_err *err);
/* Restores the terminal and the signals. s may be NULL. */
void cop_screen_close(struct cop_screen *s);
/* The current size; 24 rows and 80 columns if unknown. */
void cop_screen_size(const struct cop_screen *s, unsigned *rows, unsigned *columns);
/* Writes a finished frame. If the terminal blocks for a second or a signal arrives, drops the rest
 * of the frame; the next frame is complete again. Returns 0 or -errno. */
int cop_screen_draw(struct cop_screen *s, const struct cop_screen_frame *f);
/* Waits at most timeout_ms for the next event. If fd is not -1, also waits for it to become
 * readable. Ctrl-Z stops the process within this call, with the terminal restored until it
 * continues. */
void cop_screen_wait(struct cop_screen *s, int fd, int timeout_ms, struct cop_screen_event *e);

/* ---- the page ---- */

/* Larger trees are rejected. */
#define COP_BOARD_NODES_MAX (1u << 20)

struct cop_board;

/* Returns NULL if out of memory. */
struct cop_board *cop_board_new(uint32_t interval_s);
void cop_board_free(struct cop_board *b);

/* Takes a reply: "nodes N", then a line (nodeline) for each known node, in any order; ignores other
 * lines and ranks. Modifies the text. Returns 0; -EBADMSG, with nothing changed, if it is not such
 * a reply; or -ENOMEM. */
int cop_board_update(struct cop_board *b, char *answer);

enum cop_board_act {
	COP_BOARD_NOTHING,
	COP_BOARD_DRAW, /* the page changed */
	COP_BOARD_ASK,  /* as COP_BOARD_DRAW, and request data again: interval or pause changed */
	COP_BOARD_LEAVE,
};
/* Handles a key (enum cop_screen_key). */
enum cop_board_act cop_board_key(struct cop_board *b, int key);
uint32_t cop_board_interval_s(const struct cop_board *b);
bool cop_board_is_paused(const struct cop_board *b);

/* Draws the page into a new frame and ends it. late_ms: how long the reply is overdue, or 0. */
void cop_board_draw(struct cop_board *b, uint64_t late_ms, struct cop_screen_frame *f);
/* Describes the last known state in a few words; "nothing" before the first answer. */
void cop_board_last(const struct cop_board *b, struct cop_buf *out);

#endif
