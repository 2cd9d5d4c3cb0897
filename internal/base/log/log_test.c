/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log/log.h"
#include "base/log/log_priv.h"

static char folder[] = "/tmp/cop_log_test.XXXXXX";
static char path[64];

static int setup(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "%s/out.log", folder);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	cop_log_close();
	unlink(path);
	return 0;
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int drop_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

static char *content(void)
{
	size_t len;
	char *text;

	assert_int_equal(cop_read_file(path, COP_MIB, &text, &len), 0);
	return text;
}

static unsigned count_lines(const char *text)
{
	unsigned n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static void a_file_that_cannot_be_opened_is_named(void **state)
{
	struct cop_err err = {0};

	(void)state;
	assert_int_equal(cop_log_open(COP_LOG_INFO, COP_LOG_FILE, "/nowhere/x.log", &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nowhere/x.log"));
	assert_false(cop_log_on(COP_LOG_INFO));
}

static void before_open_only_warnings_and_worse_are_on(void **state)
{
	(void)state;
	assert_false(cop_log_on(COP_LOG_NONE));
	assert_true(cop_log_on(COP_LOG_FATAL));
	assert_true(cop_log_on(COP_LOG_WARNING));
	assert_false(cop_log_on(COP_LOG_INFO));
}

static void level_none_is_silent(void **state)
{
	char *text;

	(void)state;
	assert_int_equal(cop_log_open(COP_LOG_NONE, COP_LOG_FILE, path, NULL), 0);
	cop_log_write(COP_LOG_FATAL, "here", "nobody reads this");
	text = content();
	assert_string_equal(text, "");
	free(text);
}

/* 2026-03-27 23-33-58.082 [Info] (where) text */
static void a_line_looks_as_sites_grep_for_it(void **state)
{
	int year, month, day, hour, minute, second, ms;
	char level[16], where[16], rest[64];
	char *text;

	(void)state;
	assert_int_equal(cop_log_open(COP_LOG_INFO, COP_LOG_FILE, path, NULL), 0);
	cop_log_write(COP_LOG_INFO, "start", "server running at address: %s", "ofi+tcp://x");
	cop_log_debug("not at this level");
	text = content();
	assert_int_equal(count_lines(text), 1);
	assert_int_equal(
		sscanf(text, "%4d-%2d-%2d %2d-%2d-%2d.%3d [%15[A-Za-z]] (%15[a-z]) %63[^\n]", &year,
			&month, &day, &hour, &minute, &second, &ms, level, where, rest),
		10);
	assert_string_equal(level, "Info");
	assert_string_equal(where, "start");
	assert_string_equal(rest, "server running at address: ofi+tcp://x");
	free(text);
}

static void a_name_with_a_newline_cannot_forge_a_line(void **state)
{
	char *text;

	(void)state;
	assert_int_equal(cop_log_open(COP_LOG_ERROR, COP_LOG_FILE, path, NULL), 0);
	cop_log_error("path=%s", "a\n2026-01-01 [Fatal]\x1b[31m");
	text = content();
	assert_int_equal(count_lines(text), 1);
	assert_non_null(strstr(text, "path=a 2026-01-01 [Fatal] [31m\n"));
	free(text);
}

static void a_line_that_is_too_long_ends_in_dots(void **state)
{
	char *text, *longest = malloc(20001);

	(void)state;
	assert_non_null(longest);
	memset(longest, 'x', 20000);
	longest[20000] = '\0';
	assert_int_equal(cop_log_open(COP_LOG_ERROR, COP_LOG_FILE, path, NULL), 0);
	cop_log_error("%s", longest);
	text = content();
	assert_int_equal(count_lines(text), 1);
	assert_true(strlen(text) < 7000);
	assert_non_null(strstr(text, "xxx...\n"));
	free(text);
	free(longest);
}

/* The linker merges equal format strings. */
static void a_format_of_two_functions_is_limited_for_each(void **state)
{
	char *text;

	(void)state;
	cop_log_open(COP_LOG_INFO, COP_LOG_FILE, path, NULL);
	for (int i = 0; i < COP_LOG_BURST + 7; i++)
		cop_log_write(COP_LOG_INFO, "storm", "%s", "the same again");
	cop_log_write(COP_LOG_INFO, "calm", "%s", "something else");
	cop_log_close();
	text = content();
	assert_non_null(strstr(text, "(calm) something else"));
	assert_int_equal(count_lines(text), COP_LOG_BURST + 2);
	free(text);
}

static void repeats_are_limited_and_counted(void **state)
{
	char *text;

	(void)state;
	assert_int_equal(cop_log_open(COP_LOG_INFO, COP_LOG_FILE, path, NULL), 0);
	for (int i = 0; i < COP_LOG_BURST + 7; i++)
		cop_log_write(COP_LOG_INFO, "storm", "read failed n=%d", i);
	cop_log_write(COP_LOG_INFO, "calm", "something else");
	cop_log_close();
	text = content();
	assert_int_equal(count_lines(text), COP_LOG_BURST + 2);
	assert_non_null(strstr(text, "(calm) something else"));
	assert_non_null(strstr(text, "(storm) similar lines not written count=7"));
	free(text);
}

static void attempts_are_logged_by_address_and_summed_up(void **state)
{
	char *text, from[32];

	(void)state;
	assert_int_equal(cop_log_open(COP_LOG_INFO, COP_LOG_FILE, path, NULL), 0);
	for (int i = 0; i < 800; i++)
		cop_log_refused("ask", "not of the job", "10.1.2.3");
	cop_log_refused("ask", "not of the job", "10.1.2.4");
	for (int i = 0; i < 300; i++) {
		snprintf(from, sizeof(from), "10.2.%d.%d", i / 200, i % 200);
		cop_log_refused("ask", "not of the job", from);
	}
	cop_log_close();
	text = content();
	assert_int_equal(count_lines(text), COP_LOG_REFUSED_MAX + 2);
	assert_non_null(strstr(text,
		"[Warning] (refused) refused what=ask from=10.1.2.3 why=\"not of the job\"\n"));
	assert_non_null(strstr(text, "from=10.1.2.3 why=\"not of the job\" more=799\n"));
	assert_non_null(strstr(text, "from=10.1.2.4 why=\"not of the job\"\n"));
	assert_non_null(strstr(text, "refused from others more=286\n"));
	free(text);
}

static void debug_lines_are_all_written(void **state)
{
	char *text;

	(void)state;
	assert_int_equal(cop_log_open(COP_LOG_DEBUG, COP_LOG_FILE, path, NULL), 0);
	for (int i = 0; i < COP_LOG_BURST + 7; i++)
		cop_log_debug("step n=%d", i);
	text = content();
	assert_int_equal(count_lines(text), COP_LOG_BURST + 7);
	free(text);
}

static void a_new_file_takes_its_folders_permissions(void **state)
{
	mode_t old = umask(077);
	struct stat st;

	(void)state;
	assert_int_equal(chmod(folder, 0750), 0);
	assert_int_equal(cop_log_open(COP_LOG_INFO, COP_LOG_FILE, path, NULL), 0);
	umask(old);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
}

static void an_existing_file_is_appended_to(void **state)
{
	char *text;

	(void)state;
	assert_int_equal(cop_write_file(path, "before\n", 7, 0600), 0);
	assert_int_equal(cop_log_open(COP_LOG_INFO, COP_LOG_FILE, path, NULL), 0);
	cop_log_info("after");
	text = content();
	assert_int_equal(strncmp(text, "before\n", 7), 0);
	assert_int_equal(count_lines(text), 2);
	free(text);
}

static void what_goes_to_standard_error_is_in_the_file_too(void **state)
{
	int saved = dup(STDERR_FILENO);
	char *text;

	(void)state;
	assert_int_equal(cop_log_open(COP_LOG_INFO, COP_LOG_FILE, path, NULL), 0);
	cop_log_info("begin");
	cop_log_take_stderr();
	fprintf(stderr, "assertion failed\n");
	dup2(saved, STDERR_FILENO);
	close(saved);
	text = content();
	assert_non_null(strstr(text, "begin\nassertion failed\n"));
	free(text);
}

/* Standard output is redirected to a file meanwhile. */
static void both_writes_the_file_and_standard_output(void **state)
{
	char *text, copy[80];
	int saved = dup(STDOUT_FILENO), out;

	(void)state;
	snprintf(copy, sizeof(copy), "%s.stdout", path);
	fflush(stdout);
	assert_non_null(freopen(copy, "w", stdout));
	assert_int_equal(cop_log_open(COP_LOG_INFO, COP_LOG_BOTH, path, NULL), 0);
	cop_log_info("twice");
	cop_log_close();
	out = dup2(saved, STDOUT_FILENO);
	close(saved);
	assert_int_equal(out, STDOUT_FILENO);
	text = content();
	assert_non_null(strstr(text, "twice"));
	free(text);
	assert_int_equal(cop_read_file(copy, 4096, &text, &(size_t){0}), 0);
	assert_non_null(strstr(text, "twice"));
	free(text);
	unlink(copy);
}

static void *write_many(void *arg)
{
	for (int i = 0; i < 500; i++)
		cop_log_debug("thread=%s n=%d", (const char *)arg, i);
	return NULL;
}

static void threads_write_whole_lines_while_the_log_is_reopened(void **state)
{
	pthread_t thread[3];
	char *text, *line, *save;
	unsigned lines = 0;

	(void)state;
	assert_int_equal(cop_log_open(COP_LOG_DEBUG, COP_LOG_FILE, path, NULL), 0);
	for (size_t i = 0; i < COP_ARRAY_SIZE(thread); i++)
		assert_int_equal(cop_thread_start(&thread[i], "test", write_many, "abc"), 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(cop_log_open(COP_LOG_DEBUG, COP_LOG_FILE, path, NULL), 0);
	for (size_t i = 0; i < COP_ARRAY_SIZE(thread); i++)
		pthread_join(thread[i], NULL);
	text = content();
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		assert_non_null(strstr(line, " [Debug] (write_many) thread=abc n="));
		lines++;
	}
	assert_int_equal(lines, 1500);
	free(text);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_file_that_cannot_be_opened_is_named),
		TEST(before_open_only_warnings_and_worse_are_on),
		TEST(level_none_is_silent),
		TEST(a_line_looks_as_sites_grep_for_it),
		TEST(a_name_with_a_newline_cannot_forge_a_line),
		TEST(a_line_that_is_too_long_ends_in_dots),
		TEST(repeats_are_limited_and_counted),
		TEST(a_format_of_two_functions_is_limited_for_each),
		TEST(attempts_are_logged_by_address_and_summed_up),
		TEST(debug_lines_are_all_written),
		TEST(a_new_file_takes_its_folders_permissions),
		TEST(an_existing_file_is_appended_to),
		TEST(what_goes_to_standard_error_is_in_the_file_too),
		TEST(both_writes_the_file_and_standard_output),
		TEST(threads_write_whole_lines_while_the_log_is_reopened),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
