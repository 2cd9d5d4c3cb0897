/* SPDX-License-Identifier: BSD-3-Clause */
/* Wrong requests of a hostile leaf. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tree/fetch/hostile_testing.h"

static const uint64_t wrong_sizes[] = {0, 1, 17, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK,
	2 * CHUNK + 1, SIZE - 1, SIZE + 1, 3 * CHUNK, 3 * CHUNK + 1, 4 * CHUNK, COP_GIB,
	(uint64_t)INT64_MAX, UINT64_MAX - 1, UINT64_MAX};

static void ask_with_wrong_sizes(struct hostile *h, const struct right *right)
{
	for (size_t i = 0; i < COP_ARRAY_SIZE(wrong_sizes); i++)
		for (uint64_t index = 0; index < 4; index++) {
			struct question q = about_chunk(right, index);

			q.size = wrong_sizes[i];
			ask_wrongly(h, &q);
			run_until_idle(h->t);
		}
}

static void a_chunk_of_the_wrong_size_reaches_nobody_else(void **state)
{
	(void)state;
	play(ask_with_wrong_sizes);
}

/* The others ask for the same chunk while the wrong request is on its way. */
static void ask_and_be_joined(struct hostile *h, const struct right *right)
{
	for (size_t i = 0; i < COP_ARRAY_SIZE(wrong_sizes); i++)
		for (uint64_t index = 0; index < 3; index++) {
			struct question q = about_chunk(right, index);
			struct asked a[2];

			for (uint32_t r = 0; r < 2; r++)
				cop_cache_drop_under(h->t->node[r].cache, "");
			q.size = wrong_sizes[i];
			ask_wrongly(h, &q);
			for (uint32_t r = 0; r < 2; r++)
				ask_fetch(h->t, r, chunk(&right->file, "d/f", index), &a[r]);
			run_until_idle(h->t);
			for (uint32_t r = 0; r < 2; r++) {
				assert_int_equal(a[r].calls, 1);
				assert_int_equal(a[r].rc, 0);
				assert_int_equal(a[r].obj->len,
					cop_fetch_chunk_len(h->t->node[r].fetch, SIZE, index));
				assert_memory_equal(
					a[r].obj->data, right->data + index * CHUNK, a[r].obj->len);
				forget(&a[r]);
			}
		}
}

static void a_concurrent_requester_is_not_affected(void **state)
{
	(void)state;
	play(ask_and_be_joined);
}

static const uint64_t odd[] = {0, 1, 2, 3, 255, 4096, (uint64_t)1 << 32, (uint64_t)1 << 52,
	INT64_MAX, UINT64_MAX / CHUNK, UINT64_MAX};

static void ask_with_odd_numbers(struct hostile *h, const struct right *right)
{
	for (uint8_t op = 0; op <= COP_ASK_LAST + 2; op++)
		for (size_t i = 0; i < COP_ARRAY_SIZE(odd); i++)
			for (unsigned field = 0; field < 7; field++) {
				struct question q = about_chunk(right, 1);

				q.op = op;
				q.path = op == COP_ASK_STATFS || op == COP_ASK_MANIFEST ? ""
					 : op == COP_ASK_CHUNK || op == COP_ASK_HOLES   ? "d/f"
											: "d";
				q.path_len = strlen(q.path);
				*(uint64_t *[]){&q.version, &q.size, &q.index, &q.land_addr,
					&q.land_key, &q.land_len, &q.size}[field] = odd[i];
				q.when = field == 6 ? (uint8_t)odd[i] : 0;
				ask_wrongly(h, &q);
				run_until_idle(h->t);
			}
}

static void any_number_in_a_request_is_harmless(void **state)
{
	(void)state;
	play(ask_with_odd_numbers);
}

static void ask_with_bad_paths(struct hostile *h, const struct right *right)
{
	static const char *const bad[] = {"", "/", "/d", "d/", "d//f", "./d/f", "d/./f", "d/../d/f",
		"..", "../../etc/passwd", "d/other", "d/none", "D/F", "d/f/x", "d/f\0x",
		"\xff\xfe"};
	char longest[4097];

	memset(longest, 'n', sizeof(longest));
	for (uint8_t op = 1; op <= COP_ASK_LAST; op++)
		for (size_t i = 0; i <= COP_ARRAY_SIZE(bad); i++) {
			struct question q = about_chunk(right, 0);

			q.op = op;
			q.path = i < COP_ARRAY_SIZE(bad) ? bad[i] : longest;
			q.path_len = i == 14                   ? 5
				     : i < COP_ARRAY_SIZE(bad) ? strlen(q.path)
							       : sizeof(longest);
			ask_wrongly(h, &q);
			q.size = q.index = 0;
			ask_wrongly(h, &q);
			q.version = 0;
			ask_wrongly(h, &q);
			run_until_idle(h->t);
		}
}

static void any_path_in_a_request_is_harmless(void **state)
{
	(void)state;
	play(ask_with_bad_paths);
}

/* A request for a version that never existed makes no node forget what it knows. */
static void ask_for_what_never_was(struct hostile *h, const struct right *right)
{
	struct tree *t = h->t;
	size_t before;

	check_all(t, right);
	before = cop_origin_fake_counts(t->node[0].origin).lists;
	for (uint64_t version = 1; version < 40; version++) {
		struct question q = about_chunk(right, 0);

		q.version = version;
		ask_wrongly(h, &q);
		q.op = COP_ASK_HOLES;
		q.size = 0;
		ask_wrongly(h, &q);
		q.op = COP_ASK_CHECK;
		q.path_len = 1;
		ask_wrongly(h, &q);
		q = about_chunk(right, 0);
		q.size = version;
		ask_wrongly(h, &q);
		run_until_idle(t);
	}
	for (uint32_t r = 0; r < 2; r++) {
		struct cop_obj *obj = cop_fetch_peek(
			t->node[r].fetch, &(struct cop_ask){.kind = COP_ASK_LISTING, .path = "d"});

		assert_non_null(obj);
		cop_obj_put(t->node[r].cache, obj);
	}
	assert_int_equal(cop_origin_fake_counts(t->node[0].origin).lists, before);
}

static void a_wrong_request_makes_no_node_forget(void **state)
{
	(void)state;
	play(ask_for_what_never_was);
}

/* Pages of a directory as it is, of one as it never was, and of something that is no directory; the
 * others ask for the same pages meanwhile. */
static void ask_for_wrong_pages(struct hostile *h, const struct right *right)
{
	static const char *const paths[] = {"d", "", "d/f", "d/none", "../d"};
	struct asked a;

	for (size_t p = 0; p < COP_ARRAY_SIZE(paths); p++)
		for (size_t i = 0; i < COP_ARRAY_SIZE(odd); i++)
			for (unsigned field = 0; field < 4; field++) {
				struct question q = {.op = COP_ASK_PAGE,
					.version = right->dir.version,
					.size = 3,
					.index = 1,
					.path = paths[p],
					.path_len = strlen(paths[p])};

				*(uint64_t *[]){&q.version, &q.size, &q.index, &q.land_len}[field] =
					odd[i];
				ask_wrongly(h, &q);
				ask_fetch(h->t, 1, page(right->dir.version, 3, 1), &a);
				run_until_idle(h->t);
				assert_int_equal(a.calls, 1);
				assert_int_equal(a.rc, 0);
				forget(&a);
				for (uint32_t r = 0; r < 2 && i % 2; r++)
					cop_cache_drop_under(h->t->node[r].cache, "");
			}
}

static void a_wrong_request_for_a_page_reaches_nobody_else(void **state)
{
	(void)state;
	play(ask_for_wrong_pages);
}

/* Landing buffers that do not exist or are too small, and bodies that nobody pulls. */
static void ask_to_land_elsewhere(struct hostile *h, const struct right *right)
{
	for (uint64_t index = 0; index < 3; index++)
		for (unsigned i = 0; i < 6; i++) {
			struct question q = about_chunk(right, index);

			q.land_addr = h->addr + (i == 1          ? sizeof(h->landing) - 1
							: i == 2 ? (uint64_t)-1
								 : 0);
			q.land_key = h->key + (i == 3);
			q.land_len = i == 4 ? 1 : i == 5 ? UINT64_MAX : CHUNK;
			ask_wrongly(h, &q);
			run_until_idle(h->t);
		}
	assert_true(h->replies > 0);
}

static void bad_landing_buffers_and_unpulled_bodies_are_harmless(void **state)
{
	(void)state;
	play(ask_to_land_elsewhere);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_chunk_of_the_wrong_size_reaches_nobody_else),
		cmocka_unit_test(a_concurrent_requester_is_not_affected),
		cmocka_unit_test(any_number_in_a_request_is_harmless),
		cmocka_unit_test(any_path_in_a_request_is_harmless),
		cmocka_unit_test(a_wrong_request_makes_no_node_forget),
		cmocka_unit_test(a_wrong_request_for_a_page_reaches_nobody_else),
		cmocka_unit_test(bad_landing_buffers_and_unpulled_bodies_are_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
