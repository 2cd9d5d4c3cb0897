/* SPDX-License-Identifier: BSD-3-Clause */
/* board: the page of cache-stats --watch, without a terminal. It shows what each node of a tree
 * does now (rates, from two of its lines) and did lately, which nodes are shown and in which order,
 * and how all that looks in a frame of some size. Keys go in, frames come out. It sends no requests
 * and reads no clock.
 *
 * Its memory is bounded by the number of nodes, about 400 bytes for each, and does not grow with
 * time. */
#ifndef COP_REPORT_BOARD_H
#define COP_REPORT_BOARD_H

#include "base/base/base.h"
#include "report/screen/screen.h"

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
