/* SPDX-License-Identifier: BSD-3-Clause */
/* command.c parses the command line and handles the read-only commands; stop.c and report.c handle
 * the others; asked.c holds a command until its reply is sent; listen.c owns the socket. There is
 * no lock, because only one number changes. */
#ifndef COP_NODE_CTL_COMMAND_PRIV_H
#define COP_NODE_CTL_COMMAND_PRIV_H

#include <stdatomic.h>

#include "node/ctl/ctl.h"

struct cop_command {
	struct cop_command_conf conf;
	struct cop_ctl *ctl; /* NULL: not listening */
	_Atomic unsigned stops;
};

/* ---- asked.c ---- */
struct asked {
	struct cop_command *command;
	struct cop_ctl_conn *conn;
	struct cop_deferred work;
	struct cop_op_sum late; /* stop: sums that no node above has written */
};
/* NULL if out of memory; conn has then been answered. */
struct asked *cop_command_asked_new(struct cop_command *c, struct cop_ctl_conn *conn);
/* Replies and frees both. */
void cop_command_answer(struct asked *q, int status, struct cop_buf *out);
/* The same with a descriptor, still owned by the caller; -1: none. */
void cop_command_answer_with(struct asked *q, int status, struct cop_buf *out, int fd);

/* ---- stop.c ---- */
void cop_command_stop(struct asked *q, bool local);
void cop_command_release(struct asked *q, bool again);
void cop_command_hold(struct asked *q);

/* ---- report.c ---- */
void cop_command_snapshot(struct asked *q, bool local);
void cop_command_reset(struct asked *q, bool all);
void cop_command_sizes(struct asked *q);

#endif
