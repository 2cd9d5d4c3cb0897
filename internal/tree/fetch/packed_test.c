/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>

#include "tree/fetch/fetch_testing.h"

#define SIZE (3 * CHUNK + 100)

/* What the storage has, and what the packs of these tests have in its place, so that the two can be
 * told apart. */
static uint8_t stored[SIZE], kept[SIZE];
static char path[64];

static int set_up(void **state)
{
	int fd;

	(void)state;
	fill_bytes(stored, SIZE);
	for (size_t i = 0; i < SIZE; i++)
		kept[i] = (uint8_t)(i / 300);
	strcpy(path, "/tmp/copper-packed.XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	cop_packfile_free(pack);
	pack = NULL;
	packs = false;
	return unlink(path);
}

/* Every tree has the same files in the same versions. */
static struct tree *open_with_file(uint32_t nodes)
{
	struct tree *t = open_tree(nodes, 4, 1, 64 << 20);

	put_file(t, "d/f", stored, SIZE);
	return t;
}

static struct cop_attr current_attr(void)
{
	struct tree *t = open_with_file(1);
	struct cop_attr attr = attr_of(t, 0, "d/f");

	close_tree(t);
	return attr;
}

static size_t len_of(uint64_t index)
{
	return index == 3 ? 100 : CHUNK;
}

static void add(struct cop_packfile_writer *w, uint64_t index, bool lz4)
{
	struct cop_attr attr = current_attr();
	struct cop_packfile_record r = {.path = "d/f",
		.version = attr.version,
		.size = attr.size,
		.index = index,
		.kind = COP_PACKFILE_CHUNK,
		.packed = lz4};
	const void *body = kept + index * CHUNK;
	size_t len = len_of(index);
	void *blob = NULL;

	if (lz4) {
		assert_int_equal(cop_pack(body, len, &blob, &len), 0);
		body = blob;
	}
	assert_int_equal(cop_packfile_add(w, &r, body, len), 0);
	free(blob);
}

/* A pack with these chunks, a bit for each. */
static void make_pack(unsigned chunks, bool lz4)
{
	struct cop_packfile_writer *w;
	uint64_t bytes;

	assert_int_equal(cop_packfile_create(path, "/s", CHUNK, COP_GIB, &w), 0);
	for (unsigned i = 0; i < 4; i++)
		if (chunks >> i & 1)
			add(w, i, lz4);
	assert_int_equal(cop_packfile_commit(w, &bytes), 0);
	assert_int_equal(cop_packfile_open(path, "/s", CHUNK, geteuid(), &pack), 0);
}

static void damage(off_t at)
{
	int fd = open(path, O_WRONLY);

	assert_int_equal(pwrite(fd, "damage", 6, at), 6);
	close(fd);
}

/* Reads all chunks on a node; returns those that are the pack's, a bit for each. */
static unsigned read_file(struct tree *t, uint32_t rank)
{
	struct cop_attr attr = attr_of(t, rank, "d/f");
	uint8_t out[CHUNK];
	unsigned from_pack = 0;
	struct asked a;

	for (uint64_t i = 0; i < 4; i++) {
		const void *data;
		size_t len = cop_fetch_chunk_len(t->node[0].fetch, attr.size, i);

		ask_fetch(t, rank, chunk(&attr, "d/f", i), &a);
		run_until_idle(t);
		assert_int_equal(a.calls, 1);
		assert_int_equal(a.rc, 0);
		assert_int_equal(cop_fetch_chunk_part(a.obj, 0, len, out, &data), 0);
		if (memcmp(data, stored + i * CHUNK, len))
			from_pack |= 1u << i;
		assert_memory_equal(data, (from_pack >> i & 1 ? kept : stored) + i * CHUNK, len);
		forget(&a);
	}
	return from_pack;
}

static size_t reads(struct tree *t)
{
	return cop_origin_fake_counts(t->node[0].origin).reads;
}

static void chunks_of_the_same_version_come_from_the_pack(void **state)
{
	struct tree *t;

	(void)state;
	make_pack(0xf, false);
	t = open_with_file(3);
	assert_int_equal(read_file(t, 2), 0xf);
	assert_int_equal(read_file(t, 0), 0xf);
	assert_int_equal(reads(t), 0);
	assert_int_equal(cop_stats_get(&t->node[0].stats, COP_PREFETCH_PACKED), 4);
	assert_int_equal(cop_stats_get(&t->node[0].stats, COP_PREFETCH_PACKED_BYTES), SIZE);
	close_tree(t);
}

static void packed_bodies_rest_packed_or_are_unpacked(void **state)
{
	struct tree *t;

	(void)state;
	make_pack(0x7, true);
	t = open_with_file(2);
	assert_int_equal(read_file(t, 1), 0x7);
	close_tree(t);
	packs = true;
	t = open_with_file(2);
	assert_int_equal(read_file(t, 1), 0x7);
	close_tree(t);
}

static void what_the_pack_lacks_is_read_from_the_storage(void **state)
{
	struct tree *t;

	(void)state;
	make_pack(0x5, false);
	t = open_with_file(1);
	assert_int_equal(read_file(t, 0), 0x5);
	assert_int_equal(reads(t), 2);
	close_tree(t);
}

static void a_file_that_changed_is_read_from_the_storage(void **state)
{
	struct tree *t;

	(void)state;
	make_pack(0xf, false);
	t = open_with_file(1);
	put_file(t, "d/f", stored, SIZE);
	assert_int_equal(read_file(t, 0), 0);
	assert_int_equal(cop_stats_get(&t->node[0].stats, COP_PREFETCH_PACKED), 0);
	close_tree(t);
}

static void a_young_version_is_read_from_the_storage(void **state)
{
	struct tree *t;

	(void)state;
	make_pack(0xf, false);
	t = open_with_file(1);
	cop_origin_fake_young(t->node[0].origin, true);
	assert_int_equal(read_file(t, 0), 0);
	close_tree(t);
}

static void a_pack_that_is_no_longer_used_is_left_alone(void **state)
{
	struct tree *t;

	(void)state;
	make_pack(0xf, false);
	t = open_with_file(1);
	cop_fetch_use_pack(t->node[0].fetch, false);
	assert_int_equal(read_file(t, 0), 0);
	close_tree(t);
}

/* The group of the damaged chunk, and all others from then on. */
static void a_damaged_pack_is_read_from_the_storage(void **state)
{
	struct tree *t;

	(void)state;
	make_pack(0xf, false);
	damage(64 + 2 * CHUNK);
	t = open_with_file(2);
	assert_int_equal(read_file(t, 1), 0);
	assert_int_equal(reads(t), 1);
	close_tree(t);
}

/* Right by its checksum, and yet no such chunk. */
static void a_body_of_another_length_is_read_from_the_storage(void **state)
{
	struct cop_attr attr = current_attr();
	struct cop_packfile_record r = {.path = "d/f",
		.version = attr.version,
		.size = attr.size,
		.index = 0,
		.kind = COP_PACKFILE_CHUNK};
	struct cop_packfile_writer *w;
	uint64_t bytes;
	struct tree *t;

	(void)state;
	for (unsigned lz4 = 0; lz4 < 2; lz4++) {
		assert_int_equal(cop_packfile_create(path, "/s", CHUNK, COP_GIB, &w), 0);
		r.packed = lz4;
		assert_int_equal(cop_packfile_add(w, &r, kept, 1000), 0);
		assert_int_equal(cop_packfile_commit(w, &bytes), 0);
		cop_packfile_free(pack);
		assert_int_equal(cop_packfile_open(path, "/s", CHUNK, geteuid(), &pack), 0);
		t = open_with_file(1);
		assert_int_equal(read_file(t, 0), 0);
		close_tree(t);
	}
}

static void names_of_the_pack_are_given_to_the_origin(void **state)
{
	struct cop_packfile_record r = {.path = "d", .kind = COP_PACKFILE_LISTING};
	struct tree *t = open_with_file(1);
	struct cop_packfile_writer *w;
	struct cop_attr dir;
	struct asked a;
	uint64_t bytes;

	(void)state;
	ask_fetch(t, 0, listing("d"), &a);
	run_until_idle(t);
	cop_listing_dir(a.obj->data, &dir);
	r.version = dir.version;
	assert_int_equal(cop_packfile_create(path, "/s", CHUNK, COP_GIB, &w), 0);
	assert_int_equal(cop_packfile_add(w, &r, a.obj->data, a.obj->len), 0);
	assert_int_equal(cop_packfile_commit(w, &bytes), 0);
	forget(&a);
	close_tree(t);
	assert_int_equal(cop_packfile_open(path, "/s", CHUNK, geteuid(), &pack), 0);
	t = open_with_file(2);
	assert_int_equal(ask_and_forget(t, 1, listing("d")), 0);
	assert_int_equal(ask_and_forget(t, 1, listing("")), 0);
	assert_int_equal(cop_origin_fake_counts(t->node[0].origin).known, 1);
	assert_int_equal(cop_origin_fake_counts(t->node[0].origin).lists, 1);
	close_tree(t);
}

#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(chunks_of_the_same_version_come_from_the_pack),
		T(packed_bodies_rest_packed_or_are_unpacked),
		T(what_the_pack_lacks_is_read_from_the_storage),
		T(a_file_that_changed_is_read_from_the_storage),
		T(a_young_version_is_read_from_the_storage),
		T(a_pack_that_is_no_longer_used_is_left_alone),
		T(a_damaged_pack_is_read_from_the_storage),
		T(a_body_of_another_length_is_read_from_the_storage),
		T(names_of_the_pack_are_given_to_the_origin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
