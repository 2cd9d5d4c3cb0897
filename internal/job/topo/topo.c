/* SPDX-License-Identifier: BSD-3-Clause */
#include "job/topo/topo.h"

int cop_topo_check(const struct cop_topo *t, struct cop_err *err)
{
	if (t->nodes < 1 || t->nodes == COP_TOPO_NONE)
		return cop_err_set(
			err, EINVAL, "a tree of %u nodes: at least 1 is needed", t->nodes);
	if (t->fanout < 1 || t->fanout > COP_TOPO_MAX_FANOUT)
		return cop_err_set(err, EINVAL, "fan-out %u is out of range 1..%d", t->fanout,
			COP_TOPO_MAX_FANOUT);
	if (t->trees < 1 || t->trees > t->nodes)
		return cop_err_set(err, EINVAL, "%u trees is out of range 1..%u for %u nodes",
			t->trees, t->nodes, t->nodes);
	return 0;
}

static uint32_t greatest_common_divisor(uint32_t a, uint32_t b)
{
	while (b) {
		uint32_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* Returns the n-th place of a sequence that visits each place once. Multiples of a step near the
 * golden ratio of the number of places are evenly spread for any count (three-distance theorem),
 * and a step coprime to that number reaches every place. */
static uint64_t nth_place(uint64_t places, uint64_t n)
{
	uint64_t step = COP_MAX((uint64_t)((double)places * 0.6180339887), 1u);

	while (greatest_common_divisor((uint32_t)places, (uint32_t)step) != 1)
		step--;
	return n % places * step % places;
}

uint32_t cop_topo_tree_of(const struct cop_topo *t, uint64_t hash, uint64_t n, uint64_t groups)
{
	uint64_t rest = groups % t->trees, place;

	if (n < groups - rest || !rest)
		place = nth_place(t->trees, n);
	else
		place = nth_place(rest, n - (groups - rest)) * t->trees / rest;
	return (uint32_t)((hash % t->trees + place) % t->trees);
}

/* The rank at position 0 of the tree. */
static uint32_t offset_of(const struct cop_topo *t, uint32_t tree)
{
	return tree * (t->nodes / t->trees);
}

static uint32_t position_of(const struct cop_topo *t, uint32_t tree, uint32_t rank)
{
	uint32_t offset = offset_of(t, tree);

	return rank >= offset ? rank - offset : rank + (t->nodes - offset);
}

static uint32_t rank_at(const struct cop_topo *t, uint32_t tree, uint32_t position)
{
	return (uint32_t)(((uint64_t)position + offset_of(t, tree)) % t->nodes);
}

uint32_t cop_topo_root(const struct cop_topo *t, uint32_t tree)
{
	return rank_at(t, tree, 0);
}

uint32_t cop_topo_parent(const struct cop_topo *t, uint32_t tree, uint32_t rank)
{
	uint32_t p = position_of(t, tree, rank);

	return p ? rank_at(t, tree, (p - 1) / t->fanout) : COP_TOPO_NONE;
}

/* The child of the root that is at or above position p. */
static uint32_t top_of(const struct cop_topo *t, uint32_t p)
{
	while (p > t->fanout)
		p = (p - 1) / t->fanout;
	return p;
}

/* The position that p contacts in place of its parent `up`, which is not the root. The first child
 * contacts the parent of `up`; every other child contacts one of the siblings of `up`. All k
 * siblings exist, because `up` has a child, and they come before that child. */
static uint32_t stand_in(const struct cop_topo *t, uint32_t p, uint32_t up)
{
	uint32_t k = t->fanout, above = (up - 1) / k, nth = (p - 1) % k;

	return nth ? above * k + 1 + ((up - 1) % k + nth) % k : above;
}

uint32_t cop_topo_next(
	const struct cop_topo *t, uint32_t tree, uint32_t rank, uint32_t silent, bool *heir)
{
	uint32_t own = position_of(t, tree, rank), p = position_of(t, tree, silent);

	if (!*heir && p)
		return rank_at(t, tree,
			p == (own - 1) / t->fanout ? stand_in(t, own, p) : (p - 1) / t->fanout);
	*heir = true;
	p++;
	return p < top_of(t, own) ? rank_at(t, tree, p) : COP_TOPO_NONE;
}

uint32_t cop_topo_children(
	const struct cop_topo *t, uint32_t tree, uint32_t rank, uint32_t out[COP_TOPO_MAX_FANOUT])
{
	uint64_t first = (uint64_t)position_of(t, tree, rank) * t->fanout + 1;
	uint32_t n = 0;

	while (n < t->fanout && first + n < t->nodes) {
		out[n] = rank_at(t, tree, (uint32_t)(first + n));
		n++;
	}
	return n;
}

/* On each level, the nodes below a position are contiguous. */
uint32_t cop_topo_subtree(const struct cop_topo *t, uint32_t tree, uint32_t rank)
{
	uint64_t first = position_of(t, tree, rank), last = first, n = 0;

	if (t->fanout == 1)
		return (uint32_t)(t->nodes - first);
	while (first < t->nodes) {
		n += COP_MIN(last, (uint64_t)t->nodes - 1) - first + 1;
		first = first * t->fanout + 1;
		last = (last + 1) * t->fanout;
	}
	return (uint32_t)n;
}

bool cop_topo_below(const struct cop_topo *t, uint32_t tree, uint32_t ancestor, uint32_t rank)
{
	uint32_t top = position_of(t, tree, ancestor), p = position_of(t, tree, rank);

	if (t->fanout == 1)
		return p >= top;
	while (p > top)
		p = (p - 1) / t->fanout;
	return p == top;
}
