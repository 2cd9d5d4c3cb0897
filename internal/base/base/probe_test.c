/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base/probe.h"

/* Binds to a local port and listens with this backlog; -1: does not listen. */
static int bind_port(int backlog, uint16_t *port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&at, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	if (backlog >= 0)
		assert_int_equal(listen(fd, backlog), 0);
	*port = ntohs(at.sin_port);
	return fd;
}

static enum cop_probe_state probe(const char *ip, uint16_t port, int ms, struct cop_probe *p)
{
	struct cop_ip to;

	assert_true(cop_ip_parse(ip, &to));
	cop_probe_begin(p, &to, port, cop_now_ms() + (uint64_t)ms);
	cop_probe_wait(p);
	assert_int_equal(p->fd, -1);
	return p->state;
}

static void a_listener_is_open_and_a_port_without_one_closed(void **state)
{
	struct cop_probe p;
	uint16_t port;
	int fd = bind_port(5, &port);

	(void)state;
	assert_int_equal(probe("127.0.0.1", port, 60000, &p), COP_PROBE_OPEN);
	close(fd);
	fd = bind_port(-1, &port);
	assert_int_equal(probe("127.0.0.1", port, 60000, &p), COP_PROBE_CLOSED);
	assert_non_null(strstr(cop_probe_why(&p), "nobody listens"));
	close(fd);
}

/* The kernel drops connections that do not fit in the queue. */
static void no_answer_is_silence_after_the_time_that_was_given(void **state)
{
	struct cop_probe held[8], p;
	uint16_t port;
	int fd = bind_port(0, &port);
	struct cop_ip to;

	(void)state;
	assert_true(cop_ip_parse("127.0.0.1", &to));
	for (unsigned i = 0; i < 8; i++)
		cop_probe_begin(&held[i], &to, port, cop_now_ms() + 100);
	assert_int_equal(probe("127.0.0.1", port, 100, &p), COP_PROBE_SILENT);
	assert_non_null(strstr(cop_probe_why(&p), "silent"));
	for (unsigned i = 0; i < 8; i++)
		cop_probe_end(&held[i]);
	close(fd);
}

static void what_the_kernel_refuses_is_no_open_way(void **state)
{
	struct cop_probe p;

	(void)state;
	assert_int_equal(probe("255.255.255.255", 1, 1000, &p), COP_PROBE_REFUSED);
	assert_true(p.error == ENETUNREACH || p.error == EACCES || p.error == EPERM);
}

static void addresses_of_the_fabric_are_read(void **state)
{
	char text[COP_IP_TEXT_SIZE];
	struct cop_ip ip;
	uint16_t port;

	(void)state;
	assert_true(cop_probe_address("ofi+tcp://10.1.2.3:4567", &ip, &port));
	assert_string_equal(cop_ip_print(&ip, text), "10.1.2.3");
	assert_int_equal(port, 4567);
	assert_true(cop_probe_address("ofi+tcp://[fd77::1]:89", &ip, &port));
	assert_string_equal(cop_ip_print(&ip, text), "fd77::1");
	assert_int_equal(port, 89);
	assert_false(cop_probe_address("ofi+cxi://0x1", &ip, &port));
	assert_false(cop_probe_address("ofi+tcp://host:1", &ip, &port));
	assert_false(cop_probe_address("", &ip, &port));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_listener_is_open_and_a_port_without_one_closed),
		cmocka_unit_test(no_answer_is_silence_after_the_time_that_was_given),
		cmocka_unit_test(what_the_kernel_refuses_is_no_open_way),
		cmocka_unit_test(addresses_of_the_fabric_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
