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

#include "secret.h"

static struct cop_conf conf;
static struct cop_secret secret;
static struct cop_err err;
static char folder[64], step[80], dir[96], other_dir[96];

static int setup(void **state)
{
	(void)state;
	unsetenv("COPPER_SECRET");
	cop_conf_init(&conf, true);
	memset(&secret, 0, sizeof(secret));
	strcpy(folder, "/tmp/copper-secret-test-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(step, sizeof(step), "%s/step", folder);
	snprintf(dir, sizeof(dir), "%s/tree", step);
	snprintf(other_dir, sizeof(other_dir), "%s/other", step);
	conf.step_dir = step;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	cop_secret_fini(&secret);
	return rmdir(folder);
}

static bool has_secret(void)
{
	static const struct cop_wire_secret none;

	return memcmp(&secret.wire, &none, sizeof(none)) != 0;
}

static void a_node_alone_needs_none(void **state)
{
	(void)state;
	conf.secret_dir = dir;
	cop_secret_init(&secret, &conf, 0, 1);
	assert_int_equal(cop_secret_find(&secret, NULL, NULL, &err), 0);
	assert_false(has_secret());
	assert_int_equal(access(dir, F_OK), -1);
}

static void without_a_place_for_it_the_sentence_names_all_ways(void **state)
{
	(void)state;
	cop_secret_init(&secret, &conf, 0, 2);
	assert_int_equal(cop_secret_find(&secret, NULL, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, "--secret-file"));
	assert_non_null(strstr(err.text, "--insecure"));
	conf.insecure = true;
	assert_int_equal(cop_secret_find(&secret, NULL, NULL, &err), 0);
}

static void a_short_one_is_refused(void **state)
{
	(void)state;
	cop_secret_init(&secret, &conf, 0, 2);
	setenv("COPPER_SECRET", "short", 1);
	assert_int_equal(cop_secret_find(&secret, NULL, NULL, &err), -EINVAL);
	unsetenv("COPPER_SECRET");
	assert_false(has_secret());
}

static void the_directory_of_a_start_lives_until_all_have_read(void **state)
{
	struct cop_secret other = {.dir = NULL};

	(void)state;
	conf.secret_dir = dir;
	cop_secret_init(&secret, &conf, 0, 2);
	assert_int_equal(cop_secret_find(&secret, NULL, NULL, &err), 0);
	assert_true(has_secret());
	cop_secret_init(&other, &conf, 1, 2);
	assert_int_equal(cop_secret_find(&other, NULL, NULL, &err), 0);
	assert_memory_equal(&other.wire, &secret.wire, sizeof(other.wire));
	/* Rank 0 removes it, not this rank. */
	cop_secret_shared(&other);
	cop_secret_fini(&other);
	assert_int_equal(access(dir, F_OK), 0);
	cop_secret_shared(&secret);
	assert_int_equal(access(step, F_OK), -1);
}

/* One step starts several trees at the same time. */
static void a_tree_leaves_the_secret_of_another_alone(void **state)
{
	struct cop_secret other = {.dir = NULL};
	struct cop_conf others;

	(void)state;
	conf.secret_dir = dir;
	others = conf;
	others.secret_dir = other_dir;
	cop_secret_init(&secret, &conf, 0, 2);
	cop_secret_init(&other, &others, 0, 2);
	assert_int_equal(cop_secret_find(&secret, NULL, NULL, &err), 0);
	assert_int_equal(cop_secret_find(&other, NULL, NULL, &err), 0);
	assert_memory_not_equal(&other.wire, &secret.wire, sizeof(other.wire));
	cop_secret_shared(&other);
	assert_int_equal(access(dir, F_OK), 0);
	cop_secret_fini(&other);
	cop_secret_shared(&secret);
	assert_int_equal(access(step, F_OK), -1);
}

static void a_node_does_not_wait_while_rank_0_waits_in_another_tree(void **state)
{
	struct cop_secret other = {.dir = NULL};
	struct cop_conf others;

	(void)state;
	conf.secret_dir = dir;
	others = conf;
	others.secret_dir = other_dir;
	others.ready_timeout_ms = 2000;
	cop_secret_init(&secret, &conf, 0, 2);
	assert_int_equal(cop_secret_find(&secret, NULL, NULL, &err), 0);
	cop_secret_init(&other, &others, 1, 2);
	assert_int_not_equal(cop_secret_find(&other, NULL, NULL, &err), 0);
	assert_non_null(strstr(err.text, "another tree"));
	cop_secret_fini(&other);
	cop_secret_shared(&secret);
	assert_int_equal(access(step, F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_node_alone_needs_none, setup, teardown),
		cmocka_unit_test_setup_teardown(
			without_a_place_for_it_the_sentence_names_all_ways, setup, teardown),
		cmocka_unit_test_setup_teardown(a_short_one_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(
			the_directory_of_a_start_lives_until_all_have_read, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_tree_leaves_the_secret_of_another_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_node_does_not_wait_while_rank_0_waits_in_another_tree, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
