/* SPDX-License-Identifier: BSD-3-Clause */
/* Wrong requests of a hostile leaf that are about the first bytes of files. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tree/fetch/hostile_testing.h"

/* Requests for an entry with its first bytes, or for such bytes, that nobody would send: with each
 * kind, each urgency and each path, while the others ask for the same. */
static void ask_for_first_bytes(struct hostile *h, const struct right *right)
{
	static const char *const paths[] = {"d/other", "d/f", "d", "", "d/none", "../d/other"};
	struct asked a;

	for (uint8_t op = 1; op <= COP_ASK_LAST; op++)
		for (size_t p = 0; p < COP_ARRAY_SIZE(paths); p++)
			for (uint8_t when = 0; when < 8; when++) {
				struct question q = about_chunk(right, when % 2);

				q.op = op;
				q.when = ASK_FIRST | when;
				q.path = paths[p];
				q.path_len = strlen(paths[p]);
				if (op != COP_ASK_CHUNK)
					q.version = q.size = q.index = 0;
				ask_wrongly(h, &q);
				ask_fetch(h->t, 1,
					(struct cop_ask){.kind = COP_ASK_ENTRY, .path = "d/other"},
					&a);
				run_until_idle(h->t);
				assert_int_equal(a.calls, 1);
				assert_int_equal(a.rc, 0);
				forget(&a);
				for (uint32_t r = 0; r < 2 && when % 2; r++)
					cop_cache_drop_under(h->t->node[r].cache, "");
			}
}

static void a_request_for_first_bytes_is_one_for_what_it_names(void **state)
{
	(void)state;
	play(ask_for_first_bytes);
}

/* Only two kinds have them, and a request that raises a priority asks for nothing. */
static void ask_what_has_no_first_bytes(struct hostile *h, const struct right *right)
{
	size_t jobs = origin_jobs(h->t);

	for (uint8_t op = 1; op <= COP_ASK_LAST; op++)
		for (uint8_t when = 0; when < 4; when++) {
			struct question q = about_chunk(right, 0);

			q.op = op;
			q.when = ASK_FIRST | when;
			if (op == COP_ASK_ENTRY ? when <= ASK_BACKGROUND
						: op == COP_ASK_CHUNK && when == ASK_NOW)
				continue;
			if (op != COP_ASK_CHUNK)
				q.version = q.size = q.index = 0;
			ask_wrongly(h, &q);
			run_until_idle(h->t);
		}
	assert_int_equal(origin_jobs(h->t), jobs);
}

static void what_has_no_first_bytes_is_refused(void **state)
{
	(void)state;
	play(ask_what_has_no_first_bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_for_first_bytes_is_one_for_what_it_names),
		cmocka_unit_test(what_has_no_first_bytes_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
