/* SPDX-License-Identifier: BSD-3-Clause */
/* Files below 64 MiB have one root, which reads them for the whole job. With all of them in its
 * cache, the job could use no more than that node's memory, and would reread evicted chunks.
 * Therefore a full root keeps its contents and requests all other chunks from their homes, nodes
 * selected by hash. The home reads the storage and keeps the chunk; the root and the nodes below
 * have copies. A root with free memory does not lend.
 *
 * Chunks at a home have a separate facet: the home may itself wait for the same chunk from the
 * root, and a request from the root that joined this flight would deadlock. */
#include "tree/fetch/fetch_priv.h"

/* Number of homes to try before the root reads the storage itself. */
#define HOMES 2

/* Sticky: once a chunk is at a home, the root must not reread it when memory is free for a moment.
 * */
static bool may_lend(const struct flight *f)
{
	struct cop_fetch *c = f->fetch;

	if (!c->conf.rpc || c->conf.topo.nodes == 1)
		return false;
	if (cop_cache_is_full(c->conf.cache, f->buf_len))
		atomic_store(&c->has_lent, true);
	return atomic_load(&c->has_lent);
}

void cop_fetch_set_duty(struct flight *f)
{
	enum cop_duty duty = COP_DUTY_COPY;

	if (f->ask.home) {
		atomic_store(&f->fetch->keeps_for_root, true);
		duty = COP_DUTY_HOME;
	} else if (cop_fetch_is_root(f)) {
		f->lent = !f->spread && !f->spilled && may_lend(f);
		duty = f->spread ? COP_DUTY_HOME : f->lent ? COP_DUTY_COPY : COP_DUTY_NONE;
	}
	cop_cache_set_duty(f->fetch->conf.cache, f->obj, duty);
}

uint32_t cop_fetch_home_of(const struct flight *f, unsigned which)
{
	const struct cop_topo *t = &f->fetch->conf.topo;
	uint64_t hash = cop_hash64(f->ask.path, strlen(f->ask.path), 0) +
			f->ask.index / cop_fetch_group_chunks(f->fetch);
	uint32_t others = t->nodes - 1;

	if (which > COP_MIN(HOMES, others))
		return COP_TOPO_NONE;
	return (f->fetch->conf.rank + 1 + (uint32_t)((hash + which - 1) % others)) % t->nodes;
}

struct cop_obj *cop_fetch_kept_for_root(struct cop_fetch *c, const struct cop_ask *ask)
{
	struct cop_ask kept = *ask;

	if (ask->kind != COP_ASK_CHUNK || ask->home ||
		!atomic_load_explicit(&c->keeps_for_root, memory_order_relaxed))
		return NULL;
	kept.home = true;
	return cop_fetch_peek(c, &kept);
}
