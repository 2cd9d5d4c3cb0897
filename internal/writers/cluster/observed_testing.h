/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries for tests only. */
#ifndef COP_WRITERS_CLUSTER_OBSERVED_TESTING_H
#define COP_WRITERS_CLUSTER_OBSERVED_TESTING_H

#include <string.h>

#include "writers/cluster/cluster.h"

/* Finds a path by linear search; NULL if absent. */
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
