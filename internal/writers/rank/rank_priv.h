/* SPDX-License-Identifier: BSD-3-Clause */
/* reports.c handles one node, and sums.c all nodes. Neither calls the other; both call warn.c. No
 * lock is needed: prof and stats own the counters, and the main thread owns everything else. */
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
/* Finds advice on this node's counters. */
void cop_tally_judge_own(
	struct cop_tally *t, const struct cop_stats *stats, struct cop_advices *out);
void cop_tally_judge(const struct cop_op_sum *sum, struct cop_advices *out);
/* Adds to the sum what advice needs besides counters. */
void cop_tally_add_facts(struct cop_tally *t, struct cop_op_sum *sum);

#endif
