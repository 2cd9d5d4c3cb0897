/* SPDX-License-Identifier: BSD-3-Clause */
/* coop: the idea of Copper. An object that is not in this node's cache is asked from the parent in
 * the object's tree; a root reads it from the origin. Everyone who wants it meanwhile joins the
 * same flight; the moment it completes it goes to all of them, local readers and children alike.
 *
 * A parent that is dead, or that cannot answer for want of memory, descriptors or buffers, is
 * passed over for the next living ancestor; with none left this node reads the origin itself. What
 * a node lacks is an error to its own readers only. Requests are idempotent and sent again. An
 * application sees a pause, never an error, because a peer died. */
#ifndef COP_COOP_H
#define COP_COOP_H

#include "cache/cache.h"
#include "origin/origin.h"
#include "rpc/rpc.h"
#include "topo/topo.h"

/* What a root reads from the origin by one job: the missing ones of the chunks of so many bytes,
 * aligned. */
#define COP_COOP_GROUP_BYTES (4 * COP_MIB)

struct cop_coop;

/* Also the rpc operations of this module: 1 up to COP_ASK_LAST. */
enum cop_ask_kind {
	COP_ASK_LISTING = 1, /* listing blob of a directory */
	COP_ASK_ENTRY,       /* entry blob of one name */
	COP_ASK_CHUNK,       /* bytes of a file */
	COP_ASK_NAMES,       /* listing blob of a directory beyond listing_max, names only */
	COP_ASK_HOLES,       /* array of struct cop_extent: where a sparse file has data */
	COP_ASK_STATFS,      /* struct cop_statfs of the source */
	COP_ASK_CHECK,       /* is the listing with this version (of the directory) still true? */
	COP_ASK_MANIFEST, /* a piece of the manifest that rank 0 was given: its index; -ENODATA past
			     the last one */
	COP_ASK_NEWER,    /* listing blob of a directory that is not of this version any more: known
			     names as they were, and the new ones */
};
#define COP_ASK_LAST COP_ASK_NEWER

struct cop_ask {
	enum cop_ask_kind kind;
	const char *path; /* relative to the source, NUL-terminated, at most 4095 bytes */
	uint64_t version; /* of the file (chunk, holes) or of the directory (check, newer) */
	uint64_t size;    /* of the file (chunk) */
	uint64_t index;   /* of the chunk, of the piece */
	bool background;  /* nobody waits for it yet: at the origin it comes last */
};

struct cop_coop_conf {
	struct cop_topo topo;
	uint32_t rank;
	size_t chunk_bytes;
	uint32_t enoent_ttl_ms;
	bool compress;     /* chunks that this node reads from the origin are packed if that saves a
			      tenth */
	uint64_t sum_seed; /* of the checksums of chunks, the same on all nodes and secret: who does
			      not know it cannot make bytes that pass */
	struct cop_cache *cache;
	struct cop_origin *origin;
	struct cop_rpc *rpc; /* NULL for a tree of one node */
	/* Gives a copy (malloc'ed) of a piece of the manifest, on a node that has one. May be NULL;
	 * quick. 0 or -errno. */
	int (*manifest)(void *ctx, uint64_t index, void **data, size_t *len);
	/* The kernel of this node forgets the names in a directory; then(arg) is called once it
	 * has, also all that it was asked before, on another thread or before this returns. dir
	 * NULL: only what it was asked before. May take long: the kernel waits for programs that
	 * look for a name there. -ENOMEM: nothing was done, and then is not called. May be NULL:
	 * there is no kernel to tell. */
	int (*forget_names)(void *ctx, const char *dir, void (*then)(void *arg), void *arg);
	void *ctx;
	struct cop_stats *stats;
};

struct cop_coop *cop_coop_new(const struct cop_coop_conf *conf);
/* From now on nothing new is asked of parents or the origin: it ends with -ESHUTDOWN. When this
 * returns, the progress thread will not call the origin again, so the origin may be closed, then
 * rpc. */
void cop_coop_close(struct cop_coop *c);
/* No flight may be open (origin and rpc are closed by then). */
void cop_coop_free(struct cop_coop *c);

/* 1: *obj is the answer, with a reference (obj->error may say that the answer is an error); 0: the
 * waiter will be called once, on another thread or before this returns; -ENOMEM. Never blocks. */
int cop_coop_get(struct cop_coop *c, const struct cop_ask *ask, struct cop_waiter *waiter,
	struct cop_obj **obj);

/* The object if it is here, complete, with a reference; else NULL. Asks nobody and counts nothing.
 */
struct cop_obj *cop_coop_peek(struct cop_coop *c, const struct cop_ask *ask);

/* Whether the listing named by a COP_ASK_CHECK was found true within the ENOENT TTL, here. */
bool cop_coop_fresh(struct cop_coop *c, const struct cop_ask *check);

/* How long attributes of a young version (wire.h) are believed after they came: two ticks, or the
 * ENOENT TTL if that is longer. */
uint64_t cop_coop_young_ms(const struct cop_coop *c, const struct cop_attr *attr);
/* Whether attributes in this object are to be believed, or asked for again. Of a directory they
 * are: what is in it has its listing. */
bool cop_coop_believes(
	const struct cop_coop *c, const struct cop_obj *obj, const struct cop_attr *attr);

/* Fetches a chunk for nobody yet, if it is not there and memory is at hand. */
void cop_coop_ahead(struct cop_coop *c, const struct cop_ask *ask);

/* Somebody read a file past the tree, and it is not of this version any more: the names in its
 * directory are asked again. */
void cop_coop_doubt(struct cop_coop *c, const char *path, uint64_t version);

/* Forgets what this node knows of one name: its entry and the listing that holds it. */
void cop_coop_forget_name(struct cop_coop *c, const char *path);

/* A child's request; false (and nothing done) if the operation is not one of ours. */
bool cop_coop_serve(struct cop_coop *c, struct cop_rpc_req *req);

/* Progress thread, now and then while a child waits for its answer; now_ms may be of any clock. */
void cop_coop_tick(struct cop_coop *c, uint64_t now_ms);

/* Bytes skip..skip+len of a complete chunk: *data points to them in the object or, if it is
 * packed, to where they were unpacked: out, which has room for them. -EBADMSG where the chunk has
 * not so many bytes, whatever it was asked for as; -ENOMEM. */
int cop_coop_chunk_part(
	const struct cop_obj *obj, size_t skip, size_t len, void *out, const void **data);

/* Bytes of one chunk of a file of this size. */
size_t cop_coop_chunk_len(const struct cop_coop *c, uint64_t size, uint64_t index);
size_t cop_coop_chunk_bytes(const struct cop_coop *c);

/* Which ancestor answers this node's requests in a tree now: a rank, or COP_TOPO_NONE for the
 * origin. */
uint32_t cop_coop_parent(const struct cop_coop *c, uint32_t tree);

#endif
