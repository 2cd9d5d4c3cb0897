/* SPDX-License-Identifier: BSD-3-Clause */
/* nodeline: what a node reports about itself for a table of all nodes: a struct, and the line in
 * which it travels up the tree. Both the table of cache-stats --all and the screen of --watch are
 * made of it. A line has fields separated by tabs and no other control character, whatever the
 * host's name and the reason contain. This module neither adds up nor prints. */
#ifndef COP_NODELINE_H
#define COP_NODELINE_H

#include "base/base/base.h"

enum cop_nodeline_state {
	COP_NODELINE_OK,
	COP_NODELINE_DEAD,
	COP_NODELINE_REFUSED, /* it has another secret or other options */
	COP_NODELINE_FAILED,
	COP_NODELINE_STATES
};

/* Values of a node that answered; all but the first four grow until a reset. */
enum cop_nodeline_value {
	COP_NODELINE_USED_BYTES, /* of the budget */
	COP_NODELINE_LIMIT_BYTES,
	COP_NODELINE_WAITING,   /* requests of programs that are waiting now */
	COP_NODELINE_UPTIME_MS, /* when this was measured, by the node's own clock */
	COP_NODELINE_WAIT_US,   /* how long requests of programs have waited, including those that
				   wait now */
	COP_NODELINE_REQUESTS,  /* by programs, that is, by the kernel */
	COP_NODELINE_BYTES,     /* read by programs */
	COP_NODELINE_SENT,      /* requests to parents and other nodes */
	COP_NODELINE_SERVED,    /* requests answered for children */
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
	uint64_t value[COP_NODELINE_VALUES]; /* 0 if the node did not answer */
	const char *reason;                  /* for a node that refused or failed; else "" */
	uint32_t below; /* for such a node: how many nodes below it are missing as a consequence */
};

/* "ok", "dead", "refused", "failed" */
const char *cop_nodeline_word(enum cop_nodeline_state state);
/* Appends the line without its newline. */
void cop_nodeline_write(const struct cop_nodeline *n, struct cop_buf *out);
/* Reads a line without its newline. Changes the line: host and reason point into it. 0 or
 * -EBADMSG. */
int cop_nodeline_read(char *line, struct cop_nodeline *out);

#endif
