/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_TOUCHED_PRIV_H
#define COP_TOUCHED_PRIV_H

#include "manifest/manifest.h"
#include "observed/observed.h"
#include "touched/touched.h"

/* What ranks touched, put together. */
struct first_touch {
	struct cop_manifest_set *set;
	char *source; /* of the first rank that named one, without a slash at its end; the caller
			 frees it */
	size_t source_len;
};

/* Adds a rank's file, from what csv was opened for. 0, -ENOMEM, or another error and why says what
 * is wrong: what stood before that was added. */
int cop_touched_read(struct first_touch *f, struct cop_csv *csv, struct cop_buf *why);

#endif
