/* SPDX-License-Identifier: BSD-3-Clause */
/* tasks: the tasks that a launcher (srun, mpiexec) starts of one command on one machine: which of
 * them this process is, how many there are, and how they know each other while they live. Each
 * holds a lock on a file, which the kernel takes from it when it ends, whatever ended it; the
 * process that keeps what they share waits until nobody holds it. It starts and ends no process and
 * speaks with no other machine. */
#ifndef COP_TASKS_H
#define COP_TASKS_H

#include "base/base.h"

struct cop_tasks {
	bool launched;      /* by a launcher; else this is one task of one */
	uint32_t local;     /* which of them on this machine, from 0 */
	uint32_t here;      /* how many on this machine */
	bool elsewhere;     /* there are some on other machines */
	uint64_t id;        /* of this start of them all, the same in each on this machine */
	char names[3][128]; /* tasks' lock, first task's lock, word of the first */
	int fd, first_fd;   /* -1 */
};

/* As the environment tells. -EINVAL with a sentence if it contradicts itself. */
int cop_tasks_find(struct cop_tasks *t, struct cop_err *err);

/* This process is one of them from now on, until it ends or leaves; dir: a directory that is the
 * user's alone. 0 or -errno with a sentence. */
int cop_tasks_join(struct cop_tasks *t, const char *dir, struct cop_err *err);
void cop_tasks_leave(struct cop_tasks *t);

/* ---- in a process that the first task forked after it had joined: the keeper ---- */

/* The keeper is none of the tasks. */
void cop_tasks_keep(struct cop_tasks *t);
/* What all of them wait for is there (word), or not: why. */
int cop_tasks_tell(const struct cop_tasks *t, const char *word, const struct cop_err *failure);
/* Returns when all that are expected have come and gone, or when those that have come are gone and
 * no other came for absent_ms: then how many never came. -errno. */
int64_t cop_tasks_wait_gone(const struct cop_tasks *t, uint32_t absent_ms, struct cop_err *err);
/* Nothing is left of them. */
void cop_tasks_end(struct cop_tasks *t);

/* ---- in a task ---- */

/* Waits for what the keeper tells, at most timeout_ms: 0 and its word; or -errno with a sentence:
 * its own, or that the first task has ended, or never came. */
int cop_tasks_await(const struct cop_tasks *t, uint32_t timeout_ms, char *word, size_t size,
	struct cop_err *err);

#endif
