/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/base/base.h"
#include "base/base/ip.h"

static struct cop_ip ip_of(const char *text)
{
	struct cop_ip ip;

	if (!cop_ip_parse(text, &ip))
		fail_msg("%s is refused", text);
	return ip;
}

static void reads(const char *text, const char *again, int family)
{
	struct cop_ip ip = ip_of(text);
	char out[COP_IP_TEXT_SIZE];

	assert_string_equal(cop_ip_print(&ip, out), again);
	assert_int_equal(cop_ip_family(&ip), family);
}

static void every_spelling_prints_as_the_shortest(void **state)
{
	(void)state;
	reads("10.1.2.3", "10.1.2.3", AF_INET);
	reads("0.0.0.0", "0.0.0.0", AF_INET);
	reads("::ffff:10.1.2.3", "10.1.2.3", AF_INET);
	reads("FD77:0:0:0:0:0:0:01", "fd77::1", AF_INET6);
	reads("::1", "::1", AF_INET6);
	reads("::", "::", AF_INET6);
}

static void other_text_is_no_address(void **state)
{
	static const char *const bad[] = {"", "n1", "10.1.2", "10.1.2.3:5", "[::1]", "::1%lo",
		"fe80::1%eth0", "::1::", "fd77::12345", "fd77::1 ", "1:2:3:4:5:6:7:8:9"};
	struct cop_ip ip;

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(bad); i++) {
		if (cop_ip_parse(bad[i], &ip))
			fail_msg("accepted '%s'", bad[i]);
		assert_true(cop_ip_is_none(&ip));
	}
}

static void survives(const char *text, int family, socklen_t len)
{
	struct cop_ip ip = ip_of(text), again;
	struct sockaddr_storage at;
	in_port_t port;

	assert_int_equal(cop_ip_to_socket(&ip, 7720, &at), len);
	assert_int_equal(at.ss_family, family);
	assert_true(cop_ip_of_socket((struct sockaddr *)&at, &again, &port));
	assert_true(cop_ip_same(&ip, &again));
	assert_int_equal(ntohs(port), 7720);
}

static void a_socket_address_and_back_is_the_same(void **state)
{
	struct sockaddr_storage unix_at = {.ss_family = AF_UNIX};
	struct cop_ip ip;

	(void)state;
	survives("127.0.0.11", AF_INET, sizeof(struct sockaddr_in));
	survives("fd77::1", AF_INET6, sizeof(struct sockaddr_in6));
	assert_false(cop_ip_of_socket((struct sockaddr *)&unix_at, &ip, NULL));
	assert_true(cop_ip_is_none(&ip));
}

/* A dual-stack socket shows an IPv4 peer with such an address. */
static void a_mapped_peer_is_its_ip4_address(void **state)
{
	struct sockaddr_in6 mapped = {.sin6_family = AF_INET6};
	struct cop_ip ip, want = ip_of("127.0.0.11");

	(void)state;
	inet_pton(AF_INET6, "::ffff:127.0.0.11", &mapped.sin6_addr);
	assert_true(cop_ip_of_socket((struct sockaddr *)&mapped, &ip, NULL));
	assert_true(cop_ip_same(&ip, &want));
}

static bool is_loopback(const char *text)
{
	struct cop_ip ip = ip_of(text);

	return cop_ip_is_loopback(&ip);
}

static bool is_link_local(const char *text)
{
	struct cop_ip ip = ip_of(text);

	return cop_ip_is_link_local(&ip);
}

static void kinds_are_told_apart(void **state)
{
	(void)state;
	assert_true(is_loopback("127.3.2.1"));
	assert_true(is_loopback("::1"));
	assert_false(is_loopback("128.0.0.1"));
	assert_false(is_loopback("::2"));
	assert_true(is_link_local("fe80::1"));
	assert_true(is_link_local("febf::1"));
	assert_false(is_link_local("fec0::1"));
	assert_false(is_link_local("fd77::1"));
	assert_false(is_link_local("169.254.0.1"));
}

static bool same_net(const char *a, const char *b, const char *mask)
{
	struct cop_ip x = ip_of(a), y = ip_of(b), m = ip_of(mask);

	return cop_ip_same_net(&x, &y, &m);
}

static void networks_are_compared_by_the_mask(void **state)
{
	(void)state;
	assert_true(same_net("10.77.1.1", "10.77.1.2", "255.255.255.0"));
	assert_false(same_net("10.77.1.1", "10.77.2.1", "255.255.255.0"));
	assert_true(same_net("fd77::1", "fd77::2", "ffff:ffff:ffff:ffff::"));
	assert_false(same_net("fd77::1", "fd77:0:0:1::1", "ffff:ffff:ffff:ffff::"));
	assert_false(same_net("10.77.1.1", "fd77::1", "::"));
}

static void the_loopback_is_here_and_reached_from_itself(void **state)
{
	struct cop_ip to = ip_of("127.0.0.11"), from, nobody = ip_of("192.0.2.1");

	(void)state;
	assert_true(cop_ip_way(&to, &from));
	assert_true(cop_ip_is_loopback(&from));
	assert_true(cop_ip_is_here(&to));
	assert_false(cop_ip_is_here(&nobody));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_spelling_prints_as_the_shortest),
		cmocka_unit_test(other_text_is_no_address),
		cmocka_unit_test(a_socket_address_and_back_is_the_same),
		cmocka_unit_test(a_mapped_peer_is_its_ip4_address),
		cmocka_unit_test(kinds_are_told_apart),
		cmocka_unit_test(networks_are_compared_by_the_mask),
		cmocka_unit_test(the_loopback_is_here_and_reached_from_itself),
	};

	return cmocka_run_group_tests_name("ip", tests, NULL, NULL);
}
