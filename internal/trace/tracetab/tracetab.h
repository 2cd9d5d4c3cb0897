/* SPDX-License-Identifier: BSD-3-Clause */
/* tracetab: selects events, groups them and adds up each group. It takes events from any number of
 * threads, each into a table of its own, and merges the tables at the end; a table is then reduced,
 * sorted and printed. It reads no file and knows no format.
 *
 * Memory is bounded by the number of groups, at most COP_TAB_GROUPS_MAX, and, for quantiles, by
 * COP_TAB_EXACT_MAX different values per group. */
#ifndef COP_TRACETAB_H
#define COP_TRACETAB_H

#include "base/grid/grid.h"
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
	COP_KEYS
};
#define COP_TAB_KEYS_MAX 12u
#define COP_TAB_COLS_MAX 20u

enum cop_tab_then { COP_THEN_NONE, COP_THEN_MAX, COP_THEN_SUM, COP_THEN_MEAN };

struct cop_tab_conf {
	enum cop_tab_key key[COP_TAB_KEYS_MAX]; /* those of the rows first, then those of `per` */
	unsigned keys, pers;
	enum cop_tab_then then;
	uint8_t col[COP_TAB_COLS_MAX]; /* see cop_tab_cols */
	unsigned cols;
	uint64_t interval_ns;
};

/* Appends comma-separated words: keys of the rows, then keys of `per`, and columns. -EINVAL with a
 * sentence that names the word and those that exist. */
int cop_tab_keys(const char *list, bool per, struct cop_tab_conf *conf, struct cop_err *err);
int cop_tab_cols(const char *list, struct cop_tab_conf *conf, struct cop_err *err);
/* Whether rows can be sorted by this word; NULL is fine. -EINVAL with a sentence. */
int cop_tab_check_sort(const struct cop_tab_conf *conf, const char *by, struct cop_err *err);
const char *cop_tab_key_name(enum cop_tab_key key);
bool cop_tab_needs_names(const struct cop_tab_conf *conf);
bool cop_tab_needs_first(const struct cop_tab_conf *conf);

struct cop_tab;
/* conf is copied. NULL: out of memory. */
struct cop_tab *cop_tab_new(const struct cop_tab_conf *conf, unsigned threads, int64_t first_ns);
void cop_tab_free(struct cop_tab *t);
/* Takes spans and aggregates, and ignores others. -ENOMEM; -E2BIG for more than
 * COP_TAB_GROUPS_MAX. */
int cop_tab_add(struct cop_tab *t, unsigned worker, const struct cop_trace_event *e);

/* ---- rows.c, show.c: the answer ---- */

struct cop_row {
	struct cop_trace_str key[COP_TAB_KEYS_MAX];
	double value[COP_TAB_COLS_MAX]; /* NAN: there is none */
};
struct cop_rows {
	struct cop_tab_conf conf; /* keys: without those of `per` */
	struct cop_row *row;
	size_t n;
	bool about;          /* some quantile is not exact but within 1 % */
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

/* The columns of a grid of rows: that of a key, and the i-th of the others. */
struct cop_grid_col cop_tab_key_col(enum cop_tab_key key);
struct cop_grid_col cop_tab_value_col(const struct cop_tab_conf *conf, unsigned i);
/* Shows the first `limit` rows (0: all), keys first, then columns. */
void cop_rows_show(
	const struct cop_rows *r, enum cop_grid_form form, size_t limit, struct cop_buf *out);

#endif
