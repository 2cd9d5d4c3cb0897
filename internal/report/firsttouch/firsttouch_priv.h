/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_REPORT_FIRSTTOUCH_PRIV_H
#define COP_REPORT_FIRSTTOUCH_PRIV_H

#include "storage/manifest/manifest.h"
#include "writers/cluster/cluster.h"
#include "report/firsttouch/firsttouch.h"

/* The paths touched by any rank. */
struct first_touch {
	struct cop_manifest_set *set;
	char *source; /* taken from the first rank that has one, without a trailing slash; freed by
			 the caller */
	size_t source_len;
};

/* Adds the paths of a rank's file, read through csv. Returns 0, -ENOMEM, or another error with the
 * reason in why; rows before the error have been added. */
int cop_firsttouch_read(struct first_touch *f, struct cop_csv *csv, struct cop_buf *why);

#endif
