/* SPDX-License-Identifier: BSD-3-Clause */
/* A flight's room in the byte budget, and its buffers. */
#include "coop/coop_priv.h"

#include <errno.h>
#include <stdlib.h>

static size_t room_for(const struct flight *f)
{
	size_t bytes = 0;

	switch (f->ask.kind) {
	case COP_ASK_CHUNK:
		for (unsigned i = 0; i < f->group_count; i++)
			bytes += f->group[i]->buf_len;
		return f->group_count ? bytes : f->buf_len;
	case COP_ASK_LISTING:
	case COP_ASK_NAMES:
	case COP_ASK_MANIFEST:
		return LISTING_RESERVE;
	default:
		return ENTRY_RESERVE;
	}
}

/* Buffers for the flight and, at a root, the rest of its group, which gets its part of the room. */
static int make_buffers(struct flight *f)
{
	f->buf = cop_cache_alloc(f->coop->conf.cache, f->buf_len);
	if (!f->buf)
		return -ENOMEM;
	for (unsigned i = 0; i < f->group_count; i++) {
		struct flight *g = f->group[i];

		if (g == f)
			continue;
		cop_cache_share_room(f->obj, g->obj, g->buf_len);
		g->buf = cop_cache_alloc(f->coop->conf.cache, g->buf_len);
		if (!g->buf)
			return -ENOMEM;
	}
	return 0;
}

/* The whole group, or the one flight. */
static void fail_all(struct flight *f, int rc)
{
	struct flight **group = f->group;
	unsigned count = f->group_count;

	f->group = NULL;
	for (unsigned i = 0; i < count; i++)
		cop_coop_fail(group[i], rc);
	if (!count)
		cop_coop_fail(f, rc);
	free(group);
}

static void start(void *arg)
{
	struct flight *f = arg;

	if (f->ask.kind == COP_ASK_CHUNK && make_buffers(f)) {
		fail_all(f, -ENOMEM);
		return;
	}
	f->hop = cop_topo_parent(&f->coop->conf.topo, f->stripe, f->coop->conf.rank);
	cop_coop_send(f);
}

void cop_coop_wait_for_room(struct flight *f)
{
	cop_cache_room(f->coop->conf.cache, f->obj, room_for(f), f->local, start, f);
}
