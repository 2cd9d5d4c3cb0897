/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "report/watch/watch_priv.h"

/* When sorting by wait, unresponsive nodes come first. */
static double weight_of(const struct cop_board *b, const struct row *r)
{
	static const enum rate of[] = {[SORT_WAIT] = RATE_WAIT,
		[SORT_REQUESTS] = RATE_REQUESTS,
		[SORT_BYTES] = RATE_BYTES,
		[SORT_STORAGE] = RATE_STORAGE};

	if (!r->known || r->state != COP_NODELINE_OK)
		return b->sort == SORT_WAIT ? INFINITY : -1;
	return r->rate[of[b->sort]];
}

static int by_weight(const struct cop_board *b, const struct row *x, const struct row *y)
{
	double wx = weight_of(b, x), wy = weight_of(b, y);
	uint64_t nx = x->value[COP_NODELINE_WAITING], ny = y->value[COP_NODELINE_WAITING];

	if (wx != wy)
		return wx < wy ? 1 : -1;
	return b->sort == SORT_WAIT ? (nx < ny) - (nx > ny) : 0;
}

static int compare_nodes(const void *p, const void *q, void *board)
{
	const struct cop_board *b = board;
	uint32_t i = *(const uint32_t *)p, k = *(const uint32_t *)q;
	const struct row *x = &b->row[i], *y = &b->row[k];
	int order = 0;

	if (b->sort == SORT_NAME)
		order = strcmp(x->host ? x->host : "", y->host ? y->host : "");
	else if (b->sort != SORT_RANK)
		order = by_weight(b, x, y);
	if (b->reversed)
		order = -order;
	return order ? order : (i > k) - (i < k);
}

void cop_board_sort(struct cop_board *b)
{
	for (uint32_t i = 0; i < b->nodes; i++)
		b->order[i] = i;
	if (b->nodes)
		qsort_r(b->order, b->nodes, sizeof(*b->order), compare_nodes, b);
}
