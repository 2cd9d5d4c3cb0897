/* SPDX-License-Identifier: BSD-3-Clause */
/* Files below 64 MiB have one root, which reads them for the whole job. If it kept all of them, the
 * job could use no more than that node's memory; what it evicts, it would read again. So a root
 * whose memory is full keeps what it has, and asks another node, the home of the chunk by its hash,
 * for everything else. The home reads the storage and keeps the chunk; the root and those below it
 * have copies. As long as the root has room, nothing changes.
 *
 * A home's chunks have a facet of their own: it may be waiting for the same chunk from the root, to
 * whom it must not give that flight to wait for. */
#include "tree/fetch/fetch_priv.h"

/* How many nodes are asked before the root reads the storage itself. */
#define HOMES 2

/* Once a chunk is at a home, its root must not read it again when there is room for a moment. */
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
