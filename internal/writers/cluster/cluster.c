/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums by name. They saturate at 2^64-1, and latencies are integral microseconds, so that the
 * result does not depend on the order or grouping of ranks. */
#include "base/base/grow.h"
#include "writers/cluster/cluster_priv.h"

struct cop_report_cluster *cop_report_cluster_new(void)
{
	return calloc(1, sizeof(struct cop_report_cluster));
}

static void rows_clear(struct rows *rows)
{
	while (rows->n)
		free(rows->row[--rows->n].name);
}

void cop_report_cluster_clear(struct cop_report_cluster *c)
{
	rows_clear(&c->metrics);
	rows_clear(&c->ops);
	cop_pathclass_totals_free(&c->classes);
	cop_report_hot_clear(&c->hot);
	cop_report_range_clear(&c->by_rank);
	c->absences_served = c->every_path = c->of_lists = false;
	c->rows_most = 0;
	c->ranks = 0;
}

void cop_report_cluster_free(struct cop_report_cluster *c)
{
	if (!c)
		return;
	cop_report_cluster_clear(c);
	free(c->metrics.row);
	free(c->ops.row);
	free(c);
}

void cop_report_cluster_ranks(struct cop_report_cluster *c, uint64_t n)
{
	c->ranks = cop_add_saturating(c->ranks, n);
}

/* The index of name, or its insertion point. */
static size_t find_row(const struct rows *rows, const char *name, bool *found)
{
	size_t low = 0, high = rows->n;

	*found = false;
	while (low < high && !*found) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(name, rows->row[middle].name);

		*found = order == 0;
		if (order > 0)
			low = middle + 1;
		else
			high = middle;
	}
	return high;
}

const struct row *cop_report_rows_find(const struct rows *rows, const char *name)
{
	bool found;
	size_t at = find_row(rows, name, &found);

	return found ? &rows->row[at] : NULL;
}

static int insert_row(struct rows *rows, size_t at, const char *name)
{
	char *copy;

	if (rows->n == CLUSTER_NAMES_MAX || !*name || strlen(name) > CLUSTER_NAME_BYTES)
		return -ENOBUFS;
	if (!COP_GROW(rows->row, rows->n, rows->cap))
		return -ENOMEM;
	copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	memmove(rows->row + at + 1, rows->row + at, (rows->n - at) * sizeof(*rows->row));
	rows->row[at] = (struct row){.name = copy};
	rows->n++;
	return 0;
}

int cop_report_cluster_row(struct rows *rows, const struct row *from)
{
	bool found;
	size_t at = find_row(rows, from->name, &found);
	int rc = found ? 0 : insert_row(rows, at, from->name);

	if (rc)
		return rc;
	for (unsigned i = 0; i < COP_ARRAY_SIZE(from->count); i++)
		rows->row[at].count[i] = cop_add_saturating(rows->row[at].count[i], from->count[i]);
	rows->row[at].sum = cop_report_number_add(rows->row[at].sum, from->sum);
	rows->row[at].decimal |= from->decimal;
	return 0;
}

int cop_report_cluster_metric(struct cop_report_cluster *c, const char *name, const char *value)
{
	struct row row = {.name = (char *)name};
	int cut = cop_report_number_parse(value, &row.sum, &row.decimal), rc;

	if (cut < 0)
		return cut;
	rc = cop_report_cluster_row(&c->metrics, &row);
	return rc ? rc : cut;
}

int cop_report_cluster_op(
	struct cop_report_cluster *c, const char *name, const struct cop_report_op *op)
{
	return cop_report_cluster_row(
		&c->ops, &(struct row){.name = (char *)name,
				 .count = {op->calls, op->hits, op->misses, op->negatives},
				 .sum = cop_report_number_of_double(op->latency_s)});
}

int cop_report_cluster_top(struct cop_report_cluster *c, const char *category, const char *path,
	size_t len, const uint64_t counts[COP_REPORT_TOP_COUNTS])
{
	bool absence = strcmp(category, "metadata_ttl") == 0;
	int rc = cop_pathclass_add(&c->classes, absence, path, len, counts[COP_REPORT_TOP_EVENTS]);

	c->absences_served |= absence && counts[COP_REPORT_TOP_TTL_SERVES];
	return rc ? rc : cop_report_cluster_path(c, category, path, len, counts);
}

int cop_report_cluster_path(struct cop_report_cluster *c, const char *category, const char *path,
	size_t len, const uint64_t counts[COP_REPORT_TOP_COUNTS])
{
	int of = cop_report_category_of(category);

	return of < 0 ? 0 : cop_report_hot_add(&c->hot, (unsigned)of, path, len, counts);
}

void cop_report_cluster_every_path(struct cop_report_cluster *c)
{
	c->every_path = true;
}

int cop_report_cluster_classes(
	struct cop_report_cluster *c, const struct cop_pathclass_totals *rows, bool absences_served)
{
	c->absences_served |= absences_served;
	return cop_pathclass_merge(&c->classes, rows);
}

/* Whether all names of `from` fit. */
static bool has_room(const struct rows *into, const struct rows *from)
{
	size_t n = into->n;

	for (size_t i = 0; i < from->n; i++)
		n += !cop_report_rows_find(into, from->row[i].name);
	return n <= CLUSTER_NAMES_MAX;
}

int cop_report_cluster_merge(struct cop_report_cluster *into, const struct cop_report_cluster *from)
{
	int rc = 0;

	if (!has_room(&into->metrics, &from->metrics) || !has_room(&into->ops, &from->ops))
		return -ENOBUFS;
	for (size_t i = 0; i < from->metrics.n && !rc; i++)
		rc = cop_report_cluster_row(&into->metrics, &from->metrics.row[i]);
	for (size_t i = 0; i < from->ops.n && !rc; i++)
		rc = cop_report_cluster_row(&into->ops, &from->ops.row[i]);
	if (!rc)
		rc = cop_pathclass_merge(&into->classes, &from->classes);
	if (!rc)
		rc = cop_report_hot_merge(&into->hot, &from->hot);
	into->absences_served |= from->absences_served;
	into->rows_most = COP_MAX(into->rows_most, from->rows_most);
	cop_report_cluster_ranks(into, from->ranks);
	return rc;
}

double cop_report_average_us(const struct row *op)
{
	return op->count[0] ? (double)op->sum / (double)op->count[0] : 0;
}
