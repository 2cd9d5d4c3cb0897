/* SPDX-License-Identifier: BSD-3-Clause */
/* Distinct things and groups are both tables; a table that only counts its entries is given events
 * that have nothing but the key. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace/table/table.h"

enum { TAB_FUNCTIONS, TAB_INTERVALS, TAB_THREADS, TAB_FILES, TAB_HOSTS, TABS };

struct part { /* one per thread */
	uint64_t spans, instants, counters, flows;
	int64_t first, last;
	struct cop_union of[COP_SUM_PARTS];
	char before[512]; /* host, process and thread of the previous event, which are in the table
			   */
	size_t before_len;
};
struct cop_sum {
	unsigned threads;
	bool names;
	struct cop_tab *tab[TABS];
	struct part part[];
};

static const struct {
	const char *keys, *cols;
} tables[TABS] = {
	[TAB_FUNCTIONS] = {"name",
		"count,dur,size,size:min,size:25%,size:mean,size:50%,size:75%,size:max"},
	[TAB_INTERVALS] = {"interval", "count,dur,size,size:mean,bandwidth"},
	[TAB_THREADS] = {"host,pid,tid", "count"},
	[TAB_FILES] = {"file", "count"},
	[TAB_HOSTS] = {"host", "count"},
};

struct cop_sum *cop_sum_new(unsigned threads, bool names, int64_t first_ns, uint64_t interval_ns)
{
	struct cop_sum *s = calloc(1, sizeof(*s) + threads * sizeof(s->part[0]));

	if (!s)
		return NULL;
	s->threads = threads;
	s->names = names;
	for (unsigned i = 0; i < threads; i++) {
		s->part[i].first = INT64_MAX;
		s->part[i].last = INT64_MIN;
	}
	for (unsigned i = 0; i < TABS; i++) {
		struct cop_tab_conf conf = {.interval_ns = interval_ns};

		cop_tab_keys(tables[i].keys, false, &conf, NULL);
		cop_tab_cols(tables[i].cols, &conf, NULL);
		s->tab[i] = cop_tab_new(&conf, threads, first_ns);
		if (!s->tab[i]) {
			cop_sum_free(s);
			return NULL;
		}
	}
	return s;
}

void cop_sum_free(struct cop_sum *s)
{
	if (!s)
		return;
	for (unsigned i = 0; i < TABS; i++)
		cop_tab_free(s->tab[i]);
	for (unsigned i = 0; i < s->threads; i++)
		for (unsigned k = 0; k < COP_SUM_PARTS; k++)
			cop_union_free(&s->part[i].of[k]);
	free(s);
}

/* ---- events ---- */

/* Names are short: looking for the first letter is quicker than any search that needs
 * preparation. */
static bool holds(struct cop_trace_str s, const char *word, size_t len)
{
	for (size_t i = 0; i + len <= s.len; i++)
		if (s.at[i] == *word && !memcmp(s.at + i, word, len))
			return true;
	return false;
}

static bool is_posix(const struct cop_trace_event *e)
{
	return e->cat.len == 5 && !memcmp(e->cat.at, "POSIX", 5);
}

static bool is_part(const struct cop_trace_event *e, unsigned part)
{
	if (part == COP_SUM_APP)
		return holds(e->cat, "reader", 6) || holds(e->cat, "checkpoint", 10);
	return part == COP_SUM_POSIX ? is_posix(e) : holds(e->name, "compute", 7);
}

/* Adds a key alone. */
static int count(struct cop_sum *s, unsigned tab, unsigned worker, struct cop_trace_str file,
	struct cop_trace_str host)
{
	const struct cop_trace_str none = {"", 0};
	struct cop_trace_event e = {.kind = COP_TRACE_SPAN,
		.name = none,
		.cat = none,
		.pid = none,
		.tid = none,
		.file = file,
		.host = host,
		.count = 1};

	return file.len + host.len ? cop_tab_add(s->tab[tab], worker, &e) : 0;
}

static int count_thread(struct cop_sum *s, unsigned worker, const struct cop_trace_event *e)
{
	struct part *p = &s->part[worker];
	size_t lens[] = {e->host.len, e->pid.len, e->tid.len}, len = sizeof(lens);
	char now[sizeof(p->before)];

	if (e->host.len + e->pid.len + e->tid.len > sizeof(now) - len)
		return cop_tab_add(s->tab[TAB_THREADS], worker, e);
	memcpy(now, lens, len);
	memcpy(now + len, e->host.at, e->host.len);
	len += e->host.len;
	memcpy(now + len, e->pid.at, e->pid.len);
	len += e->pid.len;
	memcpy(now + len, e->tid.at, e->tid.len);
	len += e->tid.len;
	if (len == p->before_len && !memcmp(now, p->before, len))
		return 0;
	memcpy(p->before, now, len);
	p->before_len = len;
	return cop_tab_add(s->tab[TAB_THREADS], worker, e);
}

static int add_parts(struct part *p, const struct cop_trace_event *e)
{
	int64_t end = e->ts_ns + (int64_t)e->dur_ns;
	int rc = 0;

	p->first = COP_MIN(p->first, e->ts_ns);
	p->last = COP_MAX(p->last, end);
	for (unsigned i = 0; i < COP_SUM_PARTS && !rc && e->kind == COP_TRACE_SPAN; i++)
		if (is_part(e, i))
			rc = cop_union_add(&p->of[i], e->ts_ns, end);
	return rc;
}

static int add_span(struct cop_sum *s, unsigned worker, const struct cop_trace_event *e)
{
	struct part *p = &s->part[worker];
	const struct cop_trace_str none = {"", 0};
	int rc = cop_tab_add(s->tab[TAB_FUNCTIONS], worker, e);

	p->spans += e->count;
	if (!rc)
		rc = add_parts(p, e);
	if (!rc && is_posix(e))
		rc = cop_tab_add(s->tab[TAB_INTERVALS], worker, e);
	if (!rc)
		rc = count_thread(s, worker, e);
	if (!rc && s->names)
		rc = count(s, TAB_HOSTS, worker, none, e->host);
	if (!rc && s->names)
		rc = count(s, TAB_FILES, worker, e->file, none);
	return rc;
}

/* If there is no pass for the names: counts what the traces define, or name outright. */
static int add_defined(struct cop_sum *s, unsigned worker, const struct cop_trace_event *e)
{
	const struct cop_trace_str none = {"", 0};

	if (e->name.len != 2 || e->name.at[1] != 'H')
		return 0;
	if (e->name.at[0] == 'F')
		return count(s, TAB_FILES, worker, e->of, none);
	return e->name.at[0] == 'H' ? count(s, TAB_HOSTS, worker, none, e->of) : 0;
}

int cop_sum_add(struct cop_sum *s, unsigned worker, const struct cop_trace_event *e)
{
	struct part *p = &s->part[worker];
	const struct cop_trace_str none = {"", 0};
	int rc = 0;

	switch (e->kind) {
	case COP_TRACE_SPAN:
	case COP_TRACE_AGGREGATE:
		rc = add_span(s, worker, e);
		if (!rc && !s->names && !e->file_is_hash)
			rc = count(s, TAB_FILES, worker, e->file, none);
		if (!rc && !s->names && !e->host_is_hash)
			rc = count(s, TAB_HOSTS, worker, none, e->host);
		return rc;
	case COP_TRACE_META:
		return s->names ? 0 : add_defined(s, worker, e);
	case COP_TRACE_INSTANT:
		p->instants++;
		return 0;
	case COP_TRACE_COUNTER:
		p->counters++;
		return 0;
	default:
		p->flows++;
		return 0;
	}
}

/* ---- the answer ---- */

/* How many rows of a table of threads differ from the row before in their first n keys. */
static uint64_t distinct(const struct cop_rows *r, unsigned n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < r->n; i++) {
		bool same = i > 0;

		for (unsigned k = 0; k < n && same; k++)
			same = r->row[i].key[k].len == r->row[i - 1].key[k].len &&
			       !memcmp(r->row[i].key[k].at, r->row[i - 1].key[k].at,
				       r->row[i].key[k].len);
		sum += !same;
	}
	return sum;
}

static int take_rows(struct cop_sum *s, unsigned tab, const char *sort, struct cop_rows *out,
	struct cop_err *err)
{
	struct cop_tab *t = s->tab[tab];
	int rc;

	s->tab[tab] = NULL;
	rc = cop_tab_rows(t, out, err);
	if (!rc)
		cop_rows_sort(out, sort);
	return rc;
}

static int take_tables(struct cop_sum *s, struct cop_sum_result *out, struct cop_err *err)
{
	struct cop_rows rows = {0};
	int rc = take_rows(s, TAB_FUNCTIONS, "dur", &out->functions, err);

	if (!rc)
		rc = take_rows(s, TAB_INTERVALS, "interval", &out->intervals, err);
	if (!rc)
		rc = take_rows(s, TAB_THREADS, "host", &rows, err);
	out->processes = rc ? 0 : distinct(&rows, 2);
	out->threads = rows.n;
	cop_rows_free(&rows);
	if (!rc)
		rc = take_rows(s, TAB_FILES, "file", &rows, err);
	out->files = rows.n;
	cop_rows_free(&rows);
	if (!rc)
		rc = take_rows(s, TAB_HOSTS, "host", &rows, err);
	out->hosts = rows.n;
	cop_rows_free(&rows);
	return rc;
}

static double in_seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

static int split_time(struct cop_sum *s, struct cop_sum_result *out)
{
	struct cop_union *of = s->part[0].of;
	int64_t first = s->part[0].first, last = s->part[0].last;
	uint64_t closed = 0;
	int rc = 0;

	for (unsigned i = 1; i < s->threads; i++) {
		first = COP_MIN(first, s->part[i].first);
		last = COP_MAX(last, s->part[i].last);
		for (unsigned k = 0; k < COP_SUM_PARTS && !rc; k++)
			rc = cop_union_merge(&of[k], &s->part[i].of[k]);
	}
	out->total_s = last > first ? in_seconds((uint64_t)last - (uint64_t)first) : 0;
	for (unsigned k = 0; k < COP_SUM_PARTS; k++) {
		out->part_s[k] = in_seconds(cop_union_length(&of[k]));
		closed += of[k].closed_ns;
	}
	out->about_s = in_seconds(closed);
	out->app_alone_s = in_seconds(cop_union_alone(&of[COP_SUM_APP], &of[COP_SUM_COMPUTE]));
	out->compute_not_app_s =
		in_seconds(cop_union_alone(&of[COP_SUM_COMPUTE], &of[COP_SUM_APP]));
	out->posix_alone_s = in_seconds(cop_union_alone(&of[COP_SUM_POSIX], &of[COP_SUM_COMPUTE]));
	out->compute_not_posix_s =
		in_seconds(cop_union_alone(&of[COP_SUM_COMPUTE], &of[COP_SUM_POSIX]));
	return rc;
}

int cop_sum_finish(struct cop_sum *s, struct cop_sum_result *out, struct cop_err *err)
{
	*out = (struct cop_sum_result){0};
	for (unsigned i = 0; i < s->threads; i++) {
		out->spans += s->part[i].spans;
		out->instants += s->part[i].instants;
		out->counters += s->part[i].counters;
		out->flows += s->part[i].flows;
	}
	if (split_time(s, out))
		return cop_err_set(err, ENOMEM, "no memory for the summary");
	return take_tables(s, out, err);
}

void cop_sum_result_free(struct cop_sum_result *r)
{
	cop_rows_free(&r->functions);
	cop_rows_free(&r->intervals);
}
