/* SPDX-License-Identifier: BSD-3-Clause */
/* Files below 64 MiB have one root, which reads them for the whole job. If that root had to cache
 * them all, the job would be limited to one node's memory and would reread evicted chunks. A full
 * root therefore keeps what it has and lends all further chunks to homes, which are nodes selected
 * by hash. As with large files, each home is the root of its own tree, reads the storage, and keeps
 * the chunk; all other nodes hold copies. A root with free memory does not lend.
 *
 * A flag in the root's answers announces that it lends, and each node passes the flag on in its own
 * answers. Once a node has seen it, it sends its own programs' requests up the homes' trees, so
 * that lent chunks do not pass through the root. Until then, it requests them from its parent, and
 * the root forwards the requests to the home. The home asks the root once whether it already has
 * the chunk, and the root answers immediately. A restarted root is empty and the homes fill in for
 * it, so nothing needs to be announced.
 *
 * Lent chunks have a separate facet. The flight of a lent chunk waits only for nodes further up its
 * home's tree, while a flight up the first tree may wait at the root for the flight of a lent
 * chunk. If a request up a home's tree joined a flight up the first tree, the two could deadlock.
 */
#include "tree/fetch/fetch_priv.h"

#include "base/log/log.h"

static bool is_first_root(const struct cop_fetch *c)
{
	return c->conf.rank == cop_topo_root(&c->conf.topo, 0);
}

static bool lends(const struct cop_fetch *c)
{
	return atomic_load_explicit(&c->lends, memory_order_relaxed);
}

void cop_fetch_hear_of_lending(struct cop_fetch *c)
{
	if (!lends(c))
		atomic_store(&c->lends, true);
}

/* Whether this node is the root of the first tree and its cache has no room for this many bytes. */
static bool is_full_root(const struct cop_fetch *c, uint64_t bytes)
{
	return c->conf.rpc && c->conf.topo.nodes > 1 && is_first_root(c) &&
	       cop_cache_is_full(c->conf.cache, (size_t)bytes);
}

/* Sticky: once chunks are at their homes, the root must not reread them just because memory is
 * briefly free. */
static void lend(struct cop_fetch *c)
{
	if (!atomic_exchange(&c->lends, true) && is_first_root(c))
		cop_log_info("the cache is full: other nodes read and keep the other small files");
}

void cop_fetch_set_duty(struct flight *f)
{
	enum cop_duty duty = COP_DUTY_COPY;

	if (f->ask.home)
		atomic_store(&f->fetch->uses_homes, true);
	if (cop_fetch_is_root(f)) {
		if (!f->spread && !f->spilled && is_full_root(f->fetch, f->buf_len))
			lend(f->fetch);
		duty = f->spread ? COP_DUTY_HOME : COP_DUTY_NONE;
	}
	cop_cache_set_duty(f->fetch->conf.cache, f->obj, duty);
}

uint32_t cop_fetch_home_of(const struct cop_fetch *c, const struct cop_ask *ask)
{
	uint64_t group = ask->index / cop_fetch_group_chunks(c);
	uint64_t hash = cop_hash64(ask->path, strlen(ask->path), group);
	uint32_t nodes = c->conf.topo.nodes;

	return (cop_topo_root(&c->conf.topo, 0) + 1 + (uint32_t)(hash % (nodes - 1))) % nodes;
}

/* Whether this node has the chunk, or a flight for it, under the facet of chunks that are not lent.
 */
static bool has_unlent(struct cop_fetch *c, const struct cop_ask *ask)
{
	struct cop_key key = cop_fetch_key(ask);

	return cop_cache_has(c->conf.cache, &key) || cop_spill_has(c->conf.spill, &key);
}

/* A request from a node below that does not know of the lending yet continues up the first tree, so
 * that each node on the path drops the names before it answers if the storage has another version
 * of the file. The first chunk for which the root has no room is also the first one lent: if the
 * root waited for room and then read the chunk, its home, which reads whatever the root is not
 * reading yet, would read it too. */
void cop_fetch_route(struct cop_fetch *c, struct cop_ask *ask, bool local)
{
	if (ask->kind != COP_ASK_CHUNK || ask->home || ask->peek || !(local || is_first_root(c)) ||
		cop_fetch_is_striped(c, ask->size) ||
		!(lends(c) || is_full_root(c, COP_MIN(ask->size, COP_FETCH_GROUP_BYTES))) ||
		has_unlent(c, ask))
		return;
	lend(c);
	ask->home = true;
}

bool cop_fetch_has_two_facets(
	const struct cop_fetch *c, const struct cop_ask *ask, struct cop_key *key)
{
	struct cop_ask other = *ask;

	if (ask->kind != COP_ASK_CHUNK ||
		!(ask->home || atomic_load_explicit(&c->uses_homes, memory_order_relaxed)))
		return false;
	other.home = !ask->home;
	*key = cop_fetch_key(&other);
	return true;
}

struct cop_obj *cop_fetch_other_copy(struct cop_fetch *c, const struct cop_ask *ask)
{
	struct cop_key key;

	return cop_fetch_has_two_facets(c, ask, &key) ? cop_cache_peek(c->conf.cache, &key) : NULL;
}

/* ---- the trees of the homes ---- */

/* The root of the first tree has sent each of its chunks once, sends them to homes as well, and
 * serves all names. To relieve it, requests up the homes' trees skip it as if it did not answer. */
bool cop_fetch_spares(const struct cop_fetch *c, const struct cop_ask *ask, uint32_t rank)
{
	return ask->home && rank == cop_topo_root(&c->conf.topo, 0);
}

/* The node that stands in for a dead home or for its previous stand-in: the home's children in
 * order, up to but not including this node's own ancestor. Nodes below the root of the first tree
 * have no ancestor among the candidates and may ask all of them, because other nodes never send
 * requests to a node below that root. */
static uint32_t next_heir(
	const struct cop_fetch *c, const struct cop_ask *ask, uint32_t tree, uint32_t silent)
{
	uint32_t child[COP_TOPO_MAX_FANOUT];
	uint32_t n = cop_topo_children(&c->homes, tree, cop_topo_root(&c->homes, tree), child);
	uint32_t i = 0;

	while (i < n && child[i] != silent)
		i++;
	for (i = i < n ? i + 1 : 0; i < n; i++)
		if (!cop_fetch_spares(c, ask, child[i]))
			return cop_topo_below(&c->homes, tree, child[i], c->conf.rank)
				       ? COP_TOPO_NONE
				       : child[i];
	return COP_TOPO_NONE;
}

uint32_t cop_fetch_next_up(const struct cop_fetch *c, const struct cop_ask *ask, uint32_t tree,
	uint32_t silent, bool *heir)
{
	if (!ask->home)
		return cop_topo_next(&c->conf.topo, tree, c->conf.rank, silent, heir);
	while (!*heir && silent != cop_topo_root(&c->homes, tree)) {
		silent = cop_topo_next(&c->homes, tree, c->conf.rank, silent, heir);
		if (!cop_fetch_spares(c, ask, silent))
			return silent;
	}
	*heir = true;
	return next_heir(c, ask, tree, silent);
}

uint32_t cop_fetch_first_up(const struct cop_fetch *c, const struct cop_ask *ask, uint32_t tree)
{
	uint32_t up = cop_topo_parent(cop_fetch_topo(c, ask), tree, c->conf.rank);
	bool heir = false;

	return cop_fetch_spares(c, ask, up) ? cop_fetch_next_up(c, ask, tree, up, &heir) : up;
}

/* ---- what the root has from before ---- */

bool cop_fetch_peeks_first(struct flight *f)
{
	struct cop_fetch *c = f->fetch;
	uint32_t root = cop_topo_root(&c->conf.topo, 0);

	if (f->peeks || !f->ask.home || !c->conf.rpc || is_first_root(c) ||
		cop_fetch_rests(c, root))
		return false;
	f->peeks = true;
	f->upstream = root;
	f->tries = 0;
	return true;
}

bool cop_fetch_can_show(struct cop_fetch *c, const struct cop_ask *peek)
{
	struct cop_key key = cop_fetch_key(peek);

	return cop_cache_has_soon(c->conf.cache, &key) || cop_spill_has(c->conf.spill, &key) ||
	       (cop_fetch_has_two_facets(c, peek, &key) &&
		       cop_cache_look(c->conf.cache, &key, NULL) == COP_HELD_COMPLETE);
}

/* The root keeps the chunk, so a home that is short of room need not. */
void cop_fetch_peeked(struct flight *f)
{
	struct flight *g = f->group, *next;

	struct cop_cache *cache = f->fetch->conf.cache;

	cop_cache_set_duty(
		cache, f->obj, cop_cache_is_full(cache, 0) ? COP_DUTY_COPY : COP_DUTY_HOME);
	f->group = NULL;
	for (; g; g = next) {
		next = g->group_next;
		g->group_next = NULL;
		if (g == f)
			continue;
		cop_fetch_pass(g, FLIGHT_ACTIVE);
		g->reserved = g->buf_len;
		cop_fetch_send(g);
	}
}
