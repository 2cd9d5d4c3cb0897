/* SPDX-License-Identifier: BSD-3-Clause */
/* reports.c is about one node, sums.c about all of them; neither calls the other. There is no lock:
 * the counts belong to prof and stats, everything else to the main thread. */
#ifndef COP_TALLY_PRIV_H
#define COP_TALLY_PRIV_H

#include "tally/tally.h"

struct cop_tally {
	struct cop_tally_conf conf;
	struct cop_prof *prof;
	struct cop_cache *cache;
};

#endif
