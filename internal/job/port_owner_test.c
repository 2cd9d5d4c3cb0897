/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "job/job_priv.h"

static char owner[200], me[64];

/* Listens at this address and returns the port that the kernel chose. */
static uint16_t listen_at(const char *address, int *fd)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t size = sizeof(at);

	assert_int_equal(inet_pton(AF_INET, address, &at.sin_addr), 1);
	*fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_true(*fd >= 0);
	assert_int_equal(bind(*fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(*fd, 1), 0);
	assert_int_equal(getsockname(*fd, (struct sockaddr *)&at, &size), 0);
	return ntohs(at.sin_port);
}

static bool held(const char *host, uint16_t port)
{
	*owner = '\0';
	return cop_job_port_owner(host, port, owner, sizeof(owner));
}

static void the_process_that_listens_is_named(void **state)
{
	int fd;
	uint16_t port = listen_at("127.0.0.77", &fd);

	(void)state;
	snprintf(me, sizeof(me), "process %d (port_owner_test)", (int)getpid());
	assert_true(held("127.0.0.77", port));
	assert_string_equal(owner, me);
	/* A name stands for every address. */
	assert_true(held("localhost", port));
	assert_string_equal(owner, me);
	assert_false(held("127.0.0.78", port));
	close(fd);
	assert_false(held("127.0.0.77", port));
}

static void who_listens_everywhere_is_in_the_way_of_each_address(void **state)
{
	int fd;
	uint16_t port = listen_at("0.0.0.0", &fd);

	(void)state;
	assert_true(held("127.0.0.77", port));
	assert_true(held("localhost", port));
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_process_that_listens_is_named),
		cmocka_unit_test(who_listens_everywhere_is_in_the_way_of_each_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
