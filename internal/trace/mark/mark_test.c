/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "trace/mark/mark.h"

static char dir[] = "/tmp/copper-mark-test.XXXXXX";

static char *path_of(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static char *content(const char *name)
{
	char *data = NULL;
	size_t len;

	assert_int_equal(cop_read_file(path_of(name), 64 * COP_MIB, &data, &len), 0);
	return data;
}

static void put(const char *name, const char *text)
{
	assert_int_equal(cop_write_file(path_of(name), text, strlen(text), 0600), 0);
}

static struct cop_mark_event event(const char *name, char phase)
{
	return (struct cop_mark_event){.name = name,
		.category = "c",
		.phase = phase,
		.pid = 5,
		.ts_ns = 1000000001234567890,
		.dur_ns = -1};
}

static void append(pid_t shell, const char *name)
{
	struct cop_mark_event e = event(name, 'B');
	struct cop_err err = {0};

	assert_int_equal(cop_mark_append(shell, &e, 1, &err), 0);
}

#define LINE(name)                                                                                 \
	"{\"name\":\"" name "\",\"cat\":\"c\",\"pid\":5,\"tid\":5,\"ts\":1000000001234567.890,"    \
	"\"ph\":\"B\"}"

static void test_a_new_file_is_closed_and_continued(void **state)
{
	char *text;

	(void)state;
	append(10, "a");
	text = content("perfflow.array.10-shell.pfw");
	assert_string_equal(text, "[\n" LINE("a") "\n]\n");
	free(text);
	append(10, "b");
	text = content("perfflow.array.10-shell.pfw");
	assert_string_equal(text, "[\n" LINE("a") ",\n" LINE("b") "\n]\n");
	free(text);
}

static void test_a_file_goes_on_in_its_own_form(void **state)
{
	char *text;

	(void)state;
	put("perfflow.array.11-shell.pfw", "{\"traceEvents\":[\n{}\n]}\n");
	append(11, "a");
	text = content("perfflow.array.11-shell.pfw");
	assert_string_equal(text, "{\"traceEvents\":[\n{},\n" LINE("a") "\n]}\n");
	free(text);
	append(12, "a");
	text = content("perfflow.array.12-shell.pfw");
	assert_int_equal(text[0], '[');
	free(text);
}

static void test_what_cannot_be_continued_stays(void **state)
{
	static const char *const others[] = {"x", "[\n{},\n", "]\n", "\n]\n", "no trace at all"};
	char name[64], again[64], *text;

	(void)state;
	for (unsigned i = 0; i < COP_ARRAY_SIZE(others); i++) {
		snprintf(name, sizeof(name), "perfflow.array.%u-shell.pfw", 20 + i);
		snprintf(again, sizeof(again), "perfflow.array.%u-shell-2.pfw", 20 + i);
		put(name, others[i]);
		append((pid_t)(20 + i), "a");
		text = content(name);
		assert_string_equal(text, others[i]);
		free(text);
		text = content(again);
		assert_string_equal(text, "[\n" LINE("a") "\n]\n");
		free(text);
	}
}

static void test_links_and_directories_are_not_followed(void **state)
{
	char target[256], *text;

	(void)state;
	put("victim", "}\n]\n");
	snprintf(target, sizeof(target), "%s", path_of("victim"));
	assert_int_equal(symlink(target, path_of("perfflow.array.30-shell.pfw")), 0);
	assert_int_equal(mkdir(path_of("perfflow.array.30-shell-2.pfw"), 0700), 0);
	append(30, "a");
	text = content("victim");
	assert_string_equal(text, "}\n]\n");
	free(text);
	free(content("perfflow.array.30-shell-3.pfw"));
}

static unsigned lines_of(const char *text)
{
	unsigned n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static void test_processes_at_the_same_time_lose_nothing(void **state)
{
	char *text;
	int status;

	(void)state;
	for (int i = 0; i < 8; i++)
		if (fork() == 0) {
			for (int j = 0; j < 50; j++)
				append(40, "a");
			_exit(0);
		}
	while (wait(&status) > 0)
		assert_int_equal(status, 0);
	text = content("perfflow.array.40-shell.pfw");
	assert_int_equal(lines_of(text), 2 + 8 * 50);
	assert_memory_equal(text + strlen(text) - 5, "\"}\n]\n", 5);
	free(text);
}

static void test_several_events_are_one_write(void **state)
{
	struct cop_mark_event e[2] = {event("a", 'C'), event("b", 'X')};
	struct cop_err err = {0};
	char *text;

	(void)state;
	e[0].counts = true;
	e[0].cpu_percent = 12.5;
	e[0].memory_kib = 4096;
	e[1].dur_ns = 1500;
	assert_int_equal(cop_mark_append(50, e, 2, &err), 0);
	text = content("perfflow.array.50-shell.pfw");
	assert_non_null(strstr(
		text, "\"ph\":\"C\",\"args\":{\"cpu_usage\":12.5,\"memory_usage\":4096}},\n"));
	assert_non_null(strstr(text, "\"ph\":\"X\",\"dur\":1.500}\n]\n"));
	free(text);
}

static void test_a_directory_that_cannot_be_is_named(void **state)
{
	struct cop_mark_event e = event("a", 'B');
	struct cop_err err = {0};
	char moved[256];

	(void)state;
	snprintf(moved, sizeof(moved), "%s.moved", dir);
	assert_int_equal(rename(dir, moved), 0);
	assert_int_equal(symlink("/dev/null", dir), 0);
	assert_int_equal(cop_mark_append(60, &e, 1, &err), -ENOTDIR);
	assert_non_null(strstr(err.text, "cannot write /tmp/copper-mark-test."));
	assert_int_equal(unlink(dir), 0);
	assert_int_equal(rename(moved, dir), 0);
}

static int set_up(void **state)
{
	char options[512];

	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(options, sizeof(options), "log-filename-include=pid:log-dir=%s", dir);
	setenv("PERFFLOW_OPTIONS", options, 1);
	return cop_mark_options().enabled ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[256];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_new_file_is_closed_and_continued),
		cmocka_unit_test(test_a_file_goes_on_in_its_own_form),
		cmocka_unit_test(test_what_cannot_be_continued_stays),
		cmocka_unit_test(test_links_and_directories_are_not_followed),
		cmocka_unit_test(test_processes_at_the_same_time_lose_nothing),
		cmocka_unit_test(test_several_events_are_one_write),
		cmocka_unit_test(test_a_directory_that_cannot_be_is_named),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
