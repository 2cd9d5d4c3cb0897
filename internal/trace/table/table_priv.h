/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_TRACE_TABLE_PRIV_H
#define COP_TRACE_TABLE_PRIV_H

#include "base/base/htab.h"
#include "trace/table/table.h"
#include "trace/who/who.h"

/* ---- agg.c: aggregates of one group ---- */

typedef unsigned __int128 u128;
struct measure {
	uint64_t n;
	u128 sum, squares;
	uint64_t min, max;
	struct cop_quant *quant; /* set if a quantile is shown */
};
/* A table keeps all values of a counter, because the sum of fractions depends on their order. Here
 * and in rows, a long double represents 64-bit integers exactly. */
struct value {
	long double v;
	int64_t ts_ns;
	uint64_t source : 24, line : 40;
};
_Static_assert(COP_TRACE_FILES_MAX <= 1 << 24, "source has all files");
struct values {
	struct value *at;
	size_t n, cap;
	bool sorted;
};
struct agg {
	uint64_t count, unfinished, self_ns;
	int64_t first, last;      /* earliest start, latest end; first > last: none */
	struct measure dur, size; /* nanoseconds, bytes */
	struct cop_union *busy;   /* if shown */
	struct values *values;
};

enum col_of { OF_GROUP, OF_DUR, OF_SIZE, OF_VALUE };
enum col_what {
	COL_SUM,
	COL_COUNT_OF,
	COL_MEAN,
	COL_STD,
	COL_MIN,
	COL_MAX,
	COL_FIRST,
	COL_LAST,
	COL_QUANTILE
};
struct col {
	const char *name;
	enum col_of of;
	enum col_what what;
	enum cop_grid_kind kind;
	double p; /* of a quantile */
};
extern const struct col cop_tab_col[];
extern const unsigned cop_tab_col_count;
enum {
	COL_COUNT,
	COL_DUR,
	COL_SIZE,
	COL_BANDWIDTH,
	COL_UNFINISHED,
	COL_SELF,
	COL_BUSY,
	COL_BEGIN,
	COL_END
};

/* What a table needs beyond sums. */
struct wants {
	bool dur, size, busy, values, unfinished, who;
};
/* Adds an event; self_ns is the exclusive time of a finished span. */
int cop_agg_add(
	struct agg *a, const struct cop_trace_event *e, struct wants wants, uint64_t self_ns);
int cop_agg_add_value(struct agg *a, const struct cop_trace_event *e, long double v);
int cop_agg_merge(struct agg *to, struct agg *from);
void cop_agg_fini(struct agg *a);
/* Sources of inexactness. */
struct doubt {
	bool about;         /* quantiles are within 1 % */
	uint64_t closed_ns; /* maximum error of times */
};
/* Returns the value of a column; NAN if it has none. */
long double cop_agg_value(struct agg *a, unsigned col, int64_t first_ns, struct doubt *doubt);

/* ---- keys.c ---- */

struct part;
struct cop_tab;
/* Writes all keys of an event to the part's scratch. Returns their length, or -ENOMEM. */
ssize_t cop_tab_put_keys(struct cop_tab *t, struct part *p, const struct cop_trace_event *e,
	struct cop_trace_str series);
/* Whether a key is known only after all metadata has been read. */
bool cop_tab_is_late(enum cop_tab_key key);

/* ---- tab.c ---- */

struct group {
	struct cop_hlink link;
	struct agg agg;
	uint32_t len;
	char key[]; /* for each key, its length in four bytes, then its bytes */
};
struct part { /* one per thread */
	struct cop_htab table;
	char *scratch;
	size_t size;
	int64_t interval; /* the last interval, for its cached text */
	char text[40];
	size_t text_len;
	size_t values;
	struct seen seen;
	struct cop_buf room; /* for the text of an argument */
};
struct cop_tab {
	struct cop_tab_conf conf;
	struct wants wants;
	int64_t first_ns;
	unsigned threads;
	bool shared; /* see struct cop_rows */
	struct part part[];
};
/* Stores the first n keys of a group in out, and returns their total length in bytes. */
size_t cop_tab_split(const struct group *g, unsigned n, struct cop_trace_str *out);
/* Merges all groups into the table of the first thread. */
int cop_tab_merge(struct cop_tab *t);
/* Inserts a group into a table, or merges it into the group with the same keys and frees it. */
int cop_tab_put_group(struct cop_htab *to, struct group *g);
/* Frees the table and its groups. */
void cop_tab_drop(struct cop_htab *table);

/* ---- late.c: keys known only after all metadata has been read ---- */

/* Writes a placeholder for a late key. cop_late_room returns how many bytes it takes at most. */
size_t cop_late_put(const struct cop_trace_event *e, char *to);
size_t cop_late_room(const struct cop_trace_event *e);
/* Replaces the placeholders in the first thread's table and merges groups whose keys become equal.
 * -ENOMEM. */
int cop_late_resolve(struct cop_tab *t);

#endif
