/* SPDX-License-Identifier: BSD-3-Clause */
/* Without Slurm: what the environment means, what a node says and who hears it, and what squeue's
 * answers mean. With Slurm: scripts/t/t0700-slurm.sh and those after it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job/job.h"
#include "slurm/slurm_priv.h"

static const char *const names[] = {COP_SLURM_IN_STEP, "SLURM_JOB_ID", "SLURM_JOB_NODELIST",
	"SLURM_JOB_NUM_NODES", "SLURM_PROCID", "SLURM_RESTART_COUNT", "SLURM_STEP_ID",
	"SLURM_STEP_NUM_TASKS", "SLURMD_NODENAME"};
static char dir[64], control[96];
static struct cop_conf conf;
static struct cop_err err;

static int set_up(void **state)
{
	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(names); i++)
		unsetenv(names[i]);
	strcpy(dir, "/tmp/cop-slurm-test.XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(control, sizeof(control), "%s/0123456789abcdef.sock", dir);
	cop_conf_init(&conf, true);
	err = (struct cop_err){0};
	return 0;
}

static const char *in_dir(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static int tear_down(void **state)
{
	static const char *const files[] = {"0123456789abcdef.heard", "0123456789abcdef.wait",
		"squeue", "pid", "logs/not_started-7.2.txt", "logs", ""};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(files); i++)
		if (unlink(in_dir(files[i])))
			rmdir(in_dir(files[i]));
	return 0;
}

/* ---- where this process stands ---- */

/* "NAME=VALUE" in each, up to NULL. */
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
#define JOB "SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n[1-2]", "SLURM_JOB_NUM_NODES=2"
/* As Slurm numbers the script of a job. */
#define SCRIPT "SLURM_STEP_ID=4294967291"
#define STEP "SLURM_STEP_ID=2", "SLURM_STEP_NUM_TASKS=2"

static void a_script_starts_its_nodes_in_a_step(void **state)
{
	(void)state;
	GIVEN("A=");
	assert_int_equal(cop_slurm_how_if(&conf, true), COP_SLURM_HERE);
	GIVEN(JOB);
	assert_int_equal(cop_slurm_how_if(&conf, false), COP_SLURM_BY_STEP);
	GIVEN(JOB, SCRIPT);
	assert_int_equal(cop_slurm_how_if(&conf, false), COP_SLURM_BY_STEP);
	assert_false(cop_slurm_ends_with_step());
	/* A shell on one node of several. */
	GIVEN(JOB, "SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=1");
	assert_int_equal(cop_slurm_how_if(&conf, false), COP_SLURM_BY_STEP);
}

static void the_tasks_of_a_step_start_them_where_they_outlive_it(void **state)
{
	(void)state;
	GIVEN(JOB, STEP, "SLURM_PROCID=1");
	assert_int_equal(cop_slurm_how_if(&conf, false), COP_SLURM_HERE);
	assert_int_equal(cop_slurm_how_if(&conf, true), COP_SLURM_BY_TASK_0);
	GIVEN(JOB, STEP, "SLURM_PROCID=0");
	assert_int_equal(cop_slurm_how_if(&conf, true), COP_SLURM_BY_STEP);
}

static void who_says_where_the_node_is_gets_it_here(void **state)
{
	struct cop_conf c = conf;

	(void)state;
	GIVEN(JOB, SCRIPT);
	c.foreground = true;
	assert_int_equal(cop_slurm_how_if(&c, true), COP_SLURM_HERE);
	c = conf;
	c.hosts = "n1,n2";
	assert_int_equal(cop_slurm_how_if(&c, true), COP_SLURM_HERE);
	c = conf;
	c.rank = 0;
	assert_int_equal(cop_slurm_how_if(&c, true), COP_SLURM_HERE);
	GIVEN(JOB, STEP, COP_SLURM_IN_STEP "=1732300000000000000");
	assert_int_equal(cop_slurm_how_if(&conf, true), COP_SLURM_HERE);
	assert_true(cop_slurm_is_node());
	assert_true(cop_slurm_start() == 1732300000000000000);
	assert_false(cop_slurm_ends_with_step());
}

static void a_step_has_a_name_that_no_other_has(void **state)
{
	char name[COP_SLURM_STEP_NAME];

	(void)state;
	GIVEN(JOB, STEP);
	assert_true(cop_slurm_step_name(name));
	assert_string_equal(name, "7.2");
	GIVEN(JOB, STEP, "SLURM_RESTART_COUNT=1");
	assert_true(cop_slurm_step_name(name));
	assert_string_equal(name, "7.2.1");
	GIVEN(JOB, SCRIPT);
	assert_false(cop_slurm_step_name(name));
	GIVEN("SLURM_JOB_ID=x", STEP);
	assert_false(cop_slurm_step_name(name));
}

/* ---- the word of a node ---- */

/* The line that a node writes. */
static const char *line_of(const struct cop_err *failure)
{
	static char line[COP_SLURM_LINE_SIZE];
	int fds[2];
	ssize_t n;

	assert_int_equal(pipe(fds), 0);
	cop_slurm_tell(fds[1], NULL, failure);
	n = read(fds[0], line, sizeof(line) - 1); /* it has been closed */
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

/* ---- a task that waits ---- */

/* Tells the task that this process is about to be, when it listens. start: NULL: ready. */
static pid_t teller(const char *start, const char *sentence)
{
	const char *wait = in_dir("0123456789abcdef.wait");
	struct cop_err why;
	struct stat st;
	pid_t pid = fork();

	if (pid)
		return pid;
	for (int i = 0; i < 3000 && stat(wait, &st); i++)
		usleep(10000);
	usleep(50000); /* it is bound, and may not wait yet: that is no matter */
	cop_err_set(&why, EIO, "%s", sentence);
	if (start)
		setenv(COP_SLURM_IN_STEP, start, 1);
	cop_slurm_tell(-1, control, start ? &why : NULL);
	_exit(0);
}

static int await(pid_t pid)
{
	int rc = cop_slurm_await(&conf, control, &err);

	waitpid(pid, NULL, 0);
	return rc;
}

static void a_task_hears_the_node_of_its_host(void **state)
{
	(void)state;
	GIVEN(JOB, STEP);
	assert_int_equal(await(teller(NULL, "")), 0);
	assert_int_equal(await(teller("41", "n1 has no /lus")), -EIO);
	assert_string_equal(err.text, "n1 has no /lus");
	assert_int_equal(access(in_dir("0123456789abcdef.wait"), F_OK), -1);
}

static void of_a_start_that_it_saw_fail_it_takes_no_more_words(void **state)
{
	pid_t late, next;

	(void)state;
	GIVEN(JOB, STEP);
	assert_int_equal(await(teller("41", "one")), -EIO);
	assert_int_equal(access(in_dir("0123456789abcdef.heard"), F_OK), 0);
	late = teller("41", "one, late");
	next = fork();
	if (next == 0) {
		sleep(1);
		_exit(waitpid(teller("42", "two"), NULL, 0) < 0);
	}
	assert_int_equal(await(next), -EIO);
	assert_string_equal(err.text, "two");
	waitpid(late, NULL, 0);
	assert_int_equal(await(teller(NULL, "")), 0);
	assert_int_equal(access(in_dir("0123456789abcdef.heard"), F_OK), -1);
}

static void the_word_of_task_0_comes_by_the_job_directory(void **state)
{
	(void)state;
	GIVEN(JOB, STEP);
	conf.job_dir = dir;
	assert_int_equal(cop_job_dir_make(dir, &err), 0);
	cop_job_step_failure_write(dir, "7.2", 43, "srun ended before the nodes were ready");
	assert_int_equal(cop_slurm_await(&conf, control, &err), -EIO);
	assert_string_equal(err.text, "srun ended before the nodes were ready");
}

/* ---- whether the job goes on ---- */

static void squeue_tells_whether_a_job_is_over(void **state)
{
	static const struct {
		const char *said;
		int code;
		bool over;
	} answers[] = {{"RUNNING\n", 0, false}, {"PENDING\n", 0, false}, {"SUSPENDED\n", 0, false},
		{"COMPLETING\n", 0, true}, {"COMPLETED\n", 0, true}, {"CANCELLED\n", 0, true},
		{"TIMEOUT\n", 0, true}, {"OUT_OF_MEMORY\n", 0, true}, {"", 0, true},
		{"slurm_load_jobs error: Invalid job id specified\n", 1, true},
		{"slurm_load_jobs error: Unable to contact slurm controller\n", 1, false},
		{"", 1, false}, {"", 127, false}};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(answers); i++)
		assert_int_equal(cop_slurm_says_over(answers[i].said, answers[i].code << 8),
			answers[i].over);
	/* Ended by a signal. */
	assert_false(cop_slurm_says_over("", SIGKILL));
}

static void put_squeue(const char *script)
{
	const char *path = in_dir("squeue");
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fprintf(f, "#!/bin/sh\n%s\n", script);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, 0700), 0);
}

static void it_is_asked_about_this_job(void **state)
{
	char *path = strdup(getenv("PATH")), more[256];

	(void)state;
	snprintf(more, sizeof(more), "%s:/bin:/usr/bin", dir);
	setenv("PATH", more, 1);
	put_squeue(
		"[ \"$*\" = '--noheader --format=%T --jobs 4711' ] || { echo RUNNING; exit 0; }");
	assert_true(cop_slurm_job_is_over("4711", -1));
	assert_false(cop_slurm_job_is_over("4712", -1));
	put_squeue("exit 0");
	assert_false(cop_slurm_job_is_over("", -1));
	assert_false(cop_slurm_job_is_over("47 --all", -1));
	unlink(in_dir("squeue"));
	setenv("PATH", dir, 1);
	assert_false(cop_slurm_job_is_over("4711", -1));
	setenv("PATH", path, 1);
	free(path);
}

static void a_controller_that_hangs_is_not_waited_for(void **state)
{
	char *path = strdup(getenv("PATH")), more[256];
	uint64_t before = cop_now_ms();
	int fd = eventfd(1, EFD_CLOEXEC);

	(void)state;
	snprintf(more, sizeof(more), "%s:/bin:/usr/bin", dir);
	setenv("PATH", more, 1);
	put_squeue("exec sleep 100");
	assert_false(cop_slurm_job_is_over("4711", fd));
	assert_true(cop_now_ms() - before < 50000);
	setenv("PATH", path, 1);
	free(path);
	close(fd);
}

static void never(void *arg)
{
	(void)arg;
	abort();
}

static void outside_of_a_step_nothing_is_watched(void **state)
{
	struct cop_slurm_watch *w;

	(void)state;
	GIVEN(JOB);
	assert_null(cop_slurm_watch_start(never, NULL));
	GIVEN("SLURM_STEP_ID=2", "SLURM_JOB_ID=x");
	assert_null(cop_slurm_watch_start(never, NULL));
	GIVEN(JOB, STEP);
	w = cop_slurm_watch_start(never, NULL);
	assert_non_null(w);
	cop_slurm_watch_stop(w);
	cop_slurm_watch_stop(NULL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_script_starts_its_nodes_in_a_step),
		TEST(the_tasks_of_a_step_start_them_where_they_outlive_it),
		TEST(who_says_where_the_node_is_gets_it_here),
		TEST(a_step_has_a_name_that_no_other_has),
		TEST(the_command_hears_what_its_nodes_say),
		TEST(other_lines_of_the_step_are_no_word),
		TEST(a_task_hears_the_node_of_its_host),
		TEST(of_a_start_that_it_saw_fail_it_takes_no_more_words),
		TEST(the_word_of_task_0_comes_by_the_job_directory),
		TEST(squeue_tells_whether_a_job_is_over),
		TEST(it_is_asked_about_this_job),
		TEST(a_controller_that_hangs_is_not_waited_for),
		TEST(outside_of_a_step_nothing_is_watched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
