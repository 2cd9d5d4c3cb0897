/* SPDX-License-Identifier: BSD-3-Clause */
/* fetch: the core of Copper. On a cache miss, it requests the object from the parent in the
 * object's tree; the root reads it from the origin. Later requests for the same object join the
 * flight. When the flight completes, all waiters, local readers and children alike, receive the
 * object.
 *
 * If a parent is dead, or lacks memory, descriptors or buffers for an answer, fetch tries the next
 * live ancestor and, as a last resort, this node's own origin. A node that runs short of resources
 * returns errors only to its own readers. Requests are idempotent and can be resent. When a peer
 * dies, applications see a pause, never an error.
 *
 * A flight is one in-flight fetch of one object. The cache finds it by the object's key, which
 * prevents duplicates, and holds its list of waiters. All other fields belong to one owner at a
 * time. No lock is needed, because ownership is transferred before the next owner can access the
 * flight:
 *
 *	state     owner                       thread               ends with
 *	LED       the first requester         the requester's      a place in a group, or in the
 *	                                                           queue for bytes
 *	MEMBER    the flight that leads its   that flight's        the read for all of the group:
 *	          group, at a root                                 group_read(), or a request of
 *	                                                           its own: cop_fetch_peeked()
 *	RESERVE   the cache's queue for       none                 enough free bytes: start()
 *	          bytes of the budget
 *	ACTIVE    fetch, in one of the calls  the requester's, one a call, a job, the queue again
 *	          in the last column          that frees bytes,    (for a longer answer), or the end
 *	                                      progress, origin's
 *	ASKING    the call in rpc, to an      progress             the answer, or none: answered()
 *	          ancestor
 *	READING   the job in origin           a worker of origin   the result of the read:
 *	                                                           cop_fetch_blob_read(),
 *	                                                           checked() or group_read()
 *	          the read in spill           a worker of spill,   unspilled()
 *	                                      or its clock
 *	COMPLETE  none: all waiters have the  as ACTIVE
 *	          object; it is freed
 *
 * A flight is ACTIVE between any two of RESERVE, ASKING and READING. It enters ASKING once per
 * ancestor and try. Each ancestor tried is closer to the root than the one before, so the last
 * resort is READING from the origin. cop_fetch_pass asserts that no other transition occurs. */
#ifndef COP_TREE_FETCH_H
#define COP_TREE_FETCH_H

#include "cache/cache/cache.h"
#include "storage/origin/origin.h"
#include "storage/packfile/packfile.h"
#include "storage/spill/spill.h"
#include "fabric/rpc/rpc.h"
#include "prof/telemetry/telemetry.h"
#include "job/topo/topo.h"
#include "prof/tracer/tracer.h"

/* A root reads all missing chunks of an aligned group of this many bytes in one origin job. */
#define COP_FETCH_GROUP_BYTES (4 * COP_MIB)

/* Bytes reserved for an answer of unknown length; most answers are shorter. */
#define COP_FETCH_LISTING_BYTES (64 * COP_KIB)
#define COP_FETCH_ENTRY_BYTES ((size_t)512)

/* For a file up to this length, the first read after its first chunk fetches the rest. */
#define COP_FETCH_MEDIUM_BYTES (8 * COP_MIB)

/* Default for striped_bytes. A single root forwards a smaller file to its children before the other
 * roots could even open it, so striping would only add storage clients. */
#define COP_FETCH_STRIPED_BYTES (64 * COP_MIB)

struct cop_fetch;

/* Also the rpc operations of this module: 1 up to COP_ASK_LAST. */
enum cop_ask_kind {
	COP_ASK_LISTING = 1, /* listing blob of a directory */
	COP_ASK_ENTRY,       /* entry blob of a name */
	COP_ASK_CHUNK,       /* bytes of a file */
	COP_ASK_NAMES,       /* listing blob of a directory beyond listing_max, names only */
	COP_ASK_HOLES,       /* array of struct cop_extent: the data extents of a sparse file */
	COP_ASK_STATFS,      /* struct cop_statfs of the source */
	COP_ASK_CHECK,       /* whether the directory is still at the version of this listing */
	COP_ASK_MANIFEST,    /* a piece of rank 0's manifest, by index; -ENODATA past the end */
	COP_ASK_NEWER, /* listing blob of a directory that has changed since this version: known
			  names keep their attributes, new names are added */
	COP_ASK_PAGE,  /* a page (wire.h) of this version of a directory: the attributes of some of
			  its names */
};
#define COP_ASK_LAST COP_ASK_PAGE

struct cop_ask {
	enum cop_ask_kind kind;
	const char *path; /* relative to the source, NUL-terminated, at most 4095 bytes */
	uint64_t version; /* of the file (chunk, holes) or of the directory (check, newer, page) */
	uint64_t size;    /* of the file (chunk); number of pages (page) */
	uint64_t index;   /* of the chunk, the piece or the page */
	uint64_t run_end; /* chunk, local only: the root's job covers only the chunks from the
			     requested one up to, but not including, this index; 0: it covers all
			     missing chunks of the group */
	bool background;  /* nothing waits for it yet: lowest priority at the origin */
	bool along;       /* sent along with another request; local only */
	bool guess;       /* listing: the directory may not exist */
	bool mentioned;   /* file: another file mentions its path; local only */
	bool first; /* entry: also request the bytes if the file is small (first.c); chunk: nothing
		       reads it yet, but a request waits for the entry together with these bytes */
	bool home;  /* chunk: the root has no room, so the request goes up the tree of the chunk's
		       home (lend.c) */
	bool peek;  /* chunk: sent by the chunk's home to the root, which answers only if it has the
		       chunk */
	uint32_t from; /* requester, for the trace only: a local thread or a rank */
};

struct cop_fetch_conf {
	struct cop_topo topo;
	uint32_t rank;
	size_t chunk_bytes;
	uint64_t striped_bytes; /* files of at least this size are striped over all trees; must be
				   the same on all nodes */
	uint32_t enoent_ttl_ms;
	uint32_t enoent_most_ms; /* upper limit of the TTL of absent names, which grows while the
				    directory stays unchanged; 0: no growth */
	bool compress; /* compress chunks read from the origin if that saves at least a tenth */
	bool bundle; /* prefetch small files that lie next to files that programs read (guess.h) */
	uint64_t max_cacheable; /* larger files bypass the tree; 0: no limit */
	uint64_t sum_seed; /* seed of the chunk checksums, secret and the same on all nodes; bytes
			      forged without it fail verification */
	struct cop_cache *cache;
	struct cop_origin *origin;
	struct cop_spill *spill;   /* NULL: evicted data must be fetched again */
	struct cop_packfile *pack; /* data that an earlier job read, or NULL; used while
				      cop_fetch_use_pack allows it */
	struct cop_rpc *rpc;       /* NULL for a tree of one node */
	/* On a node with a manifest, stores a malloc'ed copy of a piece of it in *data and returns
	 * 0 or -errno. Must be quick; may be NULL. */
	int (*manifest)(void *ctx, uint64_t index, void **data, size_t *len);
	/* Makes this node's kernel forget the names in a directory. Calls then(arg), on another
	 * thread or before returning, once this and all earlier requests are done. dir NULL: only
	 * waits for the earlier requests. This can take long, because the kernel waits for lookups
	 * in progress in the directory. -ENOMEM: nothing was done, and then is not called. The
	 * pointer is NULL without a kernel mount. */
	int (*forget_names)(void *ctx, const char *dir, void (*then)(void *arg), void *arg);
	void *ctx;
	struct cop_stats *stats;
	struct cop_tracer *tracer;       /* receives flights; may be NULL */
	struct cop_telemetry *telemetry; /* receives changes of parents and files; may be NULL */
};

struct cop_fetch *cop_fetch_new(const struct cop_fetch_conf *conf);
/* From now on, new requests to parents or the origin fail with -ESHUTDOWN. Once this returns, the
 * progress thread no longer calls the origin, so the caller may close the origin and then rpc. */
void cop_fetch_close(struct cop_fetch *c);
/* No flight may be in progress: close the origin and rpc first. */
void cop_fetch_free(struct cop_fetch *c);

/* Returns 1 with the answer in *obj, as a reference (check obj->error); 0 if the waiter is called
 * exactly once, either on another thread or before this returns; or -ENOMEM. Never blocks. */
int cop_fetch_get(struct cop_fetch *c, const struct cop_ask *ask, struct cop_waiter *waiter,
	struct cop_obj **obj);

/* The request for the page that contains this name. names is the listing of dir. */
struct cop_ask cop_fetch_page_ask(
	const char *dir, const void *names, const char *name, size_t name_len);

/* Returns a reference to the object if it is cached and complete, else NULL. Sends no request and
 * updates no counter. */
struct cop_obj *cop_fetch_peek(struct cop_fetch *c, const struct cop_ask *ask);

/* The attributes of a directory with a cached listing; false if it is not cached. */
bool cop_fetch_dir_attr(struct cop_fetch *c, const char *path, struct cop_attr *attr);

/* Whether this node would read the object from the storage instead of requesting it from another
 * node. */
bool cop_fetch_reads_itself(struct cop_fetch *c, const struct cop_ask *ask);
/* The cache state of the object. */
enum cop_held cop_fetch_held(struct cop_fetch *c, const struct cop_ask *ask);
/* Whether the object is cached or in flight. */
bool cop_fetch_has(struct cop_fetch *c, const struct cop_ask *ask);

/* For how many more ms a name missing from a complete listing counts as absent; 0: the directory
 * must be checked. */
uint32_t cop_fetch_absent_ms(const struct cop_fetch *c, const struct cop_obj *listing);
/* The same, when a program has just looked up such a name. */
uint32_t cop_fetch_missed_ms(struct cop_fetch *c, struct cop_obj *listing);

/* Whether this node confirmed the listing of this COP_ASK_CHECK within the ENOENT TTL. The TTL does
 * not grow here, because its growth would add up from node to node. */
bool cop_fetch_fresh(struct cop_fetch *c, const struct cop_ask *check);

/* For how many ms after arrival the attributes of a young version (wire.h) are valid: two ticks or
 * the ENOENT TTL, whichever is longer. */
uint64_t cop_fetch_young_ms(const struct cop_fetch *c, const struct cop_attr *attr);
/* Whether the attributes in this object are still valid; if not, request them again. The attributes
 * of a directory are always valid, because its contents are tracked by its listing. */
bool cop_fetch_believes(
	const struct cop_fetch *c, const struct cop_obj *obj, const struct cop_attr *attr);

/* Whether this node, as a root, may read names and chunks from the pack if their versions still
 * match the source. Initially true. */
void cop_fetch_use_pack(struct cop_fetch *c, bool use);

/* The prefetch has ended: from now on, cache misses by programs count as not prefetched. */
void cop_fetch_prefetched(struct cop_fetch *c);

/* Called when a local program reads from this chunk. */
void cop_fetch_used(struct cop_fetch *c, struct cop_obj *obj);
/* Called when the kernel receives len bytes of this chunk; counts them by their source. */
void cop_fetch_given(struct cop_fetch *c, struct cop_obj *obj, size_t len);

/* Requests made by this thread between the two calls are sent together (rpc.h). */
void cop_fetch_cork(struct cop_fetch *c);
void cop_fetch_uncork(struct cop_fetch *c);

/* A program looks up this name (NUL-terminated), which may be absent. The name of one Python
 * extension module reveals how the others are named. */
void cop_fetch_looked_for(struct cop_fetch *c, const char *name, size_t len);

/* Prefetches a chunk unless it is cached or memory is short. */
void cop_fetch_ahead(struct cop_fetch *c, const struct cop_ask *ask);

/* True if nothing needs to be fetched: the entry and its first bytes are cached or in flight, or
 * the entry does not describe a small file. */
bool cop_fetch_has_first(struct cop_fetch *c, const char *path);
/* Maximum size of a file that is prefetched with its entry or along with other files. */
size_t cop_fetch_largest_small(const struct cop_fetch *c);

/* A path (NUL-terminated), split into its directory and its name. */
struct cop_fetch_name {
	const char *path;
	size_t dir_len;   /* length of the directory, without trailing slash; 0: the source */
	const char *name; /* in path */
	size_t name_len;
};
struct cop_fetch_name cop_fetch_split(const char *path);

/* The known names of a directory (its path has dir_len bytes), as a reference: its listing or, if
 * it is too large for a listing, its names only. NULL if unknown. */
struct cop_obj *cop_fetch_names_of(struct cop_fetch *c, const char *dir, size_t dir_len);
/* The cached contents of a directory, as a reference: its listing or, if the listing has no
 * attributes, its only page. If unknown, returns NULL or an object with an error. */
struct cop_obj *cop_fetch_listed(struct cop_fetch *c, const char *dir, size_t dir_len);

/* Prefetches the entry of a name whose listing has no attributes, with the bytes if the file is
 * small. mentioned: as in cop_ask. Notifies no waiter. Returns whether a flight began: false if the
 * entry is cached, bundle is off, or memory is short. The calling thread may hold a cork. */
bool cop_fetch_ask_first(struct cop_fetch *c, const char *path, bool mentioned);

/* A reader that bypassed the tree found that this version of a file is gone: requests the names in
 * its directory again. */
void cop_fetch_doubt(struct cop_fetch *c, const char *path, uint64_t version);

/* Drops the entry of a name and the listing that contains it. */
void cop_fetch_forget_name(struct cop_fetch *c, const char *path);

/* Serves a child's request. Returns false and does nothing if the operation belongs to another
 * module. */
bool cop_fetch_serve(struct cop_fetch *c, struct cop_rpc_req *req);

/* Called on the progress thread at intervals while an answer to a child is pending. now_ms may come
 * from any clock. */
void cop_fetch_tick(struct cop_fetch *c, uint64_t now_ms);

/* The bytes [skip, skip + len) of a complete chunk. *data points into the object or, if the chunk
 * is compressed, to out, which must have room for len bytes. Returns 0, -EBADMSG if the chunk is
 * too short, or -ENOMEM. */
int cop_fetch_chunk_part(
	const struct cop_obj *obj, size_t skip, size_t len, void *out, const void **data);

/* The number of bytes in this chunk of a file of this size. */
size_t cop_fetch_chunk_len(const struct cop_fetch *c, uint64_t size, uint64_t index);
size_t cop_fetch_chunk_bytes(const struct cop_fetch *c);
/* Read-ahead window, in chunks, for a sequential reader of a file of this size: a few chunks, or
 * enough to keep all trees busy if the file is striped; at most COP_FETCH_WINDOW_MAX. */
#define COP_FETCH_WINDOW_MAX 64u
unsigned cop_fetch_window(const struct cop_fetch *c, uint64_t size);

/* The ancestor that currently answers this node's requests in the first tree: a rank, or
 * COP_TOPO_NONE for the origin. */
uint32_t cop_fetch_parent(const struct cop_fetch *c);

#endif
