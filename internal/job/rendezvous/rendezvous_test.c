/* SPDX-License-Identifier: BSD-3-Clause */
#include "job/rendezvous/rdv_testing.h"

static uint64_t theirs = 2000;

static void a_malformed_address_is_refused(void **state)
{
	struct cop_job_host self = {.name = (char *)"127.0.0.41", .port = 0};
	struct cop_rendezvous *r = NULL;
	struct cop_err err = {0};

	(void)state;
	assert_int_equal(open_at(&self, "", &ours, &r, &err), -EINVAL);
	assert_int_equal(open_at(&self, "a b", &ours, &r, &err), -EINVAL);
	assert_null(r);
	cop_rendezvous_stop(NULL);
}

static void a_port_in_use_is_named_with_its_address(void **state)
{
	struct cop_rendezvous *r = start("127.0.0.41", 0, &ours, "x"), *second = NULL;
	struct cop_job_host self = host_of(r, "127.0.0.41");
	struct cop_err err = {0};
	char part[64];

	(void)state;
	assert_int_equal(open_at(&self, "y", &ours, &second, &err), -EADDRINUSE);
	snprintf(part, sizeof(part), "127.0.0.41 port %u", self.port);
	assert_non_null(strstr(err.text, part));
	cop_rendezvous_stop(r);
}

static void two_nodes_tell_each_other_their_addresses(void **state)
{
	struct cop_rendezvous *a = start("127.0.0.41", 0, &ours, "ofi+tcp://127.0.0.41:1");
	struct cop_rendezvous *b = start("127.0.0.42", 0, &ours, "ofi+cxi://0x00916600");
	struct cop_job_host at_a = host_of(a, "127.0.0.41"), at_b = host_of(b, "127.0.0.42");
	unsigned before = refusals;
	struct result x, y;

	(void)state;
	result_init(&x);
	result_init(&y);
	assert_int_equal(cop_rendezvous_ask(a, &at_b, 5000, found, &x), 0);
	assert_int_equal(cop_rendezvous_ask(b, &at_a, 5000, found, &y), 0);
	await(&x, 1);
	await(&y, 1);
	assert_string_equal(x.address, "ofi+cxi://0x00916600");
	assert_string_equal(x.why, "");
	assert_string_equal(y.address, "ofi+tcp://127.0.0.41:1");
	cop_rendezvous_stop(a);
	cop_rendezvous_stop(b);
	assert_int_equal(refusals, before);
	assert_int_equal(x.calls, 1);
}

static void the_asker_is_known_when_it_is_answered(void **state)
{
	char seen[64];
	struct cop_rendezvous *a = start("127.0.0.41", 0, &ours, "ofi+tcp://127.0.0.41:1"), *b,
			      *other;
	struct cop_job_host at_b;
	struct result x, y;

	(void)state;
	result_init(&x);
	result_init(&y);
	on_met = met;
	b = start("127.0.0.42", 0, &ours, "b");
	on_met = NULL;
	at_b = host_of(b, "127.0.0.42");
	/* A node without the secret does not count as met. */
	other = start("127.0.0.44", 0, &theirs, "another");
	assert_int_equal(cop_rendezvous_ask(other, &at_b, 300, found, &y), 0);
	await(&y, 1);
	assert_string_equal(whom_met(seen), "");
	assert_int_equal(cop_rendezvous_ask(a, &at_b, 5000, found, &x), 0);
	await(&x, 1);
	assert_string_equal(x.address, "b");
	assert_string_equal(whom_met(seen), "ofi+tcp://127.0.0.41:1");
	cop_rendezvous_stop(a);
	cop_rendezvous_stop(b);
	cop_rendezvous_stop(other);
}

static void a_node_may_ask_itself(void **state)
{
	struct cop_rendezvous *a = start("127.0.0.41", 0, &ours, "me");
	struct cop_job_host at = host_of(a, "127.0.0.41");
	struct result x;

	(void)state;
	result_init(&x);
	assert_int_equal(cop_rendezvous_ask(a, &at, 5000, found, &x), 0);
	await(&x, 1);
	assert_string_equal(x.address, "me");
	cop_rendezvous_stop(a);
}

/* b's first port belongs to a process that does not answer, answers nonsense, or does not even
 * accept. */
static void a_node_at_its_second_port_is_found(void **state)
{
	static const char *const noise[] = {NULL, "SSH-2.0-somebody else\r\n", ""};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(noise); i++) {
		struct cop_rendezvous *a = start("127.0.0.41", 0, &ours, "a"), *b = NULL;
		struct cop_job_host host = {.name = (char *)"127.0.0.42",
			.port = free_port("127.0.0.42"),
			.second_port = free_port("127.0.0.43")};
		struct cop_rendezvous_conf conf = {.self = &host,
			.fabric_address = "b",
			.mac = test_mac,
			.ctx = &ours,
			.at_second_port = true};
		int taken = plain_socket(host.name, host.port, true), fd = -1;
		struct cop_err err = {0};
		struct result x;

		result_init(&x);
		assert_int_equal(cop_rendezvous_start(&conf, &b, &err), 0);
		assert_int_equal(cop_rendezvous_port(b), host.second_port);
		assert_int_equal(cop_rendezvous_ask(a, &host, 10000, found, &x), 0);
		if (noise[i]) {
			fd = accept(taken, NULL, NULL);
			assert_true(fd >= 0);
			assert_int_equal(write(fd, noise[i], strlen(noise[i])), strlen(noise[i]));
			if (!noise[i][0])
				close(fd);
		}
		await(&x, 1);
		assert_string_equal(x.address, "b");
		if (noise[i] && noise[i][0])
			close(fd);
		close(taken);
		cop_rendezvous_stop(a);
		cop_rendezvous_stop(b);
	}
}

static void the_error_of_the_first_port_is_kept(void **state)
{
	struct cop_rendezvous *a = start("127.0.0.41", 0, &ours, "a"),
			      *other = start("127.0.0.42", 0, &theirs, "other");
	struct cop_job_host host = host_of(other, "127.0.0.42");
	struct result x;

	(void)state;
	host.second_port = free_port("127.0.0.42");
	result_init(&x);
	assert_int_equal(cop_rendezvous_ask(a, &host, 300, found, &x), 0);
	await(&x, 1);
	assert_non_null(strstr(x.why, "secret"));
	cop_rendezvous_stop(a);
	cop_rendezvous_stop(other);
}

static void a_host_that_starts_late_is_still_found(void **state)
{
	uint16_t port = free_port("127.0.0.43");
	struct cop_rendezvous *a = start("127.0.0.41", 0, &ours, "a"), *b;
	struct cop_job_host late = {.name = (char *)"127.0.0.43", .port = port};
	struct result x;

	(void)state;
	result_init(&x);
	assert_int_equal(cop_rendezvous_ask(a, &late, 20000, found, &x), 0);
	nap(300);
	assert_int_equal(x.calls, 0);
	b = start("127.0.0.43", port, &ours, "late");
	await(&x, 1);
	assert_string_equal(x.address, "late");
	cop_rendezvous_stop(a);
	cop_rendezvous_stop(b);
}

static void a_host_that_never_starts_is_named_with_the_reason(void **state)
{
	struct cop_job_host absent = {
		.name = (char *)"127.0.0.44", .port = free_port("127.0.0.44")};
	struct cop_rendezvous *a = start("127.0.0.41", 0, &ours, "a");
	uint64_t begin = cop_now_ms(), took;
	struct result x;
	char part[64];

	(void)state;
	result_init(&x);
	assert_int_equal(cop_rendezvous_ask(a, &absent, 300, found, &x), 0);
	await(&x, 1);
	took = cop_now_ms() - begin;
	assert_true(took >= 300);
	assert_int_equal(x.addresses, 0);
	snprintf(part, sizeof(part), "127.0.0.44:%u gave no address within 300 ms: ", absent.port);
	assert_int_equal(strncmp(x.why, part, strlen(part)), 0);
	assert_non_null(strstr(x.why, "refused"));
	cop_rendezvous_stop(a);
}

static void an_ask_that_is_to_end_does_not_wait_for_its_own_time(void **state)
{
	struct cop_rendezvous *r = start("127.0.0.1", 0, &ours, "a");
	struct cop_job_host nobody = {.name = (char *)"127.0.0.1", .port = free_port("127.0.0.1")};
	uint64_t began_ms = cop_now_ms();
	struct result x;

	(void)state;
	result_init(&x);
	assert_int_equal(cop_rendezvous_ask(r, &nobody, 600000, found, &x), 0);
	nap(100);
	cop_rendezvous_end_asks(r, 200);
	await(&x, 1);
	assert_int_equal(x.addresses, 0);
	assert_true(cop_now_ms() - began_ms >= 200);
	cop_rendezvous_stop(r);
}

static void another_secret_gets_nothing_and_is_counted(void **state)
{
	struct cop_rendezvous *a = start("127.0.0.41", 0, &theirs, "a");
	struct cop_rendezvous *b = start("127.0.0.42", 0, &ours, "b");
	struct cop_job_host at = host_of(b, "127.0.0.42");
	unsigned before = refusals;
	struct result x;

	(void)state;
	result_init(&x);
	assert_int_equal(cop_rendezvous_ask(a, &at, 200, found, &x), 0);
	await(&x, 1);
	assert_int_equal(x.addresses, 0);
	assert_non_null(strstr(x.why, "does it have the same secret"));
	assert_true(refusals > before);
	cop_rendezvous_stop(a);
	cop_rendezvous_stop(b);
}

/* 127.0.0.42 and 127.0.0.41 reach one listener on every address; the name in the ask is not the
 * listener's own. */
static void a_host_is_not_taken_for_another(void **state)
{
	struct cop_rendezvous *a = start("localhost", 0, &ours, "a");
	struct cop_job_host other = host_of(a, "127.0.0.42"), same = host_of(a, "localhost");
	struct result x;

	(void)state;
	result_init(&x);
	assert_int_equal(cop_rendezvous_ask(a, &other, 200, found, &x), 0);
	await(&x, 1);
	assert_int_equal(x.addresses, 0);
	assert_int_equal(cop_rendezvous_ask(a, &same, 5000, found, &x), 0);
	await(&x, 2);
	assert_string_equal(x.address, "a");
	cop_rendezvous_stop(a);
}

/* A label longer than 63 bytes is invalid, so no name server is asked. */
static void an_unknown_name_is_said_to_be_one(void **state)
{
	struct cop_rendezvous *a = start("127.0.0.41", 0, &ours, "a");
	char name[80] = "";
	struct cop_job_host nobody = {.name = name, .port = 7720};
	struct result x;

	(void)state;
	memset(name, 'x', 70);
	result_init(&x);
	assert_int_equal(cop_rendezvous_ask(a, &nobody, 200, found, &x), 0);
	await(&x, 1);
	assert_non_null(strstr(x.why, "its name is unknown"));
	cop_rendezvous_stop(a);
}

static void unverified_peers_get_no_byte_and_are_counted(void **state)
{
	struct cop_rendezvous *a = start("127.0.0.41", 0, &ours, "a");
	int fd = plain_socket("127.0.0.41", cop_rendezvous_port(a), false);
	unsigned before = refusals;
	char answer[16];

	(void)state;
	assert_int_equal(send(fd, "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL), 18);
	assert_true(recv(fd, answer, sizeof(answer), 0) <= 0);
	close(fd);
	assert_int_equal(refusals, before + 1);
	cop_rendezvous_stop(a);
}

static void a_silent_connection_is_closed_after_two_seconds(void **state)
{
	struct cop_rendezvous *a = start("127.0.0.41", 0, &ours, "a");
	uint64_t begin = cop_now_ms();
	int fd = plain_socket("127.0.0.41", cop_rendezvous_port(a), false);
	unsigned before = refusals;
	char answer[16];

	(void)state;
	assert_int_equal(send(fd, "COPR", 4, MSG_NOSIGNAL), 4);
	assert_int_equal(recv(fd, answer, sizeof(answer), 0), 0);
	assert_true(cop_now_ms() - begin >= 1900);
	assert_int_equal(refusals, before + 1);
	close(fd);
	cop_rendezvous_stop(a);
}

static void silent_unverified_peers_in_every_slot_keep_nobody_out(void **state)
{
	struct cop_rendezvous *a = start("127.0.0.41", 0, &ours, "a");
	struct cop_rendezvous *b = start("127.0.0.42", 0, &ours, "b");
	struct cop_job_host at = host_of(b, "127.0.0.42");
	int fd[9 * RDV_SERVED_MAX]; /* handled one after another, they would take twice as long as
				       the ask may */
	struct result x;

	(void)state;
	result_init(&x);
	for (size_t i = 0; i < COP_ARRAY_SIZE(fd); i++)
		fd[i] = plain_socket("127.0.0.42", at.port, false);
	nap(50);
	assert_int_equal(cop_rendezvous_ask(a, &at, 10000, found, &x), 0);
	await(&x, 1);
	assert_string_equal(x.address, "b");
	for (size_t i = 0; i < COP_ARRAY_SIZE(fd); i++)
		close(fd[i]);
	cop_rendezvous_stop(a);
	cop_rendezvous_stop(b);
}

static void asks_come_from_the_hosts_own_address(void **state)
{
	struct cop_rendezvous *a = start("127.0.0.41", 0, &ours, "a");
	struct cop_job_host at = {.name = (char *)"127.0.0.45", .port = free_port("127.0.0.45")};
	int fd = plain_socket("127.0.0.45", at.port, true), peer;
	struct sockaddr_in from;
	socklen_t size = sizeof(from);
	struct result x;

	(void)state;
	result_init(&x);
	assert_int_equal(cop_rendezvous_ask(a, &at, 300, found, &x), 0);
	peer = accept(fd, (struct sockaddr *)&from, &size);
	assert_true(peer >= 0);
	assert_int_equal(ntohl(from.sin_addr.s_addr), 0x7f000029);
	assert_int_equal(send(peer, "SSH-2.0-x\r\n", 11, MSG_NOSIGNAL), 11);
	await(&x, 1);
	assert_non_null(strstr(x.why, "not a rendezvous"));
	close(peer);
	close(fd);
	cop_rendezvous_stop(a);
}

static void asks_are_bounded_and_end_when_the_rendezvous_stops(void **state)
{
	struct cop_job_host absent = {
		.name = (char *)"127.0.0.44", .port = free_port("127.0.0.44")};
	struct cop_rendezvous *a = start("127.0.0.41", 0, &ours, "a");
	struct result x;

	(void)state;
	result_init(&x);
	for (int i = 0; i < RDV_ASKS_MAX; i++)
		assert_int_equal(cop_rendezvous_ask(a, &absent, 60000, found, &x), 0);
	assert_int_equal(cop_rendezvous_ask(a, &absent, 60000, found, &x), -EBUSY);
	nap(100);
	cop_rendezvous_stop(a);
	assert_int_equal(x.calls, RDV_ASKS_MAX);
	assert_int_equal(x.addresses, 0);
	assert_non_null(strstr(x.why, "stopped"));
}

static bool has_six(void)
{
	struct cop_ip six;

	return cop_ip_parse("::1", &six) && cop_ip_is_here(&six);
}

static void nodes_meet_over_ipv6(void **state)
{
	struct cop_rendezvous *a, *b;
	struct cop_job_host at;
	struct result x;

	(void)state;
	if (!has_six())
		skip();
	a = start("::1", 0, &ours, "a");
	b = start("::1", 0, &ours, "ofi+tcp://[::1]:5");
	at = host_of(b, "::1");
	result_init(&x);
	assert_int_equal(cop_rendezvous_ask(a, &at, 20000, found, &x), 0);
	await(&x, 1);
	assert_string_equal(x.address, "ofi+tcp://[::1]:5");
	cop_rendezvous_stop(b);
	assert_int_equal(cop_rendezvous_ask(a, &at, 300, found, &x), 0);
	await(&x, 2);
	assert_int_equal(strncmp(x.why, "[::1]:", 6), 0);
	cop_rendezvous_stop(a);
}

/* A node asks over whatever network it is on. */
static void a_host_with_a_name_answers_over_both_versions_of_ip(void **state)
{
	static const char *const places[] = {"127.0.0.42", "::1"};
	struct cop_rendezvous *a = start("n1", 0, &ours, "a"), *b = start("n2", 0, &ours, "b");
	struct cop_job_host at = host_of(b, "n2");
	struct result x;

	(void)state;
	result_init(&x);
	for (unsigned i = 0; i < 1u + has_six(); i++) {
		assert_true(cop_ip_parse(places[i], &at.address));
		assert_int_equal(cop_rendezvous_ask(a, &at, 20000, found, &x), 0);
		await(&x, i + 1);
		assert_string_equal(x.address, "b");
	}
	cop_rendezvous_stop(a);
	cop_rendezvous_stop(b);
}

static void names_that_wait_for_the_resolver_end_when_the_rendezvous_stops(void **state)
{
	struct cop_rendezvous *a = start("127.0.0.41", 0, &ours, "a");
	char name[80] = "";
	struct cop_job_host nobody = {.name = name, .port = 7720};
	struct result x;

	(void)state;
	memset(name, 'x', 70);
	result_init(&x);
	for (int i = 0; i < 500; i++)
		assert_int_equal(cop_rendezvous_ask(a, &nobody, i % 7, found, &x), 0);
	nap(3);
	cop_rendezvous_stop(a);
	assert_int_equal(x.calls, 500);
	assert_int_equal(x.addresses, 0);
}

static void a_thousand_asks_at_once_are_all_answered(void **state)
{
	struct cop_rendezvous *a = start("127.0.0.41", 0, &ours, "a");
	struct cop_rendezvous *b = start("127.0.0.42", 0, &ours, "b");
	struct cop_job_host at = host_of(b, "127.0.0.42");
	struct result x;

	(void)state;
	result_init(&x);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(cop_rendezvous_ask(a, &at, 20000, found, &x), 0);
	await(&x, 1000);
	assert_int_equal(x.addresses, 1000);
	cop_rendezvous_stop(a);
	cop_rendezvous_stop(b);
}

static void found_may_ask_again(void **state)
{
	struct cop_rendezvous *a = start("127.0.0.41", 0, &ours, "a");
	struct cop_job_host at = host_of(a, "127.0.0.41");
	struct result x;

	(void)state;
	result_init(&x);
	x.again = a;
	x.host = &at;
	assert_int_equal(cop_rendezvous_ask(a, &at, 5000, found, &x), 0);
	await(&x, 2);
	assert_int_equal(x.addresses, 2);
	cop_rendezvous_stop(a);
}

static void an_idle_rendezvous_uses_no_cpu(void **state)
{
	struct cop_rendezvous *a = start("127.0.0.41", 0, &ours, "a");
	struct timespec before, after;
	int64_t used_ns;

	(void)state;
	nap(50);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	nap(500);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	used_ns = (after.tv_sec - before.tv_sec) * 1000000000LL + after.tv_nsec - before.tv_nsec;
	assert_true(used_ns < 5000000);
	cop_rendezvous_stop(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_malformed_address_is_refused),
		cmocka_unit_test(a_port_in_use_is_named_with_its_address),
		cmocka_unit_test(two_nodes_tell_each_other_their_addresses),
		cmocka_unit_test(the_asker_is_known_when_it_is_answered),
		cmocka_unit_test(a_node_may_ask_itself),
		cmocka_unit_test(a_node_at_its_second_port_is_found),
		cmocka_unit_test(the_error_of_the_first_port_is_kept),
		cmocka_unit_test(a_host_that_starts_late_is_still_found),
		cmocka_unit_test(a_host_that_never_starts_is_named_with_the_reason),
		cmocka_unit_test(an_ask_that_is_to_end_does_not_wait_for_its_own_time),
		cmocka_unit_test(another_secret_gets_nothing_and_is_counted),
		cmocka_unit_test(a_host_is_not_taken_for_another),
		cmocka_unit_test(an_unknown_name_is_said_to_be_one),
		cmocka_unit_test(unverified_peers_get_no_byte_and_are_counted),
		cmocka_unit_test(a_silent_connection_is_closed_after_two_seconds),
		cmocka_unit_test(silent_unverified_peers_in_every_slot_keep_nobody_out),
		cmocka_unit_test(asks_come_from_the_hosts_own_address),
		cmocka_unit_test(asks_are_bounded_and_end_when_the_rendezvous_stops),
		cmocka_unit_test(nodes_meet_over_ipv6),
		cmocka_unit_test(a_host_with_a_name_answers_over_both_versions_of_ip),
		cmocka_unit_test(names_that_wait_for_the_resolver_end_when_the_rendezvous_stops),
		cmocka_unit_test(a_thousand_asks_at_once_are_all_answered),
		cmocka_unit_test(found_may_ask_again),
		cmocka_unit_test(an_idle_rendezvous_uses_no_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
