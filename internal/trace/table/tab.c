/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace/table/table_priv.h"

/* ---- groups ---- */

static struct group *find_group(
	const struct cop_htab *t, const char *key, size_t len, uint64_t hash)
{
	struct cop_hlink *l = cop_htab_first(t, hash);

	for (; l; l = cop_htab_next(l)) {
		struct group *g = COP_CONTAINER_OF(l, struct group, link);

		if (g->len == len && !memcmp(g->key, key, len))
			return g;
	}
	return NULL;
}

static struct group *group_new(struct cop_htab *t, const char *key, size_t len, uint64_t hash)
{
	struct group *g = calloc(1, sizeof(*g) + len);

	if (!g)
		return NULL;
	memcpy(g->key, key, len);
	g->len = (uint32_t)len;
	cop_htab_add(t, &g->link, hash);
	return g;
}

/* Finds or creates the group of an event; on failure, returns NULL and sets *rc. */
static struct group *group_of(struct cop_tab *t, struct part *p, const struct cop_trace_event *e,
	struct cop_trace_str series, int *rc)
{
	ssize_t len = cop_tab_put_keys(t, p, e, series);
	struct group *g;
	uint64_t hash;

	*rc = -ENOMEM;
	if (len < 0)
		return NULL;
	hash = cop_hash64(p->scratch, (size_t)len, 0);
	g = find_group(&p->table, p->scratch, (size_t)len, hash);
	if (!g && p->table.count >= COP_TAB_GROUPS_MAX)
		*rc = -E2BIG;
	else if (!g)
		g = group_new(&p->table, p->scratch, (size_t)len, hash);
	if (g)
		*rc = 0;
	return g;
}

/* Adds each value of a counter as a series of its own. */
static int add_values(struct cop_tab *t, struct part *p, const struct cop_trace_event *e)
{
	struct cop_trace_values values = cop_trace_values_of(e);
	struct cop_trace_str series;
	struct group *g;
	long double v;
	int rc = 0;

	while (!rc && cop_trace_values_next(&values, &series, &v)) {
		if (++p->values > COP_TAB_VALUES_MAX)
			return -E2BIG;
		g = group_of(t, p, e, series, &rc);
		if (g)
			rc = cop_agg_add_value(&g->agg, e, v);
	}
	return rc;
}

/* Whether the table counts this event; a table of values takes only counters. */
static bool counts(const struct cop_tab *t, const struct cop_trace_event *e)
{
	if (t->wants.values)
		return e->kind == COP_TRACE_COUNTER;
	if (e->kind != COP_TRACE_SPAN && e->kind != COP_TRACE_AGGREGATE)
		return false;
	return !e->unfinished || t->wants.unfinished;
}

int cop_tab_see(struct cop_tab *t, unsigned worker, const struct cop_trace_event *e)
{
	bool sees = t->wants.who && (e->kind == COP_TRACE_META || counts(t, e));

	return sees ? cop_seen_take(&t->part[worker].seen, e) : 0;
}

int cop_tab_add_self(
	struct cop_tab *t, unsigned worker, const struct cop_trace_event *e, uint64_t self_ns)
{
	const struct cop_trace_str none = {"", 0};
	struct part *p = &t->part[worker];
	struct group *g;
	int rc = cop_tab_see(t, worker, e);

	if (rc || !counts(t, e))
		return rc;
	if (t->wants.values)
		return add_values(t, p, e);
	g = group_of(t, p, e, none, &rc);
	return g ? cop_agg_add(&g->agg, e, t->wants, self_ns) : rc;
}

int cop_tab_add(struct cop_tab *t, unsigned worker, const struct cop_trace_event *e)
{
	return cop_tab_add_self(t, worker, e, e->dur_ns);
}

static void group_free(struct group *g)
{
	cop_agg_fini(&g->agg);
	free(g);
}

int cop_tab_put_group(struct cop_htab *to, struct group *g)
{
	uint64_t hash = cop_hash64(g->key, g->len, 0);
	struct group *same = find_group(to, g->key, g->len, hash);
	int rc;

	if (!same) {
		cop_htab_add(to, &g->link, hash);
		return 0;
	}
	rc = cop_agg_merge(&same->agg, &g->agg);
	group_free(g);
	return rc;
}

static int merge_part(struct cop_tab *t, struct part *from)
{
	struct cop_htab *to = &t->part[0].table;
	struct cop_hlink *l, *next;
	struct group *g;
	int rc = 0;

	for (l = cop_htab_after(&from->table, NULL); l && !rc; l = next) {
		next = cop_htab_after(&from->table, l);
		g = COP_CONTAINER_OF(l, struct group, link);
		if (to->count >= COP_TAB_GROUPS_MAX && !find_group(to, g->key, g->len, l->hash))
			return -E2BIG;
		cop_htab_remove(&from->table, l);
		rc = cop_tab_put_group(to, g);
	}
	return rc;
}

int cop_tab_merge(struct cop_tab *t)
{
	int rc = 0;

	for (unsigned i = 1; i < t->threads && !rc; i++)
		rc = merge_part(t, &t->part[i]);
	return !rc && t->wants.who ? cop_late_resolve(t) : rc;
}

size_t cop_tab_split(const struct group *g, unsigned n, struct cop_trace_str *out)
{
	const char *p = g->key;
	uint32_t len;

	for (unsigned i = 0; i < n; i++) {
		memcpy(&len, p, sizeof(len));
		out[i] = (struct cop_trace_str){p + sizeof(len), len};
		p += sizeof(len) + len;
	}
	return (size_t)(p - g->key);
}

struct cop_tab *cop_tab_new(const struct cop_tab_conf *conf, unsigned threads, int64_t first_ns)
{
	struct cop_tab *t = calloc(1, sizeof(*t) + threads * sizeof(t->part[0]));

	if (!t)
		return NULL;
	t->conf = *conf;
	t->threads = threads;
	t->first_ns = first_ns;
	for (unsigned i = 0; i < conf->cols; i++) {
		const struct col *c = &cop_tab_col[conf->col[i]];

		t->wants.dur |= c->of == OF_DUR && c->what == COL_QUANTILE;
		t->wants.size |= c->of == OF_SIZE && c->what == COL_QUANTILE;
		t->wants.values |= c->of == OF_VALUE;
		t->wants.busy |= conf->col[i] == COL_BUSY;
		t->wants.unfinished |= conf->col[i] == COL_UNFINISHED;
	}
	t->wants.who = cop_tab_needs_who(conf);
	return t;
}

void cop_tab_drop(struct cop_htab *table)
{
	struct cop_hlink *l, *next;

	for (l = cop_htab_after(table, NULL); l; l = next) {
		next = cop_htab_after(table, l);
		group_free(COP_CONTAINER_OF(l, struct group, link));
	}
	cop_htab_fini(table);
}

void cop_tab_free(struct cop_tab *t)
{
	if (!t)
		return;
	for (unsigned i = 0; i < t->threads; i++) {
		cop_tab_drop(&t->part[i].table);
		cop_seen_free(&t->part[i].seen);
		free(t->part[i].scratch);
		cop_buf_free(&t->part[i].room);
	}
	free(t);
}
