/* SPDX-License-Identifier: BSD-3-Clause */
/* fetch.h lists the states of a flight and its owners; cop_fetch_pass below allows no other change.
 *
 * group_lock is taken before the cache's: it makes leading a chunk and leading the rest of its
 * group one step at a root, so that each group is read once, however many ask. */
#ifndef COP_TREE_FETCH_PRIV_H
#define COP_TREE_FETCH_PRIV_H

#include <assert.h>

#include "base/base/htab.h"
#include "tree/fetch/fetch.h"
#include "tree/guess/guess.h"

/* Enough for a page of a thousand names of a hundred bytes each. */
#define PAGE_RESERVE (256 * COP_KIB)
#define GROUP_MAX (COP_FETCH_GROUP_BYTES / (64 * COP_KIB))

/* How urgent a request is. */
enum {
	ASK_NOW,
	ASK_BACKGROUND,     /* nobody waits for it yet */
	ASK_RAISE_PRIORITY, /* somebody now waits for a background request; its answer is empty */
	ASK_GUESS,          /* somebody probably needs it in a moment, if it exists */
};
/* In the same byte: with the first bytes. */
#define ASK_FIRST 0x80u
/* In the same byte: the answering node is the chunk's home. */
#define ASK_HOME 0x40u

/* How long the answer to a child waits for this node's kernel to forget names. The kernel takes
 * less than a millisecond, unless a program here is looking up a name in the same directory and the
 * storage does not answer. A child that is answered too early asks for the directory, gets the old
 * names, and is told again that its file is stale. So answering early never mixes two versions, and
 * two seconds are enough; no node is taken for dead by then. */
#define FORGET_MS 2000

/* Answers to children that wait for the kernel to forget. */
struct telling {
	pthread_mutex_t lock;
	struct cop_list waiting; /* struct served by at, the oldest first */
};

#define RESTING_SLOTS 64
#define REST_MIN_MS 1000
#define REST_MAX_MS 10000

/* Ancestors that are alive but lacked memory, descriptors or buffers for an answer (rest.c). */
struct resting {
	pthread_mutex_t lock;
	_Atomic unsigned count; /* of the slots in use */
	uint64_t min_ms;        /* the first pause */
	struct {
		uint32_t rank;
		uint64_t until_ms, pause_ms; /* pause_ms 0: free */
	} slot[RESTING_SLOTS];
};

#define DOUBTED_SLOTS 64
#define PASSED_SLOTS 64

/* Directories whose attributes the storage has contradicted (page.c). */
struct doubted {
	pthread_mutex_t lock;
	_Atomic unsigned count;      /* of all directories so far */
	uint64_t dir[DOUBTED_SLOTS]; /* hashes of path and version; a later one takes the place of
					the oldest */
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
	_Atomic bool heard;          /* a parent has answered */
	_Atomic bool prefetched;     /* the prefetch has ended */
	_Atomic bool unpacked;       /* the pack is not used, or no longer */
	_Atomic uint32_t parent;     /* the last ancestor in the first tree that answered */
	_Atomic bool has_lent;       /* as a root whose memory was full */
	_Atomic bool keeps_for_root; /* there may be chunks with COP_FACET_HOME here */
	/* By rank: ranks (plus 1) that were passed over in the other trees. */
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
	bool spread;       /* it is for a part of a large file, in any tree */
	bool spilled;      /* this node's disk has it */
	bool heir;         /* upstream is asked in place of the tree's root */
	uint8_t lent;      /* at the root: 1 for the first home that is asked, 2 for the next */
	uint32_t upstream; /* the rank that is asked, an ancestor */
	unsigned tries;    /* at this upstream rank */
	bool local;
	bool was_absent; /* it is asked again because its absence had expired */
	bool follows; /* an entry's: if its first bytes do not come with it, they are requested */
	size_t reserved; /* bytes that an answer may have; a chunk's is its buffer's */
	void *buf;       /* where a chunk arrives, from cop_cache_alloc */
	size_t buf_len;
	struct flight *group; /* at a root: the first of those that one read fills, in the order
				 of their chunks; NULL if this one is alone, or does not lead */
	struct flight *group_next; /* the next of them */
	uint64_t asked_ns;         /* when the parent or the origin was asked last */
	/* For the trace: when it was led, when its request left (or the origin was asked), when the
	 * answer came; 0: not yet, or there is no trace. */
	uint64_t led_ns, sent_ns, answered_ns;
	struct second *second; /* the same request to a node further up (hedge.c), or NULL */
	bool by_second;        /* the answer is the second one's */
	bool is_asked;         /* the last request has left and has no answer yet */
	bool sent_background;  /* and it said that nobody waits for it */
};

/* The first of the flights that share this one's read: it may be alone. */
static inline struct flight *cop_fetch_group(struct flight *f)
{
	return f->group ? f->group : f;
}

/* Hands the flight to another owner, as the table at the head of fetch.h allows. */
static inline void cop_fetch_pass(struct flight *f, enum flight_state to)
{
#define MAY(state) (1u << FLIGHT_##state)
	static const unsigned next[] = {
		[FLIGHT_LED] = MAY(MEMBER) | MAY(RESERVE) | MAY(COMPLETE),
		[FLIGHT_MEMBER] = MAY(COMPLETE),
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

/* The second part of an answer's head, bits. */
#define ANSWER_PACKED 1u
#define ANSWER_AT_HAND 2u /* it was at hand when it was asked for */
/* The third part is the entry that was asked for; body, sum and the first bit are of its bytes. */
#define ANSWER_FIRST 4u
/* Both parts before it. The entry of a file, which has no target, fits behind them. */
#define ANSWER_HEAD 9u

/* Whether this node is the root of the object's tree and reads it from the origin. */
bool cop_fetch_is_root(const struct flight *f);
/* Whether an error is a failure of this node or, in an answer, of the node that sent it, rather
 * than an answer of the storage. */
bool cop_fetch_is_own(int rc);

/* The answer has arrived, or there will be none. Counts how long a program of this node waited for
 * the parent or for the origin. */
void cop_fetch_waited(const struct flight *f, enum cop_counter c);

/* ---- trace.c: flights as events; each does nothing without a tracer ---- */

/* The request leaves for f's upstream rank; called by rpc. */
void cop_fetch_trace_sent(void *flight, uint64_t id, uint64_t at_ns);
/* The origin, or this node's disk, is asked. */
void cop_fetch_trace_origin(struct flight *f);
/* The answer has arrived, or there will be none. */
void cop_fetch_trace_answered(struct flight *f, int rc, size_t len);
void cop_fetch_trace_complete(const struct flight *f, const struct cop_completion *l);
struct served_trace {
	uint64_t began_ns;
	uint32_t tid;
};
/* A child's request arrives, and is answered. What arrived has to be answered in the trace, too:
 * viewers complain of a flow that ends outside of spans. */
struct served_trace cop_fetch_trace_arrived(struct cop_fetch *c, const struct cop_rpc_req *req);
void cop_fetch_trace_served(struct cop_fetch *c, const struct served_trace *since,
	const struct cop_rpc_req *req, const struct cop_ask *ask, int rc, size_t len);

/* ---- rest.c ---- */

/* The ancestor could not answer. It is not asked again until a pause has passed; the pause grows
 * like that for a dead one. */
void cop_fetch_rest(struct cop_fetch *c, uint32_t rank);
bool cop_fetch_rests(struct cop_fetch *c, uint32_t rank);
/* The ancestor answered. */
void cop_fetch_rested(struct cop_fetch *c, uint32_t rank);

/* ---- hedge.c: requests that are asked twice ---- */

/* The next node that may be asked after this rank: an ancestor, or, for a group of a large file, a
 * sibling of the parent after the parent. COP_TOPO_NONE: there is none. */
uint32_t cop_fetch_above(struct flight *f, uint32_t rank);
/* Called by rpc: the flight's upstream rank is silent. */
bool cop_fetch_late(void *flight);
/* The upstream rank has answered, or did not. True: the flight now waits for the second one. */
bool cop_fetch_waits_for_second(struct flight *f, const struct cop_rpc_result *r);

/* ---- first.c ---- */

static inline bool cop_fetch_wants_first(const struct cop_ask *ask)
{
	return ask->first && ask->kind == COP_ASK_ENTRY;
}
/* Whether it is for bytes that go with an entry for which somebody waits. */
static inline bool cop_fetch_is_first_chunk(const struct cop_ask *ask)
{
	return ask->first && ask->kind == COP_ASK_CHUNK;
}

/* Whether the bytes are requested once the entry is here, if they do not come with it. */
bool cop_fetch_follows(const struct flight *f);
/* How many bytes an answer with the first bytes may have; 0 if there is no memory to ask for them,
 * or nobody to ask: then the flight goes on without. */
size_t cop_fetch_first_reservation(struct flight *f);
/* If this entry is a small file's whose bytes may be fetched with it: their request. Its path is
 * the entry's. */
bool cop_fetch_first_of(
	const struct cop_fetch *c, const struct cop_obj *entry, struct cop_ask *ask);
/* The ancestor's answer has ANSWER_FIRST; takes it apart. head is behind the flags; *l has the
 * bytes, and has the entry if this returns true: the bytes are in the cache by then, or freed.
 * False: the answer is corrupt, and nothing has changed. */
bool cop_fetch_take_first(struct flight *f, struct cop_rd *head, struct cop_completion *l);
/* The entry of a flight that was to bring the first bytes is here: requests them, if they have not
 * come with it. read_soon: a program asked for the entry; mentioned: as in cop_ask. Whether a
 * flight began. */
bool cop_fetch_follow_first(
	struct cop_fetch *c, const struct cop_obj *entry, bool read_soon, bool mentioned);
/* Somebody waits for this entry now: raises the priority of a flight for its bytes, which the
 * answer to another node waits for. */
void cop_fetch_raise_first(struct cop_fetch *c, const struct cop_ask *entry);

/* ---- absence.c ---- */

/* Whether an absent entry is one as long as the listing of its directory is right, which it does
 * not have: the storage was asked after that came. */
bool cop_fetch_is_absent_still(struct cop_fetch *c, const struct cop_obj *absent);

/* Whether the directory of a check need not be checked any more: another check ended after the
 * requester had looked at the listing, and before it sent its request. */
bool cop_fetch_was_checked(struct cop_fetch *c, const struct cop_ask *ask, bool local);

/* ---- lend.c ---- */

/* What the object of a flight for a chunk is for; decides whether the flight asks a home. */
void cop_fetch_set_duty(struct flight *f);
/* The home to ask first (1) or next; COP_TOPO_NONE: this node's turn. */
uint32_t cop_fetch_home_of(const struct flight *f, unsigned which);
/* The chunk, with a reference, if this node keeps it for the root; else NULL. */
struct cop_obj *cop_fetch_kept_for_root(struct cop_fetch *c, const struct cop_ask *ask);

/* ---- reserve.c ---- */

/* Starts the flight once its bytes are reserved. */
void cop_fetch_reserve(struct flight *f);
/* Whether an answer of this length fits the flight's reservation, after growing it if possible. */
bool cop_fetch_reserve_up_to(struct flight *f, size_t len);
/* The answer did not fit, and none of it is in memory any more. The flight waits for enough bytes
 * and asks again; it fails if the budget can never hold them. */
void cop_fetch_reserve_again(struct flight *f, size_t len);

/* ---- names.c ---- */

/* Updates the names that are known here from the answer that ends a flight. Merges a newer listing
 * with the known one. */
void cop_fetch_learn(struct flight *f, struct cop_completion *l);
/* Whether an error about a file's bytes says that the file has changed since its name was
 * learned. */
bool cop_fetch_disproves(int rc);
/* The cached listing of this directory in this version, with a reference; else NULL. */
struct cop_obj *cop_fetch_listing_of(struct cop_fetch *c, const char *path, uint64_t version);
/* The same if its version differs from the one in the request. */
struct cop_obj *cop_fetch_listing_but(struct cop_fetch *c, const struct cop_ask *newer);

/* ---- page.c ---- */

/* Reads a page from the origin, using the names that are known here. */
void cop_fetch_read_page(struct flight *f, struct cop_origin *o);
/* The page that this node has for a name, by its own listing of the directory, with a reference;
 * else NULL. */
struct cop_obj *cop_fetch_page_with(struct cop_fetch *c, const struct cop_fetch_name *at);
/* From now on this node neither uses nor passes on pages of the directory in this page's version;
 * its names are requested singly. */
void cop_fetch_doubt_pages(struct cop_fetch *c, const struct cop_obj *page);
bool cop_fetch_doubts_pages(struct cop_fetch *c, const struct cop_ask *ask);
/* Pages are used again, because a user has dropped those that were contradicted. */
void cop_fetch_trust_pages(struct cop_fetch *c);

/* ---- packed.c: what an earlier job read ---- */

/* Whether the pack has this chunk. */
bool cop_fetch_is_packed(const struct cop_fetch *c, const struct cop_ask *ask);
/* Reads f's group, of which the pack has each chunk. */
void cop_fetch_read_packed(struct flight *f, struct cop_origin *o);
/* Reads a listing, with names from the pack. False: the pack has none. */
bool cop_fetch_list_packed(struct flight *f, struct cop_origin *o);

/* ---- upstream.c, root.c, fetch.c ---- */

/* The origin's answer to a request for a blob; arg is the flight. */
void cop_fetch_blob_read(void *arg, int rc, void *data, size_t len);

/* Asks the flight's upstream rank, for the first time or again. */
void cop_fetch_send(struct flight *f);
/* The request that f sends to this rank; payload has room for COP_FETCH_REQUEST_MAX bytes. */
#define COP_FETCH_REQUEST_MAX (4096 + 64)
struct cop_rpc_call cop_fetch_call(const struct flight *f, uint32_t rank, uint8_t *payload);
/* The upstream rank's answer, or why there is none. */
void cop_fetch_take_answer(struct flight *f, const struct cop_rpc_result *r);
/* Whether it is an answer rather than the reason why there is none. */
bool cop_fetch_is_answer(const struct cop_rpc_result *r);
/* Reads from this node's own origin. */
void cop_fetch_read_origin(struct flight *f);
/* Reads the chunks of f's group from the origin. */
void cop_fetch_read_chunks(struct flight *f, struct cop_origin *o);
/* Ends the flight and frees it. The data is malloc'ed or f->buf, which is released otherwise.
 * Decides how long the answer is kept. */
void cop_fetch_complete(struct flight *f, const struct cop_completion *completion);
void cop_fetch_fail(struct flight *f, int rc);
/* Leads a flight for a chunk of another flight's group, with nothing reserved; NULL if the chunk is
 * cached, in flight, or past the end. */
struct flight *cop_fetch_lead_member(struct cop_fetch *c, const struct cop_ask *ask, bool local);
/* Whether a file of this size is spread over all trees. */
bool cop_fetch_is_striped(const struct cop_fetch *c, uint64_t size);
/* How many chunks a root reads in one job at most. */
uint64_t cop_fetch_group_chunks(const struct cop_fetch *c);
/* How many groups a file of this size has; it is not empty. */
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
/* Under group_lock: adds the missing chunks around f to its read, if there is memory. */
void cop_fetch_lead_group(struct flight *f);
/* Raises the priority of a background flight that somebody now waits for, up to the origin; without
 * tell, only on this node. A hint: nothing depends on its arrival. */
void cop_fetch_raise_priority(struct cop_fetch *c, const struct cop_ask *ask, bool tell);
/* A new flight for this object, which the caller leads; NULL without memory. */
struct flight *cop_fetch_new_flight(
	struct cop_fetch *c, const struct cop_ask *ask, struct cop_obj *obj, bool local);
/* Encodes the request for the ancestor. */
size_t cop_fetch_request(const struct cop_ask *ask, uint8_t when, void *payload, size_t size);
/* For the log. */
const char *cop_fetch_kind_name(enum cop_ask_kind kind);
uint32_t cop_fetch_tree_of(const struct cop_fetch *c, const struct cop_ask *ask);
/* cop_fetch_get for a program of this node (local) or for a child. */
int cop_fetch_get_for(struct cop_fetch *c, const struct cop_ask *ask, struct cop_waiter *waiter,
	bool local, struct cop_obj **obj);
struct cop_key cop_fetch_key(const struct cop_ask *ask);
/* Whether the fields that this kind uses are set and the others are 0. A version is never 0,
 * because 0 would mean any version. */
bool cop_fetch_is_proper(const struct cop_ask *ask);
/* Decodes and checks a child's request; path has room for 4096 bytes. */
bool cop_fetch_decode(struct cop_rpc_req *req, char *path, struct cop_ask *ask, bool *raise);

#endif
