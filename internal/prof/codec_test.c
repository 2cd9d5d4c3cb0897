/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "prof/prof_priv.h"

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return *seed >> 20;
}

/* Small, large and the largest numbers, so that sums also run into their limit. */
static uint64_t number(uint64_t *seed)
{
	uint64_t r = next_random(seed);

	return r % 5 == 0 ? 0 : r % 7 == 0 ? UINT64_MAX - r % 3 : r % (1ull << (r % 40));
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
		s->op[op].max_ns = number(seed);
		for (unsigned k = next_random(seed) % 20; k; k--)
			s->op[op].bucket[next_random(seed) % HIST_BUCKETS] = number(seed);
		s->op[op].bucket[HIST_BUCKETS - 1] = number(seed);
	}
	return s;
}

static struct cop_prof_sum *copy(const struct cop_prof_sum *s)
{
	struct cop_prof_sum *c = cop_prof_sum_new();

	assert_non_null(c);
	memcpy(c, s, sizeof(*c));
	return c;
}

static void a_sum_survives_encoding(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (unsigned k = 0; k < 50; k++) {
		struct cop_prof_sum *s = random_sum(&seed), *back;
		struct cop_buf b = {0};

		cop_prof_encode(s, &b);
		assert_false(b.failed);
		assert_true(b.len <= COP_PROF_ENCODED_MAX);
		assert_int_equal(cop_prof_decode(b.data, b.len, &back), 0);
		assert_memory_equal(s, back, sizeof(*s));
		cop_buf_free(&b);
		cop_prof_sum_free(s);
		cop_prof_sum_free(back);
	}
}

static void merging_is_associative_and_commutative(void **state)
{
	uint64_t seed = 2;

	(void)state;
	for (unsigned k = 0; k < 100; k++) {
		struct cop_prof_sum *a = random_sum(&seed), *b = random_sum(&seed), *c = random_sum(&seed);
		struct cop_prof_sum *left = copy(a), *right = copy(b), *turned = copy(c);

		cop_prof_merge(left, b);
		cop_prof_merge(left, c);
		cop_prof_merge(right, c);
		cop_prof_merge(right, a);
		cop_prof_merge(turned, b);
		cop_prof_merge(turned, a);
		assert_memory_equal(left, right, sizeof(*left));
		assert_memory_equal(left, turned, sizeof(*left));
		cop_prof_sum_free(a);
		cop_prof_sum_free(b);
		cop_prof_sum_free(c);
		cop_prof_sum_free(left);
		cop_prof_sum_free(right);
		cop_prof_sum_free(turned);
	}
}

static void a_full_sum_is_within_the_limit(void **state)
{
	struct cop_prof_sum *s = cop_prof_sum_new(), *back;
	struct cop_buf b = {0};

	(void)state;
	assert_non_null(s);
	memset(s, 0xff, sizeof(*s));
	for (unsigned op = 0; op < COP_PROF_OPS; op++)
		s->op[op].outcome[COP_PROF_DONE] = 0;
	cop_prof_encode(s, &b);
	assert_true(b.len <= COP_PROF_ENCODED_MAX);
	assert_int_equal(cop_prof_decode(b.data, b.len, &back), 0);
	assert_memory_equal(s, back, sizeof(*s));
	cop_buf_free(&b);
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
	for (size_t len = 0; len < b.len; len++) {
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

#define HEAD "CPS\1\x28\x80\x09"
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
	static const char one[] = HEAD "\1\0\2\0\0\1\0" /* operation 0 */ "\1\0\0\0\xc8\1\xc8\1\1\x64\1";
	struct cop_prof_sum *s = cop_prof_sum_new();
	struct cop_buf b = {0};

	(void)state;
	assert_non_null(s);
	s->nodes = 1;
	s->ttl[COP_PROF_SERVE] = 2;
	s->op[0] = (struct sum_op){.outcome = {[COP_PROF_HIT] = 1}, .latency_ns = 200, .max_ns = 200};
	s->op[0].bucket[100] = 1;
	cop_prof_encode(s, &b);
	assert_int_equal(b.len, sizeof(one) - 1);
	assert_memory_equal(b.data, one, b.len);
	cop_buf_free(&b);
	cop_prof_sum_free(s);
}

static void another_version_is_told_from_rubbish(void **state)
{
	(void)state;
	assert_int_equal(DECODE("CPS\2\x28\x80\x09\0\0\0\0\0\0"), -EPROTO);
	assert_int_equal(DECODE("CPS\1\x29\x80\x09\0\0\0\0\0\0"), -EPROTO);
	assert_int_equal(DECODE("CPS\1\x28\x81\x09\0\0\0\0\0\0"), -EPROTO);
	assert_int_equal(DECODE("CPT\1\x28\x80\x09\0\0\0\0\0\0"), -EBADMSG);
	assert_int_equal(DECODE(HEAD "\0\0\0\0\0\0"), 0);
}

static void forms_that_encode_never_writes_are_refused(void **state)
{
	(void)state;
	/* a number that is not in its shortest form */
	assert_int_equal(DECODE(HEAD "\x80\0\0\0\0\0\0"), -EBADMSG);
	/* past 64 bits */
	assert_int_equal(DECODE(HEAD "\xff\xff\xff\xff\xff\xff\xff\xff\xff\2\0\0\0\0\0"), -EBADMSG);
	assert_int_equal(DECODE(HEAD "\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\0\0\0\0\0"), 0);
	/* more rows than operations; an operation past the last; an empty row */
	assert_int_equal(DECODE(HEAD "\0\0\0\0\0\x29"), -EBADMSG);
	assert_int_equal(DECODE(HEAD "\0\0\0\0\0\1\x28\1\0\0\0\1\1\0"), -EBADMSG);
	assert_int_equal(DECODE(HEAD "\0\0\0\0\0\1\0\0\0\0\0\0\0\0"), -EBADMSG);
	/* rows twice or backwards */
	assert_int_equal(DECODE(HEAD "\0\0\0\0\0\2\1\1\0\0\0\1\1\0\1\1\0\0\0\1\1\0"), -EBADMSG);
	assert_int_equal(DECODE(HEAD "\0\0\0\0\0\2\2\1\0\0\0\1\1\0\1\1\0\0\0\1\1\0"), -EBADMSG);
	assert_int_equal(DECODE(HEAD "\0\0\0\0\0\2\1\1\0\0\0\1\1\0\2\1\0\0\0\1\1\0"), 0);
	/* a bucket past the last, one skipped past it, an empty one */
	assert_int_equal(DECODE(HEAD "\0\0\0\0\0\1\0\1\0\0\0\1\1\1\x80\x09\1"), -EBADMSG);
	assert_int_equal(DECODE(HEAD "\0\0\0\0\0\1\0\1\0\0\0\1\1\2\xff\x08\1\0\1"), -EBADMSG);
	assert_int_equal(DECODE(HEAD "\0\0\0\0\0\1\0\1\0\0\0\1\1\1\0\0"), -EBADMSG);
	assert_int_equal(DECODE(HEAD "\0\0\0\0\0\1\0\1\0\0\0\1\1\1\xff\x08\1"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cut_sum_is_refused_wherever_it_was_cut),
		cmocka_unit_test(forms_that_encode_never_writes_are_refused),
		cmocka_unit_test(another_version_is_told_from_rubbish),
		cmocka_unit_test(the_bytes_are_those_of_the_description),
		cmocka_unit_test(a_full_sum_is_within_the_limit),
		cmocka_unit_test(a_sum_survives_encoding),
		cmocka_unit_test(merging_is_associative_and_commutative),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
