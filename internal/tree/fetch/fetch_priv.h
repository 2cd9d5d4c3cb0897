/* SPDX-License-Identifier: BSD-3-Clause */
/* coop.h lists the states of a flight and its owners; cop_fetch_pass below allows no other change.
 *
 * Two locks are taken before the cache's. group_lock makes leading a chunk and leading the rest of
 * its group one step at a root, so that each group is read once, however many ask. absence.lock is
 * held while the listings of the directories in that list are looked at. */
#ifndef COP_TREE_FETCH_PRIV_H
#define COP_TREE_FETCH_PRIV_H

#include <assert.h>

#include "base/base/htab.h"
#include "tree/guess/guess.h"
#include "tree/fetch/fetch.h"

/* The bytes reserved for an answer before its length is known; most answers are shorter. */
#define LISTING_RESERVE (64 * COP_KIB)
#define ENTRY_RESERVE ((size_t)512)
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

/* Directories whose attributes the storage has contradicted (page.c). */
struct doubted {
	pthread_mutex_t lock;
	_Atomic unsigned count;      /* of all directories so far */
	uint64_t dir[DOUBTED_SLOTS]; /* hashes of path and version; a later one takes the place of
					the oldest */
};

#define COLLECTIONS 8
#define COLLECTION_DIR 512
#define MENTIONS 128
#define MENTION_NAME 64

/* A directory with many files of a kind, of which programs read some (mentions.c). */
struct collection {
	char dir[COLLECTION_DIR];  /* with a slash at its end; "": free */
	char ending[MENTION_NAME]; /* of its files' names, from the first dot on */
	struct cop_bundle_id id;
};

enum mention_kind {
	MENTION_NONE,
	MENTION_FILE,
	MENTION_DIR,   /* whose listing is wanted */
	MENTION_ENTRY, /* whose attributes are */
};

/* What a program's file mentions. */
struct mention {
	enum mention_kind kind;
	char dir[COLLECTION_DIR]; /* with name in it; of a file, with a slash at its end */
	char name[MENTION_NAME];
	struct cop_attr attr; /* of a file that mentions it: this one must be like it */
	bool soon;            /* that file has been read, so this one comes before others; */
	uint64_t turn;        /* those of the file that was read last come first */
	uint64_t round;       /* in which it was taken last, and its turn had not come */
};

#define EXTENSIONS 4u /* endings; Python looks for three of each name */
#define NEEDED_NAMES 32u
#define NEEDED_DIRS 4u

/* Shared libraries that files need which programs have read (libraries.c). */
struct needed {
	char name[NEEDED_NAMES][MENTION_NAME]; /* of those that were not found yet; "": free */
	unsigned at;                           /* the next one goes here */
	char dir[NEEDED_DIRS]
		[COLLECTION_DIR + 1]; /* where others were found, with a slash before */
	unsigned dirs;
	uint64_t turn;
};

/* Which small files are fetched beside others (siblings.c, mentions.c). */
struct bundling {
	pthread_mutex_t lock;
	struct cop_bundle policy;
	_Atomic unsigned collections; /* of all so far; a later one takes the place of the oldest */
	struct collection collection[COLLECTIONS];
	_Atomic unsigned mentions; /* that nobody has requested yet */
	uint64_t turns;            /* files that were looked at */
	uint64_t rounds;           /* how many times mentions were fetched */
	struct mention mention[MENTIONS];
	char module_ending[MENTION_NAME]; /* of the module that a program read last */
	struct cop_attr module_attr;
	char extension[EXTENSIONS]
		      [MENTION_NAME]; /* endings of extensions that programs read; "": none */
	unsigned extensions;
	struct needed needed;
};

/* Directories in which programs look for absent names (absence.c). */
struct absence {
	pthread_mutex_t lock;
	struct cop_htab dirs;        /* struct absent_dir by path, in bounded number, */
	struct cop_list order;       /* and in the order in which programs came to them */
	struct absent_dir *expected; /* where a program that goes on goes on, or NULL */
	unsigned window, ahead;      /* directories that were checked ahead, at most and really, */
	uint64_t checked_ms;         /* with the check of this time */
};

struct cop_fetch {
	struct cop_fetch_conf conf;
	struct bundling bundling;
	struct absence absence;
	struct resting resting;
	struct telling telling;
	struct doubted doubted;
	pthread_mutex_t group_lock;
	_Atomic bool closing;
	uint64_t started_ns;
	_Atomic bool heard;          /* a parent has answered */
	_Atomic bool prefetched;     /* the prefetch has ended */
	_Atomic uint32_t parent[64]; /* last ancestor that answered, per tree; for reports */
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
	struct cop_fetch *coop;
	struct cop_obj *obj;
	struct cop_ask ask; /* path points into obj */
	uint32_t tree;
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
	bool is_asked;        /* the last request has left and has no answer yet */
	bool sent_background; /* and it said that nobody waits for it */
};

/* The first of the flights that share this one's read: it may be alone. */
static inline struct flight *cop_fetch_group(struct flight *f)
{
	return f->group ? f->group : f;
}

/* Hands the flight to another owner, as the table at the head of coop.h allows. */
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
/* The origin is asked. */
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

/* ---- siblings.c ---- */

/* Starts the flight of a small file that a program asks for, together with flights of siblings. */
void cop_fetch_reserve_with_siblings(struct flight *f);
/* Whether a program's request is for a file that may have siblings. */
bool cop_fetch_is_small(const struct cop_fetch *c, const struct cop_ask *ask);
/* Counts a file that was fetched beside another. */
void cop_fetch_bundled(const struct flight *f, int rc);

/* Files with more bytes are neither fetched beside others nor with their entries. */
size_t cop_fetch_largest_small(const struct cop_fetch *c);

/* A file that programs read, or a collection, and what the directory's listing says about it. */
struct bundle {
	struct cop_fetch *coop;
	struct cop_bundle_id id;
	const void *list;
	const char *path;
	size_t dir_len; /* of the path, up to the name */
	struct cop_attr attr;
	bool mentioned; /* not as a sibling */
};
/* Without attributes, only the type and the kind can be compared. */
bool cop_fetch_is_sibling(const struct bundle *b, const struct cop_listing_entry *e);
/* Whether the attributes of a listed name are known here. Those that the listing lacks were asked
 * for singly. */
bool cop_fetch_find_attr(struct cop_fetch *c, const char *path, struct cop_listing_entry *e);
/* Whether a flight for this file began. */
bool cop_fetch_ask_sibling(const struct bundle *b, const struct cop_listing_entry *e);

/* ---- mentions.c ---- */

/* Notes which files and directories these bytes mention. used: a program has read them. */
void cop_fetch_note_mentions(struct cop_fetch *c, const struct cop_key *key, const void *data,
	size_t len, bool packed, bool used);
/* Notes one, unless it has been noted, or too many have. */
void cop_fetch_note(struct cop_fetch *c, const struct mention *what);
/* Whether a program's request could take requests for mentioned files along. */
bool cop_fetch_has_mentions(struct cop_fetch *c, const struct cop_ask *ask);
/* Starts their flights. */
void cop_fetch_bring_mentioned(struct cop_fetch *c);

/* ---- modules.c ---- */

#define MODULE_NAMES 256u
#define MODULE_NAME 128u

/* A compiled module, and the names of modules that it imports. */
struct module {
	struct cop_fetch *coop;
	const char *path;
	bool used; /* by a program */
	uint64_t turn;
	unsigned names;
	char name[MODULE_NAMES][MODULE_NAME]; /* with dots */
	/* Set by cop_fetch_look_up_modules: */
	const char *ending; /* of its file's name, from the first dot on */
	struct cop_attr attr;
	char extension[EXTENSIONS][MENTION_NAME]; /* as bundling.extension */
};

/* Under bundling.lock: programs read files of this collection. */
void cop_fetch_add_collection(struct bundling *g, const struct bundle *b);
/* Whether a file's bytes are looked at for names of others. */
bool cop_fetch_may_mention(const struct cop_fetch *c, const struct cop_key *key);
/* Notes where the names of m lead. */
void cop_fetch_look_up_modules(struct module *m);
/* Notes the package in a directory that was mentioned and whose listing has come. */
void cop_fetch_listed_mentioned(struct cop_fetch *c, const struct cop_obj *obj, const void *data);
/* Whether this entry of the directory m->dir is fetched because of m. */
bool cop_fetch_may_fetch(
	struct cop_fetch *c, const struct mention *m, const struct cop_listing_entry *e);
/* The listing of dir, len bytes with a slash at their end ("" is the source), with a reference;
 * NULL if it is not here. */
struct cop_obj *cop_fetch_names_below(struct cop_fetch *c, const char *dir, size_t len);

/* ---- libraries.c ---- */

/* A program reads a file's first bytes: notes the libraries that it needs. */
void cop_fetch_note_libraries(struct cop_fetch *c, const struct cop_obj *obj);
/* A program asks for a name. If that is a needed library, the others are looked for beside it. */
void cop_fetch_met_library(struct cop_fetch *c, const struct cop_ask *ask);

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

/* Whether a program's request could be for an entry with its first bytes. */
bool cop_fetch_may_ask_first(const struct cop_fetch *c, const struct cop_ask *ask);
/* Decides it, for a flight that this request leads. */
void cop_fetch_decide_first(struct flight *f);
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
/* Whether the waste so far allows the bytes of one more file. */
bool cop_fetch_may_come(struct cop_fetch *c);
/* Whether there is nothing to fetch: the entry and its first bytes are here or on their way, or the
 * entry is not a small file's. */
bool cop_fetch_has_first(struct cop_fetch *c, const char *path);
/* Somebody waits for this entry now: raises the priority of a flight for its bytes, which the
 * answer to another node waits for. */
void cop_fetch_raise_first(struct cop_fetch *c, const struct cop_ask *entry);

/* ---- sources.c ---- */

/* A program looks up this name: if it is a module's source, requests the compiled file. */
void cop_fetch_bring_compiled(struct cop_fetch *c, const char *source);
/* A compiled file was requested because another one mentions it: requests its source's entry. dir
 * ends with a slash. */
void cop_fetch_bring_source(struct cop_fetch *c, const char *dir, const char *compiled);

/* ---- companions.c ---- */

/* Starts the flight of a listing that a program asks for, together with those of directories that
 * are probably below it and needed next. */
void cop_fetch_reserve_with_companions(struct flight *f);
/* Whether a program's request may have companions. */
bool cop_fetch_may_have_companions(const struct cop_fetch *c, const struct cop_ask *ask);
/* Requests the listing of dir/name, which nobody needs yet. */
void cop_fetch_guess(struct cop_fetch *c, const char *dir, const char *name, bool mentioned);
/* A program's request met this listing, or its flight. Returns whether it was brought and this is
 * its first use. */
bool cop_fetch_met_companion(struct cop_fetch *c, const struct cop_ask *ask);
/* At a root: whether a directory that was guessed may exist, so that the storage is asked. */
bool cop_fetch_is_likely(struct cop_fetch *c, const char *path);

/* ---- absence.c ---- */

/* Whether the directory of a check need not be checked any more: another check ended after the
 * requester had looked at the listing, and before it sent its request. */
bool cop_fetch_was_checked(struct cop_fetch *c, const struct cop_ask *ask, bool local);

void cop_fetch_absence_init(struct absence *a);
void cop_fetch_absence_fini(struct absence *a);
/* Whether a program's request is a check that others may accompany. */
bool cop_fetch_may_check_ahead(const struct cop_fetch *c, const struct cop_ask *ask);
/* Starts the flight of such a check, together with others. */
void cop_fetch_reserve_with_checks(struct flight *f);

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

/* ---- targets.c ---- */

/* Starts the flight of a name, together with that of the name that it probably links to. */
void cop_fetch_reserve_with_target(struct flight *f);
/* Requests the name that this one, whose attributes nobody has, probably links to. */
void cop_fetch_bring_target(struct cop_fetch *c, const char *link);
/* Whether a program's request is for a name that may be a link. */
bool cop_fetch_may_have_target(const struct cop_fetch *c, const struct cop_ask *ask);

/* ---- page.c ---- */

/* What this node knows of the directory's names: its listing or, if there are too many for one, the
 * names alone. With a reference; or NULL. */
struct cop_obj *cop_fetch_names_of(struct cop_fetch *c, const char *dir);

/* What this node has of a directory, with a reference: its listing or, if that has no attributes,
 * its only page. NULL, or an error, if it is not known. */
struct cop_obj *cop_fetch_listed(struct cop_fetch *c, const char *dir);

/* Reads a page from the origin, using the names that are known here. */
void cop_fetch_read_page(struct flight *f, struct cop_origin *o);
/* The page that this node has for a name of dir, by its own listing, with a reference; else NULL.
 * */
struct cop_obj *cop_fetch_page_with(struct cop_fetch *c, const char *dir, const char *name);
/* From now on this node neither uses nor passes on pages of the directory in this page's version;
 * its names are requested singly. */
void cop_fetch_doubt_pages(struct cop_fetch *c, const struct cop_obj *page);
bool cop_fetch_doubts_pages(struct cop_fetch *c, const struct cop_ask *ask);
/* Pages are used again, because a user has dropped those that were contradicted. */
void cop_fetch_trust_pages(struct cop_fetch *c);

/* ---- upstream.c, root.c, coop.c ---- */

/* The origin's answer to a request for a blob; arg is the flight. */
void cop_fetch_blob_read(void *arg, int rc, void *data, size_t len);

/* Asks the flight's upstream rank, for the first time or again. */
void cop_fetch_send(struct flight *f);
/* Reads from this node's own origin. */
void cop_fetch_read_origin(struct flight *f);
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
