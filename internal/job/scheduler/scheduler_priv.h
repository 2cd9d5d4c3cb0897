/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_JOB_SCHEDULER_PRIV_H
#define COP_JOB_SCHEDULER_PRIV_H

#include "job/scheduler/scheduler.h"

/* Set for the nodes of the step. */
#define COP_SLURM_IN_STEP "COPPER_STEP"
/* How long to wait for a step beyond --ready-timeout: its nodes give up after that timeout and a
 * little, and srun may need a while to start them. */
#define COP_SLURM_STEP_MS 30000
#define COP_SLURM_LINE_SIZE 2048 /* of a node's report, NUL included */

/* ---- place.c ---- */

/* Facts that are not in the environment. */
struct cop_slurm_place {
	bool is_task;      /* srun started this very process */
	bool has_terminal; /* a user may be sitting there */
	bool ends_all;     /* the end of the step ends all of its processes */
};
enum cop_slurm_how cop_slurm_how_at(
	const struct cop_conf *conf, const struct cop_slurm_place *place);

/* ---- word.c: what a node says of its start ---- */

/* The reports that the command that started the step has read. */
struct cop_slurm_heard {
	uint32_t ready;                    /* how many reported ready */
	char failure[COP_SLURM_LINE_SIZE]; /* the first that failed, and why; "" */
	char lost[COP_SLURM_LINE_SIZE];    /* srun's line about a node that cannot report; "" */
};
/* Whether a line of the step's output is a node's report rather than other output. */
bool cop_slurm_hear(struct cop_slurm_heard *h, const char *line);
/* Looks in srun's standard error for a node that cannot report; changes text. Returns whether there
 * is one now, or has been. */
bool cop_slurm_hear_srun(struct cop_slurm_heard *h, char *text);

#endif
