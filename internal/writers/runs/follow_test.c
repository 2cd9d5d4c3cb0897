/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "writers/runs/runs.h"

/* A fake tree, which answers at once, later from another call, or not at all. */
struct tree {
	_Atomic unsigned asked;
	bool refuses, silent, waits;
	_Atomic bool ending;
	uint32_t nodes;
	cop_op_done *done; /* the request waiting for an answer */
	void *arg;
};

static bool ask(void *ctx, cop_op_done *done, void *arg)
{
	struct tree *t = ctx;
	struct cop_op_sum sum = {.nodes = t->nodes, .missing = 1};

	if (t->refuses) {
		atomic_fetch_add(&t->asked, 1);
		return false;
	}
	t->done = done;
	t->arg = arg;
	atomic_fetch_add(&t->asked, 1);
	if (t->waits)
		return true;
	cop_stats_add(&sum.stats, COP_FUSE_READ, 7);
	if (t->silent)
		sum = (struct cop_op_sum){0};
	done(arg, &sum);
	return true;
}

static bool is_ending(void *ctx)
{
	struct tree *t = ctx;

	return t->ending;
}

/* A follower that counts the calls it gets. */
struct diary {
	_Atomic unsigned begins, rounds, beats, ends, totals, endings;
	_Atomic uint64_t reads;
	bool fails;
	char reason[32];
	bool *freed;
};

static void begin(void *ctx, uint64_t deadline_ms, struct cop_err *err)
{
	struct diary *d = ctx;

	assert_true(deadline_ms > cop_now_ms());
	atomic_fetch_add(&d->begins, 1);
	if (d->fails)
		cop_err_set(err, ENOSPC, "no room");
}

static void on_round(void *ctx, const struct cop_follow_numbers *n)
{
	struct diary *d = ctx;

	atomic_store(&d->reads, cop_stats_get(&n->stats, COP_FUSE_READ));
	atomic_fetch_add(&d->rounds, 1);
}

static void beat(void *ctx, uint64_t deadline_ms)
{
	struct diary *d = ctx;

	(void)deadline_ms;
	atomic_fetch_add(&d->beats, 1);
}

static void end(void *ctx, uint64_t deadline_ms)
{
	struct diary *d = ctx;

	(void)deadline_ms;
	assert_int_equal(d->endings, 1);
	atomic_fetch_add(&d->ends, 1);
}

static void totals(void *ctx, const struct cop_op_sum *sum)
{
	struct diary *d = ctx;

	(void)sum;
	atomic_fetch_add(&d->totals, 1);
}

static void ending(void *ctx, const struct cop_follow_end *how)
{
	struct diary *d = ctx;

	strcpy(d->reason, how->reason);
	atomic_fetch_add(&d->endings, 1);
}

static void note_free(void *ctx)
{
	struct diary *d = ctx;

	*d->freed = true;
}

static const struct cop_follower_ops ops = {.thread = "diary",
	.beats = 2,
	.begin = begin,
	.round = on_round,
	.beat = beat,
	.end = end,
	.totals = totals,
	.ending = ending,
	.free = note_free};

static struct cop_follow *new_follow(struct tree *t, uint32_t interval_ms)
{
	struct cop_follow_conf conf = {
		.interval_ms = interval_ms, .ask = ask, .is_ending = is_ending, .ctx = t};
	struct cop_follow *f = cop_follow_new(&conf);

	assert_non_null(f);
	return f;
}

static void await(_Atomic unsigned *count, unsigned least)
{
	while (atomic_load(count) < least)
		usleep(1000);
}

static void stop(struct cop_follow *f)
{
	struct cop_follow_end how = {.reason = "done"};

	cop_follow_end(f, &how);
	cop_follow_free(f);
}

static void a_follower_hears_of_rounds_beats_and_the_end(void **state)
{
	struct tree t = {.nodes = 3};
	struct cop_follow *f = new_follow(&t, 10);
	bool freed = false;
	struct diary d = {.freed = &freed};
	struct cop_op_sum sum = {.nodes = 3};
	struct cop_err err;

	(void)state;
	assert_int_equal(cop_follow_add(f, &ops, &d), 0);
	assert_true(cop_follow_is_good(f, &err));
	await(&d.rounds, 3);
	await(&d.beats, 2);
	assert_int_equal(d.reads, 7);
	cop_follow_totals(f, &sum);
	cop_follow_totals(f, &sum);
	stop(f);
	assert_true(freed);
	assert_int_equal(d.begins, 1);
	assert_int_equal(d.totals, 1);
	assert_int_equal(d.ends, 1);
	assert_string_equal(d.reason, "done");
}

/* With an hour between requests, the second follower gets the answer to the first one's request. */
static void two_followers_share_a_question(void **state)
{
	struct tree t = {.nodes = 2};
	struct cop_follow *f = new_follow(&t, 3600 * 1000);
	bool freed[2] = {false, false};
	struct diary d[2] = {{.freed = &freed[0]}, {.freed = &freed[1]}};
	struct cop_err err;

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(cop_follow_add(f, &ops, &d[i]), 0);
	assert_true(cop_follow_is_good(f, &err));
	await(&d[0].rounds, 1);
	await(&d[1].rounds, 1);
	assert_int_equal(t.asked, 1);
	stop(f);
	assert_true(freed[0] && freed[1]);
}

/* Starts one follower, whose first request is in flight. */
static struct cop_follow *follow_first_question(
	struct tree *t, struct diary *d, uint32_t interval_ms)
{
	struct cop_follow *f = new_follow(t, interval_ms);
	struct cop_err err;

	assert_int_equal(cop_follow_add(f, &ops, d), 0);
	assert_true(cop_follow_is_good(f, &err));
	await(&t->asked, 1);
	return f;
}

/* A stopping node answers a request that was in flight when it took its sums. */
static void an_answer_after_the_totals_is_no_round(void **state)
{
	struct tree t = {.nodes = 1, .waits = true};
	bool freed = false;
	struct diary d = {.freed = &freed};
	struct cop_follow *f = follow_first_question(&t, &d, 10);
	struct cop_op_sum sum = {.nodes = 1}, late = {.nodes = 1};

	(void)state;
	cop_follow_totals(f, &sum);
	t.done(t.arg, &late);
	await(&t.asked, 2); /* it keeps asking */
	t.done(t.arg, &late);
	stop(f);
	assert_true(freed);
	assert_int_equal(d.rounds, 0);
	assert_int_equal(d.totals, 1);
}

/* Nodes take their sums at a stop before the totals arrive. */
static void an_answer_while_the_totals_are_counted_is_no_round(void **state)
{
	struct tree t = {.nodes = 1, .waits = true};
	bool freed = false;
	struct diary d = {.freed = &freed};
	struct cop_follow *f = follow_first_question(&t, &d, 10);
	struct cop_op_sum sum = {.nodes = 1};

	(void)state;
	t.done(t.arg, &sum);
	await(&d.rounds, 1);
	await(&t.asked, 2);
	t.ending = true;
	t.done(t.arg, &sum);
	await(&t.asked, 3);
	cop_follow_totals(f, &sum);
	t.done(t.arg, &sum);
	stop(f);
	assert_true(freed);
	assert_int_equal(d.rounds, 1);
	assert_int_equal(d.totals, 1);
}

static void an_answer_is_told_once_however_late_it_comes(void **state)
{
	struct tree t = {.nodes = 1, .waits = true};
	bool freed = false;
	struct diary d = {.freed = &freed};
	struct cop_follow *f = follow_first_question(&t, &d, 40);
	struct cop_op_sum sum = {.nodes = 1};

	(void)state;
	for (unsigned i = 1; i <= 5; i++) {
		await(&t.asked, i);
		usleep(30000);
		t.done(t.arg, &sum);
	}
	await(&t.asked, 6);
	assert_int_equal(d.rounds, 5);
	t.done(t.arg, &sum);
	stop(f);
	assert_true(freed);
}

static void what_cannot_be_written_is_said_by_the_first_who_fails(void **state)
{
	struct tree t = {.nodes = 1};
	struct cop_follow *f = new_follow(&t, 1000);
	bool freed[2] = {false, false};
	struct diary d[2] = {{.freed = &freed[0]}, {.freed = &freed[1], .fails = true}};
	struct cop_err err;

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(cop_follow_add(f, &ops, &d[i]), 0);
	cop_follow_is_good(f, &err);
	await(&d[1].begins, 1);
	while (cop_follow_is_good(f, &err))
		usleep(1000);
	assert_string_equal(err.text, "no room");
	stop(f);
}

static void a_tree_that_does_not_answer_is_asked_again(void **state)
{
	struct tree t = {.refuses = true}, u = {.silent = true};
	struct cop_follow *f = new_follow(&t, 5), *g = new_follow(&u, 5);
	bool freed[2] = {false, false};
	struct diary d[2] = {{.freed = &freed[0]}, {.freed = &freed[1]}};
	struct cop_err err;

	(void)state;
	assert_int_equal(cop_follow_add(f, &ops, &d[0]), 0);
	assert_int_equal(cop_follow_add(g, &ops, &d[1]), 0);
	assert_true(cop_follow_is_good(f, &err));
	assert_true(cop_follow_is_good(g, &err));
	await(&t.asked, 3);
	await(&u.asked, 3);
	stop(f);
	stop(g);
	assert_int_equal(d[0].rounds + d[1].rounds, 0);
	assert_int_equal(d[0].ends + d[1].ends, 2);
}

static void the_end_of_a_job_that_never_started_is_all_there_is(void **state)
{
	struct tree t = {.nodes = 1};
	struct cop_follow *f = new_follow(&t, 1);
	bool freed = false;
	struct diary d = {.freed = &freed};

	(void)state;
	assert_int_equal(cop_follow_add(f, &ops, &d), 0);
	stop(f);
	assert_true(freed);
	assert_int_equal(d.begins + d.rounds + d.beats, 0);
	assert_int_equal(d.ends, 1);
	assert_int_equal(t.asked, 0);
}

static void nobody_follows_and_too_many_do(void **state)
{
	struct tree t = {.nodes = 1};
	struct cop_follow *f = new_follow(&t, 1);
	bool freed[COP_FOLLOW_MAX + 1] = {false};
	struct diary d[COP_FOLLOW_MAX + 1] = {{0}};
	struct cop_follow_end how = {.reason = ""};
	struct cop_err err;

	(void)state;
	assert_true(cop_follow_is_good(NULL, &err));
	cop_follow_totals(NULL, NULL);
	cop_follow_end(NULL, &how);
	cop_follow_free(NULL);
	for (unsigned i = 0; i <= COP_FOLLOW_MAX; i++) {
		d[i].freed = &freed[i];
		assert_int_equal(cop_follow_add(f, &ops, &d[i]), i < COP_FOLLOW_MAX ? 0 : -ENOSPC);
	}
	assert_true(freed[COP_FOLLOW_MAX] && !freed[0]);
	cop_follow_free(f);
	assert_true(freed[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_follower_hears_of_rounds_beats_and_the_end),
		cmocka_unit_test(two_followers_share_a_question),
		cmocka_unit_test(an_answer_after_the_totals_is_no_round),
		cmocka_unit_test(an_answer_while_the_totals_are_counted_is_no_round),
		cmocka_unit_test(an_answer_is_told_once_however_late_it_comes),
		cmocka_unit_test(what_cannot_be_written_is_said_by_the_first_who_fails),
		cmocka_unit_test(a_tree_that_does_not_answer_is_asked_again),
		cmocka_unit_test(the_end_of_a_job_that_never_started_is_all_there_is),
		cmocka_unit_test(nobody_follows_and_too_many_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
