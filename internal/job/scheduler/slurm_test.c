/* SPDX-License-Identifier: BSD-3-Clause */
/* What can be tested without Slurm: what the environment means, and who gets a node's report.
 * scripts/t/t0700-slurm.sh and those after it test with Slurm. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job/scheduler/scheduler_priv.h"

static const char *const names[] = {COP_SLURM_IN_STEP, "SLURM_JOB_ID", "SLURM_JOB_NODELIST",
	"SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS", "SLURMD_NODENAME", "MPI_LOCALRANKID"};
static struct cop_conf conf;

static int set_up(void **state)
{
	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(names); i++)
		unsetenv(names[i]);
	cop_conf_init(&conf, true);
	return 0;
}

/* ---- where this process stands ---- */

/* Sets variables, each as "NAME=VALUE"; NULL ends the list. */
static void given(const char *const *variables)
{
	for (size_t i = 0; i < COP_ARRAY_SIZE(names); i++)
		unsetenv(names[i]);
	for (; *variables; variables++) {
		char name[64];
		size_t len = strcspn(*variables, "=");

		snprintf(name, sizeof(name), "%.*s", (int)len, *variables);
		setenv(name, *variables + len + 1, 1);
	}
}

#define GIVEN(...) given((const char *const[]){__VA_ARGS__, NULL})
#define JOB "SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n[1-2]"
/* The step number that Slurm gives to a job's script. */
#define SCRIPT "SLURM_STEP_ID=4294967291"
#define STEP "SLURM_STEP_ID=2", "SLURM_STEP_NUM_TASKS=2"
#define ONE_TASK "SLURM_STEP_ID=2", "SLURM_STEP_NUM_TASKS=1"

static const struct cop_slurm_place script,
	task = {.is_task = true}, doomed_task = {true, true, true},
	terminal = {.has_terminal = true}, doomed = {.ends_all = true};
#define HOW(place) ((int)cop_slurm_how_at(&conf, &(place)))

static void a_script_starts_its_nodes_in_a_step(void **state)
{
	(void)state;
	GIVEN("A=");
	assert_int_equal(HOW(script), COP_SLURM_HERE);
	GIVEN("SLURM_STEP_ID=2");
	assert_int_equal(HOW(task), COP_SLURM_HERE);
	GIVEN(JOB);
	assert_int_equal(HOW(script), COP_SLURM_BY_STEP);
	/* slurmstepd started it, too. */
	GIVEN(JOB, SCRIPT);
	assert_int_equal(HOW(doomed_task), COP_SLURM_BY_STEP);
	assert_false(cop_slurm_in_a_step());
	assert_false(cop_slurm_ends_with_step());
}

static void so_does_a_shell_in_a_step(void **state)
{
	(void)state;
	GIVEN(JOB, ONE_TASK);
	assert_int_equal(HOW(script), COP_SLURM_BY_STEP);
	assert_int_equal(HOW(doomed), COP_SLURM_BY_STEP);
	/* srun --nodes=2 --pty bash */
	GIVEN(JOB, STEP);
	assert_int_equal(HOW(terminal), COP_SLURM_BY_STEP);
}

static void the_tasks_of_a_step_are_refused(void **state)
{
	(void)state;
	GIVEN(JOB, STEP);
	assert_true(cop_slurm_in_a_step());
	assert_int_equal(HOW(task), COP_SLURM_REFUSED);
	assert_int_equal(HOW(doomed_task), COP_SLURM_REFUSED);
	/* A script in each task. */
	assert_int_equal(HOW(script), COP_SLURM_REFUSED);
	assert_int_equal(HOW(doomed), COP_SLURM_REFUSED);
	GIVEN(JOB, ONE_TASK);
	assert_int_equal(HOW(task), COP_SLURM_REFUSED);
	conf.hosts = "n1,n2";
	assert_int_equal(HOW(task), COP_SLURM_REFUSED);
}

static void the_refusal_shows_the_ways_that_work(void **state)
{
	struct cop_err err = {0};

	(void)state;
	assert_int_equal(cop_slurm_refuse("serve", &err), -EINVAL);
	assert_non_null(
		strstr(err.text, "give \"copper serve ...\" once in the job script, without srun"));
	assert_non_null(strstr(err.text, "\"srun copper run --source DIR -- COMMAND\""));
}

static void processes_that_another_launcher_started_by_srun_are_its_own(void **state)
{
	(void)state;
	GIVEN(JOB, STEP, "MPI_LOCALRANKID=0");
	assert_int_equal(HOW(script), COP_SLURM_HERE);
	assert_int_equal(HOW(doomed), COP_SLURM_REFUSED);
	conf.hosts = "n1,n2";
	assert_int_equal(HOW(doomed), COP_SLURM_HERE);
}

static void foreground_and_host_lists_start_the_node_here(void **state)
{
	struct cop_conf before = conf;

	(void)state;
	conf.foreground = true;
	GIVEN(JOB, SCRIPT);
	assert_int_equal(HOW(script), COP_SLURM_HERE);
	GIVEN(JOB, STEP);
	assert_int_equal(HOW(doomed_task), COP_SLURM_HERE);
	conf = before;
	conf.hosts = "n1,n2";
	assert_int_equal(HOW(doomed), COP_SLURM_HERE);
	GIVEN(JOB, SCRIPT);
	assert_int_equal(HOW(script), COP_SLURM_HERE);
	conf = before;
	conf.rank = 0;
	assert_int_equal(HOW(script), COP_SLURM_HERE);
	conf = before;
	GIVEN(JOB, STEP, COP_SLURM_IN_STEP "=1");
	assert_int_equal(HOW(doomed_task), COP_SLURM_HERE);
	assert_true(cop_slurm_is_node());
	assert_false(cop_slurm_ends_with_step());
}

/* ---- the word of a node ---- */

/* The line that a node writes. */
static const char *line_of(const struct cop_err *failure)
{
	static char line[COP_SLURM_LINE_SIZE];
	int fds[2];
	ssize_t n;

	assert_int_equal(pipe(fds), 0);
	cop_slurm_tell(fds[1], failure);
	n = read(fds[0], line, sizeof(line) - 1); /* the writer has closed it */
	assert_true(n > 0 && line[n - 1] == '\n');
	assert_int_equal(read(fds[0], line + n, 1), 0);
	close(fds[0]);
	line[n - 1] = '\0';
	return line;
}

static void the_command_hears_what_its_nodes_say(void **state)
{
	struct cop_slurm_heard h = {0};
	struct cop_err why;

	(void)state;
	assert_true(cop_slurm_hear(&h, line_of(NULL)));
	assert_true(cop_slurm_hear(&h, line_of(NULL)));
	assert_int_equal(h.ready, 2);
	assert_string_equal(h.failure, "");
	setenv("SLURMD_NODENAME", "n2", 1);
	cop_err_set(&why, EIO, "--source /x: No such file or directory");
	assert_true(cop_slurm_hear(&h, line_of(&why)));
	assert_string_equal(h.failure, "n2: --source /x: No such file or directory");
	cop_err_set(&why, EIO, "a later one");
	assert_true(cop_slurm_hear(&h, line_of(&why)));
	assert_string_equal(h.failure, "n2: --source /x: No such file or directory");
	assert_int_equal(h.ready, 2);
}

static void other_lines_of_the_step_are_no_word(void **state)
{
	struct cop_slurm_heard h = {0};

	(void)state;
	assert_false(cop_slurm_hear(&h, ""));
	assert_false(cop_slurm_hear(&h, "copper-step"));
	assert_false(cop_slurm_hear(&h, " copper-step ready"));
	assert_true(cop_slurm_hear(&h, "copper-step of another version"));
	assert_int_equal(h.ready, 0);
	assert_string_equal(h.failure, "");
}

static const char *lost_in(const char *messages)
{
	static struct cop_slurm_heard h;
	char text[512];
	bool lost;

	h = (struct cop_slurm_heard){0};
	snprintf(text, sizeof(text), "%s", messages);
	lost = cop_slurm_hear_srun(&h, text);
	assert_int_equal(lost, h.lost[0] != '\0');
	return h.lost;
}

static void srun_speaks_for_a_node_that_cannot(void **state)
{
	(void)state;
	assert_string_equal(
		lost_in("srun: error: task 1 launch failed: Slurmd could not execve job\n"),
		"task 1 launch failed: Slurmd could not execve job");
	assert_string_equal(
		lost_in("srun: launch/slurm: x\nsrun: error: Task launch for StepId=7.0 failed on node n2: y\n"),
		"Task launch for StepId=7.0 failed on node n2: y");
	assert_string_equal(lost_in("slurmstepd: error: execve(): x: Permission denied\n"
				    "srun: error: n2: task 1: Exited with exit code 13\n"
				    "srun: error: n3: task 2: Killed"),
		"n2: task 1: Exited with exit code 13");
	assert_string_equal(lost_in("srun: error: n2: tasks 1-3: Killed"), "n2: tasks 1-3: Killed");
}

static void other_messages_of_srun_are_no_lost_node(void **state)
{
	(void)state;
	assert_string_equal(lost_in(""), "");
	assert_string_equal(lost_in("srun: Job 7 step creation temporarily disabled, retrying\n"
				    "srun: error: Unable to confirm allocation for job 7: x\n"
				    "srun: Step created for StepId=7.1\n"),
		"");
	assert_string_equal(lost_in("task 1 launch failed\n"), "");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup(f, set_up)
	const struct CMUnitTest tests[] = {
		T(a_script_starts_its_nodes_in_a_step),
		T(so_does_a_shell_in_a_step),
		T(the_tasks_of_a_step_are_refused),
		T(the_refusal_shows_the_ways_that_work),
		T(processes_that_another_launcher_started_by_srun_are_its_own),
		T(foreground_and_host_lists_start_the_node_here),
		T(the_command_hears_what_its_nodes_say),
		T(other_lines_of_the_step_are_no_word),
		T(srun_speaks_for_a_node_that_cannot),
		T(other_messages_of_srun_are_no_lost_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
