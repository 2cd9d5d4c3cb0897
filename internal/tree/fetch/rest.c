/* SPDX-License-Identifier: BSD-3-Clause */
/* Live ancestors in back-off: a fixed table, indexed by rank. If two ancestors share a slot, only
 * the later one is recorded; trying the other one costs an extra round trip. */
#include "tree/fetch/fetch_priv.h"

bool cop_fetch_is_own(int rc)
{
	return cop_is_shortage(rc) || rc == -ESHUTDOWN || rc == -ECANCELED;
}

void cop_fetch_rest(struct cop_fetch *c, uint32_t rank)
{
	struct resting *r = &c->resting;
	uint64_t now = cop_now_ms(), pause = 0;
	unsigned i = rank % RESTING_SLOTS;

	pthread_mutex_lock(&r->lock);
	if (r->slot[i].pause_ms && r->slot[i].rank == rank)
		pause = r->slot[i].pause_ms;
	/* Concurrent requests fail together and count as one failure. */
	if (!pause || now >= r->slot[i].until_ms) {
		atomic_fetch_add(&r->count, r->slot[i].pause_ms == 0);
		pause = COP_MIN(COP_MAX(2 * pause, r->min_ms), REST_MAX_MS);
		r->slot[i].rank = rank;
		r->slot[i].pause_ms = pause;
		r->slot[i].until_ms = now + pause;
	}
	pthread_mutex_unlock(&r->lock);
}

bool cop_fetch_rests(struct cop_fetch *c, uint32_t rank)
{
	struct resting *r = &c->resting;
	unsigned i = rank % RESTING_SLOTS;
	bool rests;

	if (!atomic_load(&r->count))
		return false;
	pthread_mutex_lock(&r->lock);
	rests = r->slot[i].pause_ms && r->slot[i].rank == rank &&
		cop_now_ms() < r->slot[i].until_ms;
	pthread_mutex_unlock(&r->lock);
	return rests;
}

void cop_fetch_rested(struct cop_fetch *c, uint32_t rank)
{
	struct resting *r = &c->resting;
	unsigned i = rank % RESTING_SLOTS;

	if (!atomic_load(&r->count))
		return;
	pthread_mutex_lock(&r->lock);
	if (r->slot[i].pause_ms && r->slot[i].rank == rank) {
		r->slot[i].pause_ms = 0;
		atomic_fetch_sub(&r->count, 1);
	}
	pthread_mutex_unlock(&r->lock);
}
