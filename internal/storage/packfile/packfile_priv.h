/* SPDX-License-Identifier: BSD-3-Clause */
/* The layout of the file: the header, the bodies of chunks, then the tail, which consists of the
 * bodies of listings, the source, and one index entry with its path for each record. Little endian;
 * bodies of listings are aligned to 8 bytes. */
#ifndef COP_STORAGE_PACKFILE_PRIV_H
#define COP_STORAGE_PACKFILE_PRIV_H

#include "storage/packfile/packfile.h"

#define PACKFILE_MAGIC "coppack\n"
#define TAIL_MAX (64 * COP_MIB)

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files are used in place");

struct packfile_head {
	char magic[8];
	uint32_t version, records;
	uint64_t tail, tail_len, tail_sum;
	uint32_t source_at, source_len; /* in the tail; the index follows */
	uint32_t chunk_bytes, zero;
	uint64_t sum; /* XXH3-64 of all preceding fields */
};
_Static_assert(sizeof(struct packfile_head) == 64, "heads have no padding");

/* The NUL-terminated path follows. */
struct packfile_index {
	uint64_t version, size, index, at, sum;
	uint32_t len;
	uint16_t path_len;
	uint8_t kind, packed;
};
_Static_assert(sizeof(struct packfile_index) == 48, "index records have no padding");

/* Like cop_packfile_open, for a descriptor, of which it takes ownership. */
int cop_packfile_open_fd(
	int fd, const char *source, size_t chunk_bytes, uid_t owner, struct cop_packfile **out);

#endif
