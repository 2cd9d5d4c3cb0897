/* SPDX-License-Identifier: BSD-3-Clause */
/* How a manifest is divided into parts, from the items that jobs did not need. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tree/prefetch/prefetch_priv.h"

#define OLD_ITEMS 200

static struct cop_manifest_item small_file(char path[16], unsigned i)
{
	struct cop_manifest_item item = {.kind = COP_MANIFEST_FILE, .path = path, .size = 9};

	item.len = (size_t)sprintf(path, "d/%03u", i);
	cop_manifest_range_add(&item, 0, i ? 9 : 4 << 20);
	return item;
}

/* The number of parts after a job that did not need the last items of a part with a large file. */
static unsigned parts_without(unsigned unneeded)
{
	struct cop_manifest_set *old = cop_manifest_set_new(UINT64_MAX);
	struct cop_manifest_set *record = cop_manifest_set_new(UINT64_MAX);
	struct cop_buf body = {0}, next = {0};
	unsigned unused = 0, parts = 0;
	uint64_t items = 0;
	char path[16];

	for (unsigned i = 0; i < OLD_ITEMS; i++) {
		struct cop_manifest_item item = small_file(path, i);

		assert_int_equal(cop_manifest_set_add(old, &item, 0), 0);
		if (i < OLD_ITEMS - unneeded)
			assert_int_equal(cop_manifest_set_add(record, &item, 0), 0);
	}
	assert_int_equal(cop_manifest_set_write(old, &body, &items, &unused), 0);
	items = 0;
	assert_int_equal(
		cop_prefetch_next_parts(body.data, body.len, record, 1, false, &next, &items), 0);
	assert_int_equal(items, OLD_ITEMS);
	cop_buf_add(&next, "", 1);
	for (const char *at = next.data; (at = strstr(at, "part ")); at++)
		parts++;
	cop_buf_free(&body);
	cop_buf_free(&next);
	cop_manifest_set_free(old);
	cop_manifest_set_free(record);
	return parts;
}

static void many_small_items_that_a_job_does_not_need_become_a_part(void **state)
{
	(void)state;
	assert_int_equal(parts_without(0), 0);
	assert_int_equal(parts_without(OLD_ITEMS / 20 - 1), 0);
	assert_int_equal(parts_without(OLD_ITEMS / 20), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_small_items_that_a_job_does_not_need_become_a_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
