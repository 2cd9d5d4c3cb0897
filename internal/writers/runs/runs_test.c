/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "writers/runs/runs.h"

static void fill(struct cop_runrec *r)
{
	strcpy(r->id, "0123456789abcdef");
	r->status = COP_RUNREC_FAILED;
	r->start_s = 1.5;
	r->end_s = 2.25;
	r->seen_s = 2.5;
	r->beat_s = 30;
	r->nodes = 7;
	cop_runrec_put(r, COP_RUNREC_NAME, "a name");
	cop_runrec_put(r, COP_RUNREC_REASON, "tab\there, line\nthere, \\t is none");
	cop_runrec_pair(r, COP_RUNREC_PARAM, "chunk", "64");
	cop_runrec_pair(r, COP_RUNREC_TAG, "b", "");
	cop_runrec_pair(r, COP_RUNREC_TAG, "a", "\xc3\xa4");
	cop_runrec_pair(r, COP_RUNREC_RESOURCE, "host.name", "n1");
	for (unsigned i = 0; i < 3; i++) {
		assert_true(cop_runrec_next(r));
		cop_runrec_point(r, "x", 10 + i, i / 3.0);
		cop_runrec_point(r, "y", 10 + i, 1e300);
	}
}

static char *text_of(const struct cop_runrec *r, size_t *len)
{
	struct cop_buf out = {0};

	cop_runrec_write(r, &out);
	assert_false(out.failed);
	*len = out.len;
	return out.data;
}

static void what_is_written_is_read(void **state)
{
	struct cop_runrec r = {0}, again = {0};
	struct cop_err err = {0};
	size_t len, len_again;
	char *text, *text_again;

	(void)state;
	fill(&r);
	text = text_of(&r, &len);
	assert_int_equal(cop_runrec_parse(text, len, "f", &again, &err), 0);
	text_again = text_of(&again, &len_again);
	assert_string_equal(text, text_again);
	assert_int_equal(again.status, COP_RUNREC_FAILED);
	assert_string_equal(
		cop_runrec_get(&again, COP_RUNREC_REASON), "tab\there, line\nthere, \\t is none");
	assert_string_equal(cop_runrec_value(&again, COP_RUNREC_TAG, "a"), "\xc3\xa4");
	assert_true(cop_runrec_find(&again, "x")->point[1].value == 1 / 3.0);
	free(text);
	free(text_again);
	cop_runrec_free(&r);
	cop_runrec_free(&again);
}

static void a_text_that_was_cut_is_refused(void **state)
{
	struct cop_runrec r = {0};
	size_t len;
	char *text;

	(void)state;
	fill(&r);
	text = text_of(&r, &len);
	for (size_t cut = 0; cut < len; cut++) {
		struct cop_runrec again = {0};
		struct cop_err err = {0};

		assert_int_equal(cop_runrec_parse(text, cut, "f", &again, &err), -EBADMSG);
		assert_non_null(strstr(err.text, "f: "));
		cop_runrec_free(&again);
	}
	free(text);
	cop_runrec_free(&r);
}

static void refused(const char *text, int code, const char *sentence)
{
	struct cop_runrec r = {0};
	struct cop_err err = {0};

	assert_int_equal(cop_runrec_parse(text, strlen(text), "f", &r, &err), code);
	assert_non_null(strstr(err.text, sentence));
	cop_runrec_free(&r);
}

static void what_is_no_record_is_refused(void **state)
{
	(void)state;
	refused("", -EBADMSG, "is not a run record");
	refused("copper-run 2\n", -EPROTO, "newer copper");
	refused("copper-run 1\nlines\t1\n", -EBADMSG, "no identifier");
	refused("copper-run 1\nid\t0123456789ABCDEF\nlines\t2\n", -EBADMSG, "line 2");
	refused("copper-run 1\nstatus\tLOST\nlines\t2\n", -EBADMSG, "line 2");
	refused("copper-run 1\nnodes\t-1\nlines\t2\n", -EBADMSG, "line 2");
	refused("copper-run 1\nstart\tinf\nlines\t2\n", -EBADMSG, "line 2");
	refused("copper-run 1\nmetric\tx\t1\t1\tnan\nlines\t2\n", -EBADMSG, "line 2");
	refused("copper-run 1\ntag\ta\t\\x\nlines\t2\n", -EBADMSG, "line 2");
	refused("copper-run 1\nid\t0123456789abcdef\nlines\t2\nmore\n", -EBADMSG, "line 3");
}

/* A job that runs for months: 2,000 points are kept, evenly spaced from beginning to end. */
static void long_series_are_thinned(void **state)
{
	struct cop_runrec r = {0};
	const struct cop_runrec_series *s;
	uint64_t steps = 1000000;

	(void)state;
	for (uint64_t i = 1; i <= steps; i++)
		if (cop_runrec_next(&r))
			cop_runrec_point(&r, "x", (double)i, (double)i);
	cop_runrec_last(&r);
	cop_runrec_point(&r, "x", 2e6, 2e6);
	s = cop_runrec_find(&r, "x");
	assert_true(s->n <= COP_RUNREC_POINTS_MAX);
	assert_true(s->n > COP_RUNREC_POINTS_MAX / 3);
	assert_int_equal(s->point[0].step, r.stride);
	for (size_t i = 1; i + 1 < s->n; i++)
		assert_int_equal(s->point[i].step - s->point[i - 1].step, r.stride);
	assert_true(s->point[s->n - 1].value == 2e6);
	cop_runrec_free(&r);
}

static void what_a_run_may_record_is_bounded(void **state)
{
	char *huge = malloc(COP_RUNREC_VALUE_MAX + 100), key[32];
	struct cop_runrec r = {0};

	(void)state;
	assert_non_null(huge);
	memset(huge, 'x', COP_RUNREC_VALUE_MAX + 99);
	huge[COP_RUNREC_VALUE_MAX + 99] = '\0';
	/* A character that would be cut in the middle is dropped. */
	memcpy(huge + COP_RUNREC_VALUE_MAX - 1, "\xc3\xa4", 2);
	cop_runrec_pair(&r, COP_RUNREC_TAG, "k", huge);
	assert_int_equal(
		strlen(cop_runrec_value(&r, COP_RUNREC_TAG, "k")), COP_RUNREC_VALUE_MAX - 1);
	for (unsigned i = 0; i < COP_RUNREC_PAIRS_MAX + 5; i++) {
		snprintf(key, sizeof(key), "k%u", i);
		cop_runrec_pair(&r, COP_RUNREC_PARAM, key, "v");
		cop_runrec_next(&r);
		cop_runrec_point(&r, key, 0, 0);
	}
	cop_runrec_pair(&r, COP_RUNREC_PARAM, "", "v");
	assert_int_equal(r.list[COP_RUNREC_PARAM].n, COP_RUNREC_PAIRS_MAX);
	assert_int_equal(r.series_n, COP_RUNREC_SERIES_MAX);
	cop_runrec_point(&r, "k0", 0, NAN);
	assert_int_equal(cop_runrec_find(&r, "k0")->n, 1);
	assert_false(r.failed);
	free(huge);
	cop_runrec_free(&r);
}

static void a_long_series_is_thinned_evenly_and_keeps_its_end(void **state)
{
	struct cop_runrec r = {.points_max = 8};
	const struct cop_runrec_series *s = NULL;

	(void)state;
	for (r.step = 0; r.step < 1000; r.step++) {
		cop_runrec_point(&r, "k", 1, r.step == 499 ? 5000. : (double)r.step);
		s = cop_runrec_find(&r, "k");
		assert_in_range(s->n, r.step < 8 ? r.step + 1 : 5, 8);
		assert_int_equal(s->points, r.step + 1);
		assert_int_equal(s->point[s->n - 1].step, r.step);
		for (size_t i = 0; i + 1 < s->n; i++)
			assert_int_equal(s->point[i].step, i * s->every);
	}
	assert_true(s->most == 5000);
	cop_runrec_free(&r);
}

static void an_infinite_value_is_one_and_nan_is_none(void **state)
{
	struct cop_runrec r = {.id = "00000000000000ab"}, back = {0};
	struct cop_buf text = {0};
	struct cop_err err = {0};

	(void)state;
	cop_runrec_next(&r);
	cop_runrec_point(&r, "up", 1, INFINITY);
	cop_runrec_point(&r, "down", 1, -INFINITY);
	cop_runrec_point(&r, "none", 1, NAN);
	cop_runrec_write(&r, &text);
	assert_int_equal(cop_runrec_parse(text.data, text.len, "it", &back, &err), 0);
	assert_true(cop_runrec_find(&back, "up")->point[0].value == INFINITY);
	assert_true(cop_runrec_find(&back, "down")->point[0].value == -INFINITY);
	assert_null(cop_runrec_find(&back, "none"));
	cop_buf_free(&text);
	cop_runrec_free(&back);
	cop_runrec_free(&r);
}

static void the_last_value_of_a_key_counts(void **state)
{
	struct cop_runrec r = {0};

	(void)state;
	cop_runrec_pair(&r, COP_RUNREC_TAG, "k", "1");
	cop_runrec_pair(&r, COP_RUNREC_TAG, "k", "2");
	assert_int_equal(r.list[COP_RUNREC_TAG].n, 1);
	assert_string_equal(cop_runrec_value(&r, COP_RUNREC_TAG, "k"), "2");
	assert_null(cop_runrec_value(&r, COP_RUNREC_TAG, "j"));
	cop_runrec_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(a_text_that_was_cut_is_refused),
		cmocka_unit_test(what_is_no_record_is_refused),
		cmocka_unit_test(long_series_are_thinned),
		cmocka_unit_test(what_a_run_may_record_is_bounded),
		cmocka_unit_test(a_long_series_is_thinned_evenly_and_keeps_its_end),
		cmocka_unit_test(an_infinite_value_is_one_and_nan_is_none),
		cmocka_unit_test(the_last_value_of_a_key_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
