/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_REPORT_FIRSTTOUCH_PRIV_H
#define COP_REPORT_FIRSTTOUCH_PRIV_H

#include "storage/manifest/manifest.h"
#include "writers/cluster/cluster.h"
#include "report/firsttouch/firsttouch.h"

/* The paths touched by any rank. */
struct first_touch {
	struct cop_manifest_set *set;
	char *source; /* from the first rank that has it, without a trailing slash; the caller frees
			 it */
	size_t source_len;
};

/* Adds a rank's file from csv's input. 0, -ENOMEM, or another error with a reason in why; the rows
 * before the error have been added. */
int cop_firsttouch_read(struct first_touch *f, struct cop_csv *csv, struct cop_buf *why);

#endif
