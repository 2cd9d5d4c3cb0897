/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base/base.h"

static char root[] = "/tmp/memory_test.XXXXXX";

/* Writes a file below root and creates the directories above it. */
static void put_text(const char *path, const char *text)
{
	char whole[512], dir[512];

	snprintf(whole, sizeof(whole), "%s/%s", root, path);
	snprintf(dir, sizeof(dir), "%s", whole);
	*strrchr(dir, '/') = '\0';
	assert_int_equal(cop_make_dirs(dir, 0700), 0);
	assert_int_equal(cop_write_file(whole, text, strlen(text), 0600), 0);
}

static int make_root(void **state)
{
	(void)state;
	strcpy(strrchr(root, '.'), ".XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	char command[600];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

static void without_control_groups_there_is_no_limit(void **state)
{
	(void)state;
	assert_true(cop_memory_limit(root) == UINT64_MAX);
	put_text("proc/self/cgroup", "garbage\n0:\n4:memory\n:::\n");
	assert_true(cop_memory_limit(root) == UINT64_MAX);
}

static void the_least_limit_of_all_groups_above_counts_in_version_2(void **state)
{
	(void)state;
	put_text("proc/self/cgroup", "0::/job_7/step_0/task_0\n");
	put_text("sys/fs/cgroup/job_7/step_0/task_0/memory.max", "max\n");
	put_text("sys/fs/cgroup/job_7/step_0/memory.max", "3000000\n");
	assert_true(cop_memory_limit(root) == 3000000);
	put_text("sys/fs/cgroup/job_7/memory.max", "2000000\n");
	assert_true(cop_memory_limit(root) == 2000000);
	put_text("sys/fs/cgroup/job_7/memory.high", "max\n");
	assert_true(cop_memory_limit(root) == 2000000);
	put_text("sys/fs/cgroup/job_7/step_0/memory.high", "1900000\n");
	assert_true(cop_memory_limit(root) == 1900000);
}

static void version_1_counts_beside_version_2(void **state)
{
	(void)state;
	put_text("proc/self/cgroup",
		"9:name=systemd:/x\n5:devices:/slurm/uid_1/job_7\n4:memory:/slurm/uid_1/job_7\n0::/\n");
	put_text("sys/fs/cgroup/memory/slurm/uid_1/job_7/memory.limit_in_bytes",
		"9223372036854771712\n");
	put_text("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	assert_true(cop_memory_limit(root) == 9223372036854771712ULL);
	put_text("sys/fs/cgroup/memory/slurm/uid_1/memory.limit_in_bytes", "4096000\n");
	put_text("sys/fs/cgroup/devices/slurm/uid_1/job_7/memory.limit_in_bytes", "1\n");
	assert_true(cop_memory_limit(root) == 4096000);
	put_text("sys/fs/cgroup/memory.max", "4095999\n");
	assert_true(cop_memory_limit(root) == 4095999);
}

static void a_container_that_sees_only_its_own_group_finds_its_limit(void **state)
{
	(void)state;
	put_text("proc/self/cgroup", "0::/docker/0123456789\n");
	put_text("sys/fs/cgroup/memory.max", "5000000\n");
	assert_true(cop_memory_limit(root) == 5000000);
}

static void memory_is_short_when_little_is_available_or_programs_wait_for_it(void **state)
{
	(void)state;
	assert_true(cop_memory_available(root) == 0);
	put_text("proc/meminfo", "MemTotal: 1600 kB\nMemFree: 10 kB\nMemAvailable: 100 kB\n");
	assert_true(cop_memory_available(root) == 100 * 1024);
	assert_false(cop_memory_is_short(root));
	put_text("proc/pressure/memory",
		"some avg10=4.90 avg60=9.00 avg300=9.00 total=1\nfull avg10=9.00 avg60=9.00\n");
	assert_false(cop_memory_is_short(root));
	put_text("proc/pressure/memory", "some avg10=5.10 avg60=0.00 avg300=0.00 total=1\n");
	assert_true(cop_memory_is_short(root));
	put_text("proc/pressure/memory", "some avg10=0.00\n");
	put_text("proc/meminfo", "MemTotal: 1600 kB\nMemAvailable: 99 kB\n");
	assert_true(cop_memory_is_short(root));
}

static void kills_for_want_of_memory_are_counted(void **state)
{
	(void)state;
	assert_true(cop_memory_kills(root) == 0);
	put_text("proc/self/cgroup", "0::/job_7/step_0\n");
	put_text("sys/fs/cgroup/job_7/memory.events", "low 0\noom 3\noom_kill 2\n");
	assert_true(cop_memory_kills(root) == 2);
	put_text("proc/self/cgroup", "4:memory:/job_7\n0::/\n");
	put_text("sys/fs/cgroup/memory/job_7/memory.oom_control",
		"oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");
	assert_true(cop_memory_kills(root) == 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			without_control_groups_there_is_no_limit, make_root, remove_root),
		cmocka_unit_test_setup_teardown(
			the_least_limit_of_all_groups_above_counts_in_version_2, make_root,
			remove_root),
		cmocka_unit_test_setup_teardown(
			version_1_counts_beside_version_2, make_root, remove_root),
		cmocka_unit_test_setup_teardown(
			a_container_that_sees_only_its_own_group_finds_its_limit, make_root,
			remove_root),
		cmocka_unit_test_setup_teardown(
			memory_is_short_when_little_is_available_or_programs_wait_for_it, make_root,
			remove_root),
		cmocka_unit_test_setup_teardown(
			kills_for_want_of_memory_are_counted, make_root, remove_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
