/* SPDX-License-Identifier: BSD-3-Clause */
/* node.c and series.c handle one node, and sum.c and spread.c a subtree; codec.c encodes a sum, and
 * write.c writes its files. node.c does not depend on the code for subtrees.
 *
 * When a node loses its row or series in a large job, it is folded: each of its numbers is added to
 * a spread. A node that keeps its row is not in any spread until the files are written, so small
 * jobs have no spreads. */
#ifndef COP_PROF_TELEMETRY_PRIV_H
#define COP_PROF_TELEMETRY_PRIV_H

#include <stdatomic.h>

#include "prof/telemetry/telemetry.h"

#define METRICS COP_TELEMETRY_METRICS
#define INTERVALS COP_TELEMETRY_INTERVALS
#define LEVEL_MAX 40u /* an interval is 2^level seconds */

static inline uint64_t metric_add(unsigned metric, uint64_t a, uint64_t b)
{
	return metric >= COP_TELEMETRY_FIRST_PEAK ? COP_MAX(a, b) : cop_add_saturating(a, b);
}

/* ---- series.c: samples ---- */

#define POINTS 256u

/* Sums since the start, and peaks since the previous point. */
struct point {
	uint64_t at_us; /* since the start of the node */
	uint64_t value[METRICS];
};

struct series {
	struct point point[POINTS + 1];
	unsigned n;
	uint64_t step_us; /* approximate time between points */
};

void cop_telemetry_series_init(struct series *s);

/* Points must ascend in time; values are sums since the start. */
void cop_telemetry_series_add(struct series *s, const struct point *p);
/* The smallest level at which a job of this duration has at most INTERVALS intervals. */
unsigned cop_telemetry_level(int64_t us);
/* Distributes the series over the intervals of a job that started at began_us on this node's clock.
 * rows has INTERVALS elements, all zero. Returns the number of intervals used. */
unsigned cop_telemetry_series_rows(
	const struct series *s, int64_t began_us, unsigned level, uint64_t (*rows)[METRICS]);
/* Merges pairs of intervals, and returns the new number of intervals. */
unsigned cop_telemetry_coarsen(uint64_t (*rows)[METRICS], unsigned n);

/* ---- node.c ---- */

/* What node.c hands over at the end of the node. */
struct own {
	struct cop_telemetry_node node; /* series: INTERVALS elements, initially zero */
	unsigned level;
	int64_t unix_ns;
	uint64_t dropped;
	unsigned events;
	struct cop_telemetry_event event[COP_TELEMETRY_EVENTS]; /* rank is not set */
	char text[COP_TELEMETRY_EVENTS][COP_TELEMETRY_DETAIL];
};
void cop_telemetry_own(struct cop_telemetry *t, struct own *out);

/* ---- spread.c: one number over many nodes ---- */

#define EXACT 16u /* each smaller value has its own class */
#define SPREAD_CLASSES (EXACT + 60u * 8u)

/* Nodes with value 0 are not counted, so zeroed memory stands for any number of them. */
struct spread {
	uint64_t least, most; /* of the non-zero values */
	uint32_t others;      /* nodes with a non-zero value */
	uint32_t *count;      /* SPREAD_CLASSES elements; NULL: others is 0 */
};

unsigned cop_telemetry_class(uint64_t value);
/* The midpoint of a class. */
uint64_t cop_telemetry_middle(unsigned class);
/* 0, or -ENOMEM with the spread unchanged. */
int cop_telemetry_spread_add(struct spread *s, uint64_t value);
int cop_telemetry_spread_merge(struct spread *into, const struct spread *from);
/* Pairs up the numbers of a and b in ascending order, stores the sum of each pair in a (the maximum
 * if peak), and empties b. nodes includes those with value 0. If memory runs out, b counts as 0. */
void cop_telemetry_spread_pair(struct spread *a, struct spread *b, uint32_t nodes, bool peak);
/* Statistics over this many nodes, which must be at least 1. */
struct three {
	uint64_t min, median, max;
};
struct three cop_telemetry_spread_three(const struct spread *s, uint32_t nodes);
void cop_telemetry_spread_free(struct spread *s, size_t n);

/* ---- sum.c ---- */

/* A node's numbers, except for its series: start, ready, stopped, phases, totals. */
#define NUMBERS (3u + COP_TELEMETRY_PHASES + COP_TELEMETRY_TOTALS)
void cop_telemetry_numbers(const struct cop_telemetry_node *n, uint64_t out[NUMBERS]);

/* The spreads of folded nodes. */
struct folded {
	uint32_t nodes;
	unsigned cells;
	struct spread *cell;
};

struct cop_telemetry_sum {
	uint32_t job_nodes;
	unsigned level;
	int64_t unix_ns;
	struct cop_telemetry_node *node; /* by rank */
	size_t nodes, capacity;
	struct folded series; /* cell: INTERVALS * METRICS */
	struct folded rows;   /* cell: NUMBERS; NULL: none folded */
	struct cop_telemetry_event *event;
	size_t events;
	uint64_t dropped;
};

/* Maximum number of intervals of any node. */
unsigned cop_telemetry_sum_intervals(const struct cop_telemetry_sum *s);
/* Allocates a slot for another node, which joins the sum when the caller increments nodes. NULL:
 * out of memory. */
struct cop_telemetry_node *cop_telemetry_sum_slot(struct cop_telemetry_sum *s);
/* Whether a and b together (or a alone if b is NULL) have no more nodes than the job. */
bool cop_telemetry_sum_fits(const struct cop_telemetry_sum *a, const struct cop_telemetry_sum *b);
/* Allocates the cells. 0 or -ENOMEM. */
int cop_telemetry_folded_open(struct folded *f, unsigned cells);

#endif
