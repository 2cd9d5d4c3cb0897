/* SPDX-License-Identifier: BSD-3-Clause */
/* Sorts events into rows. A thread has one row for each nesting depth; a process has, for each
 * category of asynchronous spans, as many rows as spans overlap. The spans of a row do not overlap,
 * so the page finds the visible ones by bisection and draws one span per pixel. */
#include <math.h>
#include <sodium.h>
#include <zlib.h>

#include "base/base/grow.h"
#include "base/base/json.h"
#include "trace/timeline/page_priv.h"

struct cop_timeline *cop_timeline_new(unsigned threads, const char *dir, size_t limit)
{
	struct cop_timeline *t = calloc(1, sizeof(*t) + threads * sizeof(t->per[0]));

	if (!t)
		return NULL;
	t->threads = threads;
	t->limit = limit;
	t->first_ns = INT64_MAX;
	t->last_ns = INT64_MIN;
	t->order = cop_order_new(
		&(struct cop_order_conf){.threads = threads, .dir = dir, .whole = true});
	if (t->order)
		return t;
	free(t);
	return NULL;
}

static void track_free(struct track *l)
{
	for (size_t i = 0; i < l->rows; i++)
		free(l->row[i].at);
	free(l->row);
	free(l->instant);
}

static void free_links(struct cop_htab *t, size_t offset)
{
	struct cop_hlink *l = cop_htab_after(t, NULL), *next;

	for (; l; l = next) {
		next = cop_htab_after(t, l);
		free((char *)l - offset);
	}
	cop_htab_fini(t);
}

void cop_timeline_free(struct cop_timeline *t)
{
	if (!t)
		return;
	for (size_t i = 0; t->track && i < t->crew.threads; i++)
		track_free(&t->track[i]);
	for (size_t i = 0; i < t->extra_n; i++)
		track_free(&t->extra[i]->track);
	for (size_t i = 0; i < t->counter_n; i++)
		free(t->counter[i]->at);
	free_links(&t->names, offsetof(struct name, link));
	free_links(&t->counters, offsetof(struct counter, link));
	free_links(&t->extras, offsetof(struct extra, link));
	free_links(&t->ends, offsetof(struct end, link));
	for (unsigned i = 0; i < t->threads; i++)
		cop_seen_free(&t->per[i].seen);
	cop_crew_free(&t->crew);
	cop_order_free(t->order);
	cop_buf_free(&t->args);
	free(t->track);
	free(t->name);
	free(t->counter);
	free(t->extra);
	free(t->arrow);
	free(t);
}

/* ---- taking ---- */

/* Returns the bucket of a length; there are eight for each power of two. */
static unsigned bucket_of(uint64_t ns)
{
	unsigned top = ns ? 63 - (unsigned)__builtin_clzll(ns) : 0;

	return ns < 8 ? (unsigned)ns : 8 * top + (unsigned)(ns >> (top - 3) & 7);
}

static uint64_t least_of(unsigned bucket)
{
	return bucket < 24 ? COP_MIN(bucket, 8u)
			   : (UINT64_C(1) << bucket / 8) +
				     (uint64_t)(bucket % 8) * (UINT64_C(1) << (bucket / 8 - 3));
}

int cop_timeline_add(struct cop_timeline *t, unsigned worker, const struct cop_trace_event *e)
{
	struct per_thread *p = &t->per[worker];
	int rc = cop_seen_take(&p->seen, e);

	if (rc || e->kind == COP_TRACE_META)
		return rc;
	p->n[e->kind]++;
	if (e->kind == COP_TRACE_SPAN && !e->unfinished)
		p->of_length[bucket_of(e->dur_ns)]++;
	return cop_order_add(t->order, worker, e);
}

/* ---- limits ---- */

/* Keeps the longest spans, up to the limit. */
static void choose(struct cop_timeline *t)
{
	uint64_t of_length[BUCKETS] = {0}, n = 0;
	unsigned b = BUCKETS;

	for (unsigned i = 0; i < t->threads; i++) {
		for (unsigned k = 0; k < BUCKETS; k++)
			of_length[k] += t->per[i].of_length[k];
		for (unsigned k = 0; k < COP_TRACE_KINDS; k++)
			t->stride[k] += t->per[i].n[k];
	}
	while (b && n + of_length[b - 1] <= t->limit)
		n += of_length[--b];
	t->shortest_ns = b ? least_of(b) : 0;
	for (unsigned k = 0; k < COP_TRACE_KINDS; k++)
		t->stride[k] = 1 + t->stride[k] / OTHERS_MAX;
}

/* ---- tables ---- */

/* Returns the number of a name and category; UINT32_MAX if out of memory. */
static uint32_t name_of(struct cop_timeline *t, const struct cop_trace_event *e)
{
	uint64_t hash = cop_hash64(e->cat.at, e->cat.len, cop_hash64(e->name.at, e->name.len, 0));
	struct cop_hlink *l = cop_htab_first(&t->names, hash);
	struct name *n;

	for (; l; l = cop_htab_next(l)) {
		n = COP_CONTAINER_OF(l, struct name, link);
		if (n->name_len == e->name.len && n->cat_len == e->cat.len &&
			!memcmp(n->bytes, e->name.at, e->name.len) &&
			!memcmp(n->bytes + n->name_len, e->cat.at, e->cat.len))
			return n->id;
	}
	n = calloc(1, sizeof(*n) + e->name.len + e->cat.len);
	if (!n || !COP_GROW(t->name, t->name_n, t->name_cap)) {
		free(n);
		return UINT32_MAX;
	}
	n->name_len = e->name.len;
	n->cat_len = e->cat.len;
	memcpy(n->bytes, e->name.at, e->name.len);
	memcpy(n->bytes + n->name_len, e->cat.at, e->cat.len);
	n->id = (uint32_t)t->name_n;
	t->name[t->name_n++] = n;
	cop_htab_add(&t->names, &n->link, hash);
	return n->id;
}

static uint32_t process_index(const struct cop_timeline *t, const struct thread *thread)
{
	return (uint32_t)(thread->process - t->crew.process);
}

static struct counter *counter_of(
	struct cop_timeline *t, uint32_t process, uint32_t name, struct cop_trace_str series)
{
	const uint32_t key[] = {process, name};
	uint64_t hash = cop_hash64(series.at, series.len, cop_hash64(key, sizeof(key), 0));
	struct cop_hlink *l = cop_htab_first(&t->counters, hash);
	struct counter *c;

	for (; l; l = cop_htab_next(l)) {
		c = COP_CONTAINER_OF(l, struct counter, link);
		if (c->process == process && c->name == name && c->len == series.len &&
			!memcmp(c->series, series.at, series.len))
			return c;
	}
	c = calloc(1, sizeof(*c) + series.len);
	if (!c || !COP_GROW(t->counter, t->counter_n, t->counter_cap)) {
		free(c);
		return NULL;
	}
	c->process = process;
	c->name = name;
	c->len = series.len;
	memcpy(c->series, series.at, series.len);
	t->counter[t->counter_n++] = c;
	cop_htab_add(&t->counters, &c->link, hash);
	return c;
}

static struct extra *extra_of(struct cop_timeline *t, uint32_t process, struct cop_trace_str cat)
{
	uint64_t hash = cop_hash64(cat.at, cat.len, process);
	struct cop_hlink *l = cop_htab_first(&t->extras, hash);
	struct extra *x;

	for (; l; l = cop_htab_next(l)) {
		x = COP_CONTAINER_OF(l, struct extra, link);
		if (x->process == process && x->len == cat.len && !memcmp(x->cat, cat.at, cat.len))
			return x;
	}
	x = calloc(1, sizeof(*x) + cat.len);
	if (!x || !COP_GROW(t->extra, t->extra_n, t->extra_cap)) {
		free(x);
		return NULL;
	}
	x->process = process;
	x->len = cat.len;
	memcpy(x->cat, cat.at, cat.len);
	t->extra[t->extra_n++] = x;
	cop_htab_add(&t->extras, &x->link, hash);
	return x;
}

/* ---- sorting into rows ---- */

static struct row *row_at(struct track *l, size_t i)
{
	i = COP_MIN(i, (size_t)ROWS_MAX - 1);
	while (l->rows <= i) {
		if (!COP_GROW(l->row, l->rows, l->row_cap))
			return NULL;
		l->row[l->rows++] = (struct row){.end = INT64_MIN};
	}
	return &l->row[i];
}

/* Returns the row for a thread's span: the one below the enclosing span. */
static struct row *nested_row(struct track *l, int64_t start)
{
	while (l->open && l->row[l->open - 1].end <= start)
		l->open--;
	if (l->open < ROWS_MAX)
		l->open++;
	return row_at(l, l->open - 1);
}

/* Returns the first row that is free at `start`. */
static struct row *free_row(struct track *l, int64_t start)
{
	size_t i = 0;

	while (i < l->rows && l->row[i].end > start)
		i++;
	return row_at(l, i);
}

static void keep_args(struct cop_timeline *t, const struct cop_trace_event *e, struct span *s)
{
	const struct cop_trace_str *from = e->end_args.len > e->args.len ? &e->end_args : &e->args;

	s->args = t->args.len;
	if (from->len < 3)
		return;
	if (from->len > ARGS_EACH || t->args.len > ARGS_ALL) {
		t->left_args++;
		return;
	}
	cop_members_copy(&t->args, *from);
	if (e->file.len && !e->file_is_hash && t->args.len > s->args + 1) {
		t->args.len--;
		cop_buf_str(&t->args, ",\"file\":\"");
		cop_members_copy_inside(&t->args, e->file);
		cop_buf_str(&t->args, "\"}");
	}
	s->args_len = (uint32_t)(t->args.len - s->args);
}

static bool is_async(const struct cop_trace_event *e)
{
	return e->ph == 'b';
}

static void look_at_time(struct cop_timeline *t, int64_t from, int64_t to)
{
	t->first_ns = COP_MIN(t->first_ns, from);
	t->last_ns = COP_MAX(t->last_ns, to);
}

static int put_span(struct cop_timeline *t, const struct cop_trace_event *e,
	const struct thread *thread, struct track *l)
{
	struct span s = {.start = e->ts_ns, .dur = e->dur_ns, .unfinished = e->unfinished};
	struct row *row;

	if (e->unfinished && thread->last_ns > e->ts_ns)
		s.dur = (uint64_t)(thread->last_ns - e->ts_ns);
	if (s.dur < t->shortest_ns) {
		t->left[COP_TRACE_SPAN]++;
		return 0;
	}
	row = is_async(e) ? free_row(l, e->ts_ns) : nested_row(l, e->ts_ns);
	s.name = name_of(t, e);
	if (!row || s.name == UINT32_MAX || !COP_GROW(row->at, row->n, row->cap))
		return -ENOMEM;
	/* Spans may overlap in the last row: truncate the earlier one. */
	if (row->n && row->end > s.start)
		row->at[row->n - 1].dur = (uint64_t)COP_MAX(s.start - row->at[row->n - 1].start, 0);
	keep_args(t, e, &s);
	row->at[row->n++] = s;
	row->end = s.start + (int64_t)s.dur;
	t->kept[COP_TRACE_SPAN]++;
	look_at_time(t, s.start, row->end);
	return 0;
}

static bool is_thinned(struct cop_timeline *t, const struct cop_trace_event *e)
{
	if (t->kept[e->kind]++ % t->stride[e->kind] == 0)
		return false;
	t->left[e->kind]++;
	return true;
}

static int put_instant(struct cop_timeline *t, const struct cop_trace_event *e, struct track *l)
{
	struct instant i = {e->ts_ns, 0};

	if (is_thinned(t, e))
		return 0;
	i.name = name_of(t, e);
	if (i.name == UINT32_MAX || !COP_GROW(l->instant, l->instants, l->instant_cap))
		return -ENOMEM;
	l->instant[l->instants++] = i;
	look_at_time(t, i.at, i.at);
	return 0;
}

static int put_counter(
	struct cop_timeline *t, const struct cop_trace_event *e, const struct thread *thread)
{
	struct cop_trace_values v = cop_trace_values_of(e);
	struct cop_trace_str series;
	long double value;

	if (is_thinned(t, e))
		return 0;
	while (cop_trace_values_next(&v, &series, &value)) {
		uint32_t name = name_of(t, e);
		struct counter *c;

		if (name == UINT32_MAX)
			return -ENOMEM;
		c = counter_of(t, process_index(t, thread), name, series);
		if (!c || !COP_GROW(c->at, c->n, c->cap))
			return -ENOMEM;
		if (isfinite(value))
			c->at[c->n++] = (struct value){e->ts_ns, (double)value};
	}
	look_at_time(t, e->ts_ns, e->ts_ns);
	return 0;
}

/* ---- flows ---- */

static struct end *end_of(struct cop_timeline *t, uint64_t id)
{
	struct cop_hlink *l = cop_htab_first(&t->ends, id);

	return l ? COP_CONTAINER_OF(l, struct end, link) : NULL;
}

/* Ends an arrow, begins one, or both. */
static int put_flow(
	struct cop_timeline *t, uint64_t id, size_t track, int64_t at, bool in, bool out)
{
	struct end *end = end_of(t, id);

	if (end && in) {
		if (t->arrows >= OTHERS_MAX) {
			t->left[COP_TRACE_FLOW]++;
			return 0;
		}
		if (!COP_GROW(t->arrow, t->arrows, t->arrow_cap))
			return -ENOMEM;
		t->arrow[t->arrows++] =
			(struct arrow){.from = end->track, .to = track, .at = {end->at, at}};
	}
	if (!end && (out || in)) {
		end = calloc(1, sizeof(*end));
		if (!end)
			return -ENOMEM;
		end->id = id;
		cop_htab_add(&t->ends, &end->link, id);
	}
	if (end) {
		end->track = track;
		end->at = at;
	}
	return 0;
}

static int put_flows(struct cop_timeline *t, const struct cop_trace_event *e,
	const struct thread *thread, size_t track)
{
	bool slice = e->flow_in || e->flow_out;
	uint64_t id = cop_merge_id(e, thread->process, true, slice ? e->bind_id : e->id);

	if (e->kind == COP_TRACE_FLOW)
		return put_flow(t, id, track, e->ts_ns, e->ph != 's', e->ph != 'f');
	return slice ? put_flow(t, id, track, e->ts_ns, e->flow_in, e->flow_out) : 0;
}

/* ---- one event ---- */

static int put_event(void *arg, const struct cop_trace_event *e)
{
	struct cop_timeline *t = arg;
	const struct thread *thread = cop_crew_find(&t->per[0].seen, e);
	size_t track = (size_t)(thread - t->crew.thread);
	struct track *l = &t->track[track];
	int rc = 0;

	if (e->kind == COP_TRACE_SPAN && is_async(e)) {
		struct extra *x = extra_of(t, process_index(t, thread), e->cat);

		if (!x)
			return -ENOMEM;
		l = &x->track;
	}
	if (e->kind == COP_TRACE_SPAN)
		rc = put_span(t, e, thread, l);
	else if (e->kind == COP_TRACE_INSTANT || e->kind == COP_TRACE_AGGREGATE)
		rc = put_instant(t, e, l);
	else if (e->kind == COP_TRACE_COUNTER)
		rc = put_counter(t, e, thread);
	return rc ? rc : put_flows(t, e, thread, track);
}

int cop_timeline_write(struct cop_timeline *t, const struct cop_trace_files *files,
	cop_merge_write_fn *write, void *arg)
{
	struct seen *all = calloc(t->threads, sizeof(*all));
	struct cop_buf head = {0}, columns = {0}, args = {0};
	int rc = all ? 0 : -ENOMEM;

	for (unsigned i = 0; i < t->threads && all; i++)
		all[i] = t->per[i].seen;
	if (!rc)
		rc = cop_crew_new(all, t->threads, &t->crew);
	for (unsigned i = 0; i < t->threads && all; i++)
		t->per[i].seen = all[i];
	free(all);
	t->track = rc ? NULL : calloc(t->crew.threads + 1, sizeof(*t->track));
	if (!t->track)
		return -ENOMEM;
	choose(t);
	rc = cop_order_each(t->order, put_event, t);
	if (t->first_ns > t->last_ns)
		t->first_ns = t->last_ns = 0;
	cop_timeline_put_head(t, files, &head);
	cop_timeline_put_columns(t, &columns, &args);
	if (!rc && (head.failed || columns.failed || args.failed || t->args.failed))
		rc = -ENOMEM;
	if (!rc)
		rc = cop_timeline_put_page(
			&(struct cop_page_out){write, arg}, &head, &columns, &args);
	cop_buf_free(&head);
	cop_buf_free(&columns);
	cop_buf_free(&args);
	return rc;
}
