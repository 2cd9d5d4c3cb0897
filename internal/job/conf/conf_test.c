/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "job/conf/conf.h"

static struct cop_conf conf;
static struct cop_err err;

static int parse(const struct cop_opt_table *t, const char *first, ...)
{
	char *argv[16] = {(char *)"test"};
	enum cop_opt_ask ask;
	int argc = 1;
	va_list ap;

	va_start(ap, first);
	for (const char *word = first; word; word = va_arg(ap, const char *))
		argv[argc++] = (char *)word;
	va_end(ap);
	return cop_opt_parse(t, argc, argv, &conf, &ask, NULL, &err);
}

#define MOUNT(...) parse(&cop_conf_mount_table, __VA_ARGS__, NULL)
#define SERVE(...) parse(&cop_conf_serve_table, __VA_ARGS__, NULL)

static void a_mount_without_a_mount_point_needs_a_source(void **state)
{
	(void)state;
	assert_int_equal(MOUNT("-f"), -EINVAL);
	assert_non_null(strstr(err.text, "without a MOUNTPOINT, give a --source other than /"));
	assert_int_equal(MOUNT("-f", "--source", "/"), -EINVAL);
	assert_int_equal(MOUNT("-f", "--source", "/soft"), 0);
	assert_null(conf.mountpoint);
	assert_int_equal(MOUNT("--check"), 0);
	cop_conf_init(&conf, false);
	assert_int_equal(cop_conf_check(&conf, &err), -EINVAL);
}

static void a_private_mount_point_excludes_allow_other(void **state)
{
	(void)state;
	assert_int_equal(MOUNT("--allow-other", "--source", "/soft"), -EINVAL);
	assert_non_null(strstr(err.text, "--allow-other needs a MOUNTPOINT"));
	assert_int_equal(MOUNT("--allow-other", "--source", "/soft", "/m"), 0);
}

static void a_chunk_size_must_be_a_power_of_two(void **state)
{
	(void)state;
	assert_int_equal(MOUNT("--chunk", "96K", "/m"), -EINVAL);
	assert_string_equal(err.text, "--chunk: 98304 bytes is not a power of two");
	assert_int_equal(MOUNT("--chunk", "32K", "/m"), -EINVAL);
	assert_string_equal(err.text, "--chunk: 32K is out of range 64 KiB..16 MiB");
	assert_int_equal(MOUNT("--chunk", "64K", "/m"), 0);
	assert_int_equal(MOUNT("--chunk", "16M", "/m"), 0);
}

static void a_budget_of_a_few_chunks_is_refused(void **state)
{
	(void)state;
	assert_int_equal(MOUNT("--cache-size", "15M", "/m"), -EINVAL);
	assert_int_equal(MOUNT("--cache-size", "16M", "/m"), 0);
	assert_int_equal(MOUNT("--cache-size", "32M", "--chunk", "16M", "/m"), -EINVAL);
	assert_non_null(strstr(err.text, "fewer than 4 chunks"));
	assert_int_equal(MOUNT("--cache-size", "64M", "--chunk", "16M", "/m"), 0);
}

static void a_cache_needs_a_few_chunks_and_16_mib_to_work(void **state)
{
	(void)state;
	cop_conf_init(&conf, true);
	assert_true(cop_conf_cache_least(&conf) == 16 * COP_MIB);
	conf.chunk = 16 * COP_MIB;
	assert_true(cop_conf_cache_least(&conf) == 64 * COP_MIB);
}

static void a_spill_is_a_directory_and_perhaps_a_size(void **state)
{
	static const char *const bad[] = {
		"", ",", ",1G", "/d,", "/d,x", "/d,15M", "/d,-1G", "/d,2000T", "/d,1G,", "/d,1G,x"};
	char dir[COP_CONF_DIR_SIZE];
	uint64_t size;

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(bad); i++) {
		assert_int_equal(MOUNT("--spill", bad[i], "/m"), -EINVAL);
		assert_non_null(strstr(err.text, "--spill"));
	}
	assert_int_equal(MOUNT("--spill", "/local/scratch", "/m"), 0);
	assert_int_equal(cop_conf_spill(&conf, dir, &size, &err), 0);
	assert_string_equal(dir, "/local/scratch");
	assert_true(size == 0);
	assert_int_equal(MOUNT("--spill", "/a,b,200G", "/m"), 0);
	assert_int_equal(cop_conf_spill(&conf, dir, &size, &err), 0);
	assert_string_equal(dir, "/a,b");
	assert_true(size == 200 * (uint64_t)COP_GIB);
}

static void a_spill_takes_a_part_of_the_cache(void **state)
{
	(void)state;
	assert_int_equal(MOUNT("--cache-size", "16M", "--spill", "/d", "/m"), 0);
	assert_true(cop_conf_spill_memory(&conf, 16 * COP_MIB) == 4 * COP_MIB);
	assert_true(cop_conf_spill_memory(&conf, 16 * (uint64_t)COP_GIB) == COP_GIB);
	assert_true(cop_conf_cache_least(&conf) == 16 * COP_MIB);
	assert_int_equal(
		MOUNT("--cache-size", "64M", "--chunk", "16M", "--spill", "/d", "/m"), -EINVAL);
	assert_non_null(strstr(err.text,
		"--cache-size: 64.0 MiB are too few: 4 chunks (--chunk) and what is on its way to the disk (--spill) need 96.0 MiB"));
	assert_int_equal(MOUNT("--cache-size", "96M", "--chunk", "16M", "--spill", "/d", "/m"), 0);
	assert_true(cop_conf_cache_least(&conf) == 96 * COP_MIB);
	cop_conf_init(&conf, true);
	assert_true(cop_conf_spill_memory(&conf, COP_GIB) == 0);
}

static void contradictions_are_refused(void **state)
{
	(void)state;
	assert_int_equal(MOUNT("--insecure", "--secret-file", "s", "/m"), -EINVAL);
	assert_non_null(strstr(err.text, "--insecure"));
	assert_int_equal(MOUNT("-a", "facility", "/m"), -EINVAL);
	assert_non_null(strstr(err.text, "--address-book FILE"));
	assert_int_equal(MOUNT("-a", "discover", "-F", "book", "/m"), -EINVAL);
	assert_non_null(strstr(err.text, "--address-book"));
}

static void a_fabric_port_is_a_port_or_a_range(void **state)
{
	static const char *const bad[] = {"0", "65536", "21000-", "-21000", "21015-21000", "x",
		"21000-21015-21020", "21000,21001", "021000021000-1"};

	(void)state;
	assert_int_equal(SERVE("-f"), 0);
	assert_int_equal(conf.fabric_port_low, 0);
	assert_int_equal(SERVE("--fabric-port", "21000"), 0);
	assert_int_equal(conf.fabric_port_low, 21000);
	assert_int_equal(conf.fabric_port_high, 21000);
	assert_int_equal(SERVE("--fabric-port", "1-65535"), 0);
	assert_int_equal(conf.fabric_port_low, 1);
	assert_int_equal(conf.fabric_port_high, 65535);
	for (size_t i = 0; i < COP_ARRAY_SIZE(bad); i++) {
		assert_int_equal(SERVE("--fabric-port", bad[i]), -EINVAL);
		assert_non_null(strstr(err.text, bad[i]));
	}
	assert_int_equal(SERVE("--fabric-port", "21000", "-F", "book"), -EINVAL);
	assert_int_equal(SERVE("--fabric-port", "21000", "-F", "book", "-a", "facility"), -EINVAL);
}

static void the_defaults_are_those_of_the_manual(void **state)
{
	(void)state;
	assert_int_equal(MOUNT("/m"), 0);
	assert_string_equal(conf.mountpoint, "/m");
	assert_string_equal(conf.source, "/");
	assert_string_equal(conf.net_type, "tcp");
	assert_null(conf.hosts);
	assert_null(conf.job_dir);
	assert_true(conf.rank == -1);
	assert_int_equal(conf.port, 0);
	assert_int_equal(conf.trees, 0);
	assert_int_equal(conf.fanout, 4);
	assert_int_equal(conf.enoent_ttl_ms, 2000);
	assert_int_equal(conf.enoent_most_ms, 60000);
	assert_int_equal(conf.peer_timeout_ms, 3000);
	assert_int_equal(conf.ready_timeout_ms, 120000);
	assert_int_equal(conf.origin_ops, 64);
	assert_int_equal(conf.listing_max, 65536);
	assert_true(conf.cache_size == 0);
	assert_true(conf.chunk == COP_MIB);
	assert_int_equal(conf.log_level, 3);
	assert_int_equal(conf.log_type, 0);
	assert_true(conf.discover);
	assert_false(conf.serve_only || conf.foreground || conf.insecure || conf.allow_other ||
		     conf.keep_symlinks);
}

static void a_ttl_of_absent_names_that_was_given_does_not_grow(void **state)
{
	static const char *const given[] = {"0", "500", "2000", "60000", "4294967294"};

	(void)state;
	for (size_t i = 0; i < sizeof(given) / sizeof(*given); i++) {
		assert_int_equal(MOUNT("-E", given[i], "/m"), 0);
		assert_int_equal(conf.enoent_ttl_ms, strtoul(given[i], NULL, 10));
		assert_int_equal(conf.enoent_most_ms, conf.enoent_ttl_ms);
		assert_int_equal(cop_conf_check(&conf, &err), 0);
		assert_int_equal(conf.enoent_most_ms, conf.enoent_ttl_ms);
	}
	assert_int_equal(MOUNT("-E", "4294967295", "/m"), -EINVAL);
}

static void a_job_directory_raises_the_log_level_unless_one_is_given(void **state)
{
	(void)state;
	assert_int_equal(MOUNT("-d", "job", "/m"), 0);
	assert_int_equal(conf.log_level, 4);
	assert_int_equal(MOUNT("-d", "job", "-l0", "/m"), 0);
	assert_int_equal(conf.log_level, 0);
	assert_int_equal(MOUNT("-l6", "/m"), -EINVAL);
	assert_string_equal(err.text, "--log-level: 6 is out of range 0..5");
}

static void an_address_book_implies_discovery_facility(void **state)
{
	(void)state;
	assert_int_equal(MOUNT("-F", "book", "/m"), 0);
	assert_false(conf.discover);
	assert_int_equal(MOUNT("-F", "book", "-a", "facility", "/m"), 0);
	assert_false(conf.discover);
	assert_int_equal(MOUNT("-a", "discover", "/m"), 0);
	assert_true(conf.discover);
}

static void view_is_the_mount_point_too(void **state)
{
	(void)state;
	assert_int_equal(MOUNT("-v", "/m", "-s", "--ready-timeout", "500ms"), 0);
	assert_string_equal(conf.mountpoint, "/m");
	assert_int_equal(conf.ready_timeout_ms, 500);
}

static void serve_takes_no_mount_point(void **state)
{
	(void)state;
	assert_int_equal(SERVE("/m"), -EINVAL);
	assert_int_equal(SERVE("--allow-other"), -EINVAL);
	assert_int_equal(SERVE("-t", "both", "-T2"), 0);
	assert_true(conf.serve_only);
	assert_null(conf.mountpoint);
	assert_int_equal(conf.log_type, 2);
	assert_int_equal(conf.trees, 2);
}

static void add_changed(void *arg, const char *name, const char *value)
{
	cop_buf_printf(arg, "%s=%s ", name, value);
}

static void what_the_user_changed_can_be_listed(void **state)
{
	struct cop_buf out = {0};

	(void)state;
	assert_int_equal(
		MOUNT("--chunk", "128K", "-d", "j", "-E", "2000", "--source", "/s", "/m"), 0);
	cop_conf_each_changed(&conf, add_changed, &out);
	assert_string_equal(out.data, "source=/s job-dir=j enoent-ttl-ms=2000ms chunk=131072 ");
	cop_buf_free(&out);
}

static void a_tag_has_a_key_and_a_value(void **state)
{
	(void)state;
	assert_int_equal(MOUNT("--tag", "a=b=c", "--tag", "d=", "/m"), 0);
	assert_int_equal(conf.tags.n, 2);
	assert_int_equal(MOUNT("--tag", "a", "/m"), -EINVAL);
	assert_int_equal(MOUNT("--tag", "=a", "/m"), -EINVAL);
}

static void check_help(const struct cop_opt_table *t)
{
	struct cop_buf text = {0};
	unsigned lines = 0;
	size_t column = 0;

	cop_opt_help(t, false, &text);
	for (const char *p = text.data; *p; p++) {
		column = *p == '\n' ? 0 : column + 1;
		lines += *p == '\n';
		assert_true(column < 80);
	}
	assert_true(lines < 24);
	cop_buf_free(&text);
}

static void help_fits_a_screen(void **state)
{
	(void)state;
	check_help(&cop_conf_mount_table);
	check_help(&cop_conf_serve_table);
}

/* Of two rows with the same letter, one would hide the other. */
static void no_letter_or_name_is_used_twice(void **state)
{
	const struct cop_opt_table *t = &cop_conf_mount_table;

	(void)state;
	for (size_t i = 0; i < t->rows; i++) {
		for (size_t j = i + 1; j < t->rows; j++) {
			const struct cop_opt *a = &t->row[i], *b = &t->row[j];

			assert_false(a->letter && a->letter == b->letter);
			assert_false(a->name && b->name && !strcmp(a->name, b->name));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mount_without_a_mount_point_needs_a_source),
		cmocka_unit_test(a_private_mount_point_excludes_allow_other),
		cmocka_unit_test(a_chunk_size_must_be_a_power_of_two),
		cmocka_unit_test(a_budget_of_a_few_chunks_is_refused),
		cmocka_unit_test(a_cache_needs_a_few_chunks_and_16_mib_to_work),
		cmocka_unit_test(a_spill_is_a_directory_and_perhaps_a_size),
		cmocka_unit_test(a_spill_takes_a_part_of_the_cache),
		cmocka_unit_test(contradictions_are_refused),
		cmocka_unit_test(a_fabric_port_is_a_port_or_a_range),
		cmocka_unit_test(the_defaults_are_those_of_the_manual),
		cmocka_unit_test(a_ttl_of_absent_names_that_was_given_does_not_grow),
		cmocka_unit_test(a_job_directory_raises_the_log_level_unless_one_is_given),
		cmocka_unit_test(an_address_book_implies_discovery_facility),
		cmocka_unit_test(view_is_the_mount_point_too),
		cmocka_unit_test(serve_takes_no_mount_point),
		cmocka_unit_test(what_the_user_changed_can_be_listed),
		cmocka_unit_test(a_tag_has_a_key_and_a_value),
		cmocka_unit_test(help_fits_a_screen),
		cmocka_unit_test(no_letter_or_name_is_used_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
