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
#define SLOTS (SLOTS_LISTINGS + SLOTS_NAMES + SLOTS_CHUNKS)

struct item {
	size_t path;  /* offset in text */
	size_t range; /* index of the first */
	uint8_t kind, ranges;
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
	struct cop_list completed; /* slots; under lock, like the next two */
	bool stopping;
	enum { LOADING, RUNNING, DONE, STOPPED } state; /* written by the thread, under lock */
	const char *why;
	struct cop_list free[STAGES];
	struct slot slot[SLOTS];
	unsigned flying;
	bool over; /* nothing more may be requested */

	struct cop_buf text, items, ranges; /* of the manifest */
	size_t n_items;
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

/* ---- chunks.c: which chunk comes next ---- */

/* Called when a file's version is known: its chunks may be requested. */
void cop_prefetch_file_ready(struct cop_prefetch *p, struct item *i, const struct cop_attr *attr);
/* The next chunk to request; false if there is none now. */
bool cop_prefetch_next_chunk(struct cop_prefetch *p, struct cop_ask *ask, struct item **of);
/* This chunk of the file is here: reports those of its bytes that the manifest names. */
void cop_prefetch_have_chunk(struct cop_prefetch *p, const struct item *i, uint64_t index);

#endif
