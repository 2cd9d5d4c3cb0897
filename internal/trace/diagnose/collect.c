/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts what causes.c evaluates. A read or write without an offset continues at the process's
 * current position in the file, which open and lseek set. */
#include <math.h>

#include "base/base/grow.h"
#include "trace/diagnose/diagnose_priv.h"

/* ---- things ---- */

struct thing *cop_diagnose_next(const struct things *t, const struct thing *before)
{
	struct cop_hlink *l = cop_htab_after(&t->table, before ? &before->link : NULL);

	return l ? COP_CONTAINER_OF(l, struct thing, link) : NULL;
}

/* Finds or adds the item with this key; NULL if out of memory, or if there are too many items. */
static void *find_or_make(struct things *t, const void *key, size_t len)
{
	uint64_t hash = cop_hash64(key, len, 0);
	struct cop_hlink *l = cop_htab_first(&t->table, hash);
	struct thing *new;

	for (; l; l = cop_htab_next(l)) {
		new = COP_CONTAINER_OF(l, struct thing, link);
		if (new->len == len && !memcmp(new->key, key, len))
			return new;
	}
	new = t->table.count < COP_DIAGNOSE_MAX ? calloc(1, t->size + len) : NULL;
	if (!new)
		return NULL;
	new->key = (char *)new + t->size;
	new->len = len;
	memcpy(new->key, key, len);
	cop_htab_add(&t->table, &new->link, hash);
	return new;
}

static void free_things(struct things *t)
{
	struct thing *thing = cop_diagnose_next(t, NULL), *next;

	for (; thing; thing = next) {
		next = cop_diagnose_next(t, thing);
		free(thing);
	}
	cop_htab_fini(&t->table);
}

struct cop_diagnose *cop_diagnose_new(
	unsigned threads, const struct cop_trace_files *files, const char *paths)
{
	struct cop_diagnose *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	*d = (struct cop_diagnose){.files = files,
		.paths = paths,
		.threads = threads,
		.seen = calloc(threads, sizeof(*d->seen)),
		.clock = cop_diagnose_clock_new(threads),
		.spanned = calloc(cop_trace_files_count(files) + 1, sizeof(*d->spanned)),
		.process.size = sizeof(struct actor),
		.file.size = sizeof(struct file),
		.use.size = sizeof(struct use),
		.part.size = sizeof(struct part),
		.open.size = sizeof(struct open),
		.first = INT64_MAX,
		.last = INT64_MIN,
		.covered = INT64_MIN};
	if (d->seen && d->clock && d->spanned)
		return d;
	cop_diagnose_free(d);
	return NULL;
}

void cop_diagnose_free(struct cop_diagnose *d)
{
	if (!d)
		return;
	for (unsigned i = 0; d->seen && i < d->threads; i++)
		cop_seen_free(&d->seen[i]);
	free(d->seen);
	cop_crew_free(&d->crew);
	cop_diagnose_clock_free(d->clock, d->threads);
	for (struct thing *t = cop_diagnose_next(&d->process, NULL); t;
		t = cop_diagnose_next(&d->process, t))
		free((char *)COP_CONTAINER_OF(t, struct actor, thing)->any.tid.at);
	free_things(&d->process);
	free_things(&d->file);
	free_things(&d->use);
	free_things(&d->part);
	free_things(&d->open);
	cop_union_free(&d->io);
	cop_union_free(&d->compute);
	for (size_t i = 0; i < d->causes; i++) {
		cop_buf_free(&d->cause[i].evidence);
		cop_buf_free(&d->cause[i].command);
		cop_buf_free(&d->cause[i].help);
	}
	free(d->gap);
	free(d->spanned);
	cop_buf_free(&d->room);
	free(d);
}

int cop_diagnose_see(struct cop_diagnose *d, unsigned worker, const struct cop_trace_event *e)
{
	int rc = cop_seen_take(&d->seen[worker], e);

	return rc ? rc : cop_diagnose_clock_take(d->clock, worker, e);
}

/* ---- processes and files ---- */

static void count(struct calls *c, const struct cop_trace_event *e)
{
	c->n += e->count;
	c->ns += e->dur_ns;
	c->bytes += e->has_size ? e->size : 0;
}

static void point(struct cop_trace_str *s, const char **at)
{
	s->at = *at;
	*at += s->len;
}

/* Starts a key with the identity of the process. */
static void put_process(struct cop_diagnose *d, const struct cop_trace_event *e)
{
	size_t head[] = {cop_trace_owner(e), e->host.len, e->pid.len};

	d->room.len = 0;
	cop_buf_add(&d->room, head, sizeof(head));
	cop_buf_add(&d->room, e->host.at, e->host.len);
	cop_buf_add(&d->room, e->pid.at, e->pid.len);
}

static struct actor *process_of(struct cop_diagnose *d, const struct cop_trace_event *e)
{
	struct actor *p;
	const char *at;
	size_t len;

	put_process(d, e);
	len = d->room.len;
	p = d->room.failed ? NULL : find_or_make(&d->process, d->room.data, len);
	if (!p || p->any.count)
		return p;
	p->any = (struct cop_trace_event){.kind = COP_TRACE_SPAN,
		.count = 1,
		.source = e->source,
		.host = e->host,
		.pid = e->pid};
	at = p->thing.key + 3 * sizeof(size_t);
	point(&p->any.host, &at);
	point(&p->any.pid, &at);
	p->any.tid = (struct cop_trace_str){strndup(e->tid.at, e->tid.len), e->tid.len};
	return p;
}

static void *thing_of(struct cop_diagnose *d, struct things *t, const struct cop_trace_event *e,
	struct cop_trace_str what)
{
	put_process(d, e);
	cop_buf_add(&d->room, what.at, what.len);
	return d->room.failed ? NULL : find_or_make(t, d->room.data, d->room.len);
}

static bool holds(struct cop_trace_str s, const char *word)
{
	return memmem(s.at, s.len, word, strlen(word)) != NULL;
}

static bool number(const struct cop_trace_event *e, const char *key, double *out)
{
	struct cop_trace_str value;
	long double number;

	if (!cop_trace_member(e->args, key, &value) || !cop_trace_value_number(value, &number))
		return false;
	*out = (double)number;
	return true;
}

/* ---- one call ---- */

static bool is_open(struct cop_trace_str name)
{
	return holds(name, "open") && !holds(name, "opendir");
}

static bool is_meta(struct cop_trace_str name)
{
	static const char *const words[] = {"open", "close", "stat", "access", "readdir", "unlink",
		"rename", "mkdir", "rmdir", "lookup", "getattr", "readlink", "chmod", "utime"};

	for (size_t i = 0; i < COP_ARRAY_SIZE(words); i++)
		if (holds(name, words[i]))
			return true;
	return false;
}

/* A jump as long as the previous one is a stride, not random access. */
static void place(
	struct cop_diagnose *d, struct use *u, const struct cop_trace_event *e, int64_t at)
{
	int64_t distance = at - u->at;

	if (u->moved.n && distance && distance != u->distance) {
		u->jumps++;
		count(&d->random, e);
	}
	if (u->moved.n)
		u->distance = distance;
	if (at % PAGE || e->size % PAGE) {
		u->unaligned++;
		if (e->size >= SMALL_BYTES && (distance || u->file->shared))
			count(&d->unaligned, e);
	}
	d->random_of += u->moved.n > 0;
	d->unaligned_of++;
	u->at = at + (int64_t)e->size;
	u->extent = COP_MAX(u->extent, (uint64_t)u->at);
}

static void move(
	struct cop_diagnose *d, struct actor *p, struct use *u, const struct cop_trace_event *e)
{
	bool writes = holds(e->name, "write");
	double offset;
	int64_t at;

	count(writes ? &d->write : &d->read, e);
	count(&d->moved[e->size < SMALL_BYTES ? SMALL : LARGE], e);
	count(&p->moved, e);
	if (!u)
		return;
	at = u->sought ? u->seek : u->at;
	if (number(e, "offset", &offset) && offset >= 0 && offset < 9e18)
		at = (int64_t)offset;
	u->sought = false;
	place(d, u, e, at);
	count(&u->moved, e);
	count(&u->file->moved, e);
	u->file->wrote |= writes;
	u->read += writes ? 0 : e->size;
}

static void touch(struct use *u, const struct cop_trace_event *e)
{
	double at;

	if (is_open(e->name)) {
		count(&u->opens, e);
		count(&u->file->opens, e);
		u->at = 0;
		u->sought = false;
	} else if (holds(e->name, "lseek") && (number(e, "ret", &at) || number(e, "offset", &at)) &&
		   at >= 0 && at < 9e18) {
		u->seek = (int64_t)at;
		u->sought = true;
	}
}

static struct use *use_of(struct cop_diagnose *d, struct actor *p, const struct cop_trace_event *e)
{
	struct use *u;

	if (!e->file.len)
		return NULL;
	u = thing_of(d, &d->use, e, e->file);
	if (!u || u->file)
		return u;
	u->file = find_or_make(&d->file, e->file.at, e->file.len);
	if (!u->file)
		return NULL;
	u->file->shared |= u->file->first && u->file->first != p;
	u->file->first = u->file->first ? u->file->first : p;
	return u;
}

static int add_posix(struct cop_diagnose *d, struct actor *p, const struct cop_trace_event *e)
{
	struct use *u = use_of(d, p, e);
	double ret;

	if (e->file.len && !u)
		return d->use.table.count >= COP_DIAGNOSE_MAX ? -E2BIG : -ENOMEM;
	count(&d->posix, e);
	count(&p->posix, e);
	if (is_meta(e->name)) {
		count(&d->meta, e);
		if (number(e, "ret", &ret) && ret < 0)
			count(&d->failed, e);
	}
	if (holds(e->name, "sync"))
		count(&d->sync, e);
	if (e->has_size && e->kind == COP_TRACE_SPAN)
		move(d, p, u, e);
	else if (u)
		touch(u, e);
	return cop_union_add(&d->io, e->ts_ns, e->ts_ns + (int64_t)e->dur_ns);
}

/* ---- events ---- */

static int add_gap(struct cop_diagnose *d, int64_t from, int64_t to)
{
	if (!COP_GROW(d->gap, d->gaps, d->gaps_cap))
		return -ENOMEM;
	d->gap[d->gaps++] = (struct gap){from, to};
	return 0;
}

/* Notes a gap before the event if it is longer than 0.1 % of the time so far. */
static int cover(struct cop_diagnose *d, const struct cop_trace_event *e)
{
	int64_t end = e->ts_ns + (int64_t)e->dur_ns;
	struct gap *file = &d->spanned[e->source];
	int rc = 0;

	if (file->from == file->to)
		*file = (struct gap){e->ts_ns, end};
	file->to = COP_MAX(file->to, end);
	d->first = COP_MIN(d->first, e->ts_ns);
	if (d->covered != INT64_MIN && e->ts_ns > d->covered &&
		e->ts_ns - d->covered > (d->covered - d->first) / 1000)
		rc = add_gap(d, d->covered, e->ts_ns);
	d->covered = COP_MAX(d->covered, end);
	d->last = COP_MAX(d->last, end);
	return rc;
}

static int add_open(struct cop_diagnose *d, const struct cop_trace_event *e)
{
	struct open *o = thing_of(d, &d->open, e, e->name);

	if (!o)
		return -ENOMEM;
	d->first = COP_MIN(d->first, e->ts_ns);
	d->last = COP_MAX(d->last, e->ts_ns);
	if (!o->n++) {
		const char *at = o->thing.key + 3 * sizeof(size_t);

		o->any = *e;
		o->since = e->ts_ns;
		point(&o->any.host, &at);
		point(&o->any.pid, &at);
		point(&o->any.name, &at);
		o->any.tid = (struct cop_trace_str){"", 0};
	}
	return 0;
}

static bool is_compute(const struct cop_trace_event *e)
{
	return holds(e->name, "compute") || cop_trace_str_is(e->cat, "kernel");
}

int cop_diagnose_add(struct cop_diagnose *d, const struct cop_trace_event *e)
{
	struct actor *p;
	struct part *part;
	int rc;

	if (e->kind != COP_TRACE_SPAN && e->kind != COP_TRACE_AGGREGATE) {
		d->first = COP_MIN(d->first, e->ts_ns);
		d->last = COP_MAX(d->last, e->ts_ns);
		return 0;
	}
	if (e->unfinished)
		return add_open(d, e);
	rc = cover(d, e);
	p = process_of(d, e);
	part = p ? thing_of(d, &d->part, e, e->name) : NULL;
	if (!part || rc)
		return rc ? rc : d->part.table.count >= COP_DIAGNOSE_MAX ? -E2BIG : -ENOMEM;
	if (!part->process) {
		part->process = p;
		part->name = (struct cop_trace_str){
			part->thing.key + part->thing.len - e->name.len, e->name.len};
	}
	count(&part->calls, e);
	if (is_compute(e) && e->kind == COP_TRACE_SPAN)
		rc = cop_union_add(&d->compute, e->ts_ns, e->ts_ns + (int64_t)e->dur_ns);
	if (!rc && cop_trace_str_is(e->cat, "POSIX"))
		rc = add_posix(d, p, e);
	return rc;
}
