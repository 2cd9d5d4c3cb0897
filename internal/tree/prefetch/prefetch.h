/* SPDX-License-Identifier: BSD-3-Clause */
/* prefetch: requests what a manifest names from the tree before the application does. Every node
 * works through the same manifest in the same order and asks its own parents, so one flight per
 * object serves all nodes: the roots read from the storage with many operations in flight, and the
 * data streams down as it does for an application. Prefetch requests yield to requests that
 * somebody waits for, come in small windows, and stop when memory is short.
 *
 * The manifest is a hint. Listings and entries are the tree's current answers; chunks of a file are
 * requested with the version and size from those answers, never from the manifest. So a stale
 * manifest fetches what exists now, or nothing. */
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
	/* The first reader of a file of at most this size fetches all of it, so the prefetch
	 * finally fetches all of it, too. */
	uint64_t whole_file_max;
	uint64_t max_cacheable;          /* larger files bypass the tree; 0: none do */
	struct cop_tracer *tracer;       /* gets the prefetch as a whole; may be NULL */
	struct cop_telemetry *telemetry; /* gets its begin and end; may be NULL */
	/* Called on the prefetch thread when the node has what the manifest names: the listing of a
	 * directory, a name, or the bytes [start, end) of a file. May be NULL. */
	void (*have)(void *arg, enum cop_manifest_kind kind, const char *path, uint64_t start,
		uint64_t end);
	void *arg;
	bool forming; /* the tree is not ready, and this node is its root: until
			 cop_prefetch_formed, only listings and names are requested, which come from
			 the storage */
	bool by_part; /* of a manifest with several parts, each is fetched when a program begins it;
			 else all at once */
};

/* Starts a thread that requests the manifest from tree/fetch and works through it. -ENOMEM, or the
 * error of starting a thread. */
int cop_prefetch_start(const struct cop_prefetch_conf *conf, struct cop_prefetch **out);
/* The tree is ready. Any thread. NULL is fine. */
void cop_prefetch_formed(struct cop_prefetch *p);
/* Requests nothing more and joins the thread. Outstanding requests still complete. NULL is fine. */
void cop_prefetch_stop(struct cop_prefetch *p);
/* No flight may be outstanding any more. NULL is fine. */
void cop_prefetch_free(struct cop_prefetch *p);

/* A program reads this file: if a part begins with it, that is fetched. Any thread; cheap. NULL is
 * fine. */
void cop_prefetch_opened(struct cop_prefetch *p, const char *path);
/* The parts that programs on this node began, a bit for each. */
uint64_t cop_prefetch_begun(struct cop_prefetch *p);

/* {"state":"loading|running|done|stopped","why":null,"items":N,"listings":N,"files":N}: the
 * progress. NULL: {"state":"off",...}. */
void cop_prefetch_json(struct cop_prefetch *p, struct cop_buf *out);
/* The same in words, one line without its newline. */
void cop_prefetch_text(struct cop_prefetch *p, struct cop_buf *out);

/* ---- the manifest, on the one node that reads its file and writes that of the next job; the
 * others ask that node for its text through the tree ---- */

struct cop_prefetch_manifest;
#define COP_PREFETCH_PATH 4096

struct cop_prefetch_manifest_conf {
	const char *path;   /* the manifest's file; or "auto", where the last job with this source
			       left it, beside the source if this user may write there; or "",
			       the same in the user's cache directory, and nothing for a source
			       that is the system's own */
	const char *source; /* absolute; both outlive the object */
	bool record; /* auto: record what this node needs, for the manifest of the next job */
	size_t chunk_bytes;  /* of this job */
	uint64_t pack_limit; /* bytes of a pack; 0: there is none */
	bool to_stderr; /* report problems with it on standard error too, not only in the log */
};
/* 0, also if auto finds no usable manifest; -errno with a sentence if the file that the user named
 * cannot be read. */
int cop_prefetch_manifest_load(const struct cop_prefetch_manifest_conf *conf,
	struct cop_prefetch_manifest **out, struct cop_err *err);
/* Whether this is the system's own: /, or /usr, /etc and the like. */
bool cop_prefetch_is_system(const char *source);
/* Where "" keeps the manifest of this source; false: nowhere. Creates nothing. */
bool cop_prefetch_kept_at(const char *source, char path[COP_PREFETCH_PATH]);
/* A sentence for the user, if this is the first recording of this user; else "". */
const char *cop_prefetch_manifest_note(const struct cop_prefetch_manifest *m);
/* NULL is fine, here and below. */
void cop_prefetch_manifest_free(struct cop_prefetch_manifest *m);
/* The set that records what is needed, valid while the object lives; NULL: nothing is recorded. */
struct cop_manifest_set *cop_prefetch_manifest_record(struct cop_prefetch_manifest *m);
/* A copy (malloc'ed) of a piece of the text, as struct cop_fetch_conf requires. 0, -ENODATA,
 * -ENOMEM. Any thread. */
int cop_prefetch_manifest_piece(
	const struct cop_prefetch_manifest *m, uint64_t index, void **data, size_t *len);
/* XXH3-64 of what is sent down the tree; 0: nothing is sent. */
uint64_t cop_prefetch_manifest_hash(const struct cop_prefetch_manifest *m);
/* Part of what programs will need is put into the kernel before they ask, so the recording does not
 * see it: what the manifest has then stays in it, in its order. */
void cop_prefetch_manifest_hide(struct cop_prefetch_manifest *m);
/* The pack that lies beside the manifest, valid while the object lives; NULL: there is none that
 * may be used. */
struct cop_packfile *cop_prefetch_manifest_pack(const struct cop_prefetch_manifest *m);
/* Whether there is a manifest that will be rewritten. */
bool cop_prefetch_manifest_renews(const struct cop_prefetch_manifest *m);
/* Ends the recording, and writes the manifest of the next job from it. begun: the parts that
 * programs began. */
void cop_prefetch_manifest_save(struct cop_prefetch_manifest *m, uint64_t begun);

/* ---- the pack, beside the manifest: what of it this node has in its cache. A thread writes it
 * when programs have needed nothing new for a while and the storage has nothing to do; what is then
 * not written has half a second at the end of the job. It is written only if the last one lacks
 * much of it. ---- */

struct cop_prefetch_pack;

struct cop_prefetch_pack_conf {
	struct cop_prefetch_manifest *manifest;
	struct cop_fetch *fetch;
	struct cop_cache *cache;
	struct cop_origin *origin;
	uint64_t (*begun)(void *arg); /* the parts that programs began */
	void *arg;
};

/* NULL if nothing is recorded or no pack is kept; or, with a line in the log, if it cannot start.
 */
struct cop_prefetch_pack *cop_prefetch_pack_start(const struct cop_prefetch_pack_conf *conf);
/* Begins to write what is not written yet, and gives up after half a second. NULL is fine, here and
 * below. */
void cop_prefetch_pack_finish(struct cop_prefetch_pack *p);
/* Waits for its end; after that, nothing of the conf is used. False: it hangs in a file system, and
 * what it uses must outlive it. */
bool cop_prefetch_pack_join(struct cop_prefetch_pack *p);
/* Frees it; it need not be finished. False: as above. */
bool cop_prefetch_pack_free(struct cop_prefetch_pack *p);
/* Where the pack of this source is kept by default; false: nowhere. */
bool cop_prefetch_pack_at(const char *source, char path[COP_PREFETCH_PATH]);

#endif
