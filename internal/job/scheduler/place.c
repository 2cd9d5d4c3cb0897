/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds this process's place in a Slurm job from the environment and /proc.
 *
 * If Slurm tracks processes with control groups, a background process of a task of `srun copper
 * mount` is killed with the step; otherwise it outlives the job. So we refuse such a start
 * everywhere, to have one rule. A shell or script that continues after this command may be the only
 * task of its step, or be at a terminal; it starts nodes the way the job's script does. Other
 * launchers use srun too; whether their processes outlive the step is up to them. */
#include "job/hosts/hosts.h"
#include "job/scheduler/scheduler_priv.h"

#include <fcntl.h>

static bool variable_number(const char *name, uint64_t *value)
{
	const char *text = getenv(name);

	return text && *text && cop_parse_u64(text, value) == 0;
}

bool cop_slurm_in_a_step(void)
{
	uint64_t id;

	return cop_job_slurm_step(&id);
}

bool cop_slurm_is_node(void)
{
	return getenv(COP_SLURM_IN_STEP) != NULL;
}

/* slurmstepd is the parent of the tasks. A parent that we cannot see is not this user's shell, so
 * it counts as slurmstepd. */
static bool is_task(void)
{
	char path[64], *name;
	size_t len;
	bool yes;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)getppid());
	if (cop_read_file(path, 64, &name, &len))
		return true;
	yes = strcmp(name, "slurmstepd\n") == 0;
	free(name);
	return yes;
}

static bool has_terminal(void)
{
	int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* slurmstepd creates a control group for each step, and kills the processes in it when the command
 * has exited. */
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

static bool by_other_launcher(void)
{
	static const char *const names[] = {"PALS_LOCAL_RANKID", "OMPI_COMM_WORLD_LOCAL_RANK",
		"MPI_LOCALRANKID", "FLUX_TASK_LOCAL_ID"};

	for (size_t i = 0; i < COP_ARRAY_SIZE(names); i++)
		if (getenv(names[i]))
			return true;
	return false;
}

static enum cop_slurm_how how_in_step(
	const struct cop_conf *conf, const struct cop_slurm_place *place)
{
	uint64_t tasks;

	if (place->is_task)
		return COP_SLURM_REFUSED;
	if (conf->hosts || conf->rank >= 0 || (by_other_launcher() && !place->ends_all))
		return COP_SLURM_HERE;
	if (place->has_terminal || (variable_number("SLURM_STEP_NUM_TASKS", &tasks) && tasks == 1))
		return COP_SLURM_BY_STEP;
	return COP_SLURM_REFUSED;
}

enum cop_slurm_how cop_slurm_how_at(
	const struct cop_conf *conf, const struct cop_slurm_place *place)
{
	const char *list = getenv("SLURM_JOB_NODELIST");

	if (conf->foreground || !list || !*list || cop_slurm_is_node())
		return COP_SLURM_HERE;
	if (cop_slurm_in_a_step())
		return how_in_step(conf, place);
	return conf->hosts || conf->rank >= 0 ? COP_SLURM_HERE : COP_SLURM_BY_STEP;
}

enum cop_slurm_how cop_slurm_how(const struct cop_conf *conf)
{
	struct cop_slurm_place place = {.is_task = is_task(),
		.has_terminal = has_terminal(),
		.ends_all = tracked_by_cgroup()};

	return cop_slurm_how_at(conf, &place);
}

int cop_slurm_refuse(const char *subcommand, struct cop_err *err)
{
	return cop_err_set(err, EINVAL,
		"a task of srun cannot leave a node behind: give \"copper %s ...\" once in the job script, without srun, which starts the nodes of all hosts; or start programs with \"srun copper run --source DIR -- COMMAND\", which needs no mount",
		subcommand);
}

bool cop_slurm_ends_with_step(void)
{
	return !cop_slurm_is_node() && cop_slurm_in_a_step() && tracked_by_cgroup();
}
