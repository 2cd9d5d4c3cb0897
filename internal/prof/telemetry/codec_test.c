/* SPDX-License-Identifier: BSD-3-Clause */
#include "prof/telemetry/telemetry_testing.h"

#include <errno.h>

/* A sum that uses every part of the encoding. */
static struct cop_telemetry_sum *full(void)
{
	struct cop_telemetry_sum *s = cop_telemetry_sum_new(5000), *one;

	for (uint32_t r = 0; r < 60; r++) {
		one = a_node(5000, 3 * r, 4, 3);
		one->node[0].start_us = -5;
		add_event(one, r % COP_TELEMETRY_KINDS, -1000 * (int64_t)r, "a detail");
		assert_int_equal(cop_telemetry_merge(s, one), 0);
		cop_telemetry_sum_free(one);
	}
	s->dropped = 12345;
	assert_true(s->nodes > 0 && s->series.nodes > 0 && s->rows.nodes > 0);
	return s;
}

static void what_was_decoded_is_what_was_encoded(void **state)
{
	struct cop_telemetry_sum *s = full(), *again;
	struct cop_buf a = encoded(s), b;

	(void)state;
	assert_int_equal(cop_telemetry_decode(a.data, a.len, &again), 0);
	b = encoded(again);
	assert_int_equal(a.len, b.len);
	assert_memory_equal(a.data, b.data, a.len);
	assert_int_equal(again->node[0].start_us, -5);
	assert_int_equal(again->dropped, 12345);
	assert_int_equal(again->level, 3);
	cop_buf_free(&a);
	cop_buf_free(&b);
	cop_telemetry_sum_free(again);
	cop_telemetry_sum_free(s);
}

static void what_is_cut_is_refused(void **state)
{
	struct cop_telemetry_sum *s = full(), *out;
	struct cop_buf a = encoded(s);

	(void)state;
	for (size_t len = 0; len < a.len; len += 1 + len / 50) {
		void *exact = malloc(len + 1);

		memcpy(exact, a.data, len);
		assert_int_equal(cop_telemetry_decode(exact, len, &out), -EBADMSG);
		assert_null(out);
		free(exact);
	}
	cop_buf_add(&a, "", 1);
	assert_int_equal(cop_telemetry_decode(a.data, a.len, &out), -EBADMSG);
	cop_buf_free(&a);
	cop_telemetry_sum_free(s);
}

/* Accepted bytes can be merged, finished and encoded. */
static void damaged_bytes_do_no_harm(void **state)
{
	struct cop_telemetry_sum *s = full(), *out, *into;
	struct cop_buf a = encoded(s);
	unsigned refused = 0;

	(void)state;
	for (unsigned i = 0; i < 3000; i++) {
		uint64_t dice = cop_hash64(&i, sizeof(i), 1);
		size_t at = dice % (i % 2 ? a.len : 64);
		char before = a.data[at];

		a.data[at] = (char)(dice >> 40);
		if (cop_telemetry_decode(a.data, a.len, &out)) {
			refused++;
		} else {
			struct cop_buf b = {0};

			into = cop_telemetry_sum_like(out);
			cop_telemetry_merge(into, out);
			cop_telemetry_finish(into);
			cop_telemetry_encode(into, &b);
			assert_true(b.len <= COP_TELEMETRY_ENCODED_MAX);
			cop_buf_free(&b);
			cop_telemetry_sum_free(into);
			cop_telemetry_sum_free(out);
		}
		a.data[at] = before;
	}
	assert_true(refused > 100);
	cop_buf_free(&a);
	cop_telemetry_sum_free(s);
}

/* Appends bytes, with numbers where the code expects them. */
static void put_numbers(struct cop_buf *out, const unsigned char *number, size_t n)
{
	static const unsigned char head[] = {'C', 'T', 'M', 1, COP_TELEMETRY_PHASES,
		COP_TELEMETRY_TOTALS, COP_TELEMETRY_METRICS, COP_TELEMETRY_KINDS};

	cop_buf_add(out, head, sizeof(head));
	cop_buf_add(out, number, n);
}

static void numbers_that_would_ask_for_too_much_are_refused(void **state)
{
	/* nodes of the job, level, start, dropped, nodes, ... */
	static const unsigned char none[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
				   level[] = {9, 41, 0, 0, 0, 0, 0, 0, 0, 0},
				   nodes[] = {9, 0, 0, 0, 10, 0, 0, 0, 0, 0},
				   cells[] = {9, 0, 0, 0, 0, 0, 1, 0, 0, 0},
				   folded[] = {9, 0, 0, 0, 0, 10, 0, 0, 0, 0},
				   good[] = {9, 0, 0, 0, 0, 0, 0, 0, 0, 0};
	static const struct {
		const unsigned char *bytes;
		int rc;
	} cases[] = {{none, -EBADMSG}, {level, -EBADMSG}, {nodes, -EBADMSG}, {cells, -EBADMSG},
		{folded, -EBADMSG}, {good, 0}};
	struct cop_telemetry_sum *out;

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(cases); i++) {
		struct cop_buf b = {0};

		put_numbers(&b, cases[i].bytes, sizeof(good));
		assert_int_equal(cop_telemetry_decode(b.data, b.len, &out), cases[i].rc);
		cop_telemetry_sum_free(out);
		cop_buf_free(&b);
	}
}

/* otel's spans add the phases to the start time. */
static void phases_that_cannot_be_added_are_refused(void **state)
{
	(void)state;
	for (unsigned p = 0; p < COP_TELEMETRY_PHASES; p++) {
		struct cop_telemetry_sum *s = a_node(9, 3, 0, 0), *out;
		struct cop_buf a;

		s->node[0].phase_us[p] = (uint64_t)INT64_MAX / 1000;
		a = encoded(s);
		assert_int_equal(cop_telemetry_decode(a.data, a.len, &out), -EBADMSG);
		assert_null(out);
		cop_buf_free(&a);
		cop_telemetry_sum_free(s);
	}
}

/* Each number is valid by itself, but a parent could not pass the sum on. */
static void more_nodes_than_the_job_has_are_refused(void **state)
{
	struct cop_telemetry_sum *s = full(), *out;
	struct folded *folded[] = {&s->series, &s->rows};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(folded); i++) {
		uint32_t before = folded[i]->nodes;
		struct cop_buf a;

		folded[i]->nodes = s->job_nodes;
		a = encoded(s);
		assert_int_equal(cop_telemetry_decode(a.data, a.len, &out), -EBADMSG);
		assert_null(out);
		cop_buf_free(&a);
		folded[i]->nodes = before;
	}
	cop_telemetry_sum_free(s);
}

static void two_sums_with_more_nodes_than_the_job_are_not_merged(void **state)
{
	struct cop_telemetry_sum *s = full(), *other = cop_telemetry_sum_new(5000);

	(void)state;
	assert_int_equal(cop_telemetry_folded_open(&other->rows, NUMBERS), 0);
	other->rows.nodes = 5000 - 60;
	assert_int_equal(cop_telemetry_merge(other, s), 0);
	assert_int_equal(cop_telemetry_sum_nodes(other), 5000);
	cop_telemetry_sum_free(other);

	other = cop_telemetry_sum_new(5000);
	assert_int_equal(cop_telemetry_folded_open(&other->rows, NUMBERS), 0);
	other->rows.nodes = 5000 - 59;
	assert_int_equal(cop_telemetry_merge(other, s), -EINVAL);
	assert_int_equal(cop_telemetry_sum_nodes(other), 5000 - 59);
	cop_telemetry_sum_free(other);
	cop_telemetry_sum_free(s);
}

int main(void)
{
#define T(test) cmocka_unit_test(test)
	const struct CMUnitTest tests[] = {
		T(what_was_decoded_is_what_was_encoded),
		T(what_is_cut_is_refused),
		T(damaged_bytes_do_no_harm),
		T(numbers_that_would_ask_for_too_much_are_refused),
		T(phases_that_cannot_be_added_are_refused),
		T(more_nodes_than_the_job_has_are_refused),
		T(two_sums_with_more_nodes_than_the_job_are_not_merged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
