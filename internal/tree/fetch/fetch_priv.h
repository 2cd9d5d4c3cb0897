/* SPDX-License-Identifier: BSD-3-Clause */
/* fetch.h lists the states and owners of a flight; cop_fetch_pass below asserts its transitions.
 *
 * group_lock is taken before the cache's lock. It makes leading a chunk together with the rest of
 * its group atomic at a root, so each group is read only once, no matter how many requests arrive.
 */
#ifndef COP_TREE_FETCH_PRIV_H
#define COP_TREE_FETCH_PRIV_H

#include <assert.h>

#include "base/base/htab.h"
#include "tree/fetch/fetch.h"
#include "tree/guess/guess.h"

/* Enough for a page of 1000 names of 100 bytes. */
#define PAGE_RESERVE (256 * COP_KIB)
#define GROUP_MAX (COP_FETCH_GROUP_BYTES / (64 * COP_KIB))

/* Priority of a request. */
enum {
	ASK_NOW,
	ASK_BACKGROUND,     /* no waiter yet */
	ASK_RAISE_PRIORITY, /* a background request now has a waiter; the answer is empty */
	ASK_GUESS,          /* probably needed soon, if it exists */
};
/* Flag in the same byte: the request includes the first bytes. */
#define ASK_FIRST 0x80u
/* Flag in the same byte: the request goes up the tree of the chunk's home (lend.c). */
#define ASK_HOME 0x40u
/* Flag in the same byte: the request is from the chunk's home to the root, which answers without
 * waiting for another node: with the bytes, or with ENODATA if it does not have them. */
#define ASK_PEEK 0x20u

/* How long an answer to a child waits for this node's kernel to forget names. The kernel takes less
 * than a millisecond, unless a local program is looking up a name in the same directory and the
 * storage is hung. A child that is answered too early requests the directory, receives the old
 * names, and finds its file stale again. An early answer never mixes two versions, so two seconds
 * are enough, and too short for a node to be declared dead. */
#define FORGET_MS 2000

/* Answers to children that wait for the kernel to forget names. */
struct telling {
	pthread_mutex_t lock;
	struct cop_list waiting; /* list of struct served by at, oldest first */
};

#define RESTING_SLOTS 64
#define REST_MIN_MS 1000
#define REST_MAX_MS 10000

/* Ancestors that are alive but recently lacked memory, descriptors or buffers for an answer
 * (rest.c). */
struct resting {
	pthread_mutex_t lock;
	_Atomic unsigned count; /* slots in use */
	uint64_t min_ms;        /* initial pause */
	struct {
		uint32_t rank;
		uint64_t until_ms, pause_ms; /* pause_ms 0: free slot */
	} slot[RESTING_SLOTS];
};

#define DOUBTED_SLOTS 64
#define PASSED_SLOTS 64

/* Directories whose cached attributes contradict the storage (page.c). */
struct doubted {
	pthread_mutex_t lock;
	_Atomic unsigned count;      /* directories recorded so far */
	uint64_t dir[DOUBTED_SLOTS]; /* hashes of path and version; the oldest is overwritten */
};

struct cop_fetch {
	struct cop_fetch_conf conf;
	struct cop_guess *guess;
	struct resting resting;
	struct telling telling;
	struct doubted doubted;
	pthread_mutex_t group_lock;
	_Atomic bool closing;
	uint64_t started_ns;
	_Atomic bool heard;      /* a parent has answered */
	_Atomic bool prefetched; /* the prefetch has ended */
	_Atomic bool unpacked;   /* the pack is not, or no longer, used */
	_Atomic uint32_t parent; /* the last ancestor in the first tree that answered */
	struct cop_topo homes;   /* the same nodes, with one tree per node (lend.c) */
	_Atomic bool lends;      /* this node has learned that the root of the first tree is full */
	_Atomic bool uses_homes; /* chunks with COP_FACET_HOME may be cached here */
	/* By rank: ranks (plus 1) skipped in the other trees. */
	_Atomic uint32_t passed[PASSED_SLOTS];
};

enum flight_state {
	FLIGHT_LED,
	FLIGHT_MEMBER,
	FLIGHT_RESERVE,
	FLIGHT_ACTIVE,
	FLIGHT_ASKING,
	FLIGHT_READING,
	FLIGHT_COMPLETE,
};

struct flight {
	enum flight_state state;
	struct cop_fetch *fetch;
	struct cop_obj *obj;
	struct cop_ask ask; /* path points into obj */
	uint32_t tree;
	bool spread;  /* may use any tree: part of a large file, or lent (ask.home) */
	bool spilled; /* spilled to the local disk */
	bool heir;    /* upstream stands in for the dead root of the tree */
	bool peeks;   /* asks, or has asked, the root for a lent chunk before reading it from the
			 storage */
	uint32_t upstream; /* the ancestor that this request is sent to, or that root */
	unsigned tries;    /* number of attempts with this upstream rank */
	bool local;
	bool was_absent; /* refetch of an absent entry that expired */
	bool follows;    /* entry: request the first bytes if the answer does not contain them */
	size_t reserved; /* maximum bytes of an answer; for a chunk, the buffer size */
	void *buf;       /* destination of a chunk, from cop_cache_alloc */
	size_t buf_len;
	struct flight *group; /* at a root: the first flight of the same read, in chunk order; NULL
				 if this flight is alone or does not lead */
	struct flight *group_next; /* next in the group */
	uint64_t asked_ns;         /* time of the last request to the parent or the origin */
	/* For the trace: when the flight was led, when its request was sent (or its read was queued
	 * at the origin), and when its answer arrived; 0: not yet, or no trace. */
	uint64_t led_ns, sent_ns, answered_ns;
	struct second *second; /* the same request to a higher node (hedge.c), or NULL */
	bool by_second;        /* answered by the second request */
	bool is_asked;         /* the last request was sent and is not yet answered */
	bool sent_background;  /* the last request was sent as background */
};

/* The first flight of the group that shares this read; may be the only one. */
static inline struct flight *cop_fetch_group(struct flight *f)
{
	return f->group ? f->group : f;
}

/* Transfers the flight to another owner, as permitted by the table in fetch.h. */
static inline void cop_fetch_pass(struct flight *f, enum flight_state to)
{
#define MAY(state) (1u << FLIGHT_##state)
	static const unsigned next[] = {
		[FLIGHT_LED] = MAY(MEMBER) | MAY(RESERVE) | MAY(COMPLETE),
		[FLIGHT_MEMBER] = MAY(ACTIVE) | MAY(COMPLETE),
		[FLIGHT_RESERVE] = MAY(ACTIVE),
		[FLIGHT_ACTIVE] = MAY(RESERVE) | MAY(ASKING) | MAY(READING) | MAY(COMPLETE),
		[FLIGHT_ASKING] = MAY(ACTIVE),
		[FLIGHT_READING] = MAY(ACTIVE),
		[FLIGHT_COMPLETE] = 0,
	};
#undef MAY

	assert(next[f->state] >> to & 1);
	f->state = to;
}

/* Second part of an answer's head: flag bits. */
#define ANSWER_PACKED 1u
#define ANSWER_AT_HAND 2u /* it was cached when requested */
/* The third part is the requested entry; body, sum and the first flag then describe the file's
 * bytes. */
#define ANSWER_FIRST 4u
#define ANSWER_LENDS 8u /* the root of the first tree is full */
/* Size of the first two parts. The entry of a regular file has no symlink target and fits after
 * them. */
#define ANSWER_HEAD 9u

/* Whether this node is the root of the object's tree and reads the origin. */
bool cop_fetch_is_root(const struct flight *f);
/* Whether an error is a failure of this node (or, in an answer, of the sender) rather than a result
 * from the storage. */
bool cop_fetch_is_own(int rc);

/* The answer has arrived or failed. Counts how long a local program waited for the parent or the
 * origin. */
void cop_fetch_waited(const struct flight *f, enum cop_counter c);

/* ---- trace.c: flights as events; no-ops without a tracer ---- */

/* Called by rpc when it sends the request to the flight's upstream rank. */
void cop_fetch_trace_sent(void *flight, uint64_t id, uint64_t at_ns);
/* The read from the origin or the local disk begins. */
void cop_fetch_trace_origin(struct flight *f);
/* The answer has arrived or failed. */
void cop_fetch_trace_answered(struct flight *f, int rc, size_t len);
void cop_fetch_trace_complete(const struct flight *f, const struct cop_completion *l);
struct served_trace {
	uint64_t began_ns;
	uint32_t tid;
};
/* A child's request arrives, and later is answered. The trace needs both, because viewers report an
 * error for a flow that ends outside a span. */
struct served_trace cop_fetch_trace_arrived(struct cop_fetch *c, const struct cop_rpc_req *req);
void cop_fetch_trace_served(struct cop_fetch *c, const struct served_trace *since,
	const struct cop_rpc_req *req, const struct cop_ask *ask, int rc, size_t len);

/* ---- rest.c ---- */

/* The ancestor could not answer. It is not tried again until a pause is over; the pause backs off
 * exponentially, as for a dead node. */
void cop_fetch_rest(struct cop_fetch *c, uint32_t rank);
bool cop_fetch_rests(struct cop_fetch *c, uint32_t rank);
/* The ancestor answered. */
void cop_fetch_rested(struct cop_fetch *c, uint32_t rank);

/* ---- hedge.c: hedged requests ---- */

/* The next candidate after this rank: an ancestor or, for a group of a large file, one of the
 * parent's siblings, which come after the parent. COP_TOPO_NONE: there is none. */
uint32_t cop_fetch_above(struct flight *f, uint32_t rank);
/* Called by rpc: the flight's upstream rank is late. */
bool cop_fetch_late(void *flight);
/* The request to the upstream rank ended, with or without an answer. Returns whether the flight now
 * waits for the second request. */
bool cop_fetch_waits_for_second(struct flight *f, const struct cop_rpc_result *r);

/* ---- first.c ---- */

static inline bool cop_fetch_wants_first(const struct cop_ask *ask)
{
	return ask->first && ask->kind == COP_ASK_ENTRY;
}
/* Whether the request is for the first bytes of an entry that has a waiter. */
static inline bool cop_fetch_is_first_chunk(const struct cop_ask *ask)
{
	return ask->first && ask->kind == COP_ASK_CHUNK;
}

/* Whether the flight requests the bytes after the entry if the answer does not contain them. */
bool cop_fetch_follows(const struct flight *f);
/* Maximum length of an answer with the first bytes; 0 if memory is short or there is no ancestor:
 * the flight then requests only the entry. */
size_t cop_fetch_first_reservation(struct flight *f);
/* If this is the entry of a small file whose bytes may be fetched with it, sets *ask to the request
 * for them and returns true. The path is the entry's. */
bool cop_fetch_first_of(
	const struct cop_fetch *c, const struct cop_obj *entry, struct cop_ask *ask);
/* Decodes an answer with ANSWER_FIRST. head points after the flags; *l holds the bytes. Returns
 * true if *l now holds the entry, and the bytes are cached or freed. False: the answer is corrupt,
 * and nothing has changed. */
bool cop_fetch_take_first(struct flight *f, struct cop_rd *head, struct cop_completion *l);
/* The entry of a flight with first bytes has arrived: requests the bytes if the answer did not
 * contain them. read_soon: a program requested the entry. mentioned: as in cop_ask. Returns whether
 * a flight began. */
bool cop_fetch_follow_first(
	struct cop_fetch *c, const struct cop_obj *entry, bool read_soon, bool mentioned);
/* The entry now has a waiter: raises the priority of the flight for its bytes, because the answer
 * to another node depends on them. */
void cop_fetch_raise_first(struct cop_fetch *c, const struct cop_ask *entry);

/* ---- absence.c ---- */

/* Whether an absent entry remains valid for as long as the listing of its directory: the listing
 * does not contain the name, and the entry was fetched after the listing. */
bool cop_fetch_is_absent_still(struct cop_fetch *c, const struct cop_obj *absent);

/* Whether the check of a directory is unnecessary: another check completed after the requester
 * looked at the listing and before it sent its request. */
bool cop_fetch_was_checked(struct cop_fetch *c, const struct cop_ask *ask, bool local);

/* ---- lend.c ---- */

/* Sets the duty of the object of a chunk's flight. At the root, also records that the cache is
 * full. */
void cop_fetch_set_duty(struct flight *f);
/* The rank of a lent chunk's home, which is also the number of its tree. */
uint32_t cop_fetch_home_of(const struct cop_fetch *c, const struct cop_ask *ask);
/* The trees in which a request can go up. */
static inline const struct cop_topo *cop_fetch_topo(
	const struct cop_fetch *c, const struct cop_ask *ask)
{
	return ask->home ? &c->homes : &c->conf.topo;
}
/* The rank that receives a request up this tree first; COP_TOPO_NONE at its root. */
uint32_t cop_fetch_first_up(const struct cop_fetch *c, const struct cop_ask *ask, uint32_t tree);
/* The rank to try after `silent`, as in cop_topo_next. */
uint32_t cop_fetch_next_up(const struct cop_fetch *c, const struct cop_ask *ask, uint32_t tree,
	uint32_t silent, bool *heir);
/* Whether requests up this tree skip this rank. */
bool cop_fetch_spares(const struct cop_fetch *c, const struct cop_ask *ask, uint32_t rank);
/* Sets ask->home if this node requests the chunk from its home. local: as in cop_fetch_get_for. */
void cop_fetch_route(struct cop_fetch *c, struct cop_ask *ask, bool local);
/* Whether this node may also have the object under the other facet; if so, sets *key to that facet.
 */
bool cop_fetch_has_two_facets(
	const struct cop_fetch *c, const struct cop_ask *ask, struct cop_key *key);
/* A reference to the same chunk under the other facet, if complete; else NULL. */
struct cop_obj *cop_fetch_other_copy(struct cop_fetch *c, const struct cop_ask *ask);
/* An answer says that the root is full. */
void cop_fetch_hear_of_lending(struct cop_fetch *c);
/* Whether this node has the chunk that its home asks for, in memory or on its disk, or is reading
 * it. A flight that waits for other nodes does not count, because the home must not wait for one.
 */
bool cop_fetch_can_show(struct cop_fetch *c, const struct cop_ask *peek);
/* Whether the flight's request goes to the root, which may have the lent chunk. */
static inline bool cop_fetch_peeks(const struct flight *f)
{
	return f->peeks && f->upstream != COP_TOPO_NONE;
}
/* The flight is about to read the storage. Returns whether it asks the root first; if so, sets its
 * upstream. */
bool cop_fetch_peeks_first(struct flight *f);
/* The root had the chunk: the rest of the group asks the root as well. */
void cop_fetch_peeked(struct flight *f);

/* ---- reserve.c ---- */

/* Starts the flight as soon as its bytes are reserved. */
void cop_fetch_reserve(struct flight *f);
/* Whether an answer of this length fits the flight's reservation, growing it if possible. */
bool cop_fetch_reserve_up_to(struct flight *f, size_t len);
/* The answer did not fit and has been discarded. The flight waits until enough bytes are free and
 * repeats the request; it fails if the answer exceeds the whole budget. */
void cop_fetch_reserve_again(struct flight *f, size_t len);

/* ---- names.c ---- */

/* Updates the cached names from the answer that ends a flight; merges a newer listing into the
 * known one. */
void cop_fetch_learn(struct flight *f, struct cop_completion *l);
/* Whether an error on a file's bytes proves that the file changed after its entry was fetched. */
bool cop_fetch_disproves(int rc);
/* A reference to the cached listing of this directory in this version; else NULL. */
struct cop_obj *cop_fetch_listing_of(struct cop_fetch *c, const char *path, uint64_t version);
/* A reference to the cached listing of this directory if its version differs from the request's;
 * else NULL. */
struct cop_obj *cop_fetch_listing_but(struct cop_fetch *c, const struct cop_ask *newer);

/* ---- page.c ---- */

/* Reads a page from the origin for names in the cached listing. */
void cop_fetch_read_page(struct flight *f, struct cop_origin *o);
/* A reference to the cached page that contains a name, according to this node's listing of the
 * directory; else NULL. */
struct cop_obj *cop_fetch_page_with(struct cop_fetch *c, const struct cop_fetch_name *at);
/* From now on, this node neither uses nor forwards pages of this version of the directory; entries
 * are requested one by one. */
void cop_fetch_doubt_pages(struct cop_fetch *c, const struct cop_obj *page);
bool cop_fetch_doubts_pages(struct cop_fetch *c, const struct cop_ask *ask);
/* Uses pages again, because the user has dropped the wrong ones. */
void cop_fetch_trust_pages(struct cop_fetch *c);

/* ---- packed.c: the pack of an earlier job ---- */

/* Whether the pack contains this chunk. */
bool cop_fetch_is_packed(const struct cop_fetch *c, const struct cop_ask *ask);
/* Reads f's group, all of whose chunks are in the pack. */
void cop_fetch_read_packed(struct flight *f, struct cop_origin *o);
/* Reads a listing, with names from the pack. False: not in the pack. */
bool cop_fetch_list_packed(struct flight *f, struct cop_origin *o);

/* ---- upstream.c, root.c, fetch.c ---- */

/* The origin's result for a blob; arg is the flight. */
void cop_fetch_blob_read(void *arg, int rc, void *data, size_t len);

/* Sends the flight's request to its upstream rank, for the first time or again. */
void cop_fetch_send(struct flight *f);
/* Encodes f's request to this rank; payload has room for COP_FETCH_REQUEST_MAX bytes. */
#define COP_FETCH_REQUEST_MAX (4096 + 64)
struct cop_rpc_call cop_fetch_call(const struct flight *f, uint32_t rank, uint8_t *payload);
/* Handles the upstream rank's answer, or the reason for the failure. */
void cop_fetch_take_answer(struct flight *f, const struct cop_rpc_result *r);
/* Whether the result is an answer rather than the reason for a failure. */
bool cop_fetch_is_answer(const struct cop_rpc_result *r);
/* Reads from this node's own origin. */
void cop_fetch_read_origin(struct flight *f);
/* Reads the chunks of f's group from the origin. */
void cop_fetch_read_chunks(struct flight *f, struct cop_origin *o);
/* Ends the flight, frees it, and decides how long the answer is cached. The data is malloc'ed or
 * f->buf; an unused f->buf is released. */
void cop_fetch_complete(struct flight *f, const struct cop_completion *completion);
void cop_fetch_fail(struct flight *f, int rc);
/* Leads a flight for a chunk of another flight's group, without a reservation; NULL if the chunk is
 * cached, in flight, or past the end. */
struct flight *cop_fetch_lead_member(struct cop_fetch *c, const struct cop_ask *ask, bool local);
/* Whether a file of this size is striped over all trees. */
bool cop_fetch_is_striped(const struct cop_fetch *c, uint64_t size);
/* Maximum number of chunks that a root reads in one job. */
uint64_t cop_fetch_group_chunks(const struct cop_fetch *c);
/* Number of groups of a file of this size, which must not be 0. */
uint64_t cop_fetch_groups(const struct cop_fetch *c, uint64_t size);
static inline void cop_fetch_lock_groups(struct cop_fetch *c)
{
	pthread_mutex_lock(&c->group_lock);
	cop_cache_locked();
}
static inline void cop_fetch_unlock_groups(struct cop_fetch *c)
{
	cop_cache_unlocked();
	pthread_mutex_unlock(&c->group_lock);
}
/* With group_lock held: adds the missing chunks around f to its read, if memory is available. */
void cop_fetch_lead_group(struct flight *f);
/* Raises the priority of a background flight that now has a waiter, on all nodes up to the origin
 * or, without tell, only on this node. This is a hint and may be lost. */
void cop_fetch_raise_priority(struct cop_fetch *c, const struct cop_ask *ask, bool tell);
/* A new flight for this object, led by the caller; NULL: out of memory. */
struct flight *cop_fetch_new_flight(
	struct cop_fetch *c, const struct cop_ask *ask, struct cop_obj *obj, bool local);
/* Encodes the request for the ancestor. */
size_t cop_fetch_request(const struct cop_ask *ask, uint8_t when, void *payload, size_t size);
/* For the log. */
const char *cop_fetch_kind_name(enum cop_ask_kind kind);
uint32_t cop_fetch_tree_of(const struct cop_fetch *c, const struct cop_ask *ask);
/* cop_fetch_get for a local program (local) or for a child. */
int cop_fetch_get_for(struct cop_fetch *c, const struct cop_ask *ask, struct cop_waiter *waiter,
	bool local, struct cop_obj **obj);
struct cop_key cop_fetch_key(const struct cop_ask *ask);
/* Whether all fields that this kind uses are set and all others are 0. A version must not be 0,
 * because 0 would match any version. */
bool cop_fetch_is_proper(const struct cop_ask *ask);
/* Decodes and validates a child's request; path has room for 4096 bytes. */
bool cop_fetch_decode(struct cop_rpc_req *req, char *path, struct cop_ask *ask, bool *raise);

#endif
