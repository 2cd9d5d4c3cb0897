/* SPDX-License-Identifier: BSD-3-Clause */
/* Sorts events into rows: each thread has one for each depth of spans, each category of
 * asynchronous spans of a process has as many as overlap. Within a row spans follow each other, so
 * that the page finds what is visible by bisection, and draws one span for a pixel. */
#include <errno.h>
#include <math.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/base/json.h"
#include "trace/timeline/timeline_priv.h"

#define ROWS_MAX 200u /* of a lane; deeper spans are in the last one */
#define BUCKETS 512u
#define ARGS_EACH 512u
#define ARGS_ALL (48 * COP_MIB)
#define OTHERS_MAX 200000u /* of instants, counters and flows each */

struct span {
	int64_t start;
	uint64_t dur;
	uint32_t name;
	uint32_t args_len;
	size_t args; /* in the text of all */
	bool unfinished;
};
struct row {
	struct span *at;
	size_t n, cap;
	int64_t end;
};
struct instant {
	int64_t at;
	uint32_t name;
};
struct lane {
	struct row *row;
	size_t rows, row_cap;
	struct instant *instant;
	size_t instants, instant_cap;
	size_t open; /* of a thread: the depth of what is running */
};
struct value {
	int64_t at;
	double value;
};
struct counter {
	struct cop_hlink link;
	uint32_t process, name;
	struct value *at;
	size_t n, cap;
	size_t len;
	char series[];
};
/* A category of asynchronous spans. */
struct extra {
	struct cop_hlink link;
	uint32_t process;
	struct lane lane;
	size_t index; /* among all lanes */
	size_t len;
	char cat[];
};
struct name {
	struct cop_hlink link;
	uint32_t id;
	size_t name_len, cat_len;
	char bytes[];
};
struct end { /* the last point of a flow */
	struct cop_hlink link;
	uint64_t id;
	size_t lane;
	int64_t at;
};
struct arrow {
	size_t from, to;
	int64_t at[2];
};

struct cop_timeline {
	unsigned threads;
	size_t limit;
	struct cop_order *order;
	struct crew crew;
	struct lane *lane; /* of the threads of the crew */
	struct cop_htab names, counters, extras, ends;
	struct name **name;
	struct counter **counter;
	struct extra **extra;
	size_t name_n, name_cap, counter_n, counter_cap, extra_n, extra_cap;
	struct arrow *arrow;
	size_t arrows, arrow_cap;
	struct cop_buf args;
	int64_t first_ns, last_ns;
	uint64_t shortest_ns; /* shorter spans are omitted */
	uint64_t kept[COP_TRACE_KINDS], left[COP_TRACE_KINDS], left_args;
	uint64_t stride[COP_TRACE_KINDS];
	struct per_thread {
		struct seen seen;
		uint64_t n[COP_TRACE_KINDS], of_length[BUCKETS];
	} per[];
};

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

static void lane_free(struct lane *l)
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
	for (size_t i = 0; t->lane && i < t->crew.threads; i++)
		lane_free(&t->lane[i]);
	for (size_t i = 0; i < t->extra_n; i++)
		lane_free(&t->extra[i]->lane);
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
	free(t->lane);
	free(t->name);
	free(t->counter);
	free(t->extra);
	free(t->arrow);
	free(t);
}

/* ---- taking ---- */

/* Eight buckets for each power of two. */
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

/* The longest spans are kept, as many as the limit allows. */
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

static void *grown(void *at, size_t n, size_t *cap, size_t size)
{
	size_t more = *cap ? 2 * *cap : 16;
	void *out = at;

	if (n < *cap)
		return at;
	out = reallocarray(at, more, size);
	if (out)
		*cap = more;
	return out;
}
#define GROW(array, n, cap)                                                                        \
	({                                                                                         \
		void *more = grown(array, n, &(cap), sizeof(*(array)));                            \
		if (more)                                                                          \
			array = more;                                                              \
		more;                                                                              \
	})

/* ---- tables ---- */

/* The number of a name and its category; UINT32_MAX: no memory. */
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
	if (!n || !GROW(t->name, t->name_n, t->name_cap)) {
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
	if (!c || !GROW(t->counter, t->counter_n, t->counter_cap)) {
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
	if (!x || !GROW(t->extra, t->extra_n, t->extra_cap)) {
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

static struct row *row_at(struct lane *l, size_t i)
{
	i = COP_MIN(i, (size_t)ROWS_MAX - 1);
	while (l->rows <= i) {
		if (!GROW(l->row, l->rows, l->row_cap))
			return NULL;
		l->row[l->rows++] = (struct row){.end = INT64_MIN};
	}
	return &l->row[i];
}

/* The row of a span of a thread: below what is running. */
static struct row *nested_row(struct lane *l, int64_t start)
{
	while (l->open && l->row[l->open - 1].end <= start)
		l->open--;
	if (l->open < ROWS_MAX)
		l->open++;
	return row_at(l, l->open - 1);
}

/* The first row that is free. */
static struct row *free_row(struct lane *l, int64_t start)
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
	const struct thread *thread, struct lane *l)
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
	if (!row || s.name == UINT32_MAX || !GROW(row->at, row->n, row->cap))
		return -ENOMEM;
	/* In the last row, spans may overlap; there they are cut. */
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

static int put_instant(struct cop_timeline *t, const struct cop_trace_event *e, struct lane *l)
{
	struct instant i = {e->ts_ns, 0};

	if (is_thinned(t, e))
		return 0;
	i.name = name_of(t, e);
	if (i.name == UINT32_MAX || !GROW(l->instant, l->instants, l->instant_cap))
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
	double value;

	if (is_thinned(t, e))
		return 0;
	while (cop_trace_values_next(&v, &series, &value)) {
		uint32_t name = name_of(t, e);
		struct counter *c;

		if (name == UINT32_MAX)
			return -ENOMEM;
		c = counter_of(t, process_index(t, thread), name, series);
		if (!c || !GROW(c->at, c->n, c->cap))
			return -ENOMEM;
		if (isfinite(value))
			c->at[c->n++] = (struct value){e->ts_ns, value};
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

/* An arrow begins, or goes on, or both. */
static int put_flow(struct cop_timeline *t, uint64_t id, size_t lane, int64_t at, bool in, bool out)
{
	struct end *end = end_of(t, id);

	if (end && in) {
		if (t->arrows >= OTHERS_MAX) {
			t->left[COP_TRACE_FLOW]++;
			return 0;
		}
		if (!GROW(t->arrow, t->arrows, t->arrow_cap))
			return -ENOMEM;
		t->arrow[t->arrows++] =
			(struct arrow){.from = end->lane, .to = lane, .at = {end->at, at}};
	}
	if (!end && (out || in)) {
		end = calloc(1, sizeof(*end));
		if (!end)
			return -ENOMEM;
		end->id = id;
		cop_htab_add(&t->ends, &end->link, id);
	}
	if (end) {
		end->lane = lane;
		end->at = at;
	}
	return 0;
}

static int put_flows(struct cop_timeline *t, const struct cop_trace_event *e,
	const struct thread *thread, size_t lane)
{
	bool slice = e->flow_in || e->flow_out;
	uint64_t id = cop_merge_id(e, thread->process, true, slice ? e->bind_id : e->id);

	if (e->kind == COP_TRACE_FLOW)
		return put_flow(t, id, lane, e->ts_ns, e->ph != 's', e->ph != 'f');
	return slice ? put_flow(t, id, lane, e->ts_ns, e->flow_in, e->flow_out) : 0;
}

/* ---- one event ---- */

static int put_event(void *arg, const struct cop_trace_event *e)
{
	struct cop_timeline *t = arg;
	const struct thread *thread = cop_crew_find(&t->per[0].seen, e);
	size_t lane = (size_t)(thread - t->crew.thread);
	struct lane *l = &t->lane[lane];
	int rc = 0;

	if (e->kind == COP_TRACE_SPAN && is_async(e)) {
		struct extra *x = extra_of(t, process_index(t, thread), e->cat);

		if (!x)
			return -ENOMEM;
		l = &x->lane;
	}
	if (e->kind == COP_TRACE_SPAN)
		rc = put_span(t, e, thread, l);
	else if (e->kind == COP_TRACE_INSTANT || e->kind == COP_TRACE_AGGREGATE)
		rc = put_instant(t, e, l);
	else if (e->kind == COP_TRACE_COUNTER)
		rc = put_counter(t, e, thread);
	return rc ? rc : put_flows(t, e, thread, lane);
}

/* ---- the data ---- */

static void put_text(struct cop_json *j, const char *key, struct cop_trace_str s)
{
	cop_json_bytes(j, key, s.at, s.len);
}

static void put_lane(struct cop_json *j, const struct lane *l)
{
	cop_json_array(j, "rows");
	for (size_t i = 0; i < l->rows; i++)
		cop_json_u64(j, NULL, l->row[i].n);
	cop_json_end(j);
	cop_json_u64(j, "instants", l->instants);
}

static void put_process(struct cop_timeline *t, const struct cop_trace_files *files,
	struct cop_json *j, const struct process *p)
{
	struct cop_buf label = {0};

	cop_process_label(files, p, &label);
	cop_json_object(j, NULL);
	put_text(j, "name", (struct cop_trace_str){label.data ? label.data : "", label.len});
	cop_json_array(j, "threads");
	for (size_t k = 0; k < p->threads; k++) {
		const struct thread *thread = p->thread[k];

		cop_json_object(j, NULL);
		put_text(j, "name", thread->name);
		put_text(j, "tid", thread->tid);
		cop_json_u64(j, "lane", (uint64_t)(thread - t->crew.thread));
		put_lane(j, &t->lane[thread - t->crew.thread]);
		cop_json_end(j);
	}
	cop_json_end(j);
	cop_json_end(j);
	j->out->failed |= label.failed;
	cop_buf_free(&label);
}

static void put_left(const struct cop_timeline *t, struct cop_json *j)
{
	cop_json_object(j, "left");
	cop_json_u64(j, "spans", t->left[COP_TRACE_SPAN]);
	cop_json_u64(j, "shortest", t->shortest_ns);
	cop_json_u64(j, "instants", t->left[COP_TRACE_INSTANT] + t->left[COP_TRACE_AGGREGATE]);
	cop_json_u64(j, "counters", t->left[COP_TRACE_COUNTER]);
	cop_json_u64(j, "flows", t->left[COP_TRACE_FLOW]);
	cop_json_u64(j, "args", t->left_args);
	cop_json_end(j);
}

static void put_names(const struct cop_timeline *t, struct cop_json *j)
{
	cop_json_array(j, "names");
	for (size_t i = 0; i < t->name_n; i++) {
		const struct name *n = t->name[i];

		cop_json_bytes(j, NULL, n->bytes, n->name_len);
		cop_json_bytes(j, NULL, n->bytes + n->name_len, n->cat_len);
	}
	cop_json_end(j);
}

static void put_extras(const struct cop_timeline *t, struct cop_json *j)
{
	cop_json_array(j, "extras");
	for (size_t i = 0; i < t->extra_n; i++) {
		const struct extra *x = t->extra[i];

		cop_json_object(j, NULL);
		cop_json_u64(j, "process", x->process);
		cop_json_bytes(j, "name", x->cat, x->len);
		put_lane(j, &x->lane);
		cop_json_end(j);
	}
	cop_json_end(j);
}

static void put_counters(const struct cop_timeline *t, struct cop_json *j)
{
	cop_json_array(j, "counters");
	for (size_t i = 0; i < t->counter_n; i++) {
		const struct counter *c = t->counter[i];

		cop_json_object(j, NULL);
		cop_json_u64(j, "process", c->process);
		cop_json_u64(j, "name", c->name);
		cop_json_bytes(j, "series", c->series, c->len);
		cop_json_u64(j, "n", c->n);
		cop_json_end(j);
	}
	cop_json_end(j);
}

/* What the columns are. */
static void put_head(
	struct cop_timeline *t, const struct cop_trace_files *files, struct cop_buf *out)
{
	struct cop_json j = cop_json_to(out);
	uint64_t total = t->last_ns > t->first_ns ? (uint64_t)(t->last_ns - t->first_ns) : 0;

	cop_json_object(&j, NULL);
	cop_json_u64(&j, "total", total);
	cop_json_u64(&j, "spans", t->kept[COP_TRACE_SPAN]);
	cop_json_u64(&j, "files", cop_trace_files_count(files));
	cop_json_u64(&j, "arrows", t->arrows);
	put_left(t, &j);
	put_names(t, &j);
	cop_json_array(&j, "processes");
	for (size_t i = 0; i < t->crew.processes; i++)
		put_process(t, files, &j, &t->crew.process[i]);
	cop_json_end(&j);
	put_extras(t, &j);
	put_counters(t, &j);
	cop_json_end(&j);
}

static void put_rows(const struct cop_timeline *t, const struct lane *l, struct cop_buf *out,
	struct cop_buf *args)
{
	for (size_t i = 0; i < l->rows; i++) {
		int64_t before = t->first_ns;

		for (size_t k = 0; k < l->row[i].n; k++) {
			const struct span *s = &l->row[i].at[k];

			cop_buf_varint(out, (uint64_t)(s->start - before));
			cop_buf_varint(out, s->dur);
			cop_buf_varint(out, (uint64_t)s->name << 1 | s->unfinished);
			before = s->start;
			cop_buf_varint(args, s->args_len);
			cop_buf_add(args, t->args.data + s->args, s->args_len);
		}
	}
}

static void put_instants(const struct cop_timeline *t, const struct lane *l, struct cop_buf *out)
{
	int64_t before = t->first_ns;

	for (size_t i = 0; i < l->instants; i++) {
		cop_buf_varint(out, (uint64_t)(l->instant[i].at - before));
		cop_buf_varint(out, l->instant[i].name);
		before = l->instant[i].at;
	}
}

static void put_values(const struct cop_timeline *t, const struct counter *c, struct cop_buf *out)
{
	int64_t before = t->first_ns;

	for (size_t k = 0; k < c->n; k++) {
		cop_buf_varint(out, (uint64_t)(c->at[k].at - before));
		cop_buf_add(out, &c->at[k].value, sizeof(c->at[k].value));
		before = c->at[k].at;
	}
}

/* Lanes in order of their numbers, then the extra ones, counters, arrows. */
static void put_columns(const struct cop_timeline *t, struct cop_buf *out, struct cop_buf *args)
{
	for (size_t i = 0; i < t->crew.threads; i++) {
		put_rows(t, &t->lane[i], out, args);
		put_instants(t, &t->lane[i], out);
	}
	for (size_t i = 0; i < t->extra_n; i++) {
		put_rows(t, &t->extra[i]->lane, out, args);
		put_instants(t, &t->extra[i]->lane, out);
	}
	for (size_t i = 0; i < t->counter_n; i++)
		put_values(t, t->counter[i], out);
	for (size_t i = 0; i < t->arrows; i++) {
		const struct arrow *a = &t->arrow[i];

		cop_buf_varint(out, a->from);
		cop_buf_varint(out, (uint64_t)COP_MAX(a->at[0] - t->first_ns, 0));
		cop_buf_varint(out, a->to);
		cop_buf_varint(out, (uint64_t)COP_MAX(a->at[1] - t->first_ns, 0));
	}
}

/* ---- the page ---- */

static int put(const struct cop_page_out *to, const char *text)
{
	return to->write(to->arg, text, strlen(text));
}

static int put_base64(const struct cop_page_out *to, const unsigned char *data, size_t len)
{
	enum { PART = 3 * 16384 };
	char text[PART / 3 * 4 + 1];
	int rc = 0;

	for (size_t at = 0; at < len && !rc; at += PART) {
		size_t n = COP_MIN(len - at, (size_t)PART);

		sodium_bin2base64(text, sizeof(text), data + at, n, sodium_base64_VARIANT_ORIGINAL);
		rc = put(to, text);
	}
	return rc;
}

/* An element that no browser runs, with the deflated bytes. */
static int put_data(const struct cop_page_out *to, const char *id, const struct cop_buf *b)
{
	uLongf len = compressBound(b->len);
	unsigned char *packed = b->failed ? NULL : malloc(len);
	int rc = -ENOMEM;

	if (packed && compress2(packed, &len, (const Bytef *)(b->data ? b->data : ""), b->len, 6) ==
			      Z_OK) {
		rc = put(to, "<script type=\"text/plain\" id=\"");
		rc = rc ? rc : put(to, id);
		rc = rc ? rc : put(to, "\">");
		rc = rc ? rc : put_base64(to, packed, len);
		rc = rc ? rc : put(to, "</script>\n");
	}
	free(packed);
	return rc;
}

/* Only this script and this style may run, and nothing is loaded. */
static int put_policy(const struct cop_page_out *to)
{
	const char *const parts[] = {cop_timeline_js, cop_timeline_css};
	unsigned char sum[2][crypto_hash_sha256_BYTES];
	char text[2][64];
	struct cop_buf b = {0};
	int rc;

	for (size_t i = 0; i < 2; i++) {
		crypto_hash_sha256(sum[i], (const unsigned char *)parts[i], strlen(parts[i]));
		sodium_bin2base64(text[i], sizeof(text[i]), sum[i], sizeof(sum[i]),
			sodium_base64_VARIANT_ORIGINAL);
	}
	cop_buf_printf(&b,
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		"script-src 'sha256-%s'; style-src 'sha256-%s'; img-src data:\">\n",
		text[0], text[1]);
	rc = b.failed ? -ENOMEM : put(to, b.data);
	cop_buf_free(&b);
	return rc;
}

static int put_page(const struct cop_page_out *to, const struct cop_buf *head,
	const struct cop_buf *columns, const struct cop_buf *args)
{
	int rc = put(to,
		"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");

	rc = rc ? rc : put_policy(to);
	rc = rc ? rc
		: put(to, "<link rel=\"icon\" href=\"data:,\">\n<title>Timeline - Copper</title>\n<style>");
	rc = rc ? rc : put(to, cop_timeline_css);
	rc = rc ? rc : put(to, "</style>\n</head>\n");
	rc = rc ? rc : put(to, cop_timeline_html);
	rc = rc ? rc : put_data(to, "head", head);
	rc = rc ? rc : put_data(to, "columns", columns);
	rc = rc ? rc : put_data(to, "args", args);
	rc = rc ? rc : put(to, "<script>");
	rc = rc ? rc : put(to, cop_timeline_js);
	return rc ? rc : put(to, "</script>\n</body>\n</html>\n");
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
	t->lane = rc ? NULL : calloc(t->crew.threads + 1, sizeof(*t->lane));
	if (!t->lane)
		return -ENOMEM;
	choose(t);
	rc = cop_order_each(t->order, put_event, t);
	if (t->first_ns > t->last_ns)
		t->first_ns = t->last_ns = 0;
	put_head(t, files, &head);
	put_columns(t, &columns, &args);
	if (!rc && (head.failed || columns.failed || args.failed || t->args.failed))
		rc = -ENOMEM;
	if (!rc)
		rc = put_page(&(struct cop_page_out){write, arg}, &head, &columns, &args);
	cop_buf_free(&head);
	cop_buf_free(&columns);
	cop_buf_free(&args);
	return rc;
}
