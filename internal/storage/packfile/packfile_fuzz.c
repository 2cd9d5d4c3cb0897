/* SPDX-License-Identifier: BSD-3-Clause */
/* Any bytes as a pack. With an odd first byte, the sums of its head and its tail are made right
 * first, so that the fuzzer gets past them. What is read is within limits. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabric/wire/wire.h"
#include "storage/packfile/packfile_priv.h"

#define CHUNK 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void mend(uint8_t *data, size_t size)
{
	struct packfile_head h;

	if (size < sizeof(h))
		return;
	memcpy(&h, data, sizeof(h));
	memcpy(h.magic, PACKFILE_MAGIC, sizeof(h.magic));
	h.version = COP_PACKFILE_VERSION;
	h.chunk_bytes = CHUNK;
	h.tail = sizeof(h) + (h.tail % (size - sizeof(h) + 1)) / 8 * 8;
	h.tail_len = size - h.tail;
	h.tail_sum = cop_hash64(data + h.tail, h.tail_len, 0);
	h.sum = cop_hash64(&h, offsetof(struct packfile_head, sum), 0);
	memcpy(data, &h, sizeof(h));
}

static int make_file(const uint8_t *data, size_t size)
{
	int fd = memfd_create("pack", MFD_CLOEXEC);

	if (fd < 0 || fchmod(fd, 0600) || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	return fd;
}

static void read_listing(const void *listing)
{
	struct cop_listing_entry e;

	for (uint32_t n = 0; listing && n < cop_listing_count(listing); n++)
		cop_listing_at(listing, n, &e);
}

static void read_chunk(struct cop_packfile *p, const struct cop_packfile_record *r)
{
	char *body;

	if (!r)
		return;
	if (r->len > CHUNK)
		abort();
	body = malloc(r->len);
	cop_packfile_read(p, r, body);
	free(body);
}

/* The paths that are in the seeds. */
static void read_all(struct cop_packfile *p)
{
	static const char *const paths[] = {"", "d", "d/has"};

	for (size_t i = 0; i < COP_ARRAY_SIZE(paths); i++) {
		read_listing(cop_packfile_listing(p, paths[i]));
		for (uint64_t index = 0; index < 4; index++)
			read_chunk(p, cop_packfile_any(p, paths[i], index));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size + 1);
	struct cop_packfile *p;

	if (size)
		memcpy(copy, data, size);
	if (size && data[0] & 1)
		mend(copy, size);
	if (cop_packfile_open_fd(make_file(copy, size), "/s", CHUNK, 0, &p) == 0) {
		read_all(p);
		cop_packfile_free(p);
	}
	free(copy);
	return 0;
}
