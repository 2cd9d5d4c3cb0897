/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/check/check.h"

static char dir[64], run_dir[80];
static struct cop_conf conf;
static struct cop_buf out;

static int set_up(void **state)
{
	(void)state;
	unsetenv("SLURM_JOB_NODELIST");
	unsetenv("PBS_NODEFILE");
	unsetenv("COPPER_SECRET");
	strcpy(dir, "/tmp/cop-check-test.XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(run_dir, sizeof(run_dir), "%s/run", dir);
	cop_conf_init(&conf, true);
	conf.source = dir;
	conf.runtime_dir = run_dir;
	conf.net_type = "tcp://lo";
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	cop_buf_free(&out);
	rmdir(run_dir);
	rmdir(dir);
	return 0;
}

/* Returns the line of one check, or NULL. */
static const char *line_of(const char *name, char line[1400])
{
	for (const char *p = out.data; p && *p; p = strchr(p, '\n') + 1) {
		char state[16], word[32];

		if (sscanf(p, "%15s %31s", state, word) != 2 || strcmp(word, name))
			continue;
		snprintf(line, 1400, "%.*s", (int)strcspn(p, "\n"), p);
		return line;
	}
	return NULL;
}

static void a_node_alone_needs_no_secret_and_no_mount(void **state)
{
	char line[1400];

	(void)state;
	assert_int_equal(cop_check_run(&conf, &out), 0);
	assert_null(line_of("fuse", line));
	assert_null(line_of("kernel", line));
	assert_null(line_of("mountpoint", line));
	assert_null(line_of("secret", line));
	assert_non_null(line_of("source", line));
	assert_int_equal(strncmp(line, "ok ", 3), 0);
	assert_non_null(line_of("hosts", line));
	assert_non_null(strstr(line, "a tree of one node"));
	assert_non_null(line_of("memory", line));
	assert_non_null(strstr(out.data, "\nready"));
}

static void a_failed_check_is_counted_and_those_that_depend_on_it_are_skipped(void **state)
{
	char line[1400];

	(void)state;
	conf.source = "/no/such/source";
	conf.hosts = "a,a";
	assert_int_equal(cop_check_run(&conf, &out), 2);
	assert_non_null(line_of("source", line));
	assert_string_equal(
		line, "failed   source       --source /no/such/source: No such file or directory");
	assert_non_null(line_of("hosts", line));
	assert_int_equal(strncmp(line, "failed ", 7), 0);
	assert_null(line_of("secret", line));
	assert_non_null(strstr(out.data, "\nnot ready: 2 failed\n"));
}

static void several_nodes_without_a_secret_get_advice(void **state)
{
	char line[1400];

	(void)state;
	conf.hosts = "127.0.0.41,127.0.0.42";
	conf.rank = 1;
	assert_int_equal(cop_check_run(&conf, &out), 1);
	assert_non_null(line_of("secret", line));
	assert_non_null(strstr(line, "--secret-file FILE"));
	assert_non_null(line_of("hosts", line));
	assert_non_null(strstr(line, "this is rank 1, 127.0.0.42"));
	cop_buf_free(&out);
	conf.job_dir = dir;
	assert_int_equal(cop_check_run(&conf, &out), 0);
	assert_non_null(line_of("secret", line));
	assert_non_null(strstr(line, "rank 0 will create"));
}

static void json_is_one_object(void **state)
{
	const char *end;
	unsigned warnings;
	int n = 0;

	(void)state;
	conf.json = true;
	conf.source = "/no/such/\"source\"";
	assert_int_equal(cop_check_run(&conf, &out), 1);
	assert_ptr_equal(
		strstr(out.data, "{\"checks\":[{\"name\":\"source\",\"state\":\"failed\",\"text\":"
				 "\"--source /no/such/\\\"source\\\": No such file or directory\"},"
				 "{\"name\":\"job_dir\",\"state\":\"ok\",\"text\":\""),
		out.data);
	end = strstr(out.data, "\"}],\"warnings\":");
	assert_non_null(end);
	assert_int_equal(
		sscanf(end, "\"}],\"warnings\":%u,\"failed\":1,\"ok\":false}%n", &warnings, &n), 1);
	assert_string_equal(end + n, "\n");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_node_alone_needs_no_secret_and_no_mount),
		TEST(a_failed_check_is_counted_and_those_that_depend_on_it_are_skipped),
		TEST(several_nodes_without_a_secret_get_advice),
		TEST(json_is_one_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
