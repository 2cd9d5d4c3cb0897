/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds this process's task in the environment that its launcher set. The innermost launcher wins:
 * under Slurm, mpiexec starts its own processes with srun, so Slurm's variables are read last. */
#include "job/hosts/hosts.h"
#include "job/scheduler/tasks_priv.h"

#define ENVIRON_MAX (8 * COP_MIB)
#define ANCESTORS_MAX 64

struct launcher {
	const char *local;   /* index of this task on its machine */
	const char *here[2]; /* number of tasks on this machine: the first of these that is set */
	const char *all;     /* total number of tasks */
	const char *nodes; /* number of machines, for launchers that do not give the number of local
			      tasks */
};

/* Open MPI, MPICH and Intel MPI, PALS, Flux. */
static const struct launcher launchers[] = {
	{"OMPI_COMM_WORLD_LOCAL_RANK", {"OMPI_COMM_WORLD_LOCAL_SIZE"}, "OMPI_COMM_WORLD_SIZE",
		NULL},
	{"MPI_LOCALRANKID", {"MPI_LOCALNRANKS"}, "PMI_SIZE", NULL},
	{"PALS_LOCAL_RANKID", {"PALS_LOCAL_SIZE", "PMI_LOCAL_SIZE"}, "PMI_SIZE", NULL},
	{"FLUX_TASK_LOCAL_ID", {NULL}, "FLUX_JOB_SIZE", "FLUX_JOB_NNODES"},
};

static bool number_of(const char *name, uint64_t *value)
{
	const char *text = name ? getenv(name) : NULL;

	return text && *text && cop_parse_u64(text, value) == 0 && *value <= UINT32_MAX;
}

/* ---- the process that started all local tasks ---- */

char *cop_tasks_environ(pid_t pid, size_t *len)
{
	char path[64], *text;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	return cop_read_file(path, ENVIRON_MAX, &text, len) ? NULL : text;
}

const char *cop_tasks_variable(const char *vars, size_t len, const char *name)
{
	size_t name_len = strlen(name);

	for (const char *at = vars; at < vars + len; at += strlen(at) + 1)
		if (strncmp(at, name, name_len) == 0 && at[name_len] == '=')
			return at + name_len + 1;
	return NULL;
}

static bool has_variable(pid_t pid, const char *name)
{
	size_t len;
	char *text = cop_tasks_environ(pid, &len);
	bool found = text && cop_tasks_variable(text, len, name);

	free(text);
	return found;
}

/* Returns the parent of a process, and when the process started. */
static pid_t parent_of(pid_t pid, unsigned long long *began)
{
	char path[64], *text = NULL, *end;
	int parent = 0;
	size_t len;

	*began = 0;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (cop_read_file(path, 4096, &text, &len))
		return 0;
	/* The process name is in parentheses and may contain any character. */
	end = strrchr(text, ')');
	if (!end ||
		sscanf(end + 1,
			" %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
			&parent, began) != 2)
		parent = 0;
	free(text);
	return parent;
}

/* There may be shells between a task and that ancestor. */
uint64_t cop_tasks_ancestor(pid_t pid, const char *variable)
{
	unsigned long long began;
	uint64_t of[2];

	pid = parent_of(pid, &began);
	for (int i = 0; i < ANCESTORS_MAX && pid > 1 && has_variable(pid, variable); i++)
		pid = parent_of(pid, &began);
	parent_of(pid, &began);
	of[0] = (uint64_t)pid;
	of[1] = began;
	return cop_hash64(of, sizeof(of), 0);
}

/* ---- launchers ---- */

/* If no variable gives the number of local tasks, we assume that it is the same on all machines. A
 * task number beyond it shows that this machine has more. */
static bool tasks_here(const struct launcher *l, uint64_t *here)
{
	uint64_t all, nodes;

	if (number_of(l->here[0], here) || number_of(l->here[1], here))
		return true;
	if (!number_of(l->nodes, &nodes) || !number_of(l->all, &all) || !nodes || all % nodes)
		return false;
	*here = all / nodes;
	return true;
}

static int by_launcher(struct cop_tasks *t, const struct launcher *l, struct cop_err *err)
{
	uint64_t local, here, all;

	number_of(l->local, &local);
	if (!tasks_here(l, &here))
		return cop_err_set(err, EINVAL,
			"%s is set, but nothing says how many tasks run on this machine: start the tree with 'copper mount', and the tasks with 'copper run' without --source",
			l->local);
	t->launched = true;
	t->local = (uint32_t)local;
	t->here = (uint32_t)here;
	/* If nothing says that these are all the tasks, the hosts decide. */
	t->elsewhere = !number_of(l->all, &all) || all > here;
	t->variable = l->local;
	t->id = t->ancestor = cop_tasks_ancestor(getpid(), l->local);
	return 0;
}

/* "2,4(x3)": two on the first machine, four on each of the next three. */
static bool tasks_of_node(const char *text, uint64_t node, uint64_t *tasks)
{
	unsigned long long count, times;
	int len, more;

	while (text && sscanf(text, "%llu%n", &count, &len) == 1) {
		text += len;
		times = 1;
		more = 0; /* stays 0 if the parenthesis is not closed, which ends the loop */
		if (sscanf(text, "(x%llu)%n", &times, &more) == 1 && !more)
			return false;
		text += more;
		if (node < times) {
			*tasks = count;
			return count > 0 && count <= UINT32_MAX;
		}
		node -= times;
		text = *text == ',' ? text + 1 : NULL;
	}
	return false;
}

static bool by_slurm(struct cop_tasks *t)
{
	uint64_t job, step, local, tasks, nodes, node = 0, restarts = 0, of[4];

	if (!cop_job_slurm_step(&step) || !number_of("SLURM_JOB_ID", &job) ||
		!number_of("SLURM_LOCALID", &local) || !number_of("SLURM_STEP_NUM_TASKS", &tasks) ||
		!number_of("SLURM_STEP_NUM_NODES", &nodes))
		return false;
	if (nodes > 1 && (!number_of("SLURM_NODEID", &node) ||
				 !tasks_of_node(getenv("SLURM_STEP_TASKS_PER_NODE"), node, &tasks)))
		return false;
	number_of("SLURM_RESTART_COUNT", &restarts);
	of[0] = job;
	of[1] = step;
	of[2] = restarts;
	of[3] = node;
	t->launched = true;
	t->local = (uint32_t)local;
	t->here = (uint32_t)tasks;
	t->elsewhere = nodes > 1;
	t->variable = "SLURM_LOCALID";
	t->id = cop_hash64(of, sizeof(of), 0);
	return true;
}

/* Every job numbers its steps from 0, and every cluster its jobs, so these numbers are not enough.
 * In a heterogeneous job, a step has a host list for each component. */
static uint64_t start_of_step(void)
{
	static const char *const names[] = {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT",
		"SLURM_CLUSTER_NAME", "SLURM_STEP_NODELIST"};
	uint64_t hash = 0, step;

	if (!cop_job_slurm_step(&step))
		return 0;
	for (size_t i = 0; i < COP_ARRAY_SIZE(names); i++) {
		const char *text = getenv(names[i]);

		hash = cop_hash64(text ? text : "", text ? strlen(text) + 1 : 0, hash);
	}
	return hash;
}

int cop_tasks_find(struct cop_tasks *t, struct cop_err *err)
{
	uint64_t local;
	int rc = 0;

	*t = (struct cop_tasks){
		.here = 1, .start = start_of_step(), .fd = -1, .first_fd = -1, .word_fd = -1};
	for (size_t i = 0; i < COP_ARRAY_SIZE(launchers) && !rc && !t->launched; i++)
		if (number_of(launchers[i].local, &local))
			rc = by_launcher(t, &launchers[i], err);
	if (!rc && !t->launched && !by_slurm(t)) {
		uint64_t of[2] = {(uint64_t)getpid(), cop_now_ns()};

		t->id = cop_hash64(of, sizeof(of), 0);
	}
	t->again = t->variable && has_variable(getppid(), t->variable);
	if (!rc && t->local >= t->here)
		rc = cop_err_set(err, EINVAL,
			"the environment says that this is task %u of %u on this machine", t->local,
			t->here);
	return rc;
}
