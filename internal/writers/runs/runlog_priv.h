/* SPDX-License-Identifier: BSD-3-Clause */
/* runlog.c holds what follow calls, and calls the other files: what.c says what is recorded, keep.c
 * where it goes.
 *
 * Until the thread has ended, it owns the record and what follows it; the main thread hands it the
 * totals and the end. */
#ifndef COP_WRITERS_RUNS_RUNLOG_PRIV_H
#define COP_WRITERS_RUNS_RUNLOG_PRIV_H

#include <limits.h>

#include "writers/runs/runs.h"

/* How often a run that continues is written, in intervals of telemetry. */
#define BEAT_ROUNDS 6

struct cop_runlog {
	char store[PATH_MAX], job_dir[PATH_MAX];
	uint32_t interval_ms;

	/* Owned by the main thread until the end. */
	enum cop_runrec_status status; /* how the run ended */
	struct cop_op_exits exits;     /* of the commands */
	uint32_t missing;              /* nodes that did not answer the stop */
	bool has_exits, by_signal;     /* by_signal: the node was ended by one */
	uint64_t kills;                /* by the out-of-memory killer, before the run */
	struct cop_runrec totals;      /* what the job did, as one step; and why it ended */

	/* Owned by the thread. */
	struct cop_runrec record;
	uint64_t stored_step; /* points before it are in the store */
	bool kept, kept_beside, complained;
	struct cop_take *take; /* what programs have logged in the job directory */
};

/* ---- what.c ---- */
/* The record as it is at the start. */
void cop_runlog_describe(struct cop_runlog *r, const struct cop_runlog_conf *conf);
/* Adds the points of one round, at the record's current step. */
void cop_runlog_add_round(struct cop_runrec *into, const struct cop_follow_numbers *n);
/* Adds the points of the end: every counter and, with a profile, every operation. */
void cop_runlog_add_totals(struct cop_runrec *into, const struct cop_op_sum *sum, double time_s);

/* ---- keep.c ---- */
/* Writes what is new to the store or, if that fails until the deadline, all of it elsewhere. err
 * says what is wrong with the store. */
void cop_runlog_keep(struct cop_runlog *r, uint64_t deadline_ms, struct cop_err *err);

/* Takes what programs have logged into the store. */
void cop_runlog_take(struct cop_runlog *r, uint64_t deadline_ms);

#endif
