/* SPDX-License-Identifier: BSD-3-Clause */
/* record: writes a tree's record into the job directory, for commands that are not nodes
 * (remotestop). It says how to reach the tree and, after a stop, which nodes remain. job defines
 * the format. */
#ifndef COP_NODE_RECORD_H
#define COP_NODE_RECORD_H

#include "base/base/base.h"
#include "job/conf/conf.h"
#include "node/ctl/ctl.h"
#include "job/dir/dir.h"
#include "job/hosts/hosts.h"
#include "job/topo/topo.h"
#include "tree/op/op.h"

/* A tree as one node knows it. The caller owns the objects it points to. */
struct cop_record {
	const struct cop_conf *conf;
	const char *job_dir, *source; /* absolute; job_dir "": nothing is written */
	const struct cop_job_hosts *hosts;
	const struct cop_job_secret *secret;
	struct cop_topo topo;
	uint64_t config_hash;    /* shared by all nodes of the tree */
	struct cop_ctl_place at; /* the control socket, if the node is alone: commands can reach it
				    only on its own machine */
};

/* Main thread only; failures are logged. */

/* Call it on the root once the tree has formed. */
void cop_record_write(const struct cop_record *r);
/* Call it with the sums of a stop of all nodes. Records for a later stop that nothing is left to
 * do, or which ranks are missing. Records nothing if more ranks are missing than the sum lists, or
 * if some did not receive the request. Removes a secret in the job directory unless it is still
 * needed to stop the missing nodes. */
void cop_record_stopped(const struct cop_record *r, const struct cop_op_sum *all);

#endif
