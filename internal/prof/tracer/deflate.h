/* SPDX-License-Identifier: BSD-3-Clause */
/* deflate: writes bytes to a gzip file (RFC 1952) of many members. Compresses each member in memory
 * with zlib and writes it with one call, so that after a kill at most the last member is
 * incomplete. The file never exceeds its size limit. Does not interpret the bytes. inflate is the
 * inverse. */
#ifndef COP_PROF_TRACER_DEFLATE_H
#define COP_PROF_TRACER_DEFLATE_H

#include "base/base/base.h"

struct cop_deflate;

/* Writes to fd at its current offset; the caller owns fd. A member has at most member_bytes before
 * compression; allocates that much memory, and as much again for the compressed bytes. 0 or
 * -ENOMEM. */
int cop_deflate_open(int fd, size_t member_bytes, struct cop_deflate **out);
/* Discards unwritten bytes. d may be NULL. */
void cop_deflate_close(struct cop_deflate *d);
/* Limits the size of the file from now on. UINT64_MAX, the initial value: no limit. */
void cop_deflate_limit(struct cop_deflate *d, uint64_t file_bytes);
/* Adds these bytes to a single member. -EMSGSIZE: more than member_bytes. -ENOBUFS: they might
 * exceed the limit, and were not added. -errno if a write fails: all later calls return it, too,
 * and the file is truncated to the last complete member if possible. */
int cop_deflate_add(struct cop_deflate *d, const void *data, size_t len);
/* Ends the current member, if any, and writes it. */
int cop_deflate_flush(struct cop_deflate *d);

#endif
