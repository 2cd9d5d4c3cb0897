/* SPDX-License-Identifier: BSD-3-Clause */
/* Hedged requests. When an ancestor is silent, rpc calls cop_fetch_late (rpc.h, late), and the
 * flight sends a second request to the next live ancestor. The first answer wins. All of this runs
 * on the progress thread.
 *
 * Each of the two requests for a chunk has its own buffer, because the slower answer may be written
 * at any time. When a flight ends, or continues with the other buffer, the losing request keeps its
 * own buffer until rpc reports its end. At most two requests to a silent ancestor are hedged before
 * the ancestor is abandoned (rpc/lag.c), so at most two chunks' buffers per ancestor are tied up.
 */
#include "tree/fetch/fetch_priv.h"

struct second {
	struct flight *flight; /* NULL: the flight has ended */
	struct cop_fetch *fetch;
	uint32_t rank;
	bool alone; /* the first request has ended without an answer */
	void *buf;  /* destination of a chunk's answer */
	size_t buf_len;
	uint64_t asked_ns;
};

/* The rank to try after `rank`; COP_TOPO_NONE after the root. If a large file's tree has lost its
 * root, only the root's other children can answer. */
static uint32_t next_of(const struct flight *f, uint32_t rank)
{
	const struct cop_fetch *c = f->fetch;
	bool heir = false;
	uint32_t next;

	if (!f->spread)
		return cop_topo_parent(&c->conf.topo, f->tree, rank);
	next = cop_fetch_next_up(c, &f->ask, f->tree, rank, &heir);
	return heir ? COP_TOPO_NONE : next;
}

uint32_t cop_fetch_above(struct flight *f, uint32_t rank)
{
	if (f->heir || cop_fetch_peeks(f))
		return COP_TOPO_NONE;
	do
		rank = next_of(f, rank);
	while (rank != COP_TOPO_NONE && cop_fetch_rests(f->fetch, rank));
	return rank;
}

static void free_second(struct second *s)
{
	cop_cache_release(s->fetch->conf.cache, s->buf, s->buf_len);
	free(s);
}

/* Called when a request ends that its flight no longer needs. */
static void lost_ended(void *arg, const struct cop_rpc_result *r)
{
	(void)r;
	free_second(arg);
}

/* The second request was answered first: the flight takes its buffer, and the first request keeps
 * the flight's old buffer until it ends. */
static void drop_first(struct flight *f, struct second *s)
{
	void *buf = f->buf;
	uint32_t first = f->upstream;

	f->second = NULL;
	f->upstream = s->rank;
	f->asked_ns = s->asked_ns;
	f->buf = s->buf;
	s->buf = buf;
	s->flight = NULL;
	if (s->alone)
		free_second(s);
	else
		cop_rpc_abandon(s->fetch->conf.rpc, first, f, lost_ended, s);
}

static void second_answered(void *arg, const struct cop_rpc_result *r)
{
	struct second *s = arg;
	struct flight *f = s->flight;
	bool is_answer = cop_fetch_is_answer(r);

	if (!is_answer && !s->alone) {
		f->second = NULL;
		free_second(s);
		return;
	}
	if (is_answer)
		cop_stats_add(s->fetch->conf.stats, COP_FABRIC_HEDGES_WON, 1);
	f->by_second = !s->alone;
	drop_first(f, s);
	cop_fetch_take_answer(f, r);
}

bool cop_fetch_waits_for_second(struct flight *f, const struct cop_rpc_result *r)
{
	struct second *s = f->second;

	if (!cop_fetch_is_answer(r)) {
		s->alone = true;
		return true;
	}
	f->second = NULL;
	s->flight = NULL;
	cop_rpc_abandon(s->fetch->conf.rpc, s->rank, s, lost_ended, s);
	return false;
}

/* The next live ancestor; COP_TOPO_NONE: the topmost one is itself silent. */
static uint32_t choose(struct flight *f)
{
	uint32_t rank = f->upstream;

	do
		rank = cop_fetch_above(f, rank);
	while (rank != COP_TOPO_NONE && cop_rpc_lags(f->fetch->conf.rpc, rank));
	return rank;
}

static struct second *new_second(struct flight *f)
{
	struct cop_cache *cache = f->fetch->conf.cache;
	struct second *s;

	if (f->ask.kind == COP_ASK_CHUNK &&
		!cop_cache_reserve_more(cache, f->obj, f->reserved + f->buf_len))
		return NULL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	*s = (struct second){.flight = f, .fetch = f->fetch, .asked_ns = cop_now_ns()};
	if (f->ask.kind != COP_ASK_CHUNK)
		return s;
	s->buf_len = f->buf_len;
	s->buf = cop_cache_alloc(cache, s->buf_len);
	if (s->buf)
		return s;
	free(s);
	return NULL;
}

bool cop_fetch_late(void *flight)
{
	struct flight *f = flight;
	uint8_t payload[COP_FETCH_REQUEST_MAX];
	uint32_t rank = choose(f);
	struct cop_rpc_call call;
	struct second *s;

	if (rank == COP_TOPO_NONE || f->second || atomic_load(&f->fetch->closing))
		return false;
	s = new_second(f);
	if (!s)
		return false;
	s->rank = rank;
	f->second = s;
	call = cop_fetch_call(f, rank, payload);
	call.done = second_answered;
	call.arg = s;
	call.landing = s->buf;
	call.landing_len = s->buf_len;
	cop_rpc_call(f->fetch->conf.rpc, &call);
	return true;
}
