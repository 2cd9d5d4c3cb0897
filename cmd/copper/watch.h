/* SPDX-License-Identifier: BSD-3-Clause */
/* watch: cache-stats --watch on a terminal. */
#ifndef COP_CMD_WATCH_H
#define COP_CMD_WATCH_H

#include "base/base/base.h"

/* Whether standard input and output are a terminal that can show the page. */
bool cop_cmd_can_watch(void);
/* Draws the page about all nodes in the tree of the node at this control socket, every interval_s,
 * until the user quits (returns 0) or the node is gone (returns 1, with a message). If a signal
 * ends the page, it ends the process once the terminal is restored. */
int cop_cmd_watch(const char *path, uint32_t interval_s);

#endif
