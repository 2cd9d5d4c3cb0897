/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_JOB_SCHEDULER_PRIV_H
#define COP_JOB_SCHEDULER_PRIV_H

#include "job/scheduler/scheduler.h"

/* Set in the environment of the step's nodes. */
#define COP_SLURM_IN_STEP "COPPER_STEP"
/* How long to wait for a step beyond --ready-timeout: the nodes give up shortly after that timeout,
 * and srun needs time to start them. */
#define COP_SLURM_STEP_MS 30000
#define COP_SLURM_LINE_SIZE 2048 /* maximum size of a node's report, with its NUL */

/* ---- place.c ---- */

/* Facts that the environment does not tell. */
struct cop_slurm_place {
	bool is_task;      /* srun started this process directly */
	bool has_terminal; /* it has a terminal, so it may be interactive */
	bool ends_all;     /* all processes of the step are killed when it ends */
};
enum cop_slurm_how cop_slurm_how_at(
	const struct cop_conf *conf, const struct cop_slurm_place *place);

/* ---- word.c: how a node reports its start ---- */

/* What the command that started the step has read so far. */
struct cop_slurm_heard {
	uint32_t ready;                    /* how many nodes reported ready */
	char failure[COP_SLURM_LINE_SIZE]; /* which node failed first, and why; or "" */
	char lost[COP_SLURM_LINE_SIZE];    /* srun's line about a node that cannot report; or "" */
};
/* Handles a line of the step's output; returns whether it is a node's report. */
bool cop_slurm_hear(struct cop_slurm_heard *h, const char *line);
/* Searches srun's standard error for a node that cannot report. Modifies text. Returns whether one
 * has been found, now or earlier. */
bool cop_slurm_hear_srun(struct cop_slurm_heard *h, char *text);

#endif
