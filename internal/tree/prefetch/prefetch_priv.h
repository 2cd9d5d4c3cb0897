/* SPDX-License-Identifier: BSD-3-Clause */
/* One thread owns everything except what is under `lock`: flights that complete only put their slot
 * on the list and wake it. So there is no lock order, and a callback costs a few instructions on
 * whichever thread it runs.
 *
 * Three stages run side by side, each with a window of slots: listings in the order of the
 * manifest; names, which wait for their directory's listing and give files their version; and
 * chunks of the files that have one. */
#ifndef COP_TREE_PREFETCH_PRIV_H
#define COP_TREE_PREFETCH_PRIV_H

#include <stdatomic.h>

#include "storage/manifest/manifest.h"
#include "tree/prefetch/prefetch.h"

enum stage { STAGE_LISTINGS, STAGE_NAMES, STAGE_CHUNKS, STAGES };

#define SLOTS_LISTINGS 32u
#define SLOTS_NAMES 32u
#define SLOTS_CHUNKS 16u
#define EARLY 128u
#define SLOTS (SLOTS_LISTINGS + SLOTS_NAMES + SLOTS_CHUNKS)

struct item {
	size_t path;  /* offset in text */
	size_t range; /* index of the first */
	uint8_t kind, ranges, part;
	uint32_t mtime_nsec;
	int64_t mtime_s;
	uint64_t size;
	uint64_t version, size_now; /* of a file once it is known */
};

struct slot {
	struct cop_waiter waiter;
	struct cop_list link; /* in the list of free or of completed slots */
	struct cop_prefetch *p;
	enum stage stage;
	struct item *item;
	uint64_t index;      /* of a chunk */
	bool entry;          /* it requests the single entry */
	bool piece;          /* it requests a piece of the manifest */
	struct cop_obj *obj; /* once completed: a reference; NULL if there was no answer */
	int rc;
	size_t bytes;
};

struct cop_prefetch {
	struct cop_prefetch_conf conf;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct cop_list completed; /* slots; under lock, like the next three */
	bool stopping;
	bool formed;                                    /* the tree is ready */
	enum { LOADING, RUNNING, DONE, STOPPED } state; /* written by the thread, under lock */
	const char *why;
	struct cop_list free[STAGES];
	struct slot slot[SLOTS];
	unsigned flying;
	bool over;   /* nothing more may be requested */
	bool chunks; /* formed, as the thread knows it: chunks may be requested */

	struct cop_manifest_reader reader;  /* continues from one piece to the next */
	struct cop_buf text, items, ranges; /* of the manifest */
	size_t n_items;
	/* Parts. Files that programs open before they are known are kept in early. */
	uint64_t part[COP_MANIFEST_PARTS]; /* hashes of first files; 0: fetched at once */
	_Atomic unsigned parts;            /* how many; set when all are known */
	_Atomic uint64_t begun;            /* by programs */
	uint64_t at_once;                  /* parts that wait for no program */
	uint64_t asked;                    /* of which the items are in todo */
	uint64_t early[EARLY];             /* under lock, like the next one */
	unsigned n_early;
	size_t *todo, n_todo; /* items to request, in order */
	size_t named;         /* files of which all chunks that the manifest names were requested */
	_Atomic uint64_t count, listings, files; /* for reports */
	size_t next_listing, next_name;          /* cursors: items */
	struct item **ready;                     /* files whose version is known, in that order */
	size_t n_ready, at_file; /* at_file: the file whose chunks are being requested */
	unsigned at_range;
	uint64_t at_chunk;
	bool rest; /* what the manifest names has been requested; what follows is the rest of those
		      files */
};

/* ---- load.c ---- */

/* Parses a piece of the manifest; false if memory is short or a limit is exceeded. */
bool cop_prefetch_parse_piece(struct cop_prefetch *p, const char *data, size_t len);
const char *cop_prefetch_path(const struct cop_prefetch *p, const struct item *i);
struct item *cop_prefetch_item(const struct cop_prefetch *p, size_t index);

/* ---- parts.c ---- */

/* The manifest is complete: finds where its parts begin. False: no memory. */
bool cop_prefetch_know_parts(struct cop_prefetch *p);
/* Whether a part has begun whose items are not in todo. */
bool cop_prefetch_has_begun(struct cop_prefetch *p);
/* Appends the items of parts that have begun to todo. */
void cop_prefetch_take_begun(struct cop_prefetch *p);
/* Writes the items of the next manifest: those of the old one, of which body is the text, by what
 * the recording has; hidden as in cop_prefetch_manifest_hide. */
int cop_prefetch_next_parts(const char *body, size_t len, struct cop_manifest_set *record,
	uint64_t begun, bool hidden, struct cop_buf *out, uint64_t *items);

/* ---- chunks.c: which chunk comes next ---- */

/* Called when a file's version is known: its chunks may be requested. */
void cop_prefetch_file_ready(struct cop_prefetch *p, struct item *i, const struct cop_attr *attr);
/* More files follow: their named chunks come before the rest of others. */
void cop_prefetch_more_files(struct cop_prefetch *p);
/* The next chunk to request; false if there is none now. */
bool cop_prefetch_next_chunk(struct cop_prefetch *p, struct cop_ask *ask, struct item **of);
/* This chunk of the file is here: reports those of its bytes that the manifest names. */
void cop_prefetch_have_chunk(struct cop_prefetch *p, const struct item *i, uint64_t index);

/* ---- manifest.c, for pack.c ---- */

/* The manifest of the next job, as it would be written now. 0 or -ENOMEM. */
int cop_prefetch_make_next(
	struct cop_prefetch_manifest *m, uint64_t begun, struct cop_buf *text, uint64_t *items);
const struct cop_prefetch_manifest_conf *cop_prefetch_manifest_conf(
	const struct cop_prefetch_manifest *m);
/* Where packs may be written, the best place first; "" if there is no such place. Makes the user's
 * cache directory. */
void cop_prefetch_pack_places(
	const struct cop_prefetch_manifest *m, char path[2][COP_PREFETCH_PATH]);
/* Where the pack that is used lies; "": none is. */
const char *cop_prefetch_pack_from(const struct cop_prefetch_manifest *m);
/* -errno of a pack as a sentence for the log. */
const char *cop_prefetch_pack_error(int rc);

#endif
