/* SPDX-License-Identifier: BSD-3-Clause */
/* Pages of attributes in a tree of nodes (page.c): who gets which, which are kept, and what happens
 * to them when the storage contradicts them. Node 2 asks through node 1, and node 1 through the
 * root. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dirent.h>

#include "tree/fetch/fetch_testing.h"

#define NAMES 40u
#define PAGES 3u

static struct tree *open_three(void)
{
	struct tree *t = open_tree(3, 1, 1, 4 << 20);
	char path[16];

	for (unsigned i = 0; i < NAMES; i++) {
		snprintf(path, sizeof(path), "d/f%u", i);
		put_file(t, path, "old", 3);
	}
	return t;
}

static size_t pages_read(struct tree *t)
{
	return cop_origin_fake_counts(t->node[0].origin).pages;
}

/* The version of "d" that this node knows. */
static uint64_t listed(struct tree *t, uint32_t rank)
{
	struct cop_attr dir;
	struct asked a;

	ask_fetch(t, rank, listing("d"), &a);
	run_until_idle(t);
	assert_int_equal(a.rc, 0);
	cop_listing_dir(a.obj->data, &dir);
	forget(&a);
	return dir.version;
}

/* Asks for all pages; returns how many names they have. */
static uint32_t count_names(struct tree *t, uint32_t rank, uint64_t version, uint32_t pages)
{
	uint32_t sum = 0;
	struct asked a;

	for (uint32_t i = 0; i < pages; i++) {
		ask_fetch(t, rank, page(version, pages, i), &a);
		run_until_idle(t);
		assert_int_equal(a.calls, 1);
		assert_int_equal(a.rc, 0);
		sum += cop_listing_count(a.obj->data);
		forget(&a);
	}
	return sum;
}

static void pages_are_read_once_and_kept_on_the_way(void **state)
{
	struct tree *t = open_three();
	uint64_t version = listed(t, 2);

	(void)state;
	assert_int_equal(count_names(t, 2, version, PAGES), NAMES);
	assert_int_equal(pages_read(t), PAGES);
	for (uint32_t r = 0; r < 3; r++)
		assert_int_equal(count_names(t, r, version, PAGES), NAMES);
	assert_int_equal(pages_read(t), PAGES);
	/* If the names are divided otherwise, that is another object. */
	assert_int_equal(count_names(t, 2, version, 1), NAMES);
	assert_int_equal(pages_read(t), PAGES + 1);
	close_tree(t);
}

static void who_asks_for_a_page_meanwhile_joins_its_flight(void **state)
{
	struct tree *t = open_three();
	uint64_t version = listed(t, 2);
	struct asked a[6];

	(void)state;
	for (int i = 0; i < 6; i++)
		ask_fetch(t, (uint32_t)i % 3, page(version, PAGES, 1), &a[i]);
	run_until_idle(t);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(a[i].calls, 1);
		assert_int_equal(a[i].rc, 0);
		forget(&a[i]);
	}
	assert_int_equal(pages_read(t), 1);
	close_tree(t);
}

static void a_page_is_asked_for_in_one_request_however_long_it_is(void **state)
{
	struct tree *t = open_tree(3, 1, 1, 4 << 20);
	uint64_t version, before;
	char path[256];

	(void)state;
	/* Longer than what is reserved for a listing. */
	for (unsigned i = 0; i < 400; i++) {
		snprintf(path, sizeof(path), "d/%0200u", i);
		put_file(t, path, "x", 1);
	}
	version = listed(t, 2);
	before = cop_stats_get(&t->node[2].stats, COP_FABRIC_REQUESTS_SENT);
	assert_int_equal(count_names(t, 2, version, 1), 400);
	assert_int_equal(cop_stats_get(&t->node[2].stats, COP_FABRIC_REQUESTS_SENT), before + 1);
	close_tree(t);
}

/* The budget has less than what is otherwise reserved for a page. */
static void a_page_comes_with_little_memory(void **state)
{
	struct tree *t = open_tree(3, 1, 1, 128 << 10);
	struct cop_cache_usage usage;
	uint64_t version;

	(void)state;
	put_file(t, "d/f", "x", 1);
	version = listed(t, 2);
	assert_int_equal(count_names(t, 2, version, 2), 1);
	for (uint32_t r = 0; r < 3; r++) {
		cop_cache_usage(t->node[r].cache, &usage);
		assert_true(usage.used_bytes <= usage.limit_bytes);
		assert_int_equal(usage.waiting_to_reserve, 0);
	}
	close_tree(t);
}

static void a_page_of_another_version_is_stale_and_not_kept(void **state)
{
	struct tree *t = open_three();
	uint64_t version = listed(t, 2);

	(void)state;
	put_file(t, "d/new", "x", 1);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(ask_and_forget(t, 2, page(version, PAGES, 0)), -ESTALE);
		assert_int_equal(pages_read(t), i + 1);
	}
	assert_int_equal(ask_and_forget(t, 2, page(version + 2, PAGES, 0)), -ESTALE);
	for (uint32_t r = 0; r < 3; r++)
		assert_null(cop_fetch_peek(t->node[r].fetch, &(struct cop_ask){.kind = COP_ASK_PAGE,
								     .path = "d",
								     .version = version,
								     .size = PAGES}));
	close_tree(t);
}

static void an_improper_request_for_a_page_is_refused(void **state)
{
	struct tree *t = open_three();
	uint64_t version = listed(t, 2);

	(void)state;
	assert_int_equal(ask_and_forget(t, 2, page(0, PAGES, 0)), -EINVAL);
	assert_int_equal(ask_and_forget(t, 2, page(version, 0, 0)), -EINVAL);
	assert_int_equal(ask_and_forget(t, 2, page(version, PAGES, PAGES)), -EINVAL);
	assert_int_equal(ask_and_forget(t, 2, page(version, COP_PAGES_MAX + 1, 0)), -EINVAL);
	assert_int_equal(ask_and_forget(t, 2, page(version, (uint64_t)1 << 32, 0)), -EINVAL);
	assert_int_equal(pages_read(t), 0);
	assert_int_equal(ask_and_forget(t, 2, page(version, COP_PAGES_MAX, COP_PAGES_MAX - 1)), 0);
	close_tree(t);
}

/* ---- what the storage contradicts ---- */

static struct cop_obj *here(struct tree *t, uint32_t rank, uint64_t version, uint64_t index)
{
	struct cop_ask ask = page(version, 1, index);

	return cop_fetch_peek(t->node[rank].fetch, &ask);
}

static struct cop_attr attr_in_page(struct tree *t, uint64_t version, const char *name)
{
	struct cop_obj *obj = here(t, 2, version, 0);
	struct cop_listing_entry e;

	assert_non_null(obj);
	assert_true(cop_listing_find(obj->data, name, strlen(name), &e));
	cop_obj_put(t->node[2].cache, obj);
	return e.attr;
}

static void contradicted_pages_are_not_used_any_more_until_they_are_forgotten(void **state)
{
	struct tree *t = open_three();
	uint64_t version = listed(t, 2);
	struct cop_attr was;

	(void)state;
	assert_int_equal(count_names(t, 2, version, 1), NAMES);
	was = attr_in_page(t, version, "f7");
	put_file(t, "d/f7", "changed", 7);
	assert_int_equal(ask_and_forget(t, 2, chunk(&was, "d/f7", 0)), -ESTALE);
	for (uint32_t r = 0; r < 3; r++) {
		assert_null(here(t, r, version, 0));
		assert_int_equal(ask_and_forget(t, r, page(version, 1, 0)), -ESTALE);
		/* Neither is any other page. */
		assert_int_equal(ask_and_forget(t, r, page(version, PAGES, 2)), -ESTALE);
	}
	assert_int_equal(pages_read(t), 1);
	assert_int_equal(attr_of(t, 2, "d/f7").size, 7);
	for (uint32_t r = 0; r < 3; r++)
		cop_fetch_forget_name(t->node[r].fetch, "d/f7");
	assert_int_equal(count_names(t, 2, version, 1), NAMES);
	assert_int_equal(attr_in_page(t, version, "f7").size, 7);
	close_tree(t);
}

static void a_wrong_claim_about_a_file_does_not_touch_its_page(void **state)
{
	struct tree *t = open_three();
	uint64_t version = listed(t, 2);
	struct cop_attr was;

	(void)state;
	assert_int_equal(count_names(t, 2, version, 1), NAMES);
	was = attr_in_page(t, version, "f7");
	was.version += 2;
	assert_int_equal(ask_and_forget(t, 2, chunk(&was, "d/f7", 0)), -ESTALE);
	assert_int_equal(count_names(t, 2, version, 1), NAMES);
	assert_int_equal(pages_read(t), 1);
	close_tree(t);
}

static void a_name_that_is_forgotten_takes_every_page_of_its_directory_along(void **state)
{
	struct tree *t = open_three();
	uint64_t version = listed(t, 0);

	(void)state;
	assert_int_equal(count_names(t, 0, version, PAGES), NAMES);
	assert_int_equal(count_names(t, 0, version, 1), NAMES);
	cop_fetch_forget_name(t->node[0].fetch, "other/f7");
	assert_int_equal(count_names(t, 0, version, PAGES), NAMES);
	assert_int_equal(pages_read(t), PAGES + 1);
	cop_fetch_forget_name(t->node[0].fetch, "d/f7");
	assert_int_equal(count_names(t, 0, version, PAGES), NAMES);
	assert_int_equal(count_names(t, 0, version, 1), NAMES);
	assert_int_equal(pages_read(t), 2 * (PAGES + 1));
	close_tree(t);
}

/* ---- a parent that answers wrongly ---- */

enum wrong {
	RIGHT,
	OTHER_INDEX,
	OTHER_COUNT,
	OTHER_VERSION,
	FOREIGN_NAME,
	BARE_NAME,
	COMPLETE,
	CUT,
	NONE
};

static enum wrong wrong;
static uint64_t wrong_version;

static void add_names(struct cop_listing_builder *b, const struct cop_listing_page *p)
{
	struct cop_attr attr = {.ino = 9, .mode = S_IFREG | 0644};
	char name[16];
	size_t len;

	for (unsigned i = 0; i < NAMES; i++) {
		len = (size_t)snprintf(name, sizeof(name), "f%u", i);
		if (cop_listing_page_of(name, len, p->pages) == p->index)
			cop_listing_add(b, name, len, DT_REG, &attr, NULL, 0);
		else if (wrong == FOREIGN_NAME && i < 10)
			cop_listing_add(b, name, len, DT_REG, &attr, NULL, 0);
	}
	for (unsigned i = NAMES; wrong == BARE_NAME && i < 2 * NAMES; i++) {
		len = (size_t)snprintf(name, sizeof(name), "f%u", i);
		if (cop_listing_page_of(name, len, p->pages) == p->index)
			cop_listing_add_bare(b, name, len, DT_REG, 8);
	}
}

static bool answer_wrongly(struct node *n, struct cop_rpc_req *req)
{
	struct cop_listing_page p = {
		.pages = PAGES + (wrong == OTHER_COUNT), .index = wrong == OTHER_INDEX ? 2 : 1};
	struct cop_attr dir = {.mode = S_IFDIR | 0755, .version = wrong_version};
	struct cop_listing_builder b = {0};
	struct cop_rpc_answer a = {.release = free};
	uint8_t head[9] = {0};
	size_t len;
	void *blob;

	if (n->rank != 0 || cop_rpc_req_op(req) != COP_ASK_PAGE)
		return false;
	dir.version += wrong == OTHER_VERSION ? 2 : 0;
	add_names(&b, &p);
	assert_int_equal(cop_listing_build(&b, &dir, wrong == COMPLETE ? COP_LISTING_COMPLETE : 0,
				 &blob, &len),
		0);
	a.head = head;
	a.head_len = sizeof(head);
	a.body = a.release_arg = blob;
	a.body_len = wrong == NONE ? 0 : wrong == CUT ? len - 8 : len;
	cop_rpc_reply(req, &a);
	return true;
}

static void wrong_pages_of_a_parent_are_not_taken(void **state)
{
	(void)state;
	serve_instead = answer_wrongly;
	for (wrong = RIGHT; wrong <= NONE; wrong++) {
		struct tree *t = open_three();
		uint64_t corrupt;
		struct asked a;

		wrong_version = listed(t, 1);
		ask_fetch(t, 1, page(wrong_version, PAGES, 1), &a);
		run_until_idle(t);
		assert_int_equal(a.rc, 0);
		corrupt = cop_stats_get(&t->node[1].stats, COP_FABRIC_CORRUPT);
		/* After three tries the node asks its own storage. */
		assert_int_equal(corrupt, wrong == RIGHT ? 0 : 3);
		assert_int_equal(cop_origin_fake_counts(t->node[1].origin).pages, wrong != RIGHT);
		assert_int_equal(cop_listing_page_check(a.obj->data, a.obj->len,
					 &(struct cop_listing_page){wrong_version, PAGES, 1}),
			0);
		forget(&a);
		close_tree(t);
	}
	serve_instead = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_are_read_once_and_kept_on_the_way),
		cmocka_unit_test(who_asks_for_a_page_meanwhile_joins_its_flight),
		cmocka_unit_test(a_page_is_asked_for_in_one_request_however_long_it_is),
		cmocka_unit_test(a_page_comes_with_little_memory),
		cmocka_unit_test(a_page_of_another_version_is_stale_and_not_kept),
		cmocka_unit_test(an_improper_request_for_a_page_is_refused),
		cmocka_unit_test(contradicted_pages_are_not_used_any_more_until_they_are_forgotten),
		cmocka_unit_test(a_wrong_claim_about_a_file_does_not_touch_its_page),
		cmocka_unit_test(a_name_that_is_forgotten_takes_every_page_of_its_directory_along),
		cmocka_unit_test(wrong_pages_of_a_parent_are_not_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
