/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits how much of a slurm.conf is read, whatever it contains. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job/hosts/hosts_priv.h"
#include "base/log/log.h"

static char folder[64], path[80], log_path[80];

static int set_up(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/cop-slurm-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/slurm.conf", folder);
	snprintf(log_path, sizeof(log_path), "%s/log", folder);
	setenv("SLURM_CONF", path, 1);
	return cop_log_open(COP_LOG_WARNING, COP_LOG_FILE, log_path, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	cop_log_close();
	unsetenv("SLURM_CONF");
	unlink(path);
	unlink(log_path);
	return rmdir(folder);
}

/* Reads the text as slurm.conf for n[1-2]. Returns how many nodes were written out, and the
 * addresses of both, as text, in *first and *second. */
static uint64_t read_conf(const char *text, char *first, char *second)
{
	struct cop_job_hosts hosts;
	uint64_t names;

	assert_int_equal(cop_write_file(path, text, strlen(text), 0600), 0);
	assert_int_equal(cop_job_hosts_load("n[1-2]", 80, &hosts, NULL), 0);
	names = cop_job_slurm_addresses(&hosts);
	cop_ip_print(&hosts.host[0].address, first);
	cop_ip_print(&hosts.host[1].address, second);
	cop_job_hosts_free(&hosts);
	return names;
}

static void assert_logged(const char *pattern, unsigned lines)
{
	unsigned n = 0;
	char *text;
	size_t len;

	assert_int_equal(cop_read_file(log_path, COP_MIB, &text, &len), 0);
	for (const char *p = text; (p = strchr(p, '\n')); p++)
		n++;
	if (lines && !strstr(text, pattern))
		fail_msg("no '%s' in: %s", pattern, text);
	assert_int_equal(n, lines);
	free(text);
}

static void lists_of_different_lengths_are_only_counted(void **state)
{
	struct cop_buf conf = {0};
	char first[COP_IP_TEXT_SIZE], second[COP_IP_TEXT_SIZE];

	(void)state;
	for (unsigned i = 0; i < 100; i++)
		cop_buf_str(&conf, "NodeName=n[1-20000] NodeAddr=10.0.0.[1-2]\n"
				   "NodeName=n1 NodeAddr=10.0.[0-9].[1-9999]\n"
				   "NodeName=n[1-20000] NodeAddr=10.0.0.:0[1-2]\n");
	cop_buf_str(&conf, "NodeName=n[1-2] NodeAddr=10.0.0.[3-4]\n");
	assert_int_equal(read_conf(conf.data, first, second), 2);
	assert_string_equal(first, "10.0.0.3");
	assert_string_equal(second, "10.0.0.4");
	assert_logged("", 0);
	cop_buf_free(&conf);
}

static void a_conf_that_includes_itself_is_read_in_bounds(void **state)
{
	char first[COP_IP_TEXT_SIZE], second[COP_IP_TEXT_SIZE];

	(void)state;
	assert_int_equal(read_conf("NodeName=n2 NodeAddr=10.0.0.2\nInclude slurm.conf\n"
				   "NodeName=n[1-60000] NodeAddr=10.0.0.[1-60000]\n",
				 first, second),
		16 + 3 * 60000);
	assert_string_equal(first, "10.0.0.1");
	assert_string_equal(second, "10.0.0.2");
	assert_logged("/slurm.conf\" why=\"more than 16 files are included\"", 1);
}

static void more_nodes_than_a_tree_can_have_are_refused_with_a_reason(void **state)
{
	char first[COP_IP_TEXT_SIZE], second[COP_IP_TEXT_SIZE];

	(void)state;
	assert_int_equal(read_conf("NodeName=n[1-99999999] NodeAddr=10.0.0.[1-99999999]\n"
				   "NodeName=n[3-199999] NodeAddr=x[3-199999]\n"
				   "NodeName=m[1-9] NodeAddr=10.0.0.[1-9]\n"
				   "NodeName=n2 NodeAddr=10.0.0.2\n",
				 first, second),
		199998);
	assert_string_equal(first, "::");
	assert_string_equal(second, "10.0.0.2");
	assert_logged("/slurm.conf\" why=\"'n[1-99999999]': means more than 200000 hosts\"", 1);
}

static void all_lists_together_name_no_more_nodes_than_a_tree_can_have(void **state)
{
	char first[COP_IP_TEXT_SIZE], second[COP_IP_TEXT_SIZE];

	(void)state;
	assert_int_equal(read_conf("NodeName=n[3-199999] NodeAddr=x[3-199999]\n"
				   "NodeName=m[1-9] NodeAddr=10.0.0.[1-9]\n"
				   "NodeName=n2 NodeAddr=10.0.0.2\n",
				 first, second),
		199998);
	assert_string_equal(second, "10.0.0.2");
	assert_logged("/slurm.conf\" why=\"it names more than 200000 nodes\"", 1);
}

static void a_conf_that_is_too_large_is_refused_with_a_reason(void **state)
{
	char first[COP_IP_TEXT_SIZE], second[COP_IP_TEXT_SIZE];
	struct cop_job_hosts hosts;

	(void)state;
	assert_int_equal(read_conf("", first, second), 0);
	assert_int_equal(truncate(path, 17 * COP_MIB), 0);
	assert_int_equal(cop_job_hosts_load("n[1-2]", 80, &hosts, NULL), 0);
	assert_int_equal(cop_job_slurm_addresses(&hosts), 0);
	cop_job_hosts_free(&hosts);
	assert_logged("/slurm.conf\" why=\"File too large\"", 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(lists_of_different_lengths_are_only_counted),
		TEST(a_conf_that_includes_itself_is_read_in_bounds),
		TEST(more_nodes_than_a_tree_can_have_are_refused_with_a_reason),
		TEST(all_lists_together_name_no_more_nodes_than_a_tree_can_have),
		TEST(a_conf_that_is_too_large_is_refused_with_a_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
