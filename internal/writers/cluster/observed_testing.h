/* SPDX-License-Identifier: BSD-3-Clause */
/* What tests look up, and the product never does. */
#ifndef COP_WRITERS_CLUSTER_OBSERVED_TESTING_H
#define COP_WRITERS_CLUSTER_OBSERVED_TESTING_H

#include <string.h>

#include "writers/cluster/cluster.h"

/* The path of that text, found by looking at all of them; NULL if there is none. */
static inline const struct cop_observed_path *find_in_set(
	const struct cop_pathset *s, const char *text, size_t len)
{
	const struct cop_observed_path *p = NULL;

	while ((p = cop_observed_pathset_next(s, p)))
		if (p->len == len && memcmp(p->text, text, len) == 0)
			return p;
	return NULL;
}

#endif
