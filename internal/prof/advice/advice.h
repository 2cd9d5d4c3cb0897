/* SPDX-License-Identifier: BSD-3-Clause */
/* advice: reports problems of a job, each with the option that helps. It only evaluates counters of
 * one node or of all: it does not count, read or write, and does not contact running nodes. A
 * healthy job gets no advice; limits.h defines what is healthy, with a reason for each limit. */
#ifndef COP_PROF_ADVICE_H
#define COP_PROF_ADVICE_H

#include "base/base/base.h"
#include "prof/stats/stats.h"

/* In order of importance: from the fourth on, they cost only time. */
enum cop_advice_kind {
	COP_ADVICE_VIEW,     /* commands of copper run had only variables */
	COP_ADVICE_PAST,     /* programs used the source itself, without Copper */
	COP_ADVICE_CHANGED,  /* files changed under the job */
	COP_ADVICE_FALLBACK, /* nodes read the storage in place of a dead one */
	COP_ADVICE_BYPASS,   /* files beyond --max-cacheable-bytes were read past the tree */
	COP_ADVICE_CACHE,    /* evicted objects were fetched again */
	COP_ADVICE_STORAGE,  /* a slow storage beside a fast tree */
	COP_ADVICE_MANIFEST, /* a manifest of another job */
	COP_ADVICE_UNUSED,   /* read ahead needlessly */
	COP_ADVICE_ABSENCES, /* absent names were checked again and again */
	COP_ADVICE_KINDS
};

/* Sums over nodes, as their counters have them (counters.def). */
struct cop_advice_facts {
	uint64_t nodes;                         /* of the job, dead ones included */
	uint64_t changed, fallbacks, fell_back; /* fell_back: nodes with at least one fallback */
	uint64_t read_bytes, bypass_bytes;
	uint64_t refetches, refetched_bytes;
	uint64_t cache_needed; /* the cache size that would have held everything on the node that
				  needs the most */
	uint64_t data,
		memory; /* the distinct bytes of files that passed through the caches, without each
			   node's copies of data that others keep; and the contents of all caches */
	uint64_t fetched_bytes, used_bytes, wanted_bytes;
	uint64_t prefetched_bytes, later_bytes;
	uint64_t origin_operations, origin_bytes, origin_us, held, held_us;
	uint64_t expires, clears; /* checks of absent names, alone or with others */
	uint64_t past_files, past_bytes, past_programs;
	uint64_t view_fallbacks;
	const char *bypassed, *changed_file, *past; /* the first path of each, or "" */
	const char *no_view;                        /* the first reason of a fallback, or "" */
};

/* Fills in the fields that follow from these nodes' counters. The caller sets nodes, fell_back,
 * cache_needed, data and memory. The paths point into stats. */
void cop_advice_count(struct cop_advice_facts *f, const struct cop_stats *stats);

#define COP_ADVICE_SENTENCE 640

struct cop_advice {
	const char *code;                   /* one word, for programs */
	unsigned weight;                    /* 20 to 119: how much it matters */
	const char *option;                 /* the option that helps; the sentence says how */
	char sentence[COP_ADVICE_SENTENCE]; /* one line */
};
struct cop_advices {
	unsigned n;
	struct cop_advice at[COP_ADVICE_KINDS]; /* the most important one first */
};

void cop_advice_give(const struct cop_advice_facts *f, struct cop_advices *out);

/* Appends the first max, each as a line "copper: note: SENTENCE", with newlines between lines only.
 */
void cop_advice_notes(const struct cop_advices *a, unsigned max, struct cop_buf *out);
/* Appends them as a section of a Markdown file, after an empty line; nothing for none. */
void cop_advice_markdown(const struct cop_advices *a, struct cop_buf *out);
/* Appends the whole of cluster_warnings.csv: the header, and a line for each piece of advice. */
void cop_advice_csv(const struct cop_advices *a, struct cop_buf *out);

#endif
