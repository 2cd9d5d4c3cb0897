/* SPDX-License-Identifier: BSD-3-Clause */
/* origin: reads the source tree (the parallel file system). A pool of worker threads with a limit
 * on operations in flight does directory reads, attribute reads and file reads; answers come back
 * by callback on a worker. Only roots of trees call it. It never caches, and never follows a path
 * out of the source: paths are resolved with openat2(RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
 * RESOLVE_NO_MAGICLINKS).
 *
 * Paths are relative to the source, without a leading slash; "" is the source itself. */
#ifndef COP_STORAGE_ORIGIN_H
#define COP_STORAGE_ORIGIN_H

#include <sys/statvfs.h>
#include <sys/uio.h>

#include "base/base/base.h"
#include "prof/stats/stats.h"
#include "prof/telemetry/telemetry.h"
#include "prof/tracer/tracer.h"
#include "fabric/wire/wire.h"

struct cop_origin;

/* Attributes of this many children come with a listing: as many as the storage answers at once with
 * the default of max_ops. Of a larger directory most programs want a few names, and pages are for
 * the others. */
#define COP_ORIGIN_LISTING_ATTRS 64u

struct cop_origin_conf {
	const char *source;
	unsigned max_ops;     /* operations in flight, by as many worker threads; 64. Up to the same
				 number again if some are not answered */
	uint32_t listing_max; /* names; a larger directory has no listing (-E2BIG) */
	uint32_t listing_attrs; /* children up to which attributes are read with the listing:
				   COP_ORIGIN_LISTING_ATTRS, or less in tests */
	bool trusts_listings; /* also on file systems that are not known to list all their names */
	struct cop_stats *stats;         /* origin.operations, origin.bytes; may be NULL */
	struct cop_tracer *tracer;       /* gets each request; may be NULL */
	struct cop_telemetry *telemetry; /* gets the errors of the storage; may be NULL */
};

/* Opens the source and starts no thread yet (workers start as they are needed and end after 30 s
 * without work). -ENOENT, -ENOTDIR, -EACCES with a sentence. */
int cop_origin_open(
	const struct cop_origin_conf *conf, struct cop_origin **out, struct cop_err *err);
/* Whether a name is absent that the source's listing does not have: its file system is known to
 * list all its names, or is believed to (trusts_listings). Asks the storage. */
bool cop_origin_lists_all(struct cop_origin *o);
/* Ends queued jobs with -ECANCELED, waits 2 s for running ones, and joins the workers. NULL is
 * fine. False: a worker hangs in the storage. Nothing was freed; the worker's requests never end,
 * and what they point to must stay until the process ends. */
bool cop_origin_close(struct cop_origin *o);

/* rc 0 or -errno. data (malloc'ed, 8-byte aligned) belongs to the callee, who frees it; NULL on
 * error. */
typedef void cop_origin_done(void *arg, int rc, void *data, size_t len);

/* A listing blob (wire.h) of the directory: names, types, link targets, and attributes where there
 * are at most listing_attrs children; statx of the children runs in parallel over the pool, in
 * batches. Children whose attributes could not be read, or did not arrive within a second although
 * others did, are listed without them; children that vanished are omitted if the directory may
 * have changed meanwhile. Errors as the system gives them: EACCES for a directory that may be
 * searched but not read, E2BIG past listing_max, ENOTDIR, ENOENT, EIO... The listing carries the
 * directory's own attributes, read before and after: if its mtime moved meanwhile it is read again,
 * at most 3 times (then without the complete flag). On file systems that do not list all their
 * names (autofs, those that find names by other spellings) that flag is never set. */
void cop_origin_list(struct cop_origin *o, const char *path, cop_origin_done *done, void *arg);

/* The same if the names may be known: known, a listing of the directory, has them, with attributes
 * for those whose attributes are wanted, and is in use until done is called. If the directory still
 * has the version of known, and that is not young, its names are not read again, and names without
 * attributes in known have none in the listing either. Otherwise this is cop_origin_list. */
void cop_origin_list_known(struct cop_origin *o, const char *path, const void *known,
	cop_origin_done *done, void *arg);

/* A listing of a directory of any size: all names and types, no attributes, no targets (-E2BIG if
 * the blob passes 64 MiB). */
void cop_origin_names(struct cop_origin *o, const char *path, cop_origin_done *done, void *arg);

/* One page (wire.h) of a directory that has this version, young or not: attributes of the names in
 * it, read like those of a listing, with the same patience. A name is omitted if its attributes
 * could not be read or did not arrive in time, or if it is gone. names may be a listing of the
 * directory in that version, in use until done is called: its names are taken then, and the
 * directory is not read again. -ESTALE if the directory has another version before or after, -E2BIG
 * if the page has more than COP_PAGE_MOST names. */
void cop_origin_page(struct cop_origin *o, const char *path, const struct cop_listing_page *page,
	const void *names, cop_origin_done *done, void *arg);

/* An entry blob (wire.h) of one name: attributes and link target, or -ENOENT and so on. */
void cop_origin_stat(struct cop_origin *o, const char *path, cop_origin_done *done, void *arg);

/* Reads into the buffers in turn from offset. done gets data NULL and len = bytes read. The file
 * must be of this version (cop_attr.version) and size until after the read, else -ESTALE; with a
 * version of 0 neither is checked. Buffers stay the caller's, alive until done. -EISDIR, -EINVAL
 * for anything but a regular file. A file with several reads in a row keeps its descriptor (a small
 * cache, at most 64, dropped after 2 s). */
void cop_origin_read(struct cop_origin *o, const char *path, uint64_t version, uint64_t size,
	uint64_t offset, const struct iovec *iov, int n_iov, cop_origin_done *done, void *arg);

/* Where the file has data, by SEEK_DATA and SEEK_HOLE: data is an array of struct cop_extent
 * (wire.h) in ascending order, NULL and 0 for a file that is one hole. At most 65,536 extents: the
 * last one then reaches to the end of the file. -ESTALE as for reads. A file system without
 * SEEK_HOLE gives one extent. */
void cop_origin_holes(
	struct cop_origin *o, const char *path, uint64_t version, cop_origin_done *done, void *arg);

/* statvfs of the source: data is a struct cop_statfs (wire.h). */
void cop_origin_statfs(struct cop_origin *o, cop_origin_done *done, void *arg);

/* Runs any other blocking work on the pool, under the same limit: fn(arg, 0), or fn(arg,
 * -ECANCELED) at close. */
void cop_origin_run(struct cop_origin *o, void (*fn)(void *arg, int rc), void *arg);

/* A handle of the same origin for work without a waiter yet. Its jobs start when no other jobs
 * wait, and hold at most three quarters of the operations in flight, so that urgent jobs find a
 * free one. The origin owns the handle; do not close it. */
struct cop_origin *cop_origin_background(struct cop_origin *o);
/* The same for work that somebody will probably wait for in a moment. Its jobs start before those
 * of the background handle, and where other jobs wait, one of them after each 16 of those. */
struct cop_origin *cop_origin_soon(struct cop_origin *o);

/* Somebody now waits for work of one of these handles: moves the requests for this path, and the
 * reads at this offset of it, that have not begun to the queue of urgent jobs. */
void cop_origin_raise_priority(struct cop_origin *o, const char *path, uint64_t offset);

/* The source directory's descriptor (O_PATH), owned by the origin. */
int cop_origin_dirfd(const struct cop_origin *o);

/* Jobs queued and running, for cache-stats. */
void cop_origin_load(struct cop_origin *o, unsigned *queued, unsigned *running);

/* ---- the fake: a tree in memory, for tests ---- */

/* Jobs wait until cop_origin_fake_run lets them finish, in order, on the caller's thread. */
struct cop_origin *cop_origin_fake_new(void);
/* The type bits of mode say what kind of object it is; content is a file's bytes or a link's
 * target. Replaces an existing object (with a new version). NULL content removes a file. */
void cop_origin_fake_put(
	struct cop_origin *o, const char *path, uint32_t mode, const void *content, size_t len);
/* From now on every job on this path ends with this error; 0: none does. */
void cop_origin_fake_fail(struct cop_origin *o, const char *path, int error);
/* Whether versions that are requested from now on are young (wire.h). */
void cop_origin_fake_young(struct cop_origin *o, bool young);
/* Finishes up to max jobs; returns how many. */
size_t cop_origin_fake_run(struct cop_origin *o, size_t max);
/* Counts since new, by kind. */
struct cop_origin_fake_counts {
	size_t lists, known, pages, stats, reads, read_bytes, raises;
};
struct cop_origin_fake_counts cop_origin_fake_counts(const struct cop_origin *o);

#endif
