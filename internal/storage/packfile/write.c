/* SPDX-License-Identifier: BSD-3-Clause */
#include "storage/packfile/packfile_priv.h"

#include <fcntl.h>

#include "base/base/safedir.h"

#define BUFFER COP_MIB

struct cop_packfile_writer {
	struct cop_dir dir;
	char *tmp, *source, *path;
	int fd;
	size_t chunk_bytes;
	uint64_t limit, written; /* written: includes the buffer */
	uint32_t records;
	struct cop_buf listings, index, buffer;
};

static void free_writer(struct cop_packfile_writer *w)
{
	cop_buf_free(&w->listings);
	cop_buf_free(&w->index);
	cop_buf_free(&w->buffer);
	cop_dir_done(&w->dir);
	free(w->tmp);
	free(w->source);
	free(w->path);
	free(w);
}

void cop_packfile_abandon(struct cop_packfile_writer *w)
{
	if (!w)
		return;
	if (w->fd >= 0)
		close(w->fd);
	if (w->tmp)
		unlinkat(w->dir.fd, w->tmp, 0);
	free_writer(w);
}

int cop_packfile_create(const char *path, const char *source, size_t chunk_bytes, uint64_t limit,
	struct cop_packfile_writer **out)
{
	struct cop_packfile_writer *w = calloc(1, sizeof(*w));
	struct packfile_head head = {.zero = 0};
	int rc;

	if (!w)
		return -ENOMEM;
	w->fd = -1;
	w->dir.fd = AT_FDCWD;
	w->chunk_bytes = chunk_bytes;
	w->limit = limit;
	w->path = strdup(path);
	w->source = strdup(source);
	rc = w->path && w->source ? cop_dir_of(w->path, &w->dir) : -ENOMEM;
	if (!rc) {
		w->fd = cop_open_temp(&w->dir, &w->tmp);
		rc = COP_MIN(w->fd, 0);
	}
	if (rc) {
		cop_packfile_abandon(w);
		return rc;
	}
	/* The header is written last. */
	cop_buf_add(&w->buffer, &head, sizeof(head));
	w->written = sizeof(head);
	*out = w;
	return 0;
}

static int flush(struct cop_packfile_writer *w)
{
	ssize_t n;

	if (w->buffer.failed)
		return -ENOMEM;
	n = cop_write_full(w->fd, w->buffer.data, w->buffer.len);
	if (n < 0)
		return (int)n;
	if ((size_t)n < w->buffer.len)
		return -ENOSPC;
	w->buffer.len = 0;
	return 0;
}

static uint64_t bytes_of(const struct cop_packfile_writer *w)
{
	return w->written + w->listings.len + strlen(w->source) + w->index.len;
}

static void add_index(
	struct cop_packfile_writer *w, const struct cop_packfile_record *r, uint64_t at)
{
	struct packfile_index i = {.version = r->version,
		.size = r->size,
		.index = r->index,
		.at = at,
		.sum = r->sum,
		.len = r->len,
		.path_len = (uint16_t)strlen(r->path),
		.kind = r->kind,
		.packed = r->packed};

	cop_buf_add(&w->index, &i, sizeof(i));
	cop_buf_add(&w->index, r->path, i.path_len + 1u);
	w->records++;
}

static int add_listing(
	struct cop_packfile_writer *w, struct cop_packfile_record *r, const void *body)
{
	static const char zeros[8];

	add_index(w, r, w->listings.len);
	cop_buf_add(&w->listings, body, r->len);
	cop_buf_add(&w->listings, zeros, -w->listings.len % 8);
	return w->listings.failed || w->index.failed ? -ENOMEM : 0;
}

static int add_chunk(struct cop_packfile_writer *w, struct cop_packfile_record *r, const void *body)
{
	add_index(w, r, w->written);
	cop_buf_add(&w->buffer, body, r->len);
	w->written += r->len;
	if (w->index.failed)
		return -ENOMEM;
	return w->buffer.failed || w->buffer.len >= BUFFER ? flush(w) : 0;
}

int cop_packfile_add(struct cop_packfile_writer *w, const struct cop_packfile_record *given,
	const void *body, size_t len)
{
	struct cop_packfile_record r = *given;
	size_t more = sizeof(struct packfile_index) + strlen(r.path) + 1;
	bool listing = r.kind == COP_PACKFILE_LISTING;
	size_t tail = w->listings.len + w->index.len + more + (listing ? len + 8 : 0);

	if (len > UINT32_MAX || bytes_of(w) + more + len + 8 > w->limit ||
		tail + strlen(w->source) > TAIL_MAX)
		return -EFBIG;
	r.len = (uint32_t)len;
	r.sum = listing ? 0 : cop_hash64(body, len, 0);
	return listing ? add_listing(w, &r, body) : add_chunk(w, &r, body);
}

static int write_tail(struct cop_packfile_writer *w, struct packfile_head *head)
{
	static const char zeros[8];
	size_t begin;

	cop_buf_add(&w->buffer, zeros, -w->written % 8);
	w->written += -w->written % 8;
	begin = w->buffer.len;
	*head = (struct packfile_head){.magic = PACKFILE_MAGIC,
		.version = COP_PACKFILE_VERSION,
		.records = w->records,
		.tail = w->written,
		.source_at = (uint32_t)w->listings.len,
		.source_len = (uint32_t)strlen(w->source),
		.chunk_bytes = (uint32_t)w->chunk_bytes};
	cop_buf_add(&w->buffer, w->listings.data, w->listings.len);
	cop_buf_add(&w->buffer, w->source, head->source_len);
	cop_buf_add(&w->buffer, w->index.data, w->index.len);
	if (w->buffer.failed)
		return -ENOMEM;
	head->tail_len = w->buffer.len - begin;
	head->tail_sum = cop_hash64(w->buffer.data + begin, head->tail_len, 0);
	head->sum = cop_hash64(head, offsetof(struct packfile_head, sum), 0);
	return flush(w);
}

int cop_packfile_commit(struct cop_packfile_writer *w, uint64_t *bytes)
{
	struct packfile_head head;
	int rc = write_tail(w, &head), fd = w->fd;

	*bytes = head.tail + head.tail_len;
	if (!rc && pwrite(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head))
		rc = errno ? -errno : -ENOSPC;
	w->fd = -1;
	/* A network file system may report ENOSPC only on close. */
	if (close(fd) && !rc)
		rc = -errno;
	if (!rc && renameat(w->dir.fd, w->tmp, w->dir.fd, w->dir.name))
		rc = -errno;
	if (rc) {
		cop_packfile_abandon(w);
		return rc;
	}
	free_writer(w);
	return 0;
}
