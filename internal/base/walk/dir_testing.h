/* SPDX-License-Identifier: BSD-3-Clause */
/* An empty directory per test, which is the working directory during the test. */
#ifndef COP_BASE_WALK_DIR_TESTING_H
#define COP_BASE_WALK_DIR_TESTING_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char dir[64];

static inline int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/copper-report.XXXXXX");
	return mkdtemp(dir) && chdir(dir) == 0 ? 0 : -1;
}

static inline int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static inline int teardown(void **state)
{
	(void)state;
	return chdir("/") || nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
