/* SPDX-License-Identifier: BSD-3-Clause */
#include <lz4.h>

#include "fabric/wire/wire.h"

#define MAGIC 0x34706f63u /* "cop4" */

struct head {
	uint32_t magic, raw_len, blocks, reserved;
};

struct block {
	uint32_t end; /* end of its packed bytes, relative to the first block's start; an
			 incompressible block is stored raw */
	uint32_t sum;
};

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "blobs are used in place");

static size_t block_count(size_t raw_len)
{
	return (raw_len + COP_PACK_BLOCK - 1) / COP_PACK_BLOCK;
}

static size_t raw_block(size_t raw_len, size_t i)
{
	return COP_MIN((size_t)COP_PACK_BLOCK, raw_len - i * COP_PACK_BLOCK);
}

static uint32_t sum32(const void *data, size_t len)
{
	return (uint32_t)cop_hash64(data, len, 0);
}

/* Packs one block to out, which has space for the raw block; returns the bytes used. */
static size_t pack_block(const char *raw, size_t len, char *out)
{
	int n = LZ4_compress_default(raw, out, (int)len, (int)len - 1);

	if (n > 0)
		return (size_t)n;
	memcpy(out, raw, len);
	return len;
}

/* Frees the unused end of p; on failure p is unchanged. */
static void *shrink_block(void *p, size_t bytes)
{
	void *smaller = realloc(p, bytes);

	return smaller ? smaller : p;
}

int cop_pack(const void *raw, size_t len, void **blob, size_t *blob_len)
{
	size_t blocks = block_count(len), limit = len / 10 * 9, used = 0;
	size_t front = sizeof(struct head) + blocks * sizeof(struct block);
	struct head *h;
	struct block *b;
	char *data;

	if (len == 0 || len > UINT32_MAX)
		return -ENODATA;
	h = calloc(1, front + len);
	if (!h)
		return -ENOMEM;
	b = (struct block *)(h + 1);
	data = (char *)h + front;
	*h = (struct head){MAGIC, (uint32_t)len, (uint32_t)blocks, 0};
	for (size_t i = 0; i < blocks && front + used <= limit; i++) {
		const char *from = (const char *)raw + i * COP_PACK_BLOCK;

		used += pack_block(from, raw_block(len, i), data + used);
		b[i] = (struct block){(uint32_t)used, sum32(from, raw_block(len, i))};
	}
	if (front + used > limit) {
		free(h);
		return -ENODATA;
	}
	*blob_len = front + used;
	*blob = shrink_block(h, *blob_len);
	return 0;
}

int cop_pack_check(const void *blob, size_t blob_len, size_t raw_len)
{
	const struct head *h = blob;
	const struct block *b = (const struct block *)(h + 1);
	uint32_t at = 0;
	size_t front;

	if (blob_len < sizeof(*h) || h->magic != MAGIC || h->raw_len != raw_len || !raw_len ||
		h->blocks != block_count(raw_len))
		return -EBADMSG;
	front = sizeof(*h) + h->blocks * sizeof(*b);
	if (blob_len < front)
		return -EBADMSG;
	for (uint32_t i = 0; i < h->blocks; at = b[i++].end)
		if (b[i].end <= at || b[i].end - at > raw_block(raw_len, i) ||
			b[i].end > blob_len - front)
			return -EBADMSG;
	return at == blob_len - front ? 0 : -EBADMSG;
}

/* Unpacks the whole block i to out. */
static int unpack_block(const struct head *h, size_t i, char *out)
{
	const struct block *b = (const struct block *)(h + 1);
	const char *data = (const char *)(b + h->blocks);
	size_t start = i ? b[i - 1].end : 0, packed = b[i].end - start;
	size_t raw = raw_block(h->raw_len, i);

	if (packed == raw)
		memcpy(out, data + start, raw);
	else if (LZ4_decompress_safe(data + start, out, (int)packed, (int)raw) != (int)raw)
		return -EBADMSG;
	return sum32(out, raw) == b[i].sum ? 0 : -EBADMSG;
}

int cop_pack_read(const void *blob, size_t off, size_t len, void *out)
{
	const struct head *h = blob;
	char *scratch = NULL, *to = out;
	int rc = off <= h->raw_len && len <= h->raw_len - off ? 0 : -EBADMSG;

	while (len && !rc) {
		size_t i = off / COP_PACK_BLOCK, skip = off % COP_PACK_BLOCK;
		size_t n = COP_MIN(len, raw_block(h->raw_len, i) - skip);
		bool whole = n == raw_block(h->raw_len, i);

		if (!whole && !scratch && !(scratch = malloc(COP_PACK_BLOCK)))
			return -ENOMEM;
		rc = unpack_block(h, i, whole ? to : scratch);
		if (!rc && !whole)
			memcpy(to, scratch + skip, n);
		to += n;
		off += n;
		len -= n;
	}
	free(scratch);
	return rc;
}
