/* SPDX-License-Identifier: BSD-3-Clause */
/* remotestop: stops a tree, or requests its statistics, from a machine that has no node. It finds
 * the nodes in the root's record in the job directory, connects with the job's secret as a client
 * rank and sends the request. After a stop it determines which silent nodes are still running. It
 * does not print. */
#ifndef COP_NODE_REMOTESTOP_H
#define COP_NODE_REMOTESTOP_H

#include "base/base/base.h"
#include "tree/op/op.h"

struct cop_remotestop_stop {
	const char *job_dir, *secret_file; /* secret_file NULL: look where the nodes found it */
	uint32_t timeout_ms;
	/* Called before the first request with the name of the tree, as in the notes beside its
	 * nodes' sockets; may be NULL. */
	void (*known)(void *arg, const char *tree);
	void *arg;
};
struct cop_remotestop_stopped {
	uint32_t stopped, of;   /* nodes */
	uint32_t unwritten;     /* stopped nodes whose final files could not be written */
	uint32_t mounted;       /* stopped nodes that left a dead mount */
	uint32_t unknown;       /* unreachable nodes that may still be running */
	struct cop_buf remarks; /* one per line; the caller frees it */
	char socket[108];       /* not "": the tree is a single node on this machine, to be stopped
				   through this socket; nothing was done */
};
/* Stops every reachable node of the tree recorded by the root in JOBDIR/logs, in about timeout_ms.
 * 0; -EALREADY: already stopped; -EACCES: the secret is missing; -EINVAL: no such directory, or no
 * tree in it; each with a sentence. */
int cop_remotestop_stop(const struct cop_remotestop_stop *what, struct cop_remotestop_stopped *out,
	struct cop_err *err);

/* Sends COP_OP_STATS or COP_OP_TABLE, which are read-only, to all nodes of that tree and fills
 * *sum, which the caller frees in any case; known is not called. socket not "": the tree is a
 * single node on this machine, reachable through this socket; nothing was done. Errors as above,
 * and -EHOSTUNREACH: no node replied. */
int cop_remotestop_ask(const struct cop_remotestop_stop *what, uint8_t op, struct cop_op_sum *sum,
	char socket[108], struct cop_err *err);

#endif
