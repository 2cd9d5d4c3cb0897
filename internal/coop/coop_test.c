/* SPDX-License-Identifier: BSD-3-Clause */
/* Trees of nodes in one process: fake fabric, fake origins, the real rpc, cache and coop. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coop/coop.h"

#define NODES_MAX 16
#define CHUNK 4096u

struct node {
	struct tree *tree;
	uint32_t rank;
	char name[16];
	struct cop_stats stats;
	struct cop_cache *cache;
	struct cop_origin *origin;
	struct cop_rpc *rpc;
	struct cop_coop *coop;
};

struct tree {
	struct cop_fabric_net *net;
	uint32_t count;
	struct node node[NODES_MAX];
};

struct asked {
	struct cop_waiter w;
	struct tree *tree;
	struct node *node;
	int calls, rc;
	struct cop_obj *obj;
};

/* Of the trees opened from now on. */
static bool compress;

static void resolve(void *ctx, uint32_t rank)
{
	struct node *n = ctx;
	char address[32];

	snprintf(address, sizeof(address), "fake://%s", n->tree->node[rank].name);
	cop_rpc_resolved(n->rpc, rank, address);
}

static void serve(void *ctx, struct cop_rpc_req *req)
{
	struct node *n = ctx;

	if (!cop_coop_serve(n->coop, req))
		cop_rpc_reply(req, &(struct cop_rpc_answer){.status = -EOPNOTSUPP});
}

static void open_node(struct tree *t, uint32_t rank, uint32_t fanout, uint32_t stripes, uint64_t budget)
{
	struct node *n = &t->node[rank];
	struct cop_rpc_conf rpc = {.rank = rank, .nodes = t->count, .peer_timeout_ms = 3000, .stats = &n->stats,
		.ctx = n, .resolve = resolve, .serve = serve};
	struct cop_coop_conf conf = {.topo = {t->count, fanout, stripes}, .rank = rank, .chunk_bytes = CHUNK,
		.enoent_ttl_ms = 1, .stats = &n->stats};

	n->tree = t;
	n->rank = rank;
	snprintf(n->name, sizeof(n->name), "n%u", rank);
	n->cache = cop_cache_new(budget, &n->stats);
	n->origin = cop_origin_fake_new();
	assert_int_equal(cop_rpc_open_fake(&rpc, t->net, n->name, &n->rpc), 0);
	conf.cache = n->cache;
	conf.origin = n->origin;
	conf.rpc = n->rpc;
	conf.compress = compress;
	n->coop = cop_coop_new(&conf);
	assert_non_null(n->coop);
}

static struct tree *open_tree(uint32_t count, uint32_t fanout, uint32_t stripes, uint64_t budget)
{
	struct tree *t = calloc(1, sizeof(*t));

	t->net = cop_fabric_net_new();
	t->count = count;
	for (uint32_t r = 0; r < count; r++)
		open_node(t, r, fanout, stripes, budget);
	return t;
}

/* Lets everything happen that can happen without the clock. */
static void settle(struct tree *t)
{
	size_t events;

	do {
		events = cop_fabric_fake_run(t->net, 100000);
		for (uint32_t r = 0; r < t->count; r++)
			events += cop_origin_fake_run(t->node[r].origin, 1000);
	} while (events);
}

/* And with it. */
static void pass_time(struct tree *t, unsigned ms)
{
	for (unsigned at = 0; at < ms; at += 100) {
		cop_fabric_fake_advance(t->net, 100);
		settle(t);
	}
}

static void close_tree(struct tree *t)
{
	settle(t);
	for (uint32_t r = 0; r < t->count; r++) {
		cop_origin_close(t->node[r].origin);
		cop_rpc_close(t->node[r].rpc);
	}
	for (uint32_t r = 0; r < t->count; r++) {
		cop_cache_check(t->node[r].cache);
		cop_coop_free(t->node[r].coop);
		cop_cache_free(t->node[r].cache);
	}
	cop_fabric_net_free(t->net);
	free(t);
}

static void put_file(struct tree *t, const char *path, const void *data, size_t len)
{
	for (uint32_t r = 0; r < t->count; r++)
		cop_origin_fake_put(t->node[r].origin, path, S_IFREG | 0644, data, len);
}

static void landed(struct cop_waiter *w, struct cop_obj *obj, int rc)
{
	struct asked *a = COP_CONTAINER_OF(w, struct asked, w);

	a->calls++;
	a->rc = rc;
	a->obj = cop_obj_get(obj);
}

static void ask(struct tree *t, uint32_t rank, struct cop_ask what, struct asked *a)
{
	int rc;

	*a = (struct asked){.w.landed = landed, .tree = t, .node = &t->node[rank]};
	rc = cop_coop_get(a->node->coop, &what, &a->w, &a->obj);
	if (rc == 0)
		return;
	a->calls = 1;
	a->rc = rc < 0 ? rc : a->obj->error;
}

static void forget(struct asked *a)
{
	if (a->obj)
		cop_obj_put(a->node->cache, a->obj);
	a->obj = NULL;
}

static struct cop_ask listing(const char *path)
{
	return (struct cop_ask){.kind = COP_ASK_LISTING, .path = path};
}

static struct cop_attr attr_of(struct tree *t, uint32_t rank, const char *path)
{
	struct asked a;
	struct cop_attr attr;

	ask(t, rank, (struct cop_ask){.kind = COP_ASK_ENTRY, .path = path}, &a);
	settle(t);
	assert_int_equal(a.calls, 1);
	assert_int_equal(a.rc, 0);
	cop_entry_get(a.obj->data, &attr, NULL, NULL);
	forget(&a);
	return attr;
}

static struct cop_ask chunk(const struct cop_attr *attr, const char *path, uint64_t index)
{
	return (struct cop_ask){.kind = COP_ASK_CHUNK, .path = path, .version = attr->version,
		.size = attr->size, .index = index};
}

static size_t origin_jobs(struct tree *t)
{
	size_t jobs = 0;

	for (uint32_t r = 0; r < t->count; r++) {
		struct cop_origin_fake_counts c = cop_origin_fake_counts(t->node[r].origin);

		jobs += c.lists + c.stats + c.reads;
	}
	return jobs;
}

static void fill(uint8_t *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		data[i] = (uint8_t)(i * 31 + i / 4096);
}

static void seven_nodes_cost_the_origin_one_listing(void **state)
{
	struct tree *t = open_tree(7, 2, 1, 1 << 20);
	struct asked a[7];
	struct cop_listing_entry e;

	(void)state;
	put_file(t, "d/f", "hello", 5);
	for (uint32_t r = 0; r < 7; r++)
		ask(t, r, listing("d"), &a[r]);
	settle(t);
	for (uint32_t r = 0; r < 7; r++) {
		assert_int_equal(a[r].calls, 1);
		assert_int_equal(a[r].rc, 0);
		assert_true(cop_listing_find(a[r].obj->data, "f", 1, &e));
		assert_int_equal(e.attr.size, 5);
		forget(&a[r]);
	}
	assert_int_equal(origin_jobs(t), 1);
	close_tree(t);
}

static void sixty_four_readers_of_a_cold_chunk_are_one_read(void **state)
{
	struct tree *t = open_tree(3, 2, 1, 1 << 20);
	struct cop_attr attr;
	struct asked a[64];

	(void)state;
	put_file(t, "f", "0123456789", 10);
	attr = attr_of(t, 2, "f");
	for (int i = 0; i < 64; i++)
		ask(t, 2, chunk(&attr, "f", 0), &a[i]);
	settle(t);
	for (int i = 0; i < 64; i++) {
		assert_int_equal(a[i].calls, 1);
		assert_memory_equal(a[i].obj->data, "0123456789", 10);
		forget(&a[i]);
	}
	assert_int_equal(cop_origin_fake_counts(t->node[0].origin).reads, 1);
	close_tree(t);
}

static void read_whole(struct tree *t, uint32_t rank, const struct cop_attr *attr, const char *path,
	const uint8_t *data, size_t len)
{
	uint8_t plain[CHUNK];
	struct asked a;

	for (size_t i = 0; i * CHUNK < len; i++) {
		ask(t, rank, chunk(attr, path, i), &a);
		settle(t);
		pass_time(t, a.calls ? 0 : 8000);
		assert_int_equal(a.calls, 1);
		assert_int_equal(a.rc, 0);
		assert_int_equal(a.obj->packed, compress);
		if (compress)
			assert_int_equal(cop_pack_read(a.obj->data, 0, COP_MIN(CHUNK, len - i * CHUNK), plain), 0);
		else
			memcpy(plain, a.obj->data, COP_MIN(CHUNK, len - i * CHUNK));
		assert_memory_equal(plain, data + i * CHUNK, COP_MIN(CHUNK, len - i * CHUNK));
		forget(&a);
	}
}

static void a_file_larger_than_the_budget_is_read_right_by_every_node(void **state)
{
	struct tree *t = open_tree(7, 2, 1, 60000);
	size_t len = 40 * CHUNK + 17;
	uint8_t *data = malloc(len);
	struct cop_attr attr;

	(void)state;
	fill(data, len);
	put_file(t, "big", data, len);
	attr = attr_of(t, 6, "big");
	for (uint32_t r = 0; r < 7; r++) {
		struct cop_cache_usage u;

		read_whole(t, r, &attr, "big", data, len);
		cop_cache_usage(t->node[r].cache, &u);
		assert_true(u.used_bytes <= 60000);
	}
	free(data);
	close_tree(t);
}

static void chunks_travel_and_rest_packed_if_the_root_packs_them(void **state)
{
	size_t len = 5 * CHUNK + 100;
	uint8_t *data = malloc(len);
	struct cop_attr attr;
	struct tree *t;

	(void)state;
	for (size_t i = 0; i < len; i++)
		data[i] = (uint8_t)(i / 64);
	compress = true;
	t = open_tree(3, 1, 1, 1 << 20);
	put_file(t, "text", data, len);
	attr = attr_of(t, 2, "text");
	read_whole(t, 2, &attr, "text", data, len);
	free(data);
	close_tree(t);
	compress = false;
}

static void chunks_of_a_file_go_round_the_stripes(void **state)
{
	struct tree *t = open_tree(9, 3, 3, 1 << 20);
	size_t len = 12 * CHUNK;
	uint8_t *data = malloc(len);
	unsigned roots = 0;
	struct cop_attr attr;

	(void)state;
	fill(data, len);
	put_file(t, "big", data, len);
	attr = attr_of(t, 5, "big");
	read_whole(t, 5, &attr, "big", data, len);
	for (uint32_t r = 0; r < 9; r++)
		roots += cop_origin_fake_counts(t->node[r].origin).reads > 0;
	assert_int_equal(roots, 3);
	free(data);
	close_tree(t);
}

static void children_of_a_dead_parent_get_their_answer_from_its_parent(void **state)
{
	struct tree *t = open_tree(7, 2, 1, 1 << 20);
	struct asked a;

	(void)state;
	put_file(t, "d/f", "hello", 5);
	(void)attr_of(t, 3, "d/f");
	cop_fabric_fake_cut(t->net, "n1", true);
	ask(t, 3, listing("d"), &a);
	settle(t);
	assert_int_equal(a.calls, 0);
	pass_time(t, 8000);
	assert_int_equal(a.calls, 1);
	assert_int_equal(a.rc, 0);
	assert_int_equal(cop_coop_parent(t->node[3].coop, 0), 0);
	assert_int_equal(cop_stats_get(&t->node[3].stats, COP_FABRIC_FAILOVERS), 1);
	/* Only the root asked the origin: once for the entry, once for the listing. */
	assert_int_equal(origin_jobs(t), 2);
	forget(&a);
	close_tree(t);
}

static void with_every_ancestor_dead_a_node_reads_the_origin_itself(void **state)
{
	struct tree *t = open_tree(7, 2, 1, 1 << 20);
	struct asked a;

	(void)state;
	put_file(t, "d/f", "hello", 5);
	cop_fabric_fake_cut(t->net, "n1", true);
	cop_fabric_fake_cut(t->net, "n0", true);
	ask(t, 4, listing("d"), &a);
	pass_time(t, 16000);
	assert_int_equal(a.calls, 1);
	assert_int_equal(a.rc, 0);
	assert_int_equal(cop_origin_fake_counts(t->node[4].origin).lists, 1);
	forget(&a);
	close_tree(t);
}

static void a_parent_that_comes_back_is_used_again(void **state)
{
	struct tree *t = open_tree(3, 1, 1, 1 << 20);
	struct asked a;

	(void)state;
	put_file(t, "d/f", "hello", 5);
	put_file(t, "e/f", "hello", 5);
	cop_fabric_fake_cut(t->net, "n1", true);
	ask(t, 2, listing("d"), &a);
	pass_time(t, 8000);
	assert_int_equal(a.rc, 0);
	forget(&a);
	cop_fabric_fake_cut(t->net, "n1", false);
	pass_time(t, 12000);
	ask(t, 2, listing("e"), &a);
	pass_time(t, 8000);
	assert_int_equal(a.rc, 0);
	assert_int_equal(cop_coop_parent(t->node[2].coop, 0), 1);
	forget(&a);
	close_tree(t);
}

static void an_io_error_reaches_everyone_and_is_asked_again_next_time(void **state)
{
	struct tree *t = open_tree(3, 2, 1, 1 << 20);
	struct asked a;

	(void)state;
	put_file(t, "d/f", "hello", 5);
	cop_origin_fake_fail(t->node[0].origin, "d", EIO);
	ask(t, 2, listing("d"), &a);
	settle(t);
	assert_int_equal(a.rc, -EIO);
	forget(&a);
	cop_origin_fake_fail(t->node[0].origin, "d", 0);
	ask(t, 2, listing("d"), &a);
	settle(t);
	assert_int_equal(a.rc, 0);
	forget(&a);
	close_tree(t);
}

static void a_refusal_is_kept_until_the_ttl_is_over(void **state)
{
	struct tree *t = open_tree(1, 2, 1, 1 << 20);
	struct asked a;

	(void)state;
	put_file(t, "d/f", "hello", 5);
	cop_origin_fake_fail(t->node[0].origin, "d", EACCES);
	ask(t, 0, listing("d"), &a);
	settle(t);
	assert_int_equal(a.rc, -EACCES);
	forget(&a);
	cop_origin_fake_fail(t->node[0].origin, "d", 0);
	usleep(5000);
	ask(t, 0, listing("d"), &a);
	settle(t);
	assert_int_equal(a.rc, 0);
	forget(&a);
	close_tree(t);
}

static void a_file_that_changed_gives_estale_and_its_name_is_asked_again(void **state)
{
	struct tree *t = open_tree(3, 2, 1, 1 << 20);
	struct cop_attr old, new;
	struct asked a;

	(void)state;
	put_file(t, "d/f", "old content", 11);
	old = attr_of(t, 2, "d/f");
	ask(t, 2, listing("d"), &a);
	settle(t);
	forget(&a);
	put_file(t, "d/f", "new and longer content", 22);
	ask(t, 2, chunk(&old, "d/f", 0), &a);
	settle(t);
	assert_int_equal(a.rc, -ESTALE);
	forget(&a);
	new = attr_of(t, 2, "d/f");
	assert_int_equal(new.size, 22);
	assert_true(new.version != old.version);
	ask(t, 2, chunk(&new, "d/f", 0), &a);
	settle(t);
	assert_memory_equal(a.obj->data, "new and longer content", 22);
	forget(&a);
	close_tree(t);
}

static void a_check_tells_whether_a_directory_is_still_the_same(void **state)
{
	struct tree *t = open_tree(3, 1, 1, 1 << 20);
	struct cop_attr dir;
	struct asked a;

	(void)state;
	put_file(t, "d/f", "x", 1);
	ask(t, 2, listing("d"), &a);
	settle(t);
	cop_listing_dir(a.obj->data, &dir);
	forget(&a);
	usleep(5000);
	ask(t, 2, (struct cop_ask){.kind = COP_ASK_CHECK, .path = "d", .version = dir.version}, &a);
	settle(t);
	assert_int_equal(a.rc, 0);
	forget(&a);
	put_file(t, "d/g", "y", 1);
	usleep(5000);
	ask(t, 2, (struct cop_ask){.kind = COP_ASK_CHECK, .path = "d", .version = dir.version}, &a);
	settle(t);
	assert_int_equal(a.rc, -ESTALE);
	forget(&a);
	ask(t, 2, listing("d"), &a);
	settle(t);
	assert_int_equal(cop_listing_count(a.obj->data), 2);
	forget(&a);
	close_tree(t);
}

/* What node 2 prefetches through node 1 is under way at node 0's storage when a program on node 2 asks for it. */
static void who_waits_for_what_was_prefetched_is_heard_at_the_origin(void **state)
{
	struct cop_ask later = {.kind = COP_ASK_ENTRY, .path = "f", .later = true}, now = {.kind = COP_ASK_ENTRY, .path = "f"};
	struct tree *t = open_tree(3, 1, 1, 1 << 20);
	struct asked prefetch, between, program[2];

	(void)state;
	put_file(t, "f", "x", 1);
	ask(t, 2, later, &prefetch);
	cop_fabric_fake_run(t->net, 100000);
	ask(t, 1, later, &between);
	cop_fabric_fake_run(t->net, 100000);
	assert_int_equal(cop_origin_fake_counts(t->node[0].origin).hurries, 0);
	for (int i = 0; i < 2; i++)
		ask(t, 2, now, &program[i]);
	cop_fabric_fake_run(t->net, 100000);
	assert_int_equal(cop_origin_fake_counts(t->node[0].origin).hurries, 1);
	assert_int_equal(cop_origin_fake_counts(t->node[0].origin).stats, 1);
	settle(t);
	assert_int_equal(prefetch.calls + between.calls + program[0].calls + program[1].calls, 4);
	assert_int_equal(program[1].rc, 0);
	forget(&prefetch);
	forget(&between);
	forget(&program[0]);
	forget(&program[1]);
	close_tree(t);
}

static void called(void *arg, const struct cop_rpc_result *r)
{
	*(int *)arg = r->status;
}

static void a_malformed_request_is_refused(void **state)
{
	struct tree *t = open_tree(2, 2, 1, 1 << 20);
	uint8_t payload[200] = {0};
	int status = 1;

	(void)state;
	for (size_t len = 0; len < 40; len++) {
		struct cop_rpc_call call = {.rank = 0, .op = COP_ASK_CHUNK, .payload = payload, .payload_len = len,
			.done = called, .arg = &status};

		status = 1;
		payload[24] = 200; /* a path longer than what follows */
		cop_rpc_call(t->node[1].rpc, &call);
		settle(t);
		assert_int_equal(status, -EINVAL);
	}
	close_tree(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(seven_nodes_cost_the_origin_one_listing),
		cmocka_unit_test(sixty_four_readers_of_a_cold_chunk_are_one_read),
		cmocka_unit_test(a_file_larger_than_the_budget_is_read_right_by_every_node),
		cmocka_unit_test(chunks_travel_and_rest_packed_if_the_root_packs_them),
		cmocka_unit_test(chunks_of_a_file_go_round_the_stripes),
		cmocka_unit_test(children_of_a_dead_parent_get_their_answer_from_its_parent),
		cmocka_unit_test(with_every_ancestor_dead_a_node_reads_the_origin_itself),
		cmocka_unit_test(a_parent_that_comes_back_is_used_again),
		cmocka_unit_test(an_io_error_reaches_everyone_and_is_asked_again_next_time),
		cmocka_unit_test(a_refusal_is_kept_until_the_ttl_is_over),
		cmocka_unit_test(a_file_that_changed_gives_estale_and_its_name_is_asked_again),
		cmocka_unit_test(a_check_tells_whether_a_directory_is_still_the_same),
		cmocka_unit_test(who_waits_for_what_was_prefetched_is_heard_at_the_origin),
		cmocka_unit_test(a_malformed_request_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
