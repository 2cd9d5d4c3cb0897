/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "prof/profile/profile.h"

static void check_class(bool absence, const char *path, const char *want)
{
	assert_string_equal(
		cop_pathclass_name(cop_pathclass_of(absence, path, strlen(path))), want);
}

static void absences_are_classed_by_the_name_that_was_looked_up(void **state)
{
	(void)state;
	check_class(true, "/opt/python311.zip", "python_zip_probe");
	check_class(true, "/opt/other.zip", "negative_probe_path");
	check_class(true, "/opt/pyvenv.cfg", "virtual_env_probe");
	check_class(true, "pyvenv.cfg", "negative_probe_path");
	check_class(true, "/lib/glibc-hwcaps/x86-64-v3/libm.so.6", "glibc_hwcaps_probe");
	check_class(true, "/usr/lib/libm.so.6", "missing_shared_library_probe");
	check_class(true, "/e/site-packages/torch/x", "negative_probe_path");
	check_class(true, "", "negative_probe_path");
}

static void the_first_class_that_fits_wins(void **state)
{
	(void)state;
	check_class(
		false, "/e/lib/python3/site-packages/torch/lib/libc10.so", "torch_native_library");
	check_class(false, "/e/lib/python3/site-packages/torch/nn.py", "torch_python_package");
	check_class(false, "/e/lib/python3/site-packages/torch/lib", "torch_python_package");
	check_class(false, "/e/lib/python3/site-packages", "python_site_packages");
	check_class(false, "/e/lib/python3/os.py", "python_stdlib");
	check_class(false, "/e/bin/python", "environment_bin");
	check_class(false, "/e/bin", "environment_prefix");
	check_class(false, "/e/libz.so.1", "shared_library");
	check_class(false, "/python311.zip", "environment_prefix");
}

static void advice_is_given_only_for_what_was_seen(void **state)
{
	struct cop_buf none = {0}, all = {0};

	(void)state;
	cop_pathclass_advice(&none, 0, false);
	assert_null(strstr(none.data, "Torch"));
	assert_null(strstr(none.data, "PYTHONPATH"));
	assert_null(strstr(none.data, "LD_LIBRARY_PATH"));
	assert_non_null(strstr(none.data, "does not prove"));
	cop_pathclass_advice(&all, (1u << COP_PATHCLASSES) - 1, true);
	assert_non_null(strstr(all.data, "Torch"));
	assert_non_null(strstr(all.data, "leave the ENOENT TTL on"));
	assert_non_null(strstr(all.data, "pyvenv.cfg"));
	cop_buf_free(&none);
	cop_buf_free(&all);
}

static void totals_do_not_depend_on_the_order_of_rows(void **state)
{
	static const struct {
		const char *path;
		uint64_t events;
	} rows[] = {{"/e/bin/b", 5}, {"/e/bin/a", 5}, {"/e/bin/aa", 5}, {"/e/bin/z", 4},
		{"/e/bin/y", UINT64_MAX - 1}};

	(void)state;
	for (unsigned last = 4; last <= 5; last++)
		for (unsigned turn = 0; turn < last; turn++) {
			struct cop_pathclass_totals whole = {0}, half = {0};
			const struct cop_pathclass_total *bin = &whole.of[COP_PATHCLASS_BIN];

			for (unsigned i = 0; i < last; i++) {
				unsigned row = (turn + i) % last;

				assert_int_equal(cop_pathclass_add(i % 2 ? &half : &whole, false,
							 rows[row].path, strlen(rows[row].path),
							 rows[row].events),
					0);
			}
			assert_int_equal(cop_pathclass_merge(&whole, &half), 0);
			assert_int_equal(bin->entries, last);
			assert_true(bin->events == (last == 4 ? 19 : UINT64_MAX));
			assert_string_equal(bin->example, last == 4 ? "/e/bin/a" : "/e/bin/y");
			assert_int_equal(cop_pathclass_seen(&whole), 1u << COP_PATHCLASS_BIN);
			cop_pathclass_totals_free(&whole);
			cop_pathclass_totals_free(&half);
		}
}

static void the_busiest_class_comes_first(void **state)
{
	struct cop_pathclass_totals t = {0};
	struct cop_buf b = {0};

	(void)state;
	assert_int_equal(cop_pathclass_add(&t, false, "/e/x", 4, 1), 0);
	assert_int_equal(cop_pathclass_add(&t, true, "/e/libm.so|\n", 12, 7), 0);
	assert_int_equal(cop_pathclass_add(&t, false, "/e/bin/python", 13, 1), 0);
	cop_pathclass_table(&b, &t);
	assert_string_equal(b.data,
		"| Path Class | Entries | Total Events | Example |\n|---|---:|---:|---|\n"
		"| `missing_shared_library_probe` | 1 | 7 | `/e/libm.so\\|\\n` |\n"
		"| `environment_bin` | 1 | 1 | `/e/bin/python` |\n"
		"| `environment_prefix` | 1 | 1 | `/e/x` |\n");
	cop_buf_free(&b);
	cop_pathclass_totals_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(absences_are_classed_by_the_name_that_was_looked_up),
		cmocka_unit_test(the_first_class_that_fits_wins),
		cmocka_unit_test(advice_is_given_only_for_what_was_seen),
		cmocka_unit_test(totals_do_not_depend_on_the_order_of_rows),
		cmocka_unit_test(the_busiest_class_comes_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
