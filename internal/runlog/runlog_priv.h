/* SPDX-License-Identifier: BSD-3-Clause */
/* runlog.c is what follow calls; what.c says what is recorded, keep.c where it goes. The first
 * calls the others.
 *
 * Until the thread has ended, the record and what follows it belong to the thread; the main thread
 * hands it the totals and the end. */
#ifndef COP_RUNLOG_PRIV_H
#define COP_RUNLOG_PRIV_H

#include <limits.h>

#include "runlog/runlog.h"
#include "runrec/runrec.h"

/* Between two writes of a run that continues, in intervals of telemetry. */
#define BEAT_ROUNDS 6

struct cop_runlog {
	char store[PATH_MAX], job_dir[PATH_MAX];
	uint32_t interval_ms;

	/* The main thread's until the end. */
	enum cop_runrec_status status; /* how it ended, and */
	struct cop_runrec totals;      /* what the job did: one step; and why it ended */

	/* The thread's. */
	struct cop_runrec record;
	uint64_t stored_step; /* points before it are in the store */
	bool kept, kept_beside, complained;
};

/* ---- what.c ---- */
/* The record as it is at the start. */
void cop_runlog_describe(struct cop_runlog *r, const struct cop_runlog_conf *conf);
/* The points of one round, at the record's current step. */
void cop_runlog_add_round(struct cop_runrec *into, const struct cop_follow_numbers *n);
/* Those of the end: every counter and, with a profile, every operation. */
void cop_runlog_add_totals(
	struct cop_runrec *into, const struct cop_treeop_sum *sum, double time_s);

/* ---- keep.c ---- */
/* Writes what is new to the store or, if that fails until the deadline, all of it elsewhere. err
 * says what is wrong with the store. */
void cop_runlog_keep(struct cop_runlog *r, uint64_t deadline_ms, struct cop_err *err);

#endif
