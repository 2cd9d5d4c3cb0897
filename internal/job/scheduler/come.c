/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds out which tasks of this machine have called, and whether a missing task is alive, i.e.
 * whether some process has the task's number in its environment. */
#include <dirent.h>
#include <sys/stat.h>

#include "job/scheduler/tasks_priv.h"

#define CALLS_MAX (1u << 20)

int cop_tasks_read_come(const struct cop_tasks *t, int fd, struct cop_tasks_come *come)
{
	uint32_t record;

	*come = (struct cop_tasks_come){.bit = calloc(COP_MAX(t->here, 1u), 1)};
	if (!come->bit)
		return -ENOMEM;
	while (come->calls < CALLS_MAX &&
		pread(fd, &record, sizeof(record), (off_t)(come->calls * sizeof(record))) ==
			(ssize_t)sizeof(record)) {
		uint32_t number = record & ~(COP_TASKS_AGAIN | COP_TASKS_WAITED);

		come->calls++;
		if (number < t->here && record & COP_TASKS_WAITED)
			come->bit[number] = 2;
		come->again |= (record & COP_TASKS_AGAIN) != 0;
		if (number < t->here && !come->bit[number]) {
			come->bit[number] = 1;
			come->tasks++;
		}
	}
	return 0;
}

/* Whether that process and this one agree on the variables that identify a launch. */
static bool is_of_launch(const struct cop_tasks *t, pid_t pid, const char *vars, size_t len)
{
	static const char *const names[] = {
		"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_NODEID", "FLUX_JOB_ID"};

	for (size_t i = 0; i < COP_ARRAY_SIZE(names); i++) {
		const char *own = getenv(names[i]);
		const char *theirs = cop_tasks_variable(vars, len, names[i]);

		if (strcmp(own ? own : "", theirs ? theirs : "") != 0)
			return false;
	}
	return !t->ancestor || cop_tasks_ancestor(pid, t->variable) == t->ancestor;
}

static bool is_absent_task(
	const struct cop_tasks *t, const struct cop_tasks_come *come, const char *name)
{
	pid_t pid = (pid_t)strtol(name, NULL, 10);
	size_t len;
	char *vars = cop_tasks_environ(pid, &len);
	const char *text = vars ? cop_tasks_variable(vars, len, t->variable) : NULL;
	uint64_t number;
	bool is = text && cop_parse_u64(text, &number) == 0 && number < t->here &&
		  !come->bit[number] && is_of_launch(t, pid, vars, len);

	free(vars);
	return is;
}

bool cop_tasks_has_absent(const struct cop_tasks *t, const struct cop_tasks_come *come)
{
	DIR *d = t->variable && come->tasks < t->here ? opendir("/proc") : NULL;
	struct dirent *entry;
	bool found = false;
	struct stat st;

	while (d && !found && (entry = readdir(d)))
		found = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
			fstatat(dirfd(d), entry->d_name, &st, 0) == 0 && st.st_uid == geteuid() &&
			is_absent_task(t, come, entry->d_name);
	if (d)
		closedir(d);
	return found;
}
