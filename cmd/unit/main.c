/* SPDX-License-Identifier: BSD-3-Clause */
/* All unit tests in one program, as linking each by itself takes longer than most of them run:
 *
 *	unit DISTRICT/MODULE/NAME_test      runs that one
 *	unit                                prints their names
 *
 * The Makefile gives main of each test file a name of its own, and writes the list of them. A test
 * that is not in it is a program beside this one (tests that define functions of the libraries). */
#include "base/base/macros.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEST(name, function) int function(void);
#include "unit.list"
#undef TEST

static const struct {
	const char *name;
	int (*run)(void);
} tests[] = {
#define TEST(name, function) {name, function},
#include "unit.list"
#undef TEST
};

static int run_program(const char *self, char *name)
{
	const char *slash = strrchr(self, '/');
	char path[4096];
	char *argv[] = {path, NULL};

	snprintf(path, sizeof(path), "%.*s/%s", slash ? (int)(slash - self) : 1, slash ? self : ".",
		name);
	execv(path, argv);
	fprintf(stderr, "unit: there is no test %s: %s\n", path, strerror(errno));
	return 2;
}

int main(int argc, char **argv)
{
	size_t i;

	if (argc > 2) {
		fprintf(stderr, "usage: unit [DISTRICT/MODULE/NAME_test]\n");
		return 2;
	}
	for (i = 0; i < COP_ARRAY_SIZE(tests); i++) {
		if (argc == 1)
			puts(tests[i].name);
		else if (strcmp(argv[1], tests[i].name) == 0)
			return tests[i].run();
	}
	return argc == 1 ? 0 : run_program(argv[0], argv[1]);
}
