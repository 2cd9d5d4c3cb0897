/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "mount/fuse/fuse_priv.h"

static void expect(
	const char *source, bool keep, unsigned depth, const char *target, const char *shown)
{
	struct cop_fuse fs = {.conf = {.source = source, .keep_symlinks = keep}};
	char out[PATH_BYTES];
	size_t len = cop_fuse_rewrite(&fs, depth, target, strlen(target), out);

	assert_int_equal(len, strlen(shown));
	assert_memory_equal(out, shown, len);
}

static void an_absolute_target_under_the_source_becomes_relative(void **state)
{
	(void)state;
	expect("/src", false, 0, "/src/lib/x", "./lib/x");
	expect("/src", false, 1, "/src/lib/x", "../lib/x");
	expect("/src", false, 3, "/src/x", "../../../x");
	expect("/src", false, 2, "/src", "../../.");
	expect("/src", false, 0, "/src", ".");
	expect("/src", false, 0, "/src//x", "./x");
}

static void with_the_root_as_source_every_absolute_target_is_under_it(void **state)
{
	(void)state;
	expect("/", false, 2, "/usr/bin/python3", "../../usr/bin/python3");
	expect("/", false, 1, "/", "../.");
}

static void other_targets_stay_as_they_are(void **state)
{
	(void)state;
	expect("/src", false, 1, "../x", "../x");
	expect("/src", false, 1, "/srcdir/x", "/srcdir/x");
	expect("/src", false, 1, "/else/x", "/else/x");
	expect("/src", true, 1, "/src/x", "/src/x");
	expect("/src", false, 1, "", "");
}

static void a_target_that_leads_out_of_the_source_stays_as_it_is(void **state)
{
	(void)state;
	expect("/src", false, 1, "/src/..", "/src/..");
	expect("/src", false, 1, "/src/../src/x", "/src/../src/x");
	expect("/src", false, 1, "/src//./../else/x", "/src//./../else/x");
	expect("/src", false, 1, "/src/a/../../src/x", "/src/a/../../src/x");
	expect("/", false, 2, "/../usr", "/../usr");
	expect("/src", false, 1, "/src/a/../b", "../a/../b");
	expect("/src", false, 1, "/src/a/..", "../a/..");
	expect("/src", false, 1, "/src/..a/...", "../..a/...");
}

static void a_target_that_would_grow_too_long_stays_as_it_is(void **state)
{
	char target[4096], out[PATH_BYTES];
	struct cop_fuse fs = {.conf = {.source = "/s"}};
	size_t len;

	(void)state;
	memset(target, 'a', sizeof(target));
	memcpy(target, "/s/", 3);
	len = cop_fuse_rewrite(&fs, 1000, target, 4000, out);
	assert_int_equal(len, 4000);
	assert_memory_equal(out, target, len);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_absolute_target_under_the_source_becomes_relative),
		cmocka_unit_test(with_the_root_as_source_every_absolute_target_is_under_it),
		cmocka_unit_test(other_targets_stay_as_they_are),
		cmocka_unit_test(a_target_that_leads_out_of_the_source_stays_as_it_is),
		cmocka_unit_test(a_target_that_would_grow_too_long_stays_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
