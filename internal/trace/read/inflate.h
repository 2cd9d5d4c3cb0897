/* SPDX-License-Identifier: BSD-3-Clause */
/* inflate: reads a plain, gzip (RFC 1952) or zip file, which it recognizes by the first bytes. The
 * members of a zip file are concatenated. A gzip file may have any number of members and may be
 * truncated or damaged anywhere: every byte before the fault is returned. Readahead is limited to a
 * fixed buffer plus the members that other threads inflate in parallel. The content is not
 * interpreted. zlib does the inflating; vendor/README.md explains why. */
#ifndef COP_TRACE_READ_INFLATE_H
#define COP_TRACE_READ_INFLATE_H

#include "base/base/base.h"

/* Only the reader inflates members larger than this. */
#define COP_INFLATE_AHEAD_BYTES (2 * COP_MIB)

struct cop_inflate;

/* Reads from the start of fd, which is borrowed. Returns 0 or -ENOMEM. */
int cop_inflate_open(int fd, struct cop_inflate **out);
void cop_inflate_close(struct cop_inflate *in);
/* Fills the buffer, except at the end of the content. Returns the number of bytes; 0 at the end;
 * -errno if a read fails. */
ssize_t cop_inflate_read(struct cop_inflate *in, void *data, size_t len);
/* After the first read: whether the file is uncompressed. */
bool cop_inflate_is_plain(const struct cop_inflate *in);
/* After the first read: whether the file is gzip. */
bool cop_inflate_is_gzip(const struct cop_inflate *in);
/* After the end: NULL, or why the content ended early, such as "the gzip data is cut off". */
const char *cop_inflate_fault(const struct cop_inflate *in);

/* Inflates a later member for the reader, unless `most` members are pending already. Any thread
 * except the reader may call this after the reader's first read. The reader gets the same bytes
 * either way. Returns false if there is nothing to do now. All calls must return before
 * cop_inflate_close. */
bool cop_inflate_ahead(struct cop_inflate *in, unsigned most);

/* ---- seek points ---- */

#define COP_INFLATE_WINDOW 32768u

/* A point past the start of the file where reading can begin: the start of a member, or of a block
 * within one. Back references of the block need the window before it (as in zran.c, distributed
 * with zlib). */
struct cop_inflate_point {
	uint64_t raw, packed; /* offset of the point in the inflated content, and in the file */
	unsigned bits;        /* bits of the byte before packed that belong to the block */
	bool inside;          /* within a member, so the window is needed */
};
/* Called with the window that precedes the point. */
typedef void cop_inflate_visit(
	void *arg, const struct cop_inflate_point *at, const void *window, size_t len);
/* Call before the first read. Reports points during the reads that follow, each at least `apart`
 * inflated bytes after the last. Disables inflating ahead. */
void cop_inflate_mark(struct cop_inflate *in, uint64_t apart, cop_inflate_visit *visit, void *arg);
/* Call after the first read. Continues at byte `raw` of the content, which is at or after the point
 * `at`; if `at` is NULL, inflates from the start of the file. Disables inflating ahead. If reading
 * begins within a member, its checksum is not verified. -ESPIPE if the content is shorter; another
 * -errno if a read fails. */
int cop_inflate_seek(struct cop_inflate *in, const struct cop_inflate_point *at, const void *window,
	size_t len, uint64_t raw);

#endif
