/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
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

#include "base/base/base.h"

static char top[] = "/tmp/cop_guard_test.XXXXXX";

/* Returns a name below top, valid until the eighth call after it. */
static const char *at(const char *name)
{
	static char path[8][128];
	static unsigned next;
	char *p = path[next++ % 8];

	snprintf(p, sizeof(path[0]), "%s/%s", top, name);
	return p;
}

static int make(void **state)
{
	(void)state;
	if (!mkdtemp(top) || mkdir(at("job"), 0700) || mkdir(at("job/logs"), 0700) ||
		mkdir(at("there"), 0700))
		return -1;
	return symlink(at("there"), at("job/link")) || symlink(at("job"), at("way"));
}

static int drop(void **state)
{
	(void)state;
	cop_unlink(at("job/logs/file"));
	unlink(at("there/file"));
	rmdir(at("job/a/b"));
	rmdir(at("job/a"));
	rmdir(at("job/logs"));
	unlink(at("job/link"));
	unlink(at("way"));
	rmdir(at("job"));
	rmdir(at("there"));
	return rmdir(top);
}

static void nothing_is_guarded_at_first(void **state)
{
	struct cop_dir dir;

	(void)state;
	assert_int_equal(cop_dir_of(at("job/link/file"), &dir), 0);
	assert_int_equal(dir.fd, AT_FDCWD);
	assert_int_equal(dir.nofollow, 0);
	cop_dir_done(&dir);
	assert_int_equal(cop_write_file(at("job/link/file"), "x", 1, 0600), 0);
	assert_int_equal(unlink(at("there/file")), 0);
}

static void a_directory_open_to_others_is_not_guarded(void **state)
{
	struct cop_err err = {0};

	(void)state;
	assert_int_equal(chmod(at("job"), 0702), 0);
	assert_int_equal(cop_safedir(at("job"), &err), -EPERM);
	assert_non_null(strstr(err.text, "chmod go-w it"));
	assert_int_equal(chmod(at("job"), 01777), 0);
	assert_int_equal(cop_safedir(at("job"), &err), -EPERM);
	assert_int_equal(chmod(at("job"), 0700), 0);
	assert_int_equal(cop_safedir(at("none"), &err), -ENOENT);
}

static void links_on_the_way_to_it_are_followed_and_links_in_it_are_not(void **state)
{
	struct cop_err err = {0};
	uint64_t size;
	char *data;
	size_t len;
	int fd;

	(void)state;
	assert_int_equal(cop_safedir(at("job/"), &err), 0);
	assert_int_equal(cop_safedir(at("way"), &err), 0);
	assert_int_equal(cop_safedir(at("way"), &err), 0);
	assert_int_equal(cop_write_file(at("way/logs/file"), "text", 4, 0600), 0);
	assert_int_equal(cop_read_file(at("job//logs/file"), 10, &data, &len), 0);
	assert_string_equal(data, "text");
	free(data);
	fd = cop_open_regular(AT_FDCWD, at("job/logs/file"), &size);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(cop_write_file(at("job/link/file"), "x", 1, 0600), -ELOOP);
	assert_int_equal(cop_write_file(at("way/link/file"), "x", 1, 0600), -ELOOP);
	assert_int_equal(cop_make_dirs(at("job/link/dir"), 0700), -ELOOP);
	assert_int_equal(cop_make_dirs(at("job/link"), 0700), -ELOOP);
	assert_int_equal(cop_write_file(at("job/logs/../link/file"), "x", 1, 0600), -EINVAL);
	assert_int_equal(access(at("there/file"), F_OK), -1);
	assert_int_equal(cop_make_dirs(at("job/a/b"), 0700), 0);
	assert_int_equal(cop_make_dirs(at("job/a/b"), 0700), 0);
	assert_int_equal(cop_safedir_check(at("job/a/b"), &err), 0);
	assert_int_equal(cop_safedir_check(at("job/none"), &err), 0);
	assert_int_equal(cop_safedir_check(at("job/link"), &err), -ELOOP);
	assert_non_null(strstr(err.text, "job/link is a symbolic link"));
}

static void a_file_that_is_a_link_is_replaced_and_never_read(void **state)
{
	struct stat st;
	uint64_t size;
	char *data;
	size_t len;

	(void)state;
	assert_int_equal(cop_unlink(at("job/logs/file")), 0);
	assert_int_equal(symlink(at("there/file"), at("job/logs/file")), 0);
	assert_int_equal(cop_read_file(at("job/logs/file"), 10, &data, &len), -ELOOP);
	assert_true(cop_open_regular(AT_FDCWD, at("job/logs/file"), &size) < 0);
	assert_int_equal(cop_write_file(at("job/logs/file"), "x", 1, 0600), 0);
	assert_int_equal(lstat(at("job/logs/file"), &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(access(at("there/file"), F_OK), -1);
}

static void a_folder_that_is_opened_to_others_later_is_not_written_to(void **state)
{
	(void)state;
	assert_int_equal(chmod(at("job/logs"), 0777), 0);
	assert_int_equal(cop_write_file(at("job/logs/file"), "y", 1, 0600), -EPERM);
	assert_int_equal(cop_rename(at("job/logs/file"), at("job/file")), -EPERM);
	assert_int_equal(chmod(at("job/logs"), 0700), 0);
	assert_int_equal(cop_rename(at("job/logs/file"), at("job/logs/file2")), 0);
	assert_int_equal(cop_unlink(at("job/logs/file2")), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_guarded_at_first),
		cmocka_unit_test(a_directory_open_to_others_is_not_guarded),
		cmocka_unit_test(links_on_the_way_to_it_are_followed_and_links_in_it_are_not),
		cmocka_unit_test(a_file_that_is_a_link_is_replaced_and_never_read),
		cmocka_unit_test(a_folder_that_is_opened_to_others_later_is_not_written_to),
	};

	return cmocka_run_group_tests(tests, make, drop);
}
