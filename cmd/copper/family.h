/* SPDX-License-Identifier: BSD-3-Clause */
/* A copper command with subcommands. */
#ifndef COPPER_FAMILY_H
#define COPPER_FAMILY_H

#include "cmd.h"
#include "base/opt/opt.h"

struct family {
	const char *command;     /* "copper trace" */
	const char *summary;     /* one line */
	const char *head, *tail; /* text of the help before and after the list of subcommands, in
				    whole lines */
	const char *operands;    /* what --dump-options prints for operands after the subcommand */
	bool optional;           /* the subcommand may be omitted */
	const struct cop_cmd *commands;            /* the subcommands; at most FAMILY_MAX */
	const struct cop_opt_table *const *tables; /* their option tables, in the same order */
	size_t n;
};
#define FAMILY_MAX 16u

/* Returns true if the word is --help etc., or a subcommand, which has then been run; *status is the
 * exit status. */
bool cop_cmd_family_run(const struct family *f, int argc, char **argv, int *status);
/* Reports an unknown subcommand or option, and suggests a similar one. Returns 2. */
int cop_cmd_family_unknown(const struct family *f, const char *word);

#endif
