/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "prof/profile/profile_priv.h"

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return *seed >> 20;
}

/* Returns small, large and maximum numbers, so that sums saturate, too. */
static uint64_t number(uint64_t *seed)
{
	uint64_t r = next_random(seed);

	return r % 5 == 0 ? 0 : r % 7 == 0 ? UINT64_MAX - r % 3 : r % (1ull << (r % 40));
}

/* Adds a few of 40 names with arbitrary bytes; one is empty, and one has the maximum length. */
static void random_paths(uint64_t *seed, struct cop_prof_sum *s)
{
	for (unsigned c = 0; c < CATEGORIES; c++) {
		struct rows rows = {0};

		for (unsigned k = 0; k < 40; k++) {
			struct row row = {.len = k < 2 ? k * PATH_LEN_MAX : 4,
				.own = malloc(PATH_LEN_MAX),
				.events = 1};

			if (next_random(seed) % 3) {
				free(row.own);
				continue;
			}
			assert_non_null(row.own);
			memset(row.own, 0xf0, PATH_LEN_MAX);
			memcpy(row.own, (char[]){'/', (char)(k * 7), '\n', (char)(k % 3)}, 4);
			row.path = row.own;
			row.count[k % SLOTS] = 1 + number(seed) % 1000000;
			row.weight = row.count[k % SLOTS] / 2;
			assert_int_equal(cop_prof_rows_push(&rows, &row), 0);
			cop_pathclass_add(
				&s->classes, c == CATEGORY_TTL, row.path, row.len, number(seed));
		}
		assert_int_equal(cop_prof_sketch_of(&rows, number(seed) % 100, &s->top[c]), 0);
		cop_prof_rows_free(&rows);
	}
}

static struct cop_prof_sum *random_sum(uint64_t *seed)
{
	struct cop_prof_sum *s = cop_prof_sum_new();

	assert_non_null(s);
	s->nodes = number(seed);
	for (unsigned e = 0; e < COP_PROF_TTLS; e++)
		s->ttl[e] = number(seed);
	for (unsigned op = 0; op < COP_PROF_OPS; op++) {
		if (next_random(seed) % 3)
			continue;
		for (unsigned o = COP_PROF_HIT; o < COP_PROF_OUTCOMES; o++)
			s->op[op].outcome[o] = number(seed);
		s->op[op].latency_ns = number(seed);
		s->op[op].latency_us = number(seed);
		s->op[op].max_ns = number(seed);
		for (unsigned k = next_random(seed) % 20; k; k--)
			s->op[op].bucket[next_random(seed) % HIST_BUCKETS] = number(seed);
		s->op[op].bucket[HIST_BUCKETS - 1] = number(seed);
	}
	s->latency_us = number(seed);
	s->top_n = number(seed) % (COP_PROF_TOP_N_MAX + 1);
	random_paths(seed, s);
	s->whole = number(seed);
	s->shares = next_random(seed) % 5;
	s->share = s->shares ? calloc(s->shares, sizeof(*s->share)) : NULL;
	for (size_t i = 0; i < s->shares; i++) {
		s->share[i].rank = (uint32_t)(1 + next_random(seed) % 3);
		s->share[i].rank += i ? s->share[i - 1].rank : 0;
		for (unsigned v = 0; v < COP_PROF_SHARES; v++)
			s->share[i].value[v] = number(seed);
	}
	return s;
}

static void check_equal(const struct cop_prof_sum *a, const struct cop_prof_sum *b)
{
	struct cop_buf x = {0}, y = {0};

	cop_prof_encode(a, &x);
	cop_prof_encode(b, &y);
	assert_false(x.failed || y.failed);
	assert_true(x.len <= COP_PROF_ENCODED_MAX);
	assert_int_equal(x.len, y.len);
	assert_memory_equal(x.data, y.data, x.len);
	cop_buf_free(&x);
	cop_buf_free(&y);
}

static struct cop_prof_sum *copy(const struct cop_prof_sum *s)
{
	struct cop_prof_sum *c;
	struct cop_buf b = {0};

	cop_prof_encode(s, &b);
	assert_int_equal(cop_prof_decode(b.data, b.len, &c), 0);
	cop_buf_free(&b);
	return c;
}

static void a_sum_survives_encoding(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (unsigned k = 0; k < 50; k++) {
		struct cop_prof_sum *s = random_sum(&seed), *back = copy(s);

		check_equal(s, back);
		assert_memory_equal(s->op, back->op, sizeof(s->op));
		assert_memory_equal(s->ttl, back->ttl, sizeof(s->ttl));
		assert_true(s->nodes == back->nodes && s->latency_us == back->latency_us);
		assert_int_equal(s->shares, back->shares);
		if (s->shares)
			assert_memory_equal(s->share, back->share, s->shares * sizeof(*s->share));
		for (unsigned c = 0; c < CATEGORIES; c++) {
			assert_true(s->top[c].n == back->top[c].n &&
				    s->top[c].error == back->top[c].error);
			assert_memory_equal(s->top[c].text, back->top[c].text, s->top[c].text_len);
			assert_memory_equal(s->top[c].row, back->top[c].row,
				s->top[c].n * sizeof(*s->top[c].row));
		}
		for (unsigned i = 0; i < COP_PATHCLASSES; i++) {
			assert_true(s->classes.of[i].entries == back->classes.of[i].entries);
			assert_true(s->classes.of[i].events == back->classes.of[i].events);
			assert_true(s->classes.of[i].most == back->classes.of[i].most);
			assert_true(
				s->classes.of[i].example_len == back->classes.of[i].example_len);
		}
		cop_prof_sum_free(s);
		cop_prof_sum_free(back);
	}
}

static void merging_is_associative_and_commutative(void **state)
{
	uint64_t seed = 2;

	(void)state;
	for (unsigned k = 0; k < 50; k++) {
		struct cop_prof_sum *a = random_sum(&seed), *b = random_sum(&seed),
				    *c = random_sum(&seed);
		struct cop_prof_sum *left = copy(a), *right = copy(b), *turned = copy(c);

		assert_int_equal(cop_prof_merge(left, b), 0);
		assert_int_equal(cop_prof_merge(left, c), 0);
		assert_int_equal(cop_prof_merge(right, c), 0);
		assert_int_equal(cop_prof_merge(right, a), 0);
		assert_int_equal(cop_prof_merge(turned, b), 0);
		assert_int_equal(cop_prof_merge(turned, a), 0);
		check_equal(left, right);
		check_equal(left, turned);
		cop_prof_sum_free(a);
		cop_prof_sum_free(b);
		cop_prof_sum_free(c);
		cop_prof_sum_free(left);
		cop_prof_sum_free(right);
		cop_prof_sum_free(turned);
	}
}

/* Adds as many rows as possible, with names that have no common prefix. */
static void fill_sketch(struct sketch *s)
{
	struct rows rows = {0};
	uint64_t seed = 5;

	for (unsigned k = 0; k < SKETCH_ROWS; k++) {
		struct row row = {.len = SKETCH_BYTES / SKETCH_ROWS,
			.own = malloc(SKETCH_BYTES / SKETCH_ROWS)};

		assert_non_null(row.own);
		for (unsigned i = 0; i < row.len; i++)
			row.own[i] = (char)next_random(&seed);
		memcpy(row.own, (char[]){(char)(k >> 4), (char)(k << 4)}, 2);
		row.path = row.own;
		row.events = row.weight = UINT64_MAX;
		memset(row.count, 0xff, sizeof(row.count));
		assert_int_equal(cop_prof_rows_push(&rows, &row), 0);
	}
	assert_int_equal(cop_prof_sketch_of(&rows, UINT64_MAX, s), 0);
	assert_int_equal(s->n, SKETCH_ROWS);
	cop_prof_rows_free(&rows);
}

static void a_full_sum_is_within_the_limit(void **state)
{
	struct cop_prof_sum *s = cop_prof_sum_new(), *back;

	(void)state;
	assert_non_null(s);
	s->nodes = UINT64_MAX;
	memset(s->ttl, 0xff, sizeof(s->ttl));
	memset(s->op, 0xff, sizeof(s->op));
	for (unsigned op = 0; op < COP_PROF_OPS; op++)
		s->op[op].outcome[COP_PROF_DONE] = 0;
	for (unsigned c = 0; c < CATEGORIES; c++)
		fill_sketch(&s->top[c]);
	back = copy(s);
	check_equal(s, back);
	cop_prof_sum_free(s);
	cop_prof_sum_free(back);
}

static void a_cut_sum_is_refused_wherever_it_was_cut(void **state)
{
	uint64_t seed = 3;
	struct cop_prof_sum *s = random_sum(&seed), *back = NULL;
	struct cop_buf b = {0};

	(void)state;
	cop_prof_encode(s, &b);
	for (size_t len = 0; len < b.len; len += 1 + len / 64) {
		char *exact = malloc(len ? len : 1);

		assert_non_null(exact);
		memcpy(exact, b.data, len);
		assert_int_equal(cop_prof_decode(exact, len, &back), -EBADMSG);
		free(exact);
	}
	cop_buf_add(&b, "", 1);
	assert_int_equal(cop_prof_decode(b.data, b.len, &back), -EBADMSG);
	assert_null(back);
	cop_buf_free(&b);
	cop_prof_sum_free(s);
}

#define HEAD "CPS\3\x28\x80\x09"
_Static_assert(COP_PROF_OPS == 0x28 && HIST_BUCKETS == 9 << 7, "HEAD is what this build writes");

static int decode(const char *bytes, size_t len)
{
	struct cop_prof_sum *s = NULL;
	int rc = cop_prof_decode(bytes, len, &s);

	assert_true((rc == 0) == (s != NULL));
	cop_prof_sum_free(s);
	return rc;
}
#define DECODE(bytes) decode(bytes, sizeof(bytes) - 1)

static void the_bytes_are_those_of_the_description(void **state)
{
	static const char one[] =
		HEAD "\1\0\2\0\0\x3\x14\1\0" /* operation 0 */ "\1\0\0\0\xc8\1\x3\xc8\1\1\x64\1"
		     /* metadata */ "\7\2\0\2ab\5\6\0\0\0\1\1c\1\0\2\0\0"
		     "\0\0\0\0\0\0"
		     /* classes */ "\1\x0b\1\6\6\2ab"
		     /* rank 7, no node with every path */ "\1\7\1\0\0\2\3\0";
	struct cop_prof_sum *s = cop_prof_sum_new();
	struct row row[] = {{.path = "ac", .len = 2, .events = 2, .weight = 1, .count = {0, 2}},
		{.path = "ab", .len = 2, .events = 6, .weight = 5, .count = {6}}};
	struct rows rows = {.row = row, .n = 2};
	struct cop_buf b = {0};

	(void)state;
	assert_non_null(s);
	s->nodes = 1;
	s->latency_us = 3;
	s->top_n = 20;
	s->ttl[COP_PROF_SERVE] = 2;
	s->op[0] = (struct sum_op){
		.outcome = {[COP_PROF_HIT] = 1}, .latency_ns = 200, .latency_us = 3, .max_ns = 200};
	s->op[0].bucket[100] = 1;
	assert_int_equal(cop_prof_sketch_of(&rows, 7, &s->top[0]), 0);
	assert_int_equal(cop_pathclass_add(&s->classes, false, "ab", 2, 6), 0);
	s->share = malloc(sizeof(*s->share));
	assert_non_null(s->share);
	*s->share = (struct cop_prof_shares){.rank = 7, .value = {1, 0, 0, 2, 3}};
	s->shares = 1;
	cop_prof_encode(s, &b);
	assert_int_equal(b.len, sizeof(one) - 1);
	assert_memory_equal(b.data, one, b.len);
	cop_buf_free(&b);
	cop_prof_sum_free(s);
}

#define ZERO "\0\0\0\0\0\0\0" /* nodes, absences, latency, rows asked for */
#define NO_PATHS "\0\0\0\0\0\0\0\0"
#define TAIL NO_PATHS "\0\0\0"

static void another_version_is_distinguished_from_garbage(void **state)
{
	(void)state;
	assert_int_equal(DECODE("CPS\1\x28\x80\x09" ZERO "\0" TAIL), -EPROTO);
	assert_int_equal(DECODE("CPS\3\x29\x80\x09" ZERO "\0" TAIL), -EPROTO);
	assert_int_equal(DECODE("CPS\3\x28\x81\x09" ZERO "\0" TAIL), -EPROTO);
	assert_int_equal(DECODE("CPT\2\x28\x80\x09" ZERO "\0" TAIL), -EBADMSG);
	assert_int_equal(DECODE(HEAD ZERO "\0" TAIL), 0);
}

static void forms_that_encode_never_writes_are_refused(void **state)
{
	(void)state;
	/* a number not in its shortest form */
	assert_int_equal(DECODE(HEAD "\x80\0\0\0\0\0\0\0\0" TAIL), -EBADMSG);
	/* a number above 64 bits */
	assert_int_equal(
		DECODE(HEAD "\xff\xff\xff\xff\xff\xff\xff\xff\xff\2\0\0\0\0\0\0\0" TAIL), -EBADMSG);
	assert_int_equal(
		DECODE(HEAD "\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\0\0\0\0\0\0\0" TAIL), 0);
	/* more rows than operations; an operation beyond the last; an empty row */
	assert_int_equal(DECODE(HEAD ZERO "\x29" TAIL), -EBADMSG);
	assert_int_equal(DECODE(HEAD ZERO "\1\x28\1\0\0\0\1\1\1\0" TAIL), -EBADMSG);
	assert_int_equal(DECODE(HEAD ZERO "\1\0\0\0\0\0\0\0\0\0" TAIL), -EBADMSG);
	/* duplicate rows; rows in descending order */
	assert_int_equal(DECODE(HEAD ZERO "\2\1\1\0\0\0\1\1\1\0\1\1\0\0\0\1\1\1\0" TAIL), -EBADMSG);
	assert_int_equal(DECODE(HEAD ZERO "\2\2\1\0\0\0\1\1\1\0\1\1\0\0\0\1\1\1\0" TAIL), -EBADMSG);
	assert_int_equal(DECODE(HEAD ZERO "\2\1\1\0\0\0\1\1\1\0\2\1\0\0\0\1\1\1\0" TAIL), 0);
	/* a bucket beyond the last; a skip beyond the last; an empty bucket */
	assert_int_equal(DECODE(HEAD ZERO "\1\0\1\0\0\0\1\1\1\1\x80\x09\1" TAIL), -EBADMSG);
	assert_int_equal(DECODE(HEAD ZERO "\1\0\1\0\0\0\1\1\1\2\xff\x08\1\0\1" TAIL), -EBADMSG);
	assert_int_equal(DECODE(HEAD ZERO "\1\0\1\0\0\0\1\1\1\1\0\0" TAIL), -EBADMSG);
	assert_int_equal(DECODE(HEAD ZERO "\1\0\1\0\0\0\1\1\1\1\xff\x08\1" TAIL), 0);
}

static void paths_that_encode_never_writes_are_refused(void **state)
{
#define PATHS(n, rows)                                                                             \
	HEAD ZERO "\0"                                                                             \
		  "\0" n rows "\0\0\0\0\0\0"                                                       \
		  "\0\0\0"
	(void)state;
	assert_int_equal(DECODE(PATHS("\1", "\0\1a\1\1\0\0\0")), 0);
	assert_int_equal(DECODE(PATHS("\2", "\0\1a\1\1\0\0\0"
					    "\1\1a\1\1\0\0\0")),
		0);
	assert_int_equal(DECODE(PATHS("\2", "\0\0\1\1\0\0\0"
					    "\0\1a\1\1\0\0\0")),
		0);
	/* no events; more weight than events */
	assert_int_equal(DECODE(PATHS("\1", "\0\1a\0\0\0\0\0")), -EBADMSG);
	assert_int_equal(DECODE(PATHS("\1", "\0\1a\2\1\0\0\0")), -EBADMSG);
	/* more shared bytes than possible for the first name, or than the previous name has */
	assert_int_equal(DECODE(PATHS("\1", "\1\1a\1\1\0\0\0")), -EBADMSG);
	assert_int_equal(DECODE(PATHS("\2", "\0\1a\1\1\0\0\0"
					    "\2\1a\1\1\0\0\0")),
		-EBADMSG);
	/* the same name twice; a smaller name; a name that shares more than it says */
	assert_int_equal(DECODE(PATHS("\2", "\0\1b\1\1\0\0\0"
					    "\1\0\1\1\0\0\0")),
		-EBADMSG);
	assert_int_equal(DECODE(PATHS("\2", "\0\1b\1\1\0\0\0"
					    "\0\1a\1\1\0\0\0")),
		-EBADMSG);
	assert_int_equal(DECODE(PATHS("\2", "\0\1b\1\1\0\0\0"
					    "\0\2ba\1\1\0\0\0")),
		-EBADMSG);
	/* more rows than allowed; more rows than bytes; a name beyond the end */
	assert_int_equal(DECODE(PATHS("\x81\x20", "\0\1a\1\1\0\0\0")), -EBADMSG);
	assert_int_equal(DECODE(PATHS("\x80\x20", "\0\1a\1\1\0\0\0")), -EBADMSG);
	assert_int_equal(DECODE(PATHS("\1", "\0\xff\3a\1\1\0\0\0")), -EBADMSG);
#undef PATHS
}

static void values_by_rank_that_encode_never_writes_are_refused(void **state)
{
#define SHARES(n, rows) HEAD ZERO "\0" NO_PATHS "\0" n rows "\1"
	(void)state;
	assert_int_equal(DECODE(SHARES("\1", "\7\1\1\1\1\1")), 0);
	assert_int_equal(DECODE(SHARES("\2", "\7\1\1\1\1\1\0\1\1\1\1\1")), 0);
	/* more rows than bytes; a rank above 32 bits; trailing bytes */
	assert_int_equal(DECODE(SHARES("\3", "\7\1\1\1\1\1")), -EBADMSG);
	assert_int_equal(
		DECODE(SHARES("\2", "\7\1\1\1\1\1\xff\xff\xff\xff\xf\1\1\1\1\1")), -EBADMSG);
	assert_int_equal(DECODE(SHARES("\1", "\7\1\1\1\1\1\1")), -EBADMSG);
#undef SHARES
}

static void classes_that_encode_never_writes_are_refused(void **state)
{
	(void)state;
	assert_int_equal(DECODE(HEAD ZERO "\0" NO_PATHS "\1\3\1\1\1\1a\0\0"), 0);
	assert_int_equal(DECODE(HEAD ZERO "\0" NO_PATHS "\2\3\1\1\1\1a\4\1\1\1\0\0\0"), 0);
	assert_int_equal(DECODE(HEAD ZERO "\0" NO_PATHS "\1\x0c\1\1\1\1a"), -EBADMSG);
	assert_int_equal(DECODE(HEAD ZERO "\0" NO_PATHS "\2\3\1\1\1\1a\3\1\1\1\1a"), -EBADMSG);
	assert_int_equal(DECODE(HEAD ZERO "\0" NO_PATHS "\2\3\1\1\1\1a\2\1\1\1\1a"), -EBADMSG);
	assert_int_equal(DECODE(HEAD ZERO "\0" NO_PATHS "\1\3\1\1\1\2a"), -EBADMSG);
	assert_int_equal(DECODE(HEAD ZERO "\0" NO_PATHS "\x0d"), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cut_sum_is_refused_wherever_it_was_cut),
		cmocka_unit_test(forms_that_encode_never_writes_are_refused),
		cmocka_unit_test(paths_that_encode_never_writes_are_refused),
		cmocka_unit_test(values_by_rank_that_encode_never_writes_are_refused),
		cmocka_unit_test(classes_that_encode_never_writes_are_refused),
		cmocka_unit_test(another_version_is_distinguished_from_garbage),
		cmocka_unit_test(the_bytes_are_those_of_the_description),
		cmocka_unit_test(a_full_sum_is_within_the_limit),
		cmocka_unit_test(a_sum_survives_encoding),
		cmocka_unit_test(merging_is_associative_and_commutative),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
