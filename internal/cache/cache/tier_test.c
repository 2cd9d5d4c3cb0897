/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "cache/cache/cache_priv.h"

#define PARTS 40u
#define PART_BYTES ((size_t)64 << 10)

static struct cop_stats stats;

struct tier {
	struct cop_cache *cache;
	unsigned offered, locked;
};

/* Like a thread that drops the objects of all shards meanwhile. */
static bool would_wait(struct cop_cache *c)
{
	unsigned held = 0;

	for (unsigned i = 0; i < SHARDS; i++) {
		if (pthread_mutex_trylock(&c->shard[i].lock))
			held++;
		else
			pthread_mutex_unlock(&c->shard[i].lock);
	}
	return held == 1;
}

static enum cop_cache_left leaves(void *ctx, struct cop_obj *obj)
{
	struct tier *t = ctx;

	(void)obj;
	t->offered++;
	t->locked += would_wait(t->cache);
	return COP_CACHE_LEFT_DROPPED;
}

static void usage(void *ctx, uint64_t *used, uint64_t *limit)
{
	(void)ctx;
	*used = 0;
	*limit = COP_MIB;
}

/* Otherwise an invalidation, which drops what the shards have and then what the second tier has,
 * could miss what is on its way from one to the other. */
static void a_shard_is_locked_until_the_second_tier_has_what_leaves(void **state)
{
	struct cop_cache *c = cop_cache_new(COP_MIB, &stats);
	struct tier t = {.cache = c};
	struct cop_key key = {.table = COP_TABLE_DATA, .path = "file", .path_len = 4, .version = 1};

	(void)state;
	cop_cache_spill(c, &(struct cop_cache_spill){leaves, usage, &t});
	for (key.index = 0; key.index < PARTS; key.index++) {
		struct cop_obj *obj;

		assert_int_equal(cop_cache_find(c, &key, NULL, &obj), COP_FOUND_LEAD);
		cop_cache_complete(c, obj,
			&(struct cop_completion){.data = cop_cache_alloc(c, PART_BYTES),
				.len = PART_BYTES,
				.keep = true});
	}
	assert_true(t.offered >= PARTS - COP_MIB / PART_BYTES);
	assert_int_equal(t.locked, t.offered);
	cop_cache_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_shard_is_locked_until_the_second_tier_has_what_leaves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
