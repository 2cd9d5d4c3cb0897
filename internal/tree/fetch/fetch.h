/* SPDX-License-Identifier: BSD-3-Clause */
/* fetch: the core of Copper. On a cache miss it requests the object from the parent in the
 * object's tree; the root reads it from the origin. Later requests for the object join the flight.
 * On completion all waiters, local readers and children alike, receive the object.
 *
 * If a parent is dead, or lacks memory, descriptors or buffers for an answer, fetch tries the next
 * live ancestor, and finally this node's own origin. A resource shortage on a node is an error only
 * for its own readers. Requests are idempotent and can be resent. When a peer dies, applications
 * see a pause, never an error.
 *
 * A flight is one in-flight fetch of one object. The cache finds it by the object's key, which
 * prevents duplicates, and holds its list of waiters. All other fields belong to one owner at a
 * time. Ownership is transferred before the next owner can access the flight, hence no lock:
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
 * A flight is ACTIVE between any two of RESERVE, ASKING and READING. It is ASKING once per ancestor
 * and try. Each next ancestor is closer to the root, so the last resort is READING from the origin.
 * cop_fetch_pass asserts that no other state change happens. */
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

/* A root reads the missing chunks of an aligned group of this many bytes in one job of the origin.
 */
#define COP_FETCH_GROUP_BYTES (4 * COP_MIB)

/* Bytes reserved for an answer of unknown length; most answers are shorter. */
#define COP_FETCH_LISTING_BYTES (64 * COP_KIB)
#define COP_FETCH_ENTRY_BYTES ((size_t)512)

/* For a file up to this length, the first read after its first chunk fetches the rest. */
#define COP_FETCH_MEDIUM_BYTES (8 * COP_MIB)

/* Default of striped_bytes on a node. With a smaller file, one root would have forwarded it to its
 * children before the other roots had opened it; striping would only add storage clients. */
#define COP_FETCH_STRIPED_BYTES (64 * COP_MIB)

struct cop_fetch;

/* Also the rpc operations of this module: 1 up to COP_ASK_LAST. */
enum cop_ask_kind {
	COP_ASK_LISTING = 1, /* listing blob of a directory */
	COP_ASK_ENTRY,       /* entry blob of a name */
	COP_ASK_CHUNK,       /* bytes of a file */
	COP_ASK_NAMES,       /* listing blob of a directory beyond listing_max, names only */
	COP_ASK_HOLES,       /* array of struct cop_extent: where a sparse file has data */
	COP_ASK_STATFS,      /* struct cop_statfs of the source */
	COP_ASK_CHECK,       /* whether the directory still has the version of this listing */
	COP_ASK_MANIFEST,    /* a piece of rank 0's manifest, by index; -ENODATA past the end */
	COP_ASK_NEWER, /* listing blob of a directory that has changed since this version: the known
			  names unchanged, plus the new names */
	COP_ASK_PAGE, /* a page (wire.h) of a directory in this version: attributes of some names */
};
#define COP_ASK_LAST COP_ASK_PAGE

struct cop_ask {
	enum cop_ask_kind kind;
	const char *path; /* relative to the source, NUL-terminated, at most 4095 bytes */
	uint64_t version; /* of the file (chunk, holes) or of the directory (check, newer, page) */
	uint64_t size;    /* of the file (chunk); number of pages (page) */
	uint64_t index;   /* of the chunk, the piece or the page */
	uint64_t run_end; /* chunk, local only: the root reads neither chunks from this index on nor
			     chunks before the requested one in the same job; 0: it reads all
			     missing chunks of the group */
	bool background;  /* no waiter yet: lowest priority at the origin */
	bool along;       /* sent along with another request; local only */
	bool guess;       /* listing: the directory may not exist */
	bool mentioned;   /* file: its path occurs in another file; local only */
	bool first; /* entry: with the bytes of a small file (first.c); chunk: no reader yet, but a
		       waiter for the entry with these bytes */
	bool home;  /* chunk: the root has no room; up the tree of the chunk's home (lend.c) */
	bool peek;  /* chunk: only if the answering node, the root, has it; from its home */
	uint32_t from; /* requester, for the trace only: a local thread or a rank */
};

struct cop_fetch_conf {
	struct cop_topo topo;
	uint32_t rank;
	size_t chunk_bytes;
	uint64_t striped_bytes; /* files of at least this size are striped over all trees; the same
				   on all nodes */
	uint32_t enoent_ttl_ms;
	uint32_t enoent_most_ms; /* upper limit of the TTL of absent names, which grows while a
				    directory is unchanged; 0: no growth */
	bool compress; /* compress chunks read from the origin if this saves at least a tenth */
	bool bundle;   /* prefetch small files next to those that programs read (guess.h) */
	uint64_t max_cacheable; /* larger files bypass the tree; 0: no limit */
	uint64_t sum_seed; /* seed of the chunk checksums, secret and the same on all nodes; without
			      it, forged bytes fail verification */
	struct cop_cache *cache;
	struct cop_origin *origin;
	struct cop_spill *spill;   /* NULL: evicted data is fetched again */
	struct cop_packfile *pack; /* data read by an earlier job, or NULL; used while
				      cop_fetch_use_pack allows it */
	struct cop_rpc *rpc;       /* NULL for a tree of one node */
	/* Returns a malloc'ed copy of a piece of the manifest, on a node with a manifest. Must be
	 * quick; may be NULL. 0 or -errno. */
	int (*manifest)(void *ctx, uint64_t index, void **data, size_t *len);
	/* Makes this node's kernel forget the names in a directory. Calls then(arg) once this and
	 * all earlier requests are done, on another thread or before returning. dir NULL: only
	 * waits for the earlier requests. May block for long: the kernel waits for lookups in
	 * progress in the directory. -ENOMEM: nothing was done, then is not called. NULL without a
	 * kernel mount. */
	int (*forget_names)(void *ctx, const char *dir, void (*then)(void *arg), void *arg);
	void *ctx;
	struct cop_stats *stats;
	struct cop_tracer *tracer;       /* receives flights; may be NULL */
	struct cop_telemetry *telemetry; /* receives changes of parents and files; may be NULL */
};

struct cop_fetch *cop_fetch_new(const struct cop_fetch_conf *conf);
/* From now on new requests to parents or the origin fail with -ESHUTDOWN. After this returns, the
 * progress thread no longer calls the origin: the caller may close the origin, then rpc. */
void cop_fetch_close(struct cop_fetch *c);
/* No flight may be in progress (close origin and rpc first). */
void cop_fetch_free(struct cop_fetch *c);

/* Returns 1 and the answer in *obj, with a reference (check obj->error); 0 if the waiter will be
 * called exactly once, on another thread or before this returns; or -ENOMEM. Never blocks. */
int cop_fetch_get(struct cop_fetch *c, const struct cop_ask *ask, struct cop_waiter *waiter,
	struct cop_obj **obj);

/* The request for the page with this name. names is the listing of dir. */
struct cop_ask cop_fetch_page_ask(
	const char *dir, const void *names, const char *name, size_t name_len);

/* The cached, complete object with a reference, or NULL. Sends no request and counts nothing. */
struct cop_obj *cop_fetch_peek(struct cop_fetch *c, const struct cop_ask *ask);

/* The attributes of a directory with a cached listing; false if it is not cached. */
bool cop_fetch_dir_attr(struct cop_fetch *c, const char *path, struct cop_attr *attr);

/* Whether this node would read the object from the storage rather than request it from another
 * node. */
bool cop_fetch_reads_itself(struct cop_fetch *c, const struct cop_ask *ask);
/* The cache state of the object. */
enum cop_held cop_fetch_held(struct cop_fetch *c, const struct cop_ask *ask);
/* Whether the object is cached or in flight. */
bool cop_fetch_has(struct cop_fetch *c, const struct cop_ask *ask);

/* Remaining validity in ms of the absence of a name from a complete listing; 0: the directory must
 * be checked. */
uint32_t cop_fetch_absent_ms(const struct cop_fetch *c, const struct cop_obj *listing);
/* The same, after a lookup of such a name by a program. */
uint32_t cop_fetch_missed_ms(struct cop_fetch *c, struct cop_obj *listing);

/* Whether this node confirmed the listing in a COP_ASK_CHECK within the ENOENT TTL. The TTL does
 * not grow here: growth would add up from node to node. */
bool cop_fetch_fresh(struct cop_fetch *c, const struct cop_ask *check);

/* Validity in ms of the attributes of a young version (wire.h) after arrival: two ticks or the
 * ENOENT TTL, whichever is longer. */
uint64_t cop_fetch_young_ms(const struct cop_fetch *c, const struct cop_attr *attr);
/* Whether the attributes in this object are still valid; if not, request them again. Attributes of
 * a directory are always valid, because its contents have a listing of their own. */
bool cop_fetch_believes(
	const struct cop_fetch *c, const struct cop_obj *obj, const struct cop_attr *attr);

/* Whether this node, as a root, reads names and chunks from the pack if their versions still match
 * the source. Initially true. */
void cop_fetch_use_pack(struct cop_fetch *c, bool use);

/* The prefetch has ended: from now on, cache misses of programs count as not prefetched. */
void cop_fetch_prefetched(struct cop_fetch *c);

/* Called when a local program reads from this chunk. */
void cop_fetch_used(struct cop_fetch *c, struct cop_obj *obj);
/* Called when the kernel receives len bytes of this chunk; counts them by their source. */
void cop_fetch_given(struct cop_fetch *c, struct cop_obj *obj, size_t len);

/* Requests made by this thread between the two calls are sent together (rpc.h). */
void cop_fetch_cork(struct cop_fetch *c);
void cop_fetch_uncork(struct cop_fetch *c);

/* A program looks up this name (NUL-terminated), which may be absent. The name of a Python
 * extension reveals the naming scheme of the others. */
void cop_fetch_looked_for(struct cop_fetch *c, const char *name, size_t len);

/* Prefetches a chunk, unless it is cached or memory is short. */
void cop_fetch_ahead(struct cop_fetch *c, const struct cop_ask *ask);

/* True if there is nothing to fetch: the entry and its first bytes are cached or in flight, or the
 * entry is not that of a small file. */
bool cop_fetch_has_first(struct cop_fetch *c, const char *path);
/* Maximum size of a file that is fetched with its entry or next to other files. */
size_t cop_fetch_largest_small(const struct cop_fetch *c);

/* A path (NUL-terminated), split into its directory and its name. */
struct cop_fetch_name {
	const char *path;
	size_t dir_len;   /* length of the directory, without trailing slash; 0: the source */
	const char *name; /* in path */
	size_t name_len;
};
struct cop_fetch_name cop_fetch_split(const char *path);

/* The known names of a directory (its path has dir_len bytes), with a reference: its listing or, if
 * it is too large for a listing, the names alone. NULL if unknown. */
struct cop_obj *cop_fetch_names_of(struct cop_fetch *c, const char *dir, size_t dir_len);
/* The cached contents of a directory, with a reference: its listing or, for a listing without
 * attributes, its only page. Returns NULL, or an object with an error, if unknown. */
struct cop_obj *cop_fetch_listed(struct cop_fetch *c, const char *dir, size_t dir_len);

/* Prefetches an entry, with the bytes of a small file, for a name without attributes in its
 * listing. mentioned: as in cop_ask. No waiter is notified. Returns whether a flight began: false
 * if the entry is cached, bundle is off, or memory is short. The thread may hold a cork. */
bool cop_fetch_ask_first(struct cop_fetch *c, const char *path, bool mentioned);

/* A reader that bypassed the tree found this version of a file gone: the names in its directory are
 * requested again. */
void cop_fetch_doubt(struct cop_fetch *c, const char *path, uint64_t version);

/* Drops the entry of a name and the listing that contains it. */
void cop_fetch_forget_name(struct cop_fetch *c, const char *path);

/* Serves a child's request; false, without effect, if the operation belongs to another module. */
bool cop_fetch_serve(struct cop_fetch *c, struct cop_rpc_req *req);

/* Called on the progress thread at intervals while an answer to a child is pending. now_ms: any
 * clock. */
void cop_fetch_tick(struct cop_fetch *c, uint64_t now_ms);

/* Bytes skip..skip+len of a complete chunk. *data points into the object or, for a compressed
 * chunk, to out, which must have room for len bytes. -EBADMSG if the chunk is shorter, whatever
 * size was requested; -ENOMEM. */
int cop_fetch_chunk_part(
	const struct cop_obj *obj, size_t skip, size_t len, void *out, const void **data);

/* The number of bytes in this chunk of a file of this size. */
size_t cop_fetch_chunk_len(const struct cop_fetch *c, uint64_t size, uint64_t index);
size_t cop_fetch_chunk_bytes(const struct cop_fetch *c);
/* Read-ahead of a sequential reader of a file of this size, in chunks: a few, or enough to keep all
 * trees busy if the file is striped; at most COP_FETCH_WINDOW_MAX. */
#define COP_FETCH_WINDOW_MAX 64u
unsigned cop_fetch_window(const struct cop_fetch *c, uint64_t size);

/* The ancestor that currently answers this node's requests in the first tree: a rank, or
 * COP_TOPO_NONE for the origin. */
uint32_t cop_fetch_parent(const struct cop_fetch *c);

#endif
