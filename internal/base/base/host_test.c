/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base/base.h"

#include "base/base/ip.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void means(const char *name, const char *want)
{
	char text[COP_IP_TEXT_SIZE];
	struct cop_ip at;

	assert_int_equal(cop_host_address(name, &at, NULL), 0);
	assert_string_equal(cop_ip_print(&at, text), want);
}

static void addresses_and_localhost_mean_themselves(void **state)
{
	struct cop_ip at;

	(void)state;
	means("10.1.2.3", "10.1.2.3");
	means("fd77:0:0::1", "fd77::1");
	assert_int_equal(cop_host_address("localhost", &at, NULL), 0);
	assert_true(cop_ip_is_loopback(&at));
	assert_int_equal(cop_ip_family(&at), AF_INET);
}

/* A label longer than 63 bytes is invalid, so no name server is asked. */
static void an_unknown_name_gives_a_sentence(void **state)
{
	struct cop_err err = {0};
	struct cop_ip at;
	char name[80] = "";

	(void)state;
	memset(name, 'x', 70);
	assert_int_equal(cop_host_address(name, &at, &err), -EHOSTUNREACH);
	assert_int_equal(strncmp(err.text, "its name is unknown: ", 21), 0);
}

static void a_link_local_address_gives_a_sentence(void **state)
{
	struct cop_err err = {0};
	struct cop_ip at;

	(void)state;
	assert_int_equal(cop_host_address("fe80::1", &at, &err), -EHOSTUNREACH);
	assert_string_equal(err.text, "fe80::1 " COP_IP_LINK_LOCAL);
}

/* Even if this machine's name is not configured anywhere. */
static void a_machine_knows_itself(void **state)
{
	char name[256] = "";
	struct cop_ip at;

	(void)state;
	assert_int_equal(gethostname(name, sizeof(name) - 1), 0);
	assert_int_equal(cop_host_address(name, &at, NULL), 0);
	assert_false(cop_ip_is_none(&at));
}

static void short_and_long_names_are_the_same_host(void **state)
{
	(void)state;
	assert_true(cop_same_host("n1", "N1"));
	assert_true(cop_same_host("n1", "n1.cluster.org"));
	assert_true(cop_same_host("n1.cluster.org", "n1"));
	assert_false(cop_same_host("n1.a", "n1.b"));
	assert_false(cop_same_host("n1", "n10"));
	assert_false(cop_same_host("", ".a"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_and_localhost_mean_themselves),
		cmocka_unit_test(an_unknown_name_gives_a_sentence),
		cmocka_unit_test(a_link_local_address_gives_a_sentence),
		cmocka_unit_test(a_machine_knows_itself),
		cmocka_unit_test(short_and_long_names_are_the_same_host),
	};

	return cmocka_run_group_tests_name("host", tests, NULL, NULL);
}
