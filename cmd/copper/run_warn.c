/* SPDX-License-Identifier: BSD-3-Clause */
#include "run_warn.h"

#include <libgen.h>
#include <sys/stat.h>

#include "base/log/log.h"

/* One warning for thousands of tasks is sufficient. */
static bool is_first_task(void)
{
	static const char *const ranks[] = {"SLURM_PROCID", "PMIX_RANK", "PMI_RANK", "PALS_RANKID",
		"OMPI_COMM_WORLD_RANK", "FLUX_TASK_RANK"};

	for (size_t i = 0; i < COP_ARRAY_SIZE(ranks); i++) {
		const char *rank = getenv(ranks[i]);

		if (rank && strcmp(rank, "0") != 0)
			return false;
	}
	return true;
}

/* Outputs in the working directory would fail with EROFS during the run: it was writable before
 * the view was created and is no longer. */
void cop_run_warn_outputs(bool was_writable)
{
	char cwd[PATH_MAX];

	if (was_writable && access(".", W_OK) && errno == EROFS && cop_log_on(COP_LOG_WARNING) &&
		is_first_task() && getcwd(cwd, sizeof(cwd)))
		fprintf(stderr,
			"copper run: warning: the working directory %s is read-only in the tree: with --direct %s the command can write there as without copper\n",
			cwd, cwd);
}

void cop_run_find_foreign_group(const struct cop_view *v, char dir[PATH_MAX], gid_t *group)
{
	const char *const places[] = {
		".", getenv("VIRTUAL_ENV"), getenv("CONDA_PREFIX"), v->source};
	struct stat st;

	for (size_t i = 0; v->writable && v->user_ns >= 0 && i < COP_ARRAY_SIZE(places); i++) {
		if (!places[i] || !realpath(places[i], dir) || !cop_view_is_below(dir, v->source) ||
			stat(dir, &st) || st.st_uid != geteuid() || st.st_gid == getegid())
			continue;
		*group = st.st_gid;
		return;
	}
	dir[0] = '\0';
}

void cop_run_warn_group(const char *dir, gid_t group)
{
	if (*dir && cop_log_on(COP_LOG_WARNING) && is_first_task())
		fprintf(stderr,
			"copper run: warning: %s belongs to the group %u, and --writable can change only files of the current group (others give EOVERFLOW, 'Value too large for defined data type'): start the node and the command with that group, by sg(1)\n",
			dir, (unsigned)group);
}

/* Otherwise a program that finds its files by absolute paths would silently read all of them
 * from the storage. */
void cop_run_warn_variables(const struct cop_view *v, const struct cop_view_made *made)
{
	if (cop_log_on(COP_LOG_WARNING) && is_first_task())
		fprintf(stderr,
			"copper run: warning: the tree cannot take the place of %s here (%s): only variables such as PATH lead to it; absolute paths in scripts, in arguments and in the program read the storage past Copper. --view env says that this is meant\n",
			v->source, made->why);
}

/* MPI libraries would fail during their start, with incomprehensible messages. */
void cop_run_warn_neighbours(void)
{
	if (cop_log_on(COP_LOG_WARNING) && is_first_task())
		fprintf(stderr,
			"copper run: warning: this process was in another user namespace already (a view, or a container), so such commands cannot reach each other's memory, as MPI libraries try: give the options to the outer copper run, and use one tree of two sources, with --below for each\n");
}

/* ---- launchers ---- */

static bool is_one_of(const char *name, const char *const *names)
{
	while (*names && strcmp(*names, name) != 0)
		names++;
	return *names != NULL;
}

/* The first ones start programs through daemons, even on this machine. The others start local
 * programs directly. */
static bool starts_outside(const char *name)
{
	static const char *const by_daemons[] = {"srun", "sbatch", "aprun", "jsrun", "prun", NULL};
	static const char *const by_itself[] = {"mpiexec", "mpirun", "mpiexec.hydra",
		"mpirun.mpich", "mpiexec.mpich", "mpirun.openmpi", "mpiexec.openmpi", "orterun",
		NULL};

	return is_one_of(name, by_daemons) ||
	       (is_one_of(name, by_itself) &&
		       (getenv("SLURM_JOB_ID") || getenv("PBS_NODEFILE") || getenv("LSB_HOSTS")));
}

void cop_run_warn_order(char *const *command)
{
	char copy[PATH_MAX], *name;

	snprintf(copy, sizeof(copy), "%s", command[0]);
	name = basename(copy);
	if (strcmp(name, "flux") == 0 && command[1] &&
		(strcmp(command[1], "run") == 0 || strcmp(command[1], "submit") == 0))
		name = strcpy(copy, "flux run");
	else if (!starts_outside(name))
		return;
	if (cop_log_on(COP_LOG_WARNING) && is_first_task())
		fprintf(stderr,
			"copper run: warning: the programs that %s starts are outside of the view, and read the storage itself: put copper run after it, as in '%s [options] copper run [options] -- PROGRAM'\n",
			name, name);
}

/* Whether the launcher's environment shows other tasks of this program. */
static bool is_one_of_several(void)
{
	static const char *const sizes[] = {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "PALS_LOCAL_SIZE",
		"SLURM_STEP_NUM_TASKS", "FLUX_JOB_SIZE"};
	uint64_t n;

	for (size_t i = 0; i < COP_ARRAY_SIZE(sizes); i++) {
		const char *text = getenv(sizes[i]);

		if (text && cop_parse_u64(text, &n) == 0 && n > 1)
			return true;
	}
	return false;
}

void cop_run_inform_tasks(void)
{
	if (is_one_of_several() && is_first_task())
		cop_log_info(
			"tasks in a view reach each other's memory, but tasks outside of it cannot reach them, and MPI libraries fail: run all tasks of an MPI program with copper run, or use --view env");
}
