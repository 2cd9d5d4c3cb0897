/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/base/grow.h"
#include "trace/timeline/timeline.h"

#define BUFFER_BYTES (32 * COP_MIB)
/* Memory that all runs share during the merge. */
#define MERGE_BYTES (256 * COP_MIB)
#define READ_MIN (4 * COP_KIB)
#define READ_MAX (64 * COP_KIB)

/* An event in a buffer or a run: this header, then the bytes of its strings. */
#define STRINGS 15
#define FEW 6u /* strings that are always stored */
struct item {
	uint32_t bytes; /* size of the whole item, a multiple of 8 */
	uint32_t len[STRINGS];
	uint8_t kind, id_kind, values;
	char ph, bp, s;
	bool has_size, id_is_text, unfinished, file_is_hash, host_is_hash;
	bool old_async, args_odd, bind_is_text, flow_in, flow_out;
	int64_t ts_ns;
	uint64_t dur_ns, count, size, line;
	uint64_t source;
};
struct run { /* part of a file, or of a buffer */
	int fd;
	off_t at, end;
	char *data; /* buffer for the bytes read, or NULL */
	size_t pos, len, size;
	const char *memory; /* for a buffer: its items in order are index[pos..len) */
	const uint64_t *index;
	const struct item *now; /* NULL at the end of the run */
};
struct part { /* one per thread */
	int fd;
	off_t written;
	char *data;
	size_t used;
	uint64_t *index; /* offsets in data */
	size_t n, cap;
};
struct cop_order {
	struct cop_order_conf conf;
	pthread_mutex_t lock; /* protects run and runs */
	struct run *run;
	size_t runs;
	struct part part[];
};

struct cop_order *cop_order_new(const struct cop_order_conf *conf)
{
	struct cop_order *o = calloc(1, sizeof(*o) + conf->threads * sizeof(o->part[0]));

	if (!o)
		return NULL;
	o->conf = *conf;
	if (!o->conf.buffer_bytes)
		o->conf.buffer_bytes = BUFFER_BYTES;
	pthread_mutex_init(&o->lock, NULL);
	for (unsigned i = 0; i < conf->threads; i++)
		o->part[i].fd = -1;
	return o;
}

void cop_order_free(struct cop_order *o)
{
	if (!o)
		return;
	for (unsigned i = 0; i < o->conf.threads; i++) {
		if (o->part[i].fd >= 0)
			close(o->part[i].fd);
		free(o->part[i].data);
		free(o->part[i].index);
	}
	for (size_t i = 0; i < o->runs; i++)
		free(o->run[i].data);
	free(o->run);
	pthread_mutex_destroy(&o->lock);
	free(o);
}

size_t cop_order_runs_for_test(const struct cop_order *o)
{
	return o->runs;
}

/* ---- sorting a buffer ---- */

static const struct item *item_at(const struct part *p, size_t i)
{
	return (const struct item *)(p->data + p->index[i]);
}

static int compare_items(const struct item *a, const struct item *b)
{
	if (a->ts_ns != b->ts_ns)
		return a->ts_ns < b->ts_ns ? -1 : 1;
	if (a->dur_ns != b->dur_ns)
		return a->dur_ns > b->dur_ns ? -1 : 1;
	if (a->source != b->source)
		return a->source < b->source ? -1 : 1;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	return 0;
}

static int compare_offsets(const void *a, const void *b, void *arg)
{
	const struct part *p = arg;
	const uint64_t *x = a, *y = b;
	int c = compare_items(
		(const struct item *)(p->data + *x), (const struct item *)(p->data + *y));

	return c ? c : (*x > *y) - (*x < *y);
}

static void sort(struct cop_order *o, struct part *p)
{
	if (p->n > 1)
		qsort_r(p->index, p->n, sizeof(*p->index), compare_offsets, p);
	if (o->conf.limit)
		p->n = COP_MIN(p->n, o->conf.limit);
}

/* Copies the items that are still indexed to a new buffer, dropping the rest. Returns false if that
 * would not free half of the buffer, or if memory is short. */
static bool squeeze(struct cop_order *o, struct part *p)
{
	char *data;
	size_t used = 0;

	for (size_t i = 0; i < p->n; i++)
		used += item_at(p, i)->bytes;
	if (used > o->conf.buffer_bytes / 2)
		return false;
	data = malloc(o->conf.buffer_bytes);
	if (!data)
		return false;
	used = 0;
	for (size_t i = 0; i < p->n; i++) {
		const struct item *item = item_at(p, i);

		memcpy(data + used, item, item->bytes);
		p->index[i] = used;
		used += item->bytes;
	}
	free(p->data);
	p->data = data;
	p->used = used;
	return true;
}

/* ---- runs ---- */

static int temp_file(const char *dir)
{
	char *name;
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	if (asprintf(&name, "%s/copper-trace.XXXXXX", dir) < 0)
		return -ENOMEM;
	fd = mkostemp(name, O_CLOEXEC);
	fd = fd < 0 ? -errno : fd;
	if (fd >= 0)
		unlink(name);
	free(name);
	return fd;
}

static int add_run(struct cop_order *o, struct run run)
{
	void *grown;

	pthread_mutex_lock(&o->lock);
	grown = COP_GROW_PLAIN(o->run, o->runs);
	if (grown)
		o->run[o->runs++] = run;
	pthread_mutex_unlock(&o->lock);
	return grown ? 0 : -ENOMEM;
}

static int write_items(struct part *p)
{
	struct cop_buf out = {0};
	ssize_t n = 0;

	for (size_t i = 0; i < p->n && n >= 0; i++) {
		cop_buf_add(&out, item_at(p, i), item_at(p, i)->bytes);
		if (out.len < COP_MIB && i + 1 < p->n)
			continue;
		n = out.failed ? -ENOMEM : cop_write_full(p->fd, out.data, out.len);
		p->written += n > 0 ? n : 0;
		out.len = 0;
	}
	cop_buf_free(&out);
	return n < 0 ? (int)n : 0;
}

static int spill(struct cop_order *o, struct part *p)
{
	off_t from = p->written;
	int rc;

	sort(o, p);
	if (o->conf.limit && squeeze(o, p))
		return 0;
	if (p->fd < 0)
		p->fd = temp_file(o->conf.dir);
	if (p->fd < 0)
		return p->fd;
	rc = write_items(p);
	p->n = p->used = 0;
	return rc ? rc : add_run(o, (struct run){.fd = p->fd, .at = from, .end = p->written});
}

/* ---- adding ---- */

static int reserve_item(struct cop_order *o, struct part *p, size_t bytes)
{
	int rc;

	if (!p->data)
		p->data = malloc(o->conf.buffer_bytes);
	if (!p->data)
		return -ENOMEM;
	if (p->used + bytes > o->conf.buffer_bytes) {
		rc = p->n ? spill(o, p) : -EFBIG;
		if (rc)
			return rc;
		if (p->used + bytes > o->conf.buffer_bytes)
			return -EFBIG;
	}
	return COP_GROW(p->index, p->n, p->cap) ? 0 : -ENOMEM;
}

int cop_order_add(struct cop_order *o, unsigned worker, const struct cop_trace_event *e)
{
	const struct cop_trace_str *s[STRINGS] = {&e->name, &e->cat, &e->pid, &e->tid, &e->file,
		&e->host, &e->id, &e->scope, &e->args, &e->end_args, &e->bind_id, &e->more,
		&e->rank, &e->process, &e->thread};
	unsigned strings = o->conf.whole ? STRINGS : FEW;
	struct part *p = &o->part[worker];
	struct item item = {.kind = (uint8_t)e->kind,
		.id_kind = (uint8_t)e->id_kind,
		.values = e->values,
		.ph = e->ph,
		.bp = e->bp,
		.s = e->s,
		.has_size = e->has_size,
		.id_is_text = e->id_is_text,
		.unfinished = e->unfinished,
		.file_is_hash = e->file_is_hash,
		.host_is_hash = e->host_is_hash,
		.old_async = e->old_async,
		.args_odd = e->args_odd,
		.bind_is_text = e->bind_is_text,
		.flow_in = e->flow_in,
		.flow_out = e->flow_out,
		.ts_ns = e->ts_ns,
		.dur_ns = e->dur_ns,
		.count = e->count,
		.size = e->size,
		.line = e->line,
		.source = e->source};
	size_t bytes = sizeof(item);
	char *to;
	int rc;

	for (unsigned i = 0; i < strings; i++) {
		item.len[i] = (uint32_t)s[i]->len;
		bytes += s[i]->len;
	}
	item.bytes = (uint32_t)((bytes + 7) & ~(size_t)7);
	rc = reserve_item(o, p, item.bytes);
	if (rc)
		return rc;
	to = p->data + p->used;
	memset(to + item.bytes - 8, 0, 8);
	memcpy(to, &item, sizeof(item));
	to += sizeof(item);
	for (unsigned i = 0; i < strings; i++) {
		if (s[i]->len)
			memcpy(to, s[i]->at, s[i]->len);
		to += s[i]->len;
	}
	p->index[p->n++] = p->used;
	p->used += item.bytes;
	return 0;
}

/* ---- merging ---- */

/* Reads until at least `need` bytes are available from pos on, or the run ends. */
static int refill(struct run *r, size_t need, size_t most)
{
	size_t want = COP_MAX(need, most);
	ssize_t n;

	if (r->len > r->pos)
		memmove(r->data, r->data + r->pos, r->len - r->pos);
	r->len -= r->pos;
	r->pos = 0;
	if (want > r->size) {
		char *grown = realloc(r->data, want);

		if (!grown)
			return -ENOMEM;
		r->data = grown;
		r->size = want;
	}
	want = COP_MIN(r->size - r->len, (size_t)(r->end - r->at));
	n = pread(r->fd, r->data + r->len, want, r->at);
	if (n != (ssize_t)want)
		return n < 0 ? -errno : -EIO;
	r->at += n;
	r->len += (size_t)n;
	return 0;
}

/* Advances to the next item of a run. */
static int next(struct run *r, size_t most)
{
	uint32_t bytes;
	int rc = 0;

	r->now = NULL;
	if (r->memory) {
		if (r->pos < r->len)
			r->now = (const struct item *)(r->memory + r->index[r->pos++]);
		return 0;
	}
	if (r->len - r->pos < sizeof(struct item) && r->at < r->end)
		rc = refill(r, sizeof(struct item), most);
	if (rc || r->len == r->pos)
		return rc;
	memcpy(&bytes, r->data + r->pos, sizeof(bytes));
	if (r->len - r->pos < bytes)
		rc = refill(r, bytes, most);
	if (rc)
		return rc;
	r->now = (const struct item *)(r->data + r->pos);
	r->pos += bytes;
	return 0;
}

static bool is_less(const struct run *a, const struct run *b)
{
	return compare_items(a->now, b->now) < 0;
}

/* Restores the heap of runs below i; the earliest event is at the root. */
static void sift(struct run **heap, size_t n, size_t i)
{
	for (;;) {
		size_t k = 2 * i + 1;
		struct run *r = heap[i];

		if (k >= n)
			return;
		if (k + 1 < n && is_less(heap[k + 1], heap[k]))
			k++;
		if (!is_less(heap[k], r))
			return;
		heap[i] = heap[k];
		heap[k] = r;
		i = k;
	}
}

static void event_of(const struct item *item, struct cop_trace_event *e)
{
	struct cop_trace_str *s[STRINGS] = {&e->name, &e->cat, &e->pid, &e->tid, &e->file, &e->host,
		&e->id, &e->scope, &e->args, &e->end_args, &e->bind_id, &e->more, &e->rank,
		&e->process, &e->thread};
	const char *at = (const char *)(item + 1);

	*e = (struct cop_trace_event){.kind = item->kind,
		.id_kind = item->id_kind,
		.values = item->values,
		.ph = item->ph,
		.bp = item->bp,
		.s = item->s,
		.has_size = item->has_size,
		.id_is_text = item->id_is_text,
		.unfinished = item->unfinished,
		.file_is_hash = item->file_is_hash,
		.host_is_hash = item->host_is_hash,
		.old_async = item->old_async,
		.args_odd = item->args_odd,
		.bind_is_text = item->bind_is_text,
		.flow_in = item->flow_in,
		.flow_out = item->flow_out,
		.ts_ns = item->ts_ns,
		.dur_ns = item->dur_ns,
		.count = item->count,
		.size = item->size,
		.line = item->line,
		.source = item->source,
		.raw = {"", 0},
		.of = {"", 0}};
	for (unsigned i = 0; i < STRINGS; i++) {
		*s[i] = (struct cop_trace_str){at, item->len[i]};
		at += item->len[i];
	}
}

static int merge(
	struct cop_order *o, struct run **heap, size_t n, cop_order_visit *visit, void *arg)
{
	size_t most = COP_MAX(READ_MIN, COP_MIN(READ_MAX, MERGE_BYTES / (n + 1)));
	uint64_t left = o->conf.limit ? o->conf.limit : UINT64_MAX;
	struct cop_trace_event e;
	int rc = 0;

	for (size_t i = n / 2; i-- > 0;)
		sift(heap, n, i);
	while (n && left-- && !rc) {
		event_of(heap[0]->now, &e);
		rc = visit(arg, &e);
		if (!rc)
			rc = next(heap[0], most);
		if (!heap[0]->now)
			heap[0] = heap[--n];
		sift(heap, n, 0);
	}
	return rc;
}

/* Sorts the events that remain in the buffers, and adds the buffers to the runs. */
static int add_buffers(struct cop_order *o)
{
	int rc = 0;

	for (unsigned i = 0; i < o->conf.threads && !rc; i++) {
		struct part *p = &o->part[i];

		sort(o, p);
		if (p->n)
			rc = add_run(o, (struct run){.fd = -1,
						.memory = p->data,
						.index = p->index,
						.len = p->n});
	}
	return rc;
}

int cop_order_each(struct cop_order *o, cop_order_visit *visit, void *arg)
{
	struct run **heap;
	size_t n = 0;
	int rc = add_buffers(o);

	heap = rc ? NULL : calloc(o->runs + 1, sizeof(struct run *));
	if (!heap)
		return -ENOMEM;
	for (size_t i = 0; i < o->runs && !rc; i++) {
		rc = next(&o->run[i], READ_MIN);
		if (o->run[i].now)
			heap[n++] = &o->run[i];
	}
	if (!rc)
		rc = merge(o, heap, n, visit, arg);
	free(heap);
	return rc;
}
