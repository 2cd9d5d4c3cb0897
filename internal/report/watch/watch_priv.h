/* SPDX-License-Identifier: BSD-3-Clause */
/* watch.c takes answers and keys, order.c sorts, draw.c makes the frame. */
#ifndef COP_REPORT_WATCH_PRIV_H
#define COP_REPORT_WATCH_PRIV_H

#include "report/watch/watch.h"
#include "tree/op/op.h"

/* Rates per second; except for the wait, which is the average number of requests that waited at a
 * time. */
enum rate {
	RATE_WAIT,
	RATE_REQUESTS,
	RATE_BYTES,
	RATE_STORAGE,
	RATE_STORAGE_BYTES,
	RATE_SERVED,
	RATES
};

#define ROW_HISTORY 16u  /* number of answers whose requests are kept for each node */
#define SUM_HISTORY 256u /* the same for the sums */

struct row {
	enum cop_nodeline_state state;
	bool known; /* the last answer had it */
	bool rated; /* rates are of the last two answers */
	uint32_t below;
	uint64_t value[COP_NODELINE_VALUES];
	double rate[RATES];
	float requests[ROW_HISTORY]; /* per second, at the number of the answer */
	char *host, *reason;         /* as a terminal may show them; NULL: unknown */
};

struct sums {
	uint32_t answered, rated, silent, count[COP_NODELINE_STATES];
	uint32_t waiting_nodes;
	uint64_t waiting, used, limit;
	double rate[RATES];
};

enum sort { SORT_WAIT, SORT_REQUESTS, SORT_BYTES, SORT_STORAGE, SORT_RANK, SORT_NAME };

struct cop_board {
	uint32_t nodes, interval_s;
	struct row *row;
	uint32_t *order;  /* ranks, as they are shown */
	uint64_t answers; /* so far */
	struct sums sums;
	struct sums last; /* of the last answer in which a node was alive */
	double history[RATES][SUM_HISTORY];
	enum sort sort;
	bool reversed, paused, help;
	uint32_t top;  /* the first position that is shown */
	uint32_t page; /* how many fit in the last frame */
};

/* ---- order.c ---- */
void cop_board_sort(struct cop_board *b);

#endif
