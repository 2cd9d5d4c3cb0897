/* SPDX-License-Identifier: BSD-3-Clause */
/* Aggregates a run in a few tables per tier, one for each question. */
#include <math.h>

#include "trace/checkpoint/checkpoint_priv.h"

struct cop_ckpt {
	const struct cop_ckpt_conf *conf;
	struct cop_select *event;
	struct spans *spans;
	struct cop_tab *events, *nested, *hosts;
	struct cop_tab *tab[COP_CKPT_TIERS_MAX][TABS];
};

static const struct {
	const char *keys, *per, *cols;
} tables[TABS] = {
	[TAB_CALLS] = {"pid,tid,name", "", "count,dur,size"},
	[TAB_CLASSES] = {"class", "pid", "dur,size"},
	[TAB_FILES] = {"file", "", "dur,size,count"},
	[TAB_SIZES] = {"name,size", "", "count"},
};

const struct cop_ckpt_conf *cop_ckpt_conf_of(const struct cop_ckpt *c)
{
	return c->conf;
}

static struct cop_tab *make_table(
	const char *keys, const char *per, const char *cols, unsigned threads)
{
	struct cop_tab_conf conf = {0};

	cop_tab_keys(keys, false, &conf, NULL);
	cop_tab_tell_apart(&conf);
	cop_tab_keys(per, true, &conf, NULL);
	cop_tab_cols(cols, &conf, NULL);
	cop_tab_thens("max", &conf, NULL);
	return cop_tab_new(&conf, threads, 0);
}

static int make_tables(struct cop_ckpt *c, unsigned threads)
{
	c->spans = cop_ckpt_spans_new();
	c->events = make_table("pid,tid", "", "count,dur,size", threads);
	c->nested = make_table("name", "", "count,dur", threads);
	c->hosts = make_table("host", "", "count", threads);
	if (!c->spans || !c->events || !c->nested || !c->hosts)
		return -ENOMEM;
	for (unsigned i = 0; i < c->conf->tiers; i++)
		for (unsigned k = 0; k < TABS; k++) {
			c->tab[i][k] =
				make_table(tables[k].keys, tables[k].per, tables[k].cols, threads);
			if (!c->tab[i][k])
				return -ENOMEM;
		}
	return 0;
}

int cop_ckpt_new(const struct cop_ckpt_conf *conf, unsigned threads, struct cop_ckpt **out,
	struct cop_err *err)
{
	const struct cop_select_conf names = {
		.text[COP_SELECT_NAME] = {&conf->event, 1}, .to_s = -1, .name_option = "event"};
	struct cop_ckpt *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return cop_err_set(err, ENOMEM, "no memory");
	c->conf = conf;
	rc = cop_select_new(&names, threads, &c->event, err);
	if (!rc && make_tables(c, threads))
		rc = cop_err_set(err, ENOMEM, "no memory");
	if (rc)
		cop_ckpt_free(c);
	else
		*out = c;
	return rc;
}

void cop_ckpt_free(struct cop_ckpt *c)
{
	if (!c)
		return;
	cop_select_free(c->event);
	cop_ckpt_spans_free(c->spans);
	cop_tab_free(c->events);
	cop_tab_free(c->nested);
	cop_tab_free(c->hosts);
	for (unsigned i = 0; i < COP_CKPT_TIERS_MAX; i++)
		for (unsigned k = 0; k < TABS; k++)
			cop_tab_free(c->tab[i][k]);
	free(c);
}

/* ---- events ---- */

/* Returns the tier with the longest prefix that is the file or one of its parent directories; the
 * number of tiers if none matches. */
static unsigned tier_of(const struct cop_ckpt_conf *conf, struct cop_trace_str file)
{
	const struct cop_ckpt_prefix *best = NULL;

	for (unsigned i = 0; i < conf->prefixes; i++) {
		const struct cop_ckpt_prefix *p = &conf->prefix[i];

		if (file.len < p->len || memcmp(file.at, p->at, p->len) ||
			(file.len > p->len ? file.at[p->len] != '/' : !p->len))
			continue;
		if (!best || p->len > best->len)
			best = p;
	}
	return best ? best->tier : conf->tiers;
}

bool cop_ckpt_holds(struct cop_trace_str s, const char *word)
{
	return memmem(s.at, s.len, word, strlen(word)) != NULL;
}

static int add_call(struct cop_ckpt *c, unsigned worker, const struct cop_trace_event *e)
{
	unsigned tier = tier_of(c->conf, e->file);
	bool span = e->kind == COP_TRACE_SPAN;
	int rc = 0;

	if (tier == c->conf->tiers)
		return 0;
	for (unsigned k = 0; k < TABS && !rc; k++)
		if (k != TAB_SIZES || (span && e->has_size))
			rc = cop_tab_add(c->tab[tier][k], worker, e);
	if (!rc && tier && span && cop_ckpt_holds(e->name, "write"))
		rc = cop_ckpt_spans_add(c->spans, e, false);
	return rc;
}

int cop_ckpt_add(struct cop_ckpt *c, unsigned worker, const struct cop_trace_event *e)
{
	int rc = 0;

	if ((e->kind != COP_TRACE_SPAN && e->kind != COP_TRACE_AGGREGATE) || e->unfinished)
		return 0;
	/* The times of an aggregate's spans are unknown, so it is counted as it is. */
	if (cop_select_test(c->event, worker, e))
		rc = e->kind == COP_TRACE_SPAN ? cop_ckpt_spans_add(c->spans, e, true)
					       : cop_tab_add(c->events, worker, e);
	if (!rc && e->host.len)
		rc = cop_tab_add(c->hosts, worker, e);
	if (!rc && e->file.len && e->cat.len == 5 && !memcmp(e->cat.at, "POSIX", 5))
		rc = add_call(c, worker, e);
	return rc;
}

/* ---- sums ---- */

static int finish_table(
	struct cop_tab **tab, const char *sort, struct cop_rows *out, struct cop_err *err)
{
	struct cop_tab *t = *tab;
	int rc;

	*tab = NULL;
	rc = cop_tab_rows(t, out, err);
	if (!rc)
		cop_rows_sort(out, sort);
	return rc;
}

/* Sums up the calls in rows keyed by pid, tid and name. */
static void add_up_calls(struct tier *t)
{
	const struct cop_rows *r = &t->rows[TAB_CALLS];
	double thread = 0;

	for (size_t i = 0; i < r->n; i++) {
		const struct cop_row *row = &r->row[i];

		if (i && cop_row_compare(row, row - 1, 2))
			thread = 0;
		thread += row->value[1];
		t->dur = COP_MAX(t->dur, thread);
		t->calls += row->value[0];
		t->size += row->value[2];
		if (cop_ckpt_holds(row->key[2], "write"))
			t->written += row->value[2];
		else if (cop_ckpt_holds(row->key[2], "read"))
			t->read += row->value[2];
	}
	t->per_file = t->rows[TAB_FILES].n ? t->calls / (double)t->rows[TAB_FILES].n : NAN;
}

/* Returns the bytes written by threads that have checkpoint events. Both tables are sorted by
 * thread. */
static double written_by_checkpoints(const struct cop_rows *events, const struct cop_rows *calls)
{
	double sum = 0;
	size_t k = 0;

	for (size_t i = 0; i < calls->n; i++) {
		while (k < events->n && cop_row_compare(&events->row[k], &calls->row[i], 2) < 0)
			k++;
		if (k < events->n && !cop_row_compare(&events->row[k], &calls->row[i], 2) &&
			cop_ckpt_holds(calls->row[i].key[2], "write"))
			sum += calls->row[i].value[2];
	}
	return sum;
}

static void sum_tiers(struct run *run, unsigned tiers)
{
	double size = 0;

	for (size_t i = 0; i < run->events.n; i++) {
		const long double *value = run->events.row[i].value;

		run->count += value[0];
		run->dur = COP_MAX(run->dur, value[1]);
		size += value[2];
	}
	for (unsigned i = 0; i < tiers; i++)
		add_up_calls(&run->tier[i]);
	for (unsigned i = 0; i < tiers && !(size > 0); i++)
		run->produced +=
			written_by_checkpoints(&run->events, &run->tier[i].rows[TAB_CALLS]);
	if (size > 0)
		run->produced = size;
	else if (!(run->produced > 0))
		run->produced = NAN;
	for (unsigned i = 0; i < tiers; i++)
		run->tier[i].ratio = run->tier[i].written / run->produced;
}

int cop_ckpt_finish(struct cop_ckpt *c, const char *name, struct run *out, struct cop_err *err)
{
	struct cop_rows hosts = {0};
	int rc;

	out->name = name;
	if (cop_ckpt_spans_finish(c->spans, c->events, c->nested, &out->flush, &out->pace))
		return cop_err_set(err, ENOMEM, "no memory for the report");
	rc = finish_table(&c->events, "pid", &out->events, err);
	if (!rc)
		rc = finish_table(&c->nested, "dur", &out->nested, err);
	if (!rc)
		rc = finish_table(&c->hosts, "host", &hosts, err);
	out->nodes = (double)COP_MAX(hosts.n, (size_t)1);
	cop_rows_free(&hosts);
	for (unsigned i = 0; i < c->conf->tiers; i++)
		for (unsigned k = 0; k < TABS && !rc; k++)
			rc = finish_table(&c->tab[i][k], k == TAB_CALLS ? "pid" : "dur",
				&out->tier[i].rows[k], err);
	if (!rc)
		sum_tiers(out, c->conf->tiers);
	return rc;
}

void cop_ckpt_run_fini(struct run *r, unsigned tiers)
{
	cop_rows_free(&r->events);
	cop_rows_free(&r->nested);
	for (unsigned i = 0; i < tiers; i++)
		for (unsigned k = 0; k < TABS; k++)
			cop_rows_free(&r->tier[i].rows[k]);
}
