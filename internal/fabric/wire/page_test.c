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

#define NAMES 5000u
#define PAGES 5u

static const struct cop_attr dir_attr = {.ino = 2, .mode = S_IFDIR | 0755, .mtime_s = 77};

static struct cop_attr attr_of(unsigned i)
{
	return (struct cop_attr){.ino = 10 + i, .mode = S_IFREG | 0644, .size = i};
}

static size_t name_of(unsigned i, char name[16])
{
	return (size_t)snprintf(name, 16, "f%u", i);
}

static void add(struct cop_listing_builder *b, unsigned i, bool bare)
{
	struct cop_attr attr = attr_of(i);
	char name[16];
	size_t len = name_of(i, name);

	if (bare)
		assert_int_equal(cop_listing_add_bare(b, name, len, DT_REG, attr.ino), 0);
	else
		assert_int_equal(cop_listing_add(b, name, len, DT_REG, &attr, NULL, 0), 0);
}

static void *build(struct cop_listing_builder *b, uint32_t flags, size_t *len)
{
	void *blob;

	assert_int_equal(cop_listing_build(b, &dir_attr, flags, &blob, len), 0);
	return blob;
}

static void *names(unsigned count)
{
	struct cop_listing_builder b = {0};
	size_t len;

	for (unsigned i = 0; i < count; i++)
		add(&b, i, true);
	return build(&b, COP_LISTING_COMPLETE, &len);
}

static void a_listing_has_a_page_for_each_thousand_names(void **state)
{
	static const struct {
		unsigned names, pages;
	} rows[] = {{0, 1}, {1, 1}, {1000, 1}, {1001, 2}, {1025, 2}, {5000, 5}, {60000, 60}};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(rows); i++) {
		void *l = names(rows[i].names);

		assert_int_equal(cop_listing_pages(l), rows[i].pages);
		free(l);
	}
}

static void the_names_of_a_page_stand_together_and_each_is_in_one(void **state)
{
	void *l = names(NAMES);
	uint32_t at = 0;

	(void)state;
	for (uint32_t p = 0; p < PAGES; p++) {
		struct cop_listing_entry e;
		uint32_t first, end;

		cop_listing_page_range(l, PAGES, p, &first, &end);
		assert_int_equal(first, at);
		/* The range is seven standard deviations wide on each side. */
		assert_in_range(end - first, 800, 1200);
		for (; at < end; at++) {
			cop_listing_at(l, at, &e);
			assert_int_equal(cop_listing_page_of(e.name, e.name_len, PAGES), p);
		}
	}
	assert_int_equal(at, NAMES);
	free(l);
}

static void the_page_of_a_name_does_not_depend_on_the_other_names(void **state)
{
	(void)state;
	for (unsigned i = 0; i < NAMES; i++) {
		char name[16];
		size_t len = name_of(i, name);
		uint32_t of_many = cop_listing_page_of(name, len, COP_PAGES_MAX);

		assert_true(of_many < COP_PAGES_MAX);
		assert_int_equal(cop_listing_page_of(name, len, COP_PAGES_MAX / 2), of_many / 2);
		assert_int_equal(cop_listing_page_of(name, len, 1), 0);
	}
}

/* A page of those names below count that belong to it. foreign: and one that does not; bare: and
 * one without attributes. */
static void *build_page(const struct cop_listing_page *p, unsigned count, bool bare, uint32_t flags,
	bool foreign, size_t *len)
{
	struct cop_listing_builder b = {0};
	char name[16];

	for (unsigned i = 0; i < count; i++)
		if (cop_listing_page_of(name, name_of(i, name), p->pages) == p->index ||
			(foreign && i == 3))
			add(&b, i, false);
	if (bare)
		add(&b, count, true);
	return build(&b, flags, len);
}

static int check(const struct cop_listing_page *page, const void *blob, size_t len)
{
	return cop_listing_page_check(blob, len, page);
}

static void a_page_is_taken_for_itself_alone(void **state)
{
	struct cop_listing_page p = {
		.version = cop_attr_version(&dir_attr), .pages = PAGES, .index = 3};
	size_t len;
	void *blob = build_page(&p, NAMES, false, 0, false, &len);

	(void)state;
	assert_int_equal(check(&p, blob, len), 0);
	p.version |= 1;
	assert_int_equal(check(&p, blob, len), 0);
	p.version += 2;
	assert_int_equal(check(&p, blob, len), -EBADMSG);
	p.version = cop_attr_version(&dir_attr);
	for (p.index = 0; p.index < PAGES; p.index++)
		assert_int_equal(check(&p, blob, len), p.index == 3 ? 0 : -EBADMSG);
	p.index = 3;
	for (p.pages = 4; p.pages < 20; p.pages++)
		assert_int_equal(check(&p, blob, len), p.pages == PAGES ? 0 : -EBADMSG);
	p.pages = PAGES;
	assert_int_equal(check(&p, blob, len - 8), -EBADMSG);
	free(blob);
}

static void a_page_with_anything_else_in_it_is_refused(void **state)
{
	struct cop_listing_page p = {
		.version = cop_attr_version(&dir_attr), .pages = PAGES, .index = 3};
	struct cop_listing_page all = {.version = p.version, .pages = 1};
	size_t len;
	void *blob;

	(void)state;
	assert_int_not_equal(cop_listing_page_of("f3", 2, PAGES), p.index);
	blob = build_page(&p, NAMES, false, 0, true, &len);
	assert_int_equal(check(&p, blob, len), -EBADMSG);
	free(blob);
	blob = build_page(&all, 10, true, 0, false, &len);
	assert_int_equal(check(&all, blob, len), -EBADMSG);
	free(blob);
	blob = build_page(&p, NAMES, false, COP_LISTING_COMPLETE, false, &len);
	assert_int_equal(check(&p, blob, len), -EBADMSG);
	free(blob);
	blob = build_page(&all, COP_PAGE_MOST, false, 0, false, &len);
	assert_int_equal(check(&all, blob, len), 0);
	free(blob);
	blob = build_page(&all, COP_PAGE_MOST + 1, false, 0, false, &len);
	assert_int_equal(check(&all, blob, len), -EBADMSG);
	free(blob);
	blob = build_page(&p, 0, false, 0, false, &len);
	assert_int_equal(check(&p, blob, len), 0);
	free(blob);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_listing_has_a_page_for_each_thousand_names),
		cmocka_unit_test(the_names_of_a_page_stand_together_and_each_is_in_one),
		cmocka_unit_test(the_page_of_a_name_does_not_depend_on_the_other_names),
		cmocka_unit_test(a_page_is_taken_for_itself_alone),
		cmocka_unit_test(a_page_with_anything_else_in_it_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
