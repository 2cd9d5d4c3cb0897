/* SPDX-License-Identifier: BSD-3-Clause */
/* stats: the counters of a node. counters.def is the only list: each row defines the enum, the JSON
 * key and the text of the manual. Counters are relaxed atomics; reading them does not give a
 * snapshot of one moment. */
#ifndef COP_STATS_H
#define COP_STATS_H

#include <stdatomic.h>

#include "base/base.h"

enum cop_counter {
#define COP_COUNTER(id, group, name, unit, meaning) COP_##id,
#include "stats/counters.def"
#undef COP_COUNTER
	COP_COUNTERS
};

struct cop_stats {
	_Atomic uint64_t value[COP_COUNTERS];
};

static inline void cop_stats_add(struct cop_stats *s, enum cop_counter c, uint64_t n)
{
	if (s)
		atomic_fetch_add_explicit(&s->value[c], n, memory_order_relaxed);
}
static inline uint64_t cop_stats_get(const struct cop_stats *s, enum cop_counter c)
{
	return atomic_load_explicit(&((struct cop_stats *)s)->value[c], memory_order_relaxed);
}

/* Counts n attempts from outside in fabric.rejected and by their kind, which follows from why they
 * were refused: -ETIMEDOUT (silent), -EBADMSG (form), -EACCES (secret), -EALREADY (replay),
 * -EHOSTUNREACH (host), anything else (other). */
void cop_stats_rejected(struct cop_stats *s, int rc, uint64_t n);
/* "fuse":{"lookup":0,...},"origin":{...},... : the groups, without the outer braces. */
void cop_stats_json(const struct cop_stats *s, struct cop_buf *out);
/* Adds every counter of `from` to `into`. */
void cop_stats_sum(struct cop_stats *into, const struct cop_stats *from);
/* Moves every counter of `from` into `into`, each in one atomic step, so an event that is counted
 * meanwhile is in exactly one of them. */
void cop_stats_take(struct cop_stats *from, struct cop_stats *into);
/* Row c of the list, for tables and manuals. */
const char *cop_counter_group(enum cop_counter c);
const char *cop_counter_name(enum cop_counter c);
const char *cop_counter_unit(enum cop_counter c);
const char *cop_counter_meaning(enum cop_counter c);

#endif
