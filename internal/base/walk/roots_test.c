/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/walk/walk_priv.h"

static void see(struct cop_roots *r, const char *path)
{
	assert_int_equal(cop_walk_roots_observe(r, path, strlen(path)), 0);
}

static void one_line(const struct cop_root_list *l, char out[1024])
{
	size_t at = 0;

	out[0] = '\0';
	for (size_t i = 0; i < l->n; i++)
		at += (size_t)snprintf(out + at, 1024 - at, "%s%s", i ? " " : "", l->path[i]);
}
#define assert_roots(list, want)                                                                   \
	do {                                                                                       \
		char got[1024];                                                                    \
		one_line(&(list), got);                                                            \
		assert_string_equal(got, want);                                                    \
	} while (0)

static void paths_are_made_normal_in_words_only(void **state)
{
	static const char *const pair[][2] = {{"/", "/"}, {"//", "/"}, {"/a/", "/a"},
		{"/a//b/./c", "/a/b/c"}, {"/a/../b", "/b"}, {"/../..", "/"}, {"x", "/cwd/x"},
		{"../x", "/x"}, {".", "/cwd"}, {"./", "/cwd"}, {"../../..", "/"}, {"/...", "/..."},
		{"/.a/..b", "/.a/..b"}};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(pair); i++) {
		char *got = cop_walk_path_normal("/cwd", pair[i][0]);

		assert_string_equal(got, pair[i][1]);
		assert_true(cop_walk_path_is_normal(got, strlen(got)));
		free(got);
	}
}

static void a_path_that_is_not_normal_is_recognised(void **state)
{
	static const char *const bad[] = {
		"", "a", "//", "/a/", "/a//b", "/.", "/..", "/a/../b", "/a/."};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(bad); i++)
		assert_false(cop_walk_path_is_normal(bad[i], strlen(bad[i])));
	assert_true(cop_walk_path_is_normal("/", 1));
	assert_true(cop_walk_path_is_normal("/...", 4));
	assert_false(cop_walk_path_is_normal("/a\0b", 4));
}

static void conda_environments_are_cut_after_the_word(void **state)
{
	struct cop_roots r;

	(void)state;
	assert_int_equal(cop_walk_roots_init(&r, NULL), 0);
	see(&r, "/lus/conda_env/lib/python3.12/os.py");
	see(&r, "/lus/conda_env");
	see(&r, "/soft/conda_env_torch/bin/python");
	see(&r, "/soft/my_conda_env/bin");
	see(&r, "/soft/conda_en");
	see(&r, "/a/conda_env1/conda_env2/x");
	assert_roots(
		r.conda, "/a/conda_env /a/conda_env1/conda_env /lus/conda_env /soft/conda_env");
	assert_int_equal(r.children.n, 0);
	cop_walk_roots_free(&r);
}

static void home_counts_as_observed_only_by_itself(void **state)
{
	struct cop_roots r;

	(void)state;
	assert_int_equal(cop_walk_roots_init(&r, "/users//me/"), 0);
	see(&r, "/users/me/env/bin/python");
	see(&r, "/users/me/env");
	see(&r, "/users/me/a");
	see(&r, "/users/meme/x");
	see(&r, "/home");
	assert_false(r.home_observed);
	assert_roots(r.children, "/users/me/a /users/me/env");
	see(&r, "/users/me");
	assert_true(r.home_observed);
	assert_int_equal(cop_walk_roots_minimize(&r), 0);
	assert_roots(r.all, "/users/me");
	cop_walk_roots_free(&r);
}

static void a_home_that_is_not_a_normal_path_is_ignored(void **state)
{
	static const char *const homes[] = {NULL, "", "relative", "/", "//", "/."};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(homes); i++) {
		struct cop_roots r;

		assert_int_equal(cop_walk_roots_init(&r, homes[i]), 0);
		see(&r, "/x/y");
		assert_null(r.home);
		assert_int_equal(r.children.n, 0);
		cop_walk_roots_free(&r);
	}
}

static void a_root_below_another_is_dropped_a_neighbour_is_not(void **state)
{
	struct cop_roots r;

	(void)state;
	assert_int_equal(cop_walk_roots_init(&r, NULL), 0);
	assert_int_equal(cop_walk_roots_give(&r, "/a/b/c"), 0);
	assert_int_equal(cop_walk_roots_give(&r, "/a/b"), 0);
	assert_int_equal(cop_walk_roots_give(&r, "/a/b-x"), 0);
	assert_int_equal(cop_walk_roots_give(&r, "/a/b/"), 0);
	assert_int_equal(cop_walk_roots_give(&r, "/a/b!/x"), 0);
	assert_int_equal(cop_walk_roots_give(&r, ""), -EINVAL);
	assert_roots(r.given, "/a/b/c /a/b /a/b-x /a/b!/x");
	see(&r, "/a/b/conda_env/x");
	see(&r, "/z/conda_env/x");
	assert_int_equal(cop_walk_roots_minimize(&r), 0);
	assert_roots(r.all, "/a/b /a/b!/x /a/b-x /z/conda_env");
	assert_int_equal(cop_walk_roots_above(&r, "/a/b/c/d", 8), 0);
	assert_int_equal(cop_walk_roots_above(&r, "/a/b", 4), 0);
	assert_int_equal(cop_walk_roots_above(&r, "/a/b-x/y", 8), 2);
	assert_int_equal(cop_walk_roots_above(&r, "/a/b-y/y", 8), -1);
	assert_int_equal(cop_walk_roots_above(&r, "/a", 2), -1);
	assert_int_equal(cop_walk_roots_above(&r, "/", 1), -1);
	cop_walk_roots_free(&r);
}

static void the_whole_file_system_is_a_root_too(void **state)
{
	struct cop_roots r;

	(void)state;
	assert_int_equal(cop_walk_roots_init(&r, NULL), 0);
	assert_int_equal(cop_walk_roots_give(&r, "/usr"), 0);
	assert_int_equal(cop_walk_roots_give(&r, "/"), 0);
	assert_int_equal(cop_walk_roots_minimize(&r), 0);
	assert_roots(r.all, "/");
	assert_int_equal(cop_walk_roots_above(&r, "/", 1), 0);
	assert_int_equal(cop_walk_roots_above(&r, "/usr/bin", 8), 0);
	cop_walk_roots_free(&r);
}

static void relative_roots_begin_here(void **state)
{
	char cwd[4096], want[5000];
	struct cop_roots r;

	(void)state;
	assert_non_null(getcwd(cwd, sizeof(cwd)));
	assert_int_equal(cop_walk_roots_init(&r, NULL), 0);
	assert_int_equal(cop_walk_roots_give(&r, "some/./where"), 0);
	snprintf(want, sizeof(want), "%s/some/where", cwd);
	assert_string_equal(r.given.path[0], want);
	cop_walk_roots_free(&r);
}

/* Untrusted input could suggest any number of roots. */
static void there_is_an_end_to_roots(void **state)
{
	struct cop_roots r;
	char path[64];

	(void)state;
	assert_int_equal(cop_walk_roots_init(&r, "/h"), 0);
	for (unsigned i = 0; i < COP_ROOTS_MAX + 10; i++) {
		snprintf(path, sizeof(path), "/h/%u/conda_env/%u", i, i);
		see(&r, path);
	}
	assert_int_equal(r.conda.n, COP_ROOTS_MAX);
	assert_int_equal(r.children.n, COP_ROOTS_MAX);
	assert_true(r.conda.full && r.children.full);
	assert_int_equal(cop_walk_roots_minimize(&r), 0);
	assert_int_equal(r.all.n, COP_ROOTS_MAX);
	assert_true(r.all.full);
	cop_walk_roots_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_are_made_normal_in_words_only),
		cmocka_unit_test(a_path_that_is_not_normal_is_recognised),
		cmocka_unit_test(conda_environments_are_cut_after_the_word),
		cmocka_unit_test(home_counts_as_observed_only_by_itself),
		cmocka_unit_test(a_home_that_is_not_a_normal_path_is_ignored),
		cmocka_unit_test(a_root_below_another_is_dropped_a_neighbour_is_not),
		cmocka_unit_test(the_whole_file_system_is_a_root_too),
		cmocka_unit_test(relative_roots_begin_here),
		cmocka_unit_test(there_is_an_end_to_roots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
