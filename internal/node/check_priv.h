/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of --check share. */
#ifndef COP_NODE_CHECK_PRIV_H
#define COP_NODE_CHECK_PRIV_H

#include "node/node_priv.h"

enum check_state { CHECK_OK, CHECK_WARNING, CHECK_FAILED };

struct check {
	struct cop_node *node; /* only conf and what the checks found out */
	struct cop_buf *out;
	uint32_t nodes; /* 0: the hosts are not known */
	unsigned count, warnings, failed;
};

/* One line, or one JSON object. */
void cop_check_say(struct check *c, const char *name, enum check_state state, const char *fmt, ...)
	COP_PRINTF(4, 5);

/* check_machine.c */
void cop_check_network(struct check *c);
void cop_check_memory(struct check *c);

#endif
