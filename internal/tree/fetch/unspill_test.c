/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that leave the memory of nodes that have a disk. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "storage/spill/spill_testing.h"
#include "tree/fetch/fetch_testing.h"

#define FILES 200
#define ROOM (32 * CHUNK)

static char path[FILES][8];
static struct cop_attr attr[FILES];
static struct cop_spill *spill[NODES_MAX];
static int disk[NODES_MAX];

static struct tree *open_with_disks(uint32_t nodes)
{
	struct tree *t = open_tree(nodes, 2, 1, ROOM);
	uint8_t data[CHUNK] = {0};

	for (uint32_t r = 0; r < nodes; r++) {
		struct node *n = &t->node[r];
		struct cop_spill_conf conf = {.dir = "here",
			.size = COP_GIB,
			.memory = COP_MIB,
			.cache = n->cache,
			.stats = &n->stats};
		int fd = memfd_create("disk", MFD_CLOEXEC);

		disk[r] = dup(fd);
		assert_int_equal(cop_spill_start(&conf, fd, &spill[r]), 0);
		n->fetch->conf.spill = spill[r];
	}
	for (unsigned i = 0; i < FILES; i++) {
		snprintf(path[i], sizeof(path[i]), "f%u", i);
		data[0] = (uint8_t)i;
		put_file(t, path[i], data, CHUNK);
		attr[i] = attr_of(t, 0, path[i]);
	}
	return t;
}

static void close_with_disks(struct tree *t)
{
	uint32_t nodes = t->count;

	run_until_idle(t);
	for (uint32_t r = 0; r < nodes; r++)
		assert_true(cop_spill_close(spill[r]));
	close_tree(t);
	for (uint32_t r = 0; r < nodes; r++) {
		cop_spill_free(spill[r]);
		close(disk[r]);
	}
}

/* The threads of the spills run by the wall clock. */
static void await(struct tree *t, const int *calls)
{
	while (!__atomic_load_n(calls, __ATOMIC_ACQUIRE)) {
		run_until_idle(t);
		usleep(100);
	}
}

static void done_elsewhere(struct cop_waiter *w, struct cop_obj *obj, int rc)
{
	struct asked *a = COP_CONTAINER_OF(w, struct asked, w);

	a->rc = rc;
	a->obj = cop_obj_get(obj);
	__atomic_add_fetch(&a->calls, 1, __ATOMIC_RELEASE);
}

static void ask_file(struct tree *t, uint32_t rank, unsigned i, struct asked *a)
{
	struct cop_ask what = chunk(&attr[i], path[i], 0);
	struct cop_obj *obj;
	int rc;

	*a = (struct asked){.w.completed = done_elsewhere, .node = &t->node[rank]};
	/* The waiter may be called, and write its object, before this returns. */
	rc = cop_fetch_get(a->node->fetch, &what, &a->w, &obj);
	if (rc == 1)
		a->obj = obj;
	if (rc)
		a->calls = rc;
}

static void read_set(struct tree *t, uint32_t rank)
{
	for (unsigned n = 0; n < FILES; n++) {
		unsigned i = (n + 17 * rank) % FILES;
		struct asked a;

		ask_file(t, rank, i, &a);
		await(t, &a.calls);
		assert_int_equal(a.calls, 1);
		assert_int_equal(a.rc, 0);
		assert_int_equal(((const uint8_t *)a.obj->data)[0], (uint8_t)i);
		cop_fetch_given(a.node->fetch, a.obj, CHUNK);
		forget(&a);
	}
}

static void a_node_reads_once_what_its_memory_and_disk_can_hold(void **state)
{
	struct tree *t = open_with_disks(1);

	(void)state;
	for (unsigned round = 0; round < 3; round++)
		read_set(t, 0);
	assert_int_equal(origin_reads(t), FILES);
	assert_true(cop_stats_get(&t->node[0].stats, COP_SPILL_READS) >= FILES);
	assert_int_equal(cop_stats_get(&t->node[0].stats, COP_FROM_STORAGE_BYTES), FILES * CHUNK);
	assert_int_equal(cop_stats_get(&t->node[0].stats, COP_FROM_DISK_BYTES),
		cop_stats_get(&t->node[0].stats, COP_SPILL_READS) * CHUNK);
	assert_int_equal(cop_stats_get(&t->node[0].stats, COP_CACHE_REFETCHES), 0);
	close_with_disks(t);
}

static void nodes_together_read_once_what_their_memory_and_disks_can_hold(void **state)
{
	struct tree *t = open_with_disks(4);
	uint64_t with = 0;

	(void)state;
	for (unsigned round = 0; round < 2; round++)
		for (uint32_t r = 0; r < 4; r++)
			read_set(t, r);
	assert_int_equal(origin_reads(t), FILES);
	for (uint32_t r = 0; r < 4; r++)
		with += cop_stats_get(&t->node[r].stats, COP_SPILL_READS) > 0;
	assert_true(with >= 2);
	close_with_disks(t);
}

static void all_who_ask_at_once_share_one_read_of_the_disk(void **state)
{
	struct tree *t = open_with_disks(1);
	struct asked a[8];
	uint64_t before;

	(void)state;
	read_set(t, 0);
	for (unsigned i = 0; i < FILES; i++) {
		struct cop_ask what = chunk(&attr[i], path[i], 0);
		struct cop_key key = cop_fetch_key(&what);

		if (cop_cache_has(t->node[0].cache, &key))
			continue;
		before = cop_stats_get(&t->node[0].stats, COP_SPILL_READS);
		for (unsigned k = 0; k < 8; k++)
			ask_file(t, 0, i, &a[k]);
		for (unsigned k = 0; k < 8; k++) {
			await(t, &a[k].calls);
			assert_int_equal(a[k].rc, 0);
			forget(&a[k]);
		}
		assert_int_equal(cop_stats_get(&t->node[0].stats, COP_SPILL_READS), before + 1);
	}
	assert_int_equal(origin_reads(t), FILES);
	close_with_disks(t);
}

static void a_disk_that_gives_other_bytes_costs_one_more_read_and_no_error(void **state)
{
	struct tree *t = open_with_disks(1);
	char *garbage = malloc(FILES * CHUNK);

	(void)state;
	read_set(t, 0);
	while (cop_stats_get(&t->node[0].stats, COP_SPILL_WRITTEN_BYTES) < (FILES - 32) * CHUNK)
		usleep(1000);
	memset(garbage, 7, FILES * CHUNK);
	assert_int_equal(pwrite(disk[0], garbage, FILES * CHUNK, 0), FILES * CHUNK);
	free(garbage);
	read_set(t, 0);
	read_set(t, 0);
	assert_int_equal(cop_stats_get(&t->node[0].stats, COP_SPILL_FAILED), 1);
	assert_in_range(origin_reads(t), 2 * FILES - 32, 3 * FILES);
	close_with_disks(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_node_reads_once_what_its_memory_and_disk_can_hold),
		cmocka_unit_test(nodes_together_read_once_what_their_memory_and_disks_can_hold),
		cmocka_unit_test(all_who_ask_at_once_share_one_read_of_the_disk),
		cmocka_unit_test(a_disk_that_gives_other_bytes_costs_one_more_read_and_no_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
