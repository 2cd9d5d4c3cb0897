/* SPDX-License-Identifier: BSD-3-Clause */
/* topo: positions in the overlay trees, computed from the rank alone. No tables, no allocation, no
 * election; 100,000 nodes cost nothing.
 *
 * There are T trees over the same N nodes, each a k-ary heap. In tree s, rank r has position (r - s
 * * (N / T)) mod N; position 0 is the root, and the parent of position p is (p - 1) / k. Names and
 * small files use tree 0. The groups of a large file rotate over all trees: with T = N, the
 * default, each node is the root of equally many groups and forwards equally many bytes. */
#ifndef COP_JOB_TOPO_H
#define COP_JOB_TOPO_H

#include "base/base/base.h"

#define COP_TOPO_NONE UINT32_MAX
#define COP_TOPO_MAX_FANOUT 64

struct cop_topo {
	uint32_t nodes;  /* N, at least 1 */
	uint32_t fanout; /* k, 1..COP_TOPO_MAX_FANOUT */
	uint32_t trees;  /* T, 1..N */
};

/* Returns 0, or -EINVAL with err set, naming the value and its range. */
int cop_topo_check(const struct cop_topo *t, struct cop_err *err);
/* The tree for the n-th of `groups` groups of a file whose path has this hash. Any T consecutive
 * groups have T different roots. The roots of the groups left over, or of all groups of a smaller
 * file, are spread evenly: nodes near a root forward more than others, so every node should be near
 * equally many roots. Consecutive groups have distant roots. */
uint32_t cop_topo_tree_of(const struct cop_topo *t, uint64_t hash, uint64_t n, uint64_t groups);
uint32_t cop_topo_root(const struct cop_topo *t, uint32_t tree);
/* Returns COP_TOPO_NONE if rank is the root. */
uint32_t cop_topo_parent(const struct cop_topo *t, uint32_t tree, uint32_t rank);
/* The node that rank contacts next if one does not reply. If that one is rank's own parent, it is
 * one of the parent's siblings or, for the first child, the parent's parent; this divides the
 * children of a dead node among these nodes, so that each serves one more. If it is any other node,
 * it is that node's parent; after the root come the root's other children in order, ending before
 * rank's own ancestor among them. So a single node replaces a dead root, and no node contacts one
 * at a later position than its own, which rules out cycles. *heir is false at first, and true from
 * the root's children on. COP_TOPO_NONE means that rank itself is next. */
uint32_t cop_topo_next(
	const struct cop_topo *t, uint32_t tree, uint32_t rank, uint32_t silent, bool *heir);
/* Writes at most k ranks to out (room for COP_TOPO_MAX_FANOUT); returns how many. */
uint32_t cop_topo_children(
	const struct cop_topo *t, uint32_t tree, uint32_t rank, uint32_t out[COP_TOPO_MAX_FANOUT]);
/* The number of nodes in the subtree of rank, including itself. */
uint32_t cop_topo_subtree(const struct cop_topo *t, uint32_t tree, uint32_t rank);
/* Whether rank is `ancestor` or below it. */
bool cop_topo_below(const struct cop_topo *t, uint32_t tree, uint32_t ancestor, uint32_t rank);

#endif
