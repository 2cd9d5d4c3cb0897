/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "job/rendezvous/rendezvous.h"

static char owner[200], me[64];

/* The process name as the kernel has it: under an emulator it is the emulator's. */
static void name_this_process(void)
{
	char comm[32] = "";
	FILE *f = fopen("/proc/self/comm", "r");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%31s", comm), 1);
	fclose(f);
	snprintf(me, sizeof(me), "process %d (%s)", (int)getpid(), comm);
}

/* Listens at this address and returns the port that the kernel chose. */
static uint16_t listen_at(const char *address, int *fd)
{
	struct sockaddr_storage at;
	socklen_t size = sizeof(at), len;
	in_port_t port = 0;
	struct cop_ip ip;

	assert_true(cop_ip_parse(address, &ip));
	len = cop_ip_to_socket(&ip, 0, &at);
	*fd = socket(at.ss_family, SOCK_STREAM, 0);
	assert_true(*fd >= 0);
	assert_int_equal(bind(*fd, (struct sockaddr *)&at, len), 0);
	assert_int_equal(listen(*fd, 1), 0);
	assert_int_equal(getsockname(*fd, (struct sockaddr *)&at, &size), 0);
	assert_true(cop_ip_of_socket((struct sockaddr *)&at, &ip, &port));
	return ntohs(port);
}

static bool is_owned(const char *host, uint16_t port)
{
	*owner = '\0';
	return cop_job_port_owner(host, port, owner, sizeof(owner));
}

static void the_process_that_listens_is_named(void **state)
{
	int fd;
	uint16_t port = listen_at("127.0.0.77", &fd);

	(void)state;
	name_this_process();
	assert_true(is_owned("127.0.0.77", port));
	assert_string_equal(owner, me);
	/* A host name covers all addresses. */
	assert_true(is_owned("localhost", port));
	assert_string_equal(owner, me);
	assert_false(is_owned("127.0.0.78", port));
	close(fd);
	assert_false(is_owned("127.0.0.77", port));
}

static void a_listener_on_all_addresses_owns_the_port_of_each(void **state)
{
	int fd;
	uint16_t port = listen_at("0.0.0.0", &fd);

	(void)state;
	assert_true(is_owned("127.0.0.77", port));
	assert_true(is_owned("localhost", port));
	close(fd);
}

static void one_that_listens_at_an_address_of_ipv6_is_named(void **state)
{
	struct cop_ip six;
	uint16_t port;
	int fd;

	(void)state;
	cop_ip_parse("::1", &six);
	if (!cop_ip_is_here(&six))
		skip();
	port = listen_at("::1", &fd);
	name_this_process();
	assert_true(is_owned("::1", port));
	assert_string_equal(owner, me);
	assert_true(is_owned("n1", port));
	assert_false(is_owned("fd77::1", port));
	assert_false(is_owned("127.0.0.1", port));
	close(fd);
	port = listen_at("::", &fd);
	assert_true(is_owned("::1", port));
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_process_that_listens_is_named),
		cmocka_unit_test(a_listener_on_all_addresses_owns_the_port_of_each),
		cmocka_unit_test(one_that_listens_at_an_address_of_ipv6_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
