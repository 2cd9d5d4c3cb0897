/* SPDX-License-Identifier: BSD-3-Clause */
/* watch.c handles replies and keys and sorts the nodes; draw.c draws frames. */
#ifndef COP_REPORT_WATCH_PRIV_H
#define COP_REPORT_WATCH_PRIV_H

#include "report/watch/watch.h"
#include "tree/op/op.h"

/* Rates per second, except that RATE_WAIT is the mean number of waiting requests. */
enum rate {
	RATE_WAIT,
	RATE_REQUESTS,
	RATE_BYTES,
	RATE_STORAGE,
	RATE_STORAGE_BYTES,
	RATE_SERVED,
	RATES
};

#define ROW_HISTORY 16u  /* number of replies whose request rates are stored, per node */
#define SUM_HISTORY 256u /* likewise, for the sums */

struct row {
	enum cop_nodeline_state state;
	bool known; /* present in the last reply */
	bool rated; /* rates are valid: computed from the last two replies */
	uint32_t below;
	uint64_t value[COP_NODELINE_VALUES];
	double rate[RATES];
	float requests[ROW_HISTORY]; /* requests per second, indexed by the number of the reply */
	char *host, *reason;         /* safe for a terminal; NULL: unknown */
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
	uint32_t *order;  /* ranks in display order */
	uint64_t answers; /* number of replies so far */
	struct sums sums;
	struct sums last; /* from the last reply with a live node */
	double history[RATES][SUM_HISTORY];
	enum sort sort;
	bool reversed, paused, help;
	uint32_t top;  /* position of the first node shown */
	uint32_t page; /* number of rows that fit in the last frame */
};

#endif
