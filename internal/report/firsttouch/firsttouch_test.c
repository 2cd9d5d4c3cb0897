/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/firsttouch/firsttouch_priv.h"

#define HEAD "order,table,path,ranges\n0,source,\"%s/env\",\n"

static char dir[64];
static struct cop_firsttouch got;
static struct cop_err err;

static void run_in_dir(const char *command)
{
	char line[512];

	snprintf(line, sizeof(line), "cd '%s' && %s", dir, command);
	assert_int_equal(system(line), 0);
}

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/cop-manifest-XXXXXX");
	got = (struct cop_firsttouch){0};
	err = (struct cop_err){0};
	if (!mkdtemp(dir))
		return -1;
	run_in_dir(
		"mkdir -p env/lib profiling/final && printf 0123456789 >env/lib/ten && printf 12345 >env/five && "
		"touch -d @1700000000.5 env/lib/ten env/five");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	cop_firsttouch_free(&got);
	run_in_dir("rm -r \"$PWD\"");
	return 0;
}

/* In text, %s is replaced by the test's directory, nine times at most. */
static void put_text(const char *name, const char *text)
{
	char path[256], full[4096];

	snprintf(path, sizeof(path), "%s/profiling/final/%s", dir, name);
	snprintf(full, sizeof(full), text, dir, dir, dir, dir, dir, dir, dir, dir, dir);
	assert_int_equal(cop_write_file(path, full, strlen(full), 0644), 0);
}

static int make_manifest(void)
{
	char file[128];

	cop_firsttouch_free(&got);
	got = (struct cop_firsttouch){0};
	err = (struct cop_err){0};
	snprintf(file, sizeof(file), "%s/out", dir);
	return cop_firsttouch_manifest(dir, file, &got, &err);
}

/* want lacks the line that names the source. */
static void assert_manifest(const char *want)
{
	char file[128], *text, *body;
	size_t len;

	snprintf(file, sizeof(file), "%s/out", dir);
	assert_int_equal(cop_read_file(file, COP_MIB, &text, &len), 0);
	snprintf(file, sizeof(file), "copper-manifest 2\nsource %s/env\n", dir);
	assert_memory_equal(text, file, strlen(file));
	body = text + strlen(file);
	assert_string_equal(body, want);
	free(text);
}

static void the_order_is_that_of_the_rank_that_needed_it_first(void **state)
{
	(void)state;
	put_text("n-1-1-profiling_first_touch.csv",
		HEAD "1,metadata,\"%s/env/lib\",\n7,metadata,\"%s/env/lib/ten\",\n"
		     "8,data,\"%s/env/lib/ten\",0-4\n");
	put_text("n2-2-profiling_first_touch.csv",
		HEAD "1,tree,\"%s/env\",\n2,data,\"%s/env/five\",0-5\n"
		     "3,data,\"%s/env/lib/ten\",3-4;8-10\n");
	assert_int_equal(make_manifest(), 0);
	assert_manifest("d .\nn lib\nd lib\nf 5 1700000000.500000000 0-5 five\nn lib/ten\n"
			"f 10 1700000000.500000000 0-4,8-10 lib/ten\nend 6\n");
	assert_int_equal(got.ranks, 2);
	assert_int_equal(got.items, 6);
	assert_int_equal(got.directories, 2);
	assert_int_equal(got.files, 2);
	assert_int_equal(got.bytes, 5 + 4 + 2);
	assert_int_equal(got.faults, 0);
	assert_int_equal(got.gone, 0);
}

static void files_that_are_gone_are_left_out_and_names_that_were_absent_are_not(void **state)
{
	(void)state;
	put_text("n-1-profiling_first_touch.csv", HEAD
		"1,metadata,\"%s/env/absent\",\n2,data,\"%s/env/gone\",0-4\n"
		"3,data,\"%s/env/lib\",0-4\n4,later,\"%s/env/x\",\n5,metadata,\"%s/env\",\n6,metadata,\"%s/env/a\nb\"\"c\",\n");
	assert_int_equal(make_manifest(), 0);
	assert_manifest("d .\nn absent\nn a\\nb\"c\nend 3\n");
	assert_int_equal(got.gone, 2);
}

static void without_access_to_the_source_everything_is_kept(void **state)
{
	(void)state;
	put_text("n-1-profiling_first_touch.csv",
		"order,table,path,ranges\n0,source,\"/no/such/source\",\n"
		"1,data,\"/no/such/source/f\",0-4096;9000-9999\n");
	assert_int_equal(make_manifest(), 0);
	assert_true(got.unseen);
	assert_int_equal(got.files, 1);
	run_in_dir("grep -qx 'f 9999 0.000000000 0-4096,9000-9999 f' out");
}

static void a_file_of_no_use_is_named_and_the_rest_is_used(void **state)
{
	(void)state;
	put_text("a-1-profiling_first_touch.csv", HEAD "1,data,\"%s/env/five\",0-5\n");
	put_text("b-1-profiling_first_touch.csv", "");
	put_text("c-1-profiling_first_touch.csv", "metric,value,x,y\n");
	put_text("d-1-profiling_first_touch.csv", HEAD "1,data,\"/etc/passwd\",0-5\n");
	put_text("e-1-profiling_first_touch.csv", HEAD "1,data,\"%s/env/../x\",0-5\n");
	put_text("f-1-profiling_first_touch.csv", HEAD "1,data,\"%s/env/five\",5-5\n");
	put_text("g-1-profiling_first_touch.csv", HEAD "1,data,\"%s/env/five\",0-x\n");
	put_text("h-1-profiling_first_touch.csv", HEAD "1,data,\"%s/env/five");
	put_text("i-1-profiling_first_touch.csv",
		"order,table,path,ranges\n1,data,\"%s/env/five\",0-5\n");
	put_text("l-1-profiling_first_touch.csv", HEAD "1,data,\"%s/env/five\",0--5\n");
	put_text("m-1-profiling_first_touch.csv", HEAD "1,data,\"%s/env/five\",-5--3\n");
	put_text("n-1-profiling_first_touch.csv",
		HEAD "1,data,\"%s/env/five\",0-99999999999999999999\n");
	run_in_dir(
		"mkfifo profiling/final/j-1-profiling_first_touch.csv && mkdir profiling/final/k-1-profiling_first_touch.csv");
	assert_int_equal(make_manifest(), 0);
	assert_int_equal(got.ranks, 1);
	assert_int_equal(got.faults, 13);
	assert_non_null(strstr(
		got.named.data, "d-1-profiling_first_touch.csv: a path is not below its source\n"));
	run_in_dir("grep -qx 'f 5 1700000000.500000000 0-5 five' out");
}

static void the_errors_tell_the_way_out(void **state)
{
	(void)state;
	assert_int_equal(make_manifest(), -ENOENT);
	assert_non_null(strstr(err.text, "copper mount -A"));
	put_text("b-1-profiling_first_touch.csv", "");
	assert_int_equal(make_manifest(), -ENODATA);
	put_text("a-1-profiling_first_touch.csv", HEAD "1,data,\"%s/env/five\",0-5\n");
	run_in_dir("mkdir out");
	assert_int_not_equal(make_manifest(), 0);
	assert_non_null(strstr(err.text, "cannot write"));
	run_in_dir("rmdir out && rm -r profiling");
	assert_int_equal(make_manifest(), -ENOENT);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_order_is_that_of_the_rank_that_needed_it_first),
		T(files_that_are_gone_are_left_out_and_names_that_were_absent_are_not),
		T(without_access_to_the_source_everything_is_kept),
		T(a_file_of_no_use_is_named_and_the_rest_is_used),
		T(the_errors_tell_the_way_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
