/* SPDX-License-Identifier: BSD-3-Clause */
/* Where this process stands in a job of Slurm, as the environment and /proc tell. */
#include "slurm/slurm_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool cop_slurm_number(const char *name, uint64_t *value)
{
	const char *text = getenv(name);

	return text && *text && cop_parse_u64(text, value) == 0;
}

/* Slurm numbers batch scripts, interactive shells and the like from the top of 32 bits. */
bool cop_slurm_in_a_step(void)
{
	uint64_t id;

	return cop_slurm_number("SLURM_STEP_ID", &id) && id < UINT32_MAX - 16;
}

/* slurmstepd makes a group for each step, and empties it when the command has returned. */
static bool tracked_by_cgroup(void)
{
	char *text = NULL;
	size_t len;
	bool yes;

	if (cop_read_file("/proc/self/cgroup", 65536, &text, &len))
		return false;
	yes = strstr(text, "/step_") != NULL;
	free(text);
	return yes;
}

enum cop_slurm_how cop_slurm_how_if(const struct cop_conf *conf, bool ends_all)
{
	const char *list = getenv("SLURM_JOB_NODELIST");
	uint64_t tasks, nodes, task;

	if (conf->foreground || conf->hosts || conf->rank >= 0 || !list || !*list ||
		getenv(COP_SLURM_IN_STEP))
		return COP_SLURM_HERE;
	if (!cop_slurm_in_a_step())
		return COP_SLURM_BY_STEP;
	/* One task in a job of several nodes is a shell, not a launcher's task. */
	if (cop_slurm_number("SLURM_STEP_NUM_TASKS", &tasks) && tasks == 1 &&
		cop_slurm_number("SLURM_JOB_NUM_NODES", &nodes) && nodes > 1)
		return COP_SLURM_BY_STEP;
	if (!ends_all)
		return COP_SLURM_HERE;
	return cop_slurm_number("SLURM_PROCID", &task) && task > 0 ? COP_SLURM_BY_TASK_0
								   : COP_SLURM_BY_STEP;
}

enum cop_slurm_how cop_slurm_how(const struct cop_conf *conf)
{
	return cop_slurm_how_if(conf, tracked_by_cgroup());
}

bool cop_slurm_ends_with_step(void)
{
	return !getenv(COP_SLURM_IN_STEP) && cop_slurm_in_a_step() && tracked_by_cgroup();
}

bool cop_slurm_step_name(char name[COP_SLURM_STEP_NAME])
{
	uint64_t job, step, restarts;
	int len;

	if (!cop_slurm_in_a_step() || !cop_slurm_number("SLURM_JOB_ID", &job) ||
		!cop_slurm_number("SLURM_STEP_ID", &step))
		return false;
	len = snprintf(name, COP_SLURM_STEP_NAME, "%" PRIu64 ".%" PRIu64, job, step);
	if (cop_slurm_number("SLURM_RESTART_COUNT", &restarts) && restarts)
		snprintf(name + len, (size_t)(COP_SLURM_STEP_NAME - len), ".%" PRIu64, restarts);
	return true;
}

bool cop_slurm_is_node(void)
{
	return getenv(COP_SLURM_IN_STEP) != NULL;
}

uint64_t cop_slurm_start(void)
{
	uint64_t start;

	return cop_slurm_number(COP_SLURM_IN_STEP, &start) ? start : 0;
}
