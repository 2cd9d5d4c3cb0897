/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_NODE_PART_PRIV_H
#define COP_NODE_PART_PRIV_H

#include <stdatomic.h>

#include "part.h"

struct cop_part {
	struct cop_part_conf conf;
	struct cop_op *treeop;
	struct cop_fetch *_Atomic fetch; /* this and the next two: NULL until created */
	struct cop_fuse *_Atomic fs;
	struct cop_prefetch *_Atomic prefetch;
	_Atomic bool forgot_early; /* a path was invalidated before there was a mount */
	/* Main thread: when the next snapshot and the next look at the counters are due; 0:
	 * cop_part_tend has not been called. */
	uint64_t snapshot_ms, look_ms;
};

/* Any thread; ctx is the part. Forgets a path and everything below it, as struct cop_op_ops
 * requires. */
int cop_part_forget(void *ctx, const char *path, void (*then)(void *arg), void *arg);

#endif
