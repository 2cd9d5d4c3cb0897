/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "trace/checkpoint/checkpoint.h"

static struct cop_trace_str str(const char *text)
{
	return (struct cop_trace_str){text, strlen(text)};
}

/* Makes an event; times are in seconds, and a size of 0 means none. */
static struct cop_trace_event event(const char *name, const char *tid, const char *file,
	unsigned at, unsigned dur, uint64_t size)
{
	return (struct cop_trace_event){.kind = COP_TRACE_SPAN,
		.name = str(name),
		.cat = str(*file ? "POSIX" : "app"),
		.pid = str("7"),
		.tid = str(tid),
		.file = str(file),
		.host = str(""),
		.rank = str(""),
		.args = str(""),
		.end_args = str(""),
		.ts_ns = (int64_t)at * 1000000000,
		.dur_ns = (uint64_t)dur * 1000000000,
		.count = 1,
		.size = size,
		.has_size = size > 0};
}

static void configure(struct cop_ckpt_conf *conf)
{
	*conf = (struct cop_ckpt_conf){.event = "checkpoint", .limit = 5};
	assert_int_equal(cop_ckpt_add_tier(conf, "ssd=/ssd/", NULL), 0);
	assert_int_equal(cop_ckpt_add_tier(conf, "pfs=/p", NULL), 0);
	assert_int_equal(cop_ckpt_add_model(conf, "ssd=100", NULL), 0);
}

/* More command-line words; NULL if none. */
static const char *mtbf, *nodes, *scheme;

/* Checks that the report on these events has `want` after `from`. */
static void check(const struct cop_trace_event *e, size_t n, const char *from, const char *want)
{
	static const char *const names[] = {"run"};
	struct cop_ckpt_conf conf;
	struct cop_ckpt *c = NULL;
	struct cop_ckpt_report *r = NULL;
	struct cop_buf out = {0};
	const char *at;

	configure(&conf);
	if (mtbf)
		assert_int_equal(cop_ckpt_set_mtbf(&conf, mtbf, NULL), 0);
	if (nodes)
		assert_int_equal(cop_ckpt_add_nodes(&conf, nodes, NULL), 0);
	if (scheme) {
		assert_int_equal(cop_ckpt_add_scheme(&conf, scheme, NULL), 0);
		assert_int_equal(cop_ckpt_add_model(&conf, "ssd=100/s/node", NULL), 0);
	}
	assert_int_equal(cop_ckpt_new(&conf, 2, &c, NULL), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(cop_ckpt_add(c, i % 2, &e[i]), 0);
	assert_int_equal(cop_ckpt_report_new(&c, names, 1, &r, NULL), 0);
	cop_ckpt_report_show(r, NULL, COP_GRID_CSV, &out);
	assert_false(out.failed);
	at = strstr(out.data, from);
	assert_non_null(at);
	assert_memory_equal(at + strlen(from), want, strlen(want));
	cop_buf_free(&out);
	cop_ckpt_report_free(r);
	cop_ckpt_free(c);
	cop_ckpt_conf_fini(&conf);
}

static void the_slowest_thread_counts(void **state)
{
	const struct cop_trace_event e[] = {
		event("checkpoint", "1", "", 0, 4, 0),
		event("checkpoint", "1", "", 10, 3, 0),
		event("checkpoint", "2", "", 0, 6, 0),
		event("write", "1", "/ssd/a", 0, 2, 100),
		event("write", "2", "/ssdx/a", 0, 9, 100),
		event("write", "2", "/p/a", 1, 1, 50),
	};

	(void)state;
	check(e, 6, "case,events,checkpoint,ssd:dur,pfs:dur\n",
		"run,3,7.000000000,2.000000000,1.000000000\n");
	check(e, 6, "files,calls,per_file\n",
		"run,ssd,2.000000000,100,0,100,150,0.666667,1,1,1.000000\n"
		"run,pfs,1.000000000,50,0,50,150,0.333333,1,1,1.000000\n");
	check(e, 6, "case,what,size,dur,nodes,scheme,factor\n", "run,ssd,100,1.000000000,1,,\n");
}

static void a_flush_is_outside_of_checkpoints_of_its_thread(void **state)
{
	const struct cop_trace_event e[] = {
		event("write", "1", "/p/a", 0, 12, 50),
		event("checkpoint", "1", "", 2, 3, 600),
		event("checkpoint", "1", "", 7, 1, 600),
		event("pwrite64", "2", "/p/b", 1, 3, 50),
		event("read", "2", "/p/b", 30, 3, 50),
		event("write", "2", "/ssd/b", 30, 3, 50),
	};

	(void)state;
	/* Flushes of thread 1: 0 to 2, 5 to 7, 8 to 12; of thread 2: 1 to 4; next to a checkpoint
	 * from 2 to 4. */
	check(e, 6, "case,dur,covered,overlap,about,threads\n",
		"run,8.000000000,10.000000000,2.000000000,0.000000000,2\n");
}

static void an_event_within_another_one_does_not_count_again(void **state)
{
	struct cop_trace_event e[] = {
		event("checkpoint.get", "1", "", 2, 1, 70),
		event("checkpoint.get", "1", "", 3, 2, 0), event("checkpoint", "1", "", 1, 5, 600),
		event("checkpoint.save", "1", "", 1, 4, 600),
		event("checkpoint", "1", "", 6, 2, 100),   /* adjacent to the first */
		event("checkpoint.get", "2", "", 2, 3, 0), /* another thread */
	};

	(void)state;
	check(e, 6, "case,events,checkpoint,ssd:dur,pfs:dur\n",
		"run,3,7.000000000,0.000000000,0.000000000\n");
	check(e, 6, "case,name,count,dur\n",
		"run,checkpoint.save,1,4.000000000\nrun,checkpoint.get,2,3.000000000\n\n");
	check(e, 6, "files,calls,per_file\n", "run,ssd,0.000000000,0,0,0,700,0.000000,0,0,\n");
	/* The same pid and tid in two files are two threads. */
	e[3].source = 1;
	check(e, 6, "case,events,checkpoint,ssd:dur,pfs:dur\n",
		"run,4,7.000000000,0.000000000,0.000000000\n");
}

static void nothing_is_known_of_a_run_without_events(void **state)
{
	const struct cop_trace_event e[] = {event("open", "1", "/x", 0, 1, 0)};

	(void)state;
	check(e, 1, "files,calls,per_file\n",
		"run,ssd,0.000000000,0,0,0,,,0,0,\nrun,pfs,0.000000000,0,0,0,,,0,0,\n");
	check(e, 1, "case,what,size,dur,nodes,scheme,factor\n", "run,ssd,,,1,,\n");
}

/* Checkpoints of 60 s, 1000 s apart, with a failure every hour. */
static void the_best_interval_is_that_of_young_and_daly(void **state)
{
	const struct cop_trace_event e[] = {
		event("checkpoint", "1", "", 0, 60, 0),
		event("checkpoint", "1", "", 1060, 60, 0),
		event("checkpoint", "2", "", 0, 5, 0),
	};
	const struct cop_trace_event often[] = {
		event("checkpoint", "1", "", 0, 3600, 0),
		event("checkpoint", "1", "", 3601, 3600, 0),
		event("checkpoint", "2", "", 0, 5, 0),
	};

	(void)state;
	mtbf = "1h";
	check(e, 3, "case,checkpoints,cost,interval,mtbf,young,daly,lost,best_lost\n",
		"run,2,60.000000000,1000.000000000,3600.000000000,657.267069006,617.875649626,"
		"0.188687,0.171636\n");
	/* The program does almost nothing but write checkpoints, an hour each; a share still never
	 * exceeds the whole. */
	mtbf = "1h";
	check(often, 3, "case,checkpoints,cost,interval,mtbf,young,daly,lost,best_lost\n",
		"run,2,3600.000000000,1.000000000,3600.000000000,5091.168824543,2974.011537018,"
		"0.999838,0.841428\n");
	mtbf = NULL;
	check(e, 3, "case,checkpoints,cost,interval,mtbf,young,daly,lost,best_lost\n",
		"run,2,60.000000000,1000.000000000,,,,,\n");
}

static void predictions_know_nodes_and_schemes(void **state)
{
	struct cop_trace_event e[] = {
		event("checkpoint", "1", "", 0, 4, 400),
		event("write", "1", "/ssd/a", 0, 2, 100),
		event("write", "1", "/ssd/a", 3, 1, 100),
	};

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		e[i].host = str(i ? "node1" : "node2"); /* two nodes */
	nodes = "2,8";
	scheme = "xor:5";
	/* Two nodes write 400 bytes and a quarter more, at 100 bytes per second and node. */
	check(e, 3, "case,what,size,dur,nodes,scheme,factor\n",
		"run,ssd,500,2.500000000,2,xor:5,1.250000\n"
		"run,ssd,2000,2.500000000,8,xor:5,1.250000\n");
	nodes = scheme = NULL;
}

static void what_is_no_tier_is_told(void **state)
{
	static const char *const words[] = {"ssd", "=x", "ssd=", ""};
	static const struct {
		const char *word;
		double bytes;
	} units[] = {{"ssd=2.5GB/s", 2.5e9}, {"ssd=2.5 GB/s", 2.5e9}, {"ssd=800MB", 8e8},
		{"ssd=1TB/s", 1e12}, {"ssd=2GiB/s", 2147483648.0}, {"ssd=2GiB", 2147483648.0},
		{"ssd=1.5G", 1610612736.0}, {"ssd=7B/s", 7}, {"ssd=7/s", 7}};
	struct cop_ckpt_conf conf;
	struct cop_err err;

	(void)state;
	configure(&conf);
	for (size_t i = 0; i < COP_ARRAY_SIZE(words); i++)
		assert_int_not_equal(cop_ckpt_add_tier(&conf, words[i], &err), 0);
	assert_int_not_equal(cop_ckpt_add_model(&conf, "tape=1", &err), 0);
	assert_non_null(strstr(err.text, "'tape' is not a tier"));
	assert_int_not_equal(cop_ckpt_add_model(&conf, "ssd=-1", &err), 0);
	assert_int_not_equal(cop_ckpt_add_model(&conf, "ssd=nan", &err), 0);
	assert_int_equal(cop_ckpt_add_model(&conf, "ssd=1.5e9", &err), 0);
	assert_true(conf.bandwidth[0] == 1.5e9);
	for (size_t i = 0; i < COP_ARRAY_SIZE(units); i++) {
		assert_int_equal(cop_ckpt_add_model(&conf, units[i].word, &err), 0);
		assert_true(conf.bandwidth[0] == units[i].bytes);
	}
	assert_int_not_equal(cop_ckpt_add_model(&conf, "ssd=2.5GB/h", &err), 0);
	assert_int_not_equal(cop_ckpt_add_model(&conf, "ssd=2.5QB/s", &err), 0);
	cop_ckpt_conf_fini(&conf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_slowest_thread_counts),
		cmocka_unit_test(a_flush_is_outside_of_checkpoints_of_its_thread),
		cmocka_unit_test(an_event_within_another_one_does_not_count_again),
		cmocka_unit_test(nothing_is_known_of_a_run_without_events),
		cmocka_unit_test(the_best_interval_is_that_of_young_and_daly),
		cmocka_unit_test(predictions_know_nodes_and_schemes),
		cmocka_unit_test(what_is_no_tier_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
