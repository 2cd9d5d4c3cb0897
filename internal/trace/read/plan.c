/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a file with the help of its index: each chunk is read, replaced by its digest, or only
 * counted. If the index turns out to be damaged, reads everything from there on. */
#include "trace/read/index_priv.h"

enum part { PART_READ, PART_DIGEST, PART_COUNT };
struct plan {
	struct index *x;
	uint8_t *part; /* per chunk */
	bool chosen, skips;
	size_t next;  /* the next chunk to handle */
	bool seek;    /* the stream is not at the next chunk */
	bool broken;  /* a part of the index was damaged */
	char *digest; /* the last group read, and its number plus one */
	size_t group;
};

static const char *reason(enum index_fault fault)
{
	switch (fault) {
	case INDEX_STALE:
		return "the file has changed since its index was made, which is not used: copper trace "
		       "index makes another";
	case INDEX_FOREIGN:
		return "what is called its index is none, and is not used: copper trace index makes "
		       "another";
	case INDEX_DAMAGED:
		return "its index is damaged, and is not used: copper trace index makes another";
	case INDEX_OF_OTHERS:
		return "its index belongs to another user than the file, and is not used";
	default:
		return NULL;
	}
}

struct plan *cop_plan_new(const struct file *file, const struct source *s, const char **why)
{
	enum index_fault fault = INDEX_NONE;
	struct plan *p = NULL;
	struct index *x = file->fd < 0 ? cop_index_open(file->name, s->fd, NULL, &fault) : NULL;

	*why = reason(fault);
	if (x)
		p = calloc(1, sizeof(*p));
	if (p)
		p->part = calloc(x->chunks, 1);
	if (p && p->part) {
		p->x = x;
		return p;
	}
	free(p);
	cop_index_free(x);
	return NULL;
}

void cop_plan_free(struct plan *p)
{
	if (!p)
		return;
	cop_index_free(p->x);
	free(p->digest);
	free(p->part);
	free(p);
}

/* ---- digests ---- */

/* Returns the text of a group of digests; NULL if damaged. */
static const char *group_text(struct plan *p, size_t group)
{
	if (p->group == group + 1)
		return p->digest;
	free(p->digest);
	p->digest = cop_index_blob(p->x, &p->x->group[group]);
	p->group = p->digest ? group + 1 : 0;
	return p->digest;
}

/* Fills a block with a chunk's digest. Returns false if the index is damaged or memory is short. */
static bool fill_digest(struct plan *p, const struct index_chunk *c, struct block *b)
{
	const char *text = c->digest_len ? group_text(p, c->group) : "";

	if (!text || cop_trace_room(&b->memory, &b->room, c->digest_len))
		return false;
	memcpy(b->memory, text + (c->digest_len ? c->digest : 0), c->digest_len);
	cop_json_pad(b->memory + c->digest_len);
	b->data = b->memory;
	b->len = c->digest_len;
	b->line = c->line;
	b->base_ns = c->where != AT_ARRAY ? 0 : c->has_base ? c->base_ns : p->x->tail_base_ns;
	b->rank_len = c->where == AT_ARRAY ? c->rank_len : 0;
	memcpy(b->rank, c->rank, sizeof(b->rank));
	return true;
}

int cop_plan_names(struct plan *p, struct sink *sink, struct block *b)
{
	int rc = 0;

	for (size_t i = 0; i < p->x->chunks && !rc; i++) {
		const struct index_chunk *c = &p->x->chunk[i];

		if (!c->digest_len)
			continue;
		if (!fill_digest(p, c, b))
			return -EIO;
		sink->scratch.used = 0;
		rc = cop_trace_parse(sink, b);
	}
	return rc;
}

/* ---- choosing ---- */

/* Returns the text of a word, resolving hashes. */
static struct cop_trace_str word_text(
	const struct names *names, unsigned f, const struct index_word *w)
{
	const struct field field = {.at = w->text.at,
		.len = (uint32_t)w->text.len,
		.type = w->form == WORD_HASH ? T_NUMBER : T_STRING};
	const struct cop_trace_str *name = NULL;
	uint64_t hash;

	if (w->form != WORD_PLAIN && w->text.len && cop_trace_hash(&field, &hash))
		name = cop_trace_names_get(
			names, f == COP_TRACE_WORD_HOST ? NAME_HOST : NAME_FILE, hash);
	return name ? *name : w->text;
}

/* Returns an array that tells which words may match; NULL: any may. *rare is set if the events of a
 * matching word are in the digests. */
static uint8_t *wanted_words(const struct plan *p, const struct names *names,
	const struct cop_trace_pick *pick, unsigned f, bool *rare)
{
	const struct index_words *w = &p->x->words[f];
	uint8_t *yes;

	if (!(pick->words >> f & 1) || w->lost)
		return NULL;
	yes = calloc(w->n + 1, 1);
	for (size_t i = 0; i < w->n && yes; i++) {
		yes[i] = pick->word(pick->arg, f, word_text(names, f, &w->at[i]));
		*rare |= yes[i] && w->at[i].rare;
	}
	return yes;
}

static bool has_any(const struct index *x, const struct index_ids *ids, const uint8_t *yes)
{
	bool any = !yes;

	for (size_t i = 0; i < ids->n && !any; i++)
		any = yes[x->ids[ids->at + i]];
	return any;
}

static bool is_in_time(
	const struct index_chunk *c, const struct cop_trace_pick *pick, int64_t shift_ns)
{
	__int128 first = (__int128)c->first_ns + shift_ns, begin = (__int128)c->begin_ns + shift_ns;

	return c->first_ns <= c->begin_ns && begin >= pick->from_ns && first <= pick->to_ns;
}

static enum part part_of(const struct plan *p, const struct index_chunk *c,
	const struct cop_trace_pick *pick, int64_t shift_ns, uint8_t *const *yes)
{
	bool in_time = is_in_time(c, pick, shift_ns), all = in_time;

	for (unsigned f = 0; f < COP_TRACE_WORDS && all; f++)
		all = has_any(p->x, &c->word[f], yes[f]);
	if (all || c->always)
		return PART_READ;
	return pick->meta || in_time ? PART_DIGEST : PART_COUNT;
}

void cop_plan_choose(struct plan *p, const struct names *names, const struct cop_trace_pick *pick,
	int64_t shift_ns)
{
	uint8_t *yes[COP_TRACE_WORDS];
	bool rare = false, other = false;

	for (unsigned f = 0; f < COP_TRACE_WORDS; f++)
		yes[f] = wanted_words(p, names, pick, f, f == COP_TRACE_WORD_NAME ? &rare : &other);
	for (size_t i = 0; i < p->x->chunks; i++) {
		p->part[i] = part_of(p, &p->x->chunk[i], pick, shift_ns, yes);
		if (p->part[i] == PART_DIGEST && !rare && !pick->meta)
			p->part[i] = PART_COUNT;
		p->skips |= p->part[i] != PART_READ;
	}
	for (unsigned f = 0; f < COP_TRACE_WORDS; f++)
		free(yes[f]);
}

void cop_plan_count_only(struct plan *p)
{
	memset(p->part, PART_COUNT, p->x->chunks);
	p->skips = true;
}

bool cop_plan_skips(const struct plan *p)
{
	return p->skips;
}

int64_t cop_plan_tail_base(const struct plan *p)
{
	return p->x->tail_base_ns;
}

/* ---- reading ---- */

static void count_chunk(struct source *s, const struct index_chunk *c, bool digested)
{
	for (unsigned k = 0; k < COP_TRACE_KINDS; k++)
		s->skipped.events[k] += c->events[k] - (digested ? c->digested[k] : 0);
	if (c->first_ns > c->begin_ns)
		return;
	s->skipped.first_ns = COP_MIN(s->skipped.first_ns, c->first_ns);
	s->skipped.last_ns = COP_MAX(s->skipped.last_ns, c->end_ns);
}

/* Moves to the start of the chunk: from its point if the window is intact, else by reading up to
 * it. */
static int go_to(struct plan *p, struct source *s, const struct index_chunk *c)
{
	const struct index_point *at = c->point ? &p->x->point[c->point - 1] : NULL;
	const struct cop_inflate_point begin = {0};
	char *window = at && at->at.inside ? cop_index_blob(p->x, &at->window) : NULL;
	int rc;

	if (at && at->at.inside && !window)
		rc = cop_inflate_seek(s->in, NULL, NULL, 0, c->start);
	else
		rc = cop_inflate_seek(s->in, at ? &at->at : &begin, window,
			window ? at->window.raw : 0, c->start);
	free(window);
	s->carried = 0;
	s->ended = false;
	s->raw = c->start;
	s->line = c->line;
	s->split = (struct split){.where = c->where,
		.found = c->where == AT_ARRAY,
		.has_base = c->has_base,
		.base_ns = c->base_ns,
		.rank_len = c->rank_len};
	memcpy(s->split.rank, c->rank, sizeof(s->split.rank));
	s->pending = false;
	p->seek = false;
	return rc;
}

/* Prepares to read from chunk `next` up to the next chunk that is skipped. */
static int read_from(struct plan *p, struct source *s)
{
	const struct index_chunk *c = &p->x->chunk[p->next];
	int rc = p->seek ? go_to(p, s, c) : 0;

	while (p->next < p->x->chunks && p->part[p->next] == PART_READ)
		p->next++;
	s->stop = p->next < p->x->chunks ? p->x->chunk[p->next].start : UINT64_MAX;
	return rc;
}

int cop_plan_step(struct plan *p, struct source *s, struct block *b)
{
	if (p->next && s->raw < s->stop)
		return 0;
	while (p->next < p->x->chunks) {
		const struct index_chunk *c = &p->x->chunk[p->next];
		bool digest = p->part[p->next] == PART_DIGEST && c->digest_len;

		if (p->part[p->next] != PART_READ && digest && !fill_digest(p, c, b))
			p->part[p->next] = PART_READ;
		if (p->part[p->next] == PART_READ)
			return read_from(p, s);
		count_chunk(s, c, digest);
		p->seek = true;
		p->next++;
		s->raw = s->stop = p->next < p->x->chunks ? p->x->chunk[p->next].start : s->raw;
		if (digest)
			return 1;
	}
	return -ENODATA;
}
