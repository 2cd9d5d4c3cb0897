/* SPDX-License-Identifier: BSD-3-Clause */
/* record: what a tree leaves in its job directory for commands that are not nodes of it (guest):
 * how it is reached, and after a stop which nodes are left. The format is job's. */
#ifndef COP_RECORD_H
#define COP_RECORD_H

#include "base/base.h"
#include "conf/conf.h"
#include "ctl/ctl.h"
#include "job/job.h"
#include "topo/topo.h"
#include "treeop/treeop.h"

/* A tree, as one of its nodes knows it. What it points to is the caller's. */
struct cop_record {
	const struct cop_conf *conf;
	const char *job_dir, *source; /* absolute; job_dir "": nothing is written */
	const struct cop_job_hosts *hosts;
	const struct cop_job_secret *secret;
	struct cop_topo topo;
	uint64_t config_hash;    /* what all nodes of the tree have in common */
	struct cop_ctl_place at; /* the control socket of a node that is alone, which is reached on
				    its own machine */
};

/* All on the main thread; failures are logged. */

/* The root: the tree has formed. */
void cop_record_write(const struct cop_record *r);
/* A stop of all nodes had this sum: writes for a later stop that nothing is left to do, or only the
 * ranks that are missing; nothing if more are missing than are named, or not all were asked. If
 * nothing is left, a secret in the job directory is removed; otherwise it is needed to stop the
 * others. */
void cop_record_stopped(const struct cop_record *r, const struct cop_treeop_sum *all);

#endif
