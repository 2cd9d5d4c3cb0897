/* SPDX-License-Identifier: BSD-3-Clause */
/* What a trace says of requests of children. The clock stands still, as it does for a request that
 * is answered within a microsecond. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <ftw.h>
#include <zlib.h>

#include "tree/fetch/fetch_testing.h"

#define TTL_MS 2000

static char job[64];
static _Atomic uint64_t now_ns; /* the tracer's thread reads it, too */

static uint64_t test_now(void)
{
	return now_ns;
}

static int64_t test_wall(void)
{
	return 1700000000 * (int64_t)COP_NS_PER_S;
}

static int set_up(void **state)
{
	struct cop_tracer_conf conf = {
		.job_dir = job, .host = "n", .source = "/soft", .pid = 1, .limit = COP_MIB};
	struct cop_err err = {0};

	strcpy(job, "/tmp/cop-fetch-trace-XXXXXX");
	if (!mkdtemp(job))
		return -1;
	now_ns = 1000 * COP_NS_PER_S;
	cop_clocks_for_test(test_now, test_wall);
	ttl_ms = TTL_MS;
	assert_int_equal(cop_tracer_start(&conf, &tracer, &err), 0);
	*state = open_tree(3, 1, 1, 1 << 20);
	put_file(*state, "d/f", "hello", 5);
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st, (void)flag, (void)ftw;
	return remove(path);
}

static int tear_down(void **state)
{
	(void)state;
	cop_clocks_for_test(NULL, NULL);
	return nftw(job, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Ends the tree and its trace, and returns the trace's text. */
static const char *trace_of(struct tree *t)
{
	static char text[COP_MIB], path[128];
	gzFile file;
	int n;

	close_tree(t);
	cop_tracer_stop(tracer);
	tracer = NULL;
	snprintf(path, sizeof(path), "%s/trace/n-1.pfw.gz", job);
	file = gzopen(path, "r");
	assert_non_null(file);
	n = gzread(file, text, sizeof(text) - 1);
	assert_true(n > 0);
	text[n] = '\0';
	gzclose(file);
	return text;
}

static unsigned count(const char *text, const char *part)
{
	unsigned n = 0;

	for (const char *p = text; (p = strstr(p, part)); p++)
		n++;
	return n;
}

/* Each flow that arrives needs a span that it leads to, and that is longer than nothing: a span of
 * no length at the end of another is outside of both for viewers that count in floating point. */
static void check_arrivals(const char *text, unsigned want)
{
	unsigned serves = 0;

	assert_int_equal(count(text, "\"ph\":\"f\""), want);
	for (const char *p = text; (p = strstr(p, "\"name\":\"serve\"")); p++) {
		const char *dur = strstr(p, "\"dur\":");

		assert_non_null(dur);
		assert_int_equal(strtoul(dur + strlen("\"dur\":"), NULL, 10), 1);
		serves++;
	}
	assert_int_equal(serves, want);
}

static void a_request_that_is_answered_at_once_has_a_span(void **state)
{
	struct tree *t = *state;

	assert_int_equal(ask_and_forget(t, 1, listing("d")), 0);
	assert_int_equal(ask_and_forget(t, 2, listing("d")), 0);
	check_arrivals(trace_of(t), 2);
}

static void a_check_that_needs_no_look_has_a_span(void **state)
{
	struct tree *t = *state;
	struct cop_ask check = {.kind = COP_ASK_CHECK, .path = "d"};
	struct cop_attr dir;
	const char *text;
	struct asked a;

	ask_fetch(t, 2, listing("d"), &a);
	run_until_idle(t);
	cop_listing_dir(a.obj->data, &dir);
	forget(&a);
	check.version = dir.version;
	now_ns += (TTL_MS + 1) * COP_NS_PER_MS;
	assert_int_equal(ask_and_forget(t, 1, check), 0);
	assert_int_equal(ask_and_forget(t, 2, check), 0);
	text = trace_of(t);
	check_arrivals(text, 4);
	assert_int_equal(
		count(text,
			"\"kind\":\"check\",\"ret\":0,\"image_size\":0,\"index\":0,\"child\":2"),
		1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_request_that_is_answered_at_once_has_a_span, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_check_that_needs_no_look_has_a_span, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
