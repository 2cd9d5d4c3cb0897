/* SPDX-License-Identifier: BSD-3-Clause */
/* cache-stats --from and --output-dir: what caches held, in files and out of them. */
#ifndef COP_CMD_USAGE_H
#define COP_CMD_USAGE_H

#include <stdbool.h>

/* Sums up the files in from; output_dir: also writes the two summaries there. Returns the exit
 * code. */
int cop_cmd_usage_from(const char *from, const char *output_dir, bool json);
/* The node at that socket lists what it holds; five files in output_dir, which is made. */
int cop_cmd_usage_ask(const char *socket, const char *output_dir, bool json);

#endif
