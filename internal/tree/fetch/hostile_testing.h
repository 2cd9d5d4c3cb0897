/* SPDX-License-Identifier: BSD-3-Clause */
/* A leaf with the job's secret sends invalid requests in the public protocol, with each field wrong
 * in turn. Its requests must never change the answers to other nodes. Node 0 is the root, node 1
 * its child, node 2 the hostile leaf. */
#ifndef COP_TREE_FETCH_HOSTILE_TESTING_H
#define COP_TREE_FETCH_HOSTILE_TESTING_H

#include "tree/fetch/fetch_testing.h"

#define SIZE (2 * CHUNK + 1808)
#define OTHER "0123456789abcdef0123456789abcdef"

struct hostile {
	struct cop_endpoint_work work;
	struct tree *t;
	struct cop_endpoint *fabric;
	struct cop_wire_secret secret;
	uint8_t hello[COP_HELLO_MAX];
	size_t hello_len;
	struct cop_frame_keys keys;
	uint64_t session, requests;
	bool in;
	unsigned replies;
	uint8_t landing[2 * CHUNK];
	struct cop_endpoint_mr *mr;
	uint64_t addr, key;
	/* Posted work. */
	const void *msg;
	size_t len;
};

/* A request as encoded in its frame. */
struct question {
	uint8_t op;
	uint64_t land_addr, land_key, land_len;
	uint64_t version, size, index;
	uint8_t when;
	const char *path;
	size_t path_len;
};

static inline void received(void *ctx, const void *msg, size_t len)
{
	struct hostile *h = ctx;
	struct cop_frame f;

	assert_int_equal(cop_frame_parse(msg, len, &f), 0);
	if (f.type == COP_FRAME_WELCOME)
		h->in = cop_welcome_read(&h->secret, h->hello, h->hello_len, msg, len, &h->session,
				&h->keys) == 0;
	else if (f.type == COP_FRAME_REPLY)
		h->replies++;
}

static inline void tick(void *ctx, uint64_t now_ms)
{
	(void)ctx, (void)now_ms;
}

static inline void send_posted(struct cop_endpoint_work *w)
{
	struct hostile *h = COP_CONTAINER_OF(w, struct hostile, work);
	cop_endpoint_peer_t peer;

	assert_int_equal(cop_endpoint_peer(h->fabric, "fake://n1", &peer), 0);
	cop_endpoint_send(h->fabric, peer, h->msg, h->len, NULL, NULL);
}

static inline void shoot(struct hostile *h, const void *msg, size_t len)
{
	h->msg = msg;
	h->len = len;
	h->work.run = send_posted;
	assert_int_equal(cop_endpoint_post(h->fabric, &h->work), 0);
	cop_endpoint_fake_run(h->t->net, 100000);
}

static inline void put_question(struct cop_wr *w, const struct question *q)
{
	cop_wr_u8(w, q->op);
	cop_wr_u64(w, q->land_addr);
	cop_wr_u64(w, q->land_key);
	cop_wr_u64(w, q->land_len);
	cop_wr_u64(w, q->version);
	cop_wr_u64(w, q->size);
	cop_wr_u64(w, q->index);
	cop_wr_u8(w, q->when);
	cop_wr_str(w, q->path, q->path_len);
}

/* Every second request is sent in a message with space for several. */
static inline void ask_wrongly(struct hostile *h, const struct question *q)
{
	static uint8_t msg[COP_ENDPOINT_MSG_MAX], one[COP_ENDPOINT_MSG_MAX];
	bool several = ++h->requests % 2;
	struct cop_frame f = {.type = several ? COP_FRAME_REQUESTS : COP_FRAME_REQUEST,
		.session = h->session,
		.request = several ? 0 : h->requests};
	struct cop_wr w = cop_frame_begin(msg, sizeof(msg), &f);
	struct cop_wr member = cop_wr_init(one, sizeof(one));

	put_question(several ? &member : &w, q);
	if (several) {
		cop_wr_u64(&w, h->requests);
		cop_wr_str(&w, (const char *)one, cop_wr_len(&member));
	}
	shoot(h, msg, cop_frame_seal(&h->keys.tx, &w));
}

static inline void join(struct hostile *h, struct tree *t)
{
	struct cop_endpoint_conf conf = {.events = {.ctx = h, .recv = received, .tick = tick}};
	struct cop_hello hello = {
		.from = 2, .to = 1, .session = 7, .address = "fake://n2", .address_len = 9};

	*h = (struct hostile){.t = t};
	assert_int_equal(cop_endpoint_fake_open(t->net, "n2", &conf, &h->fabric), 0);
	assert_int_equal(cop_endpoint_reg(h->fabric, h->landing, sizeof(h->landing), &h->mr,
				 &h->addr, &h->key),
		0);
	h->hello_len = cop_hello_write(&h->secret, &hello, h->hello);
	shoot(h, h->hello, h->hello_len);
	assert_true(h->in);
}

static inline void leave(struct hostile *h)
{
	cop_endpoint_unreg(h->mr);
	cop_endpoint_close(h->fabric);
}

/* Nodes 0 and 1 of three. */
static inline struct tree *open_two(const uint8_t *data)
{
	struct tree *t = calloc(1, sizeof(*t));

	t->net = cop_endpoint_net_new();
	t->count = 3;
	for (uint32_t r = 0; r < 2; r++)
		open_node(t, r, 1, 1, 1 << 20);
	t->count = 2;
	put_file(t, "d/f", data, SIZE);
	put_file(t, "d/other", OTHER, strlen(OTHER));
	return t;
}

/* ---- answers to the others ---- */

struct right {
	const uint8_t *data;
	struct cop_attr file, dir;
};

static inline void check_chunks(struct tree *t, uint32_t rank, const struct right *right)
{
	struct asked a;

	for (uint64_t i = 0; i < 3; i++) {
		size_t len = i < 2 ? CHUNK : SIZE - 2 * CHUNK;

		ask_fetch(t, rank, chunk(&right->file, "d/f", i), &a);
		run_until_idle(t);
		assert_int_equal(a.calls, 1);
		assert_int_equal(a.rc, 0);
		assert_int_equal(a.obj->len, len);
		assert_memory_equal(a.obj->data, right->data + i * CHUNK, len);
		forget(&a);
	}
}

static inline void ask_until_done(struct tree *t, uint32_t rank, enum cop_ask_kind kind,
	const char *path, uint64_t version, struct asked *a)
{
	ask_fetch(t, rank, (struct cop_ask){.kind = kind, .path = path, .version = version}, a);
	run_until_idle(t);
	assert_int_equal(a->calls, 1);
}

/* Both names of "d", divided into this number of pages. */
static inline void check_pages(
	struct tree *t, uint32_t rank, uint64_t pages, const struct right *right)
{
	struct cop_listing_entry e;
	struct asked a;
	uint32_t names = 0;

	for (uint64_t index = 0; index < pages; index++) {
		ask_fetch(t, rank, page(right->dir.version, pages, index), &a);
		run_until_idle(t);
		assert_int_equal(a.calls, 1);
		assert_int_equal(a.rc, 0);
		names += cop_listing_count(a.obj->data);
		if (cop_listing_find(a.obj->data, "f", 1, &e))
			assert_true(e.attr.version == right->file.version);
		forget(&a);
	}
	assert_int_equal(names, 2);
}

static inline void check_metadata(struct tree *t, uint32_t rank, const struct right *right)
{
	static const enum cop_ask_kind lists[] = {COP_ASK_LISTING, COP_ASK_NAMES};
	struct cop_extent whole = {0, SIZE};
	struct asked a;

	for (size_t i = 0; i < COP_ARRAY_SIZE(lists); i++) {
		ask_until_done(t, rank, lists[i], "d", 0, &a);
		assert_int_equal(a.rc, 0);
		assert_int_equal(cop_listing_count(a.obj->data), 2);
		forget(&a);
	}
	assert_true(attr_of(t, rank, "d/f").version == right->file.version);
	ask_until_done(t, rank, COP_ASK_HOLES, "d/f", right->file.version, &a);
	assert_int_equal(a.rc, 0);
	assert_int_equal(a.obj->len, sizeof(whole));
	assert_memory_equal(a.obj->data, &whole, sizeof(whole));
	forget(&a);
	ask_until_done(t, rank, COP_ASK_STATFS, "", 0, &a);
	assert_int_equal(a.rc, 0);
	assert_int_equal(a.obj->len, sizeof(struct cop_statfs));
	forget(&a);
	ask_until_done(t, rank, COP_ASK_CHECK, "d", right->dir.version, &a);
	assert_int_equal(a.rc, 0);
	forget(&a);
	for (uint64_t pages = 1; pages <= 3; pages++)
		check_pages(t, rank, pages, right);
	ask_until_done(t, rank, COP_ASK_MANIFEST, "", 0, &a);
	assert_int_equal(a.rc, -ENODATA);
	forget(&a);
}

/* A key contains exactly what its object depends on. */
static inline void check_key(void *arg, const struct cop_key *k, size_t bytes)
{
	bool whole = k->table == COP_TABLE_DATA, versioned = whole || k->facet == COP_FACET_HOLES;
	bool page = k->table == COP_TABLE_TREE && k->facet == COP_FACET_PAGE;

	(void)arg;
	(void)bytes;
	assert_true(versioned || page || (k->version == 0 && k->index == 0));
	assert_true(!page || (k->version && k->index < k->size && k->size <= COP_PAGES_MAX));
	assert_true(k->facet != COP_FACET_STATFS || k->path_len == 0);
}

static inline void check_all(struct tree *t, const struct right *right)
{
	for (uint32_t r = 0; r < 2; r++) {
		check_chunks(t, r, right);
		check_metadata(t, r, right);
		for (unsigned table = 0; table < COP_TABLES; table++)
			cop_cache_each(t->node[r].cache, (enum cop_table)table, check_key, NULL);
		cop_cache_check(t->node[r].cache);
	}
}

static inline struct right what_is_right(struct tree *t, const uint8_t *data)
{
	struct right right = {.data = data};
	struct asked a;

	/* Read from the storage itself, so no node has anything cached yet. */
	right.file = attr_of(t, 0, "d/f");
	ask_fetch(t, 0, listing("d"), &a);
	run_until_idle(t);
	cop_listing_dir(a.obj->data, &right.dir);
	forget(&a);
	cop_cache_drop_under(t->node[0].cache, "");
	return right;
}

/* ---- the requests ---- */

static inline struct question about_chunk(const struct right *right, uint64_t index)
{
	return (struct question){.op = COP_ASK_CHUNK,
		.version = right->file.version,
		.size = SIZE,
		.index = index,
		.path = "d/f",
		.path_len = 3};
}

typedef void scene(struct hostile *h, const struct right *right);

/* Runs the hostile leaf's part in a new tree, then the requests of the others. */
static inline void play(scene *part)
{
	uint8_t *data = malloc(SIZE);
	struct hostile *h = malloc(sizeof(*h));
	struct right right;
	struct tree *t;

	fill_bytes(data, SIZE);
	t = open_two(data);
	right = what_is_right(t, data);
	join(h, t);
	part(h, &right);
	check_all(t, &right);
	leave(h);
	close_tree(t);
	free(h);
	free(data);
}

#endif
