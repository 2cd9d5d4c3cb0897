/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "prof/prof_priv.h"

typedef void write_fn(struct cop_buf *out, const char *text, size_t len);

static void check(write_fn *fn, const char *in, size_t len, const char *want)
{
	struct cop_buf b = {0};

	fn(&b, in, len);
	assert_int_equal(b.len, strlen(want));
	assert_string_equal(b.data ? b.data : "", want);
	cop_buf_free(&b);
}
#define CHECK(fn, in, want) check(fn, in, sizeof(in) - 1, want)

static void csv_fields_keep_every_byte(void **state)
{
	(void)state;
	CHECK(cop_prof_text_csv, "", "\"\"");
	CHECK(cop_prof_text_csv, "\"", "\"\"\"\"");
	CHECK(cop_prof_text_csv, "a\"\"b", "\"a\"\"\"\"b\"");
	CHECK(cop_prof_text_csv, "\"a\"", "\"\"\"a\"\"\"");
	CHECK(cop_prof_text_csv, "/a,b\nc\xff\r", "\"/a,b\nc\xff\r\"");
}

static void raw_lines_hold_a_newline_and_a_backslash(void **state)
{
	(void)state;
	CHECK(cop_prof_text_escaped, "", "");
	CHECK(cop_prof_text_escaped, "\n", "\\n");
	CHECK(cop_prof_text_escaped, "a\\n\nb\xff\" {", "a\\\\n\\nb\xff\" {");
	CHECK(cop_prof_text_escaped, "\\\\", "\\\\\\\\");
}

static void a_table_cell_holds_no_bar_and_no_control_byte(void **state)
{
	(void)state;
	CHECK(cop_prof_text_markdown, "/a|b", "`/a\\|b`");
	CHECK(cop_prof_text_markdown, "/\x1b[2J\n\t\x7f", "`/\\x1b[2J\\n\\x09\\x7f`");
	CHECK(cop_prof_text_markdown, "/a`b", "`` /a`b ``");
}

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

static void check_class(enum category c, const char *path, const char *want)
{
	assert_string_equal(cop_prof_class_name(cop_prof_class(c, path, strlen(path))), want);
}

static void absences_are_classed_by_what_was_looked_for(void **state)
{
	(void)state;
	check_class(CATEGORY_TTL, "/opt/python311.zip", "python_zip_probe");
	check_class(CATEGORY_TTL, "/opt/other.zip", "negative_probe_path");
	check_class(CATEGORY_TTL, "/opt/pyvenv.cfg", "virtual_env_probe");
	check_class(CATEGORY_TTL, "pyvenv.cfg", "negative_probe_path");
	check_class(CATEGORY_TTL, "/lib/glibc-hwcaps/x86-64-v3/libm.so.6", "glibc_hwcaps_probe");
	check_class(CATEGORY_TTL, "/usr/lib/libm.so.6", "missing_shared_library_probe");
	check_class(CATEGORY_TTL, "/e/site-packages/torch/x", "negative_probe_path");
	check_class(CATEGORY_TTL, "", "negative_probe_path");
}

static void the_first_class_that_fits_wins(void **state)
{
	(void)state;
	check_class(CATEGORY_DATA, "/e/lib/python3/site-packages/torch/lib/libc10.so", "torch_native_library");
	check_class(CATEGORY_DATA, "/e/lib/python3/site-packages/torch/nn.py", "torch_python_package");
	check_class(CATEGORY_TREE, "/e/lib/python3/site-packages/torch/lib", "torch_python_package");
	check_class(CATEGORY_TREE, "/e/lib/python3/site-packages", "python_site_packages");
	check_class(CATEGORY_METADATA, "/e/lib/python3/os.py", "python_stdlib");
	check_class(CATEGORY_METADATA, "/e/bin/python", "environment_bin");
	check_class(CATEGORY_METADATA, "/e/bin", "environment_prefix");
	check_class(CATEGORY_METADATA, "/e/libz.so.1", "shared_library");
	check_class(CATEGORY_METADATA, "/python311.zip", "environment_prefix");
}

static void advice_is_given_only_for_what_was_seen(void **state)
{
	struct cop_buf none = {0}, all = {0};

	(void)state;
	cop_prof_advice(&none, 0, false);
	assert_null(strstr(none.data, "Torch"));
	assert_null(strstr(none.data, "PYTHONPATH"));
	assert_null(strstr(none.data, "LD_LIBRARY_PATH"));
	assert_non_null(strstr(none.data, "does not prove"));
	cop_prof_advice(&all, (1u << CLASSES) - 1, true);
	assert_non_null(strstr(all.data, "Torch"));
	assert_non_null(strstr(all.data, "leave the ENOENT TTL on"));
	assert_non_null(strstr(all.data, "pyvenv.cfg"));
	cop_buf_free(&none);
	cop_buf_free(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(csv_fields_keep_every_byte),
		cmocka_unit_test(raw_lines_hold_a_newline_and_a_backslash),
		cmocka_unit_test(a_table_cell_holds_no_bar_and_no_control_byte),
		cmocka_unit_test(paths_are_written_below_the_source),
		cmocka_unit_test(tags_are_reduced_to_safe_bytes_and_cut),
		cmocka_unit_test(absences_are_classed_by_what_was_looked_for),
		cmocka_unit_test(the_first_class_that_fits_wins),
		cmocka_unit_test(advice_is_given_only_for_what_was_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
