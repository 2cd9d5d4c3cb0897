/* SPDX-License-Identifier: BSD-3-Clause */
/* Each member is compressed with a single call, because only then does zlib's size bound hold,
 * which enforces the file limit. Near the limit, members get small: each is at most as long as
 * would fit uncompressed into the remaining space. */
#include <zlib.h>

#include "deflate.h"

#define GZIP (16 + MAX_WBITS) /* zlib's code for a gzip header with the largest window */
#define MEMORY_LEVEL 8

struct cop_deflate {
	int fd, failed; /* -errno of a write */
	uint64_t written, limit;
	size_t len, member_bytes;
	z_stream z;
	unsigned char *text, *packed;
	size_t packed_bytes;
};

int cop_deflate_open(int fd, size_t member_bytes, struct cop_deflate **out)
{
	struct cop_deflate *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	*d = (struct cop_deflate){.fd = fd, .limit = UINT64_MAX, .member_bytes = member_bytes};
	if (deflateInit2(&d->z, Z_BEST_SPEED, Z_DEFLATED, GZIP, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) !=
		Z_OK) {
		free(d);
		return -ENOMEM;
	}
	d->packed_bytes = deflateBound(&d->z, member_bytes);
	d->text = malloc(member_bytes);
	d->packed = malloc(d->packed_bytes);
	if (!d->text || !d->packed) {
		cop_deflate_close(d);
		return -ENOMEM;
	}
	*out = d;
	return 0;
}

void cop_deflate_close(struct cop_deflate *d)
{
	if (!d)
		return;
	deflateEnd(&d->z);
	free(d->text);
	free(d->packed);
	free(d);
}

void cop_deflate_limit(struct cop_deflate *d, uint64_t file_bytes)
{
	d->limit = file_bytes;
}

static int write_whole(int fd, const unsigned char *data, size_t len, size_t *done)
{
	for (*done = 0; *done < len;) {
		ssize_t n = write(fd, data + *done, len - *done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENOSPC;
		*done += (size_t)n;
	}
	return 0;
}

/* Removes an incomplete member, so that the file stays readable to its end. */
static void cut_member(int fd, size_t part)
{
	off_t at = lseek(fd, 0, SEEK_CUR);

	if (part && at >= (off_t)part && !ftruncate(fd, at - (off_t)part))
		lseek(fd, at - (off_t)part, SEEK_SET);
}

int cop_deflate_flush(struct cop_deflate *d)
{
	size_t len, done;

	if (d->failed || !d->len)
		return d->failed;
	deflateReset(&d->z);
	d->z.next_in = d->text;
	d->z.avail_in = (unsigned)d->len;
	d->z.next_out = d->packed;
	d->z.avail_out = (unsigned)d->packed_bytes;
	deflate(&d->z, Z_FINISH);
	len = d->packed_bytes - d->z.avail_out;
	d->len = 0;
	d->failed = write_whole(d->fd, d->packed, len, &done);
	if (d->failed)
		cut_member(d->fd, done);
	else
		d->written += len;
	return d->failed;
}

static bool fits_in_block(struct cop_deflate *d, size_t text)
{
	return d->limit == UINT64_MAX || d->written + deflateBound(&d->z, text) <= d->limit;
}

int cop_deflate_add(struct cop_deflate *d, const void *data, size_t len)
{
	int rc = d->failed;

	if (len > d->member_bytes)
		return -EMSGSIZE;
	if (!rc && (d->len + len > d->member_bytes || !fits_in_block(d, d->len + len)))
		rc = cop_deflate_flush(d);
	if (!rc && !fits_in_block(d, len))
		rc = -ENOBUFS;
	if (rc)
		return rc;
	memcpy(d->text + d->len, data, len);
	d->len += len;
	return 0;
}
