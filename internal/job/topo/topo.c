/* SPDX-License-Identifier: BSD-3-Clause */
#include "job/topo/topo.h"

#include <errno.h>

int cop_topo_check(const struct cop_topo *t, struct cop_err *err)
{
	uint32_t most = COP_MIN(t->nodes, 64u);

	if (t->nodes < 1 || t->nodes == COP_TOPO_NONE)
		return cop_err_set(
			err, EINVAL, "a tree of %u nodes: at least 1 is needed", t->nodes);
	if (t->fanout < 1 || t->fanout > COP_TOPO_MAX_FANOUT)
		return cop_err_set(err, EINVAL, "fan-out %u is out of range 1..%d", t->fanout,
			COP_TOPO_MAX_FANOUT);
	if (t->trees < 1 || t->trees > most)
		return cop_err_set(err, EINVAL, "%u trees is out of range 1..%u for %u nodes",
			t->trees, most, t->nodes);
	return 0;
}

uint32_t cop_topo_trees(uint32_t nodes, uint32_t fanout)
{
	uint32_t trees = COP_MIN(fanout, COP_TOPO_MANY_TREES);

	if (nodes < COP_TOPO_MANY_NODES || nodes == COP_TOPO_NONE || fanout < 1)
		return 1;
	while (trees > 1 && nodes / trees < (nodes - 2) / fanout + 1)
		trees--;
	return trees;
}

/* The rank at position 0 of a tree. */
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

/* On each level, the nodes below a position are one run of positions. */
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
