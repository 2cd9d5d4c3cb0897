/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes an index within its maximum size: the digests of the chunks, then words and tables. */
#include "trace/read/index_build_priv.h"

/* Maximum share of the index that digests may take. */
#define DIGESTS 0.4

static int end_group(struct build *b, struct cop_buf *text)
{
	int rc = text->failed || !GROW(b, b->x.group, b->x.groups, b->group_cap) ? -ENOMEM : 0;

	if (!rc)
		rc = cop_index_put_blob(
			b->fd, &b->at, text->data, text->len, &b->x.group[b->x.groups]);
	b->x.groups += !rc;
	text->len = 0;
	return rc;
}

/* Appends the kept events of chunk c to text; returns where those of the next chunk start. */
static size_t digest(struct build *b, size_t c, size_t from, struct cop_buf *text)
{
	struct index_chunk *chunk = &b->x.chunk[c];
	struct kept k;

	chunk->group = b->x.groups;
	chunk->digest = text->len;
	for (; from < b->kept.len; from += sizeof(k) + k.len) {
		memcpy(&k, b->kept.data + from, sizeof(k));
		if (k.chunk != c)
			break;
		if (k.name != UINT32_MAX && chunk->always)
			continue;
		chunk->digested[k.kind]++;
		cop_buf_add(text, b->kept.data + from + sizeof(k), k.len);
		cop_buf_str(text, "\n");
	}
	chunk->digest_len = text->len - chunk->digest;
	return from;
}

static int put_digests(struct build *b)
{
	struct cop_buf text = {0};
	size_t from = 0;
	int rc = 0;

	for (size_t c = 0; c < b->x.chunks && !rc; c++) {
		from = digest(b, c, from, &text);
		if (text.len >= INDEX_GROUP_BYTES)
			rc = text.len > BLOCK_MAX ? -E2BIG : end_group(b, &text);
	}
	if (!rc && text.len)
		rc = end_group(b, &text);
	cop_buf_free(&text);
	return rc;
}

/* Removes rare names from the lists of the chunks. */
static void drop_rare(struct build *b)
{
	struct index_words *names = &b->x.words[COP_TRACE_WORD_NAME];

	for (size_t i = 0; i < names->n; i++)
		names->at[i].rare = !b->entry[COP_TRACE_WORD_NAME][i]->common;
	for (size_t c = 0; c < b->x.chunks; c++) {
		struct index_ids *ids = &b->x.chunk[c].word[COP_TRACE_WORD_NAME];
		uint32_t *id = b->x.ids + ids->at;
		size_t n = 0;

		for (size_t i = 0; i < ids->n; i++)
			if (!names->at[id[i]].rare || b->x.chunk[c].always)
				id[n++] = id[i];
		ids->n = n;
	}
}

static int copy_words(struct build *b)
{
	for (unsigned f = 0; f < COP_TRACE_WORDS; f++) {
		struct index_words *w = &b->x.words[f];

		w->at = calloc(w->n + 1, sizeof(*w->at));
		if (!w->at)
			return -ENOMEM;
		for (size_t i = 0; i < w->n; i++)
			w->at[i] = b->entry[f][i]->word;
	}
	return 0;
}

static void forget_words(struct build *b, unsigned f)
{
	b->x.words[f].lost = true;
	b->x.words[f].n = 0;
	for (size_t c = 0; c < b->x.chunks; c++)
		b->x.chunk[c].word[f].n = 0;
}

/* Writes the rest, dropping some of it if the index would otherwise be too large. */
static int put_rest(struct build *b, const struct index_key *key)
{
	static const unsigned less[] = {
		COP_TRACE_WORD_FILE, COP_TRACE_WORD_TID, COP_TRACE_WORD_HOST, COP_TRACE_WORDS};
	uint64_t start = b->at, most = (uint64_t)(b->share * (double)b->file_size);
	int rc = -E2BIG;

	for (size_t i = 0; i < COP_ARRAY_SIZE(less) && rc == -E2BIG; i++) {
		b->at = start;
		if (lseek(b->fd, (off_t)start, SEEK_SET) < 0 || ftruncate(b->fd, (off_t)start))
			return -errno;
		rc = cop_index_finish(b->fd, &b->at, &b->x, key);
		if (!rc && b->at > most)
			rc = -E2BIG;
		if (rc == -E2BIG && less[i] < COP_TRACE_WORDS)
			forget_words(b, less[i]);
	}
	return rc;
}

/* Drops kept events until the digests are small enough, but keeps metadata. */
static int put_digests_within(struct build *b, uint64_t most)
{
	uint64_t start = b->at;
	int rc;

	for (;; b->kept_most = b->kept_most < 4096 ? 0 : b->kept_most / 2) {
		cop_index_make_common(b, b->kept_most);
		cop_index_squeeze(b);
		rc = put_digests(b);
		if (rc || b->at - start <= most || !b->kept_most)
			return rc;
		b->at = start;
		b->x.groups = 0;
		for (size_t c = 0; c < b->x.chunks; c++)
			memset(b->x.chunk[c].digested, 0, sizeof(b->x.chunk[c].digested));
		if (lseek(b->fd, (off_t)start, SEEK_SET) < 0)
			return -errno;
	}
}

int cop_index_put_all(struct build *b, const struct index_key *key)
{
	int rc;

	for (unsigned f = 0; f < COP_TRACE_WORDS; f++)
		if (b->x.words[f].lost && f != COP_TRACE_WORD_NAME)
			forget_words(b, f);
	if (b->x.words[COP_TRACE_WORD_NAME].lost)
		b->kept_most = 0;
	rc = put_digests_within(b, (uint64_t)(DIGESTS * b->share * (double)b->file_size));
	if (!rc)
		rc = copy_words(b);
	if (rc)
		return rc;
	if (b->x.words[COP_TRACE_WORD_NAME].lost)
		forget_words(b, COP_TRACE_WORD_NAME);
	else
		drop_rare(b);
	return put_rest(b, key);
}
