/* SPDX-License-Identifier: BSD-3-Clause */
/* stats: the counters of a node, with examples of some counted events. counters.def is the only
 * list: each row defines the enum, the JSON key and the text of the manual. Counters are relaxed
 * atomics; reads are not a consistent snapshot. */
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

/* Events for which the first path or reason is stored as an example for the user. */
enum cop_example {
	COP_EXAMPLE_BYPASSED, /* a file larger than --max-cacheable-bytes */
	COP_EXAMPLE_CHANGED,  /* a file that changed while it was in use */
	COP_EXAMPLE_PAST,     /* a file that a program used outside the mount: absolute path */
	COP_EXAMPLE_FALLBACK, /* a command without a view: the reason as a sentence */
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

/* Counts n rejected attempts from outside in fabric.rejected and by kind, derived from the reason:
 * -ETIMEDOUT (silent), -EBADMSG (form), -EACCES (secret), -EALREADY (replay), -EHOSTUNREACH (host),
 * anything else (other). */
void cop_stats_rejected(struct cop_stats *s, int rc, uint64_t n);
/* Any thread. Stores the path if it is the first of its kind. Long paths are truncated to their
 * end, and control bytes replaced by ?. */
void cop_stats_example(struct cop_stats *s, enum cop_example kind, const char *path);
/* The first path of this kind, or "". Once set, it never changes, not even by a drain. */
const char *cop_stats_first(const struct cop_stats *s, enum cop_example kind);
/* "fuse":{"lookup":0,...},"origin":{...},... : writes the groups as members of the open object. */
void cop_stats_json(const struct cop_stats *s, struct cop_json *j);
/* Writes machine-readable text: a line "GROUP.NAME NUMBER" per non-zero counter, then an empty
 * line. */
void cop_stats_lines(const struct cop_stats *s, struct cop_buf *out);
/* Parses this text; modifies it. Counters without a line are zero, unknown names are skipped, and
 * the last of several lines with the same name is used. Returns the text after the empty line; NULL
 * if the format is invalid. */
char *cop_stats_read_lines(char *text, struct cop_stats *s);
/* The requests of programs, received from the kernel; excludes those by which the kernel drops
 * inodes. */
uint64_t cop_stats_requests(const struct cop_stats *s);
/* Adds every counter of `from` to `into`, and its examples if into has none. */
void cop_stats_sum(struct cop_stats *into, const struct cop_stats *from);
/* Moves every counter of `from` to `into`, each in one atomic step: a concurrent event is in
 * exactly one of the two. */
void cop_stats_drain(struct cop_stats *from, struct cop_stats *into);
/* The parts of row c of the list, for tables and manuals. */
const char *cop_counter_group(enum cop_counter c);
const char *cop_counter_name(enum cop_counter c);
const char *cop_counter_unit(enum cop_counter c);
const char *cop_counter_meaning(enum cop_counter c);

#endif
