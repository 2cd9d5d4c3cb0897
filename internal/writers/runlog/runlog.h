/* SPDX-License-Identifier: BSD-3-Clause */
/* runlog: what rank 0 records of a job in the run store: the run when the tree is ready, the
 * telemetry of all nodes while it runs, the totals and the end when it stops. follow decides when,
 * store defines the tables, and runrec defines the form of the files that keep what the store does
 * not take: in the job directory, or in STORE.d. */
#ifndef COP_WRITERS_RUNLOG_H
#define COP_WRITERS_RUNLOG_H

#include "base/base/base.h"
#include "job/conf/conf.h"
#include "writers/follow/follow.h"

struct cop_runlog_conf {
	const struct cop_conf *conf;
	const char *job_dir; /* absolute; "": none */
	const char *source;  /* absolute; "": not known */
	uint32_t nodes;
	uint64_t manifest; /* the hash of what is prefetched; 0: nothing is prefetched, or it is not
			      known */
};

/* Adds a follower that records this run, if the user asked for it by --store or the environment.
 * Relative names are taken from the working directory. If that fails, the log says so. */
void cop_runlog_follow(struct cop_follow *f, const struct cop_runlog_conf *conf);

#endif
