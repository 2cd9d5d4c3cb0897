/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void addresses_and_localhost_mean_themselves(void **state)
{
	struct in_addr at;

	(void)state;
	assert_int_equal(cop_host_address("10.1.2.3", &at, NULL), 0);
	assert_int_equal(ntohl(at.s_addr), 0x0a010203);
	assert_int_equal(cop_host_address("localhost", &at, NULL), 0);
	assert_int_equal(ntohl(at.s_addr) >> 24, 127);
}

/* A label of over 63 bytes cannot exist, so no name server is asked. */
static void an_unknown_name_gives_a_sentence(void **state)
{
	struct cop_err err = {0};
	struct in_addr at;
	char name[80] = "";

	(void)state;
	memset(name, 'x', 70);
	assert_int_equal(cop_host_address(name, &at, &err), -EHOSTUNREACH);
	assert_int_equal(strncmp(err.text, "its name is unknown: ", 21), 0);
}

static void an_address_of_ip6_is_named_as_what_it_is(void **state)
{
	struct cop_err err = {0};
	struct in_addr at;

	(void)state;
	assert_int_equal(cop_host_address("fd77::1", &at, &err), -EHOSTUNREACH);
	assert_non_null(strstr(err.text, "it has only an IPv6 address (fd77::1)"));
}

/* In any case: whoever set this machine up may have told nobody. */
static void a_machine_knows_itself(void **state)
{
	char name[256] = "";
	struct in_addr at;

	(void)state;
	assert_int_equal(gethostname(name, sizeof(name) - 1), 0);
	assert_int_equal(cop_host_address(name, &at, NULL), 0);
	assert_int_not_equal(at.s_addr, 0);
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
		cmocka_unit_test(an_address_of_ip6_is_named_as_what_it_is),
		cmocka_unit_test(a_machine_knows_itself),
		cmocka_unit_test(short_and_long_names_are_the_same_host),
	};

	return cmocka_run_group_tests_name("host", tests, NULL, NULL);
}
