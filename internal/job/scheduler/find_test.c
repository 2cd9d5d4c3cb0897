/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "job/scheduler/tasks_testing.h"

static int set_up(void **state)
{
	(void)state;
	forget_launcher();
	err = (struct cop_err){0};
	return 0;
}

static void without_a_launcher_it_is_one_of_one(void **state)
{
	struct cop_tasks t;

	(void)state;
	assert_int_equal(cop_tasks_find(&t, &err), 0);
	assert_false(t.launched);
	assert_int_equal(t.local, 0);
	assert_int_equal(t.here, 1);
	assert_false(t.elsewhere);
}

static void launchers_tell_which_task_it_is(void **state)
{
	struct cop_tasks t;

	(void)state;
	setenv("MPI_LOCALRANKID", "2", 1);
	assert_int_equal(cop_tasks_find(&t, &err), -EINVAL);
	assert_non_null(strstr(err.text, "nothing says how many"));
	setenv("MPI_LOCALNRANKS", "4", 1);
	setenv("PMI_SIZE", "4", 1);
	assert_int_equal(cop_tasks_find(&t, &err), 0);
	assert_true(t.launched);
	assert_int_equal(t.local, 2);
	assert_int_equal(t.here, 4);
	assert_false(t.elsewhere);
	setenv("PMI_SIZE", "8", 1);
	assert_int_equal(cop_tasks_find(&t, &err), 0);
	assert_true(t.elsewhere);
	setenv("MPI_LOCALRANKID", "4", 1);
	assert_int_equal(cop_tasks_find(&t, &err), -EINVAL);
}

/* What the environment says about this task: "2 of 4", with "+" if there are others elsewhere. */
static const char *which(void)
{
	static char text[64];
	struct cop_tasks t;

	if (cop_tasks_find(&t, &err))
		return err.text;
	snprintf(text, sizeof(text), "%u of %u%s", t.local, t.here, t.elsewhere ? "+" : "");
	return t.launched ? text : "none";
}

/* Cray PMI adds the variables that begin with PMI; a launch with PMIx has none of them. */
static void pals_tells_which_task_it_is(void **state)
{
	(void)state;
	setenv("PALS_LOCAL_RANKID", "1", 1);
	setenv("PMI_LOCAL_SIZE", "4", 1);
	setenv("PMI_SIZE", "4", 1);
	assert_string_equal(which(), "1 of 4");
	setenv("PMI_SIZE", "16", 1);
	assert_string_equal(which(), "1 of 4+");
	unsetenv("PMI_LOCAL_SIZE");
	assert_non_null(strstr(which(), "nothing says how many"));
	setenv("PALS_LOCAL_SIZE", "4", 1);
	assert_string_equal(which(), "1 of 4+");
	/* The hosts decide then. */
	unsetenv("PMI_SIZE");
	assert_string_equal(which(), "1 of 4+");
}

/* Flux does not say how many tasks a machine has. */
static void flux_tells_which_task_it_is(void **state)
{
	(void)state;
	setenv("FLUX_TASK_LOCAL_ID", "1", 1);
	setenv("FLUX_JOB_SIZE", "8", 1);
	assert_non_null(strstr(which(), "nothing says how many"));
	setenv("FLUX_JOB_NNODES", "1", 1);
	assert_string_equal(which(), "1 of 8");
	setenv("FLUX_JOB_NNODES", "4", 1);
	assert_string_equal(which(), "1 of 2+");
	setenv("FLUX_JOB_NNODES", "3", 1);
	assert_non_null(strstr(which(), "nothing says how many"));
	setenv("FLUX_JOB_NNODES", "0", 1);
	assert_non_null(strstr(which(), "nothing says how many"));
}

static void a_step_of_slurm_has_its_own_number(void **state)
{
	struct cop_tasks one, two;

	(void)state;
	setenv("SLURM_JOB_ID", "12", 1);
	setenv("SLURM_STEP_ID", "3", 1);
	setenv("SLURM_LOCALID", "1", 1);
	setenv("SLURM_STEP_NUM_TASKS", "16", 1);
	setenv("SLURM_STEP_NUM_NODES", "1", 1);
	assert_int_equal(cop_tasks_find(&one, &err), 0);
	assert_int_equal(one.local, 1);
	assert_int_equal(one.here, 16);
	assert_false(one.elsewhere);
	setenv("SLURM_STEP_ID", "4", 1);
	assert_int_equal(cop_tasks_find(&two, &err), 0);
	assert_true(one.id != two.id);
	assert_true(one.start != two.start && one.start && two.start);
	/* This is a batch script. */
	setenv("SLURM_STEP_ID", "4294967291", 1);
	assert_int_equal(cop_tasks_find(&two, &err), 0);
	assert_false(two.launched);
	assert_int_equal(two.start, 0);
	unsetenv("SLURM_STEP_ID");
}

/* The identifier of the start. */
static uint64_t here(const char *node, const char *tasks_per_node, uint32_t want)
{
	struct cop_tasks t;

	setenv("SLURM_NODEID", node, 1);
	setenv("SLURM_STEP_TASKS_PER_NODE", tasks_per_node, 1);
	assert_int_equal(cop_tasks_find(&t, &err), 0);
	assert_int_equal(t.launched, want > 0);
	assert_int_equal(t.here, want ? want : 1);
	assert_int_equal(t.elsewhere, want > 0);
	return t.start;
}

static void a_step_on_several_machines_says_how_many_tasks_each_has(void **state)
{
	(void)state;
	setenv("SLURM_JOB_ID", "12", 1);
	setenv("SLURM_STEP_ID", "3", 1);
	setenv("SLURM_LOCALID", "0", 1);
	setenv("SLURM_STEP_NUM_TASKS", "16", 1);
	setenv("SLURM_STEP_NUM_NODES", "4", 1);
	assert_true(here("0", "4(x4)", 4) == here("3", "4(x4)", 4));
	here("0", "7,1,4(x2)", 7);
	here("1", "7,1,4(x2)", 1);
	here("3", "7,1,4(x2)", 4);
	here("4", "7,1,4(x2)", 0);
	here("1", "7;9", 0);
	here("0", "", 0);
	here("0", "0(x4)", 0);
	unsetenv("SLURM_STEP_ID");
	unsetenv("SLURM_NODEID");
}

/* Bytes after the end of the list in memory are not part of it. */
static void a_list_of_tasks_that_is_cut_off_says_nothing(void **state)
{
	static char list[] = "SLURM_STEP_TASKS_PER_NODE=11111111(x1\0"
			     "2345,5";
	struct cop_tasks t;

	(void)state;
	setenv("SLURM_JOB_ID", "12", 1);
	setenv("SLURM_STEP_ID", "3", 1);
	setenv("SLURM_LOCALID", "0", 1);
	setenv("SLURM_STEP_NUM_TASKS", "16", 1);
	setenv("SLURM_STEP_NUM_NODES", "4", 1);
	setenv("SLURM_NODEID", "1", 1);
	assert_int_equal(putenv(list), 0);
	assert_int_equal(cop_tasks_find(&t, &err), 0);
	assert_false(t.launched);
	unsetenv("SLURM_STEP_TASKS_PER_NODE");
	unsetenv("SLURM_STEP_ID");
	unsetenv("SLURM_NODEID");
}

static void a_call_of_a_script_is_known_by_the_parent(void **state)
{
	struct cop_tasks t;
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(cop_tasks_find(&t, &err), 0);
	assert_false(t.again);
	/* This process has no such variable, as a launcher; a child of it is a task. */
	pid = fork();
	if (pid == 0) {
		setenv("MPI_LOCALRANKID", "0", 1);
		setenv("MPI_LOCALNRANKS", "1", 1);
		setenv("PMI_SIZE", "1", 1);
		_exit(cop_tasks_find(&t, &err) || t.again);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

#define T(f) cmocka_unit_test_setup(f, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(without_a_launcher_it_is_one_of_one),
		T(launchers_tell_which_task_it_is),
		T(pals_tells_which_task_it_is),
		T(flux_tells_which_task_it_is),
		T(a_step_of_slurm_has_its_own_number),
		T(a_step_on_several_machines_says_how_many_tasks_each_has),
		T(a_list_of_tasks_that_is_cut_off_says_nothing),
		T(a_call_of_a_script_is_known_by_the_parent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
