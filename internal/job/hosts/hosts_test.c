/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
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

#include "job/hosts/hosts_priv.h"

static char folder[] = "/tmp/cop_hosts_test.XXXXXX";
static char path[64];
static struct cop_job_hosts hosts;
static struct cop_err err;

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/hosts", folder);
	return 0;
}

static int drop_folder(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

static int teardown(void **state)
{
	(void)state;
	cop_job_hosts_free(&hosts);
	unsetenv("SLURM_JOB_NODELIST");
	unsetenv("PBS_NODEFILE");
	return 0;
}

static int load(const char *text)
{
	cop_job_hosts_free(&hosts);
	err = (struct cop_err){0};
	return cop_job_hosts_load(text, 7720, &hosts, &err);
}

static int load_file(const char *content)
{
	assert_int_equal(cop_write_file(path, content, strlen(content), 0600), 0);
	return load(path);
}

/* "a:1 b:2" */
static void assert_hosts(const char *expected)
{
	struct cop_buf text = {0};

	for (uint32_t i = 0; i < hosts.count; i++)
		cop_buf_printf(
			&text, "%s%s:%u", i ? " " : "", hosts.host[i].name, hosts.host[i].port);
	assert_string_equal(text.data ? text.data : "", expected);
	cop_buf_free(&text);
}

static void assert_refused(int rc, int code, const char *part)
{
	assert_int_equal(rc, -code);
	assert_int_equal(err.code, code);
	if (!strstr(err.text, part))
		fail_msg("'%s' is not in '%s'", part, err.text);
	assert_int_equal(hosts.count, 0);
	assert_null(hosts.host);
}

static void an_empty_list_is_refused(void **state)
{
	(void)state;
	assert_refused(load(""), EINVAL, "it names no host");
	assert_refused(load(","), EINVAL, "between two commas");
	assert_refused(load("a,,b"), EINVAL, "between two commas");
	assert_refused(load("a,"), EINVAL, "between two commas");
	assert_refused(load("[]"), EINVAL, "bracket");
}

static void a_hostile_range_is_refused_before_it_is_expanded(void **state)
{
	(void)state;
	/* Expanding the list first would take gigabytes; the test's time limit would end it. */
	assert_refused(load("n[0-999999999]"), E2BIG, "means more than 200000 hosts");
	assert_refused(load("n[0-999999999999999999]"), E2BIG, "200000");
	assert_refused(load("n[0-99999999999999999999999]"), EINVAL, "bracket");
	assert_refused(load("n[1-1000]m[1-1000]"), E2BIG, "200000");
	assert_refused(
		load("a[0-999][0-999][0-999][0-999][0-999][0-999][0-999][0-999]"), E2BIG, "200000");
	assert_refused(load("a[1][1][1][1][1][1][1][1][1]"), EINVAL, "more than 8 brackets");
	assert_refused(load("a[1-150000],b[1-150000]"), E2BIG, "with it there are more");
}

static void malformed_brackets_are_refused(void **state)
{
	static const char *const bad[] = {"n[", "n]", "n[1", "n[1-", "n[1-]", "n[-1]", "n[2-1]",
		"n[a]", "n[1,]", "n[1;2]", "n[1[2]]", "n[1-2-3]", "n[1 ]"};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(bad); i++)
		assert_refused(load(bad[i]), EINVAL, "'");
}

static void malformed_names_and_ports_are_refused(void **state)
{
	char name[300];

	(void)state;
	assert_refused(load("a b"), EINVAL, "a host name has");
	assert_refused(load("-a"), EINVAL, "not a host name");
	assert_refused(load("a:"), EINVAL, "1..65535");
	assert_refused(load("a:0"), EINVAL, "1..65535");
	assert_refused(load("a:65536"), EINVAL, "1..65535");
	assert_refused(load("a:123456"), EINVAL, "1..65535");
	assert_refused(load("a:7x"), EINVAL, "1..65535");
	assert_refused(load(":7720"), EINVAL, "not a host name");
	assert_refused(load("a\x1b[31m"), EINVAL, "?[31m");
	memset(name, 'x', sizeof(name));
	name[254] = '\0';
	assert_refused(load(name), EINVAL, "not a host name");
	name[253] = '\0';
	assert_int_equal(load(name), 0);
}

static void addresses_of_ipv6_stand_in_brackets_where_they_have_a_port(void **state)
{
	(void)state;
	assert_int_equal(load("fd77::1,[fd77::2]:7721,[fd77::3],::1,n1:7722"), 0);
	assert_hosts("fd77::1:7720 fd77::2:7721 fd77::3:7720 ::1:7720 n1:7722");
	assert_int_equal(load_file("fd77::1\n[fd77::2]:7721 # two\n"), 0);
	assert_hosts("fd77::1:7720 fd77::2:7721");
	assert_int_equal(load("fd77::[1-2,a]"), -EINVAL);
	assert_int_equal(load("fd77::[1-2],fd77:0:0::[08-10]"), 0);
	assert_hosts("fd77::1:7720 fd77::2:7720 fd77::8:7720 fd77::9:7720 fd77::10:7720");
}

static void an_address_of_ipv6_is_known_by_its_shortest_form(void **state)
{
	(void)state;
	assert_int_equal(load("FD77:0:0:0:0:0:0:1,::ffff:127.0.0.11"), 0);
	assert_hosts("fd77::1:7720 127.0.0.11:7720");
	assert_refused(load("fd77::1,[fd77:0::1]:7720"), EEXIST,
		"[fd77::1]:7720 appears twice: places 1 and 2");
}

static void what_only_looks_like_ipv6_is_refused(void **state)
{
	static const char *const bad[] = {"fd77::1::2", "[fd77::1", "fd77::1]", "[fd77::12345]",
		"a:b:c", "n1:7720:1", "[n1:x]:1", "[::1]:7720:1", "fd77::[1-2]x", "[::1"};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(bad); i++)
		assert_refused(load(bad[i]), EINVAL, "'");
	assert_refused(load("[::1]:"), EINVAL, "1..65535");
	assert_refused(load("[::1]7720"), EINVAL, "1..65535");
	assert_refused(load("[::1]:65536"), EINVAL, "1..65535");
	assert_refused(load("n1:7720:7721"), EINVAL, "is not an address of IPv6");
}

/* It would mean a different machine on each interface. */
static void a_link_local_address_is_refused_with_the_way_out(void **state)
{
	(void)state;
	assert_refused(load("fe80::1"), EINVAL, "'fe80::1': is a link-local address");
	assert_refused(load("fe80::1%eth0"), EINVAL, "see 'ip address'");
	assert_refused(load("[fe80::1%eth0]:7720"), EINVAL, "link-local");
	assert_refused(load("fe80::[1-3]"), EINVAL, "not a host name");
	assert_refused(load_file("fe80::1\n"), EINVAL, "link-local");
}

static void a_missing_file_is_not_taken_for_a_list(void **state)
{
	(void)state;
	assert_refused(load("/nowhere/hosts"), ENOENT, "--hosts /nowhere/hosts: cannot read");
	assert_refused(load(folder), EISDIR, "directory");
}

static void the_same_host_twice_names_both_places(void **state)
{
	(void)state;
	assert_refused(load("a,b,c,b"), EEXIST, "b:7720 appears twice: places 2 and 4");
	assert_refused(load("n[1-3],n2:7720"), EEXIST, "places 2 and 4");
	assert_refused(
		load_file("a\n\n# c\nb\na:7720\n"), EEXIST, "a:7720 appears twice: lines 1 and 5");
	assert_int_equal(load("a:1,a:2"), 0);
	assert_hosts("a:1 a:2");
}

static void a_bad_line_is_named_by_its_number(void **state)
{
	(void)state;
	assert_refused(load_file("a\nb c\n"), EINVAL, "line 2: 'b c' is not host or host:port");
	assert_refused(load_file("# x\n\n\nn[1-4]\n"), EINVAL,
		"line 4: 'n[1-4]' is a list, but a file has one host on each line");
	assert_refused(load_file("a:1,b:1\n"), EINVAL, "line 1: 'a:1,b:1' is a list");
	assert_refused(load_file("[::1:1\n"), EINVAL, "line 1: '[::1:1'");
	assert_refused(load_file("a:99999\n"), EINVAL, "line 1: 'a:99999': a port");
	assert_refused(load_file("\n  # nothing\n"), EINVAL, "it names no host");
	assert_refused(load_file(""), EINVAL, "it names no host");
}

static void bytes_of_zero_in_a_file_are_refused(void **state)
{
	(void)state;
	assert_int_equal(cop_write_file(path, "a\0b\n", 4, 0600), 0);
	assert_refused(load(path), EINVAL, "line 1: 'a?b'");
}

static void lists_expand_as_slurm_writes_them(void **state)
{
	(void)state;
	assert_int_equal(load("n[1-4,7],login"), 0);
	assert_hosts("n1:7720 n2:7720 n3:7720 n4:7720 n7:7720 login:7720");
	assert_string_equal(hosts.origin, "--hosts n[1-4,7],login");
	assert_int_equal(load("x[008-010]y"), 0);
	assert_hosts("x008y:7720 x009y:7720 x010y:7720");
	assert_int_equal(load("n[8-11]"), 0);
	assert_hosts("n8:7720 n9:7720 n10:7720 n11:7720");
	assert_int_equal(load("r[1-2]n[0-1].site:81"), 0);
	assert_hosts("r1n0.site:81 r1n1.site:81 r2n0.site:81 r2n1.site:81");
	assert_int_equal(load("n[007],[1-2]"), 0);
	assert_hosts("n007:7720 1:7720 2:7720");
	assert_int_equal(load(" a , 127.0.0.11:7721 "), 0);
	assert_hosts("a:7720 127.0.0.11:7721");
}

static void the_largest_list_is_accepted(void **state)
{
	(void)state;
	assert_int_equal(load("nid[000000-199999]"), 0);
	assert_int_equal(hosts.count, COP_JOB_MAX_HOSTS);
	assert_string_equal(hosts.host[199999].name, "nid199999");
	assert_refused(load("nid[000000-200000]"), E2BIG, "200000");
}

static void files_hold_one_host_a_line(void **state)
{
	(void)state;
	assert_int_equal(load_file("# the job\n\n a \r\nb:8100 # relay\n\tc"), 0);
	assert_hosts("a:7720 b:8100 c:7720");
}

static void slots_of_a_machine_file_are_no_ports(void **state)
{
	(void)state;
	assert_int_equal(load_file("a:4\nb:64\nc:1024\n[fd77::1]:8\n"), 0);
	assert_hosts("a:7720 b:7720 c:1024 fd77::1:7720");
	assert_int_equal(load_file("a slots=4 max_slots=8\nb:2 ifname=ib0 # MPICH\nc\n"), 0);
	assert_hosts("a:7720 b:7720 c:7720");
	assert_refused(load_file("a slots=4 8\n"), EINVAL, "is not host or host:port");
	assert_refused(load_file("a b=c d\n"), EINVAL, "is not host or host:port");
}

static void without_a_scheduler_there_are_no_hosts(void **state)
{
	(void)state;
	assert_int_equal(cop_job_hosts_env(7720, &hosts, &err), 0);
	assert_int_equal(hosts.count, 0);
}

/* Each process would become a tree of its own. */
static void one_of_several_without_a_list_is_refused(void **state)
{
	static const char *const tells[][2] = {{"PMI_SIZE", "2"}, {"OMPI_COMM_WORLD_SIZE", "64"},
		{"FLUX_JOB_SIZE", "2"}, {"PMI_RANK", "1"}, {"PMIX_RANK", "3"}, {"PALS_NODEID", "1"},
		{"FLUX_TASK_RANK", "1"}};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(tells); i++) {
		setenv(tells[i][0], tells[i][1], 1);
		assert_refused(cop_job_hosts_env(0, &hosts, &err), EINVAL, tells[i][0]);
		assert_non_null(strstr(err.text, "--hosts localhost"));
		unsetenv(tells[i][0]);
	}
}

static void one_task_of_a_launcher_is_alone(void **state)
{
	static const char *const names[] = {"PMI_RANK", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE"};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(names); i++)
		setenv(names[i], i ? "1" : "0", 1);
	assert_int_equal(cop_job_hosts_env(0, &hosts, &err), 0);
	assert_int_equal(hosts.count, 0);
	for (size_t i = 0; i < COP_ARRAY_SIZE(names); i++)
		unsetenv(names[i]);
}

static void slurm_comes_before_pbs(void **state)
{
	(void)state;
	setenv("SLURM_JOB_NODELIST", "n[1-2]", 1);
	setenv("PBS_NODEFILE", "/nowhere", 1);
	assert_int_equal(cop_job_hosts_env(81, &hosts, &err), 0);
	assert_hosts("n1:81 n2:81");
	assert_string_equal(hosts.origin, "SLURM_JOB_NODELIST");
}

static void a_bad_environment_is_named(void **state)
{
	(void)state;
	setenv("SLURM_JOB_NODELIST", "n[1", 1);
	assert_refused(cop_job_hosts_env(81, &hosts, &err), EINVAL, "SLURM_JOB_NODELIST: ");
	unsetenv("SLURM_JOB_NODELIST");
	setenv("PBS_NODEFILE", "/nowhere", 1);
	assert_refused(cop_job_hosts_env(81, &hosts, &err), ENOENT, "PBS_NODEFILE: ");
}

static void pbs_names_a_host_once_for_each_slot(void **state)
{
	(void)state;
	assert_int_equal(cop_write_file(path, "b\nb\na\nb\na\n", 10, 0600), 0);
	setenv("PBS_NODEFILE", path, 1);
	assert_int_equal(cop_job_hosts_env(81, &hosts, &err), 0);
	assert_hosts("b:81 a:81");
}

static void slots_do_not_count_as_hosts(void **state)
{
	struct cop_buf text = {0};

	(void)state;
	for (int i = 0; i < COP_JOB_MAX_HOSTS + 10; i++)
		cop_buf_str(&text, i < COP_JOB_MAX_HOSTS ? "a\n" : "b\n");
	assert_int_equal(cop_write_file(path, text.data, text.len, 0600), 0);
	cop_buf_free(&text);
	setenv("PBS_NODEFILE", path, 1);
	assert_int_equal(cop_job_hosts_env(81, &hosts, &err), 0);
	assert_hosts("a:81 b:81");
}

static void a_job_gets_ports_of_its_own_one_for_each_rank(void **state)
{
	struct cop_job_hosts one, two;

	(void)state;
	setenv("SLURM_JOB_NODELIST", "n[1-17],m:99", 1);
	setenv("SLURM_JOB_ID", "4711", 1);
	assert_int_equal(cop_job_hosts_env(0, &one, NULL), 0);
	setenv("SLURM_JOB_ID", "4712", 1);
	assert_int_equal(cop_job_hosts_env(0, &two, NULL), 0);
	assert_int_equal(one.host[17].port, 99);
	assert_int_equal(one.host[17].second_port, 0);
	assert_int_equal(one.host[16].port, one.host[0].port);
	for (uint32_t i = 0; i < 16; i++) {
		assert_in_range(one.host[i].port, COP_JOB_PORTS_FROM,
			COP_JOB_PORTS_FROM + COP_JOB_PORTS - 1);
		assert_in_range(one.host[i].second_port, COP_JOB_PORTS_FROM,
			COP_JOB_PORTS_FROM + COP_JOB_PORTS - 1);
		for (uint32_t j = 0; j < 16; j++) {
			assert_int_not_equal(one.host[i].port, two.host[j].port);
			assert_int_not_equal(one.host[i].second_port, one.host[j].port);
			assert_int_not_equal(one.host[i].second_port, two.host[j].port);
			assert_true(i == j || one.host[i].port != one.host[j].port);
		}
	}
	cop_job_hosts_free(&one);
	cop_job_hosts_free(&two);
	assert_int_equal(cop_job_hosts_env(7720, &one, NULL), 0);
	assert_int_equal(one.host[3].port, 7720);
	assert_int_equal(one.host[3].second_port, 0);
	cop_job_hosts_free(&one);
	unsetenv("SLURM_JOB_ID");
	assert_int_equal(cop_job_hosts_env(0, &one, NULL), 0);
	assert_int_equal(one.host[3].port, COP_JOB_PORT);
	cop_job_hosts_free(&one);
	unsetenv("SLURM_JOB_NODELIST");
}

static void assert_address(uint32_t i, const char *want)
{
	char text[COP_IP_TEXT_SIZE];

	assert_string_equal(cop_ip_print(&hosts.host[i].address, text), want);
}

/* The name service decides where Slurm gives no address, or several slurmd run on one machine. */
static void the_addresses_of_slurms_nodes_come_from_slurm(void **state)
{
	char more[80], conf[400];

	(void)state;
	snprintf(more, sizeof(more), "%s/more", folder);
	snprintf(conf, sizeof(conf),
		"# NodeName=n1 NodeAddr=10.9.9.9\nClusterName=x\n"
		"nodename=n[1-2] CPUs=4 \\\n NODEADDR=10.0.0.[1-2] State=UP\nNodeName=n3 NodeAddr=n3-ib\n"
		"NodeName=n4 NodeAddr=127.0.0.1\nNodeName=n[5-6] NodeAddr=10.0.0.5\nNodeName=n9 NodeAddr=10.0.0.9\nNodeName=n15 NodeAddr=fd77::15\n"
		"Include more\nNodeName= NodeAddr=\nNodeName=n[ NodeAddr=10.0.0.7\nInclude hosts\n");
	assert_int_equal(cop_write_file(path, conf, strlen(conf), 0600), 0);
	assert_int_equal(cop_write_file(more, "NodeName=n7 NodeAddr=10.0.0.7 # last", 36, 0600), 0);
	setenv("SLURM_CONF", path, 1);
	setenv("SLURM_NODE_ALIASES",
		"n8:10.0.0.8:a,n10:[10.0.0.10]:b,n11:[fe80::1]:c,n14:[fd77::14]:e,n12,:,n13:10.0.0.1333333333333333:d",
		1);
	setenv("SLURM_JOB_NODELIST", "n[1-15]", 1);
	assert_int_equal(cop_job_hosts_env(80, &hosts, &err), 0);
	for (uint32_t i = 0; i < 10; i++) {
		static const char *const want[] = {"10.0.0.1", "10.0.0.2",
			"::", "::", "::", "::", "10.0.0.7", "10.0.0.8", "10.0.0.9", "10.0.0.10"};

		assert_address(i, want[i]);
	}
	assert_address(10, "::");
	assert_address(11, "::");
	assert_address(12, "::");
	assert_address(13, "fd77::14");
	assert_address(14, "fd77::15");
	unsetenv("SLURM_CONF");
	unsetenv("SLURM_NODE_ALIASES");
	unlink(more);
}

/* An Include may name anything; opening a fifo without a writer would block. */
static void a_fifo_in_slurm_conf_is_passed_over(void **state)
{
	char fifo[80], conf[200];

	(void)state;
	snprintf(fifo, sizeof(fifo), "%s/fifo", folder);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	snprintf(conf, sizeof(conf), "Include fifo\nNodeName=n1 NodeAddr=10.0.0.1\n");
	assert_int_equal(cop_write_file(path, conf, strlen(conf), 0600), 0);
	setenv("SLURM_CONF", path, 1);
	setenv("SLURM_JOB_NODELIST", "n1", 1);
	alarm(60);
	assert_int_equal(cop_job_hosts_env(80, &hosts, &err), 0);
	alarm(0);
	assert_address(0, "10.0.0.1");
	unsetenv("SLURM_CONF");
	unlink(fifo);
}

static uint16_t port_of_pbs(const char *job)
{
	struct cop_job_hosts h;
	uint16_t port;

	setenv("SLURM_JOB_NODELIST", "n1", 1);
	setenv("PBS_JOBID", job, 1);
	assert_int_equal(cop_job_hosts_env(0, &h, NULL), 0);
	port = h.host[0].port;
	cop_job_hosts_free(&h);
	unsetenv("SLURM_JOB_NODELIST");
	unsetenv("PBS_JOBID");
	return port;
}

static void parts_of_a_pbs_array_have_ports_of_their_own(void **state)
{
	(void)state;
	assert_int_not_equal(port_of_pbs("12[1].server"), port_of_pbs("12[2].server"));
	assert_int_equal(port_of_pbs("13.server"), port_of_pbs("13"));
	assert_int_equal(port_of_pbs("server"), COP_JOB_PORT);
	assert_in_range(port_of_pbs("99999999999999999999.server"), COP_JOB_PORTS_FROM,
		COP_JOB_PORTS_FROM + COP_JOB_PORTS - 1);
}

static uint16_t port_of_step(const char *step, uint32_t tree)
{
	struct cop_job_hosts h;
	uint16_t port;

	setenv("SLURM_STEP_ID", step, 1);
	assert_int_equal(cop_job_hosts_step(0, tree, &h, NULL), 0);
	assert_true(h.of_tasks);
	port = h.host[0].port;
	cop_job_hosts_free(&h);
	return port;
}

static void a_step_has_its_own_hosts_and_ports(void **state)
{
	uint16_t of_job;

	(void)state;
	setenv("SLURM_JOB_ID", "4711", 1);
	setenv("SLURM_JOB_NODELIST", "n[1-4]", 1);
	setenv("SLURM_STEP_NODELIST", "n[2-3]", 1);
	setenv("SLURM_STEP_ID", "0", 1);
	assert_int_equal(cop_job_hosts_step(0, 0, &hosts, &err), 0);
	assert_int_equal(hosts.count, 2);
	assert_string_equal(hosts.host[0].name, "n2");
	assert_string_equal(hosts.origin, "SLURM_STEP_NODELIST");
	cop_job_hosts_free(&hosts);
	assert_int_equal(cop_job_hosts_env(0, &hosts, &err), 0);
	assert_int_equal(hosts.count, 4);
	assert_false(hosts.of_tasks);
	of_job = hosts.host[0].port;
	assert_int_not_equal(port_of_step("0", 0), of_job);
	assert_int_not_equal(port_of_step("0", 0), port_of_step("1", 0));
	assert_int_not_equal(port_of_step("0", 0), port_of_step("0", 1));
	/* A batch script is not a step. */
	assert_int_equal(port_of_step("4294967291", 0), of_job);
	unsetenv("SLURM_STEP_ID");
	unsetenv("SLURM_STEP_NODELIST");
	unsetenv("SLURM_JOB_NODELIST");
	unsetenv("SLURM_JOB_ID");
}

#define TEST(f) cmocka_unit_test_teardown(f, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(slots_of_a_machine_file_are_no_ports),
		TEST(an_empty_list_is_refused),
		TEST(a_hostile_range_is_refused_before_it_is_expanded),
		TEST(malformed_brackets_are_refused),
		TEST(malformed_names_and_ports_are_refused),
		TEST(addresses_of_ipv6_stand_in_brackets_where_they_have_a_port),
		TEST(an_address_of_ipv6_is_known_by_its_shortest_form),
		TEST(what_only_looks_like_ipv6_is_refused),
		TEST(a_link_local_address_is_refused_with_the_way_out),
		TEST(a_missing_file_is_not_taken_for_a_list),
		TEST(the_same_host_twice_names_both_places),
		TEST(a_bad_line_is_named_by_its_number),
		TEST(bytes_of_zero_in_a_file_are_refused),
		TEST(lists_expand_as_slurm_writes_them),
		TEST(the_largest_list_is_accepted),
		TEST(files_hold_one_host_a_line),
		TEST(without_a_scheduler_there_are_no_hosts),
		TEST(one_of_several_without_a_list_is_refused),
		TEST(one_task_of_a_launcher_is_alone),
		TEST(slurm_comes_before_pbs),
		TEST(a_bad_environment_is_named),
		TEST(pbs_names_a_host_once_for_each_slot),
		TEST(slots_do_not_count_as_hosts),
		TEST(the_addresses_of_slurms_nodes_come_from_slurm),
		TEST(a_fifo_in_slurm_conf_is_passed_over),
		TEST(a_job_gets_ports_of_its_own_one_for_each_rank),
		TEST(parts_of_a_pbs_array_have_ports_of_their_own),
		TEST(a_step_has_its_own_hosts_and_ports),
	};

	unsetenv("SLURM_JOB_NODELIST");
	unsetenv("PBS_NODEFILE");
	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
