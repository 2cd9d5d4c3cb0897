/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/endpoint/ofi_testing.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabric/endpoint/ofi_priv.h"

static struct node a, b, c;

static int open_three(void **state)
{
	(void)state;
	open_node(&a, "tcp", "127.0.0.11", NULL);
	open_node(&b, "tcp", "127.0.0.12", NULL);
	open_node(&c, "tcp", "127.0.0.13", NULL);
	return 0;
}

static int close_three(void **state)
{
	(void)state;
	cop_endpoint_close(a.f);
	cop_endpoint_close(b.f);
	cop_endpoint_close(c.f);
	return 0;
}

/* A listener that nobody serves: the kernel accepts the connection and nothing answers. */
static int mute_listener(char address[64])
{
	struct sockaddr_in sin = {.sin_family = AF_INET};
	socklen_t len = sizeof(sin);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 14);
	assert_int_equal(bind(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&sin, &len), 0);
	snprintf(address, 64, "ofi+tcp://127.0.0.15:%u", ntohs(sin.sin_port));
	return fd;
}

static void does_not_hold_up_others(const char *absent)
{
	struct ends ends = {0};
	cop_endpoint_peer_t peer = peer_of(&a, absent);

	talks(&a, &b, 2000);
	assert_int_equal(send_to(&a, peer, "anyone?", 7, 100, &ends), 0);
	for (int i = 0; i < 50; i++)
		talks(&a, &b, 2000);
	nap_ms(300);
	talks(&a, &b, 2000);
	talks(&a, &c, 2000);
	assert_int_equal(atomic_load(&ends.all), 0);
	drop_peer(&a, peer);
	assert_true(reaches(&ends.all, 100));
	assert_int_equal(atomic_load(&ends.good), 0);
	assert_int_equal(atomic_load(&ends.last_error), -ECANCELED);
	talks(&a, &b, 2000);
}

static void a_peer_that_refuses_connections_does_not_hold_up_others(void **state)
{
	(void)state;
	does_not_hold_up_others("ofi+tcp://127.0.0.15:9");
}

static void a_peer_that_never_answers_does_not_hold_up_others(void **state)
{
	char address[64];
	int fd = mute_listener(address);

	(void)state;
	does_not_hold_up_others(address);
	close(fd);
}

static void an_absent_peer_costs_little_cpu(void **state)
{
	clock_t before;

	(void)state;
	send_to(&a, peer_of(&a, "ofi+tcp://127.0.0.15:9"), "x", 1, 1, NULL);
	nap_ms(300);
	before = clock();
	nap_ms(1000);
	assert_true((double)(clock() - before) / CLOCKS_PER_SEC < 0.1);
}

static void a_queue_to_an_absent_peer_is_bounded(void **state)
{
	struct ends ends = {0};
	cop_endpoint_peer_t peer = peer_of(&a, "ofi+tcp://127.0.0.15:9");

	(void)state;
	assert_int_equal(send_to(&a, peer, "x", 1, 2 * COP_OFI_QUEUE_MAX, &ends), -ENOBUFS);
	drop_peer(&a, peer);
	assert_int_equal(atomic_load(&ends.all), COP_OFI_QUEUE_MAX);
}

struct rewind {
	cop_endpoint_peer_t peer;
};

/* Makes the first refusal that much older. */
static void rewind_clock(void *arg)
{
	struct rewind *r = arg;

	cop_endpoint_ofi_peer_get(cop_endpoint_ofi_of(a.f), r->peer)->stuck_ns -=
		(COP_OFI_STUCK_MS + 1) * COP_NS_PER_MS;
}

static void operations_that_wait_too_long_fail_as_unreachable(void **state)
{
	struct ends ends = {0};
	struct rewind r = {peer_of(&a, "ofi+tcp://127.0.0.15:9")};

	(void)state;
	assert_int_equal(send_to(&a, r.peer, "x", 1, 3, &ends), 0);
	nap_ms(20);
	on_thread(&a, rewind_clock, &r);
	assert_true(reaches(&ends.all, 3));
	assert_int_equal(atomic_load(&ends.last_error), -EHOSTUNREACH);
}

int main(void)
{
#define WITH_THREE(t) cmocka_unit_test_setup_teardown(t, open_three, close_three)
	const struct CMUnitTest tests[] = {
		WITH_THREE(a_peer_that_refuses_connections_does_not_hold_up_others),
		WITH_THREE(a_peer_that_never_answers_does_not_hold_up_others),
		WITH_THREE(an_absent_peer_costs_little_cpu),
		WITH_THREE(a_queue_to_an_absent_peer_is_bounded),
		WITH_THREE(operations_that_wait_too_long_fail_as_unreachable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
