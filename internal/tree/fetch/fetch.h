/* SPDX-License-Identifier: BSD-3-Clause */
/* fetch: the core of Copper. It asks the parent in an object's tree for an object that is not in
 * this node's cache; a root reads it from the origin. Further requests for it join the same
 * flight. When the flight completes, all of them get the object, local readers and children alike.
 *
 * If a parent is dead, or lacks memory, descriptors or buffers for an answer, fetch asks the next
 * living ancestor; if there is none, this node reads the origin itself. A shortage on a node is an
 * error for its own readers only. Requests are idempotent, so they can be sent again. If a peer
 * dies, an application sees a pause, never an error.
 *
 * A flight is one fetch of one object. The cache finds it by the object's key, so no second one
 * starts while it lasts, and keeps the list of those who wait for it. Everything else in it belongs
 * to one owner at a time, who hands it on before anybody else can see it, so it has no lock:
 *
 *	state     owner                       thread               ends with
 *	LED       whoever asked first         the asker's          a place in a group, or in the
 *	                                                           queue for bytes
 *	MEMBER    the flight that leads its   that flight's        the read for all of the group:
 *	          group, at a root                                 group_read()
 *	RESERVE   the cache's queue for       none                 enough free bytes: start()
 *	          bytes of the budget
 *	ACTIVE    fetch, in one of the calls  the asker's, one     a call, a job, the queue again
 *	          in the last column          that frees bytes,    (for a longer answer), or the end
 *	                                      progress, origin's
 *	ASKING    the call in rpc, to an      progress             the answer, or none: answered()
 *	          ancestor
 *	READING   the job in origin           a worker of origin   what the storage says:
 *	                                                           cop_fetch_blob_read(),
 *	                                                           checked() or group_read()
 *	          the read in spill           a worker of spill,   unspilled()
 *	                                      or its clock
 *	COMPLETE  nobody: everyone who waits  as ACTIVE
 *	          has the object; it is freed
 *
 * On the way it is ACTIVE between any two of RESERVE, ASKING and READING. It is ASKING once for
 * each ancestor and try. The ancestors only come nearer to the root, so at the latest it ends in
 * READING from the origin. cop_fetch_pass asserts that no other change of state happens. */
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

/* The bytes reserved for an answer before its length is known; most answers are shorter. */
#define COP_FETCH_LISTING_BYTES (64 * COP_KIB)
#define COP_FETCH_ENTRY_BYTES ((size_t)512)

/* For a file up to this length, the first read after its first chunk fetches the rest. */
#define COP_FETCH_MEDIUM_BYTES (8 * COP_MIB)

/* The value of striped_bytes that a node sets. For a smaller file, one root has forwarded it to its
 * children before the other roots have opened it, and the storage has one client. */
#define COP_FETCH_STRIPED_BYTES (64 * COP_MIB)

struct cop_fetch;

/* Also the rpc operations of this module: 1 up to COP_ASK_LAST. */
enum cop_ask_kind {
	COP_ASK_LISTING = 1, /* listing blob of a directory */
	COP_ASK_ENTRY,       /* entry blob of one name */
	COP_ASK_CHUNK,       /* bytes of a file */
	COP_ASK_NAMES,       /* listing blob of a directory beyond listing_max, names only */
	COP_ASK_HOLES,       /* array of struct cop_extent: where a sparse file has data */
	COP_ASK_STATFS,      /* struct cop_statfs of the source */
	COP_ASK_CHECK,       /* does the directory still have the version of this listing? */
	COP_ASK_MANIFEST, /* a piece of rank 0's manifest, by index; -ENODATA past the last one */
	COP_ASK_NEWER,    /* listing blob of a directory that no longer has this version: the known
			     names as they were, and the new ones */
	COP_ASK_PAGE,     /* a page (wire.h) of a directory of this version: attributes of some of
			     its names */
};
#define COP_ASK_LAST COP_ASK_PAGE

struct cop_ask {
	enum cop_ask_kind kind;
	const char *path; /* relative to the source, NUL-terminated, at most 4095 bytes */
	uint64_t version; /* of the file (chunk, holes) or of the directory (check, newer, page) */
	uint64_t size;    /* of the file (chunk); how many pages there are (page) */
	uint64_t index;   /* of the chunk, of the piece, of the page */
	uint64_t run_end; /* of a chunk: a root reads none from this index on together with it, and
			     none before it; 0: it reads what is missing of the group; on this node
			     only */
	bool background;  /* nobody waits for it yet, so it comes last at the origin */
	bool along;       /* it goes along with another request; on this node only */
	bool guess;       /* of a listing: nobody knows yet whether there is such a directory */
	bool mentioned;   /* of a file: another one mentions it; on this node only */
	bool first;    /* of an entry: the bytes of a small file come along (first.c); of a chunk:
			  nobody reads it yet, but somebody waits for the entry with it */
	bool home;     /* of a chunk: the root has no room, and this node keeps it (lend.c) */
	uint32_t from; /* who asks, for the trace only: a thread of this node, or a rank */
};

struct cop_fetch_conf {
	struct cop_topo topo;
	uint32_t rank;
	size_t chunk_bytes;
	uint64_t striped_bytes; /* files of at least this many bytes go round all trees; the same
				   on all nodes */
	uint32_t enoent_ttl_ms;
	uint32_t enoent_most_ms; /* the longest time that the TTL of names in a directory that stays
				    the same grows to; 0: it does not grow */
	bool compress; /* pack the chunks that this node reads from the origin, if that saves a
			  tenth */
	bool bundle;   /* fetch small files beside those that programs read (guess.h) */
	uint64_t max_cacheable; /* larger files bypass the tree; 0: none do */
	uint64_t sum_seed; /* seed of the checksums of chunks, secret and the same on all nodes:
			      without it nobody can forge bytes that pass */
	struct cop_cache *cache;
	struct cop_origin *origin;
	struct cop_spill *spill;   /* NULL: what leaves memory is fetched again */
	struct cop_packfile *pack; /* what an earlier job read; NULL: there is none. Used as long as
				      cop_fetch_use_pack says */
	struct cop_rpc *rpc;       /* NULL for a tree of one node */
	/* Returns a malloc'ed copy of a piece of the manifest, on a node that has one. Must be
	 * quick; may be NULL. 0 or -errno. */
	int (*manifest)(void *ctx, uint64_t index, void **data, size_t *len);
	/* Makes the kernel of this node forget the names in a directory. then(arg) is called once
	 * the kernel has done this and everything that it was asked before, on another thread or
	 * before this returns. dir NULL: wait only for the earlier requests. May take long, because
	 * the kernel waits for programs that look for a name there. -ENOMEM: nothing was done, and
	 * then is not called. NULL if there is no kernel to tell. */
	int (*forget_names)(void *ctx, const char *dir, void (*then)(void *arg), void *arg);
	void *ctx;
	struct cop_stats *stats;
	struct cop_tracer *tracer;       /* gets flights; may be NULL */
	struct cop_telemetry *telemetry; /* gets changes of parents and of files; may be NULL */
};

struct cop_fetch *cop_fetch_new(const struct cop_fetch_conf *conf);
/* From now on new requests to parents or the origin end with -ESHUTDOWN. When this returns, the
 * progress thread will not call the origin again, so the caller may close the origin, then rpc. */
void cop_fetch_close(struct cop_fetch *c);
/* No flight may be open (origin and rpc are closed by then). */
void cop_fetch_free(struct cop_fetch *c);

/* Returns 1 if *obj is the answer, with a reference (obj->error may say that the answer is an
 * error); 0 if the waiter will be called once, on another thread or before this returns; or
 * -ENOMEM. Never blocks. */
int cop_fetch_get(struct cop_fetch *c, const struct cop_ask *ask, struct cop_waiter *waiter,
	struct cop_obj **obj);

/* The request for the page that has this name. names is the listing of dir. */
struct cop_ask cop_fetch_page_ask(
	const char *dir, const void *names, const char *name, size_t name_len);

/* The object with a reference, if it is cached and complete; else NULL. Sends no request and counts
 * nothing. */
struct cop_obj *cop_fetch_peek(struct cop_fetch *c, const struct cop_ask *ask);

/* The attributes of a directory, if its listing is cached. */
bool cop_fetch_dir_attr(struct cop_fetch *c, const char *path, struct cop_attr *attr);

/* Whether this node would ask the storage for the object rather than another node. */
bool cop_fetch_reads_itself(struct cop_fetch *c, const struct cop_ask *ask);
/* What the cache has of the object. */
enum cop_held cop_fetch_held(struct cop_fetch *c, const struct cop_ask *ask);
/* Whether the object is cached, or a flight for it is on its way. */
bool cop_fetch_has(struct cop_fetch *c, const struct cop_ask *ask);

/* How many ms from now a name that a complete listing lacks is believed to be absent; 0: the
 * directory must be checked. */
uint32_t cop_fetch_absent_ms(const struct cop_fetch *c, const struct cop_obj *listing);
/* The same for a program that looks for such a name now. */
uint32_t cop_fetch_missed_ms(struct cop_fetch *c, struct cop_obj *listing);

/* Whether this node confirmed the listing that a COP_ASK_CHECK names within the ENOENT TTL. The TTL
 * does not grow here, so that times do not add up on the way. */
bool cop_fetch_fresh(struct cop_fetch *c, const struct cop_ask *check);

/* How long attributes of a young version (wire.h) are believed after they arrived: two ticks, or
 * the ENOENT TTL if that is longer. */
uint64_t cop_fetch_young_ms(const struct cop_fetch *c, const struct cop_attr *attr);
/* Whether the attributes in this object are still valid, or must be requested again. Those of a
 * directory are always valid, because its contents have their own listing. */
bool cop_fetch_believes(
	const struct cop_fetch *c, const struct cop_obj *obj, const struct cop_attr *attr);

/* Whether this node, as a root, takes names and chunks from the pack if the source still has their
 * versions; at first it does. */
void cop_fetch_use_pack(struct cop_fetch *c, bool use);

/* The prefetch has ended: what programs need from now on counts as not prefetched. */
void cop_fetch_prefetched(struct cop_fetch *c);

/* A program of this node reads from this chunk. */
void cop_fetch_used(struct cop_fetch *c, struct cop_obj *obj);
/* The kernel gets len bytes of this chunk: counts where they came from. */
void cop_fetch_given(struct cop_fetch *c, struct cop_obj *obj, size_t len);

/* Requests that this thread makes between the two calls leave together (rpc.h). */
void cop_fetch_cork(struct cop_fetch *c);
void cop_fetch_uncork(struct cop_fetch *c);

/* A program looks for this name (NUL-terminated), which may be absent: an extension of Python tells
 * what others are called. */
void cop_fetch_looked_for(struct cop_fetch *c, const char *name, size_t len);

/* Fetches a chunk ahead of its use, if it is not cached and memory is available. */
void cop_fetch_ahead(struct cop_fetch *c, const struct cop_ask *ask);

/* Whether there is nothing to fetch: the entry and its first bytes are here or on their way, or the
 * entry is not a small file's. */
bool cop_fetch_has_first(struct cop_fetch *c, const char *path);
/* Files with more bytes are neither fetched beside others nor with their entries. */
size_t cop_fetch_largest_small(const struct cop_fetch *c);

/* A path (NUL-terminated), split into its directory and its name. */
struct cop_fetch_name {
	const char *path;
	size_t dir_len;   /* of the directory, without the slash behind it; 0: the source */
	const char *name; /* in path */
	size_t name_len;
};
struct cop_fetch_name cop_fetch_split(const char *path);

/* What this node knows of the names of a directory (its path is dir_len bytes): its listing or, if
 * there are too many for one, the names alone. With a reference; or NULL. */
struct cop_obj *cop_fetch_names_of(struct cop_fetch *c, const char *dir, size_t dir_len);
/* What this node has of a directory, with a reference: its listing or, if that has no attributes,
 * its only page. NULL, or an error, if it is not known. */
struct cop_obj *cop_fetch_listed(struct cop_fetch *c, const char *dir, size_t dir_len);

/* Requests an entry, and the bytes if it is a small file's, before a program needs them: for names
 * that a listing has without attributes. mentioned: as in cop_ask. Nobody is told. Returns whether
 * a flight began; none does if the entry is here, or with bundle off, or if memory is short. The
 * thread may hold a cork. */
bool cop_fetch_ask_first(struct cop_fetch *c, const char *path, bool mentioned);

/* A reader that bypassed the tree found that a file no longer has this version: the names in its
 * directory are requested again. */
void cop_fetch_doubt(struct cop_fetch *c, const char *path, uint64_t version);

/* Forgets what this node knows about one name: its entry and the listing that contains it. */
void cop_fetch_forget_name(struct cop_fetch *c, const char *path);

/* Serves a child's request; false (and nothing done) if the operation belongs to another module. */
bool cop_fetch_serve(struct cop_fetch *c, struct cop_rpc_req *req);

/* On the progress thread, at intervals while a child waits for its answer; now_ms may be of any
 * clock. */
void cop_fetch_tick(struct cop_fetch *c, uint64_t now_ms);

/* Bytes skip..skip+len of a complete chunk. *data points to them in the object or, if it is packed,
 * into out, which has room for them and to which they are unpacked. -EBADMSG if the chunk has fewer
 * bytes, whatever it was requested as; -ENOMEM. */
int cop_fetch_chunk_part(
	const struct cop_obj *obj, size_t skip, size_t len, void *out, const void **data);

/* The number of bytes in this chunk of a file of this size. */
size_t cop_fetch_chunk_len(const struct cop_fetch *c, uint64_t size, uint64_t index);
size_t cop_fetch_chunk_bytes(const struct cop_fetch *c);
/* How many chunks a sequential reader of a file of this size should have ahead of it: a few, or as
 * many as keep all trees busy if the file is spread over them; at most COP_FETCH_WINDOW_MAX. */
#define COP_FETCH_WINDOW_MAX 64u
unsigned cop_fetch_window(const struct cop_fetch *c, uint64_t size);

/* Which ancestor answers this node's requests in the first tree now: a rank, or COP_TOPO_NONE for
 * the origin. */
uint32_t cop_fetch_parent(const struct cop_fetch *c);

#endif
