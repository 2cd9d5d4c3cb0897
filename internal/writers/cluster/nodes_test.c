/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "writers/cluster/cluster_priv.h"

static struct nodes nodes;
static struct cop_buf names;
static uint64_t missing;

static int teardown(void **state)
{
	(void)state;
	cop_report_nodes_free(&nodes);
	cop_buf_free(&names);
	return 0;
}

static void load(const char *text, size_t len)
{
	char path[] = "/tmp/copper-nodes.XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(cop_write_full(fd, text, len), (ssize_t)len);
	close(fd);
	cop_report_nodes_free(&nodes);
	assert_int_equal(cop_report_nodes_load(&nodes, path), 0);
	unlink(path);
}

static void given(const char *text)
{
	load(text, strlen(text));
}

static void met(const char *stem)
{
	cop_report_nodes_met(&nodes, stem, strlen(stem));
}

static const char *missing_names(void)
{
	cop_buf_free(&names);
	missing = cop_report_nodes_missing(&nodes, &names);
	return names.data ? names.data : "";
}

static void without_a_list_nothing_is_known(void **state)
{
	(void)state;
	assert_int_equal(cop_report_nodes_load(&nodes, "/nowhere/node_file.txt"), 0);
	met("n1-5");
	assert_string_equal(missing_names(), "");
	assert_int_equal(missing, 0);
	assert_int_equal(nodes.lines, 0);
	given("");
	met("n1-5");
	assert_string_equal(missing_names(), "");
}

static void nodes_without_files_are_named_in_order_of_rank(void **state)
{
	(void)state;
	given("n3\nn-1\nn2\n10.0.0.7\n");
	met("n-1-77");
	met("10.0.0.7-8");
	assert_string_equal(missing_names(), "n3, n2");
	assert_int_equal(missing, 2);
	met("n3-1");
	met("n2-1");
	assert_string_equal(missing_names(), "");
	assert_int_equal(missing, 0);
}

static void for_nodes_that_share_a_host_the_number_is_reported(void **state)
{
	(void)state;
	given("n1:7720\nn2:7720\nn1:7721\nn1:7722\nn2:7721\n");
	met("n1-5");
	met("n2-5");
	met("n2-6");
	assert_string_equal(missing_names(), "n1 (2 of its 3 nodes)");
	assert_int_equal(missing, 2);
}

static void a_node_that_was_started_again_hides_no_other(void **state)
{
	(void)state;
	given("n1\nn2\n");
	met("n1-5");
	met("n1-6");
	met("n1-7");
	assert_string_equal(missing_names(), "n2");
}

static void files_and_list_may_disagree_on_the_domain(void **state)
{
	(void)state;
	given("n1.site\nn2.site\nn3\n");
	met("n1-5");
	met("n3.site-5");
	assert_string_equal(missing_names(), "n2.site");
	/* The files may belong to either of the two. */
	given("n1.east\nn1.west\nn2\n");
	met("n1-5");
	met("n2-5");
	assert_string_equal(missing_names(), "n1.east, n1.west");
	given("10.0.0.1\n10.0.0.2\n");
	met("10.0.0.1-5");
	assert_string_equal(missing_names(), "10.0.0.2");
}

static void names_of_another_kind_say_nothing(void **state)
{
	(void)state;
	given("x1000c0s0b0n0\nx1000c0s0b0n1\n");
	met("nid000001-5");
	assert_string_equal(missing_names(), "");
	assert_int_equal(missing, 0);
	assert_int_equal(nodes.lines, 2);
}

static void an_invalid_name_is_not_repeated(void **state)
{
	static const char text[] = "n1\n\x1b[2J\nn2 n3\n\na\0b\nn4\ncut";

	(void)state;
	load(text, sizeof(text) - 1);
	met("n1-5");
	assert_string_equal(missing_names(), "n4");
	assert_int_equal(missing, 1);
}

static void ten_thousand_are_counted_and_few_are_named(void **state)
{
	struct cop_buf list = {0};
	char stem[32];

	(void)state;
	for (unsigned i = 0; i < 10000; i++)
		cop_buf_printf(&list, "n%05u\n", i);
	load(list.data, list.len);
	cop_buf_free(&list);
	met("n00000-9");
	assert_non_null(strstr(missing_names(), "n00001, n00002, "));
	assert_non_null(strstr(missing_names(), "n00020 and 9979 more"));
	assert_int_equal(missing, 9999);
	assert_true(names.len < 400);
	for (unsigned i = 1; i < 10000; i++) {
		snprintf(stem, sizeof(stem), "n%05u-%u", i, i);
		met(stem);
	}
	missing_names();
	assert_int_equal(missing, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(without_a_list_nothing_is_known, teardown),
		cmocka_unit_test_teardown(nodes_without_files_are_named_in_order_of_rank, teardown),
		cmocka_unit_test_teardown(
			for_nodes_that_share_a_host_the_number_is_reported, teardown),
		cmocka_unit_test_teardown(a_node_that_was_started_again_hides_no_other, teardown),
		cmocka_unit_test_teardown(files_and_list_may_disagree_on_the_domain, teardown),
		cmocka_unit_test_teardown(names_of_another_kind_say_nothing, teardown),
		cmocka_unit_test_teardown(an_invalid_name_is_not_repeated, teardown),
		cmocka_unit_test_teardown(ten_thousand_are_counted_and_few_are_named, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
