/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fabric/wire/wire.h"

/* Offsets in a blob that the tests break on purpose: the head, then records of 32 bytes. */
#define HEAD 120
#define RECORD 32
#define RECORD_INO 8
#define RECORD_ATTR 20

static const struct cop_attr dir_attr = {.ino = 2, .mode = S_IFDIR | 0755, .mtime_s = 77};

struct blob {
	char *data;
	size_t len;
};

static struct blob build(struct cop_listing_builder *b, uint32_t flags)
{
	struct blob out;

	assert_int_equal(cop_listing_build(b, &dir_attr, flags, (void **)&out.data, &out.len), 0);
	assert_int_equal(cop_listing_check(out.data, out.len), 0);
	return out;
}

static void add_name(struct cop_listing_builder *b, const char *name, uint8_t type)
{
	assert_int_equal(cop_listing_add(b, name, strlen(name), type, NULL, NULL, 0), 0);
}

/* Three names: a file with attributes, a link with a target, and a directory with neither but with
 * its inode number. */
static struct blob sample(void)
{
	struct cop_listing_builder b = {0};
	struct cop_attr attr = {.ino = 5, .mode = S_IFREG | 0644, .size = 10};

	assert_int_equal(cop_listing_add(&b, "file", 4, DT_UNKNOWN, &attr, NULL, 0), 0);
	attr.mode = S_IFLNK | 0777;
	assert_int_equal(cop_listing_add(&b, "link", 4, DT_LNK, &attr, "to/it", 5), 0);
	assert_int_equal(cop_listing_add_bare(&b, "dir", 3, DT_DIR, 6), 0);
	return build(&b, COP_LISTING_COMPLETE);
}

static void an_empty_listing_finds_nothing(void **state)
{
	struct cop_listing_builder b = {0};
	struct cop_listing_entry e;
	struct cop_attr dir;
	struct blob l = build(&b, 0);

	(void)state;
	assert_int_equal(cop_listing_count(l.data), 0);
	assert_int_equal(cop_listing_flags(l.data), 0);
	assert_int_equal(cop_listing_seek(l.data, 0), 0);
	assert_int_equal(cop_listing_seek(l.data, UINT64_MAX), 0);
	assert_false(cop_listing_find(l.data, "a", 1, &e));
	assert_false(cop_listing_find(l.data, "", 0, &e));
	cop_listing_dir(l.data, &dir);
	assert_int_equal(dir.mtime_s, 77);
	assert_int_equal(dir.version, cop_attr_version(&dir_attr));
	free(l.data);
}

static void names_types_attributes_and_targets_come_back(void **state)
{
	struct blob l = sample();
	struct cop_listing_entry e;

	(void)state;
	assert_int_equal(cop_listing_count(l.data), 3);
	assert_int_equal(cop_listing_flags(l.data), COP_LISTING_COMPLETE);
	assert_true(cop_listing_find(l.data, "file", 4, &e));
	assert_int_equal(e.type, DT_REG);
	assert_true(e.has_attr);
	assert_int_equal(e.attr.size, 10);
	assert_int_equal(e.ino, 5);
	assert_null(e.target);
	assert_true(cop_listing_find(l.data, "link", 4, &e));
	assert_int_equal(e.type, DT_LNK);
	assert_int_equal(e.target_len, 5);
	assert_memory_equal(e.target, "to/it", 5);
	assert_true(cop_listing_find(l.data, "dir", 3, &e));
	assert_int_equal(e.type, DT_DIR);
	assert_int_equal(e.ino, 6);
	assert_false(e.has_attr);
	assert_false(cop_listing_find(l.data, "dirs", 4, &e));
	assert_false(cop_listing_find(l.data, "di", 2, &e));
	free(l.data);
}

static void bad_names_types_and_targets_are_refused(void **state)
{
	static const struct {
		const char *name;
		size_t len;
	} bad[] = {{"", 0}, {".", 1}, {"..", 2}, {"a/b", 3}, {"/", 1}, {"a\0b", 3}, {"\0", 1}};
	struct cop_listing_builder b = {0};
	char longest[256];

	(void)state;
	memset(longest, 'n', sizeof(longest));
	for (size_t i = 0; i < COP_ARRAY_SIZE(bad); i++)
		assert_int_equal(
			cop_listing_add(&b, bad[i].name, bad[i].len, DT_REG, NULL, NULL, 0),
			-EINVAL);
	assert_int_equal(cop_listing_add(&b, longest, 256, DT_REG, NULL, NULL, 0), -EINVAL);
	assert_int_equal(cop_listing_add(&b, "a", 1, 3, NULL, NULL, 0), -EINVAL);
	assert_int_equal(cop_listing_add(&b, "a", 1, DT_REG, NULL, "t", 1), -EINVAL);
	assert_int_equal(cop_listing_add(&b, "a", 1, DT_LNK, NULL, "t\0u", 3), -EINVAL);
	assert_int_equal(b.count, 0);
	assert_int_equal(cop_listing_add(&b, longest, 255, DT_REG, NULL, NULL, 0), 0);
	add_name(&b, "...", DT_REG);
	add_name(&b, ".a", DT_REG);
	add_name(&b, "\xff\n", DT_REG);
	cop_listing_builder_free(&b);
}

static void a_name_that_comes_twice_is_refused_and_empties_the_builder(void **state)
{
	struct cop_listing_builder b = {0};
	void *blob;
	size_t len;

	(void)state;
	add_name(&b, "twin", DT_REG);
	add_name(&b, "other", DT_REG);
	add_name(&b, "twin", DT_DIR);
	assert_int_equal(cop_listing_build(&b, &dir_attr, 0, &blob, &len), -EEXIST);
	assert_int_equal(b.count, 0);
	assert_null(b.items.data);
}

static void the_order_of_insertion_does_not_show(void **state)
{
	struct cop_listing_builder forth = {0}, back = {0};
	struct blob x, y;
	char name[16];

	(void)state;
	for (int i = 0; i < 500; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		add_name(&forth, name, DT_REG);
		snprintf(name, sizeof(name), "n%d", 499 - i);
		add_name(&back, name, DT_REG);
	}
	x = build(&forth, 1);
	y = build(&back, 1);
	assert_int_equal(x.len, y.len);
	assert_memory_equal(x.data, y.data, x.len);
	free(x.data);
	free(y.data);
}

static void a_large_listing_is_found_and_walked_by_cookies(void **state)
{
	struct cop_listing_builder b = {0};
	struct cop_listing_entry e;
	struct blob l;
	uint64_t cookie = 0;
	char name[16];
	uint32_t i, seen = 0;

	(void)state;
	for (i = 0; i < 70000; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		add_name(&b, name, DT_REG);
	}
	l = build(&b, 0);
	for (i = 0; i < 70000; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		assert_true(cop_listing_find(l.data, name, strlen(name), &e));
		snprintf(name, sizeof(name), "g%u", i);
		assert_false(cop_listing_find(l.data, name, strlen(name), &e));
	}
	while ((i = cop_listing_seek(l.data, cookie)) < cop_listing_count(l.data)) {
		assert_int_equal(i, seen++);
		cop_listing_at(l.data, i, &e);
		assert_true(e.cookie > 2 && e.cookie > cookie && e.cookie < (uint64_t)1 << 63);
		cookie = e.cookie;
	}
	assert_int_equal(seen, 70000);
	free(l.data);
}

static void a_cookie_names_the_same_file_after_the_directory_changed(void **state)
{
	struct cop_listing_builder b = {0};
	struct cop_listing_entry before, after;
	struct blob l;

	(void)state;
	add_name(&b, "stays", DT_REG);
	add_name(&b, "goes", DT_REG);
	l = build(&b, 0);
	assert_true(cop_listing_find(l.data, "stays", 5, &before));
	free(l.data);
	add_name(&b, "comes", DT_REG);
	add_name(&b, "stays", DT_REG);
	l = build(&b, 0);
	assert_true(cop_listing_find(l.data, "stays", 5, &after));
	assert_int_equal(before.cookie, after.cookie);
	free(l.data);
}

static void a_listing_past_64_mib_is_refused(void **state)
{
	struct cop_listing_builder b = {0};
	char name[256], target[4000];
	void *blob;
	size_t len;
	int rc = 0, i;

	(void)state;
	memset(target, 't', sizeof(target));
	for (i = 0; !rc && i < 20000; i++) {
		snprintf(name, sizeof(name), "%08d", i);
		rc = cop_listing_add(&b, name, strlen(name), DT_LNK, NULL, target, sizeof(target));
	}
	assert_int_equal(rc, -E2BIG);
	assert_int_equal(cop_listing_build(&b, &dir_attr, 0, &blob, &len), -E2BIG);
}

static void every_cut_and_any_longer_listing_is_refused(void **state)
{
	struct blob l = sample();
	char *copy;

	(void)state;
	for (size_t n = 0; n < l.len + 64; n++) {
		if (n == l.len)
			continue;
		copy = calloc(1, n + 1);
		memcpy(copy, l.data, COP_MIN(n, l.len));
		assert_int_equal(cop_listing_check(copy, n), -EBADMSG);
		free(copy);
	}
	free(l.data);
}

static void a_listing_at_an_odd_address_is_refused(void **state)
{
	struct blob l = sample();
	char *copy = malloc(l.len + 8);

	(void)state;
	memcpy(copy + 4, l.data, l.len);
	assert_int_equal(cop_listing_check(copy + 4, l.len), -EBADMSG);
	free(copy);
	free(l.data);
}

/* Whether a record's inode number is at this place and nothing else depends on it. */
static bool is_bare_ino(const char *blob, size_t at)
{
	size_t in = (at - HEAD) % RECORD;
	uint32_t attr;

	memcpy(&attr, blob + at - in + RECORD_ATTR, sizeof(attr));
	return !attr && in >= RECORD_INO && in < RECORD_INO + 8;
}

/* Only flags, plain attribute values, the inode numbers of names without attributes, and link
 * targets can be changed unnoticed. */
static void changed_offsets_lengths_cookies_and_names_are_refused(void **state)
{
	struct blob l = sample();
	struct cop_listing_entry link;
	uint32_t strings;

	(void)state;
	memcpy(&strings, l.data + 20, sizeof(strings));
	assert_true(cop_listing_find(l.data, "link", 4, &link));
	for (size_t at = 0; at < l.len; at++) {
		bool head = at < 12 || (at >= 16 && at < 24);
		bool record = at >= HEAD && at < HEAD + 3 * RECORD;

		if ((!head && !record && at < strings) || (record && is_bare_ino(l.data, at)))
			continue;
		if (l.data + at >= link.target && l.data + at < link.target + link.target_len)
			continue;
		l.data[at] ^= 0x10;
		assert_int_equal(cop_listing_check(l.data, l.len), -EBADMSG);
		l.data[at] ^= 0x10;
	}
	assert_int_equal(cop_listing_check(l.data, l.len), 0);
	free(l.data);
}

static void swapped_and_repeated_records_are_refused(void **state)
{
	struct blob l = sample();
	char keep[RECORD];

	(void)state;
	memcpy(keep, l.data + HEAD, RECORD);
	memcpy(l.data + HEAD, l.data + HEAD + RECORD, RECORD);
	assert_int_equal(cop_listing_check(l.data, l.len), -EBADMSG);
	memcpy(l.data + HEAD + RECORD, keep, RECORD);
	assert_int_equal(cop_listing_check(l.data, l.len), -EBADMSG);
	free(l.data);
}

static void a_listing_with_a_short_name_table_is_refused(void **state)
{
	struct blob l = sample();
	uint32_t bytes = (uint32_t)l.len - 8;

	(void)state;
	memcpy(l.data + 4, &bytes, sizeof(bytes));
	assert_int_equal(cop_listing_check(l.data, bytes), -EBADMSG);
	free(l.data);
}

static void a_count_that_overflows_the_record_area_is_refused(void **state)
{
	static const uint32_t counts[] = {4, 0x08000003, 0x80000000, UINT32_MAX};
	struct blob l = sample();

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(counts); i++) {
		memcpy(l.data + 8, &counts[i], sizeof(counts[i]));
		assert_int_equal(cop_listing_check(l.data, l.len), -EBADMSG);
	}
	free(l.data);
}

static void add_file(struct cop_listing_builder *b, const char *name, uint64_t ino)
{
	struct cop_attr attr = {.ino = ino, .mode = S_IFREG | 0644, .size = 10};

	assert_int_equal(cop_listing_add(b, name, strlen(name), DT_REG, &attr, NULL, 0), 0);
}

static void a_merge_keeps_known_names_and_adds_new_ones(void **state)
{
	static const struct {
		const char *name;
		uint64_t ino;
	} wanted[] = {{"replaced", 1}, {"deleted", 2}, {"new", 13}};
	struct cop_attr moved = {.ino = 2, .mode = S_IFDIR | 0755, .mtime_s = 78}, dir;
	struct cop_listing_builder old = {0}, new = {0};
	struct cop_listing_entry e;
	struct blob known, newer, both;

	(void)state;
	add_file(&old, "replaced", 1);
	add_file(&old, "deleted", 2);
	known = build(&old, 0);
	add_file(&new, "replaced", 11);
	add_file(&new, "new", 13);
	assert_int_equal(cop_listing_build(&new, &moved, COP_LISTING_COMPLETE, (void **)&newer.data,
				 &newer.len),
		0);
	assert_int_equal(
		cop_listing_merge(known.data, newer.data, (void **)&both.data, &both.len), 0);
	assert_int_equal(cop_listing_check(both.data, both.len), 0);
	assert_int_equal(cop_listing_count(both.data), 3);
	for (size_t i = 0; i < COP_ARRAY_SIZE(wanted); i++) {
		assert_true(
			cop_listing_find(both.data, wanted[i].name, strlen(wanted[i].name), &e));
		assert_int_equal(e.attr.ino, wanted[i].ino);
	}
	cop_listing_dir(both.data, &dir);
	assert_int_equal(dir.mtime_s, 78);
	assert_int_equal(cop_listing_flags(both.data), COP_LISTING_COMPLETE);
	free(known.data);
	free(newer.data);
	free(both.data);
}

static struct blob numbered(unsigned from, unsigned to)
{
	struct cop_listing_builder b = {0};
	char name[16];

	for (; from < to; from++) {
		snprintf(name, sizeof(name), "n%u", from);
		add_name(&b, name, DT_REG);
	}
	return build(&b, 0);
}

static void names_that_come_and_go_do_not_add_up_for_ever(void **state)
{
	struct blob a = numbered(0, 60000), b = numbered(50000, 65536), c = numbered(5536, 65537),
		    both;

	(void)state;
	assert_int_equal(cop_listing_merge(a.data, b.data, (void **)&both.data, &both.len), 0);
	assert_int_equal(cop_listing_count(both.data), 65536);
	free(both.data);
	assert_int_equal(cop_listing_merge(a.data, c.data, (void **)&both.data, &both.len), -E2BIG);
	free(a.data);
	free(b.data);
	free(c.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_listing_finds_nothing),
		cmocka_unit_test(names_types_attributes_and_targets_come_back),
		cmocka_unit_test(bad_names_types_and_targets_are_refused),
		cmocka_unit_test(a_name_that_comes_twice_is_refused_and_empties_the_builder),
		cmocka_unit_test(the_order_of_insertion_does_not_show),
		cmocka_unit_test(a_large_listing_is_found_and_walked_by_cookies),
		cmocka_unit_test(a_cookie_names_the_same_file_after_the_directory_changed),
		cmocka_unit_test(a_listing_past_64_mib_is_refused),
		cmocka_unit_test(every_cut_and_any_longer_listing_is_refused),
		cmocka_unit_test(a_listing_at_an_odd_address_is_refused),
		cmocka_unit_test(changed_offsets_lengths_cookies_and_names_are_refused),
		cmocka_unit_test(swapped_and_repeated_records_are_refused),
		cmocka_unit_test(a_listing_with_a_short_name_table_is_refused),
		cmocka_unit_test(a_count_that_overflows_the_record_area_is_refused),
		cmocka_unit_test(a_merge_keeps_known_names_and_adds_new_ones),
		cmocka_unit_test(names_that_come_and_go_do_not_add_up_for_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
