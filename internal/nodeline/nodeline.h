/* SPDX-License-Identifier: BSD-3-Clause */
/* nodeline: what a node reports about itself for a table of all nodes: a struct, and the line in
 * which it travels up the tree. The table of cache-stats --all and the screen of --watch are both
 * made of it. A line has fields with tabs between them, and no other control character, whatever
 * the host's name and the reason contain. It adds up nothing and prints nothing. */
#ifndef COP_NODELINE_H
#define COP_NODELINE_H

#include "base/base.h"

enum cop_nodeline_state {
	COP_NODELINE_OK,
	COP_NODELINE_DEAD,
	COP_NODELINE_REFUSED, /* it has another secret or other options */
	COP_NODELINE_FAILED,
	COP_NODELINE_STATES
};

/* Of a node that answered; all but the first four grow until a reset. */
enum cop_nodeline_value {
	COP_NODELINE_USED_BYTES, /* of the budget */
	COP_NODELINE_LIMIT_BYTES,
	COP_NODELINE_WAITING,   /* requests of programs that wait now */
	COP_NODELINE_UPTIME_MS, /* when this was measured, on the node's own clock */
	COP_NODELINE_WAIT_US, /* how long requests of programs have waited, with those that wait now
			       */
	COP_NODELINE_REQUESTS, /* of programs, that is of the kernel */
	COP_NODELINE_BYTES,    /* that they read */
	COP_NODELINE_SENT,     /* requests to parents and other nodes */
	COP_NODELINE_SERVED,   /* requests answered for children */
	COP_NODELINE_ORIGIN_OPERATIONS,
	COP_NODELINE_ORIGIN_BYTES,
	COP_NODELINE_FAILOVERS,
	COP_NODELINE_REJECTED,
	COP_NODELINE_VALUES
};

struct cop_nodeline {
	uint32_t rank;
	enum cop_nodeline_state state;
	const char *host;
	uint64_t value[COP_NODELINE_VALUES]; /* 0 without an answer */
	const char *reason;                  /* of a node that refused or failed, else "" */
	uint32_t below; /* of such a node: how many nodes below it are missing with it */
};

/* "ok", "dead", "refused", "failed" */
const char *cop_nodeline_word(enum cop_nodeline_state state);
/* Appends the line without its end. */
void cop_nodeline_write(const struct cop_nodeline *n, struct cop_buf *out);
/* Reads a line without its end, which is changed: host and reason point into it. 0 or -EBADMSG. */
int cop_nodeline_read(char *line, struct cop_nodeline *out);

#endif
