/* SPDX-License-Identifier: BSD-3-Clause */
#include "prof/telemetry/telemetry_testing.h"

#include <errno.h>

/* More nodes than a job keeps sums for. */
#define MANY (COP_TELEMETRY_ALL_NODES + 500u)
#define FANOUT 8u

/* The sum of a subtree in a tree of fan-out 8, encoded and decoded at every level. *most: the size
 * of the largest message. */
static struct cop_telemetry_sum *subtree(
	uint32_t nodes, uint32_t rank, unsigned intervals, size_t *most)
{
	struct cop_telemetry_sum *s = cop_telemetry_sum_new(nodes), *own;

	for (uint32_t child = FANOUT * rank + 1; child <= FANOUT * rank + FANOUT && child < nodes;
		child++) {
		struct cop_telemetry_sum *below = subtree(nodes, child, intervals, most), *came;
		struct cop_buf bytes = encoded(below);

		*most = COP_MAX(*most, bytes.len);
		assert_int_equal(cop_telemetry_decode(bytes.data, bytes.len, &came), 0);
		assert_int_equal(cop_telemetry_merge(s, came), 0);
		cop_buf_free(&bytes);
		cop_telemetry_sum_free(came);
		cop_telemetry_sum_free(below);
	}
	own = a_node(nodes, rank, intervals, 0);
	for (unsigned i = 0; i < 12; i++)
		add_event(own, i % COP_TELEMETRY_KINDS, (int64_t)rank * 100 + i,
			"something happened");
	assert_int_equal(cop_telemetry_merge(s, own), 0);
	cop_telemetry_sum_free(own);
	return s;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Checks a statistic against the numbers of this many nodes. */
static void is_right(const struct three *t, unsigned what, uint32_t nodes)
{
	uint64_t *all = calloc(nodes, sizeof(*all)), median;

	for (uint32_t r = 0; r < nodes; r++)
		all[r] = value_of_node(r, what);
	qsort(all, nodes, sizeof(*all), by_size);
	median = all[(nodes - 1) / 2];
	assert_int_equal(t->min, all[0]);
	assert_int_equal(t->max, all[nodes - 1]);
	assert_true(t->median >= median - median / 16 && t->median <= median + median / 16);
	free(all);
}

static void is_outlier(const struct cop_telemetry_sum *s, uint32_t nodes, unsigned total)
{
	uint64_t most = 0;
	uint32_t rank = 0;
	bool listed = false;

	for (uint32_t r = 0; r < nodes; r++)
		if (value_of_node(r, 5000 + total) > most) {
			most = value_of_node(r, 5000 + total);
			rank = r;
		}
	for (size_t i = 0; i < s->nodes; i++)
		listed |= s->node[i].rank == rank && s->node[i].series;
	assert_true(listed);
}

static void many_nodes_stay_within_the_bounds(void **state)
{
	size_t most = 0, series = 0;
	struct cop_telemetry_sum *s = subtree(MANY, 0, INTERVALS, &most);
	struct spread all = {0};
	struct three t;

	(void)state;
	cop_telemetry_finish(s);
	print_message("most bytes of a message: %zu\n", most);
	assert_true(most < 4 * COP_MIB);
	assert_int_equal(cop_telemetry_sum_nodes(s), MANY);
	assert_true(s->nodes <= 4 * COP_TELEMETRY_OUTLIERS);
	for (size_t i = 0; i < s->nodes; i++)
		series += s->node[i].series != NULL;
	assert_int_equal(series, s->nodes);
	is_outlier(s, MANY, COP_TELEMETRY_ALL_REQUESTS);
	is_outlier(s, MANY, COP_TELEMETRY_ALL_ORIGIN_OPERATIONS);
	is_outlier(s, MANY, COP_TELEMETRY_ALL_FAILOVERS);
	assert_int_equal(s->events, COP_TELEMETRY_EVENTS_JOB);
	assert_int_equal(s->events + s->dropped, 12 * MANY);
	for (size_t i = 0; i < s->events; i++)
		assert_true(s->event[i].kind <= COP_TELEMETRY_PEER_BACK);
	/* One number of one interval, as in the file. */
	assert_int_equal(cop_telemetry_spread_merge(&all, &s->series.cell[17 * METRICS + 3]), 0);
	for (size_t i = 0; i < s->nodes; i++)
		cop_telemetry_spread_add(&all, s->node[i].series[17][3]);
	t = cop_telemetry_spread_three(&all, MANY);
	is_right(&t, 17 * METRICS + 3, MANY);
	free(all.count);
	cop_telemetry_sum_free(s);
}

static void jobs_of_middle_size_keep_the_sums_of_each_node(void **state)
{
	size_t most = 0, series = 0;
	struct cop_telemetry_sum *s = subtree(1000, 0, 5, &most);

	(void)state;
	cop_telemetry_finish(s);
	assert_int_equal(s->nodes, 1000);
	for (uint32_t r = 0; r < 1000; r++) {
		assert_int_equal(s->node[r].rank, r);
		assert_int_equal(s->node[r].total[0], value_of_node(r, 5000));
		series += s->node[r].series != NULL;
	}
	assert_true(series > 0 && series <= 4 * COP_TELEMETRY_OUTLIERS);
	assert_int_equal(s->series.nodes + series, 1000);
	cop_telemetry_sum_free(s);
}

static void small_jobs_keep_all(void **state)
{
	size_t most = 0;
	struct cop_telemetry_sum *s = subtree(256, 0, INTERVALS, &most);

	(void)state;
	cop_telemetry_finish(s);
	assert_int_equal(s->nodes, 256);
	assert_int_equal(s->series.nodes, 0);
	for (uint32_t r = 0; r < 256; r++)
		for (unsigned i = 0; i < INTERVALS; i++)
			assert_int_equal(
				s->node[r].series[i][2], value_of_node(r, i * METRICS + 2));
	cop_telemetry_sum_free(s);
}

static void the_shape_of_the_tree_does_not_matter(void **state)
{
	struct cop_telemetry_sum *forth = cop_telemetry_sum_new(5000),
				 *back = cop_telemetry_sum_new(5000);
	struct cop_buf a, b;

	(void)state;
	for (uint32_t r = 0; r < 400; r++) {
		struct cop_telemetry_sum *x = a_node(5000, r, 3, 0),
					 *y = a_node(5000, 399 - r, 3, 0);

		add_event(x, COP_TELEMETRY_READY, r, "");
		add_event(y, COP_TELEMETRY_READY, 399 - r, "");
		assert_int_equal(cop_telemetry_merge(forth, x), 0);
		assert_int_equal(cop_telemetry_merge(back, y), 0);
		cop_telemetry_sum_free(x);
		cop_telemetry_sum_free(y);
	}
	cop_telemetry_finish(forth);
	cop_telemetry_finish(back);
	a = encoded(forth);
	b = encoded(back);
	assert_int_equal(a.len, b.len);
	assert_memory_equal(a.data, b.data, a.len);
	cop_buf_free(&a);
	cop_buf_free(&b);
	cop_telemetry_sum_free(forth);
	cop_telemetry_sum_free(back);
}

static void a_finer_grid_is_made_coarser_and_nothing_is_lost(void **state)
{
	struct cop_telemetry_sum *fine = a_node(2, 0, 7, 0), *coarse = a_node(2, 1, 3, 2);
	const struct cop_telemetry_node *n;
	uint64_t sum = 0, peak = 0;

	(void)state;
	assert_int_equal(cop_telemetry_merge(fine, coarse), 0);
	assert_int_equal(cop_telemetry_sum_seconds(fine), 4);
	n = cop_telemetry_sum_node(fine, 0);
	assert_int_equal(n->intervals, 2);
	for (unsigned i = 0; i < 7; i++) {
		sum += value_of_node(0, i * METRICS);
		peak = COP_MAX(peak, value_of_node(0, i * METRICS + METRICS - 1));
	}
	assert_int_equal(n->series[0][0] + n->series[1][0], sum);
	assert_int_equal(COP_MAX(n->series[0][METRICS - 1], n->series[1][METRICS - 1]), peak);
	n = cop_telemetry_sum_node(fine, 1);
	assert_int_equal(n->intervals, 3);
	cop_telemetry_sum_free(fine);
	cop_telemetry_sum_free(coarse);
}

static void folded_nodes_are_made_coarser_too(void **state)
{
	struct cop_telemetry_sum *s = cop_telemetry_sum_new(5000), *late;
	struct spread all = {0};
	struct three t;

	(void)state;
	for (uint32_t r = 0; r < 100; r++) {
		struct cop_telemetry_sum *one = a_node(5000, r, 4, 0);

		/* If all nodes are alike, adding the lowest to the lowest is right. */
		for (unsigned i = 0; i < 4; i++)
			one->node[0].series[i][0] = 1000 * (i + 1) + r;
		assert_int_equal(cop_telemetry_merge(s, one), 0);
		cop_telemetry_sum_free(one);
	}
	late = a_node(5000, 100, 2, 1);
	late->node[0].series[1][0] = 7050;
	assert_int_equal(cop_telemetry_merge(s, late), 0);
	cop_telemetry_finish(s);
	assert_int_equal(cop_telemetry_spread_merge(&all, &s->series.cell[METRICS]), 0);
	for (size_t i = 0; i < s->nodes; i++)
		cop_telemetry_spread_add(&all, s->node[i].series[1][0]);
	t = cop_telemetry_spread_three(&all, cop_telemetry_sum_nodes(s));
	assert_in_range(t.min, 7000, 7050);
	assert_in_range(t.max, 7050, 7198);
	assert_in_range(t.median, 7000 - 7000 / 8, 7198 + 7198 / 8);
	assert_int_equal(s->series.cell[2 * METRICS].others, 0);
	free(all.count);
	cop_telemetry_sum_free(late);
	cop_telemetry_sum_free(s);
}

static void nobody_counts_twice_and_nobody_of_another_job(void **state)
{
	struct cop_telemetry_sum *s = a_node(3, 1, 2, 0), *again = a_node(3, 1, 2, 0),
				 *other = a_node(4, 2, 2, 0);

	(void)state;
	assert_int_equal(cop_telemetry_merge(s, again), -EEXIST);
	assert_int_equal(cop_telemetry_merge(s, other), -EINVAL);
	assert_int_equal(cop_telemetry_sum_nodes(s), 1);
	cop_telemetry_sum_free(s);
	cop_telemetry_sum_free(again);
	cop_telemetry_sum_free(other);
}

static void classes_are_a_sixteenth_off_at_most(void **state)
{
	(void)state;
	for (unsigned c = 0; c < SPREAD_CLASSES; c++)
		assert_int_equal(cop_telemetry_class(cop_telemetry_middle(c)), c);
	for (uint64_t v = 0; v < 1000000; v += 1 + v / 100) {
		uint64_t middle = cop_telemetry_middle(cop_telemetry_class(v));

		assert_true(
			v < EXACT ? middle == v : 16 * (middle > v ? middle - v : v - middle) <= v);
	}
	assert_int_equal(cop_telemetry_class(UINT64_MAX), SPREAD_CLASSES - 1);
}

static void zeros_count_in_statistics(void **state)
{
	struct spread s = {0};
	struct three t;

	(void)state;
	cop_telemetry_spread_add(&s, 9);
	cop_telemetry_spread_add(&s, 5);
	t = cop_telemetry_spread_three(&s, 5);
	assert_int_equal(t.min, 0);
	assert_int_equal(t.median, 0);
	assert_int_equal(t.max, 9);
	t = cop_telemetry_spread_three(&s, 3);
	assert_int_equal(t.median, 5);
	t = cop_telemetry_spread_three(&s, 2);
	assert_int_equal(t.min, 5);
	free(s.count);
}

int main(void)
{
#define T(test) cmocka_unit_test(test)
	const struct CMUnitTest tests[] = {
		T(many_nodes_stay_within_the_bounds),
		T(jobs_of_middle_size_keep_the_sums_of_each_node),
		T(small_jobs_keep_all),
		T(the_shape_of_the_tree_does_not_matter),
		T(a_finer_grid_is_made_coarser_and_nothing_is_lost),
		T(folded_nodes_are_made_coarser_too),
		T(nobody_counts_twice_and_nobody_of_another_job),
		T(classes_are_a_sixteenth_off_at_most),
		T(zeros_count_in_statistics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
