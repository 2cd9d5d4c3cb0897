/* SPDX-License-Identifier: BSD-3-Clause */
/* cache: the three tables of a node (data, tree, metadata), the flights that fill them, and the
 * byte budget that bounds both. It knows no network, no storage and no FUSE: the caller that leads
 * a flight fetches the object.
 *
 * An object is immutable once it is complete and is shared by reference. There is at most one
 * flight per key; all others who ask for the key join it and are called when it completes. An
 * error can be an object too (an absent name, a directory that may not be read).
 *
 * Every byte counts against the budget from allocation to the last reference: object headers, keys,
 * data, and what flights have reserved. Eviction is SIEVE (Zhang et al., NSDI 2024): one FIFO list
 * per shard, a bit for "used since the hand passed", no work on a hit but setting that bit. Objects
 * that somebody holds are not evicted. A flight that cannot reserve its bytes waits in a FIFO until
 * bytes are freed.
 *
 * Copies of what another node of the job keeps (enum cop_duty) are evicted before everything else,
 * the oldest first, so that the nodes' memory together holds as much as possible once. They get
 * what the rest of the cache leaves free, and always an eighth of the budget. All other parts of
 * files can go to a second tier when they are evicted (struct cop_cache_spill). */
#ifndef COP_CACHE_H
#define COP_CACHE_H

#include <stdatomic.h>

#include "base/base/base.h"
#include "prof/stats/stats.h"
#include "prof/tracer/tracer.h"

enum cop_table { COP_TABLE_DATA, COP_TABLE_TREE, COP_TABLE_METADATA, COP_TABLES };

/* The kind of object, within one path of one table. */
enum cop_facet {
	COP_FACET_MAIN,     /* a chunk; a listing; an entry */
	COP_FACET_NAMES,    /* tree: all names of a directory that is too large for a listing */
	COP_FACET_HOLES,    /* metadata: where a sparse file has data */
	COP_FACET_STATFS,   /* metadata: statvfs of the source */
	COP_FACET_CHECK,    /* tree: whether a directory is still the same */
	COP_FACET_MANIFEST, /* metadata: a piece of the job's manifest */
	COP_FACET_NEWER,    /* tree: a directory that no longer has this version */
	COP_FACET_PAGE,     /* tree: attributes of some names of a large directory */
	COP_FACET_HOME,     /* a chunk that this node keeps for the root, which has no room */
};

/* Everything that an object depends on: an answer to one question for a key answers all questions
 * for that key. */
struct cop_key {
	enum cop_table table;
	enum cop_facet facet;
	const char
		*path; /* relative to the source, no leading slash; NUL-terminated in an object */
	size_t path_len;
	uint64_t version; /* of the file for data, of the directory for a page, else 0 */
	uint64_t size;  /* of the file for data, as the requester knows it: size and index determine
			   the length of the chunk; the number of pages for a page; else 0 */
	uint64_t index; /* of the chunk, of the page, else 0 */
};

/* What this node has an object for. */
enum cop_duty {
	COP_DUTY_NONE, /* for whoever asks */
	COP_DUTY_HOME, /* it keeps this chunk for the job */
	COP_DUTY_COPY, /* a chunk that another node keeps */
	COP_DUTIES,
};

struct cop_cache;

/* Where this node got a chunk. */
enum cop_from {
	COP_FROM_STORAGE, /* it read the storage */
	COP_FROM_NODES,   /* another node had it in memory */
	COP_FROM_PASSED,  /* another node had to fetch it first */
	COP_FROM_DISK,    /* its own disk: the second tier */
	COP_FROM_PACK,    /* what the last job left beside its manifest */
};

/* Read-only for everyone except the leader of its flight. */
struct cop_obj {
	int error;              /* 0 or -errno, the object being the error */
	_Atomic uint32_t given; /* a chunk: how many of its bytes, unpacked, the kernel has got */
	void *data;             /* malloc'ed; owned by the object */
	size_t len;
	uint64_t sum;            /* keyed XXH3-64 of data, for chunks */
	bool packed;             /* data is a packed chunk (wire.h) */
	uint8_t from;            /* enum cop_from, of a chunk */
	_Atomic bool background; /* of a flight: only background requests wait for it so far; set by
				    its leader at once */
	uint64_t completed_ms;   /* when it completed (cop_now_ms), or what it has of another did */
	uint64_t came_ms;        /* when it completed or replaced another, */
	_Atomic uint64_t stamp_ms;  /* and when it was last found to be true since */
	_Atomic unsigned char uses; /* bits of enum cop_use; each use counts once */
	_Atomic bool missed;    /* a listing: a program asked for a name that it does not have */
	_Atomic bool bundled;   /* fetched beside another file, and not used yet; set by the
				   leader of its flight at once */
	_Atomic bool first;     /* a chunk: it came with an entry that a program asked for; set
				   like the one above; an entry: another node was asked for its
				   first bytes, too */
	_Atomic bool disproved; /* the storage has contradicted it: to be dropped */
	struct cop_key key;     /* path points into the object */
};

/* Who has taken a chunk. */
enum cop_use {
	COP_USE_HERE = 1,  /* a program on this node */
	COP_USE_BELOW = 2, /* another node */
};

/* Waits for a flight; embedded in the waiter's own struct. */
struct cop_waiter {
	struct cop_list link;
	/* Called once, on the thread that completes the flight, without any lock held. rc is
	 * obj->error. The reference is the cache's: take one (cop_obj_get) to keep obj past the
	 * call. */
	void (*completed)(struct cop_waiter *w, struct cop_obj *obj, int rc);
	bool guesses; /* it also accepts the end of a flight that was withdrawn */
};

enum cop_found {
	COP_FOUND_HIT,    /* *obj is there, with a reference for the caller */
	COP_FOUND_JOINED, /* a flight is under way; the waiter will be called */
	COP_FOUND_LEAD,   /* a new flight: the caller leads it, holds a reference to *obj, and calls
			     cop_cache_complete once */
};

/* The byte limit for a cache on this machine: the requested one (0: a tenth of memory), but not
 * more than this job may use, and not less than least. If the limit is lower than requested, note
 * is a sentence that says so, else "". */
#define COP_CACHE_NOTE_SIZE 256
uint64_t cop_cache_size(uint64_t asked, uint64_t least, char note[COP_CACHE_NOTE_SIZE]);

struct cop_cache *cop_cache_new(uint64_t limit_bytes, struct cop_stats *stats);
/* From now on the cache reports evictions as events of this trace. Call it before any other thread
 * uses the cache. */
void cop_cache_trace(struct cop_cache *c, struct cop_tracer *tracer);
/* Tells the cache to keep freed buffers of this size. Call it before any other thread uses the
 * cache. */
void cop_cache_pool(struct cop_cache *c, size_t chunk_bytes);

/* What became of an evicted object. */
enum cop_cache_left {
	COP_CACHE_LEFT_DROPPED,
	COP_CACHE_LEFT_KNOWN, /* the second tier has it already */
	COP_CACHE_LEFT_TAKEN, /* and this one: it has the only reference, and the budget no longer
				 counts the object */
};
/* The second tier: it is offered each part of a file that is evicted and is no copy. Both functions
 * are called with locks held; they do not block and do not call the cache. */
struct cop_cache_spill {
	enum cop_cache_left (*leaves)(void *ctx, struct cop_obj *obj);
	/* The bytes that it has and may have; 0 and 0: it takes nothing more. */
	void (*usage)(void *ctx, uint64_t *used, uint64_t *limit);
	void *ctx;
};
/* Call it before any other thread uses the cache. */
void cop_cache_spill(struct cop_cache *c, const struct cop_cache_spill *spill);
/* No flight may be in progress, and nobody may hold a reference. */
void cop_cache_free(struct cop_cache *c);

/* Returns enum cop_found or -ENOMEM. If waiter is NULL, nobody is called, and JOINED only means
 * that a flight is in progress. */
int cop_cache_find(struct cop_cache *c, const struct cop_key *key, struct cop_waiter *waiter,
	struct cop_obj **obj);
/* Somebody waits for the object now. True if a background flight for it was in progress; it is an
 * ordinary one from then on. */
bool cop_cache_raise_priority(struct cop_cache *c, const struct cop_key *key);
/* What the table has for a key. */
enum cop_held { COP_HELD_NOT, COP_HELD_FLYING, COP_HELD_COMPLETE };
/* If obj is not NULL, *obj is the complete object with a reference, or NULL. Starts no flight and
 * does not affect eviction. */
enum cop_held cop_cache_look(struct cop_cache *c, const struct cop_key *key, struct cop_obj **obj);
/* Whether the key has an object or a flight. */
bool cop_cache_has(struct cop_cache *c, const struct cop_key *key);
/* The complete object with a reference, or NULL. */
struct cop_obj *cop_cache_peek(struct cop_cache *c, const struct cop_key *key);

/* Says what the object of a flight is for, COP_DUTY_NONE at first. */
void cop_cache_set_duty(struct cop_cache *c, struct cop_obj *flight, enum cop_duty duty);
/* Reserves this many bytes for a flight, before its buffer is allocated. Calls start(arg) once the
 * flight has them: at once, or later on a thread that freed bytes. Local flights may fill half of
 * the budget, flights for other nodes three quarters, so that nodes that wait for each other in
 * different trees cannot block each other. A flight larger than that share starts when it is alone;
 * one larger than cop_cache_largest never starts. If both kinds wait, each gets half of the bytes
 * that become free. Always ends in start, which may run inside the start of another flight. */
void cop_cache_reserve(struct cop_cache *c, struct cop_obj *flight, size_t bytes, bool local,
	void (*start)(void *arg), void *arg);
/* Reserves the bytes for another node's flight now, or returns false. */
bool cop_cache_try_reserve(struct cop_cache *c, struct cop_obj *flight, size_t bytes);
/* The most bytes that any flight can reserve. */
size_t cop_cache_largest(const struct cop_cache *c);
/* Reserves more bytes for a flight that already has some. If they are not free now, nothing
 * changes. */
bool cop_cache_reserve_more(struct cop_cache *c, struct cop_obj *flight, size_t bytes);
/* Ends the reservation of a flight that has no buffer yet and will reserve again. */
void cop_cache_end_reservation(struct cop_cache *c, struct cop_obj *flight);
/* Moves part of one flight's reservation to another flight, because one read fills both. */
void cop_cache_share_reservation(
	struct cop_cache *c, struct cop_obj *from, struct cop_obj *to, size_t bytes);
/* Whether read-ahead of this many bytes could start at once now. */
bool cop_cache_can_reserve(struct cop_cache *c, size_t bytes);
/* The same for a copy of a part of a large file. */
bool cop_cache_can_copy(struct cop_cache *c, size_t bytes);
/* The same for parts of large files that are at home here, and without evicting others for good. */
bool cop_cache_can_home(struct cop_cache *c, size_t bytes);
/* Whether this many bytes more would leave less than an eighth for copies. */
bool cop_cache_is_full(struct cop_cache *c, size_t bytes);
/* The bytes that copies may use now. */
size_t cop_cache_room_for_copies(struct cop_cache *c);
/* Whether this many bytes fit without an eviction, with nobody waiting to reserve, and with an
 * eighth of the budget left free. */
bool cop_cache_has_headroom(struct cop_cache *c, size_t bytes);

/* How a flight ends. */
struct cop_completion {
	int rc;     /* 0 or -errno */
	void *data; /* malloc'ed; the object owns it from now on; freed if rc is an error */
	size_t len; /* the bytes that were allocated, also if rc is an error */
	uint64_t sum;
	bool packed;
	enum cop_from from; /* of a chunk */
	bool keep;          /* keep it for later requests; else it is forgotten at once */
};
/* Ends a flight, exactly once: hands obj to everyone who joined. Drops the leader's reference. */
void cop_cache_complete(
	struct cop_cache *c, struct cop_obj *flight, const struct cop_completion *completion);

/* Takes a flight out of the table, unless it has a waiter that does not guess. True: it has no such
 * waiter, and nobody can join it any more. */
bool cop_cache_withdraw(struct cop_cache *c, struct cop_obj *flight);

/* Replaces a complete object, to which the caller has a reference, by a new one with this data
 * (malloc'ed; the cache owns it from now on). Everyone else finds one of the two. If the object is
 * no longer in the table, or the budget is full, nothing changes and data is freed. */
void cop_cache_replace(struct cop_cache *c, struct cop_obj *obj, void *data, size_t len);

/* malloc and free for the buffers of flights. They are not cleared, and buffers of one chunk are
 * reused. */
void *cop_cache_alloc(struct cop_cache *c, size_t bytes);
void cop_cache_release(struct cop_cache *c, void *data, size_t bytes);

struct cop_obj *cop_obj_get(struct cop_obj *obj);
/* May start a flight that waits for bytes, whose callbacks run before this returns. So nobody calls
 * it, or cop_cache_complete, with a lock held that such a callback may take. */
void cop_obj_put(struct cop_cache *c, struct cop_obj *obj);
/* Asserts that rule for a lock: between the two calls this thread neither releases an object nor
 * completes a flight. */
void cop_cache_locked(void);
void cop_cache_unlocked(void);

/* Counts that a chunk was fetched for somebody. Returns whether this is its first such use. */
bool cop_cache_used(struct cop_cache *c, struct cop_obj *obj, enum cop_use use);

/* Forgets this object, if it is still the one in the table. */
void cop_cache_drop(struct cop_cache *c, struct cop_obj *obj);
/* Forgets whatever object has this key. */
void cop_cache_forget(struct cop_cache *c, const struct cop_key *key);
/* Forgets the objects of all tables for the path and everything below it; "" means everything.
 * Flights under way end as usual but are not kept. Returns the number of objects. */
size_t cop_cache_drop_under(struct cop_cache *c, const char *path);

/* The same for what one table holds under this path and facet, whatever the rest of the key. */
size_t cop_cache_drop_facet(struct cop_cache *c, enum cop_table table, enum cop_facet facet,
	const char *path, size_t path_len);

struct cop_cache_usage {
	struct {
		uint64_t bytes, entries;
	} table[COP_TABLES];
	uint64_t limit_bytes,
		used_bytes; /* used: by tables, flights and objects that are still referenced */
	uint64_t flights, waiting_to_reserve;
	uint64_t home_bytes; /* of chunks that this node keeps for the job, COP_DUTY_HOME */
	uint64_t spill_bytes, spill_limit_bytes; /* of the second tier */
};
/* Calls fn for every complete object of a table, without a lock. Objects that complete meanwhile
 * may be left out; if memory is short, so may those of whole shards. */
void cop_cache_each(struct cop_cache *c, enum cop_table table,
	void (*fn)(void *arg, const struct cop_key *key, size_t bytes), void *arg);
void cop_cache_usage(struct cop_cache *c, struct cop_cache_usage *out);
/* Estimates for all the time since the cache began, evicted objects included. */
struct cop_cache_seen {
	uint64_t needed_bytes; /* what would have held all that was needed here */
	uint64_t data_bytes;   /* all different parts of files but copies */
};
void cop_cache_seen(struct cop_cache *c, struct cop_cache_seen *out);
/* What this node waits for, and since when. */
struct cop_cache_wait {
	enum cop_table table;
	char path[256];           /* its end, if it is longer; on one line */
	uint64_t index, size, ms; /* index and size: of the key */
	unsigned waiters;
};
/* The oldest of the objects that are on their way, the oldest first, at most max; returns how many.
 */
unsigned cop_cache_oldest(struct cop_cache *c, struct cop_cache_wait *out, unsigned max);
/* Appends a JSON array of open flights, at most max:
 * {"table":"data","path":"...","index":0,"ms":12,"waiters":3}. */
void cop_cache_flights_json(struct cop_cache *c, unsigned max, struct cop_buf *out);
/* Invariants, for tests: sums agree with the objects, every listed object is in its bucket. */
void cop_cache_check(struct cop_cache *c);
/* For tests: allocations (of flights and buffers) fail after this many more; negative: they succeed
 * again. */
void cop_cache_starve(struct cop_cache *c, int after);
const char *cop_table_name(enum cop_table t);

#endif
