/* SPDX-License-Identifier: BSD-3-Clause */
/* remotestop: a command that stops a tree from outside, or asks it for its statistics. It is not a
 * node and needs none on its machine: it finds the nodes in the record that the root left in the
 * job directory, joins with the job's secret under a rank after theirs, and asks. After a stop it
 * finds out which of the nodes that did not answer still run. It asks a tree for nothing else, and
 * does not print. */
#ifndef COP_NODE_REMOTESTOP_H
#define COP_NODE_REMOTESTOP_H

#include "base/base/base.h"
#include "tree/op/op.h"

struct cop_remotestop_stop {
	const char *job_dir, *secret_file; /* secret_file NULL: where the nodes found it */
	uint32_t timeout_ms;
	/* Called with the name of the tree, as on its nodes' sockets, before any node is asked; may
	 * be NULL. */
	void (*known)(void *arg, const char *tree);
	void *arg;
};
struct cop_remotestop_stopped {
	uint32_t stopped, of;   /* nodes */
	uint32_t unwritten;     /* of those: nodes whose final files could not be written */
	uint32_t mounted;       /* of those: nodes that left a dead mount */
	uint32_t unknown;       /* nodes that were not reached and may still run */
	struct cop_buf remarks; /* one per line; the caller frees it */
	char socket[108];       /* not "": the tree is one node on this machine, which must be asked
				   there; nothing was done */
};
/* Stops every reachable node of the tree that the root recorded in JOBDIR/logs, in about
 * timeout_ms. 0; -EALREADY: it was stopped before; -EACCES: the secret is missing; -EINVAL: no such
 * directory, or no tree in it; each with a sentence. */
int cop_remotestop_stop(const struct cop_remotestop_stop *what, struct cop_remotestop_stopped *out,
	struct cop_err *err);

/* Asks all nodes of that tree for COP_OP_STATS or COP_OP_TABLE, which changes nothing, and fills
 * *sum, which the caller frees in any case; known is not called. socket not "": the tree is one
 * node on this machine, which must be asked there; nothing was done. Errors as above, and
 * -EHOSTUNREACH: no node answered. */
int cop_remotestop_ask(const struct cop_remotestop_stop *what, uint8_t op, struct cop_op_sum *sum,
	char socket[108], struct cop_err *err);

#endif
