/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fabric/wire/wire.h"

static const struct cop_attr link_attr = {
	.ino = 7, .size = 3, .mtime_s = -1, .mtime_nsec = 1, .mode = S_IFLNK | 0777, .nlink = 1};

static void an_entry_comes_back_as_it_went_in(void **state)
{
	struct cop_attr got;
	const char *target;
	void *blob;
	size_t len, target_len;

	(void)state;
	assert_int_equal(cop_entry_build(&link_attr, "a/b", 3, &blob, &len), 0);
	assert_int_equal(cop_entry_check(blob, len), 0);
	cop_entry_get(blob, &got, &target, &target_len);
	assert_int_equal(got.ino, 7);
	assert_int_equal(got.mtime_s, -1);
	assert_int_equal(got.mtime_nsec, 1);
	assert_int_equal(got.version, cop_attr_version(&link_attr));
	assert_int_equal(target_len, 3);
	assert_memory_equal(target, "a/b", 3);
	free(blob);
}

static void an_entry_without_a_target_has_none(void **state)
{
	struct cop_attr attr = {.mode = S_IFREG | 0644, .version = 5}, got;
	const char *target = "x";
	void *blob;
	size_t len, target_len = 1;

	(void)state;
	assert_int_equal(cop_entry_build(&attr, NULL, 99, &blob, &len), 0);
	assert_int_equal(cop_entry_check(blob, len), 0);
	cop_entry_get(blob, &got, &target, &target_len);
	assert_null(target);
	assert_int_equal(target_len, 0);
	assert_int_equal(got.version, 5);
	got.version = 0;
	cop_entry_get(blob, &got, NULL, NULL);
	assert_int_equal(got.version, 5);
	free(blob);
}

static void targets_that_are_too_long_or_have_a_nul_or_belong_to_a_file_are_refused(void **state)
{
	static char longest[4096];
	struct cop_attr file = {.mode = S_IFREG};
	void *blob;
	size_t len;

	(void)state;
	memset(longest, 'x', sizeof(longest));
	assert_int_equal(cop_entry_build(&link_attr, longest, 4096, &blob, &len), -EINVAL);
	assert_int_equal(cop_entry_build(&link_attr, "a\0b", 3, &blob, &len), -EINVAL);
	assert_int_equal(cop_entry_build(&file, "a", 1, &blob, &len), -EINVAL);
	assert_int_equal(cop_entry_build(&link_attr, longest, 4095, &blob, &len), 0);
	assert_int_equal(cop_entry_check(blob, len), 0);
	free(blob);
}

static void every_cut_of_an_entry_is_refused(void **state)
{
	char *blob, *cut;
	size_t len;

	(void)state;
	assert_int_equal(cop_entry_build(&link_attr, "ab", 2, (void **)&blob, &len), 0);
	for (size_t n = 0; n < len; n++) {
		cut = malloc(n + 1);
		memcpy(cut, blob, n);
		assert_int_equal(cop_entry_check(cut, n), -EBADMSG);
		free(cut);
	}
	cut = calloc(1, len + 1);
	memcpy(cut, blob, len);
	assert_int_equal(cop_entry_check(cut, len + 1), -EBADMSG);
	free(cut);
	free(blob);
}

static void a_size_past_2_to_63_is_refused(void **state)
{
	struct cop_attr attr = {.mode = S_IFREG, .size = (uint64_t)1 << 63};
	char *blob;
	size_t len;

	(void)state;
	assert_int_equal(cop_entry_build(&attr, NULL, 0, (void **)&blob, &len), -EINVAL);
	attr.size--;
	assert_int_equal(cop_entry_build(&attr, NULL, 0, (void **)&blob, &len), 0);
	assert_int_equal(cop_entry_check(blob, len), 0);
	blob[8 + offsetof(struct cop_attr, size) + 7] = (char)0x80;
	assert_int_equal(cop_entry_check(blob, len), -EBADMSG);
	free(blob);
}

static void a_time_with_a_whole_second_of_nanoseconds_is_refused(void **state)
{
	static const size_t at[] = {offsetof(struct cop_attr, atime_nsec),
		offsetof(struct cop_attr, mtime_nsec), offsetof(struct cop_attr, ctime_nsec)};
	struct cop_attr attr = {.atime_s = INT64_MIN,
		.mtime_s = INT64_MAX,
		.atime_nsec = 999999999,
		.mtime_nsec = 999999999,
		.ctime_nsec = 999999999};
	uint32_t second = 1000000000;
	char *blob;
	size_t len;

	(void)state;
	assert_int_equal(cop_entry_build(&attr, NULL, 0, (void **)&blob, &len), 0);
	assert_int_equal(cop_entry_check(blob, len), 0);
	for (unsigned i = 0; i < COP_ARRAY_SIZE(at); i++) {
		uint32_t good;

		memcpy(&good, blob + 8 + at[i], sizeof(good));
		memcpy(blob + 8 + at[i], &second, sizeof(second));
		assert_int_equal(cop_entry_check(blob, len), -EBADMSG);
		memcpy(blob + 8 + at[i], &good, sizeof(good));
	}
	free(blob);
}

static void the_version_moves_with_inode_size_mtime_and_ctime_and_with_nothing_else(void **state)
{
	struct cop_attr a = {.ino = 1, .size = 2, .mtime_s = 3, .ctime_s = 4}, b = a;
	uint64_t version = cop_attr_version(&a);

	(void)state;
	assert_int_not_equal(version, 0);
	b.atime_s = b.atime_nsec = 9;
	b.mode = 9;
	b.nlink = 9;
	assert_int_equal(cop_attr_version(&b), version);
	for (unsigned field = 0; field < 6; field++) {
		b = a;
		if (field < 4)
			*(uint64_t *[]){&b.ino, &b.size, (uint64_t *)&b.mtime_s,
				(uint64_t *)&b.ctime_s}[field] += 1;
		else
			*(field == 4 ? &b.mtime_nsec : &b.ctime_nsec) += 1;
		assert_int_not_equal(cop_attr_version(&b), version);
	}
}

#define S ((int64_t)COP_NS_PER_S)
#define MS ((int64_t)COP_NS_PER_MS)

static bool young(int64_t mtime_ns, int64_t ctime_ns, int64_t now_ns)
{
	struct cop_attr a = {.ino = 1,
		.mtime_s = mtime_ns / S,
		.mtime_nsec = (uint32_t)(mtime_ns % S),
		.ctime_s = ctime_ns / S,
		.ctime_nsec = (uint32_t)(ctime_ns % S)};
	uint64_t version = cop_attr_version_at(&a, now_ns);

	assert_true(cop_version_same(version, cop_attr_version(&a)));
	assert_false(cop_version_is_young(cop_attr_version(&a)));
	return cop_version_is_young(version);
}

static void a_version_is_young_for_two_ticks_of_its_stamps(void **state)
{
	struct cop_attr odd = {.ino = 1, .mtime_s = INT64_MAX, .ctime_s = INT64_MIN};

	(void)state;
	/* Whole seconds, tenths of a second, finer ones. */
	assert_true(young(5 * S, 1000 * S, 1000 * S));
	assert_true(young(5 * S, 1000 * S, 1002 * S - 1));
	assert_false(young(5 * S, 1000 * S, 1002 * S));
	assert_true(young(5 * S, 1000 * S + 300 * MS, 1000 * S + 499 * MS));
	assert_false(young(5 * S, 1000 * S + 300 * MS, 1000 * S + 500 * MS));
	assert_true(young(5 * S, 1000 * S + 1, 1000 * S + 20 * MS));
	assert_false(young(5 * S, 1000 * S + 1, 1000 * S + 20 * MS + 1));
	/* Young by either of the two; with a clock that is a little ahead; with a timestamp that no
	 * clock made. */
	assert_true(young(1000 * S, 5 * S, 1001 * S));
	assert_true(young(5 * S, 1030 * S, 1000 * S));
	assert_false(young(5 * S, 1060 * S, 1000 * S));
	assert_int_equal(cop_attr_version_at(&odd, 1000 * S), cop_attr_version(&odd));
}

static void an_entry_is_young_for_two_ticks(void **state)
{
	struct cop_attr a = {.mtime_s = 1, .mtime_nsec = 1, .ctime_s = 3};

	(void)state;
	assert_int_equal(cop_attr_young_ms(&a), 2000);
	a.ctime_nsec = (uint32_t)(200 * MS);
	assert_int_equal(cop_attr_young_ms(&a), 200);
	a.ctime_nsec = 7;
	assert_int_equal(cop_attr_young_ms(&a), 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_entry_comes_back_as_it_went_in),
		cmocka_unit_test(an_entry_without_a_target_has_none),
		cmocka_unit_test(
			targets_that_are_too_long_or_have_a_nul_or_belong_to_a_file_are_refused),
		cmocka_unit_test(every_cut_of_an_entry_is_refused),
		cmocka_unit_test(a_size_past_2_to_63_is_refused),
		cmocka_unit_test(a_time_with_a_whole_second_of_nanoseconds_is_refused),
		cmocka_unit_test(
			the_version_moves_with_inode_size_mtime_and_ctime_and_with_nothing_else),
		cmocka_unit_test(a_version_is_young_for_two_ticks_of_its_stamps),
		cmocka_unit_test(an_entry_is_young_for_two_ticks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
