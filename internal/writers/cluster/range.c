/* SPDX-License-Identifier: BSD-3-Clause */
/* The range across a job's ranks: minimum, median and maximum of a few metrics, and the ranks that
 * have the extremes. */
#include "base/base/grow.h"
#include "base/base/json.h"
#include "base/table/table.h"
#include "writers/cluster/cluster_priv.h"

static const struct {
	const char *metric, *heading;
} ranged[COP_PROF_SHARES] = {
	[COP_PROF_SHARE_HITS] = {"total_cache_hits", "Cache hits"},
	[COP_PROF_SHARE_MISSES] = {"total_cache_misses", "Cache misses"},
	[COP_PROF_SHARE_NEGATIVES] = {"total_negative_results", "Negative results"},
	[COP_PROF_SHARE_TTL_SERVES] = {"metadata_enoent_ttl_serves", "ENOENT TTL serves"},
	[COP_PROF_SHARE_LATENCY_US] = {"total_measured_latency_seconds", "Measured latency (s)"},
};

static int add(
	struct cop_report_cluster *c, const struct rank_values *v, const char *name, size_t len)
{
	struct rank_values *to;

	if (!COP_GROW(c->by_rank.at, c->by_rank.n, c->by_rank.cap))
		return -ENOMEM;
	to = &c->by_rank.at[c->by_rank.n];
	*to = *v;
	to->name = strndup(name, len);
	if (!to->name)
		return -ENOMEM;
	c->by_rank.n++;
	return 0;
}

int cop_report_cluster_share(
	struct cop_report_cluster *c, const char *host, const struct cop_prof_shares *share)
{
	struct rank_values v = {.rank = share->rank, .decimal = 1u << COP_PROF_SHARE_LATENCY_US};

	for (unsigned i = 0; i < COP_PROF_SHARES; i++)
		v.value[i] = (cop_number_t)share->value[i] *
			     (i == COP_PROF_SHARE_LATENCY_US ? 1 : COP_NUMBER_UNIT);
	v.has = (1u << COP_PROF_SHARES) - 1;
	return add(c, &v, host, strlen(host));
}

int cop_report_range_add(struct cop_report_cluster *c, int64_t rank, const char *name, size_t len,
	const struct rows *metrics)
{
	struct rank_values v = {.rank = rank};

	for (unsigned i = 0; i < COP_PROF_SHARES; i++) {
		const struct row *m = cop_report_rows_find(metrics, ranged[i].metric);

		if (!m)
			continue;
		v.value[i] = m->sum;
		v.has |= 1u << i;
		v.decimal |= (unsigned)m->decimal << i;
	}
	return v.has ? add(c, &v, name, len) : 0;
}

void cop_report_range_clear(struct by_rank *r)
{
	while (r->n)
		free(r->at[--r->n].name);
	free(r->at);
	*r = (struct by_rank){0};
}

/* ---- descriptions ---- */

struct range {
	const struct rank_values *min, *max;
	cop_number_t median;
	bool decimal;
};

static int by_value(const void *a, const void *b)
{
	cop_number_t x = *(const cop_number_t *)a, y = *(const cop_number_t *)b;

	return x < y ? -1 : x > y;
}

/* Among ranks with equal values, the lowest rank comes first. */
static bool comes_first(const struct rank_values *x, const struct rank_values *y)
{
	if (x->rank != y->rank)
		return x->rank >= 0 && (y->rank < 0 || x->rank < y->rank);
	return strcmp(x->name, y->name) < 0;
}

/* Returns false if fewer than two ranks have the metric, or if out of memory. */
static bool find_range(const struct by_rank *r, unsigned i, struct range *out)
{
	cop_number_t *value = calloc(r->n + 1, sizeof(*value));
	size_t n = 0;

	*out = (struct range){0};
	for (size_t k = 0; k < r->n && value; k++) {
		const struct rank_values *v = &r->at[k];

		if (!(v->has & 1u << i))
			continue;
		value[n++] = v->value[i];
		out->decimal |= v->decimal >> i & 1;
		if (!out->min || v->value[i] < out->min->value[i] ||
			(v->value[i] == out->min->value[i] && comes_first(v, out->min)))
			out->min = v;
		if (!out->max || v->value[i] > out->max->value[i] ||
			(v->value[i] == out->max->value[i] && comes_first(v, out->max)))
			out->max = v;
	}
	if (n > 1) {
		qsort(value, n, sizeof(*value), by_value);
		out->median = (value[(n - 1) / 2] + value[n / 2]) / 2;
	}
	free(value);
	return n > 1;
}

static void put_median(struct cop_buf *out, const struct range *r)
{
	cop_report_number_print(out, r->median, r->decimal);
	if (!r->decimal && r->median % COP_NUMBER_UNIT)
		cop_buf_str(out, ".5");
}

static void put_who(struct cop_buf *out, const struct rank_values *v)
{
	if (v->rank >= 0)
		cop_buf_printf(out, "%" PRId64 " ", v->rank);
	cop_csv_markdown(out, v->name, strlen(v->name));
}

static void put_row(struct cop_buf *out, unsigned i, const struct range *r)
{
	cop_buf_printf(out, "| %s | ", ranged[i].heading);
	cop_report_number_print(out, r->min->value[i], r->decimal);
	cop_buf_str(out, " | ");
	put_who(out, r->min);
	cop_buf_str(out, " | ");
	put_median(out, r);
	cop_buf_str(out, " | ");
	cop_report_number_print(out, r->max->value[i], r->decimal);
	cop_buf_str(out, " | ");
	put_who(out, r->max);
	cop_buf_str(out, " |\n");
}

void cop_report_range_table(const struct cop_report_cluster *c, struct cop_buf *out)
{
	struct range r;
	bool any = false;

	for (unsigned i = 0; i < COP_PROF_SHARES; i++) {
		if (!find_range(&c->by_rank, i, &r))
			continue;
		if (!any)
			cop_buf_str(out,
				"\n## Range Across Ranks\n\n"
				"| Metric | Minimum | Of Rank | Median | Maximum | Of Rank |\n"
				"|---|---:|---|---:|---:|---|\n");
		any = true;
		put_row(out, i, &r);
	}
}

static void json_extreme(
	struct cop_json *j, const char *key, const struct rank_values *v, unsigned i, bool decimal)
{
	cop_json_object(j, key);
	cop_json_value(j, "value");
	cop_report_number_print(j->out, v->value[i], decimal);
	if (v->rank >= 0)
		cop_json_u64(j, "rank", (uint64_t)v->rank);
	else
		cop_json_null(j, "rank");
	cop_json_bytes(j, "name", v->name, strlen(v->name));
	cop_json_end(j);
}

void cop_report_range_json(const struct cop_report_cluster *c, struct cop_json *j)
{
	struct range r;

	cop_json_object(j, "ranges");
	for (unsigned i = 0; i < COP_PROF_SHARES; i++) {
		if (!find_range(&c->by_rank, i, &r))
			continue;
		cop_json_object(j, ranged[i].metric);
		json_extreme(j, "min", r.min, i, r.decimal);
		cop_json_value(j, "median");
		put_median(j->out, &r);
		json_extreme(j, "max", r.max, i, r.decimal);
		cop_json_end(j);
	}
	cop_json_end(j);
}
