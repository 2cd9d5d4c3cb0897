/* SPDX-License-Identifier: BSD-3-Clause */
/* origin: reads the source tree (the parallel file system). A pool of worker threads with a limit
 * on operations in flight reads directories, attributes and files; answers are callbacks on a
 * worker. Only roots of trees call it. It never caches, and never follows a path out of the source:
 * paths are resolved with openat2(RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS).
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

/* Maximum number of children in a listing with attributes: as many as the storage answers at once
 * with the default of max_ops. Most programs need few names of a larger directory; pages serve the
 * others. */
#define COP_ORIGIN_LISTING_ATTRS 64u

struct cop_origin_conf {
	const char *source;
	unsigned max_ops; /* operations in flight, one worker thread each; default 64. Unanswered
			     operations may add the same number again */
	uint32_t listing_max;   /* number of names; a larger directory has no listing (-E2BIG) */
	uint32_t listing_attrs; /* maximum number of children whose attributes are read with the
				   listing: COP_ORIGIN_LISTING_ATTRS, or less in tests */
	bool trusts_listings; /* trust listings also on file systems that are not known to list all
				 names */
	struct cop_stats *stats;         /* for origin.operations and origin.bytes; may be NULL */
	struct cop_tracer *tracer;       /* receives each request; may be NULL */
	struct cop_telemetry *telemetry; /* receives errors of the storage; may be NULL */
};

/* Opens the source. Starts no thread: workers start on demand and end after 30 s without work.
 * -ENOENT, -ENOTDIR, -EACCES with a sentence. */
int cop_origin_open(
	const struct cop_origin_conf *conf, struct cop_origin **out, struct cop_err *err);
/* Whether a name that is not in the source's listing is absent: its file system is known to list
 * all names, or trusts_listings is set. Queries the storage. */
bool cop_origin_lists_all(struct cop_origin *o);
/* Ends queued jobs with -ECANCELED, waits 2 s for running ones, and joins the workers. o may be
 * NULL. False: a worker hangs in the storage. Nothing was freed; its requests never end, and
 * everything they refer to must remain valid until the process ends. */
bool cop_origin_close(struct cop_origin *o);

/* rc 0 or -errno. data (malloc'ed, 8-byte aligned) is owned by the callee, which must free it; NULL
 * on error. */
typedef void cop_origin_done(void *arg, int rc, void *data, size_t len);

/* A listing blob (wire.h) of the directory: names, types, link targets, and attributes for at most
 * listing_attrs children; statx of the children runs in parallel over the pool, in batches.
 * Children are listed without attributes if these could not be read, or did not arrive within a
 * second although others did; children that vanished are omitted if the directory may have changed
 * in the meantime. Errors as returned by the system: EACCES for a directory that may be searched
 * but not read, E2BIG beyond listing_max, ENOTDIR, ENOENT, EIO... The listing has the directory's
 * own attributes, read before and after: if its mtime has changed, it is read again, at most 3
 * times (then without the complete flag). This flag is never set on file systems that do not list
 * all names (autofs, or those with alternative spellings of names). */
void cop_origin_list(struct cop_origin *o, const char *path, cop_origin_done *done, void *arg);

/* The same if the names may be known: known, a listing of the directory, has the names, and has
 * attributes for those names whose attributes are wanted; it is in use until done is called. If the
 * directory still has the version of known, and this is not young, its names are not read again,
 * and names without attributes in known have none in the result. Otherwise equivalent to
 * cop_origin_list. */
void cop_origin_list_known(struct cop_origin *o, const char *path, const void *known,
	cop_origin_done *done, void *arg);

/* A listing of a directory of any size: all names and types, no attributes, no targets (-E2BIG if
 * the blob exceeds 64 MiB). */
void cop_origin_names(struct cop_origin *o, const char *path, cop_origin_done *done, void *arg);

/* A page (wire.h) of a directory in this version, young or not: attributes of its names, read like
 * those of a listing, with the same timeout. Names without readable or timely attributes, and
 * vanished names, are omitted. names may be a listing of the directory in this version, in use
 * until done is called: its names are used, and the directory is not read again. -ESTALE if the
 * directory has another version before or after, -E2BIG if the page has more than COP_PAGE_MOST
 * names. */
void cop_origin_page(struct cop_origin *o, const char *path, const struct cop_listing_page *page,
	const void *names, cop_origin_done *done, void *arg);

/* An entry blob (wire.h) of a name: attributes and link target, or -ENOENT etc. */
void cop_origin_stat(struct cop_origin *o, const char *path, cop_origin_done *done, void *arg);

/* Reads into the buffers in turn, starting at offset. done gets data NULL and len = bytes read. The
 * file must have this version (cop_attr.version) and size until after the read, else -ESTALE;
 * version 0 disables both checks. The caller owns the buffers, which must remain valid until done.
 * -EISDIR, -EINVAL for anything but a regular file. The descriptor of a file with several
 * consecutive reads is cached (at most 64, closed after 2 s). */
void cop_origin_read(struct cop_origin *o, const char *path, uint64_t version, uint64_t size,
	uint64_t offset, const struct iovec *iov, int n_iov, cop_origin_done *done, void *arg);

/* The data extents of a file, by SEEK_DATA and SEEK_HOLE: data is an array of struct cop_extent
 * (wire.h) in ascending order, NULL and 0 for a file that is one hole. At most 65,536 extents: the
 * last one then extends to the end of the file. -ESTALE as for reads. One extent on a file system
 * without SEEK_HOLE. */
void cop_origin_holes(
	struct cop_origin *o, const char *path, uint64_t version, cop_origin_done *done, void *arg);

/* statvfs of the source: data is a struct cop_statfs (wire.h). */
void cop_origin_statfs(struct cop_origin *o, cop_origin_done *done, void *arg);

/* Runs any other blocking work on the pool, with the same limit: fn(arg, 0), or fn(arg, -ECANCELED)
 * at close. */
void cop_origin_run(struct cop_origin *o, void (*fn)(void *arg, int rc), void *arg);

/* A handle of the same origin for work without a waiter. Its jobs start when no other jobs wait,
 * and use at most three quarters of the operations in flight, which reserves some for urgent jobs.
 * The origin owns the handle; do not close it. */
struct cop_origin *cop_origin_background(struct cop_origin *o);
/* The same for work that will probably have a waiter soon. Its jobs start before those of the
 * background handle; while other jobs wait, one of these jobs runs after every 16 of them. */
struct cop_origin *cop_origin_soon(struct cop_origin *o);

/* Work submitted through one of these handles now has a waiter: moves queued requests for this
 * path, and reads of it at this offset, to the queue of urgent jobs. */
void cop_origin_raise_priority(struct cop_origin *o, const char *path, uint64_t offset);

/* The source directory's descriptor (O_PATH), owned by the origin. */
int cop_origin_dirfd(const struct cop_origin *o);

/* Number of queued and running jobs, for cache-stats. */
void cop_origin_load(struct cop_origin *o, unsigned *queued, unsigned *running);

/* ---- the fake: a tree in memory, for tests ---- */

/* Jobs wait until cop_origin_fake_run completes them, in order, on the caller's thread. */
struct cop_origin *cop_origin_fake_new(void);
/* The type bits of mode select the kind of object; content is the bytes of a file or the target of
 * a link. Replaces an existing object (with a new version). NULL content removes a file. */
void cop_origin_fake_put(
	struct cop_origin *o, const char *path, uint32_t mode, const void *content, size_t len);
/* Subsequent jobs on this path fail with this error; 0: none. */
void cop_origin_fake_fail(struct cop_origin *o, const char *path, int error);
/* Whether versions requested from now on are young (wire.h). */
void cop_origin_fake_young(struct cop_origin *o, bool young);
/* Completes up to max jobs; returns their number. */
size_t cop_origin_fake_run(struct cop_origin *o, size_t max);
/* Counts by kind since creation. */
struct cop_origin_fake_counts {
	size_t lists, known, pages, stats, reads, read_bytes, raises;
};
struct cop_origin_fake_counts cop_origin_fake_counts(const struct cop_origin *o);

#endif
