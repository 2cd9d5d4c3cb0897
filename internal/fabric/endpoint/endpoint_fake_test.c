/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/endpoint/endpoint_priv.h"

/* What happened, in order, as text. */
static char story[4096];

static void note(const char *fmt, ...) COP_PRINTF(1, 2);

static void note(const char *fmt, ...)
{
	size_t used = strlen(story);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(story + used, sizeof(story) - used, fmt, ap);
	va_end(ap);
}

static void told(const char *want)
{
	assert_string_equal(story, want);
	story[0] = '\0';
}

static void on_recv(void *ctx, const void *msg, size_t len)
{
	note("%s<%.*s ", (const char *)ctx, (int)len, (const char *)msg);
}

static uint64_t tick_start, tick_last;

static void on_tick(void *ctx, uint64_t now_ms)
{
	tick_last = now_ms;
	note("%s@%u ", (const char *)ctx, (unsigned)(now_ms - tick_start));
}

static void on_done(void *arg, int rc)
{
	note("%s=%d ", (const char *)arg, rc);
}

struct posted {
	struct cop_endpoint_work work;
	const char *name;
};

static void on_post(struct cop_endpoint_work *w)
{
	struct posted *p = COP_CONTAINER_OF(w, struct posted, work);

	note("%s! ", p->name);
	free(p);
}

static int post(struct cop_endpoint *f, const char *name)
{
	struct posted *p = calloc(1, sizeof(*p));
	int rc;

	*p = (struct posted){{.run = on_post}, name};
	rc = cop_endpoint_post(f, &p->work);
	if (rc)
		free(p);
	return rc;
}

static struct cop_endpoint_net *net;
static struct cop_endpoint *a, *b;
static struct cop_stats stats_a, stats_b;

static struct cop_endpoint *open_one(const char *name, unsigned tick_ms, struct cop_stats *stats)
{
	struct cop_endpoint_conf conf = {.tick_ms = tick_ms,
		.stats = stats,
		.events = {.ctx = (void *)(uintptr_t)name, .recv = on_recv, .tick = on_tick}};
	struct cop_endpoint *f;

	assert_int_equal(cop_endpoint_fake_open(net, name, &conf, &f), 0);
	return f;
}

static int open_net(void **state)
{
	(void)state;
	story[0] = '\0';
	memset(&stats_a, 0, sizeof(stats_a));
	memset(&stats_b, 0, sizeof(stats_b));
	net = cop_endpoint_net_new();
	if (!net)
		return -1;
	a = open_one("a", 0, &stats_a);
	b = open_one("b", 0, &stats_b);
	return 0;
}

static int close_net(void **state)
{
	(void)state;
	cop_endpoint_close(a);
	cop_endpoint_close(b);
	cop_endpoint_net_free(net);
	return 0;
}

static cop_endpoint_peer_t peer(struct cop_endpoint *f, const char *address)
{
	cop_endpoint_peer_t p;

	assert_int_equal(cop_endpoint_peer(f, address, &p), 0);
	return p;
}

static void say(struct cop_endpoint *f, cop_endpoint_peer_t p, const char *text)
{
	assert_int_equal(
		cop_endpoint_send(f, p, text, strlen(text), on_done, (void *)(uintptr_t)text), 0);
}

static void an_endpoint_is_known_by_its_name(void **state)
{
	struct cop_endpoint_conf conf = {0};
	struct cop_endpoint *f;

	(void)state;
	assert_string_equal(cop_endpoint_address(a), "fake://a");
	assert_string_equal(cop_endpoint_provider(a), "fake");
	assert_int_equal(cop_endpoint_fake_open(net, "a", &conf, &f), -EADDRINUSE);
	assert_int_equal(cop_endpoint_fake_open(net, "", &conf, &f), -EINVAL);
}

static void nothing_moves_before_the_network_runs(void **state)
{
	(void)state;
	say(a, peer(a, "fake://b"), "1");
	assert_int_equal(post(b, "p"), 0);
	told("");
	assert_int_equal(cop_endpoint_fake_run(net, 100), 2);
	told("b<1 1=0 p! ");
	assert_int_equal(cop_endpoint_fake_run(net, 100), 0);
}

static void a_run_ends_after_so_many_events(void **state)
{
	cop_endpoint_peer_t p = peer(a, "fake://b");

	(void)state;
	say(a, p, "1");
	say(a, p, "2");
	say(a, p, "3");
	assert_int_equal(cop_endpoint_fake_run(net, 2), 2);
	told("b<1 1=0 b<2 2=0 ");
	assert_int_equal(cop_endpoint_fake_run(net, 2), 1);
	told("b<3 3=0 ");
}

static void the_same_text_is_the_same_peer_until_it_is_dropped(void **state)
{
	cop_endpoint_peer_t p = peer(a, "fake://b"), q;

	(void)state;
	assert_true(peer(a, "fake://b") == p);
	assert_false(peer(a, "fake://c") == p);
	cop_endpoint_peer_drop(a, p);
	q = peer(a, "fake://b");
	assert_false(q == p);
	assert_int_equal(cop_endpoint_send(a, p, "x", 1, NULL, NULL), -ENOENT);
	cop_endpoint_peer_drop(a, p);
	say(a, q, "1");
	cop_endpoint_fake_run(net, 100);
	told("b<1 1=0 ");
}

static void a_malformed_fake_address_is_refused(void **state)
{
	cop_endpoint_peer_t p;

	(void)state;
	assert_int_equal(cop_endpoint_peer(a, "b", &p), -EINVAL);
	assert_int_equal(cop_endpoint_peer(a, "", &p), -EINVAL);
	assert_int_equal(cop_endpoint_peer(a, "fake://", &p), -EINVAL);
	assert_int_equal(cop_endpoint_peer(a, "ofi+tcp://127.0.0.1:1", &p), -EINVAL);
}

static void a_message_is_copied_and_limited(void **state)
{
	static char longest[COP_ENDPOINT_MSG_MAX + 1];
	cop_endpoint_peer_t p = peer(a, "fake://b");
	char text[] = "before";

	(void)state;
	assert_int_equal(cop_endpoint_send(a, p, text, 6, NULL, NULL), 0);
	memset(text, 'x', 6);
	cop_endpoint_fake_run(net, 100);
	told("b<before ");
	assert_int_equal(cop_endpoint_send(a, p, longest, sizeof(longest), NULL, NULL), -EMSGSIZE);
	assert_int_equal(cop_stats_get(&stats_a, COP_FABRIC_BYTES_OUT), 6);
	assert_int_equal(cop_stats_get(&stats_b, COP_FABRIC_BYTES_IN), 6);
}

static void a_message_to_nobody_is_unreachable(void **state)
{
	(void)state;
	say(a, peer(a, "fake://nobody"), "1");
	cop_endpoint_fake_run(net, 100);
	told("1=-113 ");
}

static void dropping_a_peer_cancels_what_waits_for_it(void **state)
{
	cop_endpoint_peer_t p = peer(a, "fake://b"), self = peer(a, "fake://a");

	(void)state;
	say(a, p, "1");
	say(a, self, "2");
	say(a, p, "3");
	cop_endpoint_peer_drop(a, p);
	told("1=-125 3=-125 ");
	cop_endpoint_fake_run(net, 100);
	told("a<2 2=0 ");
}

static void write_one(const char *data, uint64_t addr, uint64_t key)
{
	assert_int_equal(cop_endpoint_write(a, peer(a, "fake://b"), data, strlen(data), addr, key,
				 on_done, "w"),
		0);
}

static void a_write_lands_where_the_key_opens_memory(void **state)
{
	char target[16] = "................";
	struct cop_endpoint_mr *mr;
	uint64_t addr, key;

	(void)state;
	assert_int_equal(cop_endpoint_reg(b, target, sizeof(target), &mr, &addr, &key), 0);
	assert_true(addr != 0);
	write_one("abc", addr + 13, key);
	assert_memory_equal(target, "................", 16);
	cop_endpoint_fake_run(net, 100);
	told("w=0 ");
	assert_memory_equal(target, ".............abc", 16);
	cop_endpoint_unreg(mr);
}

static void a_write_outside_of_the_open_memory_fails(void **state)
{
	char target[16] = {0}, zero[16] = {0};
	struct cop_endpoint_mr *mr;
	uint64_t addr, key;

	(void)state;
	assert_int_equal(cop_endpoint_reg(b, target, sizeof(target), &mr, &addr, &key), 0);
	write_one("abc", addr + 14, key);
	write_one("abc", addr - 1, key);
	write_one("abc", UINT64_MAX, key);
	write_one("abc", 0, key);
	write_one("abc", addr, key + 1);
	cop_endpoint_fake_run(net, 100);
	told("w=-5 w=-5 w=-5 w=-5 w=-5 ");
	write_one("abc", addr, key);
	cop_endpoint_unreg(mr);
	cop_endpoint_fake_run(net, 100);
	told("w=-5 ");
	assert_memory_equal(target, zero, sizeof(zero));
}

static void an_empty_write_is_done_at_once(void **state)
{
	(void)state;
	write_one("", 0, 0);
	told("w=0 ");
}

static void keys_differ(void **state)
{
	char target[4];
	struct cop_endpoint_mr *m, *n;
	uint64_t addr_m, addr_n, key_m, key_n;

	(void)state;
	assert_int_equal(cop_endpoint_reg(a, target, 4, &m, &addr_m, &key_m), 0);
	assert_int_equal(cop_endpoint_reg(a, target, 4, &n, &addr_n, &key_n), 0);
	assert_false(key_m == key_n || addr_m == addr_n);
	cop_endpoint_unreg(m);
	cop_endpoint_unreg(n);
	cop_endpoint_unreg(NULL);
}

static void a_cut_endpoint_neither_receives_nor_is_received(void **state)
{
	(void)state;
	cop_endpoint_fake_cut(net, "b", true);
	say(a, peer(a, "fake://b"), "1");
	say(b, peer(b, "fake://a"), "2");
	cop_endpoint_fake_run(net, 100);
	told("1=0 2=0 ");
	cop_endpoint_fake_cut(net, "b", false);
	say(a, peer(a, "fake://b"), "3");
	cop_endpoint_fake_run(net, 100);
	told("b<3 3=0 ");
}

static void a_write_to_a_cut_endpoint_ends_when_its_peer_is_dropped(void **state)
{
	char target[4];
	struct cop_endpoint_mr *mr;
	uint64_t addr, key;

	(void)state;
	assert_int_equal(cop_endpoint_reg(b, target, 4, &mr, &addr, &key), 0);
	cop_endpoint_fake_cut(net, "b", true);
	write_one("abc", addr, key);
	cop_endpoint_fake_run(net, 100);
	told("");
	cop_endpoint_peer_drop(a, peer(a, "fake://b"));
	told("w=-125 ");
}

static void ticks_come_in_the_order_of_their_times(void **state)
{
	struct cop_endpoint *c = open_one("c", 70, NULL);

	(void)state;
	cop_endpoint_fake_advance(net, 70);
	tick_start = tick_last - 70;
	story[0] = '\0';
	cop_endpoint_fake_advance(net, 29);
	told("");
	cop_endpoint_fake_advance(net, 1);
	told("a@100 b@100 ");
	cop_endpoint_fake_advance(net, 250);
	told("c@140 a@200 b@200 c@210 c@280 a@300 b@300 c@350 ");
	cop_endpoint_keep_ticking(c, true);
	cop_endpoint_close(c);
	cop_endpoint_fake_advance(net, 50);
	told("a@400 b@400 ");
}

static bool spy(void *arg, const char *from, const char *to, void *msg, size_t len)
{
	char *text = msg;

	assert_ptr_equal(arg, story);
	note("%s>%s ", from, to);
	if (text[0] == 'd')
		return false;
	if (len > 1)
		text[1] = '!';
	return true;
}

static void a_tap_sees_changes_and_drops_messages(void **state)
{
	cop_endpoint_peer_t p = peer(a, "fake://b");

	(void)state;
	cop_endpoint_fake_tap(net, spy, story);
	say(a, p, "ab");
	say(a, p, "drop");
	cop_endpoint_fake_run(net, 100);
	told("a>b b<a! ab=0 a>b drop=0 ");
	cop_endpoint_fake_tap(net, NULL, NULL);
	say(a, p, "ab");
	cop_endpoint_fake_run(net, 100);
	told("b<ab ab=0 ");
}

static void closing_runs_what_was_posted_and_cancels_the_rest(void **state)
{
	cop_endpoint_peer_t p = peer(b, "fake://b");

	(void)state;
	say(a, peer(a, "fake://b"), "1");
	say(a, peer(a, "fake://a"), "2");
	assert_int_equal(post(a, "p"), 0);
	say(b, p, "3");
	cop_endpoint_close(a);
	a = NULL;
	told("1=-125 2=-125 p! ");
	cop_endpoint_fake_run(net, 100);
	told("b<3 3=0 ");
}

struct closer {
	struct cop_endpoint **victim;
	int send, post, rc;
	cop_endpoint_peer_t peer;
};

static void close_victim(void *ctx, const void *msg, size_t len)
{
	struct closer *c = ctx;

	(void)msg;
	(void)len;
	cop_endpoint_close(*c->victim);
	*c->victim = NULL;
}

static void a_sender_may_be_closed_while_its_message_is_delivered(void **state)
{
	struct closer c = {.victim = &a};
	struct cop_endpoint_conf conf = {.events = {.ctx = &c, .recv = close_victim}};
	struct cop_endpoint *f;

	(void)state;
	assert_int_equal(cop_endpoint_fake_open(net, "closer", &conf, &f), 0);
	say(a, peer(a, "fake://closer"), "1");
	say(a, peer(a, "fake://b"), "2");
	cop_endpoint_fake_run(net, 100);
	told("2=-125 1=-125 ");
	cop_endpoint_close(f);
}

static void try_more(void *arg, int rc)
{
	struct closer *c = arg;

	c->rc = rc;
	c->send = cop_endpoint_send(*c->victim, c->peer, "x", 1, NULL, NULL);
	c->post = post(*c->victim, "no");
}

static void nothing_starts_once_an_endpoint_closes(void **state)
{
	struct closer c = {.victim = &a, .peer = peer(a, "fake://b")};

	(void)state;
	assert_int_equal(cop_endpoint_send(a, c.peer, "1", 1, try_more, &c), 0);
	cop_endpoint_close(a);
	a = NULL;
	assert_int_equal(c.rc, -ECANCELED);
	assert_int_equal(c.send, -ESHUTDOWN);
	assert_int_equal(c.post, -ESHUTDOWN);
	told("");
}

static void *post_thousand(void *arg)
{
	for (int i = 0; i < 1000; i++) {
		if (post(arg, ""))
			return arg;
	}
	return NULL;
}

static void functions_may_be_posted_by_other_threads(void **state)
{
	pthread_t threads[4];
	size_t ran = 0;

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(cop_thread_start(&threads[i], "poster", post_thousand, a), 0);
	for (int i = 0; i < 100; i++)
		ran += cop_endpoint_fake_run(net, 10);
	for (int i = 0; i < 4; i++) {
		void *failed;

		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
	ran += cop_endpoint_fake_run(net, 10000);
	assert_int_equal(ran, 4000);
}

static void a_network_closes_the_endpoints_it_still_has(void **state)
{
	struct cop_endpoint_net *saved = net;
	struct cop_endpoint *left;

	(void)state;
	net = cop_endpoint_net_new();
	left = open_one("left", 0, NULL);
	say(left, peer(left, "fake://left"), "1");
	cop_endpoint_net_free(net);
	net = saved;
	told("1=-125 ");
}

int main(void)
{
#define WITH_NET(t) cmocka_unit_test_setup_teardown(t, open_net, close_net)
	const struct CMUnitTest tests[] = {
		WITH_NET(an_endpoint_is_known_by_its_name),
		WITH_NET(nothing_moves_before_the_network_runs),
		WITH_NET(a_run_ends_after_so_many_events),
		WITH_NET(the_same_text_is_the_same_peer_until_it_is_dropped),
		WITH_NET(a_malformed_fake_address_is_refused),
		WITH_NET(a_message_is_copied_and_limited),
		WITH_NET(a_message_to_nobody_is_unreachable),
		WITH_NET(dropping_a_peer_cancels_what_waits_for_it),
		WITH_NET(a_write_lands_where_the_key_opens_memory),
		WITH_NET(a_write_outside_of_the_open_memory_fails),
		WITH_NET(an_empty_write_is_done_at_once),
		WITH_NET(keys_differ),
		WITH_NET(a_cut_endpoint_neither_receives_nor_is_received),
		WITH_NET(a_write_to_a_cut_endpoint_ends_when_its_peer_is_dropped),
		WITH_NET(ticks_come_in_the_order_of_their_times),
		WITH_NET(a_tap_sees_changes_and_drops_messages),
		WITH_NET(closing_runs_what_was_posted_and_cancels_the_rest),
		WITH_NET(a_sender_may_be_closed_while_its_message_is_delivered),
		WITH_NET(nothing_starts_once_an_endpoint_closes),
		WITH_NET(functions_may_be_posted_by_other_threads),
		WITH_NET(a_network_closes_the_endpoints_it_still_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
