/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base/base.h"

static char dir[64];

static const char *in_dir(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/cop-base-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

/* Removes what the tests made; returns how many files there were. */
static int empty_dir(void)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int n = 0;

	while ((e = readdir(d))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		remove(in_dir(e->d_name));
		n++;
	}
	closedir(d);
	return n;
}

static int teardown(void **state)
{
	(void)state;
	empty_dir();
	return rmdir(dir);
}

static void a_file_that_is_written_reads_the_same(void **state)
{
	char *data;
	size_t len;
	struct stat st;

	(void)state;
	assert_int_equal(cop_write_file(in_dir("f"), "one\0two", 7, 0640), 0);
	assert_int_equal(stat(in_dir("f"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(cop_read_file(in_dir("f"), 7, &data, &len), 0);
	assert_int_equal(len, 7);
	assert_memory_equal(data, "one\0two\0", 8);
	free(data);
	assert_int_equal(cop_write_file(in_dir("f"), "", 0, 0600), 0);
	assert_int_equal(cop_read_file(in_dir("f"), 0, &data, &len), 0);
	assert_int_equal(len, 0);
	assert_string_equal(data, "");
	free(data);
}

static void a_file_over_the_limit_is_refused(void **state)
{
	char *big = calloc(1, 10000), *data = NULL;
	size_t len;

	(void)state;
	assert_int_equal(cop_write_file(in_dir("f"), big, 10000, 0600), 0);
	assert_int_equal(cop_read_file(in_dir("f"), 9999, &data, &len), -EFBIG);
	assert_null(data);
	assert_int_equal(cop_read_file(in_dir("f"), 10000, &data, &len), 0);
	assert_int_equal(len, 10000);
	free(data);
	free(big);
}

static void errors_name_themselves_and_leave_nothing_behind(void **state)
{
	char *data;
	size_t len;

	(void)state;
	assert_int_equal(cop_read_file(in_dir("none"), 10, &data, &len), -ENOENT);
	assert_int_equal(cop_read_file(dir, 10, &data, &len), -EISDIR);
	assert_int_equal(cop_write_file(in_dir("no/such"), "x", 1, 0600), -ENOENT);
	assert_int_equal(mkdir(in_dir("folder"), 0700), 0);
	assert_int_equal(cop_write_file(in_dir("folder"), "x", 1, 0600), -EISDIR);
	assert_int_equal(empty_dir(), 1);
}

static void a_file_is_replaced_by_rename(void **state)
{
	char *data;
	size_t len;
	int fd;
	char old[4] = "";

	(void)state;
	assert_int_equal(cop_write_file(in_dir("f"), "old", 3, 0600), 0);
	fd = open(in_dir("f"), O_RDONLY);
	assert_int_equal(cop_write_file(in_dir("f"), "newer", 5, 0600), 0);
	assert_int_equal(cop_read_full(fd, old, 4), 3);
	assert_string_equal(old, "old");
	close(fd);
	assert_int_equal(cop_read_file(in_dir("f"), 10, &data, &len), 0);
	assert_string_equal(data, "newer");
	free(data);
	assert_int_equal(empty_dir(), 1);
}

struct drip {
	int fd;
};

static void *drip(void *arg)
{
	struct drip *d = arg;

	for (int i = 0; i < 5; i++) {
		usleep(2000);
		if (write(d->fd, "ab", 2) != 2)
			break;
	}
	close(d->fd);
	return NULL;
}

static void short_reads_are_put_together_and_the_end_gives_the_count(void **state)
{
	char got[16] = "";
	struct drip d;
	pthread_t t;
	int fd[2];

	(void)state;
	assert_int_equal(pipe(fd), 0);
	d.fd = fd[1];
	assert_int_equal(cop_thread_start(&t, "drip", drip, &d), 0);
	assert_int_equal(cop_read_full(fd[0], got, 7), 7);
	assert_string_equal(got, "abababa");
	assert_int_equal(cop_read_full(fd[0], got, 16), 3);
	pthread_join(t, NULL);
	close(fd[0]);
	assert_int_equal(cop_read_full(fd[0], got, 1), -EBADF);
	assert_int_equal(cop_write_full(fd[0], got, 1), -EBADF);
}

static void missing_directories_are_made_and_those_that_are_there_are_fine(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(cop_make_dirs(in_dir("a/b//c"), 0755), 0);
	assert_int_equal(stat(in_dir("a/b/c"), &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(cop_make_dirs(in_dir("a/b/c/"), 0755), 0);
	assert_int_equal(cop_make_dirs("/", 0755), 0);
	assert_int_equal(cop_make_dirs("", 0755), -ENOENT);
	assert_int_equal(cop_write_file(in_dir("f"), "x", 1, 0644), 0);
	assert_int_equal(cop_make_dirs(in_dir("f"), 0755), -ENOTDIR);
	assert_int_equal(cop_make_dirs(in_dir("f/b"), 0755), -ENOTDIR);
	assert_int_equal(unlink(in_dir("f")), 0);
	assert_int_equal(rmdir(in_dir("a/b/c")), 0);
	assert_int_equal(rmdir(in_dir("a/b")), 0);
	assert_int_equal(rmdir(in_dir("a")), 0);
	assert_int_equal(empty_dir(), 0);
}

static void the_error_is_that_of_the_directory_that_refuses(void **state)
{
	int rc;

	(void)state;
	assert_int_equal(
		chmod(dir, 0755) | mkdir(in_dir("closed"), 0755) | chmod(in_dir("closed"), 0555),
		0);
	if (!geteuid() && seteuid(65534))
		skip();
	rc = cop_make_dirs(in_dir("closed/a/b"), 0755);
	if (geteuid() == 65534)
		assert_int_equal(seteuid(0), 0);
	assert_int_equal(rc, -EACCES);
	assert_int_equal(empty_dir(), 1);
}

static void only_a_regular_file_is_opened_as_one(void **state)
{
	uint64_t size;
	int fd;

	(void)state;
	assert_int_equal(mkfifo(in_dir("fifo"), 0600), 0);
	assert_int_equal(symlink("fifo", in_dir("link")), 0);
	assert_int_equal(cop_write_file(in_dir("file"), "abc", 3, 0600), 0);
	assert_int_equal(cop_open_regular(AT_FDCWD, in_dir("fifo"), &size), -EINVAL);
	assert_int_equal(cop_open_regular(AT_FDCWD, in_dir("link"), &size), -EINVAL);
	assert_int_equal(cop_open_regular(AT_FDCWD, in_dir("."), &size), -EISDIR);
	assert_int_equal(cop_open_regular(AT_FDCWD, in_dir("none"), &size), -ENOENT);
	fd = cop_open_regular(AT_FDCWD, in_dir("file"), &size);
	assert_true(fd >= 0);
	assert_int_equal(size, 3);
	close(fd);
	assert_int_equal(
		unlink(in_dir("fifo")) | unlink(in_dir("link")) | unlink(in_dir("file")), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_file_that_is_written_reads_the_same),
		T(a_file_over_the_limit_is_refused),
		T(errors_name_themselves_and_leave_nothing_behind),
		T(a_file_is_replaced_by_rename),
		T(missing_directories_are_made_and_those_that_are_there_are_fine),
		T(the_error_is_that_of_the_directory_that_refuses),
		T(only_a_regular_file_is_opened_as_one),
		T(short_reads_are_put_together_and_the_end_gives_the_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
