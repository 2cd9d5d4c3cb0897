/* SPDX-License-Identifier: BSD-3-Clause */
/* inflate: gives the bytes of a file that is plain, gzip (RFC 1952) or zip, as its first bytes
 * say; of a zip file, the bytes of all members one after the other. A gzip file may have one member
 * or many, and may be cut off or damaged anywhere: every byte before the fault is given out. It
 * reads ahead by a fixed buffer, and by as many members as other threads may inflate at the same
 * time. It does not interpret the bytes. zlib inflates; vendor/README.md has the reasons. */
#ifndef COP_TRACE_READ_INFLATE_H
#define COP_TRACE_READ_INFLATE_H

#include "base/base/base.h"

/* A member with more bytes is inflated by the reader alone. */
#define COP_INFLATE_AHEAD_BYTES (2 * COP_MIB)

struct cop_inflate;

/* Reads from the beginning of fd, which stays the caller's and open. 0, -ENOMEM. */
int cop_inflate_open(int fd, struct cop_inflate **out);
void cop_inflate_close(struct cop_inflate *in);
/* As much as fits, less only at the end; 0 after it; or the -errno of a read. */
ssize_t cop_inflate_read(struct cop_inflate *in, void *data, size_t len);
/* After the first read: whether the bytes are those of the file. */
bool cop_inflate_is_plain(const struct cop_inflate *in);
/* After the first read: whether the bytes are those of a gzip file. */
bool cop_inflate_is_gzip(const struct cop_inflate *in);
/* Once the end is reached: NULL, or why it came early: "the gzip data is cut off", ... */
const char *cop_inflate_fault(const struct cop_inflate *in);

/* Any thread, beside the one that reads and after its first read: inflates one member further on,
 * if there is one, so that the reader finds its bytes; at most `most` members wait for it. The
 * bytes that are read stay the same. False if there is nothing to do now. All calls have returned
 * before the close. */
bool cop_inflate_ahead(struct cop_inflate *in, unsigned most);

/* ---- places to begin at ---- */

#define COP_INFLATE_WINDOW 32768u

/* Where reading may begin besides the beginning of the file: at the beginning of a member, or of a
 * block of one, whose back references reach into the window before it (as in zran.c, which comes
 * with zlib). */
struct cop_inflate_point {
	uint64_t raw, packed; /* bytes before it, inflated and in the file */
	unsigned bits;        /* of the byte before packed that belong to the block */
	bool inside;          /* of a member: the window is needed */
};
/* Called with the window that ends at the point. */
typedef void cop_inflate_visit(
	void *arg, const struct cop_inflate_point *at, const void *window, size_t len);
/* Before the first read: from now on reports places, each at least `apart` bytes behind the last;
 * no other thread inflates ahead. */
void cop_inflate_mark(struct cop_inflate *in, uint64_t apart, cop_inflate_visit *visit, void *arg);
/* After the first read: continues at byte `raw` of the content, which is not before the point; NULL
 * is the beginning of the file. From now on no other thread inflates ahead. The checksum of a
 * member is not compared if reading began inside of it. -ESPIPE if the content ends before; other
 * -errno of a read. */
int cop_inflate_seek(struct cop_inflate *in, const struct cop_inflate_point *at, const void *window,
	size_t len, uint64_t raw);

#endif
