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

#include "job/dir/dir_priv.h"

#define LEAST "fanout 2\ntrees 1\nnet_type tcp\n"

static struct cop_job_tree tree;
static struct cop_err err;

static int teardown(void **state)
{
	(void)state;
	cop_job_tree_free(&tree);
	return 0;
}

static int parse(const char *text)
{
	cop_job_tree_free(&tree);
	err = (struct cop_err){0};
	return cop_job_tree_parse(text, strlen(text), "list", &tree, &err);
}

static void a_record_that_is_written_reads_the_same(void **state)
{
	char n1[] = "fd77::1", n2[] = "n2.site", dir[] = "/tmp/copper-tree.XXXXXX", logs[64],
	     file[96];
	struct cop_job_host host[] = {
		{.name = n1, .port = 7720}, {.name = n2, .port = 20481, .second_port = 24577}};
	struct cop_job_tree out = {.stopped = true,
		.insecure = true,
		.book = true,
		.config_hash = UINT64_MAX - 1,
		.fanout = 3,
		.trees = 2,
		.peer_timeout_ms = 1500,
		.net_type = "tcp://eth0",
		.secret_file = "/a secret/file",
		.source = "/lus/a b",
		.socket = "/run/x.sock",
		.hosts = {.host = host, .count = 2},
		.left = {1, 0},
		.left_count = 2,
		.has_ends = true,
		.commands = 4,
		.good = 3};

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(logs, sizeof(logs), "%s/logs", dir);
	assert_int_equal(mkdir(logs, 0700), 0);
	assert_int_equal(cop_job_tree_write(dir, &out, &err), 0);
	cop_job_tree_free(&tree);
	assert_int_equal(cop_job_tree_read(dir, &tree, &err), 0);
	assert_true(tree.stopped && tree.insecure && tree.book);
	assert_true(tree.config_hash == UINT64_MAX - 1);
	assert_int_equal(tree.fanout, 3);
	assert_int_equal(tree.trees, 2);
	assert_int_equal(tree.peer_timeout_ms, 1500);
	assert_string_equal(tree.net_type, "tcp://eth0");
	assert_string_equal(tree.secret_file, "/a secret/file");
	assert_string_equal(tree.source, "/lus/a b");
	assert_string_equal(tree.socket, "/run/x.sock");
	assert_int_equal(tree.hosts.count, 2);
	assert_string_equal(tree.hosts.host[0].name, "fd77::1");
	assert_string_equal(tree.hosts.host[1].name, "n2.site");
	assert_int_equal(tree.hosts.host[1].port, 20481);
	assert_int_equal(tree.hosts.host[1].second_port, 24577);
	assert_true(tree.has_ends);
	assert_int_equal(tree.commands, 4);
	assert_int_equal(tree.good, 3);
	assert_int_equal(tree.left_count, 2);
	assert_int_equal(tree.left[0], 1);
	assert_int_equal(tree.left[1], 0);
	snprintf(file, sizeof(file), "%s/copper_tree.txt", logs);
	assert_int_equal(unlink(file), 0);
	cop_job_tree_free(&tree);
	assert_int_equal(cop_job_tree_read(dir, &tree, &err), -ENOENT);
	assert_non_null(strstr(err.text, file));
	assert_int_equal(rmdir(logs) | rmdir(dir), 0);
}

static void a_path_with_a_newline_breaks_no_line(void **state)
{
	char n1[] = "n1", dir[] = "/tmp/copper-tree.XXXXXX", command[64];
	struct cop_job_host host[] = {{.name = n1, .port = 7720}};
	struct cop_job_tree out = {.fanout = 3,
		.trees = 1,
		.peer_timeout_ms = 1,
		.net_type = "tcp",
		.source = "/a\nhost evil 1 1",
		.hosts = {.host = host, .count = 1}};

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(command, sizeof(command), "%s/logs", dir);
	assert_int_equal(mkdir(command, 0700), 0);
	assert_int_equal(cop_job_tree_write(dir, &out, &err), 0);
	cop_job_tree_free(&tree);
	assert_int_equal(cop_job_tree_read(dir, &tree, &err), 0);
	assert_int_equal(tree.hosts.count, 1);
	assert_string_equal(tree.source, "");
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

static void a_record_with_missing_lines_is_refused(void **state)
{
	(void)state;
	assert_int_equal(parse(LEAST "host n1 7720 0\n"), 0);
	assert_int_equal(tree.peer_timeout_ms, 3000);
	assert_int_equal(parse(""), -EINVAL);
	assert_non_null(strstr(err.text, "list"));
	assert_int_equal(parse(LEAST), -EINVAL);
	assert_int_equal(parse("trees 1\nnet_type tcp\nhost n1 7720 0\n"), -EINVAL);
	assert_int_equal(parse("fanout 2\ntrees 1\nhost n1 7720 0\n"), -EINVAL);
}

static void later_keys_and_remarks_are_passed_over(void **state)
{
	(void)state;
	assert_int_equal(parse("# a remark\n\nweather fine\n" LEAST "host n1 7720 0\n"), 0);
}

static void bad_values_are_refused_by_their_line(void **state)
{
	static const char *const bad[] = {"state perhaps\n", "terms 12g4\n", "terms \n",
		"terms 10000000000000000\n", "fanout -1\n", "fanout 4294967296\n", "trees 1 2\n",
		"peer_timeout_ms 0\n", "insecure 2\n", "book yes\n", "left\n", "left 1 2\n",
		"left -1\n", "commands 1\n", "commands 1 2\n", "host\n", "host n1\n",
		"host n1 0 0\n", "host n1 65536 0\n", "host n1 7720\n", "host -n1 7720 0\n",
		"host n;1 7720 0\n", "host n1 7720 0 1\n", "host n1 7720 0",
		("net_type 0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
		 "01234567890123456789012345678901234567890123456789\n")};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(bad); i++) {
		char text[512];

		snprintf(text, sizeof(text), "%s%s", LEAST, bad[i]);
		assert_int_equal(parse(text), -EINVAL);
		assert_non_null(strstr(err.text, "line 4"));
		assert_int_equal(tree.hosts.count, 0);
	}
}

static void more_are_left_than_there_is_room_for(void **state)
{
	struct cop_buf text = {0};

	(void)state;
	cop_buf_str(&text, LEAST "host n1 7720 0\n");
	for (int i = 0; i < COP_JOB_TREE_LEFT; i++)
		cop_buf_str(&text, "left 0\n");
	assert_int_equal(parse(text.data), 0);
	assert_int_equal(tree.left_count, COP_JOB_TREE_LEFT);
	cop_buf_str(&text, "left 0\n");
	assert_int_equal(parse(text.data), -EINVAL);
	cop_buf_free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_record_that_is_written_reads_the_same, teardown),
		cmocka_unit_test_teardown(a_path_with_a_newline_breaks_no_line, teardown),
		cmocka_unit_test_teardown(a_record_with_missing_lines_is_refused, teardown),
		cmocka_unit_test_teardown(later_keys_and_remarks_are_passed_over, teardown),
		cmocka_unit_test_teardown(bad_values_are_refused_by_their_line, teardown),
		cmocka_unit_test_teardown(more_are_left_than_there_is_room_for, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
