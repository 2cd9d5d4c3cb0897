/* SPDX-License-Identifier: BSD-3-Clause */
/* deflate: writes bytes into a gzip file (RFC 1952) of many members. Each member is compressed in
 * memory and written by one call, so a process that is killed leaves a file whose members are all
 * whole, or all but the last. It never writes past a limit, and does not interpret the bytes. The
 * reverse of inflate; zlib deflates. */
#ifndef COP_PROF_TRACER_DEFLATE_H
#define COP_PROF_TRACER_DEFLATE_H

#include "base/base/base.h"

struct cop_deflate;

/* Writes to fd from its current offset; fd stays the caller's and open. A member holds at most
 * member_bytes before compression; this much memory is allocated, and as much again for the
 * compressed bytes. Returns 0 or -ENOMEM. */
int cop_deflate_open(int fd, size_t member_bytes, struct cop_deflate **out);
/* Discards what has not been written. NULL is fine. */
void cop_deflate_close(struct cop_deflate *d);
/* Limits the file to this many bytes from now on. UINT64_MAX, the initial value, means no limit. */
void cop_deflate_limit(struct cop_deflate *d, uint64_t file_bytes);
/* Adds these bytes as a whole to one member: at most member_bytes, else -EMSGSIZE. -ENOBUFS: they
 * might not fit below the limit, and nothing was added. -errno of a write: every later call returns
 * it too, and the file ends with the last whole member, where it can be cut. */
int cop_deflate_add(struct cop_deflate *d, const void *data, size_t len);
/* Ends the member, if it has begun, and writes it. */
int cop_deflate_flush(struct cop_deflate *d);

#endif
