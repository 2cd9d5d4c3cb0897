/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "prof/profile/profile_priv.h"

static void check_path(const char *root, const char *path, const char *want)
{
	struct cop_buf b = {0};

	cop_prof_text_path(&b, root, path, strlen(path));
	assert_string_equal(b.data ? b.data : "", want);
	cop_buf_free(&b);
}

static void check_root(const char *source, const char *want)
{
	char *root = cop_prof_root_dup(source);

	assert_string_equal(root, want);
	free(root);
}

static void paths_are_written_below_the_source(void **state)
{
	(void)state;
	check_root("/", "");
	check_root("", "");
	check_root("/soft//", "/soft");
	check_path("", "", "/");
	check_path("", "a/b", "/a/b");
	check_path("/soft", "", "/soft");
	check_path("/soft", "a", "/soft/a");
	check_path("/soft", "/a", "/soft/a");
	check_path(NULL, "/a", "/a");
	check_path(NULL, "", "");
}

static void check_reduced(const char *in, const char *want)
{
	char *out = cop_prof_text_reduce(in, "", 8);

	assert_string_equal(out, want);
	free(out);
}

static void tags_are_reduced_to_safe_bytes_and_cut(void **state)
{
	(void)state;
	check_reduced("a-Z_09", "a-Z_09");
	check_reduced("../..", "_____");
	check_reduced("a/b c\n\xc3\xa9", "a_b_c___");
	check_reduced("123456789", "12345678");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_are_written_below_the_source),
		cmocka_unit_test(tags_are_reduced_to_safe_bytes_and_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
