/* SPDX-License-Identifier: BSD-3-Clause */
/* prefetch: requests the objects in a manifest from the tree before the application does. All nodes
 * process the same manifest in the same order and send requests to their parents, so one flight per
 * object serves all of them: the roots read the storage with many operations in flight, and the
 * data streams down the tree as for an application. Prefetch requests yield to requests with
 * waiters, are limited to small windows, and stop when memory is short.
 *
 * The manifest is a hint. Listings and entries are requested in their current version, and chunks
 * with the version and size from those answers, never from the manifest. A stale manifest therefore
 * fetches only data that exists now. */
#ifndef COP_TREE_PREFETCH_H
#define COP_TREE_PREFETCH_H

#include "base/base/base.h"
#include "tree/fetch/fetch.h"
#include "storage/manifest/manifest.h"
#include "prof/telemetry/telemetry.h"
#include "prof/tracer/tracer.h"

struct cop_prefetch;

struct cop_prefetch_conf {
	struct cop_fetch *fetch;
	struct cop_cache *cache;
	struct cop_stats *stats;
	/* The first reader of a file up to this size fetches all of it; so does the prefetch, in
	 * its last phase. */
	uint64_t whole_file_max;
	uint64_t max_cacheable;          /* larger files bypass the tree; 0: no limit */
	struct cop_tracer *tracer;       /* records the prefetch as one event; may be NULL */
	struct cop_telemetry *telemetry; /* records its begin and end; may be NULL */
	/* Called on the prefetch thread when an object in the manifest is cached: the listing of a
	 * directory, a name, or the bytes [start, end) of a file. May be NULL. */
	void (*have)(void *arg, enum cop_manifest_kind kind, const char *path, uint64_t start,
		uint64_t end);
	void *arg;
	bool forming; /* the tree is not ready, and this node is its root: until
			 cop_prefetch_formed, only listings and names are requested, from the
			 storage */
	bool by_part; /* fetch each part of the manifest when a program begins it; otherwise all
			 parts at once */
};

/* Starts a thread that loads the manifest through tree/fetch and processes it. Returns 0, -ENOMEM,
 * or the error from creating the thread. */
int cop_prefetch_start(const struct cop_prefetch_conf *conf, struct cop_prefetch **out);
/* The tree is ready. Any thread. p may be NULL. */
void cop_prefetch_formed(struct cop_prefetch *p);
/* Stops sending requests and joins the thread. Outstanding requests still complete. p may be NULL.
 */
void cop_prefetch_stop(struct cop_prefetch *p);
/* No flight may be outstanding. p may be NULL. */
void cop_prefetch_free(struct cop_prefetch *p);

/* A program reads this file: if it is the first file of a part, fetches that part. Any thread;
 * cheap. p may be NULL. */
void cop_prefetch_opened(struct cop_prefetch *p, const char *path);
/* Bit mask of the parts that programs on this node have begun. */
uint64_t cop_prefetch_begun(struct cop_prefetch *p);

/* The progress:
 * {"state":"loading|running|done|stopped","why":null,"items":N,"listings":N,"files":N}. NULL:
 * {"state":"off",...}. */
void cop_prefetch_json(struct cop_prefetch *p, struct cop_buf *out);
/* The same as text: one line without newline. */
void cop_prefetch_text(struct cop_prefetch *p, struct cop_buf *out);

/* ---- the manifest, on the node that reads it from a file and writes the next job's; the other
 * nodes request its text through the tree ---- */

struct cop_prefetch_manifest;
#define COP_PREFETCH_PATH 4096

struct cop_prefetch_manifest_conf {
	const char
		*path; /* the manifest's file; or "auto": where the last job with this source stored
			  it, next to the source if this user may write there; or "": the same, but
			  only in the user's cache directory, and never for a system directory */
	const char *source; /* absolute; both outlive the object */
	bool record; /* auto: record the objects that this node needs, for the next job's manifest
		      */
	size_t chunk_bytes;  /* of this job */
	uint64_t pack_limit; /* maximum size of a pack in bytes; 0: no pack */
	bool to_stderr;      /* report problems on standard error as well as in the log */
};
/* Returns 0, even if auto finds no usable manifest, or -errno with a sentence in err if the file
 * that the user named cannot be read. */
int cop_prefetch_manifest_load(const struct cop_prefetch_manifest_conf *conf,
	struct cop_prefetch_manifest **out, struct cop_err *err);
/* Whether this is a system directory such as /, /usr or /etc. */
bool cop_prefetch_is_system(const char *source);
/* The path where "" stores this source's manifest; false: none is stored. Creates nothing. */
bool cop_prefetch_kept_at(const char *source, char path[COP_PREFETCH_PATH]);
/* A sentence for the user if this is the user's first recording; else "". */
const char *cop_prefetch_manifest_note(const struct cop_prefetch_manifest *m);
/* m may be NULL, here and below. */
void cop_prefetch_manifest_free(struct cop_prefetch_manifest *m);
/* The set in which needed objects are recorded, valid for the lifetime of m; NULL: not recording.
 */
struct cop_manifest_set *cop_prefetch_manifest_record(struct cop_prefetch_manifest *m);
/* A malloc'ed copy of a piece of the text, as struct cop_fetch_conf requires. 0, -ENODATA, -ENOMEM.
 * Any thread. */
int cop_prefetch_manifest_piece(
	const struct cop_prefetch_manifest *m, uint64_t index, void **data, size_t *len);
/* XXH3-64 of the text sent down the tree; 0: none. */
uint64_t cop_prefetch_manifest_hash(const struct cop_prefetch_manifest *m);
/* Some data is put into the kernel before programs request it, so the recording never sees those
 * requests. The next manifest therefore keeps all current items, in their present order. */
void cop_prefetch_manifest_hide(struct cop_prefetch_manifest *m);
/* The pack next to the manifest, valid for the lifetime of m; NULL: no usable pack. */
struct cop_packfile *cop_prefetch_manifest_pack(const struct cop_prefetch_manifest *m);
/* Whether there is a manifest to rewrite. */
bool cop_prefetch_manifest_renews(const struct cop_prefetch_manifest *m);
/* Ends the recording and writes the next job's manifest. begun: bit mask of the parts that programs
 * have begun. */
void cop_prefetch_manifest_save(struct cop_prefetch_manifest *m, uint64_t begun);

/* ---- the pack: the objects of the manifest that this node has cached, stored next to the
 * manifest. A thread writes it when programs have requested nothing new for a while and the storage
 * is idle; at the end of the job, it has half a second to write the remaining objects. A new pack
 * is written only if much is missing from the last one. ---- */

struct cop_prefetch_pack;

struct cop_prefetch_pack_conf {
	struct cop_prefetch_manifest *manifest;
	struct cop_fetch *fetch;
	struct cop_cache *cache;
	struct cop_origin *origin;
	uint64_t (*begun)(void *arg); /* bit mask of the parts that programs have begun */
	void *arg;
	uint32_t finish_ms; /* time limit for the remaining objects at the end of the job; 0: half a
			       second */
};

/* NULL if nothing is recorded or no pack is wanted, or if the thread cannot start, which is logged.
 */
struct cop_prefetch_pack *cop_prefetch_pack_start(const struct cop_prefetch_pack_conf *conf);
/* Starts writing the remaining objects and gives up after finish_ms. p may be NULL, here and below.
 */
void cop_prefetch_pack_finish(struct cop_prefetch_pack *p);
/* Waits for the thread to end; after that, nothing in conf is used. False: the thread hangs in a
 * file system, and everything it uses must outlive it. */
bool cop_prefetch_pack_join(struct cop_prefetch_pack *p);
/* Frees it, finished or not. False: as above. */
bool cop_prefetch_pack_free(struct cop_prefetch_pack *p);
/* Default location of this source's pack; false: none. */
bool cop_prefetch_pack_at(const char *source, char path[COP_PREFETCH_PATH]);

#endif
