/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base/grow.h"
#include "prof/profile/profile_priv.h"

int cop_prof_rows_push(struct rows *rows, const struct row *row)
{
	if (!COP_GROW(rows->row, rows->n, rows->cap))
		return -ENOMEM;
	rows->row[rows->n++] = *row;
	return 0;
}

static void cut_rows(struct rows *rows, size_t n)
{
	for (; rows->n > n; rows->n--)
		free(rows->row[rows->n - 1].own);
}

void cop_prof_rows_free(struct rows *rows)
{
	cut_rows(rows, 0);
	free(rows->row);
	*rows = (struct rows){0};
}

static int by_sequence(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

static int by_events(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int order;

	if (x->events != y->events)
		return x->events > y->events ? -1 : 1;
	order = memcmp(x->path, y->path, COP_MIN(x->len, y->len));
	return order ? order : x->len < y->len ? -1 : x->len > y->len;
}

static void sort_rows(struct rows *rows, int (*order)(const void *, const void *))
{
	if (rows->n)
		qsort(rows->row, rows->n, sizeof(*rows->row), order);
}

int cop_prof_rows_all(const struct cop_prof *p, enum category c, struct rows *out)
{
	int rc = p->paths ? cop_prof_paths_rows(p->paths, c, out) : 0;

	sort_rows(out, by_sequence);
	return rc;
}

void cop_prof_rows_busiest(struct rows *rows, size_t limit)
{
	size_t n = 0;

	sort_rows(rows, by_events);
	while (n < rows->n && n < limit && rows->row[n].events)
		n++;
	cut_rows(rows, n);
}

int cop_prof_rows_top(const struct cop_prof *p, enum category c, size_t limit, struct rows *out)
{
	int rc = p->paths    ? cop_prof_paths_rows(p->paths, c, out)
		 : p->top[c] ? cop_prof_top_rows(p->top[c], out)
			     : 0;

	cop_prof_rows_busiest(out, limit);
	return rc;
}
