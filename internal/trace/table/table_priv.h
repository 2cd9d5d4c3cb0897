/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_TRACE_TABLE_PRIV_H
#define COP_TRACE_TABLE_PRIV_H

#include "base/base/htab.h"
#include "trace/table/table.h"

/* ---- agg.c: sums of one measure of one group ---- */

typedef unsigned __int128 u128;
struct measure {
	uint64_t n;
	u128 sum, squares;
	uint64_t min, max;
	struct cop_quant *quant; /* if quantiles are asked for */
};
struct agg {
	uint64_t count;
	struct measure dur, size; /* nanoseconds, bytes */
};

enum col_of { OF_GROUP, OF_DUR, OF_SIZE };
enum col_what { COL_SUM, COL_MEAN, COL_STD, COL_MIN, COL_Q25, COL_Q50, COL_Q75, COL_MAX };
struct col {
	const char *name;
	enum col_of of;
	enum col_what what;
	bool bytes; /* shown as whole numbers on a terminal */
};
extern const struct col cop_tab_col[];
extern const unsigned cop_tab_col_count;
#define COL_COUNT 0u
#define COL_DUR 1u
#define COL_SIZE 2u
#define COL_BANDWIDTH 3u

/* Which measures need quantiles. */
struct wants {
	bool dur, size;
};
int cop_agg_add(struct agg *a, const struct cop_trace_event *e, struct wants wants);
int cop_agg_merge(struct agg *to, const struct agg *from);
void cop_agg_fini(struct agg *a);
/* The value of a column; NAN if there is none. *about: the value is not exact. */
double cop_agg_value(struct agg *a, unsigned col, bool *about);

/* ---- tab.c ---- */

struct group {
	struct cop_hlink link;
	struct agg agg;
	uint32_t len;
	char key[]; /* each key: its length in four bytes, then its bytes */
};
struct part { /* one per thread */
	struct cop_htab table;
	char *scratch;
	size_t size;
	int64_t interval; /* the last interval, as text */
	char text[40];
	size_t text_len;
};
struct cop_tab {
	struct cop_tab_conf conf;
	struct wants wants;
	int64_t first_ns;
	unsigned threads;
	struct part part[];
};
/* Returns the first n keys of a group in out, and how many bytes they take. */
size_t cop_tab_split(const struct group *g, unsigned n, struct cop_trace_str *out);
/* Afterwards the table of the first thread has all groups. */
int cop_tab_merge(struct cop_tab *t);

#endif
