/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mount/fuse/fuse_priv.h"

/* Each environment module puts a directory in front of the system's. */
static void a_long_path_hides_no_fusermount(void **state)
{
	char dir[] = "/tmp/cop-fs-check.XXXXXX", file[64];
	struct cop_buf path = {0};
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/fusermount3", dir);
	fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	assert_true(fd >= 0);
	close(fd);
	for (unsigned i = 0; i < 200; i++)
		cop_buf_printf(&path, "/nowhere/modules/%u/of/the/site/bin:", i);
	assert_true(path.len > PATH_BYTES);
	cop_buf_str(&path, dir);
	setenv("PATH", path.data, 1);
	assert_true(cop_fuse_have_fusermount());
	cop_buf_free(&path);
	unlink(file);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_long_path_hides_no_fusermount)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
