/* SPDX-License-Identifier: BSD-3-Clause */
/* record: what a tree leaves in its job directory for commands that are not nodes of it
 * (remotestop): how the tree is reached and, after a stop, which nodes are left. The format is
 * defined by job. */
#ifndef COP_NODE_RECORD_H
#define COP_NODE_RECORD_H

#include "base/base/base.h"
#include "job/conf/conf.h"
#include "node/ctl/ctl.h"
#include "job/dir/dir.h"
#include "job/hosts/hosts.h"
#include "job/topo/topo.h"
#include "tree/op/op.h"

/* A tree, as one of its nodes knows it. The caller owns what it points to. */
struct cop_record {
	const struct cop_conf *conf;
	const char *job_dir, *source; /* absolute; job_dir "": this module writes nothing */
	const struct cop_job_hosts *hosts;
	const struct cop_job_secret *secret;
	struct cop_topo topo;
	uint64_t config_hash;    /* what all nodes of the tree have in common */
	struct cop_ctl_place at; /* the control socket of a node that is alone, which commands reach
				    on its own machine */
};

/* Call all of these on the main thread; failures are logged. */

/* Called on the root when the tree has formed. */
void cop_record_write(const struct cop_record *r);
/* Called with the sum of a stop of all nodes. Writes for a later stop that nothing is left to do,
 * or which ranks are missing; writes nothing if more are missing than are named, or if not all were
 * asked. If nothing is left, removes a secret in the job directory; otherwise the secret is needed
 * to stop the others. */
void cop_record_stopped(const struct cop_record *r, const struct cop_op_sum *all);

#endif
