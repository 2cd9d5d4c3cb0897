/* SPDX-License-Identifier: BSD-3-Clause */
/* opt: the command line of one subcommand as one table. The table is the source of parsing into
 * the fields of a struct, of --help, and of the dump for shell completion and the manual's
 * synopsis. It is independent of subcommands and settings; checks across options are the
 * owner's.
 *
 * A subcommand in five lines:
 *
 *     static const struct cop_opt rows[] = {
 *             COP_OPT(FLAG, "local", struct args, local, "this node only"),
 *     };
 *     static const struct cop_opt_table table = {.command = "copper stop",
 *             .summary = "stop the job's nodes", COP_OPT_ROWS(rows)};
 *     ...
 *     if (!cop_opt_start(&table, argc, argv, &args, &code))
 *             return code; */
#ifndef COP_BASE_OPT_H
#define COP_BASE_OPT_H

#include "base/base/base.h"

enum cop_opt_kind {
	COP_OPT_FLAG,     /* bool: true if given; takes no value */
	COP_OPT_STRING,   /* const char *, points into argv; never empty */
	COP_OPT_OPTIONAL, /* same, but the value is optional and must follow =; "" if given as just
			     --name */
	COP_OPT_LIST,     /* struct cop_opt_list: repeatable; no empty values */
	COP_OPT_U16,      /* uint16_t, min..max */
	COP_OPT_U32,      /* uint32_t or unsigned, min..max */
	COP_OPT_U64,      /* uint64_t, min..max */
	COP_OPT_I64,      /* int64_t, 0..max: for fields where -1 means "not given" */
	COP_OPT_SIZE,     /* uint64_t bytes, written 64K or 2GiB */
	COP_OPT_MS,       /* uint32_t milliseconds; a bare number is milliseconds */
	COP_OPT_DURATION, /* uint32_t milliseconds, written 500ms, 30s, 2m or 1h; a bare number is
			     seconds */
	COP_OPT_CPUS, /* const char *, validated: a list such as 0-3,8, or one of the row's words,
			 if any */
	COP_OPT_ENUM, /* unsigned: the value listed beside the word */
	COP_OPT_IGNORED, /* no field or value: accepted for old scripts, with a note */
};

#define COP_OPT_LIST_MAX 64
struct cop_opt_list {
	const char *at[COP_OPT_LIST_MAX]; /* as given; pointers into argv */
	unsigned n;
};

struct cop_opt_word {
	const char *word; /* NULL ends the list */
	unsigned value;
};

struct cop_opt {
	const char *name; /* long name without dashes; NULL if there is only a letter */
	char letter;      /* 0: none */
	enum cop_opt_kind kind;
	size_t offset;       /* of the field in the target struct */
	const char *arg;     /* name of the value in the help text: "DIR" */
	const char *help;    /* one line, lower case, no full stop */
	const char *initial; /* the default, as a user would write it; NULL leaves the field
				unchanged */
	const char *shown;   /* the default shown in the help text, if it differs from initial: "a
				tenth of RAM" */
	uint64_t min, max; /* for numbers, sizes and times (ms); max 0: limited only by the field's
			      type */
	const struct cop_opt_word *words;
	bool rare;   /* listed by name in --help; explained in --help-all and the manual */
	bool hidden; /* omitted from the help text: an alias, or ignored */
};

/* A positional argument. An option with the same offset is an alias for it. */
struct cop_opt_operand {
	const char *name; /* "MOUNTPOINT" */
	size_t offset;    /* of a const char * field */
	bool required;
	bool many; /* only for the last operand: takes all remaining words; the field is a struct
		      cop_opt_many */
};
struct cop_opt_many {
	char *const *at; /* into argv, which is reordered for this */
	size_t n;
};

/* Maps an older program's single-dash spelling of an option, such as -profile_top_n. */
struct cop_opt_old {
	const char *word; /* without the dash; NULL ends the list */
	const char *name; /* the option's long name; a table without that option refuses the word */
	bool zero_is_none; /* a value of 0 leaves the option unchanged */
};

struct cop_opt_table {
	const char *command; /* "copper mount" */
	const char *summary; /* one line, no full stop */
	const struct cop_opt *row;
	size_t rows;
	const struct cop_opt_operand *operand;
	size_t operands;
	const struct cop_opt_old *old; /* NULL: none */
	/* The name of a trailing command with its own arguments; options end there, and such a
	 * table has no operands. The field is a char ** that points into argv. The command is
	 * required unless the check says otherwise. */
	const char *rest;
	size_t rest_offset;
	void (*init)(void *into); /* initializes the struct before the defaults are applied; NULL:
				     the caller has done so */
	int (*check)(void *into, struct cop_err *err); /* after parsing; may be NULL */
};
/* A row: COP_OPT(U32, "fanout", struct args, fanout, "children per node", .arg = "N", .max = 64) */
#define COP_OPT(kind_, name_, struct_, field_, help_, ...)                                         \
	{                                                                                          \
		.kind = COP_OPT_##kind_, .name = name_, .offset = offsetof(struct_, field_),       \
		.help = help_, __VA_ARGS__                                                         \
	}
#define COP_OPT_ROWS(array) .row = (array), .rows = COP_ARRAY_SIZE(array)
#define COP_OPT_OPERANDS(array) .operand = (array), .operands = COP_ARRAY_SIZE(array)

/* Runs init, then stores every default. Asserts that the table's own defaults parse. */
void cop_opt_defaults(const struct cop_opt_table *t, void *into);

/* Calls visit for each option whose value differs between the two structs, with the value in `into`
 * as a user would write it: sizes in bytes, times in milliseconds. Skips hidden options, lists, and
 * options without a long name. */
void cop_opt_each_changed(const struct cop_opt_table *t, const void *into, const void *defaults,
	void (*visit)(void *arg, const char *name, const char *value), void *arg);

enum cop_opt_ask { COP_OPT_ASK_NONE, COP_OPT_ASK_HELP, COP_OPT_ASK_HELP_ALL, COP_OPT_ASK_DUMP };

/* Fills into (defaults first) from argv[1..argc-1], then runs the table's check. The syntax is that
 * of getopt_long: options and operands in any order, -kVALUE, -k VALUE, clusters of letters,
 * --name=VALUE, --name VALUE; "--" ends the options; the last occurrence wins. Names cannot be
 * abbreviated. -h/--help, --help-all and --dump-options are built in; they stop parsing and set
 * *ask. notes (which may be NULL) gets a line for each ignored option. Returns -EINVAL with err
 * set, naming the option, the value and the allowed range. */
int cop_opt_parse(const struct cop_opt_table *t, int argc, char **argv, void *into,
	enum cop_opt_ask *ask, struct cop_buf *notes, struct cop_err *err);

/* Parses the command line and prints any output: help and the dump on stdout, notes and errors on
 * stderr. On true, continue; on false, exit with *exit_code (0 after help, 2 after a usage
 * error). */
bool cop_opt_start(
	const struct cop_opt_table *t, int argc, char **argv, void *into, int *exit_code);
/* Prints "copper mount: <text>" on stderr and returns 2; for usage errors that the subcommand finds
 * itself. */
int cop_opt_misuse(const struct cop_opt_table *t, const struct cop_err *err);

/* Prints help for an 80-column terminal. */
void cop_opt_help(const struct cop_opt_table *t, bool all, struct cop_buf *out);
/* One tab-separated line per row: "command" NAME SUMMARY; "operand" NAME required|optional;
 * "option" --NAME -LETTER KIND ARG DEFAULT RANGE-OR-WORDS HELP, with "-" for missing fields. */
void cop_opt_dump(const struct cop_opt_table *t, struct cop_buf *out);

/* Dumps only the option lines, without options that also appear in the n earlier tables. */
void cop_opt_dump_rows(const struct cop_opt_table *t, const struct cop_opt_table *const *earlier,
	size_t n, struct cop_buf *out);

/* Returns the candidate closest to word: the first that starts with it, else the closest by edit
 * distance, else one that shares a prefix of at least two letters; NULL if none is close. The list
 * of candidates ends with NULL. */
const char *cop_opt_suggest(const char *word, const char *const *candidates);

#endif
