/* SPDX-License-Identifier: BSD-3-Clause */
/* New spans are appended to an array. When it is full, it is sorted and overlapping spans are
 * merged; then, as long as more than half of it is still in use, longer and longer gaps are
 * closed. */
#include "base/base/grow.h"
#include "trace/table/table.h"

static int by_begin(const void *a, const void *b)
{
	const struct cop_union_span *p = a, *q = b;

	return (p->from > q->from) - (p->from < q->from);
}

static bool in_order(const struct cop_union *u)
{
	for (size_t i = 1; i < u->n; i++)
		if (u->at[i].from < u->at[i - 1].from)
			return false;
	return true;
}

/* Closes gaps up to u->gap. */
static void fold(struct cop_union *u)
{
	size_t to = 0;

	for (size_t i = 0; i < u->n; i++) {
		struct cop_union_span s = u->at[i];

		if (!to || s.from > u->at[to - 1].to + u->gap) {
			u->at[to++] = s;
			continue;
		}
		if (s.from > u->at[to - 1].to)
			u->closed_ns += (uint64_t)(s.from - u->at[to - 1].to);
		u->at[to - 1].to = COP_MAX(u->at[to - 1].to, s.to);
	}
	u->n = u->sorted = to;
}

static void coalesce(struct cop_union *u)
{
	if (u->sorted == u->n)
		return;
	if (!in_order(u))
		qsort(u->at, u->n, sizeof(*u->at), by_begin);
	fold(u);
}

static int reserve_span(struct cop_union *u)
{
	coalesce(u);
	if (u->cap && u->n <= u->cap / 2)
		return 0;
	if (u->cap < (u->max ? u->max : COP_UNION_MAX))
		return COP_GROW(u->at, u->cap, u->cap) ? 0 : -ENOMEM;
	while (u->n > u->cap / 2) {
		u->gap = u->gap ? 2 * u->gap : 1000;
		fold(u);
	}
	return 0;
}

int cop_union_add(struct cop_union *u, int64_t from, int64_t to)
{
	struct cop_union_span *last = u->n ? &u->at[u->n - 1] : NULL;
	int rc;

	if (last && from >= last->from && from <= last->to) {
		last->to = COP_MAX(last->to, to);
		u->sorted = COP_MIN(u->sorted, u->n - 1);
		return 0;
	}
	rc = u->n == u->cap ? reserve_span(u) : 0;
	if (!rc)
		u->at[u->n++] = (struct cop_union_span){from, to};
	return rc;
}

int cop_union_merge(struct cop_union *u, const struct cop_union *from)
{
	int rc = 0;

	for (size_t i = 0; i < from->n && !rc; i++)
		rc = cop_union_add(u, from->at[i].from, from->at[i].to);
	u->closed_ns += from->closed_ns;
	return rc;
}

uint64_t cop_union_length(struct cop_union *u)
{
	uint64_t sum = 0;

	coalesce(u);
	for (size_t i = 0; i < u->n; i++)
		sum += (uint64_t)(u->at[i].to - u->at[i].from);
	return sum;
}

uint64_t cop_union_alone(struct cop_union *u, struct cop_union *other)
{
	uint64_t both = 0, all = cop_union_length(u);
	size_t i = 0, k = 0;

	coalesce(other);
	while (i < u->n && k < other->n) {
		int64_t from = COP_MAX(u->at[i].from, other->at[k].from);
		int64_t to = COP_MIN(u->at[i].to, other->at[k].to);

		if (to > from)
			both += (uint64_t)(to - from);
		if (u->at[i].to < other->at[k].to)
			i++;
		else
			k++;
	}
	return all - both;
}

int cop_union_rest(struct cop_union *u, struct cop_union *other, struct cop_union *to)
{
	size_t k = 0;
	int rc = 0;

	coalesce(u);
	coalesce(other);
	for (size_t i = 0; i < u->n && !rc; i++) {
		int64_t from = u->at[i].from;

		while (k < other->n && other->at[k].to <= from)
			k++;
		for (size_t m = k; m < other->n && other->at[m].from < u->at[i].to && !rc; m++) {
			if (other->at[m].from > from)
				rc = cop_union_add(to, from, other->at[m].from);
			from = other->at[m].to;
		}
		if (from < u->at[i].to && !rc)
			rc = cop_union_add(to, from, u->at[i].to);
	}
	to->closed_ns += u->closed_ns + other->closed_ns;
	return rc;
}

void cop_union_free(struct cop_union *u)
{
	free(u->at);
	*u = (struct cop_union){0};
}
