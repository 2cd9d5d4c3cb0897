/* SPDX-License-Identifier: BSD-3-Clause */
/* table: selects events, groups them and adds up each group. It takes events from any number of
 * threads, each into a table of its own, and merges the tables at the end; a table is then reduced,
 * sorted and printed. It reads no file and knows no format.
 *
 * Memory is bounded by the number of groups, at most COP_TAB_GROUPS_MAX, and, for quantiles, by
 * COP_TAB_EXACT_MAX different values per group. */
#ifndef COP_TRACE_TABLE_H
#define COP_TRACE_TABLE_H

#include "base/table/table.h"
#include "trace/read/read.h"

#define COP_TAB_GROUPS_MAX ((size_t)4000000)

/* ---- select.c: which events ---- */

enum { COP_SELECT_NAME, COP_SELECT_CAT, COP_SELECT_FILE, COP_SELECT_HOST, COP_SELECT_TEXTS };
enum { COP_SELECT_PID, COP_SELECT_TID, COP_SELECT_NUMBERS };

/* Words as given on the command line; the caller owns them. */
struct cop_words {
	const char *const *at;
	unsigned n;
};
struct cop_select_conf {
	struct cop_words text[COP_SELECT_TEXTS], not_text[COP_SELECT_TEXTS];
	struct cop_words number[COP_SELECT_NUMBERS], not_number[COP_SELECT_NUMBERS];
	double from_s, to_s;     /* counted from the first event of all; to_s < 0: no end */
	const char *name_option; /* what errors call the option for names; NULL: name */
};
struct cop_select;

/* Extended regular expressions (POSIX), which match anywhere: at least one of several must match,
 * and none of the excluding ones may. `threads` threads may test at a time. -EINVAL with a sentence
 * that names the option and where the expression is wrong; -ENOMEM. */
int cop_select_new(const struct cop_select_conf *conf, unsigned threads, struct cop_select **out,
	struct cop_err *err);
void cop_select_free(struct cop_select *s);
/* The first: whether names of files or hosts matter; the second: whether times from the first event
 * do. */
bool cop_select_needs_names(const struct cop_select *s);
bool cop_select_needs_first(const struct cop_select *s);
/* Whether nothing is left out. */
bool cop_select_is_all(const struct cop_select *s);
void cop_select_first(struct cop_select *s, int64_t first_ns);
/* What a reading may skip where there is an index; the first event must be known if times matter.
 * *out borrows s. */
void cop_select_pick(struct cop_select *s, bool meta, struct cop_trace_pick *out);
/* An event belongs to a time range if it begins there: from <= ts < to. */
bool cop_select_test(struct cop_select *s, unsigned worker, const struct cop_trace_event *e);

/* ---- quant.c: quantiles ---- */

/* Exact for up to this many values of a group; beyond that, a DDSketch takes their place: C.
 * Masson, J. E. Rim, H. K. Lee, "DDSketch: a fast and fully-mergeable quantile sketch with
 * relative-error guarantees", PVLDB 12(12), 2019. Its answers are within 1 % of the exact value. */
#define COP_TAB_EXACT_MAX 1000000u

struct cop_quant; /* NULL is an empty one */

/* Adds n values of v. -ENOMEM. */
int cop_quant_add(struct cop_quant **q, uint64_t v, uint64_t n);
int cop_quant_merge(struct cop_quant **to, const struct cop_quant *from);
void cop_quant_free(struct cop_quant *q);
bool cop_quant_is_exact(const struct cop_quant *q);
/* The quantile p, 0..1; between two values it is interpolated linearly, the default of pandas and
 * numpy. 0 if there are no values. */
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
	COP_KEY_INTERVAL, /* when the event's interval begins: seconds from the first event */
	COP_KEY_TIME,     /* when the event begins: seconds from the first event */
	COP_KEY_TRACE,    /* the trace file */
	COP_KEY_SERIES,   /* of a counter: the argument that has the value */
	/* These are known when all metadata is: late.c. */
	COP_KEY_RANK,
	COP_KEY_PROCESS, /* host, rank, name and pid, as merge names a process */
	COP_KEY_THREAD,  /* the thread's name, else its tid */
	COP_KEYS_NAMED,
	COP_KEY_ARG = COP_KEYS_NAMED, /* arg:NAME, an argument of the event */
	/* What tells processes and threads apart; `per` means these by pid and tid. */
	COP_KEY_WHICH_PROCESS,
	COP_KEY_WHICH_THREAD,
	COP_KEYS
};
#define COP_TAB_KEYS_MAX 12u
#define COP_TAB_COLS_MAX 48u
#define COP_TAB_WORD_MAX 64u
/* Values of counters that a table keeps, one by one. */
#define COP_TAB_VALUES_MAX ((size_t)1 << 25)

enum cop_tab_then { COP_THEN_NONE, COP_THEN_MAX, COP_THEN_MIN, COP_THEN_SUM, COP_THEN_MEAN };

struct cop_tab_conf {
	enum cop_tab_key key[COP_TAB_KEYS_MAX]; /* those of the rows first, then those of `per` */
	char arg[COP_TAB_KEYS_MAX][COP_TAB_WORD_MAX]; /* for COP_KEY_ARG: "arg:step" */
	unsigned keys, pers;
	uint8_t col[COP_TAB_COLS_MAX];            /* see cop_tab_cols */
	enum cop_tab_then then[COP_TAB_COLS_MAX]; /* by column */
	unsigned cols;
	uint64_t interval_ns;
	const struct cop_trace_files *files; /* for COP_KEY_TRACE and names of processes; may be
						NULL */
};

/* Appends comma-separated words: keys of the rows, then keys of `per`, and columns. -EINVAL with a
 * sentence that names the word and those that exist. */
int cop_tab_keys(const char *list, bool per, struct cop_tab_conf *conf, struct cop_err *err);
/* Makes the keys pid and tid of rows tell processes and threads apart, too; their text is then none
 * to be shown. */
void cop_tab_tell_apart(struct cop_tab_conf *conf);
int cop_tab_cols(const char *list, struct cop_tab_conf *conf, struct cop_err *err);
/* How columns are reduced after `per`: "max" for all of them, or "dur=max,size=sum". A word alone
 * is for the columns that are not named. If no column is shown yet, those that are named are. */
int cop_tab_thens(const char *list, struct cop_tab_conf *conf, struct cop_err *err);
bool cop_tab_has_col(const struct cop_tab_conf *conf, const char *name);
/* Whether rows can be sorted by this word; NULL is fine. -EINVAL with a sentence. */
int cop_tab_check_sort(const struct cop_tab_conf *conf, const char *by, struct cop_err *err);
const char *cop_tab_key_name(const struct cop_tab_conf *conf, unsigned i);
bool cop_tab_needs_names(const struct cop_tab_conf *conf);
bool cop_tab_needs_first(const struct cop_tab_conf *conf);
/* Whether args matter; metadata of processes and threads; times of spans without those inside. */
bool cop_tab_needs_args(const struct cop_tab_conf *conf);
bool cop_tab_needs_who(const struct cop_tab_conf *conf);
bool cop_tab_needs_self(const struct cop_tab_conf *conf);

struct cop_tab;
/* conf is copied. NULL: out of memory. */
struct cop_tab *cop_tab_new(const struct cop_tab_conf *conf, unsigned threads, int64_t first_ns);
void cop_tab_free(struct cop_tab *t);
/* Takes spans and aggregates; begins without an end if the column `unfinished` is shown; if a
 * column of values is shown, counters instead. If who matters, also metadata. Ignores others.
 * -ENOMEM; -E2BIG for more than COP_TAB_GROUPS_MAX or COP_TAB_VALUES_MAX. */
int cop_tab_add(struct cop_tab *t, unsigned worker, const struct cop_trace_event *e);
/* Takes only what an event says of its process and thread, if that matters. -ENOMEM. */
int cop_tab_see(struct cop_tab *t, unsigned worker, const struct cop_trace_event *e);
/* Adds an event with the time of a span in which no other runs inside of it. */
int cop_tab_add_self(
	struct cop_tab *t, unsigned worker, const struct cop_trace_event *e, uint64_t self_ns);

/* ---- self.c: spans without those inside of them ---- */

/* Takes events in order of time, longer before shorter, and passes each on once its time is known:
 * the part of a span in which no other span of its thread that began later runs. Asynchronous spans
 * neither are inside of others nor have others inside. */
struct cop_self;
typedef int cop_self_visit(void *arg, const struct cop_trace_event *e, uint64_t self_ns);
/* NULL: out of memory. */
struct cop_self *cop_self_new(cop_self_visit *visit, void *arg);
void cop_self_free(struct cop_self *s);
/* -ENOMEM; what visit returned. */
int cop_self_add(struct cop_self *s, const struct cop_trace_event *e);
/* Passes on what is still running. */
int cop_self_end(struct cop_self *s);

/* ---- rows.c, show.c: the answer ---- */

struct cop_row {
	struct cop_trace_str key[COP_TAB_KEYS_MAX];
	long double *value; /* one for each column; NAN: there is none */
};
struct cop_rows {
	struct cop_tab_conf conf; /* keys: without those of `per` */
	struct cop_row *row;
	long double *values; /* of all rows */
	size_t n;
	bool about;          /* some quantile is not exact but within 1 % */
	double closed;       /* seconds by which a time `busy` may be too long */
	bool shared;         /* rows by pid or tid add up several processes */
	uint64_t unfinished; /* begins without an end, if that column is shown */
	struct cop_tab *tab; /* owns the bytes of the keys */
};

/* Merges the tables of all threads; the rows own t from now on, whatever the result. -ENOMEM,
 * -E2BIG. */
int cop_tab_rows(struct cop_tab *t, struct cop_rows *out, struct cop_err *err);
void cop_rows_free(struct cop_rows *r);
/* Sorts by a key or a column of the table; NULL: by dur if it is shown, else by the first column.
 * Columns descend, keys ascend; equal rows ascend by their keys. */
void cop_rows_sort(struct cop_rows *r, const char *by);
/* The column by which rows are sorted if nothing else is asked for; there must be one. */
unsigned cop_tab_sort_col(const struct cop_tab_conf *conf);
/* Compares by the first `keys` keys, numbers before words, in order of value. */
int cop_row_compare(const struct cop_row *a, const struct cop_row *b, unsigned keys);

/* The columns of a grid of rows: the i-th key, and the i-th of the others. */
struct cop_grid_col cop_tab_key_col(const struct cop_tab_conf *conf, unsigned i);
struct cop_grid_col cop_tab_value_col(const struct cop_tab_conf *conf, unsigned i);
/* Shows the first `limit` rows (0: all), keys first, then columns. */
void cop_rows_show(
	const struct cop_rows *r, enum cop_grid_form form, size_t limit, struct cop_buf *out);

/* A first overview of traces: how much there is, where the time went, what each function
 * did, and how that changed over the run. It takes events from any number of threads. */

/* ---- union.c: time that some span covers ---- */

/* A set of spans, sorted, that neither overlap nor touch. If there are more than COP_UNION_MAX, the
 * shortest gaps are closed, and closed_ns says by how much the union may therefore be too long. */
#define COP_UNION_MAX ((size_t)1 << 20)
struct cop_union_span {
	int64_t from, to;
};
struct cop_union {
	struct cop_union_span *at;
	size_t n, sorted, cap;
	int64_t gap; /* gaps up to this are closed */
	uint64_t closed_ns;
	size_t max; /* a limit other than COP_UNION_MAX, a power of two from 2048 on; 0:
		       COP_UNION_MAX */
};
/* -ENOMEM. */
int cop_union_add(struct cop_union *u, int64_t from, int64_t to);
/* Adds what from covers; from is unchanged. -ENOMEM. */
int cop_union_merge(struct cop_union *u, const struct cop_union *from);
/* The nanoseconds that u covers; those that u covers and other does not. */
uint64_t cop_union_length(struct cop_union *u);
uint64_t cop_union_alone(struct cop_union *u, struct cop_union *other);
/* Adds to `to` what u covers and other does not. -ENOMEM. */
int cop_union_rest(struct cop_union *u, struct cop_union *other, struct cop_union *to);
void cop_union_free(struct cop_union *u);

/* ---- sum.c ---- */

/* Time in which at least one span of a kind runs, whatever process it belongs to: the program's own
 * input and output (cat contains "reader" or "checkpoint"), its computing (name contains
 * "compute"), and cat POSIX. Aggregated records do not say when their spans were, and are omitted
 * here. */
enum { COP_SUM_APP, COP_SUM_COMPUTE, COP_SUM_POSIX, COP_SUM_PARTS };

/* Classes of spans: those three, called app_io, compute and posix, and others. */
#define COP_CLASSES_MAX 16u
struct cop_classes;
/* Takes words NAME=RE: spans of which the name or the category matches. The name of a built-in
 * class replaces its rule. threads: how many test at a time. -EINVAL with a sentence; -ENOMEM. */
int cop_classes_new(const char *const *word, unsigned n, unsigned threads, struct cop_classes **out,
	struct cop_err *err);
void cop_classes_free(struct cop_classes *c);

/* A device of a rank (torch.profiler): the time in which kernels run that compute, that
 * communicate, copies; in which kernels of both kinds run; in which nothing runs, between the first
 * and the last of them. */
struct cop_sum_device {
	struct cop_trace_str rank, device; /* owned */
	size_t source;
	double total_s, kernels_s, communication_s, copies_s, overlap_s, idle_s;
	uint64_t kernels; /* how many */
};

struct cop_sum_result {
	uint64_t spans, instants, counters, flows,
		unfinished; /* spans: including those that aggregates stand for */
	uint64_t processes, threads, hosts, files;
	double total_s; /* from the first begin to the last end of a span */
	double part_s[COP_SUM_PARTS];
	double app_alone_s,
		compute_not_app_s; /* time of app without compute, and of compute without app */
	double posix_alone_s, compute_not_posix_s; /* time of POSIX without compute, and of compute
						      without POSIX */
	double about_s;                            /* by how much the times above may be wrong */
	double class_s[COP_CLASSES_MAX];           /* time in which a span of each class runs */
	double both_s[COP_CLASSES_MAX][COP_CLASSES_MAX]; /* and at the same time one of another */
	const struct cop_classes *classes;
	struct cop_rows functions, intervals;
	struct cop_rows open; /* begins without an end: by name, cat, process and thread */
	struct cop_sum_device *device;
	size_t devices;
	struct cop_rows kernels; /* of devices, by name */
};

struct cop_sum;
struct cop_sum_conf {
	unsigned threads;
	bool names; /* counts files and hosts that events name; without it, those that the traces
		       define, which needs no second pass */
	int64_t first_ns;
	uint64_t interval_ns;
	const struct cop_classes *classes;
	const struct cop_trace_files *files;
};
/* conf is copied, what it points to is borrowed until the result is freed. NULL: out of memory. */
struct cop_sum *cop_sum_new(const struct cop_sum_conf *conf);
void cop_sum_free(struct cop_sum *s);
/* Also takes metadata, and begins without an end. -ENOMEM, -E2BIG. */
int cop_sum_add(struct cop_sum *s, unsigned worker, const struct cop_trace_event *e);
/* -ENOMEM, -E2BIG with a sentence. */
int cop_sum_finish(struct cop_sum *s, struct cop_sum_result *out, struct cop_err *err);
void cop_sum_result_free(struct cop_sum_result *r);
/* classes: show the classes, which the user defined; JSON always has them, and says what was lost
 * of the files. */
void cop_sum_show(const struct cop_sum_result *r, const struct cop_trace_files *files, bool classes,
	enum cop_grid_form form, struct cop_buf *out);

/* The tables of several runs side by side. It joins them by their keys: the keys come
 * first, then, for each column, one column per run. It reads and adds up nothing. */

#define COP_COMPARE_RUNS_MAX 64u

struct cop_compare;

/* Takes n tables with the same keys and columns, from 1 to COP_COMPARE_RUNS_MAX, and the names of
 * their runs. Rows and names are borrowed until cop_compare_free, and the rows are reordered. The
 * result is sorted in descending order of the first column that can sort: by the value of the first
 * run, then by that of the second, and so on. -ENOMEM. */
int cop_compare_new(struct cop_rows *rows, const char *const *name, unsigned n,
	struct cop_compare **out, struct cop_err *err);
void cop_compare_free(struct cop_compare *c);
/* Shows the first `limit` rows (0: all). Columns are called RUN:COLUMN; a run that has no such row
 * has no value. For a terminal, columns RUN/FIRST follow those of the first column: its ratio to
 * that of the first run. */
void cop_compare_show(
	const struct cop_compare *c, enum cop_grid_form form, size_t limit, struct cop_buf *out);

#endif
