/* SPDX-License-Identifier: BSD-3-Clause */
/* packfile: a single file with the data that a job read from its source (directory listings, and
 * chunks of files in their cached form), so that the next job can read it in a few large pieces.
 * See copper-formats(5) for the format.
 *
 * A pack proves nothing about the source. Each record carries the version (wire.h) of its directory
 * or file, which the user must compare with the current version at the source, ignoring the record
 * if they differ. Young versions are never recorded. A damaged record fails its checksum, and
 * reading it returns an error; a hostile file costs work but does no harm. */
#ifndef COP_STORAGE_PACKFILE_H
#define COP_STORAGE_PACKFILE_H

#include "base/base/base.h"
#include "base/base/htab.h"

#define COP_PACKFILE_VERSION 1
/* Larger files gain nothing: they are read in a few large pieces anyway. */
#define COP_PACKFILE_LARGE (64 * COP_MIB)

enum cop_packfile_kind {
	COP_PACKFILE_LISTING = 1, /* the body is a listing blob (wire.h): all names, with attributes
				     for those that the job needed */
	COP_PACKFILE_CHUNK,       /* a chunk of a file, plain or compressed (wire.h) */
};

struct cop_packfile_record {
	struct cop_hlink link;
	const char *path;              /* relative to the source, NUL-terminated */
	uint64_t version, size, index; /* as in the key of a chunk; listings have only a version */
	uint64_t at, sum;              /* offset of the body, and XXH3-64 of the body */
	uint32_t len;
	uint8_t kind;
	bool packed;
};

/* ---- reading ---- */

struct cop_packfile;

/* Opens the pack of a job with this (absolute) source and chunk size, and reads everything but the
 * chunks. -ENOENT: no file; -EPERM: writable by others, or owned by a user who is not owner, root
 * or the current one; -EBADMSG: damaged; -EPROTO: a later version; -ESTALE: another source or chunk
 * size. */
int cop_packfile_open(const char *path, const char *source, size_t chunk_bytes, uid_t owner,
	struct cop_packfile **out);
/* p may be NULL, here and in the functions below. */
void cop_packfile_free(struct cop_packfile *p);

size_t cop_packfile_count(const struct cop_packfile *p);
uint64_t cop_packfile_bytes(const struct cop_packfile *p);
/* Returns the listing blob of this directory, valid for the lifetime of p, or NULL. */
const void *cop_packfile_listing(const struct cop_packfile *p, const char *path);
/* Returns this chunk in this version, or NULL. */
const struct cop_packfile_record *cop_packfile_chunk(const struct cop_packfile *p, const char *path,
	uint64_t version, uint64_t size, uint64_t index);
/* Returns a chunk of this file in any version, or NULL. */
const struct cop_packfile_record *cop_packfile_any(
	const struct cop_packfile *p, const char *path, uint64_t index);
/* Reads the body of a chunk into out, which has room for its len. -EBADMSG if it is damaged, -EIO
 * etc. Blocks; safe from any thread. Reads the file in pieces of 2 MiB and caches a few of them. */
int cop_packfile_read(struct cop_packfile *p, const struct cop_packfile_record *r, void *out);
/* Frees the cached pieces; call it when no reads are expected for a while. */
void cop_packfile_rest(struct cop_packfile *p);

/* ---- writing ---- */

struct cop_packfile_writer;

/* Begins a file that will replace path once it is complete. limit: its maximum size. */
int cop_packfile_create(const char *path, const char *source, size_t chunk_bytes, uint64_t limit,
	struct cop_packfile_writer **out);
/* Adds a record; uses only path, version, size, index, kind and packed of *r. Chunks should be
 * added in the order in which they will be read. -EFBIG if the record would exceed the limit and
 * was not added; -ENOSPC etc. */
int cop_packfile_add(struct cop_packfile_writer *w, const struct cop_packfile_record *r,
	const void *body, size_t len);
/* Completes the file and renames it into place. Returns 0 or -errno. */
int cop_packfile_commit(struct cop_packfile_writer *w, uint64_t *bytes);
/* Removes the incomplete file. w may be NULL. */
void cop_packfile_abandon(struct cop_packfile_writer *w);

#endif
