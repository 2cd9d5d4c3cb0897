/* SPDX-License-Identifier: BSD-3-Clause */
/* Helpers for tests: tasks of one machine that share a keeper, in a directory of the test's own. */
#ifndef COP_JOB_TASKS_TESTING_H
#define COP_JOB_TASKS_TESTING_H

#include "job/scheduler/scheduler.h"

static char dir[64] __attribute__((unused));
static struct cop_err err;

/* Removes all variables that would mark this process as a launcher's task. */
static inline void forget_launcher(void)
{
	static const char *const names[] = {"SLURM_STEP_ID", "OMPI_COMM_WORLD_LOCAL_RANK",
		"MPI_LOCALRANKID", "MPI_LOCALNRANKS", "PMI_SIZE", "PALS_LOCAL_RANKID",
		"PALS_LOCAL_SIZE", "PMI_LOCAL_SIZE", "FLUX_TASK_LOCAL_ID", "FLUX_JOB_SIZE",
		"FLUX_JOB_NNODES"};

	for (size_t i = 0; i < COP_ARRAY_SIZE(names); i++)
		unsetenv(names[i]);
}

static inline int make_dir(void **state)
{
	(void)state;
	forget_launcher();
	strcpy(dir, "/tmp/cop-tasks-test.XXXXXX");
	assert_non_null(mkdtemp(dir));
	err = (struct cop_err){0};
	return 0;
}

/* The directory must be empty once the tasks have ended, however they ended. */
static inline int remove_dir(void **state)
{
	(void)state;
	return rmdir(dir);
}

static inline struct cop_tasks one_of(uint32_t local, uint32_t here)
{
	return (struct cop_tasks){.launched = true,
		.local = local,
		.here = here,
		.id = 7,
		.fd = -1,
		.first_fd = -1,
		.word_fd = -1};
}

/* Polls once: 0, 1 (this call leads), or an error. */
static inline int await_now(struct cop_tasks *t, char *word)
{
	return cop_tasks_await(t, 1, NULL, word, 64, &err);
}

/* The leading call becomes its own keeper. */
static inline void start_keeper(struct cop_tasks *keeper, uint32_t local, uint32_t here)
{
	char word[64];

	*keeper = one_of(local, here);
	assert_int_equal(cop_tasks_join(keeper, dir, &err), 0);
	assert_int_equal(await_now(keeper, word), 1);
	assert_string_equal(word, "");
	cop_tasks_keep(keeper);
}

static inline void end_keeper(struct cop_tasks *keeper)
{
	assert_int_equal(cop_tasks_wait_idle(keeper, 0, &err), 0);
	cop_tasks_close(keeper);
	cop_tasks_end(keeper);
}

#endif
