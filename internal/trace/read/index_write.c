/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the parts of an index; index_read.c reads them. Numbers are LEB128, signed ones
 * zigzag-encoded. */
#include <zlib.h>

#include "trace/read/index_priv.h"

int cop_index_put_blob(int fd, uint64_t *at, const void *data, size_t len, struct index_blob *out)
{
	uLongf packed = compressBound(len);
	char *room = malloc(packed);
	ssize_t n = room ? 0 : -ENOMEM;

	if (room && compress2((Bytef *)room, &packed, data, len, 6) != Z_OK)
		n = -ENOMEM;
	if (!n)
		n = cop_write_full(fd, room, packed);
	if (n > 0) {
		*out = (struct index_blob){
			.at = *at, .len = packed, .raw = len, .hash = cop_hash64(room, packed, 0)};
		*at += packed;
	}
	free(room);
	return n < 0 ? (int)n : 0;
}

static void put_signed(struct cop_buf *b, int64_t v)
{
	cop_buf_varint(b, (uint64_t)v << 1 ^ (v < 0 ? UINT64_MAX : 0));
}

static void put_text(struct cop_buf *b, const char *at, size_t len)
{
	cop_buf_varint(b, len);
	cop_buf_add(b, at, len);
}

static void put_blob(struct cop_buf *b, const struct index_blob *blob)
{
	cop_buf_varint(b, blob->at);
	cop_buf_varint(b, blob->len);
	cop_buf_varint(b, blob->raw);
	cop_buf_add(b, &blob->hash, sizeof(blob->hash));
}

static void put_points(struct cop_buf *b, const struct index *x)
{
	cop_buf_varint(b, x->points);
	for (size_t i = 0; i < x->points; i++) {
		const struct index_point *p = &x->point[i];

		cop_buf_varint(b, p->at.raw);
		cop_buf_varint(b, p->at.packed);
		cop_buf_varint(b, p->at.bits << 1 | p->at.inside);
		if (p->at.inside)
			put_blob(b, &p->window);
	}
}

static void put_words(struct cop_buf *b, const struct index *x)
{
	for (unsigned f = 0; f < COP_TRACE_WORDS; f++) {
		const struct index_words *w = &x->words[f];

		cop_buf_varint(b, w->lost);
		cop_buf_varint(b, w->n);
		for (size_t i = 0; i < w->n; i++) {
			cop_buf_varint(b, (unsigned)w->at[i].form << 1 | w->at[i].rare);
			put_text(b, w->at[i].text.at, w->at[i].text.len);
		}
	}
}

static void put_ids(struct cop_buf *b, const struct index *x, const struct index_ids *ids)
{
	cop_buf_varint(b, ids->n);
	for (size_t i = 0; i < ids->n; i++)
		cop_buf_varint(b, x->ids[ids->at + i]);
}

static void put_chunk(struct cop_buf *b, const struct index *x, const struct index_chunk *c)
{
	cop_buf_varint(b, c->start);
	cop_buf_varint(b, c->line);
	cop_buf_varint(b, c->point);
	cop_buf_varint(b, c->always | (c->where == AT_ARRAY) << 1 | c->has_base << 2);
	put_signed(b, c->base_ns);
	put_text(b, c->rank, c->rank_len);
	for (unsigned k = 0; k < COP_TRACE_KINDS; k++) {
		cop_buf_varint(b, c->events[k]);
		cop_buf_varint(b, c->digested[k]);
	}
	put_signed(b, c->first_ns);
	put_signed(b, c->begin_ns);
	put_signed(b, c->end_ns);
	for (unsigned f = 0; f < COP_TRACE_WORDS; f++)
		put_ids(b, x, &c->word[f]);
	cop_buf_varint(b, c->group);
	cop_buf_varint(b, c->digest);
	cop_buf_varint(b, c->digest_len);
}

static void put_all(struct cop_buf *b, const struct index *x)
{
	put_signed(b, x->tail_base_ns);
	put_points(b, x);
	put_words(b, x);
	cop_buf_varint(b, x->groups);
	for (size_t i = 0; i < x->groups; i++)
		put_blob(b, &x->group[i]);
	cop_buf_varint(b, x->chunks);
	for (size_t i = 0; i < x->chunks; i++)
		put_chunk(b, x, &x->chunk[i]);
}

int cop_index_finish(int fd, uint64_t *at, const struct index *x, const struct index_key *key)
{
	struct index_head head = {.magic = INDEX_MAGIC, .key = *key};
	struct cop_buf b = {0};
	int rc;

	put_all(&b, x);
	rc = b.failed || b.len > INDEX_META_MAX
		     ? -ENOMEM
		     : cop_index_put_blob(fd, at, b.data, b.len, &head.rest);
	cop_buf_free(&b);
	if (rc)
		return rc;
	head.hash = cop_hash64(&head, offsetof(struct index_head, hash), 0);
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	rc = (int)cop_write_full(fd, &head, sizeof(head));
	return rc < 0 ? rc : 0;
}
