/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "writers/runs/take_priv.h"

#define ID "00000000000000ab"
#define HEAD "copper-log\t1\t" ID "\t100.5\thost\n"

static char dir[64], store[96], logs[96];
static struct cop_take *take;
static struct cop_buf notes;

static int make_dir(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/take_test.XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(store, sizeof(store), "%s/runs.db", dir);
	snprintf(logs, sizeof(logs), "%s/logs", dir);
	take = cop_take_new();
	return !take || mkdir(logs, 0700);
}

static int remove_dir(void **state)
{
	char command[128];

	(void)state;
	cop_take_free(take);
	cop_buf_free(&notes);
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return system(command);
}

static void append(const char *name, const char *text)
{
	char path[192];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", logs, name);
	f = fopen(path, "a");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static bool is_there(const char *name)
{
	char path[192];

	snprintf(path, sizeof(path), "%s/%s", logs, name);
	return access(path, F_OK) == 0;
}

static void take_in(const char *job)
{
	struct cop_err err = {0};

	assert_int_equal(
		cop_take_logs(take, logs, job, store, cop_now_ms() + 60000, &notes, &err), 0);
}

static struct cop_runrec load(void)
{
	struct cop_runrec r = {0};
	struct cop_store *s = NULL;
	struct cop_err err = {0};

	assert_int_equal(cop_store_open(store, &s, NULL, &err), 0);
	assert_int_equal(cop_store_load(s, ID, &r, &err), 0);
	cop_store_close(s);
	return r;
}

static double value_at(const struct cop_runrec *r, const char *key, uint64_t step)
{
	const struct cop_runrec_series *s = cop_runrec_find(r, key);

	for (size_t i = 0; s && i < s->n; i++)
		if (s->point[i].step == step)
			return s->point[i].value;
	return -1;
}

static void put_job(void)
{
	struct cop_runrec r = {.id = ID, .status = COP_RUNREC_FINISHED, .start_s = 1, .end_s = 9};
	struct cop_err err = {0};

	cop_runrec_put(&r, COP_RUNREC_VERSION, "1");
	cop_runrec_put(&r, COP_RUNREC_REASON, "stopped");
	assert_int_equal(cop_store_put(store, &r, 0, cop_now_ms() + 60000, &err), 0);
	cop_runrec_free(&r);
}

static void what_is_not_taken_in_time_is_left_for_the_next_round(void **state)
{
	struct cop_err err = {0};
	struct cop_runrec r;

	(void)state;
	append("a.log", HEAD "metric\tloss\t0\t101.0\t2.5\n");
	assert_int_equal(
		cop_take_logs(take, logs, NULL, store, cop_now_ms(), &notes, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.text, "in time"));
	take_in(NULL);
	r = load();
	assert_true(value_at(&r, "loss", 0) == 2.5);
	cop_runrec_free(&r);
}

static void what_a_program_logs_is_a_run(void **state)
{
	struct cop_runrec r;

	(void)state;
	append("a.log", HEAD "name\ttrain\nparam\tlr\t0.1\ntag\ta\\tb\tc\\nd\n"
			     "resource\thost.name\thost\nmetric\tloss\t0\t101.0\t2.5\n");
	take_in(NULL);
	assert_true(is_there("a.log"));
	append("a.log", "metric\tloss\t1\t102.0\t-inf\nmetric\tacc\t7\t102.0\tnan\n"
			"status\tFAILED\t103.25\tValueError: x\n");
	take_in(NULL);
	assert_false(is_there("a.log"));
	r = load();
	assert_string_equal(cop_runrec_get(&r, COP_RUNREC_NAME), "train");
	assert_int_equal(r.status, COP_RUNREC_FAILED);
	assert_string_equal(cop_runrec_get(&r, COP_RUNREC_REASON), "ValueError: x");
	assert_true(r.start_s == 100.5 && r.end_s == 103.25);
	assert_string_equal(cop_runrec_value(&r, COP_RUNREC_PARAM, "lr"), "0.1");
	assert_string_equal(cop_runrec_value(&r, COP_RUNREC_TAG, "a\tb"), "c\nd");
	assert_string_equal(cop_runrec_value(&r, COP_RUNREC_TAG, "nan.acc"), "step 7");
	assert_true(value_at(&r, "loss", 0) == 2.5);
	assert_int_equal(notes.len, 0);
	cop_runrec_free(&r);
}

static void a_damaged_line_is_named_and_skipped(void **state)
{
	struct cop_runrec r;

	(void)state;
	append("a.log",
		HEAD "metric\tx\t0\t101.0\t1\nmetric\tx\t1\t101.0\t0.1\t\t\t\t\t\n"
		     "metric\tx\t2\t101.0\t3\nmetric\tx\t-1\t101.0\t3\nmetric\t\t3\t101.0\t3\n"
		     "metric\tx\t4\t101.0\t0x10\nwhat\n");
	take_in(NULL);
	assert_non_null(strstr(notes.data, "a.log: line 3 is damaged, and skipped\n"));
	assert_non_null(strstr(notes.data, "line 6 is damaged, and skipped like others"));
	assert_null(strstr(notes.data, "line 7"));
	r = load();
	assert_true(value_at(&r, "x", 0) == 1 && value_at(&r, "x", 2) == 3);
	assert_int_equal(cop_runrec_find(&r, "x")->n, 2);
	cop_runrec_free(&r);
}

static void a_line_that_is_not_whole_waits_for_its_end(void **state)
{
	struct cop_runrec r;

	(void)state;
	append("a.log", HEAD "metric\tx\t0\t101.0\t1");
	take_in(NULL);
	r = load();
	assert_null(cop_runrec_find(&r, "x"));
	cop_runrec_free(&r);
	append("a.log", "2\n");
	take_in(NULL);
	r = load();
	assert_true(value_at(&r, "x", 0) == 12);
	cop_runrec_free(&r);
}

static void a_line_without_end_is_passed_over(void **state)
{
	struct cop_runrec r;

	(void)state;
	append("a.log", HEAD);
	for (int i = 0; i < 100000; i++)
		append("a.log", "0123456789");
	append("a.log", "\nmetric\tx\t0\t101.0\t1\n");
	take_in(NULL);
	r = load();
	assert_true(value_at(&r, "x", 0) == 1);
	cop_runrec_free(&r);
}

/* How often files in the directory were opened since the last call. */
static unsigned count_opened(int watch)
{
	char text[16384];
	ssize_t len = read(watch, text, sizeof(text));
	unsigned n = 0;

	for (ssize_t at = 0; at < len;) {
		struct inotify_event e;

		memcpy(&e, text + at, sizeof(e));
		n += e.len && (e.mask & IN_OPEN);
		at += (ssize_t)(sizeof(e) + e.len);
	}
	return n;
}

static void only_a_file_that_has_grown_is_opened(void **state)
{
	int watch = inotify_init1(IN_NONBLOCK);
	struct cop_runrec r;

	(void)state;
	put_job();
	append("a.log", HEAD);
	append("b.log", HEAD);
	append("c.log", "copper-log\t1\t00000000000000cd\t100.5\thost\n");
	assert_true(inotify_add_watch(watch, logs, IN_OPEN) >= 0);
	cop_take_quickly(take, true);
	take_in(ID);
	assert_int_equal(count_opened(watch), 3);
	take_in(ID);
	assert_int_equal(count_opened(watch), 0);
	append("b.log", "metric\tx\t0\t101.0\t1\n");
	append("c.log", "metric\tx\t0\t101.0\t2\n");
	assert_int_equal(count_opened(watch), 2);
	take_in(ID);
	assert_int_equal(count_opened(watch), 1);
	cop_take_quickly(take, false);
	take_in(ID);
	assert_int_equal(count_opened(watch), 2);
	r = load();
	assert_true(value_at(&r, "x", 0) == 1);
	cop_runrec_free(&r);
	close(watch);
}

static void set_time(const char *name, long s)
{
	const struct timespec at[2] = {{s, 0}, {s, 0}};
	char path[192];

	snprintf(path, sizeof(path), "%s/%s", logs, name);
	assert_int_equal(utimensat(AT_FDCWD, path, at, 0), 0);
}

static void what_an_earlier_job_left_is_not_of_this_one(void **state)
{
	struct cop_runrec r;

	(void)state;
	put_job();
	append("copper_run.txt", "COPPER_RUN_ID=" ID "\n");
	append("job-old.log", "copper-log\t1\t-\t100.5\thost\nmetric\told\t0\t101.0\t1\n");
	append("job-new.log", "copper-log\t1\t-\t100.5\thost\nmetric\tnew\t0\t101.0\t1\n");
	set_time("copper_run.txt", 1000);
	set_time("job-old.log", 1000);
	set_time("job-new.log", 1001);
	take_in(ID);
	r = load();
	assert_null(cop_runrec_find(&r, "old"));
	assert_true(value_at(&r, "new", 0) == 1);
	assert_true(cop_take_has_logs(logs));
	assert_false(cop_take_has_logs(dir));
	cop_runrec_free(&r);
}

static void of_two_values_of_a_step_the_later_counts(void **state)
{
	struct cop_runrec r;

	(void)state;
	append("a.log", HEAD "metric\tx\t0\t105.0\t5\n");
	append("b.log", HEAD "metric\tx\t0\t104.0\t4\n");
	take_in(NULL);
	r = load();
	assert_true(value_at(&r, "x", 0) == 5);
	cop_runrec_free(&r);
}

static void a_job_takes_what_is_logged_for_it(void **state)
{
	struct cop_runrec r;

	(void)state;
	put_job();
	append("a.log",
		"copper-log\t1\t-\t100.5\thost\nmetric\tx\t0\t101.0\t1\nmetric\tfuse.requests\t0\t101."
		"0\t1\nparam\tsource\t/s\n");
	append("b.log", "copper-log\t1\t00000000000000cd\t100.5\thost\nmetric\ty\t0\t101.0\t1\n");
	append("c.log", HEAD "status\tFAILED\t101.0\tit diverged\n");
	take_in(ID);
	take_in(ID);
	assert_true(is_there("c.log"));
	r = load();
	assert_true(value_at(&r, "x", 0) == 1);
	assert_true(value_at(&r, "program.fuse.requests", 0) == 1);
	assert_string_equal(cop_runrec_value(&r, COP_RUNREC_PARAM, "program.source"), "/s");
	assert_null(cop_runrec_find(&r, "y"));
	assert_int_equal(r.status, COP_RUNREC_FAILED);
	assert_string_equal(
		cop_runrec_get(&r, COP_RUNREC_REASON), "the program failed: it diverged");
	cop_runrec_free(&r);
}

static void other_files_and_versions_are_left_alone(void **state)
{
	(void)state;
	append("a.log", "2026-11-26 a line of somebody's log\n");
	append("b.log", "copper-log\t2\t" ID "\tmore\n");
	append("notes", HEAD);
	append("c.log", HEAD "status\tFINISHED\t101.0\t\n");
	take_in(NULL);
	take_in(NULL);
	assert_true(is_there("a.log") && is_there("b.log") && is_there("notes"));
	assert_false(is_there("c.log"));
	assert_non_null(strstr(notes.data, "a.log: line 1 is not the first one"));
	assert_non_null(strstr(notes.data, "b.log: line 1 is of another version"));
}

int main(void)
{
#define EACH(test) cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)
	const struct CMUnitTest tests[] = {
		EACH(what_is_not_taken_in_time_is_left_for_the_next_round),
		EACH(what_a_program_logs_is_a_run),
		EACH(a_damaged_line_is_named_and_skipped),
		EACH(a_line_that_is_not_whole_waits_for_its_end),
		EACH(a_line_without_end_is_passed_over),
		EACH(only_a_file_that_has_grown_is_opened),
		EACH(what_an_earlier_job_left_is_not_of_this_one),
		EACH(of_two_values_of_a_step_the_later_counts),
		EACH(a_job_takes_what_is_logged_for_it),
		EACH(other_files_and_versions_are_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
