/* SPDX-License-Identifier: BSD-3-Clause */
/* reports.c is one node, sums.c all of them; neither calls the other. There is no lock: what is
 * counted is prof's and stats's, everything else the main thread's. */
#ifndef COP_TALLY_PRIV_H
#define COP_TALLY_PRIV_H

#include "tally/tally.h"

struct cop_tally {
	struct cop_tally_conf conf;
	struct cop_prof *prof;
	struct cop_cache *cache;
};

#endif
