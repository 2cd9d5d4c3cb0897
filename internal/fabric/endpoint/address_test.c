/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "fabric/endpoint/endpoint_priv.h"

static struct cop_endpoint_naming naming(
	const char *scheme, enum cop_endpoint_form form, size_t own_len)
{
	struct cop_endpoint_naming n = {.scheme = scheme, .form = form, .own_len = own_len};

	return n;
}

static void refused(const struct cop_endpoint_naming *n, const char *text)
{
	unsigned char raw[COP_ENDPOINT_RAW_MAX];
	size_t len;

	if (cop_endpoint_address_parse(n, text, raw, &len) != -EINVAL)
		fail_msg("accepted %s", text);
}

/* Parses text and compares how it is printed. */
static void reads(const struct cop_endpoint_naming *n, const char *text, const char *again)
{
	unsigned char raw[COP_ENDPOINT_RAW_MAX];
	char out[COP_ENDPOINT_TEXT_MAX];
	size_t len;

	assert_int_equal(cop_endpoint_address_parse(n, text, raw, &len), 0);
	assert_int_equal(cop_endpoint_address_print(n, raw, len, out, sizeof(out)), 0);
	assert_string_equal(out, again);
}

static void an_ip_address_becomes_a_socket_address(void **state)
{
	struct cop_endpoint_naming n =
		naming("tcp", COP_ENDPOINT_FORM_IP, sizeof(struct sockaddr_in));
	unsigned char raw[COP_ENDPOINT_RAW_MAX];
	struct sockaddr_in sin;
	size_t len;

	(void)state;
	assert_int_equal(
		cop_endpoint_address_parse(&n, "ofi+tcp://127.0.0.11:34567", raw, &len), 0);
	assert_int_equal(len, sizeof(sin));
	memcpy(&sin, raw, sizeof(sin));
	assert_int_equal(sin.sin_family, AF_INET);
	assert_int_equal(ntohs(sin.sin_port), 34567);
	assert_int_equal(ntohl(sin.sin_addr.s_addr), 0x7f00000b);
}

static void every_spelling_of_an_ip_address_is_understood(void **state)
{
	struct cop_endpoint_naming n =
		naming("tcp", COP_ENDPOINT_FORM_IP, sizeof(struct sockaddr_in));
	static const char *const same[] = {"ofi+tcp://10.1.2.3:65535", "tcp://10.1.2.3:65535",
		"fi_sockaddr_in://10.1.2.3:65535", "ofi+tcp;ofi_rxm://10.1.2.3:65535",
		"tcp;ofi_rxm://10.1.2.3:65535"};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(same); i++)
		reads(&n, same[i], "ofi+tcp://10.1.2.3:65535");
}

static void a_malformed_ip_address_is_refused(void **state)
{
	struct cop_endpoint_naming n =
		naming("tcp", COP_ENDPOINT_FORM_IP, sizeof(struct sockaddr_in));
	static const char *const bad[] = {"", "tcp", "ofi+tcp", "ofi+tcp://", "ofi+tcp://:1",
		"ofi+tcp://127.0.0.1", "ofi+tcp://127.0.0.1:", "ofi+tcp://127.0.0.1:0",
		"ofi+tcp://127.0.0.1:65536", "ofi+tcp://127.0.0.1:999999", "ofi+tcp://127.0.0.1:-1",
		"ofi+tcp://127.0.0.1:+1", "ofi+tcp://127.0.0.1: 1", "ofi+tcp://127.0.0.1:1x",
		"ofi+tcp://127.0.0:1", "ofi+tcp://256.0.0.1:1", "ofi+tcp://localhost:1",
		"ofi+tcp://0.0.0.0:1", "ofi+tcp:/127.0.0.1:1", "ofi+verbs://127.0.0.1:1",
		"ofi+tcpx://127.0.0.1:1", "OFI+TCP://127.0.0.1:1", "ofi+tcp://[127.0.0.1:1",
		"ofi+tcp://[]:1", "ofi+tcp://[::1]:1", "fi_addr_cxi://0x1", ";://", "ofi+tcp;"};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(bad); i++)
		refused(&n, bad[i]);
}

static void an_endpoint_of_ip_version_6_takes_only_such_addresses(void **state)
{
	struct cop_endpoint_naming n =
		naming("tcp", COP_ENDPOINT_FORM_IP, sizeof(struct sockaddr_in6));

	(void)state;
	reads(&n, "ofi+tcp://[fd00::2]:7720", "ofi+tcp://[fd00::2]:7720");
	reads(&n, "fi_sockaddr_in6://[fd00::2]:7720", "ofi+tcp://[fd00::2]:7720");
	refused(&n, "ofi+tcp://10.1.2.3:1");
	refused(&n, "ofi+tcp://[::]:1");
}

static void endpoints_of_different_ip_are_told_apart(void **state)
{
	(void)state;
	assert_true(cop_endpoint_is_other_ip("ofi+tcp://10.1.2.3:1", "ofi+tcp://[fd00::2]:1"));
	assert_false(cop_endpoint_is_other_ip("ofi+tcp://10.1.2.3:1", "ofi+tcp://10.1.2.4:1"));
	assert_false(cop_endpoint_is_other_ip("ofi+tcp://[::1]:1", "ofi+tcp://[fd00::2]:1"));
	assert_false(cop_endpoint_is_other_ip("ofi+cxi://0x1", "ofi+tcp://10.1.2.4:1"));
	assert_false(cop_endpoint_is_other_ip("fake://n1", ""));
}

static void the_loopback_is_within_the_machine(void **state)
{
	(void)state;
	assert_true(cop_endpoint_is_within_machine("ofi+tcp://127.0.0.11:1"));
	assert_true(cop_endpoint_is_within_machine("ofi+tcp://[::1]:1"));
	assert_false(cop_endpoint_is_within_machine("ofi+tcp://10.1.2.3:1"));
	assert_false(cop_endpoint_is_within_machine("ofi+tcp://[fd00::2]:1"));
	assert_false(cop_endpoint_is_within_machine("ofi+cxi://0x00916600"));
}

static void only_tcp_between_machines_is_worth_compressing(void **state)
{
	(void)state;
	assert_true(cop_endpoint_is_slower_than_lz4("ofi+tcp://10.1.2.3:1"));
	assert_false(cop_endpoint_is_slower_than_lz4("ofi+tcp://127.0.0.11:1"));
	assert_false(cop_endpoint_is_slower_than_lz4("ofi+cxi://0x00916600"));
	assert_false(cop_endpoint_is_slower_than_lz4(""));
}

static void a_cxi_address_is_process_id_below_nic_address(void **state)
{
	struct cop_endpoint_naming n = naming("cxi", COP_ENDPOINT_FORM_CXI, 8);
	unsigned char raw[COP_ENDPOINT_RAW_MAX];
	uint32_t value;
	size_t len;

	(void)state;
	assert_int_equal(cop_endpoint_address_parse(&n, "ofi+cxi://0x0091660c", raw, &len), 0);
	assert_int_equal(len, 8);
	memcpy(&value, raw, sizeof(value));
	assert_int_equal(value & 0x1ff, 0x0c);
	assert_int_equal(value >> 9 & 0xfffff, 0x0091660c >> 9);
}

static void a_cxi_address_reads_in_every_spelling(void **state)
{
	struct cop_endpoint_naming n = naming("cxi", COP_ENDPOINT_FORM_CXI, 8);

	(void)state;
	reads(&n, "ofi+cxi://0x00916600", "ofi+cxi://0x00916600");
	reads(&n, "ofi+cxi://0x916600", "ofi+cxi://0x00916600");
	reads(&n, "cxi://0x0060E600", "ofi+cxi://0x0060e600");
	reads(&n, "fi_addr_cxi://0x0000000000053e00", "ofi+cxi://0x00053e00");
}

static void a_cxi_address_takes_what_its_text_lacks_from_our_own(void **state)
{
	struct cop_endpoint_naming n = naming("cxi", COP_ENDPOINT_FORM_CXI, 8);
	uint32_t own[2] = {0x20110401, 0xabcd}, value[2]; /* bit 29 stands for "valid" */
	unsigned char raw[COP_ENDPOINT_RAW_MAX];
	char out[COP_ENDPOINT_TEXT_MAX];
	size_t len;

	(void)state;
	memcpy(n.own, own, sizeof(own));
	assert_int_equal(cop_endpoint_address_parse(&n, "ofi+cxi://0x00916600", raw, &len), 0);
	assert_int_equal(len, sizeof(value));
	memcpy(value, raw, sizeof(value));
	assert_int_equal(value[0], 0x20916600);
	assert_int_equal(value[1], 0xabcd);
	assert_int_equal(cop_endpoint_address_print(&n, own, sizeof(own), out, sizeof(out)), 0);
	assert_string_equal(out, "ofi+cxi://0x00110401");
}

static void a_malformed_cxi_address_is_refused(void **state)
{
	struct cop_endpoint_naming n = naming("cxi", COP_ENDPOINT_FORM_CXI, 4);
	static const char *const bad[] = {"ofi+cxi://", "ofi+cxi://0x", "ofi+cxi://916600",
		"ofi+cxi://0x0", "ofi+cxi://0x00000000", "ofi+cxi://0x1g", "ofi+cxi://0x1 ",
		"ofi+cxi://0x00000000000000001", "ofi+cxi://NA", "ofi+tcp://127.0.0.1:1"};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(bad); i++)
		refused(&n, bad[i]);
	n.own_len = 0;
	refused(&n, "ofi+cxi://0x00916600");
}

static void a_name_in_shared_memory_keeps_its_text(void **state)
{
	struct cop_endpoint_naming n = naming("shm", COP_ENDPOINT_FORM_STR, 14);
	unsigned char raw[COP_ENDPOINT_RAW_MAX];
	size_t len;

	(void)state;
	reads(&n, "ofi+shm://1574:0:0", "ofi+shm://1574:0:0");
	reads(&n, "fi_shm://1574:0:0", "ofi+shm://1574:0:0");
	reads(&n, "ofi+shm://fi_ns://node:1", "ofi+shm://fi_ns://node:1");
	assert_int_equal(cop_endpoint_address_parse(&n, "ofi+shm://12", raw, &len), 0);
	assert_string_equal((char *)raw, "fi_shm://12");
	assert_int_equal(len, 12);
	refused(&n, "ofi+shm://");
	refused(&n, "shm");
}

static void other_addresses_are_hexadecimal_bytes(void **state)
{
	struct cop_endpoint_naming n = naming("psm3", COP_ENDPOINT_FORM_RAW, 4);

	(void)state;
	reads(&n, "ofi+psm3://0xdeadBE01", "ofi+psm3://0xdeadbe01");
	refused(&n, "ofi+psm3://0xdeadbe");
	refused(&n, "ofi+psm3://0xdeadbe0102");
	refused(&n, "ofi+psm3://0xdeadbeg1");
	refused(&n, "ofi+psm3://deadbe01");
	refused(&n, "ofi+psm3://0x-1-1-1-1");
}

static void text_without_end_is_refused(void **state)
{
	char text[4096];
	static const enum cop_endpoint_form forms[] = {COP_ENDPOINT_FORM_IP, COP_ENDPOINT_FORM_STR,
		COP_ENDPOINT_FORM_CXI, COP_ENDPOINT_FORM_RAW};

	(void)state;
	memset(text, '1', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	memcpy(text, "ofi+x://0x", 10);
	for (size_t i = 0; i < COP_ARRAY_SIZE(forms); i++) {
		struct cop_endpoint_naming n = naming("x", forms[i], 16);

		refused(&n, text);
	}
}

static void a_binary_address_that_does_not_fit_its_form_is_refused(void **state)
{
	struct cop_endpoint_naming ip = naming("tcp", COP_ENDPOINT_FORM_IP, 16),
				   str = naming("shm", COP_ENDPOINT_FORM_STR, 4),
				   cxi = naming("cxi", COP_ENDPOINT_FORM_CXI, 4);
	unsigned char raw[64];
	char out[COP_ENDPOINT_TEXT_MAX];
	struct sockaddr_in sin = {.sin_family = AF_INET};

	(void)state;
	memset(raw, 'x', sizeof(raw));
	assert_int_equal(cop_endpoint_address_print(&ip, raw, 16, out, sizeof(out)), -EINVAL);
	assert_int_equal(cop_endpoint_address_print(&ip, raw, 28, out, sizeof(out)), -EINVAL);
	assert_int_equal(cop_endpoint_address_print(&ip, raw, 3, out, sizeof(out)), -EINVAL);
	assert_int_equal(cop_endpoint_address_print(&str, raw, 64, out, sizeof(out)), -EINVAL);
	assert_int_equal(cop_endpoint_address_print(&cxi, raw, 3, out, sizeof(out)), -EINVAL);
	assert_int_equal(
		cop_endpoint_address_print(&ip, &sin, sizeof(sin), out, 12), -ENAMETOOLONG);
	assert_int_equal(cop_endpoint_address_print(&ip, &sin, sizeof(sin), out, 5), -ENAMETOOLONG);
}

static void a_book_address_splits_into_what_to_bind_to(void **state)
{
	struct cop_endpoint_net_type tcp, cxi, shm;
	char node[64], service[16];

	(void)state;
	assert_int_equal(cop_endpoint_net_type_parse("tcp", &tcp), 0);
	assert_int_equal(cop_endpoint_net_type_parse("cxi://cxi1", &cxi), 0);
	assert_int_equal(cop_endpoint_net_type_parse("shm", &shm), 0);
	assert_int_equal(
		cop_endpoint_address_split(&tcp, "ofi+tcp://127.0.0.11:7720", node, service), 0);
	assert_string_equal(node, "127.0.0.11");
	assert_string_equal(service, "7720");
	assert_int_equal(
		cop_endpoint_address_split(&cxi, "ofi+cxi://0x0091660c", node, service), 0);
	assert_string_equal(node, "0x48b3");
	assert_string_equal(service, "12");
	assert_int_equal(
		cop_endpoint_address_split(&cxi, "ofi+tcp://127.0.0.11:1", node, service), -EINVAL);
	assert_int_equal(cop_endpoint_address_split(&shm, "ofi+shm://12", node, service), -EINVAL);
}

static void a_net_type_names_provider_and_device(void **state)
{
	static const struct {
		const char *text, *scheme, *provider, *device;
	} rows[] = {
		{NULL, "tcp", "tcp;ofi_rxm", ""},
		{"tcp", "tcp", "tcp;ofi_rxm", ""},
		{"ofi+tcp", "tcp", "tcp;ofi_rxm", ""},
		{"tcp://lo", "tcp", "tcp;ofi_rxm", "lo"},
		{"ofi+tcp;ofi_rxm://10.0.0.1", "tcp", "tcp;ofi_rxm", "10.0.0.1"},
		{"cxi://cxi1", "cxi", "cxi", "cxi1"},
		{"cxi", "cxi", "cxi", ""},
		{"cxi1", "cxi", "cxi", "cxi1"},
		{"ofi+cxi0", "cxi", "cxi", "cxi0"},
		{"verbs", "verbs", "verbs;ofi_rxm", ""},
		{"shm", "shm", "shm", ""},
		{"opx", "opx", "opx", ""},
	};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(rows); i++) {
		struct cop_endpoint_net_type t;

		assert_int_equal(cop_endpoint_net_type_parse(rows[i].text, &t), 0);
		assert_string_equal(t.scheme, rows[i].scheme);
		assert_string_equal(t.provider, rows[i].provider);
		assert_string_equal(t.device, rows[i].device);
	}
}

static void a_malformed_net_type_is_refused(void **state)
{
	struct cop_endpoint_net_type t;
	char longest[400];
	static const char *const bad[] = {
		"", "ofi+", "://lo", "TCP", "tcp lo", "^tcp", "tcp,shm", ";x"};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(bad); i++)
		assert_int_equal(cop_endpoint_net_type_parse(bad[i], &t), -EINVAL);
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(cop_endpoint_net_type_parse(longest, &t), -EINVAL);
	memcpy(longest, "tcp://", 6);
	assert_int_equal(cop_endpoint_net_type_parse(longest, &t), -EINVAL);
}

static void the_list_of_providers_names_each_once_and_keeps_to_its_size(void **state)
{
	char all[512], small[8], *tcp;

	(void)state;
	cop_endpoint_list_providers(all, sizeof(all));
	tcp = strstr(all, "tcp;ofi_rxm");
	assert_non_null(tcp);
	assert_null(strstr(tcp + 1, "tcp;ofi_rxm"));
	cop_endpoint_list_providers(small, sizeof(small));
	assert_true(strlen(small) < sizeof(small));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ip_address_becomes_a_socket_address),
		cmocka_unit_test(every_spelling_of_an_ip_address_is_understood),
		cmocka_unit_test(a_malformed_ip_address_is_refused),
		cmocka_unit_test(an_endpoint_of_ip_version_6_takes_only_such_addresses),
		cmocka_unit_test(endpoints_of_different_ip_are_told_apart),
		cmocka_unit_test(the_loopback_is_within_the_machine),
		cmocka_unit_test(only_tcp_between_machines_is_worth_compressing),
		cmocka_unit_test(a_cxi_address_is_process_id_below_nic_address),
		cmocka_unit_test(a_cxi_address_reads_in_every_spelling),
		cmocka_unit_test(a_cxi_address_takes_what_its_text_lacks_from_our_own),
		cmocka_unit_test(a_malformed_cxi_address_is_refused),
		cmocka_unit_test(a_name_in_shared_memory_keeps_its_text),
		cmocka_unit_test(other_addresses_are_hexadecimal_bytes),
		cmocka_unit_test(text_without_end_is_refused),
		cmocka_unit_test(a_binary_address_that_does_not_fit_its_form_is_refused),
		cmocka_unit_test(a_book_address_splits_into_what_to_bind_to),
		cmocka_unit_test(a_net_type_names_provider_and_device),
		cmocka_unit_test(a_malformed_net_type_is_refused),
		cmocka_unit_test(the_list_of_providers_names_each_once_and_keeps_to_its_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
