/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/html/html_priv.h"

#define EVIL "<img src=x onerror=\"alert(1)\">"
#define EVIL_TEXT "&lt;img src=x onerror=&quot;alert(1)&quot;&gt;"

static struct cop_buf out;
static struct cop_jobdata job;
static struct cop_page page;

static int setup(void **state)
{
	(void)state;
	job = (struct cop_jobdata){.dir = (char *)"/jobs/4711"};
	page = (struct cop_page){.job = &job};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	cop_buf_free(&out);
	return 0;
}

static void write_page(void)
{
	cop_buf_free(&out);
	assert_int_equal(cop_page_write(&page, &out), 0);
}

static bool has(const char *what)
{
	return strstr(out.data, what) != NULL;
}

static unsigned count(const char *what)
{
	unsigned n = 0;

	for (const char *at = out.data; (at = strstr(at, what)); at++)
		n++;
	return n;
}

static void each_section_without_data_says_what_is_missing(void **state)
{
	static const char *const ids[] = {"when", "operations", "tree", "paths", "environment",
		"memory", "start", "events", "before"};

	(void)state;
	write_page();
	for (size_t i = 0; i < COP_ARRAY_SIZE(ids); i++) {
		char start[64];
		const char *at, *end;

		snprintf(start, sizeof(start), "<section id=\"%s\"", ids[i]);
		at = strstr(out.data, start);
		assert_non_null(at);
		end = strstr(at, "</section>");
		at = strstr(at, "class=\"missing\"");
		assert_true(at && at < end);
		assert_true(strstr(at, "copper") < end);
	}
	assert_false(has("<svg"));
	assert_false(has("id=\"warnings\""));
}

static void nothing_is_loaded_and_nothing_runs(void **state)
{
	(void)state;
	write_page();
	assert_false(has("<script"));
	assert_false(has("http://"));
	assert_false(has("https://"));
	assert_false(has("url("));
	assert_false(has("@import"));
	assert_true(has("default-src 'none'"));
	assert_true(has("prefers-color-scheme: dark"));
	assert_true(has("@media print"));
}

static void a_hostile_text_is_text_everywhere(void **state)
{
	char *evil = (char *)EVIL;
	struct cop_jobdata_op op = {.name = evil,
		.calls = 1,
		.has_quantiles = true,
		.p50_us = 1,
		.p90_us = 1,
		.p99_us = 2,
		.max_us = 3};
	struct cop_jobdata_path path = {.text = evil, .len = strlen(evil), .events = 1};
	struct cop_jobdata_node node = {.host = evil, .parent = -1, .ready_s = 1, .stopped_s = 2};
	struct cop_jobdata_event event = {.host = evil, .event = evil, .detail = evil};
	struct cop_jobdata_warning warning = {evil, evil};
	struct cop_jobdata_unused unused = {evil, 1, 1};
	struct cop_jobdata_value use = {evil, 1};
	static struct cop_jobdata_series series;
	struct cop_jobdata_series *all = &series;

	(void)state;
	series.host = evil;
	job = (struct cop_jobdata){.dir = evil,
		.source = evil,
		.state = evil,
		.net_type = evil,
		.version = evil,
		.build = evil,
		.provider = evil,
		.first_host = evil,
		.began = (char *)"2026-11-23 15-11-55",
		.nodes = 1,
		.from = COP_JOBDATA_SNAPSHOT,
		.folder = evil,
		.ranks = 1,
		.op = &op,
		.ops = 1,
		.path = &path,
		.paths = 1,
		.interval_s = 1,
		.steps = 1,
		.series = &all,
		.series_n = 1,
		.node = &node,
		.node_n = 1,
		.phase = {evil},
		.phases = 1,
		.event = &event,
		.events = 1,
		.has_warnings = true,
		.warning = &warning,
		.warnings = 1,
		.has_use = true,
		.use = {&use, 1},
		.unused = &unused,
		.unused_n = 1};
	write_page();
	assert_false(has("<img"));
	assert_true(count(EVIL_TEXT) >= 15);
}

static struct cop_jobdata_node *make_nodes(unsigned n, bool statistics)
{
	struct cop_jobdata_node *node = calloc(n + 3, sizeof(*node));

	assert_non_null(node);
	for (unsigned i = 0; i < n; i++) {
		struct cop_jobdata_node *at = &node[i + (statistics ? 3 : 0)];

		at->rank = (int32_t)i;
		at->host = (char *)"nid-with-a-long-name.of.a.cluster.example";
		at->parent = i ? ((int32_t)i - 1) / 8 : -1;
		at->parent_bytes = i * 1e6;
		at->phase_s[0] = i;
		at->cache_limit_bytes = 1e9;
		at->cache_peak_bytes = i * 1e5;
	}
	for (int i = 0; statistics && i < 3; i++) {
		node[i].rank = -1 - i;
		node[i].host = (char *)"";
		node[i].parent = -2;
	}
	return node;
}

static void make_series(unsigned n)
{
	job.series = calloc(n, sizeof(*job.series));
	assert_non_null(job.series);
	for (unsigned s = 0; s < n; s++) {
		job.series[s] = calloc(1, sizeof(**job.series));
		assert_non_null(job.series[s]);
		job.series[s]->rank = (int32_t)s;
		job.series[s]->host = (char *)"nid-with-a-long-name.of.a.cluster.example";
		for (unsigned c = 0; c < COP_JOBDATA_COLUMNS; c++)
			for (unsigned i = 0; i < job.steps; i++)
				job.series[s]->value[c][i] =
					(float)(1 + (s * 31 + i * 7) % 1000) * 1e6f;
	}
	job.series_n = n;
}

static void free_series(void)
{
	for (size_t s = 0; s < job.series_n; s++)
		free(job.series[s]);
	free(job.series);
}

static void a_page_of_the_most_nodes_has_a_bound(void **state)
{
	(void)state;
	job.nodes = job.node_n = COP_JOBDATA_NODES_MAX;
	job.node = make_nodes(COP_JOBDATA_NODES_MAX, false);
	job.phase[0] = (char *)"mount";
	job.phases = 1;
	job.steps = COP_JOBDATA_STEPS_MAX;
	job.interval_s = 4;
	make_series(COP_JOBDATA_SERIES_MAX);
	write_page();
	assert_true(out.len < 5u << 20);
	assert_true(has(">minimum<"));
	assert_true(has(">median<"));
	assert_true(has(">maximum<"));
	free_series();
	free(job.node);
}

static void of_very_many_nodes_the_outliers_are_listed(void **state)
{
	(void)state;
	job.nodes = 10000;
	job.node = make_nodes(32, true);
	job.node_n = 35;
	job.phase[0] = (char *)"mount";
	job.phases = 1;
	write_page();
	assert_true(has("The tree of 10,000 nodes is not drawn"));
	assert_true(has("<td>maximum</td>"));
	assert_true(has("<td>31 nid-with-a-long-name"));
	free(job.node);
}

static void events_are_told_in_words(void **state)
{
	struct cop_jobdata_event event[] = {
		{1, 3, (char *)"a", (char *)"peer_dead", (char *)"rank 1"},
		{2, 3, (char *)"a", (char *)"peer_dead", (char *)"rank 2"},
		{2, 4, (char *)"a", (char *)"failover", (char *)"rank 1"},
		{3, 4, (char *)"a", (char *)"something_new", (char *)""}};

	(void)state;
	job.event = event;
	job.events = 4;
	write_page();
	assert_true(has(
		"<p class=\"warning\">What nodes noticed: another node did not answer (2), another node above was asked (1), something_new (1).</p>"));
}

static void calls_that_were_not_measured_have_no_time(void **state)
{
	struct cop_jobdata_op op[] = {{(char *)"read", 5, 3, 2, 0, 0.4, true, 31, 60, 70, 157000},
		{(char *)"open", 1344, 0, 0, 0, 0, true, 0, 0, 0, 0}};

	(void)state;
	job.op = op;
	job.ops = 2;
	write_page();
	assert_true(has(
		"read took the most time in all: half of its calls took at most 31 µs; the slowest call of all, a read, took 157 ms"));
	assert_true(has("<td>open</td><td class=\"n\">1,344</td>"));
	assert_false(has(">0 s<"));
}

/* A node without a row is still drawn at its place in the tree; what it sent on came from its
 * parent. */
static void the_tree_has_nodes_without_a_row(void **state)
{
	struct cop_jobdata_node node[] = {
		{.rank = -3, .host = (char *)"", .parent = -2, .sent_bytes = 9e9},
		{.rank = 0, .host = (char *)"a", .parent = -1, .origin_bytes = 7340032},
		{.rank = 44, .host = (char *)"b", .parent = 5, .parent_bytes = 5242880}};

	(void)state;
	job.nodes = 10000;
	job.fanout = 8;
	job.trees = 1;
	job.node = node;
	job.node_n = 3;
	write_page();
	assert_true(has("<title>storage → 0: 7.0 MiB</title>"));
	assert_true(has("<title>0 → 5: -</title>"));
	assert_true(has("<title>5 → 44: 5.0 MiB</title>"));
	assert_true(has("<title>node 5: the job kept no row of it</title>"));
	assert_true(has("of 10,000 nodes"));
	assert_false(has("not drawn: of so many"));
	assert_false(has("sent most to others"));

	/* The same for a small job, one node of which was killed. */
	job.nodes = 45;
	job.node_n = 2;
	job.node = node + 1;
	write_page();
	assert_true(has("<title>0 → 5: -</title>"));
	assert_true(has("<title>5 → 44: 5.0 MiB</title>"));
}

static void the_title_says_who_waited_for_what(void **state)
{
	struct cop_jobdata_node node[2] = {
		{.rank = 0, .host = (char *)"a", .parent = -1, .wait_origin_ms = 9},
		{.rank = 1,
			.host = (char *)"b",
			.parent = 0,
			.wait_parent_ms = 3100,
			.wait_origin_ms = 1}};

	(void)state;
	job.node = node;
	job.node_n = 2;
	job.steps = 2;
	job.interval_s = 1;
	make_series(2);
	for (unsigned s = 0; s < 2; s++) {
		job.series[s]->value[COP_JOBDATA_WAIT_MS][0] = 100;
		job.series[s]->value[COP_JOBDATA_WAIT_MS][1] = s ? 3000 : 0;
		job.series[s]->host = (char *)(s ? "b" : "a");
	}
	write_page();
	assert_true(has(
		"Node 1 (b) waited longest: 3.1 s for its parent; the most was at 1 s: 3 s in 1 s"));
	free_series();
}

static void what_few_nodes_said_is_not_taken_for_all(void **state)
{
	struct cop_jobdata_node node = {
		.rank = 0, .host = (char *)"a", .parent = -1, .requests = 5};

	(void)state;
	job.node = &node;
	job.node_n = 1;
	job.nodes = 4;
	job.from = COP_JOBDATA_SNAPSHOT;
	job.folder = (char *)"/jobs/4711/profiling/runtime-snapshot";
	write_page();
	assert_true(has("This is what 1 of the 4 nodes said: the others do when the job ends"));
	assert_false(has("requests and read"));
	job.nodes = 1;
	write_page();
	assert_false(has("This is what 1 of"));
	assert_true(has("made 5 requests"));
}

static void the_run_before_is_compared(void **state)
{
	struct cop_runrec now = {.nodes = 2, .start_s = 100, .end_s = 110},
			  before = {.nodes = 2, .start_s = 50, .end_s = 70}, other[2] = {0};

	(void)state;
	strcpy(other[0].id, "2222222222222222");
	strcpy(other[1].id, "3333333333333333");
	cop_runrec_put(&other[0], COP_RUNREC_NAME, "second");
	cop_runrec_put(&other[1], COP_RUNREC_NAME, "third");
	strcpy(now.id, "aaaaaaaabbbbbbbb");
	strcpy(before.id, "1111111122222222");
	cop_runrec_put(&now, COP_RUNREC_NAME, "train");
	cop_runrec_pair(&now, COP_RUNREC_PARAM, "cache-size", "2G");
	cop_runrec_pair(&before, COP_RUNREC_PARAM, "cache-size", "1G");
	cop_runrec_point(&now, "fuse.requests", 1, 50);
	cop_runrec_point(&before, "fuse.requests", 1, 200);
	page.store = "/s/runs.db";
	page.run = &now;
	write_page();
	assert_true(has("There is no earlier run of this source in the run store /s/runs.db"));
	page.before = &before;
	write_page();
	assert_true(has("<h1>train</h1>"));
	assert_false(has("What the program recorded"));
	for (unsigned i = 1; i <= 4; i++) {
		now.step = before.step = 10 + i;
		cop_runrec_point(&now, "train_loss", now.start_s + i, 1.0 / i);
		cop_runrec_point(&before, "train_loss", before.start_s + 2 * i, 2.0 / i);
		other[0].step = 10 + i;
		cop_runrec_point(&other[0], "train_loss", i, -1.0 * i);
		cop_runrec_point(&now, "cpu.seconds", now.start_s + i, i);
		cop_runrec_point(&before, "cpu.seconds", before.start_s + i, i);
	}
	write_page();
	assert_true(has("<figcaption>train_loss</figcaption>"));
	assert_true(has("this run, aaaaaaaa") && has("before, 11111111"));
	assert_false(has("<figcaption>cpu.seconds"));
	page.compared = other;
	page.compared_n = 2;
	write_page();
	assert_true(has("this run, aaaaaaaa") && has("second, 22222222"));
	assert_false(has("before, 11111111") || has("third, 33333333"));
	assert_true(has("<title>second, 22222222, 12: -2</title>"));
	assert_true(has("<td>12</td><td class=\"n\">0.5</td><td class=\"n\">-2</td>"));
	page.compared_n = 0;
	cop_runrec_put(&now, COP_RUNREC_NAME, "4");
	write_page();
	assert_true(has("<h1>Job 4</h1>") && has("<title>Job 4 - Copper</title>"));
	assert_true(has("<td>cache-size</td><td>1G</td><td>2G</td>"));
	assert_true(has(
		"<td>fuse.requests</td><td class=\"n\">200</td><td class=\"n\">50</td><td class=\"n\">0.25</td>"));
	assert_true(
		has("<td class=\"n\">20 s</td><td class=\"n\">10 s</td><td class=\"n\">0.50</td>"));
	cop_runrec_free(&now);
	cop_runrec_free(&before);
	cop_runrec_free(&other[0]);
	cop_runrec_free(&other[1]);
}

static struct cop_page_span span_of(const char *name, unsigned process, double from_s, double for_s)
{
	struct cop_page_span s = {.process = process, .from_s = from_s, .for_s = for_s};

	snprintf(s.name, sizeof(s.name), "%s", name);
	return s;
}

static void spans_of_programs_lie_below_copper_and_its_reads(void **state)
{
	static struct cop_jobdata_series series = {.rank = 0, .host = (char *)"n0"};
	struct cop_jobdata_series *all[] = {&series};
	char process[3][COP_PAGE_SPAN_NAME] = {"", EVIL, "rank 1"};
	struct cop_page_span at[] = {span_of("copper.start", 0, 0, 0.5),
		span_of("copper.start.mount", 0, 0, 0.5), span_of("training.fit", 1, 1, 8),
		span_of("epoch", 1, 1, 4), span_of("epoch", 1, 5, 4), span_of(EVIL, 2, 2, 1)};
	struct cop_page_spans spans = {at, 6, process, 3, 0, 0, 10, 0.25};

	(void)state;
	for (unsigned i = 0; i < COP_JOBDATA_COLUMNS; i++)
		series.value[i][0] = 100;
	job.series = all;
	job.series_n = job.steps = 1;
	job.interval_s = 1;
	page.spans = &spans;
	write_page();
	assert_true(has("training.fit took most time: 8 s in 1 span<"));
	assert_true(has("<title>copper.start: 500 ms from 0 s on</title>"));
	assert_false(has("<title>copper.start.mount"));
	assert_true(has("<title>read by all nodes: 100 B: 1 s from 250 ms on</title>"));
	assert_true(has("<title>epoch: 4 s from 5 s on</title>"));
	assert_true(has("<td>epoch</td><td class=\"n\">2</td><td class=\"n\">8 s</td>"));
	assert_false(has(EVIL));
	assert_int_equal(count("<title>" EVIL_TEXT), 1);
	assert_false(has("more spans") || has("shorter spans") || has("another time"));
	/* Statistics over nodes are no sum of what was read. */
	series.rank = COP_JOBDATA_MAX;
	spans.shorter = 12;
	spans.elsewhen = 1234;
	write_page();
	assert_false(has("read by all nodes"));
	assert_true(has("12 shorter spans") && has("1,234 spans are of another time"));
	spans.n = 2;
	write_page();
	assert_false(has("id=\"spans\""));
	page.spans = NULL;
	write_page();
	assert_false(has("id=\"spans\""));
}

static void spans_without_a_row_are_counted(void **state)
{
	static struct cop_page_span at[200];
	static char process[101][COP_PAGE_SPAN_NAME];
	struct cop_page_spans spans = {at, 0, process, 21, 0, 0, 0, 0};

	(void)state;
	/* A hundred that are inside of each other, then 20 processes. */
	for (unsigned i = 0; i < 100; i++)
		at[spans.n++] = span_of("deep", 1, i, 1000 - 2 * i);
	for (unsigned i = 2; i <= 20; i++)
		at[spans.n++] = span_of("wide", i, 5, 5);
	spans.seconds = 1000;
	page.spans = &spans;
	write_page();
	assert_int_equal(count("<title>deep: "), 6);
	assert_int_equal(count("<title>wide: "), 7);
	assert_true(has("106 more spans have no row"));
	assert_true(has("<td>deep</td><td class=\"n\">100</td>"));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(each_section_without_data_says_what_is_missing),
		T(nothing_is_loaded_and_nothing_runs),
		T(a_hostile_text_is_text_everywhere),
		T(a_page_of_the_most_nodes_has_a_bound),
		T(of_very_many_nodes_the_outliers_are_listed),
		T(the_tree_has_nodes_without_a_row),
		T(events_are_told_in_words),
		T(calls_that_were_not_measured_have_no_time),
		T(the_title_says_who_waited_for_what),
		T(what_few_nodes_said_is_not_taken_for_all),
		T(spans_of_programs_lie_below_copper_and_its_reads),
		T(spans_without_a_row_are_counted),
		T(the_run_before_is_compared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
