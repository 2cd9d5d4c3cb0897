/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes of a large directory: how many requests a program causes that traverses it. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <linux/fuse.h>
#include <stdio.h>

#include "mount/fuse/fuse_testing.h"

#define NAMES 20000u

static fuse_ino_t dir;
/* The result of the last directory read: the names in order, and whether they had attributes. */
static struct {
	char name[32];
	bool complete;
} given[1024];
static unsigned given_count;

static int setup_names(void **state, unsigned count)
{
	char path[32];
	int rc = setup(state);

	put_file("d", NULL);
	for (unsigned i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "d/name%u", i);
		put_file(path, "x");
	}
	dir = lookup(FUSE_ROOT_ID, "d");
	return rc;
}

static int setup_large(void **state)
{
	return setup_names(state, NAMES);
}

static int setup_200(void **state)
{
	return setup_names(state, 200);
}

/* Reads as many names as fit in the kernel's buffer; returns the offset of the next read. */
static uint64_t read_names(uint64_t off)
{
	given_count = 0;
	read_dir(dir, 16384, (off_t)off, true);
	for (size_t at = 0; at < req.len;) {
		const struct fuse_direntplus *d = (void *)(req.data + at);

		at += FUSE_DIRENTPLUS_SIZE(d);
		off = d->dirent.off;
		if (d->dirent.name[0] == '.')
			continue;
		snprintf(given[given_count].name, sizeof(given[0].name), "%.*s",
			(int)d->dirent.namelen, d->dirent.name);
		given[given_count++].complete = d->entry_out.nodeid != 0;
	}
	return off;
}

/* Acts like a program that examines each name after reading it. The kernel looks up names whose
 * attributes it did not receive or has forgotten. */
static void look_at_given(bool forgotten)
{
	for (unsigned i = 0; i < given_count; i++)
		if (forgotten || !given[i].complete)
			assert_true(lookup(dir, given[i].name) != 0);
}

/* Traverses all names; returns how many there were. forgets: after every fifth read the kernel
 * looks up all names again, the last ones first. */
static unsigned go_through(bool forgets)
{
	uint64_t off = 0, before;
	unsigned names = 0, reads = 0;

	for (;;) {
		before = off;
		off = read_names(off);
		if (off == before)
			return names;
		names += given_count;
		look_at_given(false);
		if (!forgets || ++reads % 5)
			continue;
		look_at_given(true);
		for (unsigned i = given_count / 2; i-- > 0;)
			assert_true(lookup(dir, given[i].name) != 0);
	}
}

static void a_program_that_goes_through_costs_a_page_for_each_thousand_names(void **state)
{
	struct cop_origin_fake_counts counts;

	(void)state;
	assert_int_equal(go_through(false), NAMES);
	counts = cop_origin_fake_counts(origin);
	assert_int_equal(counts.pages, (NAMES + 999) / 1000);
	assert_in_range(counts.stats, 1, 5);
}

/* Under memory pressure the kernel drops attributes that it received from a directory read. */
static void names_that_the_kernel_forgets_meanwhile_cost_nothing(void **state)
{
	struct cop_origin_fake_counts before, counts;

	(void)state;
	assert_int_equal(go_through(true), NAMES);
	before = cop_origin_fake_counts(origin);
	assert_int_equal(before.pages, (NAMES + 999) / 1000);
	assert_in_range(before.stats, 1, 5);
	assert_int_equal(go_through(true), NAMES);
	counts = cop_origin_fake_counts(origin);
	assert_int_equal(counts.pages, before.pages);
	assert_int_equal(counts.stats, before.stats);
}

static void ten_names_cost_ten(void **state)
{
	struct cop_origin_fake_counts before = cop_origin_fake_counts(origin), counts;
	char name[32];

	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "name%u", i * 479 % NAMES);
		assert_true(lookup(dir, name) != 0);
	}
	counts = cop_origin_fake_counts(origin);
	assert_int_equal(counts.pages, 0);
	assert_int_equal(counts.stats - before.stats, 10);
}

/* ---- a directory with one page ---- */

static struct cop_origin_fake_counts counts_of(void)
{
	return cop_origin_fake_counts(origin);
}

/* Looks up count names, in steps of step. Returns how many attributes were read one by one. */
static size_t look_up(unsigned count, unsigned step)
{
	size_t before = counts_of().stats;
	char name[32];

	for (unsigned i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "name%u", i * step % 200);
		assert_true(lookup(dir, name) != 0);
	}
	return counts_of().stats - before;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void two_hundred_names_in_their_order_cost_one_page(void **state)
{
	(void)state;
	read_names(0);
	look_at_given(false);
	assert_int_equal(counts_of().pages, 1);
	/* The count includes the directory itself. */
	assert_int_equal(counts_of().stats, 4);
	assert_int_equal(look_up(200, 1), 0);
	assert_int_equal(counts_of().pages, 1);
}

static void sorted_names_cost_a_few_and_a_page(void **state)
{
	char name[200][32];
	size_t before = counts_of().stats;

	(void)state;
	for (unsigned i = 0; i < 200; i++)
		snprintf(name[i], sizeof(name[i]), "name%u", i);
	qsort(name, 200, sizeof(name[0]), by_name);
	for (unsigned i = 0; i < 200; i++)
		assert_true(lookup(dir, name[i]) != 0);
	assert_int_equal(counts_of().pages, 1);
	/* The first name was requested before the listing was known. */
	assert_int_equal(counts_of().stats - before, 200 / 16 + 1);
}

/* As Python does: looks up a quarter of the names, in no order, and some of them again. */
static void a_quarter_of_the_names_costs_no_page(void **state)
{
	(void)state;
	assert_int_equal(look_up(50, 77), 50);
	assert_int_equal(look_up(50, 77), 0);
	assert_int_equal(counts_of().pages, 0);
}

/* Among so few names, lookups may follow the order by chance. */
static void names_far_apart_in_their_order_cost_no_page(void **state)
{
	size_t before = counts_of().stats;

	(void)state;
	read_names(0);
	assert_in_range(given_count, 60, 200);
	for (unsigned i = 0; i < 60; i += 6)
		assert_true(lookup(dir, given[i].name) != 0);
	assert_int_equal(counts_of().stats - before, 10);
	assert_int_equal(counts_of().pages, 0);
}

static void a_third_of_the_names_in_any_order_brings_the_others(void **state)
{
	(void)state;
	assert_int_equal(look_up(200, 77), 66);
	assert_int_equal(counts_of().pages, 1);
}

/* As a manifest does: fetches the first names before a program looks them up. */
static void bring_names(unsigned count)
{
	struct cop_obj *obj;
	char path[32];

	for (unsigned i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "d/name%u", i);
		assert_int_equal(
			cop_fetch_get(fetch,
				&(struct cop_ask){
					.kind = COP_ASK_ENTRY, .path = path, .background = true},
				NULL, &obj),
			0);
	}
	while (cop_origin_fake_run(origin, 100))
		;
}

/* Lookups of names that a manifest has prefetched are no evidence of a traversal. */
static void names_that_are_here_tell_nothing(void **state)
{
	(void)state;
	bring_names(150);
	assert_int_equal(look_up(150, 1), 0);
	assert_true(lookup(dir, "name180") != 0);
	assert_true(lookup(dir, "name160") != 0);
	assert_int_equal(counts_of().pages, 0);
}

static unsigned complete(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < given_count; i++)
		n += given[i].complete;
	return n;
}

/* Otherwise the kernel would answer the program, and the next manifest would lack the names. */
static void a_recording_node_sees_the_lookups_of_names_that_are_here(void **state)
{
	struct cop_manifest_item item = {.kind = COP_MANIFEST_NAME, .path = "d/name3", .len = 7};

	(void)state;
	bring_names(150);
	read_names(0);
	assert_true(complete() > 0);
	fs->conf.record = cop_manifest_set_new(UINT64_MAX);
	read_names(0);
	assert_true(given_count > 0);
	assert_int_equal(complete(), 0);
	assert_true(lookup(dir, "name3") != 0);
	assert_true(cop_manifest_set_find(fs->conf.record, &item, NULL));
	cop_manifest_set_free(fs->conf.record);
	fs->conf.record = NULL;
}

int main(void)
{
#define S(name) cmocka_unit_test_setup_teardown(name, setup_200, teardown)
#define L(name) cmocka_unit_test_setup_teardown(name, setup_large, teardown)
	const struct CMUnitTest tests[] = {
		L(a_program_that_goes_through_costs_a_page_for_each_thousand_names),
		L(names_that_the_kernel_forgets_meanwhile_cost_nothing),
		L(ten_names_cost_ten),
		S(two_hundred_names_in_their_order_cost_one_page),
		S(sorted_names_cost_a_few_and_a_page),
		S(a_quarter_of_the_names_costs_no_page),
		S(names_far_apart_in_their_order_cost_no_page),
		S(a_third_of_the_names_in_any_order_brings_the_others),
		S(names_that_are_here_tell_nothing),
		S(a_recording_node_sees_the_lookups_of_names_that_are_here),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
