/* SPDX-License-Identifier: BSD-3-Clause */
#include "prof/telemetry/telemetry_testing.h"

#include <errno.h>
#include <unistd.h>

struct place {
	char dir[64];
};

static const char *const names[] = {
	"cluster_telemetry.csv", "cluster_nodes.csv", "cluster_events.csv"};

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	strcpy(p->dir, "/tmp/copper-telemetry-test-XXXXXX");
	*state = p;
	return mkdtemp(p->dir) ? 0 : -1;
}

static int teardown(void **state)
{
	struct place *p = *state;
	char path[128];

	for (size_t i = 0; i < COP_ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", p->dir, names[i]);
		unlink(path);
	}
	rmdir(p->dir);
	free(p);
	return 0;
}

static const char *host(void *ctx, uint32_t rank)
{
	(void)ctx;
	return rank == 1 ? "b,1" : "a";
}

static void write_to(const struct place *p, struct cop_telemetry_sum *s)
{
	struct cop_telemetry_job job = {.topo = {s->job_nodes, 2, 1}, .host = host};
	struct cop_err err = {0};

	cop_telemetry_finish(s);
	assert_int_equal(cop_telemetry_write(s, &job, p->dir, &err), 0);
}

static char *contents(const struct place *p, unsigned which)
{
	char path[128], *text;
	size_t len;

	snprintf(path, sizeof(path), "%s/%s", p->dir, names[which]);
	assert_int_equal(cop_read_file(path, 16 * COP_MIB, &text, &len), 0);
	return text;
}

static unsigned lines_with(const char *text, const char *begin)
{
	unsigned n = 0;

	for (const char *line = text; *line; line = strchr(line, '\n') + 1)
		n += strncmp(line, begin, strlen(begin)) == 0;
	return n;
}

static void two_nodes_have_a_row_each(void **state)
{
	struct place *p = *state;
	struct cop_telemetry_sum *s = a_node(2, 0, 1, 0), *other = a_node(2, 1, 2, 0);
	char *text;

	for (unsigned m = 0; m < METRICS; m++) {
		s->node[0].series[0][m] = 1000 * (m + 1);
		other->node[0].series[0][m] = other->node[0].series[1][m] = 1500;
	}
	for (unsigned t = 0; t < COP_TELEMETRY_TOTALS; t++)
		s->node[0].total[t] = 1000 * (t + 1);
	memset(s->node[0].phase_us, 0, sizeof(s->node[0].phase_us));
	s->node[0].phase_us[COP_TELEMETRY_FABRIC] = 1500000;
	s->node[0].start_us = -1250000;
	add_event(s, COP_TELEMETRY_STORAGE_ERROR, -5, "/a,b: EIO");
	s->dropped = 3;
	assert_int_equal(cop_telemetry_merge(s, other), 0);
	write_to(p, s);
	text = contents(p, 0);
	assert_string_equal(text,
		"rank,host,start_s,seconds,requests,read_bytes,wait_ms,parent_bytes,origin_operations,origin_bytes,sent_bytes,cache_bytes,cpu_ms,resident_bytes\n"
		"0,a,0,1,1000,2000,3,4000,5000,6000,7000,9000,8,10000\n"
		"1,\"b,1\",0,1,1500,1500,1,1500,1500,1500,1500,1500,1,1500\n"
		"1,\"b,1\",1,1,1500,1500,2,1500,1500,1500,1500,1500,2,1500\n");
	free(text);
	text = contents(p, 1);
	assert_int_equal(
		lines_with(text,
			"rank,host,parent,job_start_unix_s,ready_s,phase_prepare_s,phase_secret_s,phase_cache_s,phase_storage_s,phase_fabric_s,phase_mount_s,phase_barrier_s,phase_tell_s,requests,read_bytes,wait_parent_ms,wait_origin_ms,parent_bytes,origin_operations,origin_bytes,sent_bytes,failovers,cache_peak_bytes,cache_limit_bytes,evictions,cpu_ms,resident_peak_bytes,stopped_s,start_s,ahead_bytes,from_own_bytes,from_nodes_bytes,from_passed_bytes,from_disk_bytes,from_pack_bytes,from_storage_bytes\n"),
		1);
	assert_int_equal(
		lines_with(text,
			"0,a,-1,1700000000.000000,0.050000,0.000000,0.000000,0.000000,0.000000,1.500000,0.000000,0.000000,0.000000,1000,2000,3,4,5000,6000,7000,8000,9000,19000,20000,10000,18,21000,1.000000,-1.250000,11000,12000,13000,14000,15000,16000,17000\n"),
		1);
	assert_int_equal(lines_with(text, "1,\"b,1\",0,1700000000.000000,0.050001,"), 1);
	free(text);
	text = contents(p, 2);
	assert_string_equal(text, "time_s,unix_ns,rank,host,event,detail\n"
				  "-0.000005,1699999999999995000,0,a,storage_error,\"/a,b: EIO\"\n"
				  "dropped,3,,,,\n");
	free(text);
	cop_telemetry_sum_free(s);
	cop_telemetry_sum_free(other);
}

static void a_large_job_has_statistics_and_outliers(void **state)
{
	struct place *p = *state;
	struct cop_telemetry_sum *s = cop_telemetry_sum_new(4097);
	char *text;

	for (uint32_t r = 0; r < 500; r++) {
		struct cop_telemetry_sum *one = a_node(4097, r, 3, 0);

		one->node[0].series[2][0] = r;
		assert_int_equal(cop_telemetry_merge(s, one), 0);
		cop_telemetry_sum_free(one);
	}
	write_to(p, s);
	text = contents(p, 0);
	assert_int_equal(lines_with(text, "median,,"), 3);
	assert_int_equal(lines_with(text, "min,,2,1,0,"), 1);
	assert_int_equal(lines_with(text, "max,,2,1,499,"), 1);
	/* 249 is in the class that begins at 240. */
	assert_int_equal(lines_with(text, "median,,2,1,248,"), 1);
	assert_int_equal(lines_with(text, ""), 1 + 9 + 3 * s->nodes);
	free(text);
	text = contents(p, 1);
	assert_int_equal(lines_with(text, "median,,,1700000000.000000,"), 1);
	assert_int_equal(lines_with(text, ""), 1 + 3 + s->nodes);
	free(text);
	cop_telemetry_sum_free(s);
}

static void a_file_that_cannot_be_written_is_named(void **state)
{
	struct cop_telemetry_sum *s = a_node(1, 0, 1, 0);
	struct cop_telemetry_job job = {.topo = {1, 2, 1}, .host = host};
	struct cop_err err = {0};

	(void)state;
	assert_true(cop_telemetry_write(s, &job, "/proc/nowhere", &err) < 0);
	assert_non_null(strstr(err.text, "/proc/nowhere"));
	cop_telemetry_sum_free(s);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(two_nodes_have_a_row_each),
		T(a_large_job_has_statistics_and_outliers),
		T(a_file_that_cannot_be_written_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
