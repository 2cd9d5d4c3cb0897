/* SPDX-License-Identifier: BSD-3-Clause */
/* Builds the index of a file in one pass. Which names are rare is known only at the end, so the
 * events of all names that may be rare are kept, in order, within a budget; when it is exhausted,
 * the names with the most bytes become common. */
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/base/safedir.h"
#include "trace/read/index_build_priv.h"

#define KEPT_MAX (64 * COP_MIB)
/* The maximum size of an index as a share of its file; the share of the index for windows; and the
 * limit for kept events, before deflating, as a multiple of the maximum size. */
#define SHARE 0.05
#define WINDOWS 0.4
#define KEPT 3.0

static struct index_chunk *chunk_now(struct build *b)
{
	return &b->x.chunk[b->x.chunks - 1];
}

/* ---- words ---- */

static struct entry *find_entry(
	const struct build *b, unsigned f, const struct index_word *w, uint64_t hash)
{
	struct cop_hlink *l = cop_htab_first(&b->table[f], hash);

	for (; l; l = cop_htab_next(l)) {
		struct entry *e = COP_CONTAINER_OF(l, struct entry, link);

		if (e->word.form == w->form && e->word.text.len == w->text.len &&
			!memcmp(e->bytes, w->text.at, w->text.len))
			return e;
	}
	return NULL;
}

static struct entry *add_entry(
	struct build *b, unsigned f, const struct index_word *w, uint64_t hash)
{
	struct index_words *words = &b->x.words[f];
	struct entry *e;

	if (words->n == INDEX_WORDS_MAX) {
		words->lost = true;
		return NULL;
	}
	if (!GROW(b, b->entry[f], words->n, b->entry_cap[f]))
		return NULL;
	e = calloc(1, sizeof(*e) + w->text.len);
	if (!e) {
		b->rc = -ENOMEM;
		return NULL;
	}
	memcpy(e->bytes, w->text.at, w->text.len);
	e->word = (struct index_word){{e->bytes, w->text.len}, w->form, false};
	e->id = (uint32_t)words->n;
	b->entry[f][words->n++] = e;
	cop_htab_add(&b->table[f], &e->link, hash);
	return e;
}

/* Adds a word of an event to the current chunk and returns its entry; NULL if there are too many
 * words. */
static struct entry *take_word(struct build *b, unsigned f, const struct index_word *w)
{
	struct entry *e = b->last[f];
	uint64_t hash;

	if (b->x.words[f].lost)
		return NULL;
	if (!e || e->word.form != w->form || e->word.text.len != w->text.len ||
		memcmp(e->bytes, w->text.at, w->text.len)) {
		hash = cop_hash64(w->text.at, w->text.len, w->form);
		e = find_entry(b, f, w, hash);
		if (!e)
			e = add_entry(b, f, w, hash);
		if (!e)
			return NULL;
		b->last[f] = e;
	}
	if (e->chunk != b->x.chunks && GROW(b, b->now[f].at, b->now[f].n, b->now[f].cap))
		b->now[f].at[b->now[f].n++] = e->id;
	e->chunk = b->x.chunks;
	return e;
}

static enum index_form form_of(const struct fields *f, bool is_hash, unsigned field)
{
	return !is_hash ? WORD_PLAIN : f->f[field].type == T_NUMBER ? WORD_HASH : WORD_HASH_TEXT;
}

/* ---- kept events ---- */

static void keep(struct build *b, uint32_t name, const struct cop_trace_event *e)
{
	const struct kept head = {b->x.chunks - 1, e->raw.len, name, (uint8_t)e->kind};

	cop_buf_add(&b->kept, &head, sizeof(head));
	cop_buf_add(&b->kept, e->raw.at, e->raw.len);
}

/* Whether a kept event is still needed. */
static bool is_kept(const struct build *b, const struct kept *k)
{
	return k->name == UINT32_MAX || !b->entry[COP_TRACE_WORD_NAME][k->name]->common;
}

static uint64_t kept_now(const struct build *b)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < b->x.words[COP_TRACE_WORD_NAME].n; i++)
		if (!b->entry[COP_TRACE_WORD_NAME][i]->common)
			sum += b->entry[COP_TRACE_WORD_NAME][i]->kept;
	return sum;
}

/* */
void cop_index_make_common(struct build *b, uint64_t most)
{
	uint64_t sum = kept_now(b);

	while (sum > most) {
		struct entry *largest = NULL;

		for (size_t i = 0; i < b->x.words[COP_TRACE_WORD_NAME].n; i++) {
			struct entry *e = b->entry[COP_TRACE_WORD_NAME][i];

			if (!e->common && (!largest || e->kept > largest->kept))
				largest = e;
		}
		if (!largest)
			return;
		largest->common = true;
		sum -= largest->kept;
	}
}

/* Drops the events of common names. */
void cop_index_squeeze(struct build *b)
{
	size_t to = 0, from = 0;

	while (from < b->kept.len) {
		struct kept k;
		size_t len;

		memcpy(&k, b->kept.data + from, sizeof(k));
		len = sizeof(k) + k.len;
		if (is_kept(b, &k)) {
			memmove(b->kept.data + to, b->kept.data + from, len);
			to += len;
		}
		from += len;
	}
	b->kept.len = to;
}

static void keep_rare(struct build *b, struct entry *name, const struct cop_trace_event *e)
{
	if (name->common)
		return;
	name->kept += e->raw.len;
	if (name->kept > b->kept_most / 4) {
		name->common = true;
		return;
	}
	keep(b, name->id, e);
	if (b->kept.len < 2 * b->kept_most)
		return;
	cop_index_make_common(b, b->kept_most / 2);
	cop_index_squeeze(b);
}

/* ---- one event ---- */

static void take_times(struct index_chunk *c, const struct cop_trace_event *e)
{
	c->first_ns = COP_MIN(c->first_ns, e->ts_ns);
	c->begin_ns = COP_MAX(c->begin_ns, e->ts_ns);
	c->end_ns = COP_MAX(c->end_ns, e->ts_ns + (int64_t)e->dur_ns);
}

static int on_record(struct sink *s, const struct fields *f, struct record *r)
{
	struct build *b = COP_CONTAINER_OF(s, struct build, sink);
	const struct cop_trace_event *e = &r->e;
	const struct index_word words[COP_TRACE_WORDS] = {{e->name, WORD_PLAIN, false},
		{e->cat, WORD_PLAIN, false}, {e->pid, WORD_PLAIN, false},
		{e->tid, WORD_PLAIN, false}, {e->host, form_of(f, e->host_is_hash, F_HHASH), false},
		{e->file, form_of(f, e->file_is_hash, F_FHASH), false}};
	struct index_chunk *c = chunk_now(b);
	struct entry *name;

	b->events++;
	c->events[e->kind]++;
	if (r->half || !cop_trace_has(f, F_PH) || cop_trace_is_omitted(e))
		c->always = true;
	if (e->kind == COP_TRACE_META) {
		keep(b, UINT32_MAX, e);
		return b->rc;
	}
	take_times(c, e);
	name = take_word(b, COP_TRACE_WORD_NAME, &words[COP_TRACE_WORD_NAME]);
	for (unsigned i = COP_TRACE_WORD_CAT; i < COP_TRACE_WORDS; i++)
		take_word(b, i, &words[i]);
	if (name && !c->always)
		keep_rare(b, name, e);
	return b->kept.failed ? -ENOMEM : b->rc;
}

static void on_broken(struct sink *s, uint64_t line, const char *why)
{
	struct build *b = COP_CONTAINER_OF(s, struct build, sink);

	(void)line;
	(void)why;
	chunk_now(b)->always = true;
}

/* ---- points and chunks ---- */

/* Skips a point whose window would make the index too large; a later point takes its place. */
static void on_point(void *arg, const struct cop_inflate_point *at, const void *window, size_t len)
{
	struct build *b = arg;
	struct index_point *p;

	if (b->rc || (len && (double)b->windows > WINDOWS * b->share * (double)at->packed) ||
		!GROW(b, b->x.point, b->x.points, b->point_cap))
		return;
	p = &b->x.point[b->x.points];
	*p = (struct index_point){.at = *at};
	if (len)
		b->rc = cop_index_put_blob(b->fd, &b->at, window, len, &p->window);
	b->windows += p->window.len;
	b->x.points += !b->rc;
}

static void end_chunk(struct build *b)
{
	struct index_chunk *c = chunk_now(b);

	for (unsigned f = 0; f < COP_TRACE_WORDS; f++) {
		c->word[f] = (struct index_ids){b->x.id_count, b->now[f].n};
		for (size_t i = 0; i < b->now[f].n && !b->rc; i++)
			if (GROW(b, b->x.ids, b->x.id_count, b->id_cap))
				b->x.ids[b->x.id_count++] = b->now[f].at[i];
		b->now[f].n = 0;
	}
}

/* Returns the last point at or before byte raw, plus one; 0: none. */
static size_t point_before(const struct build *b, uint64_t raw)
{
	size_t i = b->x.points;

	while (i && b->x.point[i - 1].at.raw > raw)
		i--;
	return i;
}

/* Begins a chunk at the block that was filled last. */
static void begin_chunk(struct build *b)
{
	struct index_chunk *c;

	if (b->x.chunks)
		end_chunk(b);
	if (!GROW(b, b->x.chunk, b->x.chunks, b->chunk_cap))
		return;
	c = &b->x.chunk[b->x.chunks++];
	*c = (struct index_chunk){.start = b->s->block_raw,
		.line = b->block.line,
		.point = point_before(b, b->s->block_raw),
		.where = b->s->block_split.where,
		.has_base = b->s->block_split.has_base,
		.base_ns = b->s->block_split.base_ns,
		.rank_len = b->s->block_split.rank_len,
		.first_ns = INT64_MAX,
		.begin_ns = INT64_MIN,
		.end_ns = INT64_MIN};
	memcpy(c->rank, b->s->block_split.rank, sizeof(c->rank));
}

/* A plain file may be cut anywhere, but a compressed one only if the block has a point close enough
 * before it. */
static bool is_chunk_due(const struct build *b)
{
	uint64_t raw = b->s->block_raw;
	const struct index_chunk *c = b->x.chunks ? chunk_now((struct build *)b) : NULL;

	if (!c || raw - c->start < b->chunk_bytes)
		return !c;
	return cop_inflate_is_plain(b->s->in) || point_before(b, raw) > c->point;
}

/* The base time follows the events: reads to the end to find it. */
static int find_base(struct build *b)
{
	int rc;

	while ((rc = cop_trace_source_fill(b->s, &b->block)) > 0)
		;
	cop_trace_source_end_names(b->s);
	return rc ? rc : cop_trace_source_rewind(b->s);
}

static int read_all(struct build *b)
{
	int rc;

	while (!b->rc && (rc = cop_trace_source_fill(b->s, &b->block)) > 0) {
		if (is_chunk_due(b))
			begin_chunk(b);
		if (b->rc)
			break;
		if (b->s->broken)
			chunk_now(b)->always = true;
		b->s->broken = 0;
		b->sink.scratch.used = 0;
		rc = cop_trace_parse(&b->sink, &b->block);
		if (rc)
			return rc;
	}
	if (b->rc || rc < 0)
		return b->rc ? b->rc : rc;
	if (!b->x.chunks)
		return 0;
	/* Never skip this chunk, so that every read reports the fault at the end of the file. */
	if (b->s->broken || cop_inflate_fault(b->s->in))
		chunk_now(b)->always = true;
	end_chunk(b);
	b->x.tail_base_ns = b->s->tail_base_ns;
	return b->rc;
}

/* ---- one file ---- */

static int build_init(struct build *b, struct source *s, const struct cop_trace_index_conf *conf)
{
	b->s = s;
	b->sink.record = on_record;
	b->sink.broken = on_broken;
	b->sink.scratch.size = BLOCK_MAX;
	b->chunk_bytes = conf->chunk_bytes ? conf->chunk_bytes : INDEX_CHUNK_BYTES;
	b->share = conf->share > 0 ? conf->share : SHARE;
	b->kept_most = (uint64_t)(KEPT * b->share * (double)b->file_size);
	b->kept_most = COP_MIN(b->kept_most, (uint64_t)KEPT_MAX);
	b->at = sizeof(struct index_head);
	if (lseek(b->fd, (off_t)b->at, SEEK_SET) < 0)
		return -errno;
	return 0;
}

static void build_fini(struct build *b)
{
	for (unsigned f = 0; f < COP_TRACE_WORDS; f++) {
		for (size_t i = 0; i < b->table[f].count; i++)
			free(b->entry[f][i]);
		cop_htab_fini(&b->table[f]);
		free(b->entry[f]);
		free(b->x.words[f].at);
		free(b->now[f].at);
	}
	cop_buf_free(&b->kept);
	free(b->sink.scratch.at);
	free(b->block.memory);
	free(b->x.point);
	free(b->x.group);
	free(b->x.chunk);
	free(b->x.ids);
}

int cop_index_build(struct source *s, int fd, const struct index_key *key,
	const struct cop_trace_index_conf *conf, struct cop_trace_index_result *out)
{
	struct build b = {.fd = fd, .file_size = key->size};
	int rc = build_init(&b, s, conf);

	if (!rc && s->seeks_base)
		rc = find_base(&b);
	cop_inflate_mark(s->in, b.chunk_bytes, on_point, &b);
	if (!rc)
		rc = read_all(&b);
	if (!rc && !b.events)
		rc = -ENODATA;
	if (!rc)
		rc = cop_index_put_all(&b, key);
	out->bytes = b.at;
	out->events = b.events;
	out->chunks = b.x.chunks;
	build_fini(&b);
	return rc;
}
