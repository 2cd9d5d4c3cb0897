/* SPDX-License-Identifier: BSD-3-Clause */
/* reports.c is about one node, sums.c about all of them. Neither calls the other, and both call
 * warn.c. There is no lock: the counts belong to prof and stats, everything else to the main
 * thread. */
#ifndef COP_WRITERS_RANK_PRIV_H
#define COP_WRITERS_RANK_PRIV_H

#include "prof/advice/advice.h"
#include "writers/rank/rank.h"

struct cop_tally {
	struct cop_tally_conf conf;
	struct cop_prof *prof;
	struct cop_cache *cache;
};

/* ---- warn.c ---- */
/* Judges the counters of this node. */
void cop_tally_judge_own(
	struct cop_tally *t, const struct cop_stats *stats, struct cop_advices *out);
void cop_tally_judge(const struct cop_op_sum *sum, struct cop_advices *out);
/* Adds to the counters what else a sum has that advice judges. */
void cop_tally_add_facts(struct cop_tally *t, struct cop_op_sum *sum);

#endif
