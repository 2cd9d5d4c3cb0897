/* SPDX-License-Identifier: BSD-3-Clause */
/* record: a tree's record in its job directory for commands that are not nodes (remotestop): how to
 * reach the tree and, after a stop, which nodes remain. job defines the format. */
#ifndef COP_NODE_RECORD_H
#define COP_NODE_RECORD_H

#include "base/base/base.h"
#include "job/conf/conf.h"
#include "node/ctl/ctl.h"
#include "job/dir/dir.h"
#include "job/hosts/hosts.h"
#include "job/topo/topo.h"
#include "tree/op/op.h"

/* A tree from the view of one node. The caller owns the objects it points to. */
struct cop_record {
	const struct cop_conf *conf;
	const char *job_dir, *source; /* absolute; job_dir "": nothing is written */
	const struct cop_job_hosts *hosts;
	const struct cop_job_secret *secret;
	struct cop_topo topo;
	uint64_t config_hash;    /* shared by all nodes of the tree */
	struct cop_ctl_place at; /* the control socket of a single node, which commands reach only
				    on its machine */
};

/* Main thread only; failures are logged. */

/* Called on the root after the tree has formed. */
void cop_record_write(const struct cop_record *r);
/* Called with the sum of a stop of all nodes. Records for a later stop that nothing is left to do,
 * or which ranks are missing; records nothing if more are missing than are listed, or if some did
 * not receive the request. If nothing is left, removes a secret in the job directory; otherwise the
 * secret is needed to stop the others. */
void cop_record_stopped(const struct cop_record *r, const struct cop_op_sum *all);

#endif
