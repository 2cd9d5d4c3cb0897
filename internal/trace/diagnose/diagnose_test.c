/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests each rule at its limits: with just enough for a cause to be reported, and with just too
 * little. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/diagnose/diagnose.h"

static int take(void *arg, unsigned worker, const struct cop_trace_event *e, size_t n)
{
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++) {
		rc = cop_diagnose_see(arg, worker, &e[i]);
		if (!rc && e[i].kind != COP_TRACE_META)
			rc = cop_diagnose_add(arg, &e[i]);
	}
	return rc;
}

/* Returns, as CSV, the causes found in a file with this text, whose events are in time order. The
 * caller frees it. */
static char *diagnosis(const struct cop_buf *text)
{
	char path[] = "/tmp/copper diagnose.XXXXXX", *paths[] = {path};
	struct cop_buf out = {0}, notes = {0};
	struct cop_trace_files *files;
	struct cop_trace_result result;
	struct cop_diagnose *d;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(cop_write_full(fd, text->data, text->len), text->len);
	close(fd);
	assert_int_equal(cop_trace_files_new(paths, 1, &files, &notes, NULL), 0);
	d = cop_diagnose_new(1, files, "PATHS");
	assert_non_null(d);
	assert_int_equal(cop_trace_read(files,
				 &(struct cop_trace_conf){.threads = 1,
					 .names = true,
					 .who = true,
					 .args = true,
					 .unfinished = true,
					 .batch = take,
					 .arg = d},
				 &result, &notes, NULL),
		0);
	assert_int_equal(cop_diagnose_finish(d), 0);
	cop_diagnose_show(d, COP_GRID_CSV, &out);
	cop_diagnose_free(d);
	cop_trace_files_free(files);
	cop_buf_free(&notes);
	unlink(path);
	return out.data;
}

/* Checks that exactly these causes are reported: "one slow process|idle gaps". */
static void check(struct cop_buf *text, const char *want)
{
	char *csv = diagnosis(text), *line, *rest = csv;
	struct cop_buf got = {0};

	cop_buf_str(&got, "");
	strsep(&rest, "\n");
	while (rest && *(line = strsep(&rest, "\n")))
		cop_buf_printf(&got, "%s%.*s", got.len ? "|" : "", (int)strcspn(line, ","), line);
	if (strcmp(got.data, want))
		fail_msg("'%s' instead of '%s': %s", got.data, want, csv);
	cop_buf_free(&got);
	free(csv);
	cop_buf_free(text);
}

/* ---- traces ---- */

/* Adds a call of category POSIX on a file; `args` has the text of ret and the other args. */
static void call(struct cop_buf *b, unsigned pid, const char *name, unsigned long ts, unsigned dur,
	const char *file, const char *args)
{
	cop_buf_printf(b,
		"{\"name\":\"%s\",\"cat\":\"POSIX\",\"pid\":%u,\"tid\":%u,\"ts\":%lu,\"dur\":%u,"
		"\"ph\":\"X\",\"args\":{\"hostname\":\"n\",\"fname\":\"%s\",%s}}\n",
		name, pid, pid, ts, dur, file, args);
}

static void span(struct cop_buf *b, unsigned pid, const char *name, unsigned long ts, unsigned dur)
{
	cop_buf_printf(b,
		"{\"name\":\"%s\",\"cat\":\"c\",\"pid\":%u,\"tid\":%u,\"ts\":%lu,\"dur\":%u,"
		"\"ph\":\"X\",\"args\":{\"hostname\":\"n\"}}\n",
		name, pid, pid, ts, dur);
}

/* Adds n sequential reads of this many bytes that take 100 us each. */
static void reads(struct cop_buf *b, unsigned n, unsigned long bytes)
{
	char args[64];

	for (unsigned i = 0; i < n; i++) {
		snprintf(args, sizeof(args), "\"offset\":%lu,\"ret\":%lu", i * bytes, bytes);
		call(b, 1, "read", 1000 + 100ul * i, 100, "/f", args);
	}
}

/* ---- tests ---- */

static void nothing_has_no_cause(void **state)
{
	struct cop_buf b = {0};

	(void)state;
	cop_buf_str(&b, "[]\n");
	check(&b, "");
	/* Spans of no length, in one process and in several. */
	span(&b, 1, "a", 10, 0);
	check(&b, "");
	for (unsigned pid = 1; pid < 6; pid++)
		call(&b, pid, "write", 10, 0, "/f", "\"ret\":0");
	check(&b, "");
}

static void counters_and_instants_alone_have_no_cause(void **state)
{
	struct cop_buf b = {0};

	(void)state;
	for (unsigned i = 0; i < 100; i++)
		cop_buf_printf(&b,
			"{\"name\":\"m\",\"ph\":\"C\",\"pid\":1,\"tid\":1,\"ts\":%u,\"args\":{\"v\":%u}}\n"
			"{\"name\":\"i\",\"ph\":\"i\",\"pid\":1,\"tid\":1,\"ts\":%u}\n",
			1000000 * i, i, 1000000 * i);
	check(&b, "");
}

static void missing_members_are_no_fault(void **state)
{
	struct cop_buf b = {0};

	(void)state;
	for (unsigned i = 0; i < 300; i++)
		cop_buf_printf(&b,
			"{\"name\":\"read\",\"cat\":\"POSIX\",\"ph\":\"X\",\"ts\":%u,\"dur\":90}\n",
			100 * i);
	check(&b, "");
}

static void small_transfers_are_at_least_a_hundred_of_less_than_64_kib(void **state)
{
	struct cop_buf b = {0};

	(void)state;
	reads(&b, 100, 65535);
	check(&b, "small transfers");
	reads(&b, 99, 65535);
	check(&b, "");
	reads(&b, 100, 65536);
	check(&b, "");
	/* A twentieth of the time is the least that is reported. */
	reads(&b, 100, 65535);
	span(&b, 1, "work", 11000, 180000);
	check(&b, "small transfers");
	reads(&b, 100, 65535);
	span(&b, 1, "work", 11000, 191000);
	check(&b, "");
}

static void strides_and_sequences_are_no_random_access(void **state)
{
	struct cop_buf b = {0};
	char args[64];

	(void)state;
	for (unsigned stride = 1; stride < 3; stride++) {
		for (unsigned i = 0; i < 60; i++) {
			snprintf(args, sizeof(args), "\"offset\":%u,\"ret\":1048576",
				1048576 * stride * i);
			call(&b, 1, "read", 1000 + 100ul * i, 100, "/f", args);
		}
		check(&b, "");
	}
	for (unsigned i = 0; i < 60; i++) {
		snprintf(args, sizeof(args), "\"offset\":%u,\"ret\":1048576",
			1048576 * (i * 37 % 61));
		call(&b, 1, "read", 1000 + 100ul * i, 100, "/f", args);
	}
	check(&b, "");
	for (unsigned i = 0; i < 60; i++) {
		snprintf(args, sizeof(args), "\"offset\":%u,\"ret\":1048576",
			1048576 * (i * i % 61));
		call(&b, 1, "read", 1000 + 100ul * i, 100, "/f", args);
	}
	check(&b, "random access");
}

static void failing_lookups_are_a_third_of_all(void **state)
{
	struct cop_buf b = {0};
	char file[32];

	(void)state;
	for (unsigned part = 3; part < 5; part++) {
		for (unsigned i = 0; i < 100 * part; i++) {
			snprintf(file, sizeof(file), "/d/%u", i);
			call(&b, 1, "open64", 1000 + 100ul * i, 100, file,
				i % part ? "\"ret\":3" : "\"ret\":-1");
		}
		check(&b, part == 3 ? "failing lookups" : "");
	}
}

static void opens_of_one_file_are_repeated_and_of_many_are_not(void **state)
{
	struct cop_buf b = {0};
	char file[32];

	(void)state;
	for (unsigned i = 0; i < 120; i++)
		call(&b, 1, "open64", 1000 + 100ul * i, 100, "/f", "\"ret\":3");
	check(&b, "repeated opens");
	for (unsigned i = 0; i < 120; i++) {
		snprintf(file, sizeof(file), "/d/%u", i);
		call(&b, 1, "open64", 1000 + 100ul * i, 100, file, "\"ret\":3");
	}
	check(&b, "");
}

static void metadata_is_a_storm_at_four_calls_for_each_transfer(void **state)
{
	struct cop_buf b = {0};
	char file[32];

	(void)state;
	for (unsigned each = 4; each > 2; each--) {
		for (unsigned i = 0; i < 800; i++) {
			snprintf(file, sizeof(file), "/d/%u", i);
			if (i % (each + 1))
				call(&b, 1, "__xstat64", 1000 + 100ul * i, 100, file, "\"ret\":0");
			else
				call(&b, 1, "read", 1000 + 100ul * i, 100, file, "\"ret\":1048576");
		}
		check(&b, each == 4 ? "metadata storm" : "");
	}
}

static void a_sync_for_every_other_write_is_named(void **state)
{
	struct cop_buf b = {0};

	(void)state;
	for (unsigned every = 2; every < 4; every++) {
		for (unsigned i = 0; i < 200; i++) {
			call(&b, 1, "write", 1000 + 200ul * i, 100, "/f", "\"ret\":1048576");
			if (i % every == 0)
				call(&b, 1, "fsync", 1100 + 200ul * i, 100, "/f", "\"ret\":0");
		}
		check(&b, every == 2 ? "sync after each write" : "");
	}
}

static void bytes_are_read_again_at_the_third_time(void **state)
{
	struct cop_buf b = {0};
	char args[64];

	(void)state;
	for (unsigned times = 2; times < 4; times++) {
		for (unsigned i = 0; i < 20 * times; i++) {
			snprintf(args, sizeof(args), "\"offset\":%u,\"ret\":1048576",
				1048576 * (i % 20));
			call(&b, 1, "read", 1000 + 100ul * i, 100, "/f", args);
		}
		check(&b, times == 3 ? "data read again" : "");
	}
}

/* Adds n processes, the last of which takes `slow` for each call. */
static void processes(struct cop_buf *b, unsigned n, const char *name, unsigned slow)
{
	for (unsigned i = 0; i < 20; i++)
		for (unsigned p = 1; p <= n; p++)
			span(b, p, name, 1000ul * i, p == n ? slow : 100);
}

static void one_slow_process_needs_three_and_half_as_much_again(void **state)
{
	struct cop_buf b = {0};

	(void)state;
	processes(&b, 4, "step", 1000);
	check(&b, "one slow process");
	processes(&b, 2, "step", 1000);
	check(&b, "");
	processes(&b, 1, "step", 1000);
	check(&b, "");
	processes(&b, 4, "step", 149);
	check(&b, "");
	/* All processes are alike, so none is reported. */
	processes(&b, 4, "step", 100);
	check(&b, "");
}

/* The process that waits longest is the fastest. */
static void a_process_that_waits_is_not_slow(void **state)
{
	static const char *const names[] = {"MPI_Barrier", "dist.barrier",
		"cudaStreamSynchronize wait", "MPI_Recv", "epoll_wait"};
	struct cop_buf b = {0};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(names); i++) {
		processes(&b, 4, names[i], 1000);
		check(&b, "");
	}
}

static void one_process_moves_all_only_if_there_are_others(void **state)
{
	struct cop_buf b = {0};

	(void)state;
	for (unsigned others = 2; others < 4; others++) {
		for (unsigned i = 0; i < 50; i++)
			call(&b, 1, "write", 1000 + 100ul * i, 100, "/f", "\"ret\":1048576");
		for (unsigned p = 0; p < others; p++)
			span(&b, 2 + p, "work", 1000, 5000);
		check(&b, others == 3 ? "one process moves the data of all" : "");
	}
}

static void input_that_overlaps_with_computing_is_fine(void **state)
{
	struct cop_buf b = {0};

	(void)state;
	for (unsigned beside = 0; beside < 2; beside++) {
		for (unsigned i = 0; i < 20; i++) {
			call(&b, 1, "read", 2000ul * i, 1000, "/f", "\"ret\":1048576");
			span(&b, 1, "compute", 2000ul * i + (beside ? 0 : 1000),
				beside ? 2000 : 1000);
		}
		check(&b, beside ? "" : "input and output beside no computing");
	}
	/* A program that is not known to compute. */
	for (unsigned i = 0; i < 20; i++)
		call(&b, 1, "read", 1000ul * i, 1000, "/f", "\"ret\":1048576");
	check(&b, "");
}

static void a_begin_without_an_end_is_named_and_one_with_an_end_is_not(void **state)
{
	struct cop_buf b = {0};
	const char *begin =
		"{\"name\":\"hang\",\"cat\":\"c\",\"pid\":1,\"tid\":1,\"ts\":900,\"ph\":\"B\"}\n";

	(void)state;
	span(&b, 1, "work", 0, 1000);
	cop_buf_str(&b, begin);
	check(&b, "a begin that never ended");
	span(&b, 1, "work", 0, 1000);
	cop_buf_str(&b, begin);
	cop_buf_str(&b, "{\"name\":\"hang\",\"pid\":1,\"tid\":1,\"ts\":950,\"ph\":\"E\"}\n");
	check(&b, "");
}

static void a_clock_that_falls_once_is_a_step_and_disorder_is_none(void **state)
{
	struct cop_buf b = {0};
	char *csv;

	(void)state;
	for (unsigned i = 0; i < 40; i++)
		span(&b, 1, "work", 1000000ul + 10000ul * i - (i >= 20 ? 100000 : 0), 10000);
	csv = diagnosis(&b);
	assert_non_null(strstr(csv, "clock step,"));
	/* The printed command is valid in a shell, whatever the name of the file. */
	assert_non_null(strstr(csv, "events --csv '/tmp/copper diagnose."));
	free(csv);
	b.len = 0;
	for (unsigned i = 0; i < 40; i++)
		span(&b, 1, "work", 1000000ul + 10000ul * (i * 7 % 40), 10000);
	csv = diagnosis(&b);
	assert_null(strstr(csv, "clock step"));
	free(csv);
	cop_buf_free(&b);
}

static void gaps_of_a_millisecond_and_a_tenth_of_the_time_are_idle(void **state)
{
	struct cop_buf b = {0};

	(void)state;
	for (unsigned gap = 900; gap < 1200; gap += 200) {
		for (unsigned i = 0; i < 20; i++)
			span(&b, 1, "step", (100ul + gap) * i, 100);
		check(&b, gap > 1000 ? "idle gaps" : "");
	}
	span(&b, 1, "step", 0, 50000);
	span(&b, 1, "step", 54000, 46000);
	check(&b, "");
}

static void two_faults_at_once_are_both_named(void **state)
{
	struct cop_buf b = {0};

	(void)state;
	reads(&b, 200, 4096);
	for (unsigned i = 0; i < 120; i++)
		call(&b, 1, "open64", 21000 + 100ul * i, 100, "/g", "\"ret\":3");
	check(&b, "small transfers|repeated opens");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_has_no_cause),
		cmocka_unit_test(counters_and_instants_alone_have_no_cause),
		cmocka_unit_test(missing_members_are_no_fault),
		cmocka_unit_test(small_transfers_are_at_least_a_hundred_of_less_than_64_kib),
		cmocka_unit_test(strides_and_sequences_are_no_random_access),
		cmocka_unit_test(failing_lookups_are_a_third_of_all),
		cmocka_unit_test(opens_of_one_file_are_repeated_and_of_many_are_not),
		cmocka_unit_test(metadata_is_a_storm_at_four_calls_for_each_transfer),
		cmocka_unit_test(a_sync_for_every_other_write_is_named),
		cmocka_unit_test(bytes_are_read_again_at_the_third_time),
		cmocka_unit_test(one_slow_process_needs_three_and_half_as_much_again),
		cmocka_unit_test(a_process_that_waits_is_not_slow),
		cmocka_unit_test(one_process_moves_all_only_if_there_are_others),
		cmocka_unit_test(input_that_overlaps_with_computing_is_fine),
		cmocka_unit_test(a_begin_without_an_end_is_named_and_one_with_an_end_is_not),
		cmocka_unit_test(a_clock_that_falls_once_is_a_step_and_disorder_is_none),
		cmocka_unit_test(gaps_of_a_millisecond_and_a_tenth_of_the_time_are_idle),
		cmocka_unit_test(two_faults_at_once_are_both_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
