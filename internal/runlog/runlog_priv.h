/* SPDX-License-Identifier: BSD-3-Clause */
/* runlog.c is the thread; what.c says what is recorded, keep.c where it goes. The first calls the
 * others.
 *
 * `lock` guards the fields below it, and nothing is called under it that may wait. Until the thread
 * has ended, the record and what follows it belong to the thread; the main thread hands it the
 * totals and the end. */
#ifndef COP_RUNLOG_PRIV_H
#define COP_RUNLOG_PRIV_H

#include <limits.h>

#include "runlog/runlog.h"

/* Between two writes of a run that continues, in intervals of telemetry. */
#define BEAT_ROUNDS 6
#define WRITE_MS 8000

/* One round of telemetry, or the totals. */
struct numbers {
	bool has;
	double time_s;
	uint32_t nodes, missing;
	struct cop_stats stats;
	struct cop_cache_usage usage;
	struct cop_treeop_machine machine;
};

struct cop_runlog {
	char store[PATH_MAX], job_dir[PATH_MAX];
	uint32_t interval_ms;
	bool (*ask)(void *ctx, cop_treeop_done *done, void *arg);
	void *ctx;
	pthread_t thread;
	bool started;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool asking, ending, written, over; /* written: the first time, whatever came of it */
	bool left;            /* the main thread waits no longer: the thread frees all of it */
	struct numbers news;  /* of the latest answer, not yet recorded */
	struct cop_err first; /* of the first write */
	uint64_t end_by_ms;   /* when the last write gives up */
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
void cop_runlog_add_round(struct cop_runrec *into, const struct numbers *n);
/* Those of the end: every counter and, with a profile, every operation. */
void cop_runlog_add_totals(
	struct cop_runrec *into, const struct cop_treeop_sum *sum, double time_s);
struct numbers cop_runlog_numbers(const struct cop_treeop_sum *sum, double time_s);

/* ---- keep.c ---- */
/* Writes what is new to the store or, if that fails until the deadline, all of it elsewhere. err
 * says what is wrong with the store. */
void cop_runlog_keep(struct cop_runlog *r, uint64_t deadline_ms, struct cop_err *err);

#endif
