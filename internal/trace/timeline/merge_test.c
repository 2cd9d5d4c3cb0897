/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/timeline/timeline_testing.h"

/* Returns the timeline of these files without the parts that every timeline has; the caller frees
 * it. */
static char *merged(const char *const *text, size_t n, unsigned threads)
{
	struct cop_merge *m = cop_merge_new(threads, "/tmp");
	struct cop_trace_result result;
	struct cop_trace_files *files;
	struct cop_buf notes = {0}, out = {0};
	char path[4][32], *paths[4];

	for (size_t i = 0; i < n; i++) {
		int fd;

		paths[i] = strcpy(path[i], "/tmp/copper-merge.XXXXXX");
		fd = mkstemp(path[i]);
		assert_true(cop_write_full(fd, text[i], strlen(text[i])) > 0);
		close(fd);
	}
	assert_int_equal(cop_trace_files_new(paths, n, &files, &notes, NULL), 0);
	assert_int_equal(cop_trace_read(files,
				 &(struct cop_trace_conf){.threads = threads,
					 .names = true,
					 .args = true,
					 .unfinished = true,
					 .batch = cop_merge_add_all,
					 .arg = m},
				 &result, &notes, NULL),
		0);
	assert_int_equal(cop_merge_write(m, files, cop_merge_put_in_buf, &out), 0);
	for (size_t i = 0; i < n; i++)
		unlink(path[i]);
	cop_trace_files_free(files);
	cop_merge_free(m);
	cop_buf_free(&notes);
	return out.data;
}

/* Also checks what precedes and follows the events. */
static void check(const char *const *text, size_t n, const char *want)
{
	struct cop_buf whole = {0};

	cop_buf_printf(&whole, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n%s\n]}\n", want);
	for (unsigned threads = 1; threads <= 4; threads++) {
		char *got = merged(text, n, threads);

		assert_string_equal(got, whole.data);
		free(got);
	}
	cop_buf_free(&whole);
}
#define CHECK(want, ...)                                                                           \
	check((const char *const[]){__VA_ARGS__},                                                  \
		sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), want)

#define META(pid, tid, what, args)                                                                 \
	"{\"name\":\"" what "\",\"cat\":\"__metadata\",\"pid\":" pid ",\"tid\":" tid               \
	",\"ts\":0,\"ph\":\"M\",\"args\":{" args "}},\n"
#define NAMED(pid, tid, name, index)                                                               \
	META(pid, tid, "process_name", "\"name\":\"" name "\"")                                    \
	META(pid, tid, "process_sort_index", "\"sort_index\":" index)
#define X(pid, host)                                                                               \
	"{\"name\":\"x\",\"ph\":\"X\",\"pid\":" pid ",\"tid\":3,\"ts\":1,\"dur\":1,"               \
	"\"args\":{\"hostname\":\"" host "\"}}\n"
#define SHOWN(pid, host)                                                                           \
	"{\"name\":\"x\",\"cat\":\"\",\"pid\":" pid ",\"tid\":3,\"ts\":1,\"ph\":\"X\",\"dur\":1,"  \
	"\"args\":{\"hostname\":\"" host "\"}}"

static void a_pid_of_two_hosts_is_two_processes(void **state)
{
	(void)state;
	CHECK(NAMED("7", "3", "a (pid 7)", "0") NAMED("4194305", "3", "b (pid 7)", "1")
			SHOWN("4194305", "b") ",\n" SHOWN("7", "a"),
		X("7", "b"), X("7", "a"));
}

static void a_host_and_a_pid_in_two_files_is_one_process(void **state)
{
	(void)state;
	CHECK(NAMED("7", "3", "a rank 2: py (pid 7)", "0") SHOWN("7", "a") ",\n" SHOWN("7", "a"),
		X("7", "a") "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":7,\"args\":{\"name\":\"Rank 2\"}}\n",
		X("7", "a") "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":7,\"args\":{\"name\":\"py\"}}\n");
}

static void an_event_without_a_host_is_of_that_of_its_file(void **state)
{
	(void)state;
	CHECK(NAMED("7", "3", "a (pid 7)", "0") SHOWN("7",
		      "a") ",\n"
			   "{\"name\":\"m\",\"cat\":\"\",\"pid\":7,\"tid\":3,\"ts\":2,\"ph\":\"i\",\"s\":\"t\"}",
		X("7", "a") "{\"name\":\"m\",\"ph\":\"i\",\"pid\":7,\"tid\":3,\"ts\":2}\n");
}

static void ranks_come_first_and_in_order(void **state)
{
#define RANK(pid, host, rank)                                                                      \
	X(pid, host)                                                                               \
	"{\"name\":\"PR\",\"ph\":\"M\",\"pid\":" pid ",\"args\":{\"rank\":" rank "}}\n"
	(void)state;
	CHECK(NAMED("3", "3", "c rank 2 (pid 3)", "0") NAMED("2", "3", "b rank 10 (pid 2)", "1")
			NAMED("1", "3", "a (pid 1)", "2")
				SHOWN("1", "a") ",\n" SHOWN("2", "b") ",\n" SHOWN("3", "c"),
		X("1", "a"), RANK("2", "b", "10"), RANK("3", "c", "2"));
}

static void nothing_is_a_document_as_well(void **state)
{
	(void)state;
	CHECK("", "[\n]\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pid_of_two_hosts_is_two_processes),
		cmocka_unit_test(a_host_and_a_pid_in_two_files_is_one_process),
		cmocka_unit_test(an_event_without_a_host_is_of_that_of_its_file),
		cmocka_unit_test(ranks_come_first_and_in_order),
		cmocka_unit_test(nothing_is_a_document_as_well),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
