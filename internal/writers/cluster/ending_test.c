/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "job/dir/dir.h"
#include "writers/cluster/cluster.h"

#define SIGNAL_END "[Info] (end_because) ending reason=\"signal\"\n"
#define OTHER_END "[Info] (end_because) ending reason=\"unmounted\"\n"
#define NO_END "[Info] (join_tree) parent readiness confirmed after 5140 us\n"

static char dir[64], logs[80];
static struct cop_buf got;

static int set_up(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/cop-ending.XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(logs, sizeof(logs), "%s/logs", dir);
	return mkdir(logs, 0700);
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	cop_buf_free(&got);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

/* A tree of n1, n2, and n1 again. */
static void write_tree(bool stopped)
{
	char n1[] = "n1", n2[] = "n2", again[] = "n1";
	struct cop_job_host host[] = {{.name = n1, .port = 7720}, {.name = n2, .port = 7720},
		{.name = again, .port = 7721}};
	struct cop_job_tree tree = {.stopped = stopped,
		.fanout = 2,
		.trees = 1,
		.peer_timeout_ms = 1000,
		.net_type = "tcp",
		.source = "/soft",
		.hosts = {.host = host, .count = 3}};
	struct cop_err err;

	assert_int_equal(cop_job_tree_write(dir, &tree, &err), 0);
}

/* Writes a log, last modified `at` seconds after an arbitrary time. */
static void write_log(const char *name, const char *text, time_t at)
{
	struct timespec times[2] = {{.tv_sec = 1700000000 + at}, {.tv_sec = 1700000000 + at}};
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", logs, name);
	assert_int_equal(cop_write_file(path, text, strlen(text), 0600), 0);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void expect(int end, const char *text)
{
	cop_buf_free(&got);
	assert_int_equal(cop_report_ending(dir, &got), end);
	assert_string_equal(got.data ? got.data : "", text);
}

static void a_directory_without_a_list_of_nodes_says_nothing(void **state)
{
	(void)state;
	expect(COP_REPORT_END_UNKNOWN, "");
}

static void a_job_that_a_command_stopped_was_stopped_whatever_its_logs_say(void **state)
{
	(void)state;
	write_tree(true);
	write_log("n1-10-output.log", SIGNAL_END, 0);
	expect(COP_REPORT_END_STOPPED, "stopped");
}

static void a_job_whose_nodes_ended_by_a_signal(void **state)
{
	(void)state;
	write_tree(false);
	write_log("n1-10-output.log", NO_END SIGNAL_END, 0);
	write_log("n2-11-output.log", SIGNAL_END, 0);
	expect(COP_REPORT_END_OTHER, "ended by a signal, as at a time limit, without copper stop");
	write_log("n2-11-output.log", OTHER_END, 0);
	expect(COP_REPORT_END_OTHER, "ended by themselves or by a signal, without copper stop");
}

/* In a tree of one node, the list has the machine's name, but the log is named after localhost. */
static void a_node_alone_calls_itself_localhost(void **state)
{
	char name[] = "vm7";
	struct cop_job_host host[] = {{.name = name, .port = 7720}};
	struct cop_job_tree tree = {.fanout = 4,
		.trees = 1,
		.peer_timeout_ms = 1000,
		.net_type = "tcp",
		.source = "/soft",
		.socket = "/run/x.sock",
		.hosts = {.host = host, .count = 1}};
	struct cop_err err;

	(void)state;
	assert_int_equal(cop_job_tree_write(dir, &tree, &err), 0);
	write_log("localhost-10-output.log", SIGNAL_END, 0);
	expect(COP_REPORT_END_OTHER, "ended by a signal, as at a time limit, without copper stop");
}

static void nodes_that_logged_no_end_are_counted(void **state)
{
	(void)state;
	write_tree(false);
	write_log("n1-10-output.log", SIGNAL_END, 0);
	write_log("n2-11-output.log", NO_END, 0);
	expect(COP_REPORT_END_OTHER,
		"ended by a signal, as at a time limit, without copper stop on 1 of the 2 hosts looked at; the others were killed, or still run");
}

static void the_newest_log_of_a_host_counts_and_no_other_file(void **state)
{
	(void)state;
	write_tree(false);
	write_log("n1-10-output.log", SIGNAL_END, 0);
	write_log("n1-12-output.log", NO_END, 7);
	write_log("n2-11-output.log", NO_END, 3);
	write_log("n2-x-output.log", SIGNAL_END, 9);
	write_log("n22-13-output.log", SIGNAL_END, 9);
	setenv("TZ", "UTC", 1);
	tzset();
	expect(COP_REPORT_END_NONE,
		"running, or killed: none of its 3 nodes has logged an end; the last line of a log is of 2023-11-14 22:13:27");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(a_directory_without_a_list_of_nodes_says_nothing),
		T(a_job_that_a_command_stopped_was_stopped_whatever_its_logs_say),
		T(a_job_whose_nodes_ended_by_a_signal),
		T(a_node_alone_calls_itself_localhost),
		T(nodes_that_logged_no_end_are_counted),
		T(the_newest_log_of_a_host_counts_and_no_other_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
