/* SPDX-License-Identifier: BSD-3-Clause */
/* A leaf that knows the job's secret sends wrong requests in the public protocol, with each field
 * wrong in turn. Whatever it asks, and whenever, the others get the same answers as without it.
 * Node 0 is the root, node 1 its child, node 2 the hostile leaf. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "coop/coop_testing.h"

#define SIZE (2 * CHUNK + 1808)
#define OTHER "0123456789abcdef0123456789abcdef"

struct hostile {
	struct tree *t;
	struct cop_fabric *fabric;
	struct cop_wire_secret secret;
	uint8_t hello[COP_HELLO_MAX];
	size_t hello_len;
	struct cop_frame_keys keys;
	uint64_t session, requests;
	bool in;
	unsigned replies;
	uint8_t landing[2 * CHUNK];
	struct cop_fabric_mr *mr;
	uint64_t addr, key;
	/* Posted work. */
	const void *msg;
	size_t len;
};

/* A request as it is encoded in its frame. */
struct question {
	uint8_t op;
	uint64_t land_addr, land_key, land_len;
	uint64_t version, size, index;
	uint8_t when;
	const char *path;
	size_t path_len;
};

static void received(void *ctx, const void *msg, size_t len)
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

static void tick(void *ctx, uint64_t now_ms)
{
	(void)ctx, (void)now_ms;
}

static void send_posted(void *arg)
{
	struct hostile *h = arg;
	cop_fabric_peer_t peer;

	assert_int_equal(cop_fabric_peer(h->fabric, "fake://n1", &peer), 0);
	cop_fabric_send(h->fabric, peer, h->msg, h->len, NULL, NULL);
}

static void shoot(struct hostile *h, const void *msg, size_t len)
{
	h->msg = msg;
	h->len = len;
	assert_int_equal(cop_fabric_post(h->fabric, send_posted, h), 0);
	cop_fabric_fake_run(h->t->net, 100000);
}

static void put_question(struct cop_wr *w, const struct question *q)
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

/* Every second question comes in a message that could hold several. */
static void ask_wrongly(struct hostile *h, const struct question *q)
{
	static uint8_t msg[COP_FABRIC_MSG_MAX], one[COP_FABRIC_MSG_MAX];
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

static void join(struct hostile *h, struct tree *t)
{
	struct cop_fabric_conf conf = {.events = {.ctx = h, .recv = received, .tick = tick}};
	struct cop_hello hello = {
		.from = 2, .to = 1, .session = 7, .address = "fake://n2", .address_len = 9};

	*h = (struct hostile){.t = t};
	assert_int_equal(cop_fabric_fake_open(t->net, "n2", &conf, &h->fabric), 0);
	assert_int_equal(cop_fabric_reg(h->fabric, h->landing, sizeof(h->landing), &h->mr, &h->addr,
				 &h->key),
		0);
	h->hello_len = cop_hello_write(&h->secret, &hello, h->hello);
	shoot(h, h->hello, h->hello_len);
	assert_true(h->in);
}

static void leave(struct hostile *h)
{
	cop_fabric_unreg(h->mr);
	cop_fabric_close(h->fabric);
}

/* Nodes 0 and 1 of three. */
static struct tree *open_two(const uint8_t *data)
{
	struct tree *t = calloc(1, sizeof(*t));

	t->net = cop_fabric_net_new();
	t->count = 3;
	for (uint32_t r = 0; r < 2; r++)
		open_node(t, r, 1, 1, 1 << 20);
	t->count = 2;
	put_file(t, "d/f", data, SIZE);
	put_file(t, "d/other", OTHER, strlen(OTHER));
	return t;
}

/* ---- what the others get ---- */

struct right {
	const uint8_t *data;
	struct cop_attr file, dir;
};

static void check_chunks(struct tree *t, uint32_t rank, const struct right *right)
{
	struct asked a;

	for (uint64_t i = 0; i < 3; i++) {
		size_t len = i < 2 ? CHUNK : SIZE - 2 * CHUNK;

		ask_coop(t, rank, chunk(&right->file, "d/f", i), &a);
		run_until_idle(t);
		assert_int_equal(a.calls, 1);
		assert_int_equal(a.rc, 0);
		assert_int_equal(a.obj->len, len);
		assert_memory_equal(a.obj->data, right->data + i * CHUNK, len);
		forget(&a);
	}
}

static void ask_until_done(struct tree *t, uint32_t rank, enum cop_ask_kind kind, const char *path,
	uint64_t version, struct asked *a)
{
	ask_coop(t, rank, (struct cop_ask){.kind = kind, .path = path, .version = version}, a);
	run_until_idle(t);
	assert_int_equal(a->calls, 1);
}

/* Both names of "d", divided into this many pages. */
static void check_pages(struct tree *t, uint32_t rank, uint64_t pages, const struct right *right)
{
	struct cop_listing_entry e;
	struct asked a;
	uint32_t names = 0;

	for (uint64_t index = 0; index < pages; index++) {
		ask_coop(t, rank, page(right->dir.version, pages, index), &a);
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

static void check_metadata(struct tree *t, uint32_t rank, const struct right *right)
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

/* A key names everything that its object depends on and nothing else. */
static void check_key(void *arg, const struct cop_key *k, size_t bytes)
{
	bool whole = k->table == COP_TABLE_DATA, versioned = whole || k->facet == COP_FACET_HOLES;
	bool page = k->table == COP_TABLE_TREE && k->facet == COP_FACET_PAGE;

	(void)arg;
	(void)bytes;
	assert_true(versioned || page || (k->version == 0 && k->index == 0));
	assert_true(!page || (k->version && k->index < k->size && k->size <= COP_PAGES_MAX));
	assert_true(k->facet != COP_FACET_STATFS || k->path_len == 0);
}

static void check_all(struct tree *t, const struct right *right)
{
	for (uint32_t r = 0; r < 2; r++) {
		check_chunks(t, r, right);
		check_metadata(t, r, right);
		for (unsigned table = 0; table < COP_TABLES; table++)
			cop_cache_each(t->node[r].cache, (enum cop_table)table, check_key, NULL);
		cop_cache_check(t->node[r].cache);
	}
}

static struct right what_is_right(struct tree *t, const uint8_t *data)
{
	struct right right = {.data = data};
	struct asked a;

	/* Read from the storage itself, so that no node has anything cached yet. */
	right.file = attr_of(t, 0, "d/f");
	ask_coop(t, 0, listing("d"), &a);
	run_until_idle(t);
	cop_listing_dir(a.obj->data, &right.dir);
	forget(&a);
	cop_cache_drop_under(t->node[0].cache, "");
	return right;
}

/* ---- the questions ---- */

static const uint64_t wrong_sizes[] = {0, 1, 17, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK,
	2 * CHUNK + 1, SIZE - 1, SIZE + 1, 3 * CHUNK, 3 * CHUNK + 1, 4 * CHUNK, COP_GIB,
	(uint64_t)INT64_MAX, UINT64_MAX - 1, UINT64_MAX};

static struct question about_chunk(const struct right *right, uint64_t index)
{
	return (struct question){.op = COP_ASK_CHUNK,
		.version = right->file.version,
		.size = SIZE,
		.index = index,
		.path = "d/f",
		.path_len = 3};
}

typedef void scene(struct hostile *h, const struct right *right);

/* Runs the hostile leaf's part in a fresh tree, then the requests of the others. */
static void play(scene *part)
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

static void ask_with_wrong_sizes(struct hostile *h, const struct right *right)
{
	for (size_t i = 0; i < COP_ARRAY_SIZE(wrong_sizes); i++)
		for (uint64_t index = 0; index < 4; index++) {
			struct question q = about_chunk(right, index);

			q.size = wrong_sizes[i];
			ask_wrongly(h, &q);
			run_until_idle(h->t);
		}
}

static void a_chunk_of_the_wrong_size_reaches_nobody_else(void **state)
{
	(void)state;
	play(ask_with_wrong_sizes);
}

/* The others ask for the same chunk while the wrong request is on its way. */
static void ask_and_be_joined(struct hostile *h, const struct right *right)
{
	for (size_t i = 0; i < COP_ARRAY_SIZE(wrong_sizes); i++)
		for (uint64_t index = 0; index < 3; index++) {
			struct question q = about_chunk(right, index);
			struct asked a[2];

			for (uint32_t r = 0; r < 2; r++)
				cop_cache_drop_under(h->t->node[r].cache, "");
			q.size = wrong_sizes[i];
			ask_wrongly(h, &q);
			for (uint32_t r = 0; r < 2; r++)
				ask_coop(h->t, r, chunk(&right->file, "d/f", index), &a[r]);
			run_until_idle(h->t);
			for (uint32_t r = 0; r < 2; r++) {
				assert_int_equal(a[r].calls, 1);
				assert_int_equal(a[r].rc, 0);
				assert_int_equal(a[r].obj->len,
					cop_coop_chunk_len(h->t->node[r].coop, SIZE, index));
				assert_memory_equal(
					a[r].obj->data, right->data + index * CHUNK, a[r].obj->len);
				forget(&a[r]);
			}
		}
}

static void a_concurrent_requester_is_not_affected(void **state)
{
	(void)state;
	play(ask_and_be_joined);
}

static const uint64_t odd[] = {0, 1, 2, 3, 255, 4096, (uint64_t)1 << 32, (uint64_t)1 << 52,
	INT64_MAX, UINT64_MAX / CHUNK, UINT64_MAX};

static void ask_with_odd_numbers(struct hostile *h, const struct right *right)
{
	for (uint8_t op = 0; op <= COP_ASK_LAST + 2; op++)
		for (size_t i = 0; i < COP_ARRAY_SIZE(odd); i++)
			for (unsigned field = 0; field < 7; field++) {
				struct question q = about_chunk(right, 1);

				q.op = op;
				q.path = op == COP_ASK_STATFS || op == COP_ASK_MANIFEST ? ""
					 : op == COP_ASK_CHUNK || op == COP_ASK_HOLES   ? "d/f"
											: "d";
				q.path_len = strlen(q.path);
				*(uint64_t *[]){&q.version, &q.size, &q.index, &q.land_addr,
					&q.land_key, &q.land_len, &q.size}[field] = odd[i];
				q.when = field == 6 ? (uint8_t)odd[i] : 0;
				ask_wrongly(h, &q);
				run_until_idle(h->t);
			}
}

static void any_number_in_a_request_is_harmless(void **state)
{
	(void)state;
	play(ask_with_odd_numbers);
}

static void ask_with_bad_paths(struct hostile *h, const struct right *right)
{
	static const char *const bad[] = {"", "/", "/d", "d/", "d//f", "./d/f", "d/./f", "d/../d/f",
		"..", "../../etc/passwd", "d/other", "d/none", "D/F", "d/f/x", "d/f\0x",
		"\xff\xfe"};
	char longest[4097];

	memset(longest, 'n', sizeof(longest));
	for (uint8_t op = 1; op <= COP_ASK_LAST; op++)
		for (size_t i = 0; i <= COP_ARRAY_SIZE(bad); i++) {
			struct question q = about_chunk(right, 0);

			q.op = op;
			q.path = i < COP_ARRAY_SIZE(bad) ? bad[i] : longest;
			q.path_len = i == 14                   ? 5
				     : i < COP_ARRAY_SIZE(bad) ? strlen(q.path)
							       : sizeof(longest);
			ask_wrongly(h, &q);
			q.size = q.index = 0;
			ask_wrongly(h, &q);
			q.version = 0;
			ask_wrongly(h, &q);
			run_until_idle(h->t);
		}
}

static void any_path_in_a_request_is_harmless(void **state)
{
	(void)state;
	play(ask_with_bad_paths);
}

/* A request for a version that never existed makes no node forget what it knows. */
static void ask_for_what_never_was(struct hostile *h, const struct right *right)
{
	struct tree *t = h->t;
	size_t before;

	check_all(t, right);
	before = cop_origin_fake_counts(t->node[0].origin).lists;
	for (uint64_t version = 1; version < 40; version++) {
		struct question q = about_chunk(right, 0);

		q.version = version;
		ask_wrongly(h, &q);
		q.op = COP_ASK_HOLES;
		q.size = 0;
		ask_wrongly(h, &q);
		q.op = COP_ASK_CHECK;
		q.path_len = 1;
		ask_wrongly(h, &q);
		q = about_chunk(right, 0);
		q.size = version;
		ask_wrongly(h, &q);
		run_until_idle(t);
	}
	for (uint32_t r = 0; r < 2; r++) {
		struct cop_obj *obj = cop_coop_peek(
			t->node[r].coop, &(struct cop_ask){.kind = COP_ASK_LISTING, .path = "d"});

		assert_non_null(obj);
		cop_obj_put(t->node[r].cache, obj);
	}
	assert_int_equal(cop_origin_fake_counts(t->node[0].origin).lists, before);
}

static void a_wrong_request_makes_no_node_forget(void **state)
{
	(void)state;
	play(ask_for_what_never_was);
}

/* Pages of a directory as it is, of one as it never was, and of something that is no directory; the
 * others ask for the same pages meanwhile. */
static void ask_for_wrong_pages(struct hostile *h, const struct right *right)
{
	static const char *const paths[] = {"d", "", "d/f", "d/none", "../d"};
	struct asked a;

	for (size_t p = 0; p < COP_ARRAY_SIZE(paths); p++)
		for (size_t i = 0; i < COP_ARRAY_SIZE(odd); i++)
			for (unsigned field = 0; field < 4; field++) {
				struct question q = {.op = COP_ASK_PAGE,
					.version = right->dir.version,
					.size = 3,
					.index = 1,
					.path = paths[p],
					.path_len = strlen(paths[p])};

				*(uint64_t *[]){&q.version, &q.size, &q.index, &q.land_len}[field] =
					odd[i];
				ask_wrongly(h, &q);
				ask_coop(h->t, 1, page(right->dir.version, 3, 1), &a);
				run_until_idle(h->t);
				assert_int_equal(a.calls, 1);
				assert_int_equal(a.rc, 0);
				forget(&a);
				for (uint32_t r = 0; r < 2 && i % 2; r++)
					cop_cache_drop_under(h->t->node[r].cache, "");
			}
}

static void a_wrong_request_for_a_page_reaches_nobody_else(void **state)
{
	(void)state;
	play(ask_for_wrong_pages);
}

/* Requests for an entry with its first bytes, or for such bytes, that nobody would send: with each
 * kind, each urgency and each path, while the others ask for the same. */
static void ask_for_first_bytes(struct hostile *h, const struct right *right)
{
	static const char *const paths[] = {"d/other", "d/f", "d", "", "d/none", "../d/other"};
	struct asked a;

	for (uint8_t op = 1; op <= COP_ASK_LAST; op++)
		for (size_t p = 0; p < COP_ARRAY_SIZE(paths); p++)
			for (uint8_t when = 0; when < 8; when++) {
				struct question q = about_chunk(right, when % 2);

				q.op = op;
				q.when = ASK_FIRST | when;
				q.path = paths[p];
				q.path_len = strlen(paths[p]);
				if (op != COP_ASK_CHUNK)
					q.version = q.size = q.index = 0;
				ask_wrongly(h, &q);
				ask_coop(h->t, 1,
					(struct cop_ask){.kind = COP_ASK_ENTRY, .path = "d/other"},
					&a);
				run_until_idle(h->t);
				assert_int_equal(a.calls, 1);
				assert_int_equal(a.rc, 0);
				forget(&a);
				for (uint32_t r = 0; r < 2 && when % 2; r++)
					cop_cache_drop_under(h->t->node[r].cache, "");
			}
}

static void a_request_for_first_bytes_is_one_for_what_it_names(void **state)
{
	(void)state;
	play(ask_for_first_bytes);
}

/* Only two kinds have them, and a request that raises a priority asks for nothing. */
static void ask_what_has_no_first_bytes(struct hostile *h, const struct right *right)
{
	size_t jobs = origin_jobs(h->t);

	for (uint8_t op = 1; op <= COP_ASK_LAST; op++)
		for (uint8_t when = 0; when < 4; when++) {
			struct question q = about_chunk(right, 0);

			q.op = op;
			q.when = ASK_FIRST | when;
			if (op == COP_ASK_ENTRY ? when <= ASK_BACKGROUND
						: op == COP_ASK_CHUNK && when == ASK_NOW)
				continue;
			if (op != COP_ASK_CHUNK)
				q.version = q.size = q.index = 0;
			ask_wrongly(h, &q);
			run_until_idle(h->t);
		}
	assert_int_equal(origin_jobs(h->t), jobs);
}

static void what_has_no_first_bytes_is_refused(void **state)
{
	(void)state;
	play(ask_what_has_no_first_bytes);
}

/* Landing buffers that do not exist or are too small, and bodies that nobody pulls. */
static void ask_to_land_elsewhere(struct hostile *h, const struct right *right)
{
	for (uint64_t index = 0; index < 3; index++)
		for (unsigned i = 0; i < 6; i++) {
			struct question q = about_chunk(right, index);

			q.land_addr = h->addr + (i == 1          ? sizeof(h->landing) - 1
							: i == 2 ? (uint64_t)-1
								 : 0);
			q.land_key = h->key + (i == 3);
			q.land_len = i == 4 ? 1 : i == 5 ? UINT64_MAX : CHUNK;
			ask_wrongly(h, &q);
			run_until_idle(h->t);
		}
	assert_true(h->replies > 0);
}

static void bad_landing_buffers_and_unpulled_bodies_are_harmless(void **state)
{
	(void)state;
	play(ask_to_land_elsewhere);
}

/* Whatever is in the cache, a reader never reads past its end. */
static void a_reader_never_reads_past_the_end_of_an_object(void **state)
{
	size_t sizes[] = {0, 1, 4095, 4096, 70000};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(sizes); i++)
		for (int packed = 0; packed < 2; packed++) {
			size_t len = sizes[i];
			struct cop_obj obj = {.data = calloc(1, len + 1), .len = len};
			char *out = malloc(100000);
			const void *data;
			void *blob;

			if (packed && cop_pack(obj.data, len, &blob, &obj.len) == 0) {
				free(obj.data);
				obj.data = blob;
				obj.packed = true;
			}
			assert_int_equal(cop_coop_chunk_part(&obj, 0, len, out, &data), 0);
			assert_int_equal(cop_coop_chunk_part(&obj, len, 0, out, &data), 0);
			assert_int_equal(
				cop_coop_chunk_part(&obj, 0, len + 1, out, &data), -EBADMSG);
			assert_int_equal(cop_coop_chunk_part(&obj, len, 1, out, &data), -EBADMSG);
			assert_int_equal(
				cop_coop_chunk_part(&obj, len + 1, 0, out, &data), -EBADMSG);
			assert_int_equal(
				cop_coop_chunk_part(&obj, SIZE_MAX, 2, out, &data), -EBADMSG);
			assert_int_equal(
				cop_coop_chunk_part(&obj, 1, SIZE_MAX, out, &data), -EBADMSG);
			free(obj.data);
			free(out);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_chunk_of_the_wrong_size_reaches_nobody_else),
		cmocka_unit_test(a_concurrent_requester_is_not_affected),
		cmocka_unit_test(any_number_in_a_request_is_harmless),
		cmocka_unit_test(any_path_in_a_request_is_harmless),
		cmocka_unit_test(a_wrong_request_makes_no_node_forget),
		cmocka_unit_test(a_wrong_request_for_a_page_reaches_nobody_else),
		cmocka_unit_test(a_request_for_first_bytes_is_one_for_what_it_names),
		cmocka_unit_test(what_has_no_first_bytes_is_refused),
		cmocka_unit_test(bad_landing_buffers_and_unpulled_bodies_are_harmless),
		cmocka_unit_test(a_reader_never_reads_past_the_end_of_an_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
