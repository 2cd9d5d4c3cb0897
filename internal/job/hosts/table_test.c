/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job/hosts/hosts_priv.h"

#define HOSTS_MAX 4

static struct cop_job_hosts hosts;
static char *address[HOSTS_MAX];
static struct cop_err err;
static char path[] = "/tmp/copper-table-test-XXXXXX";

static void drop(void)
{
	for (size_t i = 0; i < HOSTS_MAX; i++) {
		free(address[i]);
		address[i] = NULL;
	}
}

static int setup(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state)
{
	(void)state;
	drop();
	cop_job_hosts_free(&hosts);
	return unlink(path);
}

static void given(const char *list)
{
	cop_job_hosts_free(&hosts);
	assert_int_equal(cop_job_hosts_load(list, 7720, &hosts, NULL), 0);
	assert_true(hosts.count <= HOSTS_MAX);
}

static int parse(const char *text, const char *network)
{
	drop();
	err = (struct cop_err){0};
	return cop_job_book_parse(text, strlen(text), "book", &hosts, network, address, &err);
}

static void file_is(const char *want)
{
	char *text;
	size_t len;

	assert_int_equal(cop_read_file(path, 65536, &text, &len), 0);
	assert_string_equal(text, want);
	free(text);
}

static char none[] = "", cxi[] = "cxi1 ofi+cxi://0x2\ncxi0 ofi+cxi://0x1\n",
	    ten[] = "cxi10 ofi+cxi://0xa\ncxi2 ofi+cxi://0x3\n",
	    lo[] = "lo ofi+tcp://127.0.0.1:5\n";

static void a_table_has_a_column_for_each_network_and_NA_where_there_is_none(void **state)
{
	char *networks[] = {ten, NULL, cxi, none};

	(void)state;
	given("n1,n2,n3,n4");
	assert_int_equal(cop_job_table_write(path, &hosts, networks, &err), 0);
	file_is("# host | cxi0 | cxi1 | cxi2 | cxi10\n"
		"n1 | NA | NA | ofi+cxi://0x3 | ofi+cxi://0xa\n"
		"n2 | NA | NA | NA | NA\n"
		"n3 | ofi+cxi://0x1 | ofi+cxi://0x2 | NA | NA\n"
		"n4 | NA | NA | NA | NA\n");
}

static void a_table_that_was_written_is_read_by_the_name_of_a_network(void **state)
{
	char *networks[] = {cxi, cxi}, *text;
	size_t len;

	(void)state;
	given("n1,n2");
	assert_int_equal(cop_job_table_write(path, &hosts, networks, &err), 0);
	assert_int_equal(cop_read_file(path, 65536, &text, &len), 0);
	assert_int_equal(parse(text, "cxi1"), 0);
	assert_string_equal(address[1], "ofi+cxi://0x2");
	assert_int_equal(parse(text, "cxi0"), 0);
	assert_string_equal(address[0], "ofi+cxi://0x1");
	assert_int_equal(parse(text, ""), 0);
	assert_string_equal(address[0], "ofi+cxi://0x1");
	assert_int_equal(parse(text, "cxi2"), -ENOENT);
	assert_string_equal(err.text, "address book book: no address of n1, n2 on cxi2");
	free(text);
}

static void write_text(const char *text)
{
	assert_int_equal(cop_write_file(path, text, strlen(text), 0600), 0);
}

static void networks_are(const char *first, const char *second)
{
	char *networks[HOSTS_MAX];
	const char *want[] = {first, second};

	assert_int_equal(cop_job_table_read(path, &hosts, networks), 0);
	for (int i = 0; i < 2; i++) {
		if (want[i])
			assert_string_equal(networks[i], want[i]);
		else
			assert_null(networks[i]);
		free(networks[i]);
	}
}

static void a_table_that_is_written_reads_the_same(void **state)
{
	char both[] = "cxi0 ofi+cxi://0x1\ncxi1 ofi+cxi://0x2\n", one[] = "cxi1 ofi+cxi://0x3\n";
	char *told[] = {both, one}, *nothing[] = {none, NULL};

	(void)state;
	given("n1,n2");
	assert_int_equal(cop_job_table_write(path, &hosts, told, &err), 0);
	networks_are(both, one);
	assert_int_equal(cop_job_table_write(path, &hosts, nothing, &err), 0);
	networks_are("", "");
}

static void rows_that_are_not_as_they_were_written_are_left_out(void **state)
{
	static const char *const bad[] = {"", "# host", "# hosts | lo\n", "n1 | ofi+tcp://1:2\n",
		"# host |\nn1 | ofi+tcp://1:2\n", "# host | lo\nn2 | ofi+tcp://1:2\n",
		"# host | lo\nn1 | ofi+tcp://1:2", "# host | lo\nn1 | a b\n",
		"# host | 0123456789012345678901234567890123456789012345678901234567890123456789\nn1 | ofi+tcp://1:2\n"};

	(void)state;
	given("n1,n2");
	for (size_t i = 0; i < COP_ARRAY_SIZE(bad); i++) {
		write_text(bad[i]);
		networks_are(NULL, NULL);
	}
	write_text("# host | lo\nsomething else\nn2 | ofi+tcp://1:2\n");
	networks_are(NULL, "lo ofi+tcp://1:2\n");
}

static void a_header_need_not_be_a_comment(void **state)
{
	(void)state;
	given("n1");
	assert_int_equal(
		parse("hostname | hsn0 | hsn1\nn1 | tcp://10.0.0.1:1 | tcp://10.0.0.2:1\n", "hsn1"),
		0);
	assert_string_equal(address[0], "tcp://10.0.0.2:1");
}

static void without_a_header_the_number_of_a_network_is_its_column(void **state)
{
	static const char text[] = "n2 | ofi+cxi://0x3 | NA\nn1 | ofi+cxi://0x1 | ofi+cxi://0x2\n";

	(void)state;
	given("n1");
	assert_int_equal(parse(text, "cxi1"), 0);
	assert_string_equal(address[0], "ofi+cxi://0x2");
	assert_int_equal(parse(text, "cxi0"), 0);
	assert_string_equal(address[0], "ofi+cxi://0x1");
	assert_int_equal(parse("n3 | NA | NA\nn1 | ofi+cxi://0x1 | ofi+cxi://0x2\n", "cxi1"), 0);
	assert_string_equal(address[0], "ofi+cxi://0x2");
	assert_int_equal(parse(text, "cxi7"), -ENOENT);
	assert_int_equal(parse(text, "cxi"), -ENOENT);
}

static void a_header_without_the_network_means_that_there_is_none(void **state)
{
	(void)state;
	given("n1");
	assert_int_equal(
		parse("# host | eth0 | lo\nn1 | ofi+tcp://10.0.0.1:1 | ofi+tcp://127.0.0.1:1\n",
			"cxi1"),
		-ENOENT);
	assert_string_equal(err.text, "address book book: no address of n1 on cxi1");
	assert_int_equal(parse("host | eth0\nn1 | ofi+tcp://10.0.0.1:1\n", "cxi0"), -ENOENT);
}

static void a_host_without_an_address_on_the_network_is_missing(void **state)
{
	static const char text[] =
		"# host | cxi0 | cxi1\nn1 | ofi+cxi://0x1 | NA\nn2 | NA | ofi+cxi://0x2\n";

	(void)state;
	given("n1,n2");
	assert_int_equal(parse(text, "cxi0"), -ENOENT);
	assert_string_equal(err.text, "address book book: no address of n2 on cxi0");
	assert_null(address[0]);
	assert_int_equal(parse(text, NULL), 0);
	assert_string_equal(address[1], "ofi+cxi://0x2");
}

static void a_row_with_a_bad_cell_is_named_by_its_number(void **state)
{
	(void)state;
	given("n1");
	assert_int_equal(parse("\nn1 | a b |\n", NULL), -EINVAL);
	assert_string_equal(
		err.text, "address book book: line 2: 'n1 | a b |' is not 'hostname address'");
	assert_int_equal(parse("| ofi+cxi://0x1\n", NULL), -EINVAL);
}

static void lines_and_rows_may_stand_in_one_book(void **state)
{
	(void)state;
	given("n1,n2");
	assert_int_equal(parse("n1 ofi+tcp://10.0.0.1:1\nn2|NA|ofi+tcp://10.0.0.2:1", NULL), 0);
	assert_string_equal(address[0], "ofi+tcp://10.0.0.1:1");
	assert_string_equal(address[1], "ofi+tcp://10.0.0.2:1");
}

static void a_nodes_report_of_its_networks_is_checked(void **state)
{
	static const char *const bad[] = {"lo", "lo ", "lo \n", "lo a", " a\n", "lo a b\n",
		"lo a\nx", "l|o a\n", "lo a|b\n", "#lo a\n", "lo\ta\n", "\n", "lo \x01\n",
		"name-of-thirty-two-bytes-or-more a\n"};

	(void)state;
	assert_true(cop_job_networks_ok(""));
	assert_true(cop_job_networks_ok(cxi));
	for (size_t i = 0; i < COP_ARRAY_SIZE(bad); i++)
		if (cop_job_networks_ok(bad[i]))
			fail_msg("accepted '%s'", bad[i]);
}

static void columns_beyond_the_limit_are_left_out(void **state)
{
	struct cop_buf text = {0};
	char *networks[] = {lo};

	(void)state;
	given("n1");
	for (unsigned i = 0; i < 3 * COP_JOB_NETWORKS_MAX; i++)
		cop_buf_printf(&text, "e%u a%u\n", i, i);
	networks[0] = text.data;
	assert_int_equal(cop_job_table_write(path, &hosts, networks, &err), 0);
	cop_buf_free(&text);
	networks[0] = lo;
	assert_int_equal(cop_job_table_write(path, &hosts, networks, &err), 0);
	file_is("# host | lo\nn1 | ofi+tcp://127.0.0.1:5\n");
}

static void the_node_file_has_the_hosts_in_rank_order(void **state)
{
	(void)state;
	given("b,a,c:1,c:2");
	assert_int_equal(cop_job_node_file_write(path, &hosts, &err), 0);
	file_is("b\na\nc:1\nc:2\n");
}

static void a_directory_that_is_not_there_is_named(void **state)
{
	(void)state;
	given("a");
	assert_int_equal(cop_job_node_file_write("/nowhere/node_file.txt", &hosts, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nowhere/node_file.txt"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_table_has_a_column_for_each_network_and_NA_where_there_is_none),
		cmocka_unit_test(a_table_that_was_written_is_read_by_the_name_of_a_network),
		cmocka_unit_test(a_table_that_is_written_reads_the_same),
		cmocka_unit_test(rows_that_are_not_as_they_were_written_are_left_out),
		cmocka_unit_test(a_header_need_not_be_a_comment),
		cmocka_unit_test(without_a_header_the_number_of_a_network_is_its_column),
		cmocka_unit_test(a_header_without_the_network_means_that_there_is_none),
		cmocka_unit_test(a_host_without_an_address_on_the_network_is_missing),
		cmocka_unit_test(a_row_with_a_bad_cell_is_named_by_its_number),
		cmocka_unit_test(lines_and_rows_may_stand_in_one_book),
		cmocka_unit_test(a_nodes_report_of_its_networks_is_checked),
		cmocka_unit_test(columns_beyond_the_limit_are_left_out),
		cmocka_unit_test(the_node_file_has_the_hosts_in_rank_order),
		cmocka_unit_test(a_directory_that_is_not_there_is_named),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
