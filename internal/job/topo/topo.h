/* SPDX-License-Identifier: BSD-3-Clause */
/* topo: positions in the overlay trees, by arithmetic on the rank. Pure: no tables, no allocation,
 * no election; 100,000 nodes cost nothing.
 *
 * There are T trees over the same N nodes, each a k-ary heap. In tree s, rank r has the position (r
 * - s * (N / T)) mod N; position 0 is the root, the parent of position p is (p -
 * 1) / k. Where T * ceil((N - 1) / k) <= N (always with T <= k / 2, and at the defaults) every
 * node is interior in at most one tree (SplitStream, Castro et al., SOSP 2003), so it forwards
 * about as many bytes as it receives. Between k / 2 and k there are N for which no arrangement can
 * do that (8 nodes, k = 3, T = 3 need 9 interior places); a node is then interior in two at most.
 */
#ifndef COP_JOB_TOPO_H
#define COP_JOB_TOPO_H

#include "base/base/base.h"

#define COP_TOPO_NONE UINT32_MAX
#define COP_TOPO_MAX_FANOUT 64

struct cop_topo {
	uint32_t nodes;  /* N, at least 1 */
	uint32_t fanout; /* k, 1..COP_TOPO_MAX_FANOUT */
	uint32_t trees;  /* T, 1..min(N, 64) */
};

/* 0, or -EINVAL with a sentence that names the value and its range. */
int cop_topo_check(const struct cop_topo *t, struct cop_err *err);
/* How many trees there are if the user does not say: as many as possible with every node interior
 * in at most one, and at most COP_TOPO_MANY_TREES; one tree for fewer nodes than
 * COP_TOPO_MANY_NODES, where having a single client at the storage matters more. 1 for a fan-out or
 * a number of nodes that cop_topo_check refuses. */
#define COP_TOPO_MANY_TREES 8u
#define COP_TOPO_MANY_NODES 16u
uint32_t cop_topo_trees(uint32_t nodes, uint32_t fanout);
uint32_t cop_topo_root(const struct cop_topo *t, uint32_t tree);
/* COP_TOPO_NONE: rank is the root. */
uint32_t cop_topo_parent(const struct cop_topo *t, uint32_t tree, uint32_t rank);
/* At most k ranks into out (room for COP_TOPO_MAX_FANOUT); returns how many. */
uint32_t cop_topo_children(
	const struct cop_topo *t, uint32_t tree, uint32_t rank, uint32_t out[COP_TOPO_MAX_FANOUT]);
/* The number of nodes in the subtree of rank, which counts itself. */
uint32_t cop_topo_subtree(const struct cop_topo *t, uint32_t tree, uint32_t rank);
/* Whether rank is ancestor or below it. */
bool cop_topo_below(const struct cop_topo *t, uint32_t tree, uint32_t ancestor, uint32_t rank);

#endif
