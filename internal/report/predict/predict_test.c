/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/stat.h>

#include "report/predict/predict_priv.h"
#include "storage/manifest/manifest.h"

static struct cop_err err;

/* The environment and the storage of scripts/bench/side-by-side.sh, whose table is in
 * man/measurements.md: 5 ms for each operation, 16 at once. */
static struct cop_predict_needs numpy = {
	.directories = 43, .names = 84, .files = 164, .bytes = 21942771, .reads = 306};
static struct cop_predict_storage slow = {.metadata_us = 5060,
	.read_us = 5060,
	.stream_mb_per_s = 92,
	.mb_per_s = 813,
	.slots = 16,
	.children = 11.7};
static struct cop_predict_job job = {
	.needs = &numpy, .storage = &slow, .image_bytes = 31191040, .own_s = 0.11, .processors = 2};

/* Seconds until the last node had imported numpy, on a quiet machine; 0: not measured. Storages
 * differ in their slots, and each has the figures that copper predict found just after. */
struct measured {
	const char *when;
	struct cop_predict_needs needs;
	struct cop_predict_storage storage;
	double own_s;
	bool packed;
	struct {
		uint32_t nodes;
		double s[COP_PREDICT_WAYS];
	} row[4];
};
static const struct measured measured[] = {
	{"16 slots, no pack, 26 November 2026",
		{.directories = 43, .names = 84, .files = 164, .bytes = 21942771, .reads = 306},
		{5060, 5060, 92, 813, 16, 11.7, 0, 0}, 0.11, false,
		{{1, {5.2, 0.60, 2.8, 0.56}}, {2, {5.2, 0.56, 2.8, 0.57}},
			{4, {5.2, 0.79, 3.2, 0.75}}, {8, {5.3, 1.3, 4.1, 1.1}}}},
	{"16 slots, a pack on a local disk, 28 November 2026",
		{.directories = 43, .names = 137, .files = 164, .bytes = 27161075, .reads = 336},
		{5152.2, 5176.9, 71.472, 750.505, 16.4, 11.7, 1000, 0}, 0.130, true,
		{{1, {5.419, 0.704, 0, 0.331}}, {2, {5.456, 0.690, 0, 0.409}},
			{4, {5.509, 1.069, 0, 0.672}}, {8, {5.588, 1.840, 0, 1.133}}}},
	{"4 slots, a pack on a local disk, 28 November 2026",
		{.directories = 43, .names = 137, .files = 164, .bytes = 27161075, .reads = 336},
		{5149.0, 5162.1, 67.648, 176.315, 4.1, 11.7, 1000, 0}, 0.143, true,
		{{1, {5.380, 0.694, 0, 0.598}}, {2, {5.412, 0.670, 0, 0.641}},
			{4, {5.589, 1.267, 0, 0.875}}, {8, {10.348, 2.564, 0, 1.390}}}},
};

static void is_near(const struct measured *m, size_t i)
{
	struct cop_predict_job j = {.needs = &m->needs,
		.storage = &m->storage,
		.image_bytes = 31191040,
		.packed = m->packed,
		.own_s = m->own_s,
		.processors = 2};
	struct cop_predict_row row;

	assert_int_equal(cop_predict_row(&j, m->row[i].nodes, &row), 0);
	for (unsigned w = 0; w < COP_PREDICT_WAYS; w++) {
		double was = m->row[i].s[w];

		if (was > 0 && (row.s[w] < was / 1.2 || row.s[w] > was * 1.2))
			fail_msg("%s: %s on %u nodes: %.3f s instead of %.3f s", m->when,
				cop_predict_name[w], m->row[i].nodes, row.s[w], was);
	}
}

static void the_times_are_those_that_were_measured(void **state)
{
	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(measured); i++)
		for (size_t k = 0; k < COP_ARRAY_SIZE(measured[i].row); k++)
			is_near(&measured[i], k);
}

static void the_operations_are_those_that_were_counted(void **state)
{
	static const double counted[] = {8168, 968, 448, 1203};
	struct cop_predict_row row;

	(void)state;
	assert_int_equal(cop_predict_row(&job, 8, &row), 0);
	for (unsigned w = 0; w < COP_PREDICT_WAYS; w++) {
		assert_true(row.operations[w] > 0.85 * counted[w]);
		assert_true(row.operations[w] < 1.15 * counted[w]);
	}
}

/* With a pack, Copper asks for attributes alone, and reads the pack in pieces of 2 MiB. */
static void a_pack_saves_operations_and_time(void **state)
{
	struct cop_predict_job packed = job;
	struct cop_predict_row row, without;

	(void)state;
	packed.packed = true;
	assert_int_equal(cop_predict_row(&packed, 1, &row), 0);
	assert_int_equal(cop_predict_row(&job, 1, &without), 0);
	assert_true(row.operations[COP_PREDICT_COPPER] >= 43 + 84 + 164 + 10);
	assert_true(row.operations[COP_PREDICT_COPPER] <= 43 + 84 + 164 + 11);
	assert_true(row.s[COP_PREDICT_COPPER] < without.s[COP_PREDICT_COPPER]);
	assert_true(row.s[COP_PREDICT_DIRECT] == without.s[COP_PREDICT_DIRECT]);
}

/* It takes no operation of the storage then, but may be slow itself. */
static void a_pack_on_another_file_system_is_not_read_from_the_storage(void **state)
{
	struct cop_predict_storage with = slow;
	struct cop_predict_job packed = job;
	struct cop_predict_row there, fast, crawling;

	(void)state;
	packed.packed = true;
	assert_int_equal(cop_predict_row(&packed, 1, &there), 0);
	packed.storage = &with;
	with.pack_mb_per_s = 1000;
	assert_int_equal(cop_predict_row(&packed, 1, &fast), 0);
	with.pack_mb_per_s = 1;
	assert_int_equal(cop_predict_row(&packed, 1, &crawling), 0);
	assert_true(fast.operations[COP_PREDICT_COPPER] == 43 + 84 + 164);
	assert_true(fast.s[COP_PREDICT_COPPER] <= there.s[COP_PREDICT_COPPER]);
	assert_true(crawling.s[COP_PREDICT_COPPER] > 21.9);
}

static void only_copper_and_sbcast_ask_no_more_with_more_nodes(void **state)
{
	struct cop_predict_row few, many;

	(void)state;
	cop_predict_row(&job, 1, &few);
	cop_predict_row(&job, 1000000, &many);
	assert_true(
		many.operations[COP_PREDICT_DIRECT] > 999999 * few.operations[COP_PREDICT_DIRECT]);
	assert_true(
		many.operations[COP_PREDICT_IMAGE] > 999999 * few.operations[COP_PREDICT_IMAGE]);
	assert_true(many.operations[COP_PREDICT_COPPER] == few.operations[COP_PREDICT_COPPER]);
	assert_true(many.operations[COP_PREDICT_SBCAST] == few.operations[COP_PREDICT_SBCAST]);
}

static void a_storage_without_a_limit_serves_all_at_once(void **state)
{
	struct cop_predict_storage wide = slow;
	struct cop_predict_job other = job;
	struct cop_predict_row row, limited;

	(void)state;
	wide.slots = 0;
	/* 64 nodes on two processors would wait for those. */
	other.processors = 0;
	cop_predict_row(&other, 64, &limited);
	other.storage = &wide;
	cop_predict_row(&other, 64, &row);
	assert_true(row.s[COP_PREDICT_DIRECT] < limited.s[COP_PREDICT_DIRECT]);
	assert_true(row.s[COP_PREDICT_COPPER] < limited.s[COP_PREDICT_COPPER]);
}

static void a_huge_recording_costs_in_proportion(void **state)
{
	struct cop_predict_needs huge = numpy;
	struct cop_predict_job other = job;
	struct cop_predict_row small, large;
	uint64_t times = 1000000;

	(void)state;
	huge.directories *= times;
	huge.names *= times;
	huge.files *= times;
	huge.bytes *= times;
	huge.reads *= times;
	other.needs = &huge;
	assert_int_equal(cop_predict_row(&job, 1, &small), 0);
	assert_int_equal(cop_predict_row(&other, 1, &large), 0);
	assert_true(large.operations[COP_PREDICT_COPPER] >
		    0.99e6 * small.operations[COP_PREDICT_COPPER]);
	assert_true(large.operations[COP_PREDICT_COPPER] <
		    1.01e6 * small.operations[COP_PREDICT_COPPER]);
	assert_true(large.s[COP_PREDICT_COPPER] > 0.6e6 * small.s[COP_PREDICT_COPPER]);
}

/* ---- recordings ---- */

static char path[64];

static int write_manifest(const char *items)
{
	struct cop_buf text = {0};
	int fd, rc;

	strcpy(path, "/tmp/copper-predict-test-XXXXXX");
	fd = mkstemp(path);
	if (fd < 0)
		return -errno;
	close(fd);
	cop_manifest_begin(&text, "/soft/env");
	cop_buf_str(&text, items);
	rc = cop_write_file(path, text.data, text.len, 0600);
	cop_buf_free(&text);
	return rc;
}

static void a_recording_is_counted_without_what_jobs_no_longer_need(void **state)
{
	struct cop_predict_needs n;

	(void)state;
	assert_int_equal(
		write_manifest("d .\nd lib\nn lib/none\nf 300000 1.000000000 0-300000 lib/a\n"
			       "f 4096 1.000000000 0-4096 lib/b\nf 9 1.000000000 - lib/c\n"
			       "unused 2\nf 70000 1.000000000 0-70000 lib/old\nend 7\n"),
		0);
	assert_int_equal(cop_predict_read(path, &n, &err), 0);
	assert_string_equal(n.source, "/soft/env");
	assert_int_equal(n.directories, 2);
	assert_int_equal(n.names, 1);
	assert_int_equal(n.files, 3);
	assert_int_equal(n.bytes, 304096);
	assert_int_equal(n.reads, 4);
	assert_int_equal(n.programs, 1);
	assert_int_equal(n.paths, 3);
	assert_string_equal(n.path[0], "lib/a");
	assert_string_equal(n.path[2], "lib/c");
	cop_predict_free(&n);
	unlink(path);
}

static void the_largest_files_are_kept_for_measuring(void **state)
{
	struct cop_predict_needs n;
	struct cop_buf items = {0};

	(void)state;
	for (unsigned i = 1; i <= 200; i++)
		cop_buf_printf(&items, "f %u 1.000000000 - f%u\n", i, i);
	assert_int_equal(write_manifest(items.data), 0);
	assert_int_equal(cop_predict_read(path, &n, &err), 0);
	assert_int_equal(n.paths, PREDICT_PATHS);
	assert_string_equal(n.path[0], "f200");
	assert_string_equal(n.path[PREDICT_PATHS - 1], "f137");
	cop_predict_free(&n);
	cop_buf_free(&items);
	unlink(path);
}

static void what_is_no_recording_is_refused(void **state)
{
	struct cop_predict_needs n;

	(void)state;
	assert_int_equal(cop_predict_read("/none", &n, &err), -ENOENT);
	cop_predict_free(&n);
	assert_int_equal(cop_predict_read("/proc/self/cmdline", &n, &err), -EBADMSG);
	cop_predict_free(&n);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(cop_predict_read(path, &n, &err), -EINVAL);
	assert_non_null(strstr(err.text, "not a regular file"));
	cop_predict_free(&n);
	unlink(path);
	assert_int_equal(write_manifest("end 0\n"), 0);
	assert_int_equal(cop_predict_read(path, &n, &err), -ENODATA);
	cop_predict_free(&n);
	unlink(path);
	assert_int_equal(
		write_manifest("f 18446744073709551615 1.000000000 0-18446744073709551615 a\n"
			       "f 9 1.000000000 0-9 b\nend 2\n"),
		0);
	assert_int_equal(cop_predict_read(path, &n, &err), -EFBIG);
	cop_predict_free(&n);
	unlink(path);
}

static void a_figure_outside_of_its_range_is_refused(void **state)
{
	static const char *const bad[] = {"slots", "slots=", "slots=-1", "slots=x", "slots=1x",
		"mb_per_s=0", "slots=1e7", "children=65", "read_us=nan", "read_us=1e10", "other=1",
		"=1", ""};
	struct cop_predict_storage s = {0};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(bad); i++)
		assert_int_equal(cop_predict_set(&s, bad[i], &err), -EINVAL);
	assert_int_equal(cop_predict_set(&s, "slots=0", &err), 0);
	assert_int_equal(cop_predict_set(&s, "read_us=12.5", &err), 0);
	assert_true(s.read_us > 12 && s.read_us < 13);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_times_are_those_that_were_measured),
		cmocka_unit_test(the_operations_are_those_that_were_counted),
		cmocka_unit_test(a_pack_saves_operations_and_time),
		cmocka_unit_test(a_pack_on_another_file_system_is_not_read_from_the_storage),
		cmocka_unit_test(only_copper_and_sbcast_ask_no_more_with_more_nodes),
		cmocka_unit_test(a_storage_without_a_limit_serves_all_at_once),
		cmocka_unit_test(a_huge_recording_costs_in_proportion),
		cmocka_unit_test(a_recording_is_counted_without_what_jobs_no_longer_need),
		cmocka_unit_test(the_largest_files_are_kept_for_measuring),
		cmocka_unit_test(what_is_no_recording_is_refused),
		cmocka_unit_test(a_figure_outside_of_its_range_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
