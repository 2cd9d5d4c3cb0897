/* SPDX-License-Identifier: BSD-3-Clause */
/* runlog: what rank 0 records of a job in the run store, and when: the run when the tree is ready,
 * telemetry of all nodes while it runs, the totals and the end when it stops. It never disturbs the
 * job: everything is written by a thread of its own with deadlines, at most one question to the
 * tree is under way, and a thread that hangs in a file system is left behind. What the store does
 * not take is kept in the job directory, or in STORE.d. store defines the tables and runrec the
 * form of those files. */
#ifndef COP_RUNLOG_H
#define COP_RUNLOG_H

#include "base/base.h"
#include "conf/conf.h"
#include "runrec/runrec.h"
#include "treeop/treeop.h"

/* Everything is copied, except what ctx points to. */
struct cop_runlog_conf {
	const struct cop_conf *conf;
	const char *job_dir; /* absolute; "": none */
	const char *source;  /* absolute; "": not known */
	uint32_t nodes;
	uint64_t manifest; /* the hash of what is prefetched; 0: nothing is, or it is not known */
	/* Called on the thread of this module. Asks all nodes for telemetry; done is called once,
	 * on any thread. False: not now, and done is not called. */
	bool (*ask)(void *ctx, cop_treeop_done *done, void *arg);
	void *ctx;
};

struct cop_runlog;

/* Whether the user asked for a record of this job: the store's name as it was given; NULL: no. */
const char *cop_runlog_store(const struct cop_conf *conf);
/* Begins the record of a run that is ready; for one that failed, cop_runlog_end follows at once.
 * Relative names are taken from the working directory. NULL: no record was asked for, or there is
 * no memory, which is logged. */
struct cop_runlog *cop_runlog_start(const struct cop_runlog_conf *conf);
/* Waits a fifth of a second at most. False if it is known by then that the store cannot be written
 * to, with a sentence. NULL is fine. */
bool cop_runlog_is_good(struct cop_runlog *r, struct cop_err *err);
/* Main thread, before the end: the sums of all nodes that have stopped. NULL is fine. */
void cop_runlog_totals(struct cop_runlog *r, const struct cop_treeop_sum *sum);
/* Main thread, once. Writes the end of the run, and waits for that no longer than ten seconds. */
void cop_runlog_end(struct cop_runlog *r, enum cop_runrec_status status, const char *reason);
/* After the end, when no question to the tree is under way. NULL is fine. */
void cop_runlog_free(struct cop_runlog *r);

#endif
