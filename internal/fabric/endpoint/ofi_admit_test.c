/* SPDX-License-Identifier: BSD-3-Clause */
/* Who may connect to an endpoint that accepts only admitted hosts. */
#include "fabric/endpoint/ofi_testing.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabric/endpoint/ofi_priv.h"

#define QUITE_A_WHILE_MS 300

static struct node a, b;

static void open_closed(struct node *n, const char *host)
{
	struct cop_err err = {0};

	memset(n, 0, sizeof(*n));
	n->admitted_only = true;
	if (try_open(n, "tcp", host, NULL, &err))
		fail_msg("%s", err.text);
}

static int open_both(void **state)
{
	(void)state;
	open_closed(&a, "127.0.0.11");
	open_closed(&b, "127.0.0.12");
	return 0;
}

static int close_both(void **state)
{
	(void)state;
	cop_endpoint_close(a.f);
	cop_endpoint_close(b.f);
	return 0;
}

static void a_host_that_was_not_admitted_is_not_heard(void **state)
{
	cop_endpoint_peer_t peer = peer_of(&b, cop_endpoint_address(a.f));
	static char msg[64];
	struct ends ends = {0};

	(void)state;
	send_to(&b, peer, msg, sizeof(msg), 3, &ends);
	nap_ms(QUITE_A_WHILE_MS);
	assert_int_equal(atomic_load(&a.received), 0);
	/* A text that is not an address of this provider admits nobody. */
	cop_endpoint_admit(a.f, "ofi+tcp://n12:1");
	cop_endpoint_admit(a.f, "ofi+cxi://0x00916600");
	cop_endpoint_admit(a.f, "");
	cop_endpoint_admit(a.f, "ofi+tcp://127.0.0.13:7720");
	send_to(&b, peer, msg, sizeof(msg), 3, &ends);
	nap_ms(QUITE_A_WHILE_MS);
	assert_int_equal(atomic_load(&a.received), 0);
	cop_endpoint_admit(a.f, cop_endpoint_address(b.f));
	drop_peer(&b, peer);
	recovers(&b, &a);
}

static void a_peer_of_this_node_is_admitted(void **state)
{
	(void)state;
	cop_endpoint_admit(b.f, cop_endpoint_address(a.f));
	talks(&a, &b, 2000);
	talks(&b, &a, 2000);
}

/* The provider's connections come from the address that it publishes, or nobody could be admitted
 * by it. */
static void a_connection_that_broke_is_made_again_from_both_sides(void **state)
{
	(void)state;
	cop_endpoint_admit(b.f, cop_endpoint_address(a.f));
	for (int i = 0; i < 3; i++) {
		talks(&a, &b, 5000);
		drop_peer(&a, peer_of(&a, cop_endpoint_address(b.f)));
		recovers(&b, &a);
		recovers(&a, &b);
	}
}

static void comes_from(const struct sockaddr_in *to, int listener, const char *from, bool enters)
{
	struct sockaddr_in own = {.sin_family = AF_INET};
	int out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), in;
	char byte;

	assert_int_equal(inet_pton(AF_INET, from, &own.sin_addr), 1);
	assert_int_equal(bind(out, (struct sockaddr *)&own, sizeof(own)), 0);
	assert_int_equal(connect(out, (const struct sockaddr *)to, sizeof(*to)), 0);
	in = accept(listener, NULL, NULL);
	if (enters) {
		assert_true(in >= 0);
		assert_int_equal(recv(out, &byte, 1, MSG_DONTWAIT), -1);
		close(in);
	} else {
		assert_int_equal(in, -1);
		assert_int_equal(errno, EAGAIN);
		assert_true(recv(out, &byte, 1, 0) <= 0);
	}
	close(out);
}

/* The provider just calls accept. */
static void an_unverified_peer_is_closed_when_accepted(void **state)
{
	struct sockaddr_in at = {.sin_family = AF_INET}, peer = {.sin_family = AF_INET};
	static struct ofi o;
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char address[64];

	(void)state;
	inet_pton(AF_INET, "127.0.0.13", &at.sin_addr);
	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(listener, 8), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
	o = (struct ofi){.listener = -1,
		.listening = listener,
		.naming = {.form = COP_ENDPOINT_FORM_IP, .own_len = sizeof(at)}};
	memcpy(o.naming.own, &at, sizeof(at));
	cop_endpoint_ofi_admit_init(&o);
	assert_int_equal(o.listener, listener);
	comes_from(&at, listener, "127.0.0.77", false);
	for (int i = 0; i < 512; i++) {
		snprintf(address, sizeof(address), "127.0.%d.%d", 3 + i / 256, i % 256);
		assert_int_equal(inet_pton(AF_INET, address, &peer.sin_addr), 1);
		cop_endpoint_ofi_admit_raw(&o, &peer, sizeof(peer));
	}
	comes_from(&at, listener, "127.0.3.1", true);
	comes_from(&at, listener, "127.0.4.200", true);
	comes_from(&at, listener, "127.0.0.77", false);
	/* The number is reused from now on. */
	cop_endpoint_ofi_admit_fini(&o);
	comes_from(&at, listener, "127.0.0.77", true);
	close(listener);
}

static void over_ipv6_it_is_the_same(void **state)
{
	struct cop_ip six;

	(void)state;
	cop_ip_parse("::1", &six);
	if (!cop_ip_is_here(&six))
		skip();
	open_closed(&a, "::1");
	open_closed(&b, "::1");
	assert_non_null(strstr(cop_endpoint_address(a.f), "ofi+tcp://[::1]:"));
	a_host_that_was_not_admitted_is_not_heard(state);
	cop_endpoint_admit(b.f, cop_endpoint_address(a.f));
	talks(&a, &b, 2000);
	talks(&b, &a, 2000);
	close_both(state);
}

static void other_providers_admit_everybody(void **state)
{
	struct node x = {.admitted_only = true}, y = {.admitted_only = true};
	struct cop_err err = {0};

	(void)state;
	assert_int_equal(try_open(&x, "shm", NULL, NULL, &err), 0);
	assert_int_equal(try_open(&y, "shm", NULL, NULL, &err), 0);
	cop_endpoint_admit(x.f, "ofi+tcp://127.0.0.77:7720");
	talks(&x, &y, 5000);
	talks(&y, &x, 5000);
	cop_endpoint_close(x.f);
	cop_endpoint_close(y.f);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, open_both, close_both)
	const struct CMUnitTest tests[] = {
		T(a_host_that_was_not_admitted_is_not_heard),
		T(a_peer_of_this_node_is_admitted),
		T(a_connection_that_broke_is_made_again_from_both_sides),
		cmocka_unit_test(an_unverified_peer_is_closed_when_accepted),
		cmocka_unit_test(over_ipv6_it_is_the_same),
		cmocka_unit_test(other_providers_admit_everybody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
