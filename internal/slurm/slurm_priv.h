/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_SLURM_PRIV_H
#define COP_SLURM_PRIV_H

#include "slurm/slurm.h"

/* Set for the nodes of the step: the number of this start. */
#define COP_SLURM_IN_STEP "COPPER_STEP"
/* The nodes give up after --ready-timeout and a little; srun may need a while to start them. */
#define COP_SLURM_STEP_MS 30000
#define COP_SLURM_LINE_SIZE 2048 /* of a node, NUL included */

/* ---- place.c ---- */

bool cop_slurm_number(const char *name, uint64_t *value);
bool cop_slurm_in_a_step(void);
/* As cop_slurm_how, where the step ends all of its processes, or does not. */
enum cop_slurm_how cop_slurm_how_if(const struct cop_conf *conf, bool ends_all);
/* The number of the start of which this node is: one step may start its nodes several times. 0: not
 * in a step, or it has none. */
uint64_t cop_slurm_start(void);
/* The step that this process is a task of, as "JOB.STEP"; false outside of one. A job that was
 * requeued has its steps anew, by the same numbers: "JOB.STEP.RESTARTS" there. */
#define COP_SLURM_STEP_NAME 72
bool cop_slurm_step_name(char name[COP_SLURM_STEP_NAME]);

/* ---- word.c: what a node says of its start ---- */

/* What the command that started the step has heard. */
struct cop_slurm_heard {
	uint32_t ready;                    /* how many said so */
	char failure[COP_SLURM_LINE_SIZE]; /* the first that failed, and why; "" */
};
/* Whether a line of the step's output is a node's word, and not something else of it. */
bool cop_slurm_hear(struct cop_slurm_heard *h, const char *line);
/* Where a task waits for the word, by the control socket of the node. */
struct sockaddr_un;
void cop_slurm_wait_address(const char *control, struct sockaddr_un *out);
/* Takes the datagram apart: NULL: ready; else why not, and the number of the start. */
const char *cop_slurm_understand(char *text, uint64_t *start);

/* ---- watch.c ---- */

/* Whether squeue says so: what it wrote, and its status as of waitpid. */
bool cop_slurm_says_over(const char *said, int status);

#endif
