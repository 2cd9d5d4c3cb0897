/* SPDX-License-Identifier: BSD-3-Clause */
/* stats: a node's counters, with examples of some counted events. counters.def is the single
 * source: each row defines the enum constant, the JSON key and the text in the manual. Counters are
 * relaxed atomics; reads are not a consistent snapshot. */
#ifndef COP_PROF_STATS_H
#define COP_PROF_STATS_H

#include <stdatomic.h>

#include "base/base/base.h"
#include "base/base/json.h"

enum cop_counter {
#define COP_COUNTER(id, group, name, unit, meaning) COP_##id,
#include "prof/stats/counters.def"
#undef COP_COUNTER
	COP_COUNTERS
};

/* Events for which we keep the first path or reason, to show the user an example. */
enum cop_example {
	COP_EXAMPLE_BYPASSED, /* a file larger than --max-cacheable-bytes */
	COP_EXAMPLE_CHANGED,  /* a file that changed while it was in use */
	COP_EXAMPLE_PAST,     /* a file used outside the mount: absolute path */
	COP_EXAMPLE_FALLBACK, /* a command that ran without a view: the reason, as a sentence */
	COP_EXAMPLES
};
#define COP_EXAMPLE_SIZE 256

struct cop_stats {
	_Atomic uint64_t value[COP_COUNTERS];
	struct {
		_Atomic int state; /* stats.c */
		char path[COP_EXAMPLE_SIZE];
	} example[COP_EXAMPLES];
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

/* Counts n rejected outside attempts in fabric.rejected and in the counter for their kind, which rc
 * selects: -ETIMEDOUT (silent), -EBADMSG (malformed), -EACCES (secret), -EALREADY (replay),
 * -EHOSTUNREACH (host), anything else (other). */
void cop_stats_rejected(struct cop_stats *s, int rc, uint64_t n);
/* Any thread. Stores the path if it is the first of its kind. A long path keeps only its tail, and
 * control bytes become '?'. */
void cop_stats_example(struct cop_stats *s, enum cop_example kind, const char *path);
/* The first path of this kind, or "". Once set, it never changes; a drain leaves it alone. */
const char *cop_stats_first(const struct cop_stats *s, enum cop_example kind);
/* Writes the groups as members of the open object: "fuse":{"lookup":0,...},"origin":{...},... */
void cop_stats_json(const struct cop_stats *s, struct cop_json *j);
/* Writes machine-readable text: one line "GROUP.NAME NUMBER" per non-zero counter, then an empty
 * line. */
void cop_stats_lines(const struct cop_stats *s, struct cop_buf *out);
/* Parses that text in place, modifying it. Missing counters become zero, unknown names are skipped,
 * and the last line wins if a name repeats. Returns the text after the empty line, or NULL if the
 * input is malformed. */
char *cop_stats_read_lines(char *text, struct cop_stats *s);
/* Number of requests that the kernel sent on behalf of programs, so not FORGET. */
uint64_t cop_stats_requests(const struct cop_stats *s);
/* Adds every counter of `from` to `into`, and copies each example that `into` lacks. */
void cop_stats_sum(struct cop_stats *into, const struct cop_stats *from);
/* Moves every counter of `from` to `into`, each in one atomic step: a concurrent event is in
 * exactly one of the two. */
void cop_stats_drain(struct cop_stats *from, struct cop_stats *into);
/* The columns of row c of counters.def, for tables and manuals. */
const char *cop_counter_group(enum cop_counter c);
const char *cop_counter_name(enum cop_counter c);
const char *cop_counter_unit(enum cop_counter c);
const char *cop_counter_meaning(enum cop_counter c);

#endif
