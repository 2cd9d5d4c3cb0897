/* SPDX-License-Identifier: BSD-3-Clause */
/* Pages of attributes, from the names of a listing and from the directory itself. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>

#include "storage/origin/origin_testing.h"

#define NAMES 300
#define PAGES 3u

static void put_names(struct fixture *f, int count)
{
	char path[32];

	put_dir(f, "d");
	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "d/f%d", i);
		put_file(f, path, i % 2 ? "odd" : "");
	}
}

static uint64_t version_of(const void *listing)
{
	struct cop_attr dir;

	cop_listing_dir(listing, &dir);
	return dir.version;
}

static struct cop_listing_page page_of(const void *listing, uint32_t index)
{
	return (struct cop_listing_page){
		.version = version_of(listing), .pages = PAGES, .index = index};
}

/* Compares each name of the page with the file itself. */
static void check_attrs(const struct fixture *f, const void *page)
{
	struct cop_listing_entry e;
	struct stat st;
	char path[512];

	for (uint32_t i = 0; i < cop_listing_count(page); i++) {
		cop_listing_at(page, i, &e);
		snprintf(path, sizeof(path), "d/%.*s", (int)e.name_len, e.name);
		assert_int_equal(lstat(in_source(f, path), &st), 0);
		assert_int_equal(e.attr.ino, st.st_ino);
		assert_int_equal(e.attr.size, st.st_size);
		assert_int_equal(e.attr.mode, st.st_mode);
	}
}

static uint64_t counted(const struct fixture *f, enum cop_counter c)
{
	return cop_stats_get(&f->stats, c);
}

static void pages_bring_each_name_once(struct fixture *f, bool with_names)
{
	uint32_t sum = 0, first, end;
	void *list, *page;
	int rc;

	put_names(f, NAMES);
	list = ask_list(f->o, "d", &rc);
	assert_int_equal(rc, 0);
	for (uint32_t i = 0; i < PAGES; i++) {
		uint64_t stats = counted(f, COP_ORIGIN_STATS);

		page = ask_page(f->o, "d", page_of(list, i), with_names ? list : NULL, &rc);
		assert_int_equal(rc, 0);
		cop_listing_page_range(list, PAGES, i, &first, &end);
		assert_int_equal(cop_listing_count(page), end - first);
		assert_int_equal(counted(f, COP_ORIGIN_STATS) - stats, end - first);
		check_attrs(f, page);
		sum += cop_listing_count(page);
		free(page);
	}
	assert_int_equal(sum, NAMES);
	assert_int_equal(counted(f, COP_ORIGIN_LISTS), 1);
	free(list);
}

static void pages_bring_the_names_of_a_listing(void **state)
{
	pages_bring_each_name_once(*state, true);
}

static void pages_bring_the_names_of_a_directory(void **state)
{
	pages_bring_each_name_once(*state, false);
}

/* The requests that are allowed: one open, the directory before and after, and the names of the
 * page. */
static void a_page_of_known_names_does_not_read_the_directory(void **state)
{
	struct fixture *f = *state;
	uint64_t before;
	void *list, *page;
	int rc;

	put_names(f, NAMES);
	list = ask_list(f->o, "d", &rc);
	before = counted(f, COP_ORIGIN_OPERATIONS);
	page = ask_page(f->o, "d", page_of(list, 1), list, &rc);
	assert_int_equal(counted(f, COP_ORIGIN_OPERATIONS) - before, 3 + cop_listing_count(page));
	free(page);
	before = counted(f, COP_ORIGIN_OPERATIONS);
	page = ask_page(f->o, "d", page_of(list, 1), NULL, &rc);
	assert_true(counted(f, COP_ORIGIN_OPERATIONS) - before > 3 + cop_listing_count(page));
	free(page);
	free(list);
}

static void links_come_with_their_targets(void **state)
{
	struct cop_listing_page all = {.pages = 1};
	struct fixture *f = *state;
	struct cop_listing_entry e;
	void *list, *page;
	int rc;

	put_dir(f, "d");
	assert_int_equal(symlink("else/where", in_source(f, "d/link")), 0);
	list = ask_names(f->o, "d", &rc);
	all.version = version_of(list);
	page = ask_page(f->o, "d", all, list, &rc);
	assert_int_equal(rc, 0);
	assert_true(cop_listing_find(page, "link", 4, &e));
	assert_int_equal(e.type, DT_LNK);
	assert_int_equal(e.target_len, 10);
	assert_memory_equal(e.target, "else/where", 10);
	free(page);
	free(list);
}

static void a_directory_of_another_version_has_no_page(void **state)
{
	struct fixture *f = *state;
	struct timespec long_ago[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	void *list;
	int rc;

	put_names(f, NAMES);
	list = ask_list(f->o, "d", &rc);
	put_file(f, "d/new", "x");
	/* Old enough whatever the timestamp granularity of this file system is. */
	assert_int_equal(utimensat(AT_FDCWD, in_source(f, "d"), long_ago, 0), 0);
	assert_null(ask_page(f->o, "d", page_of(list, 0), list, &rc));
	assert_int_equal(rc, -ESTALE);
	assert_null(ask_page(f->o, "d", page_of(list, 0), NULL, &rc));
	assert_int_equal(rc, -ESTALE);
	free(list);
}

static void a_name_that_is_gone_is_left_out(void **state)
{
	struct cop_listing_builder b = {0};
	struct fixture *f = *state;
	struct cop_listing_page all = {.pages = 1};
	struct cop_listing_entry e;
	struct cop_attr dir;
	void *list, *names, *page;
	size_t len;
	int rc;

	put_names(f, 3);
	list = ask_list(f->o, "d", &rc);
	cop_listing_dir(list, &dir);
	/* A listing to which a node has added what it knew before. */
	cop_listing_add_bare(&b, "old", 3, DT_REG, 77);
	cop_listing_add_bare(&b, "f1", 2, DT_REG, 78);
	assert_int_equal(cop_listing_build(&b, &dir, COP_LISTING_COMPLETE, &names, &len), 0);
	all.version = dir.version;
	page = ask_page(f->o, "d", all, names, &rc);
	assert_int_equal(rc, 0);
	assert_int_equal(cop_listing_count(page), 1);
	assert_true(cop_listing_find(page, "f1", 2, &e));
	check_attrs(f, page);
	free(page);
	free(names);
	free(list);
}

static void too_many_names_of_one_page_are_refused(void **state)
{
	struct fixture *f = *state;
	struct cop_listing_page all = {.pages = 1};
	void *names, *page;
	int rc;

	open_origin(f, 4, 10000, 10);
	put_names(f, COP_PAGE_MOST);
	names = ask_names(f->o, "d", &rc);
	all.version = version_of(names);
	page = ask_page(f->o, "d", all, names, &rc);
	assert_int_equal(cop_listing_count(page), COP_PAGE_MOST);
	free(page);
	free(names);
	put_file(f, "d/more", "");
	names = ask_names(f->o, "d", &rc);
	all.version = version_of(names);
	assert_null(ask_page(f->o, "d", all, names, &rc));
	assert_int_equal(rc, -E2BIG);
	assert_null(ask_page(f->o, "d", all, NULL, &rc));
	assert_int_equal(rc, -E2BIG);
	free(names);
}

static void errors_are_those_of_a_listing(void **state)
{
	struct cop_listing_page all = {.version = 2, .pages = 1};
	struct fixture *f = *state;
	int rc;

	put_file(f, "file", "x");
	assert_null(ask_page(f->o, "none", all, NULL, &rc));
	assert_int_equal(rc, -ENOENT);
	assert_null(ask_page(f->o, "file", all, NULL, &rc));
	assert_int_equal(rc, -ENOTDIR);
	assert_null(ask_page(f->o, "../d", all, NULL, &rc));
	assert_int_equal(rc, -EINVAL);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(pages_bring_the_names_of_a_listing),
		T(pages_bring_the_names_of_a_directory),
		T(a_page_of_known_names_does_not_read_the_directory),
		T(links_come_with_their_targets),
		T(a_directory_of_another_version_has_no_page),
		T(a_name_that_is_gone_is_left_out),
		T(too_many_names_of_one_page_are_refused),
		T(errors_are_those_of_a_listing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
