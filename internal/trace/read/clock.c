/* SPDX-License-Identifier: BSD-3-Clause */
/* Corrects the clocks of hosts. Copper's traces contain, once or several times,
 *
 * 	{"id":N,"name":"CO","cat":"dftracer","pid":P,"tid":T,"ts":TS,"ph":"M",
 * 	 "args":{"hhash":H,"name":"clock","value":OFFSET,"rtt":RTT}}
 *
 * which means that at local time TS the local clock was OFFSET microseconds ahead of rank 0's, with
 * an error of at most RTT/2, where RTT is the round-trip time of the measurement (Cristian,
 * Probabilistic clock synchronization, 1989). Offsets are interpolated linearly between
 * measurements and constant before the first and after the last. Both ends of a span are corrected,
 * so nested spans stay nested.
 *
 * Other files contain events of the same hosts, so the offsets must be known before any events are
 * delivered. A separate pass collects them from the files that have an event of Copper's or an
 * offset in their first bytes. */
#include <stdatomic.h>

#include "base/base/grow.h"
#include "trace/read/read_priv.h"

#define TOLD_MAX 20u

struct point {
	int64_t ts_ns, offset_ns;
	uint64_t rtt_ns;
};
struct host {
	struct cop_hlink link;
	struct point *point;
	size_t n, cap;
	size_t len;
	char name[];
};
struct clocks {
	struct cop_htab table;
};

/* ---- the table ---- */

static struct host *find_host(const struct clocks *c, struct cop_trace_str name)
{
	struct cop_hlink *l = cop_htab_first(&c->table, cop_hash64(name.at, name.len, 0));

	for (; l; l = cop_htab_next(l)) {
		struct host *h = COP_CONTAINER_OF(l, struct host, link);

		if (h->len == name.len && !memcmp(h->name, name.at, name.len))
			return h;
	}
	return NULL;
}

static struct host *host_of(struct clocks *c, struct cop_trace_str name)
{
	struct host *h = find_host(c, name);

	if (h)
		return h;
	h = calloc(1, sizeof(*h) + name.len);
	if (!h)
		return NULL;
	h->len = name.len;
	memcpy(h->name, name.at, name.len);
	cop_htab_add(&c->table, &h->link, cop_hash64(name.at, name.len, 0));
	return h;
}

static int add_point(struct clocks *c, struct cop_trace_str name, struct point point)
{
	struct host *h = host_of(c, name);

	if (!h || !COP_GROW(h->point, h->n, h->cap))
		return -ENOMEM;
	h->point[h->n++] = point;
	return 0;
}

void cop_trace_clocks_free(struct clocks *c)
{
	struct cop_hlink *l, *next;

	if (!c)
		return;
	for (l = cop_htab_after(&c->table, NULL); l; l = next) {
		struct host *h = COP_CONTAINER_OF(l, struct host, link);

		next = cop_htab_after(&c->table, l);
		free(h->point);
		free(h);
	}
	cop_htab_fini(&c->table);
	free(c);
}

/* ---- one file ---- */

/* An offset that was found; the file may define its host later. */
struct found {
	struct point point;
	uint64_t hash;
	bool is_hash;
	struct cop_trace_str host; /* owned copy, set if the host is not known yet */
};
struct pass {             /* of one thread */
	struct sink sink; /* must be first */
	struct block block;
	struct names names;
	struct found *found;
	size_t n, cap;
};

static bool has(const struct fields *f, unsigned i)
{
	return cop_trace_has(f, i);
}

/* Extracts the offset from an event; returns false if it has none. */
static bool is_clock(const struct fields *f, const struct cop_trace_event *e, struct found *out)
{
	int64_t rtt = 0;

	*out = (struct found){.host = e->host, .is_hash = e->host_is_hash};
	if (e->kind != COP_TRACE_META || !cop_trace_str_is(e->name, "CO") ||
		!cop_trace_str_is(e->of, "clock") || !has(f, F_TS) || !has(f, F_ARG_VALUE) ||
		!e->host.len)
		return false;
	if (!cop_trace_number(&f->f[F_TS], 1000, &out->point.ts_ns) ||
		!cop_trace_number(&f->f[F_ARG_VALUE], 1000, &out->point.offset_ns) ||
		(has(f, F_RTT) && (!cop_trace_number(&f->f[F_RTT], 1000, &rtt) || rtt < 0)))
		return false;
	out->point.rtt_ns = (uint64_t)rtt;
	if (out->is_hash && !cop_trace_hash(&f->f[F_HHASH], &out->hash))
		return false;
	return out->point.offset_ns <= (int64_t)COP_TRACE_MOST &&
	       out->point.offset_ns >= -(int64_t)COP_TRACE_MOST;
}

static int on_record(struct sink *s, const struct fields *f, struct record *r)
{
	struct pass *p = COP_CONTAINER_OF(s, struct pass, sink);
	struct found found;
	char *copy;

	if (!is_clock(f, &r->e, &found))
		return cop_trace_names_take(&p->names, f, &r->e);
	if (!COP_GROW(p->found, p->n, p->cap))
		return -ENOMEM;
	copy = malloc(found.host.len);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, found.host.at, found.host.len);
	found.host.at = copy;
	p->found[p->n++] = found;
	return 0;
}

static void on_broken(struct sink *s, uint64_t line, const char *why)
{
	(void)s;
	(void)line;
	(void)why;
}

/* Assigns the offsets found in the file to their hosts. */
static int merge_found(struct pass *p, struct clocks *c, pthread_mutex_t *lock)
{
	int rc = 0;

	pthread_mutex_lock(lock);
	for (size_t i = 0; i < p->n; i++) {
		const struct found *f = &p->found[i];
		const struct cop_trace_str *name = NULL;

		if (f->is_hash)
			name = cop_trace_names_get(&p->names, NAME_HOST, f->hash);
		if (!rc)
			rc = add_point(c, name ? *name : f->host, f->point);
		free((char *)f->host.at);
	}
	pthread_mutex_unlock(lock);
	p->n = 0;
	cop_trace_names_free(&p->names);
	p->names = (struct names){0};
	return rc;
}

/* Whether Copper wrote the file, judging by its first bytes, which opening it left in carry. */
static bool is_ours(const struct source *s)
{
	return memmem(s->carry, s->carried, "\"copper\"", 8) ||
	       memmem(s->carry, s->carried, "\"CO\"", 4);
}

static int one_file(
	struct pass *p, const struct file *file, struct clocks *c, pthread_mutex_t *lock)
{
	const char *why;
	int rc = 0, merged;
	bool ours;
	struct source *s = cop_trace_source_open(file, 0, &why, &rc);

	if (!s)
		return rc == -ENOMEM ? rc : 0;
	rc = 0;
	ours = is_ours(s);
	while (!rc && ours && cop_trace_source_fill(s, &p->block) > 0) {
		p->sink.scratch.used = 0;
		rc = cop_trace_parse(&p->sink, &p->block);
	}
	cop_trace_source_free(s);
	merged = merge_found(p, c, lock);
	return rc ? rc : merged;
}

/* ---- all files ---- */

struct search {
	const struct cop_trace_files *files;
	struct clocks *clocks;
	pthread_mutex_t lock; /* protects clocks and rc */
	_Atomic size_t next;
	int rc;
};

static void *work(void *arg)
{
	struct search *s = arg;
	struct pass p = {.sink = {.record = on_record,
				 .broken = on_broken,
				 .names_only = true,
				 .scratch.size = BLOCK_MAX}};
	int rc = 0;
	size_t i;

	while (!rc && (i = atomic_fetch_add(&s->next, 1)) < s->files->n)
		rc = one_file(&p, &s->files->file[i], s->clocks, &s->lock);
	free(p.sink.scratch.at);
	free(p.block.memory);
	free(p.found);
	pthread_mutex_lock(&s->lock);
	s->rc = s->rc ? s->rc : rc;
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static int by_time(const void *a, const void *b)
{
	const struct point *x = a, *y = b;

	if (x->ts_ns != y->ts_ns)
		return x->ts_ns < y->ts_ns ? -1 : 1;
	return (x->offset_ns > y->offset_ns) - (x->offset_ns < y->offset_ns);
}

static void sort_all(struct clocks *c)
{
	struct cop_hlink *l = cop_htab_after(&c->table, NULL);

	for (; l; l = cop_htab_after(&c->table, l)) {
		struct host *h = COP_CONTAINER_OF(l, struct host, link);

		qsort(h->point, h->n, sizeof(*h->point), by_time);
	}
}

int cop_trace_clocks_new(const struct cop_trace_files *files, unsigned threads, struct clocks **out)
{
	struct search s = {.files = files, .clocks = calloc(1, sizeof(*s.clocks))};
	pthread_t thread[THREADS_MAX];
	unsigned started = 0;

	*out = NULL;
	if (!s.clocks)
		return -ENOMEM;
	pthread_mutex_init(&s.lock, NULL);
	threads = (unsigned)COP_MIN((size_t)threads, files->n);
	while (started + 1 < threads && !cop_thread_start(&thread[started], "clocks", work, &s))
		started++;
	work(&s);
	for (unsigned i = 0; i < started; i++)
		pthread_join(thread[i], NULL);
	pthread_mutex_destroy(&s.lock);
	sort_all(s.clocks);
	if (!s.rc && s.clocks->table.count)
		*out = s.clocks;
	else
		cop_trace_clocks_free(s.clocks);
	return s.rc;
}

/* ---- correction ---- */

/* How far the host's clock is ahead at local time ts. */
static int64_t offset_at(const struct host *h, int64_t ts)
{
	const struct point *p = h->point;
	size_t low = 0, high = h->n;
	__int128 part, span;

	while (low < high) { /* first point after ts */
		size_t mid = low + (high - low) / 2;

		if (p[mid].ts_ns <= ts)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low || low == h->n)
		return p[low ? low - 1 : 0].offset_ns;
	p += low - 1;
	span = (__int128)p[1].ts_ns - p[0].ts_ns;
	part = ((__int128)p[1].offset_ns - p[0].offset_ns) * ((__int128)ts - p[0].ts_ns) * 2;
	return p[0].offset_ns + (int64_t)((part + (part < 0 ? -span : span)) / (2 * span));
}

void cop_trace_clocks_correct(const struct clocks *c, struct cop_trace_event *e)
{
	const struct host *h = c && e->kind != COP_TRACE_META ? find_host(c, e->host) : NULL;
	int64_t end;

	if (!h)
		return;
	end = e->ts_ns + (int64_t)e->dur_ns;
	end -= offset_at(h, end);
	e->ts_ns -= offset_at(h, e->ts_ns);
	if (e->kind != COP_TRACE_SPAN)
		return;
	e->dur_ns = end > e->ts_ns ? (uint64_t)end - (uint64_t)e->ts_ns : 0;
	e->dur_ns = COP_MIN(e->dur_ns, COP_TRACE_MOST);
	e->dur_min_ns = e->dur_max_ns = e->dur_ns;
}

/* ---- reports ---- */

/* Prints microseconds without trailing zeros. */
static void put_us(struct cop_buf *out, const char *sign, uint64_t ns)
{
	unsigned rest = (unsigned)(ns % 1000), digits = 3;

	for (; digits && rest % 10 == 0; digits--)
		rest /= 10;
	cop_buf_printf(out, "%s%llu", sign, (unsigned long long)(ns / 1000));
	if (digits)
		cop_buf_printf(out, ".%0*u", (int)digits, rest);
}

static void put_offset(struct cop_buf *out, int64_t ns)
{
	put_us(out, ns < 0 ? "-" : "+", ns < 0 ? (uint64_t)-ns : (uint64_t)ns);
}

static void tell_host(const struct host *h, struct cop_buf *out)
{
	int64_t least = INT64_MAX, most = INT64_MIN;
	uint64_t rtt = 0;

	for (size_t i = 0; i < h->n; i++) {
		least = COP_MIN(least, h->point[i].offset_ns);
		most = COP_MAX(most, h->point[i].offset_ns);
		rtt = COP_MAX(rtt, h->point[i].rtt_ns);
	}
	cop_buf_printf(out, "clocks: %.*s ", (int)COP_MIN(h->len, (size_t)255), h->name);
	put_offset(out, least);
	if (most != least) {
		cop_buf_str(out, " to ");
		put_offset(out, most);
	}
	put_us(out, " us (± ", (rtt + 1) / 2);
	cop_buf_str(out, " us)\n");
}

static bool is_corrected(const struct host *h)
{
	for (size_t i = 0; i < h->n; i++)
		if (h->point[i].offset_ns)
			return true;
	return false;
}

static int by_name(const void *a, const void *b)
{
	const struct host *x = *(struct host *const *)a, *y = *(struct host *const *)b;
	int c = memcmp(x->name, y->name, COP_MIN(x->len, y->len));

	return c ? c : (x->len > y->len) - (x->len < y->len);
}

void cop_trace_clocks_tell(const struct clocks *c, struct cop_buf *out)
{
	struct cop_hlink *l = c ? cop_htab_after(&c->table, NULL) : NULL;
	const struct host **all;
	size_t n = 0;

	if (!l)
		return;
	all = calloc(c->table.count, sizeof(struct host *));
	for (; l && all; l = cop_htab_after(&c->table, l))
		if (is_corrected(COP_CONTAINER_OF(l, struct host, link)))
			all[n++] = COP_CONTAINER_OF(l, struct host, link);
	if (n)
		qsort(all, n, sizeof(struct host *), by_name);
	for (size_t i = 0; i < n && i < TOLD_MAX; i++)
		tell_host(all[i], out);
	if (n > TOLD_MAX)
		cop_buf_printf(out, "clocks: and %zu more hosts\n", n - TOLD_MAX);
	free(all);
}
