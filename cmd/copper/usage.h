/* SPDX-License-Identifier: BSD-3-Clause */
/* cache-stats --from and --output-dir: what caches held, read from files and written to files. */
#ifndef COP_CMD_USAGE_H
#define COP_CMD_USAGE_H

#include <stdbool.h>

/* Adds up the files in from; output_dir: also writes the two summaries there. Returns the exit
 * code. */
int cop_cmd_usage_from(const char *from, const char *output_dir, bool json);
/* Lists what the node at that socket holds, in five files in output_dir, which is created. */
int cop_cmd_usage_ask(const char *socket, const char *output_dir, bool json);

#endif
