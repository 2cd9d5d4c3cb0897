/* SPDX-License-Identifier: BSD-3-Clause */
/* trace: what its subcommands share: the selection, the files, and messages about reading. */
#ifndef COP_CMD_TRACE_H
#define COP_CMD_TRACE_H

#include "base/opt/opt.h"
#include "trace/table/table.h"

/* The first member of the arguments of each subcommand. */
struct trace_select {
	struct cop_opt_list text[COP_SELECT_TEXTS], not_text[COP_SELECT_TEXTS];
	struct cop_opt_list number[COP_SELECT_NUMBERS], not_number[COP_SELECT_NUMBERS];
	const char *from, *to;
	struct cop_opt_list offset;
	bool csv, json;
};

#define TRACE_TEXT(word, index)                                                                    \
	COP_OPT(LIST, word, struct trace_select, text[index],                                      \
		"events whose " word " matches; may be repeated", .arg = "RE"),                    \
		COP_OPT(LIST, "not-" word, struct trace_select, not_text[index],                   \
			"no events whose " word " matches", .arg = "RE", .rare = true)
#define TRACE_NUMBER(word, index)                                                                  \
	COP_OPT(LIST, word, struct trace_select, number[index],                                    \
		"events of this " word "; may be repeated", .arg = "N"),                           \
		COP_OPT(LIST, "not-" word, struct trace_select, not_number[index],                 \
			"no events of this " word, .arg = "N", .rare = true)
/* The rows of SELECT, the same in each table. */
#define TRACE_SELECT_EVENT_ROWS                                                                    \
	TRACE_TEXT("name", COP_SELECT_NAME), TRACE_TEXT("cat", COP_SELECT_CAT),                    \
		TRACE_TEXT("file", COP_SELECT_FILE), TRACE_TEXT("host", COP_SELECT_HOST),          \
		TRACE_NUMBER("pid", COP_SELECT_PID), TRACE_NUMBER("tid", COP_SELECT_TID),          \
		COP_OPT(STRING, "from", struct trace_select, from,                                 \
			"events this long after the first one or later", .arg = "SECONDS"),        \
		COP_OPT(STRING, "to", struct trace_select, to,                                     \
			"events less than this long after the first one", .arg = "SECONDS"),       \
		COP_OPT(LIST, "offset", struct trace_select, offset,                               \
			"add this to all times in a file; may be repeated", .arg = "FILE=SECONDS", \
			.rare = true)
/* The same, plus the rows for the output format. */
#define TRACE_SELECT_ROWS                                                                          \
	TRACE_SELECT_EVENT_ROWS, COP_OPT(FLAG, "csv", struct trace_select, csv, "as CSV"),         \
		COP_OPT(FLAG, "json", struct trace_select, json, "as JSON; keys are stable")

/* The first member of the arguments of each subcommand that groups events. */
struct trace_group {
	struct trace_select select; /* first */
	const char *by, *per, *then, *show, *interval;
	uint64_t limit;
};

#define TRACE_GROUP(word, text, ...)                                                               \
	COP_OPT(STRING, #word, struct trace_group, word, text, __VA_ARGS__)
#define TRACE_GROUP_ROWS                                                                           \
	TRACE_GROUP(by, "name, cat, file, pid, rank, trace, arg:NAME ...", .arg = "KEYS"),         \
		TRACE_GROUP(per, "first add up for each of these as well ...", .arg = "KEYS"),     \
		TRACE_GROUP(then, "... then take max, min, sum, mean; or COL=WORD,...",            \
			.arg = "WORD"),                                                            \
		TRACE_GROUP(show, "columns, in seconds and bytes", .arg = "COLS",                  \
			.shown = "see the manual"),                                                \
		COP_OPT(U64, "limit", struct trace_group, limit, "only the first N rows",          \
			.arg = "N", .min = 1),                                                     \
		TRACE_GROUP(                                                                       \
			interval, "width of the key interval", .arg = "SECONDS", .initial = "30")

/* One pass of a subcommand over traces. */
struct trace_run {
	const struct cop_opt_table *table;
	const char *name; /* name of the run in messages; may be NULL */
	struct cop_trace_files *files;
	struct cop_select *select;
	unsigned threads;
	struct cop_trace_result result;
	/* For progress on a terminal: */
	bool terminal, shown;
	uint64_t start_ms, shown_ms;
};

/* Compiles the selection and finds the files. Returns 0, or the exit status after an error
 * message. */
int cop_cmd_trace_open(struct trace_run *run, const struct cop_opt_table *table,
	const struct trace_select *select, const struct cop_opt_many *paths);
void cop_cmd_trace_close(struct trace_run *run);
/* Reads all events. make receives the time of the first event and prepares for reading; add
 * receives each selected event, on the thread `worker`. If `first` is set and some event turns out
 * to be earlier than those at the beginning of each file, make is called again and everything is
 * read again. Returns 0, or the exit status. */
struct trace_reading {
	bool names, first;
	bool whole;            /* include the text of args, and begin events without an end */
	bool args, unfinished; /* the same, but only the first or the second of these */
	bool meta;             /* include all metadata, regardless of the selection */
	bool all;              /* include all events; add applies run->select itself */
	const char *temp;      /* where add writes, for its error message; may be NULL */
	int (*make)(void *arg, const struct trace_run *run, int64_t first_ns);
	int (*add)(void *arg, unsigned worker, const struct cop_trace_event *e);
	void *arg;
};
int cop_cmd_trace_read(struct trace_run *run, const struct trace_reading *reading);
/* Prints an error of this subcommand, with the name of the run if it has one. Returns 1. */
int cop_cmd_trace_fail(const struct trace_run *run, const struct cop_err *err);

/* Shows the number of items done on a terminal if the work takes more than a second. The line is
 * erased at the end. */
void cop_cmd_trace_progress(struct trace_run *run, uint64_t n, const char *what);
void cop_cmd_trace_progress_end(struct trace_run *run);

/* The directory for temporary files. */
const char *cop_cmd_trace_temp(void);
/* The output format. */
enum cop_grid_form cop_cmd_trace_form(const struct trace_select *s);
/* Parses a number of seconds, at least 0 and possibly with decimals; leaves *out unchanged if text
 * is NULL. -EINVAL with a message that names the option. */
int cop_cmd_trace_seconds(const char *option, const char *text, double *out, struct cop_err *err);
/* Parses --interval. -EINVAL with a message. */
int cop_cmd_trace_interval(const char *text, uint64_t *ns, struct cop_err *err);

/* Interprets the options of a grouping. Returns 0, or the exit status after an error message: 2 for
 * misuse, 1 for an unknown key or column. cols: the default columns. */
int cop_cmd_trace_group(const struct cop_opt_table *table, const struct trace_group *g,
	const char *cols, struct cop_tab_conf *conf);
/* Reads a whole run into the rows of a table, which the caller frees with cop_rows_free in any
 * case. Returns 0, or the exit status. */
int cop_cmd_trace_group_read(
	struct trace_run *run, const struct cop_tab_conf *conf, struct cop_rows *rows);
/* Reports on standard error which columns are inexact. */
void cop_cmd_trace_about(const struct trace_run *run, const struct cop_rows *rows);
/* Drops the column `unfinished` from n tables if it was not requested and every begin event has an
 * end. */
void cop_cmd_trace_group_trim(const struct trace_group *g, struct cop_rows *rows, size_t n);

#define TRACE_CASES_MAX 64u
/* Runs given on the command line: NAME=PATH[,PATH...]. */
struct trace_case {
	struct trace_run run;
	char *text;  /* owns the names */
	char **path; /* ends with NULL */
	size_t paths;
};
struct trace_cases {
	struct trace_case *at;
	const char **name;
	size_t n;
};
/* Opens all runs, so that missing files are reported before anything is read. Returns 0, or the
 * exit status after an error message; call cop_cmd_trace_cases_close in any case. */
int cop_cmd_trace_cases_open(struct trace_cases *c, const struct cop_opt_table *table,
	const struct trace_select *select, const struct cop_opt_many *words);
void cop_cmd_trace_cases_close(struct trace_cases *c);

int cop_cmd_trace_summary(int argc, char **argv);
int cop_cmd_trace_table(int argc, char **argv);
int cop_cmd_trace_events(int argc, char **argv);
int cop_cmd_trace_compare(int argc, char **argv);
int cop_cmd_trace_checkpoint(int argc, char **argv);
int cop_cmd_trace_merge(int argc, char **argv);
int cop_cmd_trace_diagnose(int argc, char **argv);
int cop_cmd_trace_index(int argc, char **argv);
int cop_cmd_trace_timeline(int argc, char **argv);
extern const struct cop_opt_table cop_cmd_trace_summary_options, cop_cmd_trace_table_options,
	cop_cmd_trace_events_options, cop_cmd_trace_compare_options,
	cop_cmd_trace_checkpoint_options, cop_cmd_trace_merge_options,
	cop_cmd_trace_diagnose_options, cop_cmd_trace_index_options, cop_cmd_trace_timeline_options;

#endif
