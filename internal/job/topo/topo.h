/* SPDX-License-Identifier: BSD-3-Clause */
/* topo: positions in the overlay trees, by arithmetic on the rank. Pure: no tables, no allocation,
 * no election; 100,000 nodes cost nothing.
 *
 * There are T trees over the same N nodes, each a k-ary heap. In tree s, rank r has the position (r
 * - s * (N / T)) mod N; position 0 is the root, the parent of position p is (p - 1) / k. Names and
 * small files use tree 0. The groups of a large file go round all trees, so that with T = N, the
 * default, every node is the root of as many groups as any other and forwards as many bytes. */
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

/* 0, or -EINVAL with a sentence that names the value and its range. */
int cop_topo_check(const struct cop_topo *t, struct cop_err *err);
/* The tree of the n-th group of a file of so many groups whose path has this hash. Each T groups in
 * a row have T different roots. The roots of those that are left, or of all groups of a file that
 * has fewer, are equally far apart: the nodes near a root forward more than others, and so each of
 * them is near as many roots as any other. Consecutive groups have roots that are far apart. */
uint32_t cop_topo_tree_of(const struct cop_topo *t, uint64_t hash, uint64_t n, uint64_t groups);
uint32_t cop_topo_root(const struct cop_topo *t, uint32_t tree);
/* COP_TOPO_NONE: rank is the root. */
uint32_t cop_topo_parent(const struct cop_topo *t, uint32_t tree, uint32_t rank);
/* Whom rank asks next in place of one that does not answer. For its own parent, one of the parent's
 * siblings or, for the first child, the parent's parent: the children of a dead node are divided
 * among these, so that each of them serves one node more. For any other node, that node's parent;
 * after the root the root's other children, the first one first, before rank's own ancestor among
 * them. So a single node takes a dead root's place, and no node asks one with a position after its
 * own, which makes circles impossible. *heir is false at first, and true from the root's children
 * on. COP_TOPO_NONE: it is rank's turn itself. */
uint32_t cop_topo_next(
	const struct cop_topo *t, uint32_t tree, uint32_t rank, uint32_t silent, bool *heir);
/* At most k ranks into out (room for COP_TOPO_MAX_FANOUT); returns how many. */
uint32_t cop_topo_children(
	const struct cop_topo *t, uint32_t tree, uint32_t rank, uint32_t out[COP_TOPO_MAX_FANOUT]);
/* The number of nodes in the subtree of rank, which counts itself. */
uint32_t cop_topo_subtree(const struct cop_topo *t, uint32_t tree, uint32_t rank);
/* Whether rank is ancestor or below it. */
bool cop_topo_below(const struct cop_topo *t, uint32_t tree, uint32_t ancestor, uint32_t rank);

#endif
