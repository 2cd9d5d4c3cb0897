/* SPDX-License-Identifier: BSD-3-Clause */
/* cache: the three tables of a node (data, tree, metadata), the flights that fill them, and the
 * byte budget for both. It is independent of network, storage and FUSE: the caller that leads a
 * flight fetches the object.
 *
 * An object is immutable once complete, and shared by reference. There is at most one flight per
 * key; later requests for the key join it and are called on completion. An error can also be an
 * object (for an absent name or an unreadable directory).
 *
 * Every byte counts against the budget from allocation to the last reference: object headers, keys,
 * data, and reservations of flights. Eviction is SIEVE (Zhang et al., NSDI 2024): one FIFO list per
 * shard, a bit that means "used since the hand last passed", and no work on a hit except setting
 * that bit. Referenced objects are not evicted. A flight that cannot reserve its bytes waits in a
 * FIFO until bytes are freed.
 *
 * Copies of objects kept by another node of the job (enum cop_duty) are evicted first, in order of
 * age, which maximises the amount of distinct data in the memory of all nodes. They use whatever is
 * free in the cache, and at least an eighth of the budget. Evicted file data other than copies can
 * move to a second tier (struct cop_cache_spill). */
#ifndef COP_CACHE_H
#define COP_CACHE_H

#include <stdatomic.h>

#include "base/base/base.h"
#include "prof/stats/stats.h"
#include "prof/tracer/tracer.h"

enum cop_table { COP_TABLE_DATA, COP_TABLE_TREE, COP_TABLE_METADATA, COP_TABLES };

/* The kind of object, within a path of a table. */
enum cop_facet {
	COP_FACET_MAIN,     /* a chunk; a listing; an entry */
	COP_FACET_NAMES,    /* tree: all names of a directory that is too large for a listing */
	COP_FACET_HOLES,    /* metadata: where a sparse file has data */
	COP_FACET_STATFS,   /* metadata: statvfs of the source */
	COP_FACET_CHECK,    /* tree: whether a directory is unchanged */
	COP_FACET_MANIFEST, /* metadata: a piece of the job's manifest */
	COP_FACET_NEWER,    /* tree: a directory that changed after this version */
	COP_FACET_PAGE,     /* tree: attributes of some names of a large directory */
	COP_FACET_HOME, /* a chunk that its home keeps for a root without room, or a copy of it */
};

/* Identifies an object: the answer to one request with this key is valid for every request with
 * it. */
struct cop_key {
	enum cop_table table;
	enum cop_facet facet;
	const char
		*path; /* relative to the source, no leading slash; NUL-terminated in an object */
	size_t path_len;
	uint64_t version; /* of the file for data, of the directory for a page; else 0 */
	uint64_t size;    /* of the file for data, as in the request: size and index determine the
			     length of the chunk; number of pages for a page; else 0 */
	uint64_t index;   /* of the chunk or page; else 0 */
};

/* Why this node has an object. */
enum cop_duty {
	COP_DUTY_NONE, /* for any request */
	COP_DUTY_HOME, /* a chunk that this node keeps for the job */
	COP_DUTY_COPY, /* a chunk that another node keeps for the job */
	COP_DUTIES,
};

struct cop_cache;

/* Source of a chunk. */
enum cop_from {
	COP_FROM_STORAGE, /* read from storage by this node */
	COP_FROM_NODES,   /* from another node's memory */
	COP_FROM_PASSED,  /* from another node, which had to fetch it from elsewhere first */
	COP_FROM_DISK,    /* from the local disk: the second tier */
	COP_FROM_PACK,    /* from an earlier job's pack, which is stored with its manifest */
};

/* Read-only except for the leader of its flight. */
struct cop_obj {
	int error;              /* 0, or -errno for an error object */
	_Atomic uint32_t given; /* chunk: uncompressed bytes delivered to the kernel so far */
	void *data;             /* malloc'ed; owned by the object */
	size_t len;
	uint64_t sum;            /* keyed XXH3-64 of data, for chunks */
	bool packed;             /* data is a compressed chunk (wire.h) */
	uint8_t from;            /* chunk: enum cop_from */
	_Atomic bool background; /* flight: only background requests are waiting; set by its leader
				    before others can join */
	uint64_t completed_ms; /* time of completion (cop_now_ms), or, if part of the data is from a
				  replaced object, that object's */
	uint64_t came_ms;      /* time of completion or of replacing another object */
	_Atomic uint64_t stamp_ms;  /* time when it was last confirmed */
	_Atomic unsigned char uses; /* bits of enum cop_use; each use counts once */
	_Atomic bool missed;        /* listing: a program looked up a name that is not in it */
	_Atomic bool bundled; /* prefetched with another file and not used yet; set by the leader of
				 its flight before others can join */
	_Atomic bool reading; /* flight: this node is reading it from storage: the flight waits
				 neither for bytes nor for another node; set by its leader */
	_Atomic bool
		first; /* chunk: arrived with an entry requested by a program; set like `bundled`;
			  entry: another node was also requested to send its first bytes */
	_Atomic bool disproved; /* contradicted by the storage; must be dropped */
	struct cop_key key;     /* path points into the object */
};

/* Users of a chunk. */
enum cop_use {
	COP_USE_HERE = 1,  /* a program on this node */
	COP_USE_BELOW = 2, /* another node */
};

/* Waits for a flight; embedded in the waiter's own struct. */
struct cop_waiter {
	struct cop_list link;
	/* Called once, on the thread that completes the flight, without locks held. rc is
	 * obj->error. The reference belongs to the cache: use cop_obj_get to keep obj after the
	 * call. */
	void (*completed)(struct cop_waiter *w, struct cop_obj *obj, int rc);
	bool guesses; /* a speculative waiter, which does not prevent cop_cache_withdraw */
};

enum cop_found {
	COP_FOUND_HIT,    /* *obj is complete, with a reference for the caller */
	COP_FOUND_JOINED, /* a flight is in progress; the waiter will be called */
	COP_FOUND_LEAD, /* new flight: the caller leads it, holds a reference to *obj, and must call
			   cop_cache_complete once */
};

/* The byte limit of the cache on this machine: the requested one (0: a tenth of memory), but at
 * most the job's memory limit and at least `least`. If the limit is lower than requested, note
 * explains why; otherwise it is "". */
#define COP_CACHE_NOTE_SIZE 256
uint64_t cop_cache_size(uint64_t asked, uint64_t least, char note[COP_CACHE_NOTE_SIZE]);

struct cop_cache *cop_cache_new(uint64_t limit_bytes, struct cop_stats *stats);
/* Records evictions in this trace. Call before any other thread uses the cache. */
void cop_cache_trace(struct cop_cache *c, struct cop_tracer *tracer);
/* Enables reuse of freed buffers of this size. Call before any other thread uses the cache. */
void cop_cache_pool(struct cop_cache *c, size_t chunk_bytes);

/* The fate of an evicted object. */
enum cop_cache_left {
	COP_CACHE_LEFT_DROPPED,
	COP_CACHE_LEFT_KNOWN, /* the second tier already has it */
	COP_CACHE_LEFT_TAKEN, /* the second tier has taken the only reference; the budget no longer
				 includes the object */
};
/* The second tier: it is offered all evicted file data except copies. Both callbacks run with locks
 * held; they must not block and must not call the cache. */
struct cop_cache_spill {
	enum cop_cache_left (*leaves)(void *ctx, struct cop_obj *obj);
	/* The bytes it uses and its limit; both 0: it accepts nothing. */
	void (*usage)(void *ctx, uint64_t *used, uint64_t *limit);
	void *ctx;
};
/* Call before any other thread uses the cache. */
void cop_cache_spill(struct cop_cache *c, const struct cop_cache_spill *spill);
/* No flight may be in progress, and no reference may be held. */
void cop_cache_free(struct cop_cache *c);

/* Returns enum cop_found or -ENOMEM. If waiter is NULL, there is no callback, and JOINED only means
 * that a flight is in progress. */
int cop_cache_find(struct cop_cache *c, const struct cop_key *key, struct cop_waiter *waiter,
	struct cop_obj **obj);
/* Tells the cache that a program now waits for the object. Returns true if that turned a background
 * flight into an ordinary one. */
bool cop_cache_raise_priority(struct cop_cache *c, const struct cop_key *key);
/* The state of a key in its table. */
enum cop_held { COP_HELD_NOT, COP_HELD_FLYING, COP_HELD_COMPLETE };
/* If obj is not NULL, *obj is the complete object with a reference, or NULL. Starts no flight and
 * does not affect eviction. */
enum cop_held cop_cache_look(struct cop_cache *c, const struct cop_key *key, struct cop_obj **obj);
/* Whether the key has an object or a flight. */
bool cop_cache_has(struct cop_cache *c, const struct cop_key *key);
/* Whether the key has an object, or a flight with `reading`. */
bool cop_cache_has_soon(struct cop_cache *c, const struct cop_key *key);
/* The complete object with a reference, or NULL. */
struct cop_obj *cop_cache_peek(struct cop_cache *c, const struct cop_key *key);

/* Sets the duty of a flight's object; initially COP_DUTY_NONE. */
void cop_cache_set_duty(struct cop_cache *c, struct cop_obj *flight, enum cop_duty duty);
/* Reserves bytes for a flight before its buffer is allocated. Calls start(arg) when they are
 * reserved: immediately, or later on a thread that freed bytes. Local flights may use half of the
 * budget, and all flights together three quarters, so that nodes waiting for each other in
 * different trees cannot deadlock. A flight larger than its share starts when it is alone; one
 * larger than cop_cache_largest never starts. If both kinds wait, each gets half of the freed
 * bytes. Any other flight always starts eventually; start may run inside the start of another
 * flight. */
void cop_cache_reserve(struct cop_cache *c, struct cop_obj *flight, size_t bytes, bool local,
	void (*start)(void *arg), void *arg);
/* Reserves bytes for another node's flight immediately, or returns false. */
bool cop_cache_try_reserve(struct cop_cache *c, struct cop_obj *flight, size_t bytes);
/* The maximum reservation of a flight. */
size_t cop_cache_largest(const struct cop_cache *c);
/* Reserves more bytes for a flight with a reservation. If they are not free now, returns false and
 * changes nothing.
 * */
bool cop_cache_reserve_more(struct cop_cache *c, struct cop_obj *flight, size_t bytes);
/* Ends the reservation of a flight that has no buffer yet and will reserve again. */
void cop_cache_end_reservation(struct cop_cache *c, struct cop_obj *flight);
/* Moves part of a flight's reservation to another flight that is filled by the same read. */
void cop_cache_share_reservation(
	struct cop_cache *c, struct cop_obj *from, struct cop_obj *to, size_t bytes);
/* Whether read-ahead of this many bytes could start immediately. */
bool cop_cache_can_reserve(struct cop_cache *c, size_t bytes);
/* The same for a copy of part of a large file. */
bool cop_cache_can_copy(struct cop_cache *c, size_t bytes);
/* The same for parts of large files whose home is this node, without evicting other objects for
 * good. */
bool cop_cache_can_home(struct cop_cache *c, size_t bytes);
/* Whether this many more bytes would leave copies less than an eighth of the budget, or would have
 * to wait until flights free bytes. */
bool cop_cache_is_full(struct cop_cache *c, size_t bytes);
/* Bytes currently available for copies. */
size_t cop_cache_room_for_copies(struct cop_cache *c);
/* Whether this many bytes fit without eviction, with empty reservation queues, and with an eighth
 * of the budget remaining free. */
bool cop_cache_has_headroom(struct cop_cache *c, size_t bytes);

/* How a flight ends. */
struct cop_completion {
	int rc;     /* 0 or -errno */
	void *data; /* malloc'ed; the object takes ownership; freed if rc is an error */
	size_t len; /* allocated bytes, even if rc is an error */
	uint64_t sum;
	bool packed;
	enum cop_from from; /* of a chunk */
	bool is_data; /* chunk: counts towards data_bytes below; true on one node of the job */
	bool keep;    /* cache it; otherwise it is dropped immediately */
};
/* Ends a flight, exactly once: passes obj to all waiters. Drops the leader's reference. */
void cop_cache_complete(
	struct cop_cache *c, struct cop_obj *flight, const struct cop_completion *completion);

/* Removes a flight from the table, unless it has a non-speculative waiter. Returns true if it was
 * removed and can no longer be joined. */
bool cop_cache_withdraw(struct cop_cache *c, struct cop_obj *flight);

/* Replaces a complete object, to which the caller holds a reference, with a new one that has this
 * data (malloc'ed; the cache takes ownership). A concurrent lookup finds either the old or the new
 * object. If the object is no longer in the table, or the budget is full, nothing changes and data
 * is freed. */
void cop_cache_replace(struct cop_cache *c, struct cop_obj *obj, void *data, size_t len);

/* Allocate and free buffers of flights. Buffers are not zeroed, and those of chunk size are reused.
 * */
void *cop_cache_alloc(struct cop_cache *c, size_t bytes);
void cop_cache_release(struct cop_cache *c, void *data, size_t bytes);

struct cop_obj *cop_obj_get(struct cop_obj *obj);
/* May start a flight that waits for bytes; its callbacks run before this returns. Do not call this
 * or cop_cache_complete while holding a lock that such a callback may take. */
void cop_obj_put(struct cop_cache *c, struct cop_obj *obj);
/* Bracket the section under such a lock, to assert this rule: between the two calls this thread
 * must not release an object or complete a flight. */
void cop_cache_locked(void);
void cop_cache_unlocked(void);

/* Counts the use of a chunk. Returns whether this is its first use of this kind. */
bool cop_cache_used(struct cop_cache *c, struct cop_obj *obj, enum cop_use use);

/* Drops this object if it is still in the table. */
void cop_cache_drop(struct cop_cache *c, struct cop_obj *obj);
/* Drops any object with this key. */
void cop_cache_forget(struct cop_cache *c, const struct cop_key *key);
/* Drops the objects of all tables for the path and everything below it; "" means everything.
 * Flights in progress end as usual but are not cached. Returns the number of objects. */
size_t cop_cache_drop_under(struct cop_cache *c, const char *path);

/* The same for one table, path and facet, whatever the rest of the key. */
size_t cop_cache_drop_facet(struct cop_cache *c, enum cop_table table, enum cop_facet facet,
	const char *path, size_t path_len);

struct cop_cache_usage {
	struct {
		uint64_t bytes, entries;
	} table[COP_TABLES];
	uint64_t limit_bytes, used_bytes; /* used: by tables, flights and referenced objects */
	uint64_t flights, waiting_to_reserve;
	uint64_t home_bytes;                     /* of chunks with COP_DUTY_HOME */
	uint64_t spill_bytes, spill_limit_bytes; /* of the second tier */
};
/* Calls fn for every complete object of a table, without a lock. May omit objects that complete
 * meanwhile and, if memory is short, whole shards. */
void cop_cache_each(struct cop_cache *c, enum cop_table table,
	void (*fn)(void *arg, const struct cop_key *key, size_t bytes), void *arg);
void cop_cache_usage(struct cop_cache *c, struct cop_cache_usage *out);
/* Estimates since the cache was created; evicted objects are included. */
struct cop_cache_seen {
	uint64_t needed_bytes; /* size at which the cache would not have evicted anything */
	uint64_t data_bytes;   /* bytes of distinct file data completed with is_data */
};
void cop_cache_seen(struct cop_cache *c, struct cop_cache_seen *out);
/* A request that this node is waiting for, and its age. */
struct cop_cache_wait {
	enum cop_table table;
	char path[256];           /* the path, or its last characters; on one line */
	uint64_t index, size, ms; /* index and size: those of the key */
	unsigned waiters;
};
/* Stores up to max of the oldest flights, oldest first; returns their number. */
unsigned cop_cache_oldest(struct cop_cache *c, struct cop_cache_wait *out, unsigned max);
/* Appends a JSON array of flights in progress, at most max:
 * {"table":"data","path":"...","index":0,"ms":12,"waiters":3}. */
void cop_cache_flights_json(struct cop_cache *c, unsigned max, struct cop_buf *out);
/* Checks invariants, for tests: sums match the objects, every listed object is in its bucket. */
void cop_cache_check(struct cop_cache *c);
/* For tests: allocations of flights and buffers fail after this many more; a negative number lets
 * them succeed again. */
void cop_cache_starve(struct cop_cache *c, int after);
const char *cop_table_name(enum cop_table t);

#endif
