/* SPDX-License-Identifier: BSD-3-Clause */
/* inflate: reads a plain, gzip (RFC 1952) or zip file, recognized by its first bytes; of a zip
 * file, the concatenated members. A gzip file may have any number of members and may be truncated
 * or damaged anywhere: every byte before the fault is returned. Reads ahead by a fixed buffer, plus
 * the members inflated in parallel by other threads. Does not interpret the content. zlib inflates;
 * vendor/README.md has the reasons. */
#ifndef COP_TRACE_READ_INFLATE_H
#define COP_TRACE_READ_INFLATE_H

#include "base/base/base.h"

/* Larger members are inflated only by the reader. */
#define COP_INFLATE_AHEAD_BYTES (2 * COP_MIB)

struct cop_inflate;

/* Reads from the start of fd, which is borrowed. 0, -ENOMEM. */
int cop_inflate_open(int fd, struct cop_inflate **out);
void cop_inflate_close(struct cop_inflate *in);
/* Fills the buffer, except at the end; 0 at the end; -errno of a read. */
ssize_t cop_inflate_read(struct cop_inflate *in, void *data, size_t len);
/* After the first read: whether the content is the file itself, uncompressed. */
bool cop_inflate_is_plain(const struct cop_inflate *in);
/* After the first read: whether the file is gzip. */
bool cop_inflate_is_gzip(const struct cop_inflate *in);
/* After the end: NULL, or why the end came early: "the gzip data is cut off", ... */
const char *cop_inflate_fault(const struct cop_inflate *in);

/* Any thread except the reader, after the reader's first read: inflates a later member, if there is
 * one, for the reader; at most `most` inflated members are pending. Does not change the bytes read.
 * False if there is no work now. All calls must return before the close. */
bool cop_inflate_ahead(struct cop_inflate *in, unsigned most);

/* ---- seek points ---- */

#define COP_INFLATE_WINDOW 32768u

/* A point other than the start at which reading can begin: the start of a member, or of a block
 * within one, with the window for its back references (as in zran.c, distributed with zlib). */
struct cop_inflate_point {
	uint64_t raw, packed; /* bytes before it: inflated, and in the file */
	unsigned bits;        /* bits of the byte before packed that belong to the block */
	bool inside;          /* within a member: needs the window */
};
/* Called with the window that precedes the point. */
typedef void cop_inflate_visit(
	void *arg, const struct cop_inflate_point *at, const void *window, size_t len);
/* Before the first read: reports points from now on, each at least `apart` inflated bytes after the
 * last. Disables inflating ahead. */
void cop_inflate_mark(struct cop_inflate *in, uint64_t apart, cop_inflate_visit *visit, void *arg);
/* After the first read: continues at byte `raw` of the content, at or after the point; NULL: from
 * the start of the file. Disables inflating ahead. If reading begins within a member, its checksum
 * is not verified. -ESPIPE if the content is shorter; other -errno of a read. */
int cop_inflate_seek(struct cop_inflate *in, const struct cop_inflate_point *at, const void *window,
	size_t len, uint64_t raw);

#endif
