/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/endpoint/ofi_testing.h"

#include <sys/resource.h>
#include <rdma/fi_domain.h>

#include "fabric/endpoint/ofi_priv.h"

static struct node a, b;

static int open_pair(void **state)
{
	(void)state;
	open_node(&a, "tcp", "127.0.0.11", NULL);
	open_node(&b, "tcp", "127.0.0.12", NULL);
	return 0;
}

static int close_pair(void **state)
{
	(void)state;
	cop_endpoint_close(a.f);
	cop_endpoint_close(b.f);
	return 0;
}

/* ---- opening ---- */

static bool has_six(void)
{
	struct cop_ip six;

	return cop_ip_parse("::1", &six) && cop_ip_is_here(&six);
}

static void an_address_names_the_host_it_was_bound_to(void **state)
{
	(void)state;
	assert_memory_equal(cop_endpoint_address(a.f), "ofi+tcp://127.0.0.11:", 21);
	assert_string_equal(cop_endpoint_provider(a.f), "tcp;ofi_rxm");
}

static void an_unknown_net_type_is_refused_with_the_providers_there_are(void **state)
{
	struct node n = {0};
	struct cop_err err = {0};

	(void)state;
	assert_true(try_open(&n, "carrierpigeon", NULL, NULL, &err) < 0);
	assert_non_null(strstr(err.text, "carrierpigeon"));
	assert_non_null(strstr(err.text, "tcp;ofi_rxm"));
	assert_null(n.f);
	assert_int_equal(try_open(&n, "no such type", NULL, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, "no such type"));
}

static void a_host_that_is_not_of_this_machine_is_refused(void **state)
{
	struct node n = {0};
	struct cop_err err = {0};

	(void)state;
	assert_true(try_open(&n, "tcp", "192.0.2.77", NULL, &err) < 0);
	assert_non_null(strstr(err.text, "192.0.2.77"));
}

static void an_interface_name_binds_to_its_address(void **state)
{
	struct node n;

	(void)state;
	open_node(&n, "tcp://lo", NULL, NULL);
	assert_memory_equal(cop_endpoint_address(n.f), "ofi+tcp://127.0.0.1:", 20);
	cop_endpoint_close(n.f);
}

static void of_an_interface_the_address_of_the_hosts_version_of_ip_counts(void **state)
{
	char node[64];

	(void)state;
	if (!has_six())
		skip();
	assert_true(cop_endpoint_interface_address("lo", "::1", node));
	assert_string_equal(node, "::1");
	assert_true(cop_endpoint_interface_address("lo", NULL, node));
	assert_string_equal(node, "127.0.0.1");
	assert_true(cop_endpoint_interface_address("lo", "n1", node));
	assert_string_equal(node, "127.0.0.1");
	assert_true(cop_endpoint_interface_address("lo", "127.0.0.14", node));
	assert_string_equal(node, "127.0.0.14");
	assert_false(cop_endpoint_interface_address("nosuch0", "::1", node));
}

static void an_endpoint_of_ipv6_knows_its_network(void **state)
{
	struct cop_buf text = {0};
	char first[COP_ENDPOINT_NETWORK_MAX + 300];
	struct node n;

	(void)state;
	if (!has_six())
		skip();
	open_node(&n, "tcp://[::1]", NULL, NULL);
	assert_int_equal(strncmp(cop_endpoint_address(n.f), "ofi+tcp://[::1]:", 16), 0);
	assert_string_equal(cop_endpoint_network(n.f), "lo");
	cop_endpoint_networks(n.f, &text);
	snprintf(first, sizeof(first), "lo %s\n", cop_endpoint_address(n.f));
	assert_int_equal(strncmp(text.data, first, strlen(first)), 0);
	assert_null(strstr(text.data, "[fe80:"));
	cop_buf_free(&text);
	cop_endpoint_close(n.f);
}

static void an_interface_counts_more_than_the_host_unless_the_host_is_in_its_network(void **state)
{
	struct cop_err err = {0};
	struct node n = {0};

	(void)state;
	open_node(&n, "tcp://lo", "127.0.0.14", NULL);
	assert_memory_equal(cop_endpoint_address(n.f), "ofi+tcp://127.0.0.14:", 21);
	cop_endpoint_close(n.f);
	open_node(&n, "tcp://lo", "192.0.2.77", NULL);
	assert_memory_equal(cop_endpoint_address(n.f), "ofi+tcp://127.0.0.1:", 20);
	cop_endpoint_close(n.f);
	assert_int_equal(try_open(&n, "tcp://nosuch0", "127.0.0.14", NULL, &err), -ENODEV);
	assert_non_null(strstr(err.text, "no interface nosuch0"));
}

static void an_endpoint_knows_its_network_and_its_address_there(void **state)
{
	struct cop_buf all = {0}, cpus = {0};
	struct node n;
	char own[160];

	(void)state;
	open_node(&n, "tcp", "127.0.0.15", NULL);
	assert_string_equal(cop_endpoint_network(n.f), "lo");
	cop_endpoint_networks(n.f, &all);
	snprintf(own, sizeof(own), "lo %s\n", cop_endpoint_address(n.f));
	assert_memory_equal(all.data, own, strlen(own));
	assert_null(strstr(all.data + 1, "\nlo "));
	/* The loopback has no card. */
	cop_endpoint_near_cpus(n.f, &cpus);
	assert_int_equal(cpus.len, 0);
	cop_buf_free(&all);
	cop_endpoint_close(n.f);
}

static void the_network_of_a_net_type_is_what_follows_its_scheme(void **state)
{
	(void)state;
	assert_string_equal(cop_endpoint_net_device("cxi://cxi1"), "cxi1");
	assert_string_equal(cop_endpoint_net_device("ofi+cxi://cxi1"), "cxi1");
	assert_string_equal(cop_endpoint_net_device("cxi"), "");
	assert_string_equal(cop_endpoint_net_device("ofi+cxi1"), "cxi1");
	assert_string_equal(cop_endpoint_net_device("cxi1x"), "");
	assert_string_equal(cop_endpoint_net_device(NULL), "");
}

static void a_book_address_is_bound_to_as_it_stands(void **state)
{
	struct node n;
	char address[128];

	(void)state;
	open_node(&n, "tcp", "127.0.0.13", NULL);
	snprintf(address, sizeof(address), "%s", cop_endpoint_address(n.f));
	cop_endpoint_close(n.f);
	open_node(&n, "tcp", NULL, address);
	assert_string_equal(cop_endpoint_address(n.f), address);
	cop_endpoint_close(n.f);
}

/* Ports that were free a moment ago, one after the other. */
static uint16_t free_ports(unsigned count)
{
	uint16_t first = 21000;

	for (unsigned found = 0; found < count; first += found < count) {
		for (found = 0; found < count; found++) {
			struct node n = {.port_low = (uint16_t)(first + found),
				.port_high = (uint16_t)(first + found)};
			struct cop_err err = {0};

			if (try_open(&n, "tcp", "127.0.0.14", NULL, &err))
				break;
			cop_endpoint_close(n.f);
		}
	}
	return first;
}

static void of_a_range_of_ports_the_first_free_one_is_taken(void **state)
{
	uint16_t first = free_ports(2);
	struct node n[3] = {[0 ... 2] = {.port_low = first, .port_high = (uint16_t)(first + 1)}};
	struct cop_err err = {0};
	char want[64];

	(void)state;
	for (uint16_t i = 0; i < 2; i++) {
		assert_int_equal(try_open(&n[i], "tcp", "127.0.0.14", NULL, &err), 0);
		snprintf(want, sizeof(want), "ofi+tcp://127.0.0.14:%u", first + i);
		assert_string_equal(cop_endpoint_address(n[i].f), want);
	}
	assert_int_equal(try_open(&n[2], "tcp", "127.0.0.14", NULL, &err), -EADDRINUSE);
	snprintf(want, sizeof(want), "all ports from %u to %u are taken", first, first + 1);
	assert_non_null(strstr(err.text, want));
	assert_non_null(strstr(err.text, "--fabric-port"));
	n[2].port_high = first;
	assert_int_equal(try_open(&n[2], "tcp", "127.0.0.14", NULL, &err), -EADDRINUSE);
	snprintf(want, sizeof(want), "127.0.0.14 port %u ", first);
	assert_non_null(strstr(err.text, want));
	assert_non_null(strstr(err.text, "another program has it"));
	cop_endpoint_close(n[0].f);
	assert_int_equal(try_open(&n[0], "tcp", "127.0.0.14", NULL, &err), 0);
	cop_endpoint_close(n[0].f);
	cop_endpoint_close(n[1].f);
}

static void a_port_is_refused_where_there_are_none(void **state)
{
	struct node n = {.port_low = 21000, .port_high = 21000};
	struct cop_err err = {0};

	(void)state;
	assert_int_equal(try_open(&n, "shm", NULL, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, "leave --fabric-port out"));
}

static void closing_nothing_is_fine(void **state)
{
	(void)state;
	cop_endpoint_close(NULL);
}

/* ---- peers ---- */

static void spellings_of_one_address_are_one_peer(void **state)
{
	const char *address = cop_endpoint_address(b.f), *tail = address + strlen("ofi+tcp://");
	char fi[128], plain[128];
	cop_endpoint_peer_t peer = peer_of(&a, address);

	(void)state;
	snprintf(fi, sizeof(fi), "fi_sockaddr_in://%s", tail);
	snprintf(plain, sizeof(plain), "tcp://%s", tail);
	assert_true(peer_of(&a, address) == peer);
	assert_true(peer_of(&a, fi) == peer);
	assert_true(peer_of(&a, plain) == peer);
	assert_false(peer_of(&a, cop_endpoint_address(a.f)) == peer);
	drop_peer(&a, peer);
	assert_false(peer_of(&a, address) == peer);
}

static void an_address_of_another_provider_is_refused(void **state)
{
	struct peer_call c = {.f = a.f, .address = "ofi+cxi://0x00916600"};

	(void)state;
	on_thread(&a, call_peer, &c);
	assert_int_equal(c.rc, -EINVAL);
}

static void a_dropped_peer_id_names_nobody(void **state)
{
	cop_endpoint_peer_t peer = peer_of(&a, cop_endpoint_address(b.f)), again;

	(void)state;
	drop_peer(&a, peer);
	assert_int_equal(send_to(&a, peer, "x", 1, 1, NULL), -ENOENT);
	again = peer_of(&a, cop_endpoint_address(b.f));
	assert_int_equal(send_to(&a, peer, "x", 1, 1, NULL), -ENOENT);
	drop_peer(&a, peer);
	assert_int_equal(send_to(&a, again, "x", 1, 1, NULL), 0);
	assert_true(reaches(&b.received, 1));
}

/* ---- messages ---- */

#define LENGTHS 2000

static size_t length_of(uint64_t i)
{
	return i < 100      ? 1 + i
	       : i % 7 == 0 ? COP_ENDPOINT_MSG_MAX
			    : 1 + i * 7919 % COP_ENDPOINT_MSG_MAX;
}

static void check_sequence(struct node *n, const void *msg, size_t len)
{
	unsigned char want[COP_ENDPOINT_MSG_MAX];

	fill_pattern(want, length_of(n->next), n->next);
	if (len != length_of(n->next) || memcmp(msg, want, len) != 0)
		atomic_fetch_add(&n->bad, 1);
	n->next++;
}

struct sequence {
	cop_endpoint_peer_t peer;
	struct ends ends;
	int rc;
};

static void send_sequence(void *arg)
{
	struct sequence *s = arg;
	unsigned char msg[COP_ENDPOINT_MSG_MAX];

	for (uint64_t i = 0; i < LENGTHS && s->rc == 0; i++) {
		fill_pattern(msg, length_of(i), i);
		s->rc = cop_endpoint_send(a.f, s->peer, msg, length_of(i), on_end, &s->ends);
	}
}

static void messages_of_every_size_arrive_once_and_in_order(void **state)
{
	struct sequence s = {.peer = peer_of(&a, cop_endpoint_address(b.f))};

	(void)state;
	look_with(&b, check_sequence);
	on_thread(&a, send_sequence, &s);
	assert_int_equal(s.rc, 0);
	assert_true(reaches(&b.received, LENGTHS));
	assert_true(all_good(&s.ends, LENGTHS));
	assert_int_equal(atomic_load(&b.bad), 0);
	nap_ms(50);
	assert_int_equal(atomic_load(&b.received), LENGTHS);
	assert_int_equal(cop_stats_get(&b.stats, COP_FABRIC_BYTES_IN), atomic_load(&b.bytes));
	assert_int_equal(cop_stats_get(&a.stats, COP_FABRIC_BYTES_OUT), atomic_load(&b.bytes));
}

static void a_message_that_is_too_long_is_refused(void **state)
{
	static char msg[COP_ENDPOINT_MSG_MAX + 1];
	cop_endpoint_peer_t peer = peer_of(&a, cop_endpoint_address(b.f));

	(void)state;
	assert_int_equal(send_to(&a, peer, msg, sizeof(msg), 1, NULL), -EMSGSIZE);
}

static void a_node_can_send_to_itself(void **state)
{
	cop_endpoint_peer_t peer = peer_of(&a, cop_endpoint_address(a.f));

	(void)state;
	assert_int_equal(send_to(&a, peer, "me", 2, 3, NULL), 0);
	assert_true(reaches(&a.received, 3));
}

static void both_ends_may_connect_at_once(void **state)
{
	cop_endpoint_peer_t to_b, to_a;

	(void)state;
	for (int i = 0; i < 20; i++) {
		atomic_store(&a.received, 0);
		atomic_store(&b.received, 0);
		to_b = peer_of(&a, cop_endpoint_address(b.f));
		to_a = peer_of(&b, cop_endpoint_address(a.f));
		send_to(&a, to_b, "b", 1, 1, NULL);
		send_to(&b, to_a, "a", 1, 1, NULL);
		assert_true(reaches(&a.received, 1));
		assert_true(reaches(&b.received, 1));
		drop_peer(&a, to_b);
		drop_peer(&b, to_a);
	}
}

/* ---- registered messages ---- */

/* No provider here needs FI_MR_LOCAL, but tcp accepts it; the flag is set after opening. */
static void force_local(void *arg)
{
	struct ofi *o = cop_endpoint_ofi_of(((struct node *)arg)->f);

	o->info->domain_attr->mr_mode |= FI_MR_LOCAL;
}

static unsigned live_mrs(struct node *n)
{
	struct ofi *o = cop_endpoint_ofi_of(n->f);
	unsigned count = 0;

	for (struct cop_list *i = o->mrs.next; i != &o->mrs; i = i->next)
		count++;
	return count;
}

static void local_messages_are_registered_where_the_provider_asks_for_it(void **state)
{
	struct sequence s = {.peer = peer_of(&a, cop_endpoint_address(b.f))};

	(void)state;
	on_thread(&a, force_local, &a);
	look_with(&b, check_sequence);
	on_thread(&a, send_sequence, &s);
	assert_true(reaches(&b.received, LENGTHS));
	assert_true(all_good(&s.ends, LENGTHS));
	assert_int_equal(atomic_load(&b.bad), 0);
	assert_int_equal(live_mrs(&a), 0);
}

/* ---- the thread ---- */

static void cpu_of_thread(void *arg)
{
	struct rusage u;
	double *seconds = arg;

	getrusage(RUSAGE_THREAD, &u);
	*seconds = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
		   (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void an_idle_endpoint_sleeps(void **state)
{
	double before, after;
	uint64_t ticks;

	(void)state;
	send_to(&a, peer_of(&a, cop_endpoint_address(b.f)), "hello", 5, 1, NULL);
	assert_true(reaches(&b.received, 1));
	nap_ms(200);
	ticks = atomic_load(&a.ticks);
	on_thread(&a, cpu_of_thread, &before);
	nap_ms(2000);
	on_thread(&a, cpu_of_thread, &after);
	assert_true(after - before < 0.010);
	assert_true(atomic_load(&a.ticks) - ticks < 10);
}

static void tick_on(void *arg)
{
	cop_endpoint_keep_ticking(arg, true);
}

static void tick_off(void *arg)
{
	cop_endpoint_keep_ticking(arg, false);
}

static void ticks_come_while_they_are_wanted(void **state)
{
	uint64_t ticks = atomic_load(&a.ticks), off, begin = cop_now_ms();

	(void)state;
	on_thread(&a, tick_on, a.f);
	/* One tick every 20 to 40 ms when the processor is free, and never more often. */
	while (atomic_load(&a.ticks) - ticks < 25 && cop_now_ms() - begin < 60000)
		nap_ms(100);
	assert_in_range(atomic_load(&a.ticks) - ticks, 25, 10 + (cop_now_ms() - begin) / 20);
	on_thread(&a, tick_off, a.f);
	nap_ms(100);
	off = atomic_load(&a.ticks);
	nap_ms(500);
	assert_in_range(atomic_load(&a.ticks) - off, 0, 3);
}

#define POSTERS 4
#define POSTS 5000

static struct {
	int next[POSTERS], bad, count;
} posted;

struct posted_item {
	struct cop_endpoint_work work;
	int poster, index;
};

static void note_posted(struct cop_endpoint_work *w)
{
	struct posted_item *i = COP_CONTAINER_OF(w, struct posted_item, work);

	if (posted.next[i->poster] != i->index)
		posted.bad++;
	posted.next[i->poster] = i->index + 1;
	posted.count++;
	free(i);
}

static void *post_many(void *arg)
{
	for (int i = 0; i < POSTS; i++) {
		struct posted_item *item = malloc(sizeof(*item));

		*item = (struct posted_item){{.run = note_posted}, (int)(intptr_t)arg, i};
		if (cop_endpoint_post(a.f, &item->work))
			abort();
	}
	return NULL;
}

static void read_posted(void *arg)
{
	*(int *)arg = posted.count;
}

static void functions_posted_by_one_thread_run_in_order(void **state)
{
	pthread_t threads[POSTERS];
	int count;

	(void)state;
	memset(&posted, 0, sizeof(posted));
	for (int i = 0; i < POSTERS; i++)
		assert_int_equal(
			cop_thread_start(&threads[i], "poster", post_many, (void *)(intptr_t)i), 0);
	for (int i = 0; i < POSTERS; i++)
		pthread_join(threads[i], NULL);
	on_thread(&a, read_posted, &count);
	assert_int_equal(count, POSTERS * POSTS);
	assert_int_equal(posted.bad, 0);
}

int main(void)
{
#define WITH_PAIR(t) cmocka_unit_test_setup_teardown(t, open_pair, close_pair)
	const struct CMUnitTest tests[] = {
		WITH_PAIR(an_address_names_the_host_it_was_bound_to),
		cmocka_unit_test(an_unknown_net_type_is_refused_with_the_providers_there_are),
		cmocka_unit_test(a_host_that_is_not_of_this_machine_is_refused),
		cmocka_unit_test(an_interface_name_binds_to_its_address),
		cmocka_unit_test(of_an_interface_the_address_of_the_hosts_version_of_ip_counts),
		cmocka_unit_test(an_endpoint_of_ipv6_knows_its_network),
		cmocka_unit_test(
			an_interface_counts_more_than_the_host_unless_the_host_is_in_its_network),
		cmocka_unit_test(an_endpoint_knows_its_network_and_its_address_there),
		cmocka_unit_test(the_network_of_a_net_type_is_what_follows_its_scheme),
		cmocka_unit_test(a_book_address_is_bound_to_as_it_stands),
		cmocka_unit_test(of_a_range_of_ports_the_first_free_one_is_taken),
		cmocka_unit_test(a_port_is_refused_where_there_are_none),
		cmocka_unit_test(closing_nothing_is_fine),
		WITH_PAIR(spellings_of_one_address_are_one_peer),
		WITH_PAIR(an_address_of_another_provider_is_refused),
		WITH_PAIR(a_dropped_peer_id_names_nobody),
		WITH_PAIR(messages_of_every_size_arrive_once_and_in_order),
		WITH_PAIR(a_message_that_is_too_long_is_refused),
		WITH_PAIR(a_node_can_send_to_itself),
		WITH_PAIR(both_ends_may_connect_at_once),
		WITH_PAIR(local_messages_are_registered_where_the_provider_asks_for_it),
		WITH_PAIR(an_idle_endpoint_sleeps),
		WITH_PAIR(ticks_come_while_they_are_wanted),
		WITH_PAIR(functions_posted_by_one_thread_run_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
