/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/base/base.h"

static int write_down(void *arg, const char *dir, const char *type)
{
	struct cop_buf *seen = arg;

	cop_buf_printf(seen, "%s=%s;", dir, type);
	return 0;
}

static int end_at_home(void *arg, const char *dir, const char *type)
{
	write_down(arg, dir, type);
	return strcmp(dir, "/home") ? 0 : -ECANCELED;
}

static void lines_of_mountinfo_are_read_and_garbage_is_passed_over(void **state)
{
	char text[] = "22 28 0:21 / /sys rw,nosuid - sysfs sysfs rw\n"
		      "30 28 0:40 / /tmp/with\\040blank\\134 rw shared:1 - fuse.copper copper ro\n"
		      "garbage - proc\n\n - \n32 - proc x\n33 1 1:1 / relative rw - proc p rw\n"
		      "34 28 0:41 / /a/b/proc rw - proc proc rw";
	struct cop_buf seen = {0};

	(void)state;
	assert_int_equal(cop_mounts_parse(text, write_down, &seen), 0);
	assert_string_equal(seen.data, "/sys=sysfs;/tmp/with blank\\=fuse.copper;/a/b/proc=proc;");
	cop_buf_free(&seen);
}

static void a_visit_may_end_the_walk(void **state)
{
	char text[] =
		"1 0 8:1 / / rw - ext4 a rw\n2 1 8:1 / /home rw - xfs b rw\n3 1 8:1 / /usr rw - xfs c rw\n";
	struct cop_buf seen = {0};

	(void)state;
	assert_int_equal(cop_mounts_parse(text, end_at_home, &seen), -ECANCELED);
	assert_string_equal(seen.data, "/=ext4;/home=xfs;");
	cop_buf_free(&seen);
}

static void the_type_below_proc_is_proc(void **state)
{
	char type[COP_MOUNT_TYPE_SIZE];

	(void)state;
	assert_int_equal(cop_mount_type("/proc/self/fd", type), 0);
	assert_string_equal(type, "proc");
	assert_int_equal(cop_mount_type("/", type), 0);
	assert_string_not_equal(type, "");
	assert_string_not_equal(type, "proc");
	assert_int_equal(cop_mount_type("/proc/not/there", type), -ENOENT);
	assert_string_equal(type, "");
}

static void shared_file_systems_are_distinguished_from_local_ones(void **state)
{
	static const char *const shared[] = {
		"nfs4", "lustre", "gpfs", "dvs", "fuse.sshfs", "fuse.dfuse"};
	static const char *const own[] = {
		"ext4", "xfs", "tmpfs", "overlay", "fuse.copper", "fuse.squashfuse", "fuseblk", ""};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(shared); i++)
		assert_true(cop_mount_is_shared(shared[i]) && !cop_mount_is_pseudo(shared[i]));
	for (size_t i = 0; i < COP_ARRAY_SIZE(own); i++)
		assert_false(cop_mount_is_shared(own[i]));
	assert_true(cop_mount_is_pseudo("proc") && cop_mount_is_pseudo("tmpfs") &&
		    !cop_mount_is_pseudo("ext4"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_of_mountinfo_are_read_and_garbage_is_passed_over),
		cmocka_unit_test(a_visit_may_end_the_walk),
		cmocka_unit_test(the_type_below_proc_is_proc),
		cmocka_unit_test(shared_file_systems_are_distinguished_from_local_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
