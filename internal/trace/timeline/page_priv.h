/* SPDX-License-Identifier: BSD-3-Clause */
/* The timeline that page.c sorts and page_out.c writes. */
#ifndef COP_PAGE_PRIV_H
#define COP_PAGE_PRIV_H

#include "trace/timeline/timeline_priv.h"

#define ROWS_MAX 200u /* maximum rows of a track; deeper spans share the last one */
#define BUCKETS 512u
#define ARGS_EACH 512u
#define ARGS_ALL (48 * COP_MIB)
#define OTHERS_MAX 200000u /* limit for each of instants, counters and flows */

struct span {
	int64_t start;
	uint64_t dur;
	uint32_t name;
	uint32_t args_len;
	size_t args; /* offset in the text of all args */
	bool unfinished;
};
struct row {
	struct span *at;
	size_t n, cap;
	int64_t end;
};
struct instant {
	int64_t at;
	uint32_t name;
};
struct track {
	struct row *row;
	size_t rows, row_cap;
	struct instant *instant;
	size_t instants, instant_cap;
	size_t open; /* for a thread: current nesting depth */
};
struct value {
	int64_t at;
	double value;
};
struct counter {
	struct cop_hlink link;
	uint32_t process, name;
	struct value *at;
	size_t n, cap;
	size_t len;
	char series[];
};
/* A category of asynchronous spans. */
struct extra {
	struct cop_hlink link;
	uint32_t process;
	struct track track;
	size_t index; /* among all tracks */
	size_t len;
	char cat[];
};
struct name {
	struct cop_hlink link;
	uint32_t id;
	size_t name_len, cat_len;
	char bytes[];
};
struct end { /* the latest point of a flow */
	struct cop_hlink link;
	uint64_t id;
	size_t track;
	int64_t at;
};
struct arrow {
	size_t from, to;
	int64_t at[2];
};

struct cop_timeline {
	unsigned threads;
	size_t limit;
	struct cop_order *order;
	struct crew crew;
	struct track *track; /* tracks of the crew's threads */
	struct cop_htab names, counters, extras, ends;
	struct name **name;
	struct counter **counter;
	struct extra **extra;
	size_t name_n, name_cap, counter_n, counter_cap, extra_n, extra_cap;
	struct arrow *arrow;
	size_t arrows, arrow_cap;
	struct cop_buf args;
	int64_t first_ns, last_ns;
	uint64_t shortest_ns; /* shorter spans are omitted */
	uint64_t kept[COP_TRACE_KINDS], left[COP_TRACE_KINDS], left_args;
	uint64_t stride[COP_TRACE_KINDS];
	struct per_thread {
		struct seen seen;
		uint64_t n[COP_TRACE_KINDS], of_length[BUCKETS];
	} per[];
};

/* ---- page_out.c ---- */

/* Writes the JSON that describes the columns. */
void cop_timeline_put_head(
	struct cop_timeline *t, const struct cop_trace_files *files, struct cop_buf *out);
/* Writes the tracks in numerical order, then the extra tracks, counters and arrows. */
void cop_timeline_put_columns(
	const struct cop_timeline *t, struct cop_buf *out, struct cop_buf *args);
int cop_timeline_put_page(const struct cop_page_out *to, const struct cop_buf *head,
	const struct cop_buf *columns, const struct cop_buf *args);

#endif
