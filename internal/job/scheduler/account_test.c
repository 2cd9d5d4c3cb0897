/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "job/scheduler/scheduler.h"

#define AT 1700000100

static struct cop_slurm_account a;

static int parse(const char *text)
{
	return cop_slurm_account_parse(text, "7", AT, &a);
}

static void the_step_that_had_most_memory_gives_memory_and_use(void **state)
{
	(void)state;
	assert_int_equal(
		parse("7|COMPLETED|75|||1700000000|1700000075\n"
		      "7.batch|COMPLETED|75|5364K|cpu=00:00:01,mem=5364K|1700000000|1700000075\n"
		      "7.0|COMPLETED|70|1.5G|cpu=00:01:00,mem=3G|1700000005|1700000075\n"
		      "7.1|FAILED|2|0||1700000005|1700000075\n"),
		0);
	assert_string_equal(a.state, "COMPLETED");
	assert_true(a.ended);
	assert_int_equal(a.elapsed_s, 75);
	assert_int_equal(a.max_rss_bytes, (uint64_t)3 << 29);
	assert_string_equal(a.tres, "cpu=00:01:00,mem=3G");
	assert_int_equal(parse("7|CANCELLED by 1000|5|1048576|mem=1|1700000000|1700000099\n"), 0);
	assert_string_equal(a.state, "CANCELLED by 1000");
	assert_true(a.ended);
	assert_int_equal(a.max_rss_bytes, 0);
}

static void a_job_that_goes_on_has_not_ended(void **state)
{
	(void)state;
	assert_int_equal(parse("7|RUNNING|100|||1700000000|Unknown\n"), 0);
	assert_false(a.ended);
	assert_int_equal(parse("7|PENDING|0|||Unknown|Unknown\n"), -ENOENT);
}

static void the_attempt_that_ran_then_counts(void **state)
{
	static const char text[] = "7|NODE_FAIL|50|||1699999000|1699999050\n"
				   "7.0|CANCELLED|50|9G|mem=9G|1699999000|1699999050\n"
				   "7|TIMEOUT|60|||1700000090|1700000150\n"
				   "7.0|CANCELLED|60|2K|mem=2K|1700000090|1700000150\n"
				   "7|RUNNING|5|||1700000160|Unknown\n"
				   "7.0|RUNNING|5|8G|mem=8G|1700000160|Unknown\n"
				   "7|PENDING|0|||Unknown|Unknown\n"
				   "77|COMPLETED|60|||1700000090|1700000150\n"
				   "77.0|COMPLETED|60|7G||1700000090|1700000150\n";

	(void)state;
	assert_int_equal(parse(text), 0);
	assert_string_equal(a.state, "TIMEOUT");
	assert_int_equal(a.max_rss_bytes, 2048);
	assert_int_equal(cop_slurm_account_parse(text, "7", 1700000080, &a), 0);
	assert_string_equal(a.state, "TIMEOUT");
	assert_int_equal(cop_slurm_account_parse(text, "7", 1699999055, &a), 0);
	assert_string_equal(a.state, "NODE_FAIL");
	assert_int_equal(a.max_rss_bytes, (uint64_t)9 << 30);
	assert_int_equal(cop_slurm_account_parse(text, "7", 1500000000, &a), -ENOENT);
	assert_int_equal(cop_slurm_account_parse(text, "8", AT, &a), -ENOENT);
	/* An old Slurm that ignores the requested time format. */
	assert_int_equal(parse("7|FAILED|5|||2023-11-14T22:13:20|2023-11-14T22:14:20\n"), 0);
	assert_string_equal(a.state, "FAILED");
}

static void other_output_is_none(void **state)
{
	static const char *const bad[] = {"7", "7|COMPLETED|75", "slurm: error\n",
		"7|COMPLETED|75|||1700000000|1700000175|more\n",
		"7|COMPLETED|a day|||1700000000|1700000175\n", "7||75|||1700000000|1700000175\n",
		"7|\033[2J|75|||1700000000|1700000175\n"};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(bad); i++)
		assert_int_equal(parse(bad[i]), -EBADMSG);
	assert_int_equal(parse(""), -ENOENT);
	assert_int_equal(parse("\n\n"), -ENOENT);
	assert_int_equal(parse("7.0|COMPLETED|75|1K||1700000000|1700000075\n"), -ENOENT);
	assert_int_equal(parse("7|COMPLETED|75|||1700000000|1700000175\n"
			       "7.0|COMPLETED|75|1e999|a||\n7.1||x|nan|\033||\n7.2|||1KB|||\n"
			       "7.3|COMPLETED|75|-1K|||\n"),
		0);
	assert_int_equal(a.max_rss_bytes, 0);
	assert_string_equal(a.tres, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_step_that_had_most_memory_gives_memory_and_use),
		cmocka_unit_test(a_job_that_goes_on_has_not_ended),
		cmocka_unit_test(the_attempt_that_ran_then_counts),
		cmocka_unit_test(other_output_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
