/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "mount/fuse/fuse_priv.h"

static void a_list_names_what_is_off(void **state)
{
	struct cop_err err = {0};
	unsigned off = 1;

	(void)state;
	assert_int_equal(cop_fuse_caps_parse(NULL, &off, &err), 0);
	assert_int_equal(off, 0);
	assert_int_equal(cop_fuse_caps_parse("", &off, &err), 0);
	assert_int_equal(cop_fuse_caps_parse("no_open", &off, &err), 0);
	assert_int_equal(off, FUSE_CAP_NO_OPEN_SUPPORT);
	assert_int_equal(
		cop_fuse_caps_parse("no_opendir,absent_entries,no_opendir,", &off, &err), 0);
	assert_int_equal(off, FUSE_CAP_NO_OPENDIR_SUPPORT | CAP_ABSENT_ENTRIES);
}

static void an_unknown_name_is_refused_with_those_there_are(void **state)
{
	static const char *const bad[] = {
		"x", "no_open2", "no_ope", ",", "no_open,,no_opendir", "no_open ", "NO_OPEN"};
	struct cop_err err;
	char text[4096];
	unsigned off;

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(bad); i++) {
		err = (struct cop_err){0};
		assert_int_equal(cop_fuse_caps_parse(bad[i], &off, &err), -EINVAL);
		assert_non_null(strstr(err.text, "the capabilities are async_read, readdirplus,"));
	}
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(cop_fuse_caps_parse(text, &off, &err), -EINVAL);
	assert_non_null(strstr(err.text, "absent_entries"));
}

static void missing_and_disabled_capabilities_are_not_requested(void **state)
{
	struct cop_fuse fs = {.caps_off = FUSE_CAP_READDIRPLUS};
	struct cop_buf json = {0};
	struct cop_json j = cop_json_to(&json);

	(void)state;
	assert_int_equal(cop_fuse_caps_want(&fs, 0), CAP_ABSENT_ENTRIES);
	assert_int_equal(cop_fuse_caps_want(&fs,
				 FUSE_CAP_READDIRPLUS | FUSE_CAP_ASYNC_READ | FUSE_CAP_POSIX_LOCKS),
		FUSE_CAP_ASYNC_READ | CAP_ABSENT_ENTRIES);
	fs.deliver_opens = true;
	assert_int_equal(cop_fuse_caps_want(&fs, FUSE_CAP_NO_OPEN_SUPPORT), CAP_ABSENT_ENTRIES);
	cop_json_array(&j, NULL);
	cop_fuse_caps_json(FUSE_CAP_ASYNC_READ | CAP_ABSENT_ENTRIES, &j);
	cop_json_end(&j);
	assert_string_equal(json.data, "[\"async_read\",\"absent_entries\"]");
	cop_buf_free(&json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_names_what_is_off),
		cmocka_unit_test(an_unknown_name_is_refused_with_those_there_are),
		cmocka_unit_test(missing_and_disabled_capabilities_are_not_requested),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
