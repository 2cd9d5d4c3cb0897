/* SPDX-License-Identifier: BSD-3-Clause */
/* runlog.c implements follow's callbacks and calls the other files: what.c defines what is
 * recorded, keep.c where it is stored.
 *
 * Until the thread ends, it owns the record and the fields after it; the main thread passes it the
 * totals and the end. */
#ifndef COP_WRITERS_RUNS_RUNLOG_PRIV_H
#define COP_WRITERS_RUNS_RUNLOG_PRIV_H

#include <limits.h>

#include "writers/runs/runs.h"

/* The write interval of a running job, in telemetry intervals. */
#define BEAT_ROUNDS 6

struct cop_runlog {
	char store[PATH_MAX], job_dir[PATH_MAX];
	uint32_t interval_ms;

	/* Owned by the main thread until the end. */
	enum cop_runrec_status status; /* how the run ended */
	struct cop_op_exits exits;     /* of the commands */
	uint32_t missing;              /* nodes that did not answer the stop */
	bool has_exits, by_signal;     /* by_signal: the node was terminated by a signal */
	uint64_t kills;                /* OOM kills before the run */
	struct cop_runrec totals; /* totals of the job, as one step; and the reason of its end */

	/* Owned by the thread. */
	struct cop_runrec record;
	uint64_t stored_step; /* points before this step are in the store */
	bool kept, kept_beside, complained;
	struct cop_take *take; /* the logs of programs in the job directory */
};

/* ---- what.c ---- */
/* Fills in the record as known at the start. */
void cop_runlog_describe(struct cop_runlog *r, const struct cop_runlog_conf *conf);
/* Adds the points of one round at the record's current step. */
void cop_runlog_add_round(struct cop_runrec *into, const struct cop_follow_numbers *n);
/* Adds the final points: every counter and, with a profile, every operation. */
void cop_runlog_add_totals(struct cop_runrec *into, const struct cop_op_sum *sum, double time_s);

/* ---- keep.c ---- */
/* Writes new data to the store; if that fails until the deadline, writes the whole record
 * elsewhere. err has the error of the store. */
void cop_runlog_keep(struct cop_runlog *r, uint64_t deadline_ms, struct cop_err *err);

/* Imports the programs' logs into the store. */
void cop_runlog_take(struct cop_runlog *r, uint64_t deadline_ms);

#endif
