/* SPDX-License-Identifier: BSD-3-Clause */
/* table: selects, groups and aggregates events. Each thread adds events to its own table; at the
 * end, the tables are merged, reduced, sorted and printed. It reads no files and knows no file
 * formats.
 *
 * Memory is bounded by the number of groups, at most COP_TAB_GROUPS_MAX, and, for quantiles, by
 * COP_TAB_EXACT_MAX distinct values per group. */
#ifndef COP_TRACE_TABLE_H
#define COP_TRACE_TABLE_H

#include "base/table/table.h"
#include "trace/read/read.h"

#define COP_TAB_GROUPS_MAX ((size_t)4000000)

/* ---- select.c: selection of events ---- */

enum { COP_SELECT_NAME, COP_SELECT_CAT, COP_SELECT_FILE, COP_SELECT_HOST, COP_SELECT_TEXTS };
enum { COP_SELECT_PID, COP_SELECT_TID, COP_SELECT_NUMBERS };

/* Command-line words, borrowed. */
struct cop_words {
	const char *const *at;
	unsigned n;
};
struct cop_select_conf {
	struct cop_words text[COP_SELECT_TEXTS], not_text[COP_SELECT_TEXTS];
	struct cop_words number[COP_SELECT_NUMBERS], not_number[COP_SELECT_NUMBERS];
	double from_s, to_s;     /* seconds since the first event of the traces; to_s < 0: no end */
	const char *name_option; /* what error messages call the option for names; NULL: "name" */
};
struct cop_select;

/* Compiles the POSIX extended regular expressions, which are unanchored. For an event to be
 * selected, at least one including expression must match and no excluding one may. Up to `threads`
 * threads may test concurrently. -EINVAL with a message that names the option and the position of
 * the error; -ENOMEM. */
int cop_select_new(const struct cop_select_conf *conf, unsigned threads, struct cop_select **out,
	struct cop_err *err);
void cop_select_free(struct cop_select *s);
/* Whether the selection needs names of files or hosts; whether it needs times relative to the first
 * event. */
bool cop_select_needs_names(const struct cop_select *s);
bool cop_select_needs_first(const struct cop_select *s);
/* Whether the selection matches every event. */
bool cop_select_is_all(const struct cop_select *s);
void cop_select_first(struct cop_select *s, int64_t first_ns);
/* Describes what a read may skip with the help of an index. For time ranges, call cop_select_first
 * before. *out borrows s. */
void cop_select_pick(struct cop_select *s, bool meta, struct cop_trace_pick *out);
/* An event belongs to the time range in which it starts: from <= ts < to. */
bool cop_select_test(struct cop_select *s, unsigned worker, const struct cop_trace_event *e);

/* ---- quant.c: quantiles ---- */

/* Quantiles are exact up to this many values per group. Beyond that, they are estimated with a
 * DDSketch: C. Masson, J. E. Rim, H. K. Lee, "DDSketch: a fast and fully-mergeable quantile sketch
 * with relative-error guarantees", PVLDB 12(12), 2019. Its relative error is at most 1 %. */
#define COP_TAB_EXACT_MAX 1000000u

struct cop_quant; /* NULL is empty */

/* Adds the value v n times. -ENOMEM. */
int cop_quant_add(struct cop_quant **q, uint64_t v, uint64_t n);
int cop_quant_merge(struct cop_quant **to, const struct cop_quant *from);
void cop_quant_free(struct cop_quant *q);
bool cop_quant_is_exact(const struct cop_quant *q);
/* Returns the quantile p, from 0 to 1, with linear interpolation, as pandas and numpy do by
 * default; 0 if there are no values. */
double cop_quant_at(struct cop_quant *q, double p);

/* ---- tab.c: groups ---- */

enum cop_tab_key {
	COP_KEY_NAME,
	COP_KEY_CAT,
	COP_KEY_FILE,
	COP_KEY_DIR,
	COP_KEY_CLASS, /* base name without digits and dashes */
	COP_KEY_PID,
	COP_KEY_TID,
	COP_KEY_HOST,
	COP_KEY_SIZE,
	COP_KEY_INTERVAL, /* start of the interval in which the event starts, in seconds since the
			     first event */
	COP_KEY_TIME,     /* start of the event, in seconds since the first event */
	COP_KEY_TRACE,    /* the trace file */
	COP_KEY_SERIES,   /* for a counter: the argument that has the value */
	/* Known only after all metadata has been read; see late.c: */
	COP_KEY_RANK,
	COP_KEY_PROCESS, /* host, rank, name and pid, formatted as in a merged timeline */
	COP_KEY_THREAD,  /* the thread's name, or its tid if it has none */
	COP_KEYS_NAMED,
	COP_KEY_ARG = COP_KEYS_NAMED, /* arg:NAME, an argument of the event */
	/* Identities of processes and threads, which `per` uses for pid and tid: */
	COP_KEY_WHICH_PROCESS,
	COP_KEY_WHICH_THREAD,
	COP_KEYS
};
#define COP_TAB_KEYS_MAX 12u
#define COP_TAB_COLS_MAX 48u
#define COP_TAB_WORD_MAX 64u
/* Maximum number of counter values stored in a table. */
#define COP_TAB_VALUES_MAX ((size_t)1 << 25)

enum cop_tab_then { COP_THEN_NONE, COP_THEN_MAX, COP_THEN_MIN, COP_THEN_SUM, COP_THEN_MEAN };

struct cop_tab_conf {
	enum cop_tab_key key[COP_TAB_KEYS_MAX];       /* row keys first, then those of `per` */
	char arg[COP_TAB_KEYS_MAX][COP_TAB_WORD_MAX]; /* for COP_KEY_ARG: "arg:step" */
	unsigned keys, pers;
	uint8_t col[COP_TAB_COLS_MAX];            /* see cop_tab_cols */
	enum cop_tab_then then[COP_TAB_COLS_MAX]; /* by column */
	unsigned cols;
	uint64_t interval_ns;
	const struct cop_trace_files *files; /* for COP_KEY_TRACE and process names; may be NULL */
};

/* These append comma-separated words: cop_tab_keys row keys, then keys of `per`; cop_tab_cols
 * columns. -EINVAL with a message that names the word and the valid ones. */
int cop_tab_keys(const char *list, bool per, struct cop_tab_conf *conf, struct cop_err *err);
/* Makes the row keys pid and tid distinguish processes and threads with equal numbers; their text
 * is then not printable. */
void cop_tab_tell_apart(struct cop_tab_conf *conf);
int cop_tab_cols(const char *list, struct cop_tab_conf *conf, struct cop_err *err);
/* Sets how `per` reduces columns: "max" for all, or "dur=max,size=sum". A word without "=" applies
 * to all columns not named. If no columns are shown yet, shows those named. */
int cop_tab_thens(const char *list, struct cop_tab_conf *conf, struct cop_err *err);
bool cop_tab_has_col(const struct cop_tab_conf *conf, const char *name);
/* -EINVAL with a message if rows cannot be sorted by this word; NULL is valid. */
int cop_tab_check_sort(const struct cop_tab_conf *conf, const char *by, struct cop_err *err);
const char *cop_tab_key_name(const struct cop_tab_conf *conf, unsigned i);
bool cop_tab_needs_names(const struct cop_tab_conf *conf);
bool cop_tab_needs_first(const struct cop_tab_conf *conf);
/* Whether the table needs args, process and thread metadata, or exclusive times of spans. */
bool cop_tab_needs_args(const struct cop_tab_conf *conf);
bool cop_tab_needs_who(const struct cop_tab_conf *conf);
bool cop_tab_needs_self(const struct cop_tab_conf *conf);

struct cop_tab;
/* conf is copied. NULL: out of memory. */
struct cop_tab *cop_tab_new(const struct cop_tab_conf *conf, unsigned threads, int64_t first_ns);
void cop_tab_free(struct cop_tab *t);
/* Adds a span or an aggregate; with the column `unfinished`, also a begin event with no end; with a
 * column of values, a counter instead. Uses metadata if needed, and ignores other events. -ENOMEM;
 * -E2BIG beyond COP_TAB_GROUPS_MAX or COP_TAB_VALUES_MAX. */
int cop_tab_add(struct cop_tab *t, unsigned worker, const struct cop_trace_event *e);
/* Records only an event's process and thread information, if needed. -ENOMEM. */
int cop_tab_see(struct cop_tab *t, unsigned worker, const struct cop_trace_event *e);
/* Adds an event with its exclusive time. */
int cop_tab_add_self(
	struct cop_tab *t, unsigned worker, const struct cop_trace_event *e, uint64_t self_ns);

/* ---- self.c: exclusive times ---- */

/* Takes events in time order, longer ones first, and passes each on with its exclusive time: the
 * time during which no span that its thread began later was running. Asynchronous spans neither
 * contain other spans nor are contained. */
struct cop_self;
typedef int cop_self_visit(void *arg, const struct cop_trace_event *e, uint64_t self_ns);
/* NULL: out of memory. */
struct cop_self *cop_self_new(cop_self_visit *visit, void *arg);
void cop_self_free(struct cop_self *s);
/* -ENOMEM; a nonzero result of visit. */
int cop_self_add(struct cop_self *s, const struct cop_trace_event *e);
/* Passes on the spans still running. */
int cop_self_end(struct cop_self *s);

/* ---- rows.c, show.c: the answer ---- */

struct cop_row {
	struct cop_trace_str key[COP_TAB_KEYS_MAX];
	long double *value; /* one per column; NAN: none */
};
struct cop_rows {
	struct cop_tab_conf conf; /* its keys exclude those of `per` */
	struct cop_row *row;
	long double *values; /* storage for the values of all rows */
	size_t n;
	bool about;          /* some quantiles are approximate, within 1 % */
	double closed;       /* seconds by which a `busy` time may be too long */
	bool shared;         /* some row by pid or tid combines several processes */
	uint64_t unfinished; /* begin events with no end, if the column is shown */
	struct cop_tab *tab; /* owns the bytes of the keys */
};

/* Merges the tables of all threads. The rows take ownership of t, even on failure. -ENOMEM,
 * -E2BIG. */
int cop_tab_rows(struct cop_tab *t, struct cop_rows *out, struct cop_err *err);
void cop_rows_free(struct cop_rows *r);
/* Sorts by a key or a column; NULL means by dur if shown, else by the first column. Keys sort in
 * ascending order, columns in descending order; ties sort by key, ascending. */
void cop_rows_sort(struct cop_rows *r, const char *by);
/* Returns the default sort column; there must be at least one column. */
unsigned cop_tab_sort_col(const struct cop_tab_conf *conf);
/* Compares by the first `keys` keys: numbers sort before words, and by value. */
int cop_row_compare(const struct cop_row *a, const struct cop_row *b, unsigned keys);

/* Return the grid columns for the i-th key and the i-th column. */
struct cop_grid_col cop_tab_key_col(const struct cop_tab_conf *conf, unsigned i);
struct cop_grid_col cop_tab_value_col(const struct cop_tab_conf *conf, unsigned i);
/* Prints the first `limit` rows (0: all), keys first, then columns. */
void cop_rows_show(
	const struct cop_rows *r, enum cop_grid_form form, size_t limit, struct cop_buf *out);

/* Creates an overview of traces: totals, time by category, functions, and changes over the run. Any
 * number of threads may add events. */

/* ---- union.c: time covered by spans ---- */

/* A sorted set of disjoint spans. Beyond COP_UNION_MAX spans, it closes the shortest gaps;
 * closed_ns bounds the resulting error of the length. */
#define COP_UNION_MAX ((size_t)1 << 20)
struct cop_union_span {
	int64_t from, to;
};
struct cop_union {
	struct cop_union_span *at;
	size_t n, sorted, cap;
	int64_t gap; /* gaps up to this length are closed */
	uint64_t closed_ns;
	size_t max; /* overrides COP_UNION_MAX: a power of two, at least 2048; 0: COP_UNION_MAX */
};
/* -ENOMEM. */
int cop_union_add(struct cop_union *u, int64_t from, int64_t to);
/* Adds the spans of from, which is unchanged. -ENOMEM. */
int cop_union_merge(struct cop_union *u, const struct cop_union *from);
/* Return the nanoseconds covered by u, and by u but not by other. */
uint64_t cop_union_length(struct cop_union *u);
uint64_t cop_union_alone(struct cop_union *u, struct cop_union *other);
/* Adds to `to` what u covers and other does not. -ENOMEM. */
int cop_union_rest(struct cop_union *u, struct cop_union *other, struct cop_union *to);
void cop_union_free(struct cop_union *u);

/* ---- sum.c ---- */

/* Time during which at least one span of a kind is running in any process: the program's own input
 * and output (cat contains "reader" or "checkpoint"), its computation (name contains "compute"),
 * and cat POSIX. Aggregates are left out because the times of their spans are unknown. */
enum { COP_SUM_APP, COP_SUM_COMPUTE, COP_SUM_POSIX, COP_SUM_PARTS };

/* Classes of spans: the three above, called app_io, compute and posix, and those the user
 * defines. */
#define COP_CLASSES_MAX 16u
struct cop_classes;
/* Takes words of the form NAME=RE: the class has the spans whose name or category matches. Naming a
 * built-in class overrides its rule. Up to `threads` threads may test concurrently. -EINVAL with a
 * message; -ENOMEM. */
int cop_classes_new(const char *const *word, unsigned n, unsigned threads, struct cop_classes **out,
	struct cop_err *err);
void cop_classes_free(struct cop_classes *c);

/* A device of a rank (torch.profiler): the time it ran compute kernels, communication kernels,
 * copies, and both kinds of kernels at once, and its idle time between the first and the last of
 * these. */
struct cop_sum_device {
	struct cop_trace_str rank, device; /* owned */
	size_t source;
	double total_s, kernels_s, communication_s, copies_s, overlap_s, idle_s;
	uint64_t kernels; /* number of kernels */
};

struct cop_sum_result {
	uint64_t spans, instants, counters, flows,
		unfinished; /* spans includes those of aggregates */
	uint64_t processes, threads, hosts, files;
	double total_s; /* from the earliest start to the latest end of all spans */
	double part_s[COP_SUM_PARTS];
	double app_alone_s, compute_not_app_s;     /* app without compute, and the reverse */
	double posix_alone_s, compute_not_posix_s; /* POSIX without compute, and the reverse */
	double about_s;                            /* maximum error of the times above */
	double class_s[COP_CLASSES_MAX]; /* time during which a span of each class is running */
	double both_s[COP_CLASSES_MAX]
		     [COP_CLASSES_MAX]; /* time during which spans of both classes are running */
	const struct cop_classes *classes;
	struct cop_rows functions, intervals;
	struct cop_rows open; /* begin events with no end, by name, cat, process and thread */
	struct cop_sum_device *device;
	size_t devices;
	struct cop_rows kernels; /* kernels on devices, by name */
};

struct cop_sum;
struct cop_sum_conf {
	unsigned threads;
	bool names; /* count the files and hosts that events name; if false, count those defined in
		       the traces, which needs no second pass */
	int64_t first_ns;
	uint64_t interval_ns;
	const struct cop_classes *classes;
	const struct cop_trace_files *files;
};
/* conf is copied; its pointers are borrowed until the result is freed. NULL: out of memory. */
struct cop_sum *cop_sum_new(const struct cop_sum_conf *conf);
void cop_sum_free(struct cop_sum *s);
/* Also accepts metadata and begin events with no end. -ENOMEM, -E2BIG. */
int cop_sum_add(struct cop_sum *s, unsigned worker, const struct cop_trace_event *e);
/* -ENOMEM, -E2BIG with a message. */
int cop_sum_finish(struct cop_sum *s, struct cop_sum_result *out, struct cop_err *err);
void cop_sum_result_free(struct cop_sum_result *r);
/* classes: also print the classes; set it if the user defined any. JSON always includes them and
 * each file's losses. */
void cop_sum_show(const struct cop_sum_result *r, const struct cop_trace_files *files, bool classes,
	enum cop_grid_form form, struct cop_buf *out);

/* Joins the tables of several runs by key: the keys come first, followed by one column per run for
 * each column. It neither reads nor aggregates. */

#define COP_COMPARE_RUNS_MAX 64u

struct cop_compare;

/* Takes n tables with the same keys and columns, 1 <= n <= COP_COMPARE_RUNS_MAX, and the names of
 * their runs. Borrows rows and names until cop_compare_free, and reorders the rows. Sorts the
 * result in descending order of the first sortable column: by the first run's value, then by the
 * second's, and so on. -ENOMEM. */
int cop_compare_new(struct cop_rows *rows, const char *const *name, unsigned n,
	struct cop_compare **out, struct cop_err *err);
void cop_compare_free(struct cop_compare *c);
/* Prints the first `limit` rows (0: all). Columns are named RUN:COLUMN; a cell is empty if its run
 * lacks the row. On a terminal, RUN/FIRST follows the first column, with the ratio to the first
 * run. */
void cop_compare_show(
	const struct cop_compare *c, enum cop_grid_form form, size_t limit, struct cop_buf *out);

#endif
