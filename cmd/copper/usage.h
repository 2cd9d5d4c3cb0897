/* SPDX-License-Identifier: BSD-3-Clause */
/* cache-stats --from and --output-dir: reads and writes lists of cache contents. */
#ifndef COP_CMD_USAGE_H
#define COP_CMD_USAGE_H

#include <stdbool.h>

/* Sums up the files in from; output_dir: also writes the two summaries there. Returns the exit
 * code. */
int cop_cmd_usage_from(const char *from, const char *output_dir, bool json);
/* Writes the cache contents of the node at that socket to five files in output_dir, which is
 * created. */
int cop_cmd_usage_ask(const char *socket, const char *output_dir, bool json);

#endif
