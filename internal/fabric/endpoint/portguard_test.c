/* SPDX-License-Identifier: BSD-3-Clause */
/* The guard of libfabric's port: a peer with the key gets through; a peer without it is
 * ignored and delays no other. */
#include "fabric/endpoint/ofi_testing.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fabric/endpoint/portguard_priv.h"
#include "fabric/endpoint/ofi_priv.h"

#define QUITE_A_WHILE_MS 300

static struct keyed {
	struct node n;
	struct cop_stats rejected;
	uint64_t key;
} a, b;

static void test_mac(void *ctx, const void *data, size_t len, uint8_t out[32])
{
	const struct keyed *k = ctx;

	for (uint64_t i = 0; i < 4; i++) {
		uint64_t h = cop_hash64(data, len, k->key + i);

		memcpy(out + 8 * i, &h, 8);
	}
}

static void open_keyed(struct keyed *k, const char *host, const char *address, uint64_t key)
{
	struct cop_endpoint_conf conf = {.net_type = "tcp",
		.host = host,
		.address = address,
		.tick_ms = 20,
		.mac = test_mac,
		.mac_ctx = k,
		.rejected = &k->rejected,
		.events = {.ctx = &k->n, .recv = on_recv, .tick = on_tick}};
	struct cop_err err = {0};

	*k = (struct keyed){.key = key};
	if (cop_endpoint_open(&conf, &k->n.f, &err))
		fail_msg("%s", err.text);
}

static int open_both(void **state)
{
	(void)state;
	open_keyed(&a, "127.0.0.11", NULL, 1000);
	open_keyed(&b, "127.0.0.12", NULL, 1000);
	return 0;
}

static int close_both(void **state)
{
	(void)state;
	cop_endpoint_close(a.n.f);
	cop_endpoint_close(b.n.f);
	return 0;
}

static uint64_t rejected(void)
{
	return cop_stats_get(&a.rejected, COP_FABRIC_REJECTED) +
	       cop_stats_get(&b.rejected, COP_FABRIC_REJECTED);
}

static void over_ipv6_keys_count_as_well(void **state)
{
	static char msg[64];
	static struct ends ends;
	struct cop_ip six;

	(void)state;
	cop_ip_parse("::1", &six);
	if (!cop_ip_is_here(&six))
		skip();
	close_both(state);
	open_keyed(&a, "::1", NULL, 1000);
	open_keyed(&b, "::1", NULL, 1000);
	talks(&a.n, &b.n, 5000);
	talks(&b.n, &a.n, 5000);
	cop_endpoint_close(b.n.f);
	open_keyed(&b, "::1", NULL, 2000);
	send_to(&b.n, peer_of(&b.n, cop_endpoint_address(a.n.f)), msg, sizeof(msg), 3, &ends);
	for (uint64_t end = cop_now_ms() + WAIT_MS; !rejected() && cop_now_ms() < end;)
		nap_ms(5);
	assert_true(cop_stats_get(&a.rejected, COP_FABRIC_REJECTED_SECRET) > 0);
	assert_int_equal(atomic_load(&a.n.received), 1);
}

static void who_has_the_key_speaks_both_ways_and_again(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++) {
		talks(&a.n, &b.n, 5000);
		drop_peer(&a.n, peer_of(&a.n, cop_endpoint_address(b.n.f)));
		recovers(&b.n, &a.n);
		recovers(&a.n, &b.n);
	}
	assert_int_equal(rejected(), 0);
}

static void both_may_begin_at_once(void **state)
{
	static struct ends ends; /* messages may end with their node, after this function */
	static char msg[64];

	(void)state;
	for (int i = 0; i < 20; i++) {
		send_to(&a.n, peer_of(&a.n, cop_endpoint_address(b.n.f)), msg, sizeof(msg), 1,
			&ends);
		send_to(&b.n, peer_of(&b.n, cop_endpoint_address(a.n.f)), msg, sizeof(msg), 1,
			&ends);
		nap_ms(5);
		drop_peer(&a.n, peer_of(&a.n, cop_endpoint_address(b.n.f)));
		drop_peer(&b.n, peer_of(&b.n, cop_endpoint_address(a.n.f)));
	}
	recovers(&b.n, &a.n);
	recovers(&a.n, &b.n);
	assert_int_equal(rejected(), 0);
}

static void another_key_is_refused_and_counted(void **state)
{
	static struct ends ends; /* messages may end with their node, after this function */
	static char msg[64];
	uint64_t end = cop_now_ms() + WAIT_MS;

	(void)state;
	cop_endpoint_close(b.n.f);
	open_keyed(&b, "127.0.0.12", NULL, 2000);
	send_to(&b.n, peer_of(&b.n, cop_endpoint_address(a.n.f)), msg, sizeof(msg), 3, &ends);
	while (!cop_stats_get(&a.rejected, COP_FABRIC_REJECTED_SECRET) && cop_now_ms() < end)
		nap_ms(5);
	assert_true(cop_stats_get(&a.rejected, COP_FABRIC_REJECTED_SECRET) > 0);
	assert_int_equal(atomic_load(&a.n.received), 0);
}

static struct sockaddr_in address_of(struct keyed *k)
{
	const struct ofi *o = cop_endpoint_ofi_of(k->n.f);
	struct sockaddr_in at;

	memcpy(&at, o->naming.own, sizeof(at));
	return at;
}

static int unverified_peer_of(struct keyed *k)
{
	struct sockaddr_in at = address_of(k);
	struct timeval patience = {.tv_sec = WAIT_MS / 1000};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	/* connect is the guard's and knows whom to greet. */
	assert_int_equal(syscall(SYS_connect, fd, &at, sizeof(at)), 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return fd;
}

/* The answer of one connection opens no other one, nor the port of another endpoint. */
static void a_greeting_serves_once(void **state)
{
	const struct cop_greet_key key = {test_mac, &a};
	uint8_t challenge[2][COP_GREET_CHALLENGE], answer[COP_GREET_ANSWER], proof[COP_GREET_PROOF],
		byte;
	struct sockaddr_storage at = {0}, elsewhere = {0};
	struct sockaddr_in to = address_of(&a), other = address_of(&b);
	int fd = unverified_peer_of(&a);

	(void)state;
	memcpy(&at, &to, sizeof(to));
	memcpy(&elsewhere, &other, sizeof(other));
	assert_int_equal(
		recv(fd, challenge[0], sizeof(challenge[0]), MSG_WAITALL), sizeof(challenge[0]));
	assert_int_equal(cop_endpoint_greet_answer(&key, challenge[0], &at, answer), 0);
	assert_int_equal(
		cop_endpoint_greet_check_answer(&key, challenge[0], &elsewhere, answer, proof),
		-EACCES);
	assert_int_equal(send(fd, answer, sizeof(answer), MSG_NOSIGNAL), sizeof(answer));
	assert_int_equal(recv(fd, proof, sizeof(proof), MSG_WAITALL), sizeof(proof));
	assert_int_equal(cop_endpoint_greet_check_proof(&key, challenge[0], &at, answer, proof), 0);
	assert_int_equal(rejected(), 0);
	close(fd);
	fd = unverified_peer_of(&a);
	assert_int_equal(
		recv(fd, challenge[1], sizeof(challenge[1]), MSG_WAITALL), sizeof(challenge[1]));
	assert_memory_not_equal(challenge[0], challenge[1], sizeof(challenge[0]));
	assert_int_equal(send(fd, answer, sizeof(answer), MSG_NOSIGNAL), sizeof(answer));
	assert_true(recv(fd, &byte, 1, 0) <= 0);
	assert_int_equal(cop_stats_get(&a.rejected, COP_FABRIC_REJECTED_SECRET), 1);
	close(fd);
}

static void silent_and_noisy_connections_delay_nobody(void **state)
{
	int fd[2 * COP_PORTGUARD_PENDING_MAX];
	char byte;

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(fd); i++)
		fd[i] = unverified_peer_of(&a);
	recovers(&b.n, &a.n);
	recovers(&a.n, &b.n);
	for (size_t i = 0; i < COP_ARRAY_SIZE(fd); i++)
		close(fd[i]);
	assert_true(cop_stats_get(&a.rejected, COP_FABRIC_REJECTED_SILENT) > 0);
	fd[0] = unverified_peer_of(&a);
	assert_int_equal(send(fd[0], "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL), 18);
	while (recv(fd[0], &byte, 1, 0) > 0)
		;
	close(fd[0]);
	assert_int_equal(cop_stats_get(&a.rejected, COP_FABRIC_REJECTED_FORM), 1);
}

/* Another process listens where a node was: it learns neither the messages nor their sender. */
static void nothing_is_sent_to_a_listener_without_the_key(void **state)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;
	uint8_t said[COP_GREET_ANSWER + 1], challenge[COP_GREET_CHALLENGE];
	struct timeval patience = {.tv_usec = 1000 * QUITE_A_WHILE_MS};
	static struct ends ends; /* the message ends with its node, after this function */
	static char msg[64];
	socklen_t len = sizeof(at);
	char address[64];

	(void)state;
	inet_pton(AF_INET, "127.0.0.13", &at.sin_addr);
	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(listener, 8), 0);
	getsockname(listener, (struct sockaddr *)&at, &len);
	snprintf(address, sizeof(address), "ofi+tcp://127.0.0.13:%u", ntohs(at.sin_port));
	send_to(&b.n, peer_of(&b.n, address), msg, sizeof(msg), 1, &ends);
	fd = accept(listener, NULL, NULL);
	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	assert_int_equal(recv(fd, said, sizeof(said), 0), -1);
	assert_int_equal(cop_endpoint_greet_challenge(challenge), 0);
	assert_int_equal(send(fd, challenge, sizeof(challenge), MSG_NOSIGNAL), sizeof(challenge));
	patience.tv_sec = WAIT_MS / 1000;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	assert_int_equal(recv(fd, said, COP_GREET_ANSWER, MSG_WAITALL), COP_GREET_ANSWER);
	memset(said, 0, sizeof(said));
	memcpy(said, "COPG\1\3\0\0", 8);
	assert_int_equal(send(fd, said, COP_GREET_PROOF, MSG_NOSIGNAL), COP_GREET_PROOF);
	while (recv(fd, said, sizeof(said), 0) > 0)
		;
	assert_int_equal(cop_stats_get(&b.rejected, COP_FABRIC_REJECTED_SECRET), 1);
	close(fd);
	close(listener);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, open_both, close_both)
	const struct CMUnitTest tests[] = {
		T(who_has_the_key_speaks_both_ways_and_again),
		T(over_ipv6_keys_count_as_well),
		T(both_may_begin_at_once),
		T(another_key_is_refused_and_counted),
		T(a_greeting_serves_once),
		T(silent_and_noisy_connections_delay_nobody),
		T(nothing_is_sent_to_a_listener_without_the_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
