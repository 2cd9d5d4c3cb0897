/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests what needs no mount: paths, variables, and who may share a view. scripts/t/t0800-run.sh and
 * the following tests cover the views themselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mount/view/view_priv.h"

static void a_path_is_below_a_directory_and_not_beside_it(void **state)
{
	(void)state;
	assert_true(cop_view_is_below("/soft", "/soft"));
	assert_true(cop_view_is_below("/soft/env", "/soft"));
	assert_false(cop_view_is_below("/software", "/soft"));
	assert_false(cop_view_is_below("/sof", "/soft"));
	assert_true(cop_view_is_below("/", "/"));
	assert_true(cop_view_is_below("/soft", "/"));
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

struct tree {
	char top[64], soft[80], link[80];
	struct cop_view view;
};

static int setup(void **state)
{
	struct tree *t = calloc(1, sizeof(*t));
	char path[200];

	strcpy(t->top, "/tmp/cop-view-XXXXXX");
	if (!mkdtemp(t->top))
		return -1;
	snprintf(t->soft, sizeof(t->soft), "%s/soft", t->top);
	snprintf(t->link, sizeof(t->link), "%s/link", t->top);
	snprintf(path, sizeof(path), "%s/venv/bin", t->soft);
	t->view = (struct cop_view){.source = t->soft, .mountpoint = "/mnt", .user_ns = -1};
	*state = t;
	return cop_make_dirs(path, 0755) || symlink(t->soft, t->link);
}

static int teardown(void **state)
{
	struct tree *t = *state;

	nftw(t->top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(t);
	return 0;
}

static void expect_path(struct tree *t, const char *dir, const char *rest, const char *want)
{
	char path[300], out[PATH_MAX];

	snprintf(path, sizeof(path), "%s%s", dir, rest);
	cop_view_env_path(&t->view, path, out);
	assert_string_equal(out, want);
}

static void a_path_below_the_source_becomes_one_of_the_mount(void **state)
{
	struct tree *t = *state;
	char beside[100];

	expect_path(t, t->soft, "", "/mnt");
	expect_path(t, t->soft, "/venv/bin", "/mnt/venv/bin");
	expect_path(t, t->soft, "/not/there", "/mnt/not/there");
	/* The path leads through a link, as /soft often is. */
	expect_path(t, t->link, "/venv/bin", "/mnt/venv/bin");
	snprintf(beside, sizeof(beside), "%sware", t->soft);
	expect_path(t, beside, "/bin", "");
	expect_path(t, "", "relative", "");
	expect_path(t, "/mnt", "/venv", "");
}

static void only_what_is_replaced_is_rewritten(void **state)
{
	struct tree *t = *state;
	char venv[100];
	const char *below[] = {venv};

	snprintf(venv, sizeof(venv), "%s/venv", t->soft);
	t->view.below = below;
	t->view.belows = 1;
	expect_path(t, t->soft, "/venv/bin", "/mnt/venv/bin");
	expect_path(t, t->soft, "/other", "");
}

static void lists_of_paths_keep_their_empty_parts_and_their_order(void **state)
{
	struct tree *t = *state;
	char value[400], want[400];

	snprintf(value, sizeof(value), "%s/bin::/usr/bin:%s/venv:", t->soft, t->link);
	snprintf(want, sizeof(want), "/mnt/bin::/usr/bin:/mnt/venv:");
	setenv("MODULEPATH", value, 1);
	unsetenv("PERL5LIB");
	assert_int_equal(cop_view_env(&t->view, NULL), 0);
	assert_string_equal(getenv("MODULEPATH"), want);
	assert_null(getenv("PERL5LIB"));
}

static void the_base_of_a_venv_becomes_pythonhome(void **state)
{
	struct tree *t = *state;
	char file[200], text[300], command[200];

	snprintf(file, sizeof(file), "%s/venv/pyvenv.cfg", t->soft);
	snprintf(text, sizeof(text), "version = 3\nhome = %s/base/bin\n", t->soft);
	snprintf(command, sizeof(command), "%s/venv/bin/python", t->soft);
	assert_int_equal(cop_write_file(file, text, strlen(text), 0644), 0);
	unsetenv("PYTHONHOME");
	cop_view_env_python(&t->view, "python");
	assert_null(getenv("PYTHONHOME"));
	cop_view_env_python(&t->view, command);
	assert_string_equal(getenv("PYTHONHOME"), "/mnt/base");
	setenv("PYTHONHOME", "/mine", 1);
	cop_view_env_python(&t->view, command);
	assert_string_equal(getenv("PYTHONHOME"), "/mine");
	unsetenv("PYTHONHOME");
}

static void too_many_directories_are_refused(void **state)
{
	struct tree *t = *state;
	struct cop_view_made made;
	struct cop_err err = {0};

	t->view.directs = COP_VIEW_PLACES + 1;
	assert_int_equal(cop_view_make(&t->view, &made, &err), -E2BIG);
	assert_true(err.text[0]);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_is_below_a_directory_and_not_beside_it),
		T(a_path_below_the_source_becomes_one_of_the_mount),
		T(only_what_is_replaced_is_rewritten),
		T(lists_of_paths_keep_their_empty_parts_and_their_order),
		T(the_base_of_a_venv_becomes_pythonhome),
		T(too_many_directories_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
