/* SPDX-License-Identifier: BSD-3-Clause */
/* origin: reads the source tree (the parallel file system). A pool of worker threads with a limit
 * on operations in flight reads directories, attributes and files, and calls back on the worker
 * that finished the request. Only roots of trees use it. It caches no data and never follows a path
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

/* Maximum number of children in a listing with attributes. It equals the default of max_ops, so all
 * of them can be read at once. Most programs need only a few names from a larger directory, and
 * pages serve those. */
#define COP_ORIGIN_LISTING_ATTRS 64u

struct cop_origin_conf {
	const char *source;
	unsigned max_ops;     /* maximum operations in flight, one worker thread each; default 64.
				 Operations that hang may add as many again */
	uint32_t listing_max; /* maximum number of names; a larger directory has no listing (-E2BIG)
			       */
	uint32_t listing_attrs; /* maximum number of children whose attributes are read with the
				   listing: COP_ORIGIN_LISTING_ATTRS, or less in tests */
	bool trusts_listings; /* trust listings even on file systems that are not known to list all
				 names */
	struct cop_stats *stats;         /* for origin.operations and origin.bytes; may be NULL */
	struct cop_tracer *tracer;       /* receives each request; may be NULL */
	struct cop_telemetry *telemetry; /* receives storage errors; may be NULL */
};

/* Opens the source. Starts no thread: workers start on demand and end after 30 s without work.
 * -ENOENT, -ENOTDIR, -EACCES with a message. */
int cop_origin_open(
	const struct cop_origin_conf *conf, struct cop_origin **out, struct cop_err *err);
/* Whether a name that is missing from a listing is known not to exist, because the source's file
 * system lists all names or trusts_listings is set. Queries the storage. */
bool cop_origin_lists_all(struct cop_origin *o);
/* Ends queued jobs with -ECANCELED, waits 2 s for running ones, and joins the workers. o may be
 * NULL. Returns false if a worker hangs in the storage: nothing was freed, its requests never end,
 * and everything they refer to must remain valid until the process exits. */
bool cop_origin_close(struct cop_origin *o);

/* rc is 0 or -errno. data (malloc'ed, 8-byte aligned; NULL on error) is owned by the callee, which
 * must free it. */
typedef void cop_origin_done(void *arg, int rc, void *data, size_t len);

/* A listing blob (wire.h) of the directory: names, types, link targets, and attributes for at most
 * listing_attrs children; statx of the children runs in parallel over the pool, in batches. A child
 * is listed without attributes if they could not be read, or did not arrive within a second
 * although those of others did. A child that has vanished is omitted if the directory may have
 * changed in the meantime. Errors are those of the system (EACCES for a directory that may be
 * searched but not read, ENOTDIR, ENOENT, EIO...), and E2BIG beyond listing_max. The listing
 * includes the directory's own attributes, read before and after the names: if the mtime has
 * changed, the directory is read again, at most 3 times (after which the listing lacks the complete
 * flag). The flag is never set on file systems that do not list all names, such as autofs or those
 * with alternative spellings of names. */
void cop_origin_list(struct cop_origin *o, const char *path, cop_origin_done *done, void *arg);

/* The same for a directory whose names may already be known. known is an earlier listing of the
 * directory, with attributes for the names whose attributes are wanted; it must remain valid until
 * done is called. If the directory still has the version of known, and that version is not young,
 * the names are not read again, and names without attributes in known have none in the result.
 * Otherwise equivalent to cop_origin_list. */
void cop_origin_list_known(struct cop_origin *o, const char *path, const void *known,
	cop_origin_done *done, void *arg);

/* Lists a directory of any size: all names and types, without attributes or link targets. -E2BIG if
 * the blob exceeds 64 MiB. */
void cop_origin_names(struct cop_origin *o, const char *path, cop_origin_done *done, void *arg);

/* Reads a page (wire.h) of this version of a directory, young or not: the attributes of the page's
 * names, as in a listing and with the same timeout. Omits names that have vanished, and names whose
 * attributes are unreadable or late. names, if not NULL, is a listing of this version of the
 * directory, which must remain valid until done is called: its names are used, and the directory is
 * not read again. -ESTALE if the directory has another version before or after the read, -E2BIG if
 * the page has more than COP_PAGE_MOST names. */
void cop_origin_page(struct cop_origin *o, const char *path, const struct cop_listing_page *page,
	const void *names, cop_origin_done *done, void *arg);

/* Reads the entry blob (wire.h) of a name: its attributes and link target. -ENOENT etc. */
void cop_origin_stat(struct cop_origin *o, const char *path, cop_origin_done *done, void *arg);

/* Reads into the buffers in turn, starting at offset. done receives NULL as data and the number of
 * bytes read as len. The file must keep this version (cop_attr.version) and size until the read has
 * finished, else -ESTALE; version 0 disables both checks. The caller owns the buffers, which must
 * remain valid until done. -EISDIR or -EINVAL for anything but a regular file. The descriptor of a
 * file that is read several times in a row is cached (at most 64, closed after 2 s). */
void cop_origin_read(struct cop_origin *o, const char *path, uint64_t version, uint64_t size,
	uint64_t offset, const struct iovec *iov, int n_iov, cop_origin_done *done, void *arg);

/* Finds the data extents of a file with SEEK_DATA and SEEK_HOLE. data is an array of struct
 * cop_extent (wire.h) in ascending order; NULL and 0 if the file is a single hole. There are at
 * most 65,536 extents; in that case the last one extends to the end of the file. -ESTALE as for
 * reads. One extent if the file system does not support SEEK_HOLE. */
void cop_origin_holes(
	struct cop_origin *o, const char *path, uint64_t version, cop_origin_done *done, void *arg);

/* Calls statvfs on the source: data is a struct cop_statfs (wire.h). */
void cop_origin_statfs(struct cop_origin *o, cop_origin_done *done, void *arg);

/* Runs any other blocking work on the pool, under the same limit: fn(arg, 0), or fn(arg,
 * -ECANCELED) if the pool is closed first. */
void cop_origin_run(struct cop_origin *o, void (*fn)(void *arg, int rc), void *arg);

/* Returns a handle of the same origin for work without a waiter. Its jobs start only when no other
 * jobs wait, and use at most three quarters of the operations in flight, so that urgent jobs find a
 * free worker. The origin owns the handle; do not close it. */
struct cop_origin *cop_origin_background(struct cop_origin *o);
/* The same for work that will probably have a waiter soon. Its jobs start before those of the
 * background handle; while other jobs wait, one of its jobs runs after every 16 of those. */
struct cop_origin *cop_origin_soon(struct cop_origin *o);

/* Call it when work submitted through one of these handles gets a waiter: moves queued requests for
 * this path, and reads of it at this offset, to the normal queue. */
void cop_origin_raise_priority(struct cop_origin *o, const char *path, uint64_t offset);

/* The source directory's descriptor (O_PATH), owned by the origin. */
int cop_origin_dirfd(const struct cop_origin *o);

/* The number of queued and running jobs, for cache-stats. */
void cop_origin_load(struct cop_origin *o, unsigned *queued, unsigned *running);

/* ---- the fake: a tree in memory, for tests ---- */

/* Jobs wait until cop_origin_fake_run completes them, in order, on the caller's thread. */
struct cop_origin *cop_origin_fake_new(void);
/* Creates an object whose kind is given by the type bits of mode; content is the bytes of a file or
 * the target of a link. Replaces an existing object, with a new version. NULL content removes a
 * file. */
void cop_origin_fake_put(
	struct cop_origin *o, const char *path, uint32_t mode, const void *content, size_t len);
/* Makes subsequent jobs on this path fail with this error; 0: none. */
void cop_origin_fake_fail(struct cop_origin *o, const char *path, int error);
/* Whether versions reported from now on are young (wire.h). */
void cop_origin_fake_young(struct cop_origin *o, bool young);
/* Completes up to max jobs; returns their number. */
size_t cop_origin_fake_run(struct cop_origin *o, size_t max);
/* The number of jobs of each kind since creation. */
struct cop_origin_fake_counts {
	size_t lists, known, pages, stats, reads, read_bytes, raises;
};
struct cop_origin_fake_counts cop_origin_fake_counts(const struct cop_origin *o);

#endif
