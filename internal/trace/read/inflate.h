/* SPDX-License-Identifier: BSD-3-Clause */
/* inflate: gives the bytes of a file that is plain or gzip (RFC 1952), which its first two bytes
 * tell. A gzip file may have one member or many, and may be cut off or damaged anywhere: every byte
 * before the fault is given out. It reads ahead by a fixed buffer, and by as many members as other
 * threads may inflate meanwhile. It does not interpret the bytes. zlib inflates; vendor/README.md
 * has the reasons. */
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
/* Once the end is reached: NULL, or why it came early: "the gzip data is cut off", ... */
const char *cop_inflate_fault(const struct cop_inflate *in);

/* Any thread, beside the one that reads and after its first read: inflates one member further on,
 * if there is one, so that the reader finds its bytes; at most `most` members wait for it. The
 * bytes that are read stay the same. False if there is nothing to do now. All calls have returned
 * before the close. */
bool cop_inflate_ahead(struct cop_inflate *in, unsigned most);

#endif
