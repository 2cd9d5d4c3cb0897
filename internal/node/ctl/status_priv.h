/* SPDX-License-Identifier: BSD-3-Clause */
/* status.c writes the JSON and the report of one node, table.c the table of all nodes. */
#ifndef COP_NODE_CTL_STATUS_PRIV_H
#define COP_NODE_CTL_STATUS_PRIV_H

#include "node/ctl/ctl.h"

/* Appends what the node has waited for longest, and from whom, and sets *ms to how long. If that is
 * below a tenth of a second, appends nothing and sets *ms to 0. */
void cop_status_wait(const struct cop_status *s, uint64_t *ms, struct cop_buf *out);

/* 0 after a reset. */
static inline double cop_status_per_second(uint64_t now, uint64_t before, uint64_t elapsed_ms)
{
	return now < before || !elapsed_ms ? 0 : (double)(now - before) * 1000 / (double)elapsed_ms;
}

#endif
