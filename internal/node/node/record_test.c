/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record.h"

static char dir[64];
static struct cop_conf conf;
static struct cop_job_secret secret;
static struct cop_job_host host[3] = {{"a", .port = 1}, {"b", .port = 1}, {"c", .port = 1}};
static struct cop_job_hosts hosts = {.host = host, .count = 3};
static struct cop_record record;
static struct cop_job_tree tree;
static struct cop_err err;

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/copper-record-test-XXXXXX");
	if (!mkdtemp(dir) || cop_job_dir_make(dir, &err))
		return -1;
	cop_conf_init(&conf, true);
	conf.job_dir = dir;
	record = (struct cop_record){.conf = &conf,
		.job_dir = dir,
		.source = "/src",
		.hosts = &hosts,
		.secret = &secret,
		.topo = {.nodes = 3, .fanout = 2, .trees = 1},
		.config_hash = 77};
	return 0;
}

static int teardown(void **state)
{
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/logs/copper_tree.txt", dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/logs", dir);
	rmdir(path);
	return rmdir(dir);
}

static void a_tree_says_how_it_is_reached(void **state)
{
	(void)state;
	cop_record_write(&record);
	assert_int_equal(cop_job_tree_read(dir, &tree, &err), 0);
	assert_false(tree.stopped);
	assert_int_equal(tree.config_hash, 77);
	assert_int_equal(tree.hosts.count, 3);
	assert_string_equal(tree.source, "/src");
	assert_false(tree.book);
	cop_job_tree_free(&tree);
}

static void a_stop_leaves_who_is_missing_and_later_that_nobody_is(void **state)
{
	struct cop_op_sum sum = {.nodes = 2, .missing = 1, .lost = {2}};

	(void)state;
	cop_record_stopped(&record, &sum);
	assert_int_equal(cop_job_tree_read(dir, &tree, &err), 0);
	assert_false(tree.stopped);
	assert_int_equal(tree.left_count, 1);
	assert_int_equal(tree.left[0], 2);
	assert_false(tree.has_ends);
	cop_job_tree_free(&tree);
	sum = (struct cop_op_sum){.nodes = 3, .exits = {.commands = 5, .good = 4}};
	cop_record_stopped(&record, &sum);
	assert_int_equal(cop_job_tree_read(dir, &tree, &err), 0);
	assert_true(tree.stopped);
	assert_true(tree.has_ends);
	assert_int_equal(tree.commands, 5);
	assert_int_equal(tree.good, 4);
	cop_job_tree_free(&tree);
}

static void a_stop_of_which_too_little_is_known_changes_nothing(void **state)
{
	struct cop_op_sum part = {.nodes = 1}, many = {.missing = COP_OP_NAMED + 1};

	(void)state;
	cop_record_write(&record);
	cop_record_stopped(&record, &part);
	record.topo.nodes = many.missing;
	cop_record_stopped(&record, &many);
	assert_int_equal(cop_job_tree_read(dir, &tree, &err), 0);
	assert_false(tree.stopped);
	assert_int_equal(tree.left_count, 0);
	cop_job_tree_free(&tree);
}

static void without_a_job_directory_there_is_none(void **state)
{
	(void)state;
	record.job_dir = "";
	cop_record_write(&record);
	assert_int_equal(cop_job_tree_read(dir, &tree, &err), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_tree_says_how_it_is_reached, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_stop_leaves_who_is_missing_and_later_that_nobody_is, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_stop_of_which_too_little_is_known_changes_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(
			without_a_job_directory_there_is_none, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
