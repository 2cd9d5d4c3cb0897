/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "report/html/chart_priv.h"

static struct cop_buf out;

static int teardown(void **state)
{
	(void)state;
	cop_buf_free(&out);
	return 0;
}

static unsigned count(const char *what)
{
	unsigned n = 0;

	for (const char *at = out.data; at && (at = strstr(at, what)); at++)
		n++;
	return n;
}

static void has(const char *what)
{
	if (!out.data || !strstr(out.data, what))
		print_error("not there: %s\n", what);
	assert_true(out.data && strstr(out.data, what));
}

static const char *hostile(const void *arg, unsigned row)
{
	(void)arg;
	return row ? "plain" : "<b onclick=\"x\">";
}

static double corner(const void *arg, unsigned row, unsigned col)
{
	(void)arg;
	return row == 0 && col == 0 ? 64 : row == 1 && col == 1 ? 1 : col == 2 ? NAN : 0;
}

static void a_map_draws_what_is_above_zero_and_lists_all(void **state)
{
	(void)state;
	cop_chart_heat(&out, &(struct cop_chart_heat){.title = "A & B",
				     .rows_are = "node",
				     .rows = 2,
				     .cols = 3,
				     .interval_s = 2,
				     .show = cop_html_count,
				     .name = hostile,
				     .value = corner});
	assert_int_equal(count("</title></rect>"), 2);
	has("<rect class=\"q8\"");
	has("<rect class=\"q1\"");
	has("<title>&lt;b onclick=&quot;x&quot;&gt;, 0 s: 64</title>");
	has("<figcaption>A &amp; B</figcaption>");
	assert_int_equal(count("<b onclick"), 0);
	assert_int_equal(count("<td class=\"n\">"), 6);
	assert_int_equal(count("<td class=\"n\">-</td>"), 2);
}

static double nothing(const void *arg, unsigned row, unsigned col)
{
	(void)arg;
	(void)row;
	(void)col;
	return 0;
}

static void a_map_without_anything_is_empty_and_not_broken(void **state)
{
	(void)state;
	cop_chart_heat(&out, &(struct cop_chart_heat){.title = "t",
				     .rows = 1,
				     .cols = 1,
				     .interval_s = 1,
				     .show = cop_html_count,
				     .name = hostile,
				     .value = nothing});
	assert_int_equal(count("nan"), 0);
	assert_int_equal(count("</title></rect>"), 0);
}

static void an_axis_has_one_unit(void **state)
{
	(void)state;
	cop_chart_time_axis(&out, 0, 100, 10, 4);
	has(">0.5 s<");
	has(">1.5 s<");
	assert_int_equal(count(" ms<"), 0);
	cop_buf_free(&out);
	cop_chart_time_axis(&out, 0, 100, 10, 0.9);
	has(">500 ms<");
}

static void lines_break_where_nothing_is_known(void **state)
{
	static const double v[] = {1, NAN, 3, 4};

	(void)state;
	cop_chart_lines(&out, &(struct cop_chart_lines){.title = "t",
				      .lines = 1,
				      .cols = 4,
				      .interval_s = 1,
				      .show = cop_html_size,
				      .name = {"cache"},
				      .value = {v},
				      .limit = 8,
				      .limit_name = "limit"});
	assert_int_equal(count("<circle class=\"p l0\""), 3);
	has("class=\"limit\"");
	has("<title>cache, 2 s: 3 B</title>");
	assert_int_equal(count("nan"), 0);
	assert_int_equal(count("M") >= 2, 1);
}

static double part_of(const void *arg, unsigned row, unsigned part)
{
	(void)arg;
	return row + part;
}

static void bars_have_their_sum_behind_them(void **state)
{
	(void)state;
	cop_chart_bars(&out, &(struct cop_chart_bars){.title = "t",
				     .rows_are = "node",
				     .rows = 2,
				     .parts = 2,
				     .show = cop_html_count,
				     .part = {"mount", "fabric"},
				     .name = hostile,
				     .value = part_of});
	assert_int_equal(count("<rect class=\"b"), 3); /* 0+1, 1+2; nothing for 0 */
	has(">3</text>");
	has("<i class=\"b1\"></i>fabric");
	assert_int_equal(count("<b onclick"), 0);
}

static void ranges_are_on_a_scale_of_powers_of_ten(void **state)
{
	static const struct cop_chart_range r[] = {
		{"read", 1e-5, 1e-4, 1e-3, 0.02}, {"same", 1e-5, 1e-5, 1e-5, 1e-5}};

	(void)state;
	cop_chart_ranges(&out, "t", r, 2, cop_html_time);
	has("read: half within 10 µs, 90 % within 100 µs, 99 % within 1 ms, slowest 20 ms");
	has(">10 µs</text>");
	has(">100 ms</text>");
	assert_int_equal(count("nan"), 0);
	assert_int_equal(count("inf"), 0);
}

/* ---- trees ---- */

static double one(const void *arg, unsigned i)
{
	(void)arg;
	return i;
}

static const char *number(const void *arg, unsigned i)
{
	static char text[16];

	(void)arg;
	snprintf(text, sizeof(text), "%u", i);
	return text;
}

static void draw_tree(const int32_t *parent, unsigned n)
{
	assert_int_equal(cop_chart_tree(&out, &(struct cop_chart_tree){.title = "t",
						      .n = n,
						      .parent = parent,
						      .top = "storage",
						      .show = cop_html_count,
						      .weight = one,
						      .label = number,
						      .tooltip = number}),
		0);
}

static void each_node_hangs_below_its_parent(void **state)
{
	static const int32_t parent[] = {-1, 0, 0, 1};

	(void)state;
	draw_tree(parent, 4);
	assert_int_equal(count("class=\"node\""), 4);
	has("<title>storage → 0: 0</title>");
	has("<title>0 → 1: 1</title>");
	has("<title>0 → 2: 2</title>");
	has("<title>1 → 3: 3</title>");
}

static void nodes_in_a_circle_are_left_out(void **state)
{
	static const int32_t parent[] = {-1, 2, 1, 3, 99, -7};

	(void)state;
	draw_tree(parent, 6);
	assert_int_equal(count("class=\"node\""), 3); /* 0, 4 and 5, which have no parent here */
}

static void nothing_but_circles_is_no_chart(void **state)
{
	static const int32_t parent[] = {1, 0};

	(void)state;
	draw_tree(parent, 2);
	assert_null(out.data);
}

/* The width in the units of its names. */
static double width_of_tree(void)
{
	double width = 0;

	assert_non_null(out.data);
	assert_int_equal(sscanf(strstr(out.data, "viewBox"), "viewBox=\"0 0 %lf", &width), 1);
	return width;
}

static void fill_tree(int32_t *parent, int n)
{
	parent[0] = -1;
	for (int i = 1; i < n; i++)
		parent[i] = (i - 1) / 8;
}

static void what_has_no_room_is_counted(void **state)
{
	int32_t parent[1000];

	(void)state;
	fill_tree(parent, 1000);
	draw_tree(parent, 1000);
	/* The root and its children; of their children, those that fit. */
	has("<title>0 → 8: 8</title>");
	has(">+63</text>");
	assert_true(width_of_tree() <= 1280);
	assert_in_range(count("class=\"node\""), 10, 105);
}

static void those_that_matter_are_drawn_with_all_above_them(void **state)
{
	static const uint32_t first[] = {9000, 7777};
	int32_t parent[10000];

	(void)state;
	fill_tree(parent, 10000);
	assert_int_equal(cop_chart_tree(&out, &(struct cop_chart_tree){.title = "t",
						      .n = 10000,
						      .parent = parent,
						      .first = first,
						      .first_n = 2,
						      .top = "storage",
						      .show = cop_html_count,
						      .weight = one,
						      .label = number,
						      .tooltip = number}),
		0);
	has("<title>storage → 0: 0</title>");
	has("<title>0 → 1: 1</title>");
	has("<title>0 → 8: 8</title>");
	has("<title>1124 → 9000: 9,000</title>");
	has("<title>140 → 1124: 1,124</title>");
	has("<title>17 → 140: 140</title>");
	has("<title>2 → 17: 17</title>");
	has("<title>972 → 7777: 7,777</title>");
	assert_true(width_of_tree() <= 1280);
}

static void a_deep_chain_ends(void **state)
{
	int32_t parent[5000];

	(void)state;
	for (int i = 0; i < 5000; i++)
		parent[i] = i - 1;
	draw_tree(parent, 5000);
	assert_int_equal(count("class=\"node\""), 64);
	has(">+4936</text>");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_map_draws_what_is_above_zero_and_lists_all, teardown),
		cmocka_unit_test_teardown(a_map_without_anything_is_empty_and_not_broken, teardown),
		cmocka_unit_test_teardown(an_axis_has_one_unit, teardown),
		cmocka_unit_test_teardown(lines_break_where_nothing_is_known, teardown),
		cmocka_unit_test_teardown(bars_have_their_sum_behind_them, teardown),
		cmocka_unit_test_teardown(ranges_are_on_a_scale_of_powers_of_ten, teardown),
		cmocka_unit_test_teardown(each_node_hangs_below_its_parent, teardown),
		cmocka_unit_test_teardown(nodes_in_a_circle_are_left_out, teardown),
		cmocka_unit_test_teardown(nothing_but_circles_is_no_chart, teardown),
		cmocka_unit_test_teardown(what_has_no_room_is_counted, teardown),
		cmocka_unit_test_teardown(
			those_that_matter_are_drawn_with_all_above_them, teardown),
		cmocka_unit_test_teardown(a_deep_chain_ends, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
