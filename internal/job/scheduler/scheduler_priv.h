/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_JOB_SCHEDULER_PRIV_H
#define COP_JOB_SCHEDULER_PRIV_H

#include "job/scheduler/scheduler.h"

/* Set for the nodes of the step. */
#define COP_SLURM_IN_STEP "COPPER_STEP"
/* How long to wait for a step beyond --ready-timeout: its nodes give up a little after that
 * timeout, and srun needs time to start them. */
#define COP_SLURM_STEP_MS 30000
#define COP_SLURM_LINE_SIZE 2048 /* maximum bytes of a node's report, NUL included */

/* ---- place.c ---- */

/* Facts not found in the environment. */
struct cop_slurm_place {
	bool is_task;      /* srun started this process directly */
	bool has_terminal; /* it may be interactive */
	bool ends_all;     /* the end of the step kills all of its processes */
};
enum cop_slurm_how cop_slurm_how_at(
	const struct cop_conf *conf, const struct cop_slurm_place *place);

/* ---- word.c: a node's report of its start ---- */

/* The reports read by the command that started the step. */
struct cop_slurm_heard {
	uint32_t ready;                    /* nodes that reported ready */
	char failure[COP_SLURM_LINE_SIZE]; /* the first failed node, with the reason; "" */
	char lost[COP_SLURM_LINE_SIZE];    /* srun's line about a node that cannot report; "" */
};
/* Whether a line of the step's output is a node's report. */
bool cop_slurm_hear(struct cop_slurm_heard *h, const char *line);
/* Searches srun's standard error for a node that cannot report; changes text. Returns whether one
 * was found now or earlier. */
bool cop_slurm_hear_srun(struct cop_slurm_heard *h, char *text);

#endif
