/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "prof/advice/advice.h"

#define M ((uint64_t)COP_MIB)

/* A job of four nodes that imported a large package from storage with a latency of 0.5 ms. */
static const struct cop_advice_facts healthy = {.nodes = 4,
	.read_bytes = 1300 * M,
	.fetched_bytes = 1700 * M,
	.used_bytes = 1300 * M,
	.wanted_bytes = 1350 * M,
	.origin_operations = 7000,
	.origin_bytes = 500 * M,
	.origin_us = 3500000,
	.held = 20000,
	.held_us = 6000000,
	.expires = 300,
	.bypassed = "",
	.changed_file = "",
	.past = "",
	.no_view = ""};

static struct cop_advices give(const struct cop_advice_facts *f)
{
	struct cop_advices a;

	cop_advice_give(f, &a);
	return a;
}

static void assert_none(const struct cop_advice_facts *f)
{
	struct cop_advices a = give(f);

	if (a.n)
		print_error("%s: %s\n", a.at[0].code, a.at[0].sentence);
	assert_int_equal(a.n, 0);
}

static struct cop_advice only(const struct cop_advice_facts *f, const char *code)
{
	struct cop_advices a = give(f);

	assert_int_equal(a.n, 1);
	assert_string_equal(a.at[0].code, code);
	return a.at[0];
}

static void assert_says(const struct cop_advice *a, const char *what)
{
	if (!strstr(a->sentence, what))
		fail_msg("'%s' is not in '%s'", what, a->sentence);
}

static void a_healthy_job_gets_none(void **state)
{
	struct cop_advice_facts nothing = {
		.bypassed = "", .changed_file = "", .past = "", .no_view = ""};

	(void)state;
	assert_none(&healthy);
	assert_none(&nothing);
}

/* Each kind of advice starts exactly at its limit: one less gives no advice. */
static void each_kind_begins_at_its_limit(void **state)
{
	static const struct {
		const char *code;
		size_t offset;
		uint64_t below;
		struct cop_advice_facts with; /* added to the healthy job */
	} rows[] = {
#define AT(field) offsetof(struct cop_advice_facts, field)
		{"changed", AT(changed), 0, {0}},
		{"fallback", AT(fallbacks), 199, {.fell_back = 2}},
		{"bypass", AT(bypass_bytes), 130 * M - 1, {0}},
		{"cache", AT(refetched_bytes), 170 * M - 1, {.cache_needed = 300 * M}},
		/* 7,000 operations of 8 ms, plus 5.24 s for their bytes. */
		{"storage", AT(origin_us), 56000000 + 5242880 - 1, {0}},
		{"manifest", AT(later_bytes), 650 * M - 1, {.prefetched_bytes = 100 * M}},
		{"unused", AT(fetched_bytes), 2650 * M - 1, {0}},
		{"manifest", AT(fetched_bytes), 2650 * M - 1, {.prefetched_bytes = 650 * M}},
		{"absences", AT(expires), 7999, {0}},
#undef AT
	};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(rows); i++) {
		struct cop_advice_facts f = healthy;
		uint64_t *number = (uint64_t *)(void *)((char *)&f + rows[i].offset);

		f.fell_back = rows[i].with.fell_back;
		f.cache_needed = rows[i].with.cache_needed;
		f.prefetched_bytes = rows[i].with.prefetched_bytes;
		*number = rows[i].below;
		assert_none(&f);
		++*number;
		only(&f, rows[i].code);
	}
}

/* Shares mean nothing if little was read. */
static void small_amounts_are_never_much(void **state)
{
	struct cop_advice_facts f = {.nodes = 1,
		.read_bytes = 16 * M - 1,
		.bypass_bytes = 16 * M - 1,
		.fetched_bytes = 16 * M - 1,
		.refetched_bytes = 16 * M - 1,
		.prefetched_bytes = 16 * M - 1,
		.later_bytes = 16 * M - 1,
		.origin_operations = 199,
		.origin_us = 1000000000,
		.held = 1000,
		.fallbacks = 99,
		.fell_back = 1,
		.expires = 1999,
		.bypassed = "a",
		.changed_file = "",
		.past_files = 63,
		.past_bytes = 32 * M - 1,
		.past = "/s/a"};

	(void)state;
	assert_none(&f);
	f.origin_operations++;
	only(&f, "storage");
	f.held = 49;
	only(&f, "storage");
	f.origin_us = 200 * (uint64_t)8000 - 1;
	assert_none(&f);
}

static void a_storage_is_slow_only_beside_a_fast_tree(void **state)
{
	struct cop_advice_facts f = healthy;
	struct cop_advice a;

	(void)state;
	f.origin_us = 7000 * 20000;
	f.held_us = 20000 * 2000;
	assert_none(&f);
	f.held_us = 20000 * 1000;
	a = only(&f, "storage");
	assert_says(
		&a, "19.3 ms for each of 7000 operations, where another node answers in 1.0 ms");
	assert_string_equal(a.option, "--prefetch");
	f.prefetched_bytes = M;
	a = only(&f, "storage");
	assert_string_equal(a.option, "--origin-ops");
}

static void a_node_alone_on_a_very_slow_storage_is_told(void **state)
{
	struct cop_advice_facts f = healthy;
	struct cop_advice a;

	(void)state;
	f.nodes = 1;
	f.held = f.held_us = 0;
	f.origin_bytes = 0;
	f.origin_us = 7000 * 7999;
	assert_none(&f);
	f.origin_us = 7000 * 20000;
	a = only(&f, "storage");
	assert_says(&a,
		"20.0 ms for each of 7000 operations, 140.0 s for a program that waits for one after another; with --prefetch auto in this job and the next,");
}

static void a_prefetch_without_a_program_says_that_nothing_was_recorded(void **state)
{
	struct cop_advice_facts f = {.nodes = 1,
		.fetched_bytes = 64 * M,
		.prefetched_bytes = 64 * M,
		.bypassed = "",
		.changed_file = "",
		.past = "",
		.no_view = ""};
	struct cop_advice a = only(&f, "manifest");

	(void)state;
	assert_says(&a, "64.0 MiB were prefetched but never used: no program read anything");
	assert_says(&a, "nothing was recorded for the next job");
	assert_null(strstr(a.sentence, "--prefetch auto"));
	f.prefetched_bytes = M;
	only(&f, "manifest");
	f.prefetched_bytes = 64 * M;
	f.read_bytes = f.used_bytes = M;
	a = only(&f, "manifest");
	assert_says(&a, "the manifest is of another job");
}

static void commands_without_a_view_are_the_first_thing_to_say(void **state)
{
	struct cop_advice_facts f = healthy;
	struct cop_advices a;

	(void)state;
	f.view_fallbacks = 1;
	f.no_view = "user.max_user_namespaces is 0";
	f.past_programs = 1;
	f.past_files = 256;
	f.past_bytes = 200 * M;
	a = give(&f);
	assert_int_equal(a.n, 2);
	assert_string_equal(a.at[0].code, "view");
	assert_int_equal(a.at[0].weight, 110);
	assert_says(&a.at[0],
		"programs read 1.3 GiB of the source through Copper: 1 command of copper run had only variables such as PATH that lead to the tree (user.max_user_namespaces is 0), and absolute paths read the storage past it;");
	/* The programs were started with copper run, so that is not the remedy. */
	assert_string_equal(a.at[1].code, "past");
	assert_null(strstr(a.at[1].sentence, "copper run --"));
	f.read_bytes = 0;
	f.view_fallbacks = 4096;
	a = give(&f);
	assert_int_equal(a.at[0].weight, 119);
	assert_says(&a.at[0], "programs read 0 B of the source through Copper: 4096 commands of");
}

static void programs_past_the_mount_are_told_beside_what_went_through_it(void **state)
{
	struct cop_advice_facts f = healthy;
	struct cop_advice a;

	(void)state;
	f.past_programs = 2;
	f.past_files = 4 * 64;
	f.past_bytes = 130 * M + 1;
	f.past = "/soft/lib/libx.so";
	a = only(&f, "past");
	assert_int_equal(a.weight, 100);
	assert_string_equal(a.option, "copper run");
	assert_says(&a,
		"2 programs used 256 files (130.0 MiB) of the source at its own path, past the mount, where Copper cannot help, the first /soft/lib/libx.so; start them with copper run -- COMMAND, or");
	/* Exactly a tenth. */
	f.past_bytes--;
	assert_none(&f);
	/* If nothing went through the tree, a few bytes are enough, but each node needs many
	 * files. */
	f.read_bytes = f.used_bytes = f.wanted_bytes = f.fetched_bytes = 0;
	f.past_bytes = M;
	only(&f, "past");
	f.past_files--;
	assert_none(&f);
	f.past_bytes = 4 * 32 * M;
	only(&f, "past");
	f.past_bytes--;
	assert_none(&f);
}

/* A node that only forwards bytes neither uses nor wastes them. */
static void what_is_passed_on_is_not_unused(void **state)
{
	struct cop_advice_facts f = healthy;

	(void)state;
	f.fetched_bytes = f.wanted_bytes = 4000 * M;
	assert_none(&f);
	f.used_bytes = 0;
	assert_none(&f);
}

static void what_was_dropped_and_came_again_is_no_fault_of_the_manifest(void **state)
{
	struct cop_advice_facts f = healthy;

	(void)state;
	f.prefetched_bytes = 100 * M;
	f.later_bytes = 700 * M;
	only(&f, "manifest");
	f.refetched_bytes = 60 * M;
	assert_none(&f);
}

static void checks_with_news_are_needed(void **state)
{
	struct cop_advice_facts f = healthy;
	struct cop_advice a;

	(void)state;
	f.expires = 20000;
	f.clears = 1001;
	assert_none(&f);
	f.clears = 1000;
	a = only(&f, "absences");
	assert_says(&a, "20000 were checked again, 1000 of them with a change");
	assert_says(&a, "-E 60000");
}

static void the_sentences_say_how_much_and_where(void **state)
{
	struct cop_advice_facts f = healthy;
	struct cop_advices a;

	(void)state;
	f.changed = 3;
	f.changed_file = "lib/x.py";
	f.fallbacks = 500;
	f.fell_back = 2;
	f.bypass_bytes = 650 * M;
	f.bypassed = "data/big.bin";
	f.refetches = 70;
	f.refetched_bytes = 200 * M;
	f.cache_needed = 300 * M;
	a = give(&f);
	assert_int_equal(a.n, 4);
	assert_says(&a.at[0], "3 reads found another version, the first in lib/x.py,");
	assert_says(&a.at[1], "2 of 4 nodes asked the storage themselves 500 times");
	assert_says(&a.at[2],
		"650.0 MiB (50 % of all) past the tree, each node from the storage by itself, the first from data/big.bin;");
	assert_says(&a.at[3],
		"70 objects (200.0 MiB) were dropped from it and then fetched again; --cache-size 352M");
}

static void data_beyond_all_memory_is_told_by_its_factor(void **state)
{
	struct cop_advice_facts f = healthy;
	struct cop_advice a;

	(void)state;
	f.refetches = 70;
	f.refetched_bytes = 200 * M;
	f.cache_needed = 300 * M;
	f.memory = 100 * M;
	f.data = 100 * M;
	a = only(&f, "cache");
	assert_says(&a, "the cache was too small:");
	f.data = 310 * M;
	a = only(&f, "cache");
	assert_string_equal(a.option, "--cache-size");
	assert_says(&a,
		"the data was 3.1 times the memory of all nodes (310.0 MiB, and their caches hold 100.0 MiB): 70 objects (200.0 MiB) were dropped and then fetched again; --cache-size 352M would have held all that any node needed, 96M all data once for the job, and --spill DIR");
	/* A single node has no other nodes' memory. */
	f.nodes = 1;
	a = only(&f, "cache");
	assert_says(&a, "the cache was too small:");
}

static void the_most_important_one_is_first_and_amounts_weigh(void **state)
{
	struct cop_advice_facts f = healthy;
	struct cop_advices a;

	(void)state;
	f.changed = 1;
	assert_int_equal(only(&f, "changed").weight, 90);
	f.changed = UINT64_MAX;
	f.expires = 8000 << 2;
	f.fallbacks = UINT64_MAX;
	f.fell_back = 4;
	a = give(&f);
	assert_int_equal(a.n, 3);
	assert_int_equal(a.at[0].weight, 99);
	assert_int_equal(a.at[1].weight, 89);
	assert_string_equal(a.at[2].code, "absences");
	assert_int_equal(a.at[2].weight, 22);
}

static void the_counters_are_the_facts(void **state)
{
	struct cop_stats stats = {0};
	struct cop_advice_facts f = {.nodes = 1};
	struct cop_advice a;

	(void)state;
	cop_stats_add(&stats, COP_ORIGIN_CHANGED, 2);
	cop_stats_example(&stats, COP_EXAMPLE_CHANGED, "a/b");
	cop_advice_count(&f, &stats);
	a = only(&f, "changed");
	assert_says(&a, "2 reads found another version, the first in a/b");
	assert_string_equal(f.bypassed, "");
	assert_string_equal(f.no_view, "");
	cop_stats_add(&stats, COP_VIEW_FALLBACKS, 2);
	cop_stats_example(&stats, COP_EXAMPLE_FALLBACK, "why");
	cop_advice_count(&f, &stats);
	assert_true(f.view_fallbacks == 2 && strcmp(f.no_view, "why") == 0);
	cop_stats_add(&stats, COP_PAST_FILES, 64);
	cop_stats_add(&stats, COP_PAST_BYTES, M);
	cop_stats_add(&stats, COP_PAST_PROGRAMS, 1);
	cop_stats_example(&stats, COP_EXAMPLE_PAST, "/s/c");
	cop_advice_count(&f, &stats);
	f.changed = f.view_fallbacks = 0;
	a = only(&f, "past");
	assert_says(&a, "1 program used 64 files (1.0 MiB) of the source");
	assert_says(&a, "the first /s/c;");
}

static void texts(void **state)
{
	struct cop_advice_facts f = healthy;
	struct cop_advices a = give(&f);
	struct cop_buf out = {0};

	(void)state;
	cop_advice_notes(&a, 3, &out);
	cop_advice_markdown(&a, &out);
	assert_int_equal(out.len, 0);
	cop_advice_csv(&a, &out);
	assert_string_equal(out.data, "code,weight,sentence,option\n");
	cop_buf_free(&out);
	f.changed = 1;
	f.changed_file = "a \"b\", c";
	f.expires = 8000;
	a = give(&f);
	cop_buf_str(&out, "n3: was held");
	cop_advice_notes(&a, 1, &out);
	assert_non_null(strstr(out.data, "n3: was held\ncopper: note: files changed"));
	assert_null(strstr(out.data, "absent"));
	cop_buf_free(&out);
	cop_advice_markdown(&a, &out);
	assert_int_equal(strncmp(out.data, "\n## Warnings\n\n- files changed", 29), 0);
	cop_buf_free(&out);
	cop_advice_csv(&a, &out);
	assert_non_null(strstr(out.data, "\nchanged,90,\"files changed"));
	assert_non_null(strstr(out.data, "the first in a \"\"b\"\", c,"));
	assert_non_null(strstr(out.data, "\",copper cache-stats --invalidate\nabsences,20,\""));
	cop_buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_healthy_job_gets_none),
		cmocka_unit_test(each_kind_begins_at_its_limit),
		cmocka_unit_test(small_amounts_are_never_much),
		cmocka_unit_test(a_storage_is_slow_only_beside_a_fast_tree),
		cmocka_unit_test(a_node_alone_on_a_very_slow_storage_is_told),
		cmocka_unit_test(a_prefetch_without_a_program_says_that_nothing_was_recorded),
		cmocka_unit_test(commands_without_a_view_are_the_first_thing_to_say),
		cmocka_unit_test(programs_past_the_mount_are_told_beside_what_went_through_it),
		cmocka_unit_test(what_is_passed_on_is_not_unused),
		cmocka_unit_test(what_was_dropped_and_came_again_is_no_fault_of_the_manifest),
		cmocka_unit_test(checks_with_news_are_needed),
		cmocka_unit_test(the_sentences_say_how_much_and_where),
		cmocka_unit_test(data_beyond_all_memory_is_told_by_its_factor),
		cmocka_unit_test(the_most_important_one_is_first_and_amounts_weigh),
		cmocka_unit_test(the_counters_are_the_facts),
		cmocka_unit_test(texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
