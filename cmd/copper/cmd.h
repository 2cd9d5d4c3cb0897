/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd: the subcommands. Each receives its own arguments, with its name as argv[0], and returns the
 * exit code: 0 for success, 1 for failure, 2 for misuse. Results go to stdout, everything else to
 * stderr. */
#ifndef COP_CMD_H
#define COP_CMD_H

#include "base/base/base.h"

struct cop_cmd {
	const char *name;
	const char *summary; /* one line, no full stop */
	int (*run)(int argc, char **argv);
};

int cop_cmd_mount(int argc, char **argv);
int cop_cmd_serve(int argc, char **argv);
int cop_cmd_run(int argc, char **argv);
int cop_cmd_stop(int argc, char **argv);
int cop_cmd_aggregate(int argc, char **argv);
int cop_cmd_paths(int argc, char **argv);
int cop_cmd_mark(int argc, char **argv);
int cop_cmd_cache_stats(int argc, char **argv);
int cop_cmd_trace(int argc, char **argv);
int cop_cmd_runs(int argc, char **argv);
int cop_cmd_report(int argc, char **argv);
int cop_cmd_predict(int argc, char **argv);

/* Prints a command's result. Returns 0, or 1 after a message that says that printing failed and,
 * unless besides is NULL, what was produced nevertheless. */
int cop_cmd_print(const char *command, const struct cop_buf *text, const char *besides);

#endif
