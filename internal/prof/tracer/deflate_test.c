/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "deflate.h"

static int temp(void)
{
	char name[] = "/tmp/cop-deflate-XXXXXX";
	int fd = mkstemp(name);

	assert_true(fd >= 0);
	unlink(name);
	return fd;
}

#define IN_MAX (4U << 20)
#define OUT_MAX (8U << 20)

/* Reads the file with zlib; sets *members to the number of members that begin in it. The result is
 * valid until the next call. */
static char *content(int fd, size_t *len, unsigned *members)
{
	static char *out;
	unsigned char *in = malloc(IN_MAX);
	ssize_t n = pread(fd, in, IN_MAX, 0);
	z_stream z = {.next_in = in, .avail_in = (unsigned)n};

	out = out ? out : malloc(OUT_MAX);
	assert_true(in && out && n >= 0);
	*len = *members = 0;
	while (z.avail_in) {
		assert_int_equal(inflateInit2(&z, 16 + MAX_WBITS), Z_OK);
		z.next_out = (unsigned char *)out + *len;
		z.avail_out = (unsigned)(OUT_MAX - *len);
		assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
		*len = (size_t)((char *)z.next_out - out);
		inflateEnd(&z);
		++*members;
	}
	free(in);
	return out;
}

static off_t size_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_size;
}

static void what_goes_in_comes_out_in_members_that_are_not_too_long(void **state)
{
	struct cop_deflate *d;
	int fd = temp();
	unsigned members;
	char line[100], *text;
	size_t len;

	(void)state;
	assert_int_equal(cop_deflate_open(fd, 1000, &d), 0);
	for (int i = 0; i < 100; i++) {
		memset(line, 'a' + i % 26, sizeof(line));
		assert_int_equal(cop_deflate_add(d, line, sizeof(line)), 0);
	}
	assert_int_equal(cop_deflate_flush(d), 0);
	assert_int_equal(cop_deflate_flush(d), 0);
	cop_deflate_close(d);
	text = content(fd, &len, &members);
	assert_int_equal(len, 10000);
	assert_int_equal(members, 10);
	for (int i = 0; i < 10000; i++)
		assert_int_equal(text[i], 'a' + i / 100 % 26);
	close(fd);
}

static void a_line_longer_than_a_member_is_refused(void **state)
{
	struct cop_deflate *d;
	char line[101] = "";
	int fd = temp();

	(void)state;
	assert_int_equal(cop_deflate_open(fd, 100, &d), 0);
	assert_int_equal(cop_deflate_add(d, line, 101), -EMSGSIZE);
	assert_int_equal(cop_deflate_add(d, line, 100), 0);
	cop_deflate_close(d);
	assert_int_equal(size_of(fd), 0);
	close(fd);
}

/* Writes bytes that compress and bytes that do not: the file comes near the limit, but never
 * exceeds it. */
static void the_limit_holds(void **state)
{
	for (unsigned kind = 0; kind < 2; kind++) {
		struct cop_deflate *d;
		int fd = temp(), rc = 0;
		unsigned long lines = 0;
		unsigned members;
		char line[200];
		size_t len;

		(void)state;
		assert_int_equal(cop_deflate_open(fd, 65536, &d), 0);
		cop_deflate_limit(d, 60000);
		while (!rc) {
			for (size_t i = 0; i < sizeof(line); i++)
				line[i] = (char)(kind ? (i < 4 ? random() : 'x') : random());
			rc = cop_deflate_add(d, line, sizeof(line));
			lines += !rc;
		}
		assert_int_equal(rc, -ENOBUFS);
		assert_int_equal(cop_deflate_flush(d), 0);
		assert_in_range(size_of(fd), 55000, 60000);
		content(fd, &len, &members);
		assert_int_equal(len, lines * sizeof(line));
		cop_deflate_limit(d, 64000);
		assert_int_equal(cop_deflate_add(d, "end", 3), 0);
		assert_int_equal(cop_deflate_flush(d), 0);
		assert_in_range(size_of(fd), 55000, 64000);
		cop_deflate_close(d);
		close(fd);
	}
}

/* The process's file size limit stands in for a full disk. Earlier members stay intact. */
static void after_a_failed_write_the_file_ends_with_a_whole_member(void **state)
{
	struct rlimit old, low = {.rlim_cur = 20000};
	struct cop_deflate *d;
	int fd = temp(), rc = 0;
	unsigned members;
	char line[500];
	size_t len;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	low.rlim_max = old.rlim_max;
	setrlimit(RLIMIT_FSIZE, &low);
	assert_int_equal(cop_deflate_open(fd, 3000, &d), 0);
	for (int i = 0; i < 1000 && !rc; i++) {
		for (size_t k = 0; k < sizeof(line); k++)
			line[k] = (char)random();
		rc = cop_deflate_add(d, line, sizeof(line));
	}
	setrlimit(RLIMIT_FSIZE, &old);
	assert_int_equal(rc, -EFBIG);
	assert_int_equal(cop_deflate_add(d, line, 1), -EFBIG);
	assert_int_equal(cop_deflate_flush(d), -EFBIG);
	content(fd, &len, &members);
	assert_int_equal(members, 6);
	assert_int_equal(len, 6 * 3000);
	cop_deflate_close(d);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_goes_in_comes_out_in_members_that_are_not_too_long),
		cmocka_unit_test(a_line_longer_than_a_member_is_refused),
		cmocka_unit_test(the_limit_holds),
		cmocka_unit_test(after_a_failed_write_the_file_ends_with_a_whole_member),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
