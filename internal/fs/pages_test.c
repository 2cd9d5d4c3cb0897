/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes of a large directory: how many requests a program costs that goes through it. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <linux/fuse.h>
#include <stdio.h>

#include "fs/fs_testing.h"

#define NAMES 20000u

static fuse_ino_t dir;
/* What the last directory read gave: names in its order, and whether their attributes came too. */
static struct {
	char name[32];
	bool complete;
} given[1024];
static unsigned given_count;

static int setup_large(void **state)
{
	char path[32];
	int rc = setup(state);

	put_file("d", NULL);
	for (unsigned i = 0; i < NAMES; i++) {
		snprintf(path, sizeof(path), "d/name%u", i);
		put_file(path, "x");
	}
	dir = lookup(FUSE_ROOT_ID, "d");
	return rc;
}

/* As much as fits in the buffer that the kernel gives; returns where the next one goes on. */
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

/* What a program does that looks at each name after it was read. The kernel asks for those whose
 * attributes it did not get, or has forgotten. */
static void look_at_given(bool forgotten)
{
	for (unsigned i = 0; i < given_count; i++)
		if (forgotten || !given[i].complete)
			assert_true(lookup(dir, given[i].name) != 0);
}

/* Goes through all names; forgets: after each fifth read the kernel asks for all names again, the
 * last ones first. Returns how many names were seen. */
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

/* Under memory pressure the kernel drops what a directory read gave. */
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

int main(void)
{
#define L(name) cmocka_unit_test_setup_teardown(name, setup_large, teardown)
	const struct CMUnitTest tests[] = {
		L(a_program_that_goes_through_costs_a_page_for_each_thousand_names),
		L(names_that_the_kernel_forgets_meanwhile_cost_nothing),
		L(ten_names_cost_ten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
