/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/endpoint/ofi_testing.h"

#include <rdma/fi_domain.h>

#include "base/base/compat.h"
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

static void write_sizes(struct node *from, struct node *to)
{
	static const size_t sizes[] = {1, 7, 4096, 65537, COP_MIB, COP_MIB + 1, 10 * COP_MIB};
	size_t max = 10 * COP_MIB;
	char *source = malloc(max), *target = malloc(max);
	struct mem_call m = reg_mem(to, target, max);
	cop_endpoint_peer_t peer = peer_of(from, cop_endpoint_address(to->f));

	for (size_t i = 0; i < COP_ARRAY_SIZE(sizes); i++) {
		size_t len = sizes[i], off = max - len;
		struct ends ends = {0};

		fill_pattern(source, len, i);
		memset(target, 0, max);
		assert_int_equal(write_to(from, peer, source, len, &m, off, &ends), 0);
		assert_true(all_good(&ends, 1));
		/* done means that the bytes are there: the test does not wait. */
		assert_true(cop_hash64(target + off, len, 0) == cop_hash64(source, len, 0));
		assert_true(off == 0 || target[off - 1] == 0);
	}
	unreg_mem(to, &m);
	free(source);
	free(target);
}

static void a_write_of_any_size_is_placed_when_done_is_called(void **state)
{
	(void)state;
	write_sizes(&a, &b);
}

struct told {
	const char *target;
	uint64_t hash[64];
};

#define TOLD_LEN (300 * COP_KIB)

static struct told told;

static void check_told(struct node *n, const void *msg, size_t len)
{
	uint32_t i;

	memcpy(&i, msg, sizeof(i));
	if (len != sizeof(i) || cop_hash64(told.target + i * TOLD_LEN, TOLD_LEN, 0) != told.hash[i])
		atomic_fetch_add(&n->bad, 1);
}

struct telling {
	cop_endpoint_peer_t peer;
	uint32_t index;
};

static void tell(void *arg, int rc)
{
	struct telling *t = arg;

	if (rc == 0)
		cop_endpoint_send(a.f, t->peer, &t->index, sizeof(t->index), NULL, NULL);
}

struct told_call {
	struct telling *t;
	const char *source;
	const struct mem_call *m;
};

static void write_and_tell(void *arg)
{
	struct told_call *c = arg;

	for (uint32_t i = 0; i < 64; i++)
		cop_endpoint_write(a.f, c->t[i].peer, c->source + i * TOLD_LEN, TOLD_LEN,
			c->m->addr + i * TOLD_LEN, c->m->key, tell, &c->t[i]);
}

static void a_message_sent_after_a_write_arrives_after_its_bytes(void **state)
{
	char *source = malloc(64 * TOLD_LEN), *target = calloc(64, TOLD_LEN);
	struct mem_call m = reg_mem(&b, target, 64 * TOLD_LEN);
	struct telling t[64];
	struct told_call c = {t, source, &m};
	cop_endpoint_peer_t peer = peer_of(&a, cop_endpoint_address(b.f));

	(void)state;
	told.target = target;
	fill_pattern(source, 64 * TOLD_LEN, 99);
	for (uint32_t i = 0; i < 64; i++) {
		told.hash[i] = cop_hash64(source + i * TOLD_LEN, TOLD_LEN, 0);
		t[i] = (struct telling){peer, i};
	}
	look_with(&b, check_told);
	on_thread(&a, write_and_tell, &c);
	assert_true(reaches(&b.received, 64));
	assert_int_equal(atomic_load(&b.bad), 0);
	unreg_mem(&b, &m);
	free(source);
	free(target);
}

static void an_empty_write_is_done_at_once(void **state)
{
	struct mem_call none = {0};
	struct ends ends = {0};

	(void)state;
	assert_int_equal(
		write_to(&a, peer_of(&a, cop_endpoint_address(b.f)), "", 0, &none, 0, &ends), 0);
	assert_int_equal(atomic_load(&ends.good), 1);
}

static void registered_keys_are_not_guessable_from_one_another(void **state)
{
	char buf[64];
	struct mem_call m[8];

	(void)state;
	for (size_t i = 0; i < 8; i++) {
		m[i] = reg_mem(&a, buf, sizeof(buf));
		for (size_t k = 0; k < i; k++) {
			uint64_t diff = m[i].key ^ m[k].key;

			assert_true(__builtin_popcountll(diff) > 4);
		}
	}
	for (size_t i = 0; i < 8; i++)
		unreg_mem(&a, &m[i]);
}

static void open_with_mr_mode(struct node *n, const char *host, int mr_mode)
{
	struct cop_endpoint_conf conf = {.net_type = "tcp",
		.host = host,
		.tick_ms = 20,
		.events = {.ctx = n, .recv = on_recv, .tick = on_tick}};

	memset(n, 0, sizeof(*n));
	assert_int_equal(cop_endpoint_ofi_open(&conf, mr_mode, &n->f, NULL), 0);
}

/* FI_MR_BASIC makes tcp use virtual addresses and provider keys. */
static void a_provider_with_virtual_addresses_and_its_own_keys_is_honoured(void **state)
{
	struct node x, y;

	(void)state;
	open_with_mr_mode(&x, "127.0.0.13", COP_FI_MR_BASIC);
	open_with_mr_mode(&y, "127.0.0.14", COP_FI_MR_BASIC);
	assert_int_equal(cop_endpoint_ofi_of(y.f)->info->domain_attr->mr_mode, COP_FI_MR_BASIC);
	write_sizes(&x, &y);
	cop_endpoint_close(x.f);
	cop_endpoint_close(y.f);
}

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

static void a_local_source_is_registered_where_the_provider_asks_for_it(void **state)
{
	(void)state;
	on_thread(&a, force_local, &a);
	write_sizes(&a, &b);
	assert_int_equal(live_mrs(&a), 0);
}

static void shared_memory_carries_writes_and_messages_too(void **state)
{
	struct node x = {0}, y;

	(void)state;
	if (try_open(&x, "shm", NULL, NULL, NULL))
		skip();
	open_node(&y, "shm", NULL, NULL);
	assert_memory_equal(cop_endpoint_address(x.f), "ofi+shm://", 10);
	write_sizes(&x, &y);
	talks(&x, &y, 5000);
	cop_endpoint_close(x.f);
	cop_endpoint_close(y.f);
}

int main(void)
{
#define WITH_PAIR(t) cmocka_unit_test_setup_teardown(t, open_pair, close_pair)
	const struct CMUnitTest tests[] = {
		WITH_PAIR(a_write_of_any_size_is_placed_when_done_is_called),
		WITH_PAIR(a_message_sent_after_a_write_arrives_after_its_bytes),
		WITH_PAIR(an_empty_write_is_done_at_once),
		WITH_PAIR(registered_keys_are_not_guessable_from_one_another),
		cmocka_unit_test(a_provider_with_virtual_addresses_and_its_own_keys_is_honoured),
		WITH_PAIR(a_local_source_is_registered_where_the_provider_asks_for_it),
		cmocka_unit_test(shared_memory_carries_writes_and_messages_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
