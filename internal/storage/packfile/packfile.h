/* SPDX-License-Identifier: BSD-3-Clause */
/* packfile: one file with what a job read of its source, so that the next job reads it in a few
 * large pieces: names of directories, and chunks of files as they rest in the cache.
 * copper-formats(5) describes the file.
 *
 * It proves nothing about the source. Each record has the version (wire.h) of its directory or
 * file; a user compares it with the version that the source has now, and ignores the record if they
 * differ. Records of young versions are never written. A damaged record is an error of its reader,
 * found by its checksum; a hostile file costs work, and no more. */
#ifndef COP_STORAGE_PACKFILE_H
#define COP_STORAGE_PACKFILE_H

#include "base/base/base.h"
#include "base/base/htab.h"

#define COP_PACKFILE_VERSION 1
/* A file of this size gains nothing: reading it is a few large reads anyway. */
#define COP_PACKFILE_LARGE (64 * COP_MIB)

enum cop_packfile_kind {
	COP_PACKFILE_LISTING = 1, /* the body is a listing blob (wire.h): all names, with attributes
				     for those that the job needed */
	COP_PACKFILE_CHUNK,       /* a chunk of a file, as it is or packed (wire.h) */
};

struct cop_packfile_record {
	struct cop_hlink link;
	const char *path;              /* relative to the source, NUL-terminated */
	uint64_t version, size, index; /* as in the key of a chunk; of a listing only version */
	uint64_t at, sum;              /* where the body is, and its XXH3-64 */
	uint32_t len;
	uint8_t kind;
	bool packed;
};

/* ---- reading ---- */

struct cop_packfile;

/* Opens the file of a job with this source (absolute) and this size of chunks, and reads all but
 * the chunks. -ENOENT: there is none; -EPERM: it belongs to another user than this one, root and
 * owner, or others may write to it; -EBADMSG: it is damaged; -EPROTO: a later version;
 * -ESTALE: of another source or size of chunks. */
int cop_packfile_open(const char *path, const char *source, size_t chunk_bytes, uid_t owner,
	struct cop_packfile **out);
/* NULL is fine, here and below. */
void cop_packfile_free(struct cop_packfile *p);

size_t cop_packfile_count(const struct cop_packfile *p);
uint64_t cop_packfile_bytes(const struct cop_packfile *p);
/* The listing blob of this directory, valid while p lives; NULL: there is none. */
const void *cop_packfile_listing(const struct cop_packfile *p, const char *path);
/* This chunk of this version; NULL: there is none. */
const struct cop_packfile_record *cop_packfile_chunk(const struct cop_packfile *p, const char *path,
	uint64_t version, uint64_t size, uint64_t index);
/* A chunk of this file in any version, or NULL. */
const struct cop_packfile_record *cop_packfile_any(
	const struct cop_packfile *p, const char *path, uint64_t index);
/* Reads the body of a chunk to out, which has room for its len. -EBADMSG if it is damaged, -EIO and
 * so on. Blocks; any thread. Reads the file in pieces of 2 MiB and keeps a few of them. */
int cop_packfile_read(struct cop_packfile *p, const struct cop_packfile_record *r, void *out);
/* Frees those pieces: nothing will be read for a while. */
void cop_packfile_rest(struct cop_packfile *p);

/* ---- writing ---- */

struct cop_packfile_writer;

/* Begins a file that replaces path when it is complete; limit: of its bytes. */
int cop_packfile_create(const char *path, const char *source, size_t chunk_bytes, uint64_t limit,
	struct cop_packfile_writer **out);
/* Adds a record; of *r, path, version, size, index, kind and packed count. Users read chunks in the
 * order of writing. -EFBIG: it does not fit the limit, and nothing was added; -ENOSPC and so on. */
int cop_packfile_add(struct cop_packfile_writer *w, const struct cop_packfile_record *r,
	const void *body, size_t len);
/* Completes the file and puts it in its place. 0 or -errno. */
int cop_packfile_commit(struct cop_packfile_writer *w, uint64_t *bytes);
/* Removes it. NULL is fine. */
void cop_packfile_abandon(struct cop_packfile_writer *w);

#endif
