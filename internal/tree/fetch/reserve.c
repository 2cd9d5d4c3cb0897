/* SPDX-License-Identifier: BSD-3-Clause */
/* Reserves bytes of the budget for a flight and allocates its buffers. */
#include "tree/fetch/fetch_priv.h"

#include "base/log/log.h"

static size_t first_reservation(struct flight *f)
{
	switch (f->ask.kind) {
	case COP_ASK_CHUNK:
		return f->buf_len;
	case COP_ASK_LISTING:
	case COP_ASK_NAMES:
	case COP_ASK_NEWER:
	case COP_ASK_MANIFEST:
		return COP_FETCH_LISTING_BYTES;
	case COP_ASK_PAGE:
		return COP_MIN(PAGE_RESERVE, cop_cache_largest(f->fetch->conf.cache));
	case COP_ASK_ENTRY:
		return COP_FETCH_ENTRY_BYTES + cop_fetch_first_reservation(f);
	default:
		return COP_FETCH_ENTRY_BYTES;
	}
}

/* For a single flight or its whole group. */
static size_t bytes_to_reserve(struct flight *f)
{
	size_t bytes = 0;

	if (!f->reserved)
		f->reserved = first_reservation(f);
	for (const struct flight *g = f->group; g; g = g->group_next)
		bytes += g->buf_len;
	return f->group ? bytes : f->reserved;
}

/* Allocates buffers for the flight and, at a root, for the rest of its group, which shares its
 * reservation. */
static int make_buffers(struct flight *f)
{
	struct cop_cache *cache = f->fetch->conf.cache;

	f->buf = cop_cache_alloc(cache, f->buf_len);
	if (!f->buf)
		return -ENOMEM;
	for (struct flight *g = f->group; g; g = g->group_next) {
		if (g == f)
			continue;
		cop_cache_share_reservation(cache, f->obj, g->obj, g->buf_len);
		g->buf = cop_cache_alloc(cache, g->buf_len);
		if (!g->buf)
			return -ENOMEM;
	}
	return 0;
}

/* Fails the whole group, or the single flight. */
static void fail_all(struct flight *f, int rc)
{
	for (struct flight *g = cop_fetch_group(f), *next; g; g = next) {
		next = g->group_next;
		cop_fetch_fail(g, rc);
	}
}

/* Fetches the object from another node or from the storage. */
static void fetch_it(struct flight *f)
{
	if (f->ask.kind == COP_ASK_CHUNK && make_buffers(f)) {
		fail_all(f, -ENOMEM);
		return;
	}
	f->upstream = cop_fetch_first_up(f->fetch, &f->ask, f->tree);
	cop_fetch_send(f);
}

/* spill owns the buffer. */
static void unspilled(void *arg, int rc, const struct cop_spill_part *part)
{
	struct flight *f = arg;

	cop_fetch_pass(f, FLIGHT_ACTIVE);
	cop_fetch_trace_answered(f, rc, rc ? 0 : part->len);
	if (rc) {
		f->spilled = false;
		fetch_it(f);
		return;
	}
	cop_fetch_complete(f, &(struct cop_completion){.data = part->data,
				      .len = part->len,
				      .sum = part->sum,
				      .packed = part->packed,
				      .from = COP_FROM_DISK});
}

static void start(void *arg)
{
	struct flight *f = arg;

	cop_fetch_pass(f, FLIGHT_ACTIVE);
	if (!f->spilled) {
		fetch_it(f);
		return;
	}
	f->upstream = COP_TOPO_NONE;
	cop_fetch_pass(f, FLIGHT_READING);
	cop_fetch_trace_origin(f);
	cop_spill_read(f->fetch->conf.spill, &f->obj->key, unspilled, f);
}

/* A copy for another node must not wait for memory here: if memory is short, that node tries the
 * next ancestor. Returns whether the flight has started or ended. */
static bool started_at_once(struct flight *f, size_t bytes)
{
	struct cop_cache *cache = f->fetch->conf.cache;

	if (cop_cache_try_reserve(cache, f->obj, bytes)) {
		cop_fetch_pass(f, FLIGHT_RESERVE);
		start(f);
		return true;
	}
	if (!cop_cache_withdraw(cache, f->obj))
		return false;
	cop_fetch_fail(f, -EBUSY);
	return true;
}

void cop_fetch_reserve(struct flight *f)
{
	size_t bytes = bytes_to_reserve(f);

	if (f->spread && !f->local && !cop_fetch_is_root(f)) {
		if (started_at_once(f, bytes))
			return;
		f->local = true; /* a local program waits as well */
	}
	cop_fetch_pass(f, FLIGHT_RESERVE);
	cop_cache_reserve(f->fetch->conf.cache, f->obj, bytes, f->local, start, f);
}

/* ---- answers longer than expected: listings of up to 64 MiB, extents ---- */

/* Reserves more than needed, because a directory may grow in the meantime. This limits a flight to
 * about thirty retries. */
static size_t with_margin(size_t len)
{
	return COP_MIN(len + len / 4, COP_MAX(len, (size_t)COP_RPC_BODY_MAX));
}

bool cop_fetch_reserve_up_to(struct flight *f, size_t len)
{
	if (len <= f->reserved)
		return true;
	if (!cop_cache_reserve_more(f->fetch->conf.cache, f->obj, len))
		return false;
	f->reserved = len;
	return true;
}

void cop_fetch_reserve_again(struct flight *f, size_t len)
{
	struct cop_cache *cache = f->fetch->conf.cache;
	size_t largest = cop_cache_largest(cache);

	if (len > largest) {
		cop_log_warn("no room ever kind=%d bytes=%zu path=/%s: give a larger --cache-size",
			f->ask.kind, len, f->ask.path);
		cop_fetch_fail(f, -ENOMEM);
		return;
	}
	/* A waiting flight holds no reservation: two flights that each hold one and wait for more
	 * could deadlock. */
	cop_cache_end_reservation(cache, f->obj);
	f->reserved = COP_MIN(with_margin(len), largest);
	cop_fetch_reserve(f);
}
