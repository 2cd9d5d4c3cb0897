/* SPDX-License-Identifier: BSD-3-Clause */
/* advice: reports a job's problems, each with the option that helps. It only evaluates the counters
 * of one node or of all nodes: it counts nothing, does no I/O, and does not contact running nodes.
 * A healthy job gets no advice; limits.h defines what is healthy, with a reason for each limit. */
#ifndef COP_PROF_ADVICE_H
#define COP_PROF_ADVICE_H

#include "base/base/base.h"
#include "prof/stats/stats.h"

/* Most important first. From the fourth on, problems only cost time. */
enum cop_advice_kind {
	COP_ADVICE_VIEW,     /* copper run set variables instead of making a view */
	COP_ADVICE_PAST,     /* programs read the source directly, bypassing Copper */
	COP_ADVICE_CHANGED,  /* files changed during the job */
	COP_ADVICE_FALLBACK, /* nodes read the storage instead of a dead node's cache */
	COP_ADVICE_BYPASS,   /* files larger than --max-cacheable-bytes bypassed the tree */
	COP_ADVICE_CACHE,    /* evicted objects were fetched again */
	COP_ADVICE_STORAGE,  /* the storage is slow, the tree is fast */
	COP_ADVICE_MANIFEST, /* the manifest is from a different job */
	COP_ADVICE_UNUSED,   /* unnecessary read-ahead */
	COP_ADVICE_ABSENCES, /* repeated checks of absent names */
	COP_ADVICE_KINDS
};

/* Counters from counters.def, summed over nodes. */
struct cop_advice_facts {
	uint64_t nodes;                         /* in the job, including dead ones */
	uint64_t changed, fallbacks, fell_back; /* fell_back: nodes with at least one fallback */
	uint64_t read_bytes, bypass_bytes;
	uint64_t refetches, refetched_bytes;
	uint64_t cache_needed; /* largest cache that any node would need to avoid evictions */
	uint64_t data, memory; /* data: distinct file bytes cached over time, without copies of
				  other nodes' data; memory: current contents of all caches */
	uint64_t fetched_bytes, used_bytes, wanted_bytes;
	uint64_t prefetched_bytes, later_bytes;
	uint64_t origin_operations, origin_bytes, origin_us, held, held_us;
	uint64_t expires, clears; /* rechecks of absent names, single or combined */
	uint64_t past_files, past_bytes, past_programs;
	uint64_t view_fallbacks;
	const char *bypassed, *changed_file, *past; /* first path of each kind, or "" */
	const char *no_view;                        /* why the first command had no view, or "" */
};

/* Sets the fields that come from counters. The caller sets nodes, fell_back, cache_needed, data and
 * memory. The paths point into stats. */
void cop_advice_count(struct cop_advice_facts *f, const struct cop_stats *stats);

#define COP_ADVICE_SENTENCE 640

struct cop_advice {
	const char *code;                   /* one word, for programs */
	unsigned weight;                    /* importance, 20 to 119 */
	const char *option;                 /* the option that helps; the sentence explains it */
	char sentence[COP_ADVICE_SENTENCE]; /* one line */
};
struct cop_advices {
	unsigned n;
	struct cop_advice at[COP_ADVICE_KINDS]; /* most important first */
};

void cop_advice_give(const struct cop_advice_facts *f, struct cop_advices *out);

/* Appends the first max items as lines "copper: note: SENTENCE", separated by newlines. */
void cop_advice_notes(const struct cop_advices *a, unsigned max, struct cop_buf *out);
/* Appends an empty line and a Markdown section; appends nothing if there is no advice. */
void cop_advice_markdown(const struct cop_advices *a, struct cop_buf *out);
/* Appends the complete cluster_warnings.csv: a header and one line per item. */
void cop_advice_csv(const struct cop_advices *a, struct cop_buf *out);

#endif
