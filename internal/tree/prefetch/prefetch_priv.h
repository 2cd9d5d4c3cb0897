/* SPDX-License-Identifier: BSD-3-Clause */
/* One thread owns everything except the fields under `lock`: a completing flight only appends its
 * slot to the list and wakes the thread. So no lock order is needed, and a callback takes only a
 * few instructions on the thread that runs it.
 *
 * Three stages run concurrently, each with a window of slots: listings in manifest order; names,
 * which wait for their directory's listing and supply the versions of files; and chunks of files
 * whose version is known. */
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
	size_t range; /* index of its first range */
	uint8_t kind, ranges, part;
	uint32_t mtime_nsec;
	int64_t mtime_s;
	uint64_t size;
	uint64_t version, size_now; /* of a file, once known */
};

struct slot {
	struct cop_waiter waiter;
	struct cop_list link; /* in the list of free or completed slots */
	struct cop_prefetch *p;
	enum stage stage;
	struct item *item;
	uint64_t index;      /* of a chunk */
	bool entry;          /* requests a single entry */
	bool piece;          /* requests a piece of the manifest */
	struct cop_obj *obj; /* after completion: a reference, or NULL if there was no answer */
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
	bool over;   /* stop requesting */
	bool chunks; /* the thread's copy of formed; chunks may be requested */

	struct cop_manifest_reader reader;  /* keeps its state between pieces */
	struct cop_buf text, items, ranges; /* of the manifest */
	size_t n_items;
	/* Parts. early holds the files that programs open before the parts are known. */
	uint64_t part[COP_MANIFEST_PARTS]; /* hashes of first files; 0: fetched at once */
	_Atomic unsigned parts;            /* number of parts; set once all are known */
	_Atomic uint64_t begun;            /* bit mask; set by programs */
	uint64_t at_once; /* bit mask of the parts that are fetched without waiting for a program */
	uint64_t asked;   /* bit mask of the parts whose items are in todo */
	uint64_t early[EARLY]; /* under lock, like n_early */
	unsigned n_early;
	size_t *todo, n_todo; /* items to request, in order */
	size_t named;         /* files whose chunks in the manifest have all been requested */
	_Atomic uint64_t count, listings, files; /* for reports */
	size_t next_listing, next_name;          /* cursors: items */
	struct item **ready;     /* files with a known version, in order of arrival */
	size_t n_ready, at_file; /* at_file: the file whose chunks are being requested */
	unsigned at_range;
	uint64_t at_chunk;
	bool rest; /* all chunks in the manifest have been requested; the rest of the files follows
		    */
};

/* ---- load.c ---- */

/* Parses a piece of the manifest. False: out of memory, or a limit is exceeded. */
bool cop_prefetch_parse_piece(struct cop_prefetch *p, const char *data, size_t len);
const char *cop_prefetch_path(const struct cop_prefetch *p, const struct item *i);
struct item *cop_prefetch_item(const struct cop_prefetch *p, size_t index);

/* ---- parts.c ---- */

/* The manifest is complete: finds where its parts start. False: out of memory. */
bool cop_prefetch_know_parts(struct cop_prefetch *p);
/* Whether a part has begun whose items are not yet in todo. */
bool cop_prefetch_has_begun(struct cop_prefetch *p);
/* Appends the items of begun parts to todo. */
void cop_prefetch_take_begun(struct cop_prefetch *p);
/* Writes the items of the next manifest: those of the old one (its text is body), updated from the
 * recording. hidden: as in cop_prefetch_manifest_hide. */
int cop_prefetch_next_parts(const char *body, size_t len, struct cop_manifest_set *record,
	uint64_t begun, bool hidden, struct cop_buf *out, uint64_t *items);

/* ---- chunks.c: selects the next chunk ---- */

/* A file's version is known: its chunks may be requested. */
void cop_prefetch_file_ready(struct cop_prefetch *p, struct item *i, const struct cop_attr *attr);
/* More files follow: their chunks in the manifest come before the rest of other files. */
void cop_prefetch_more_files(struct cop_prefetch *p);
/* The next chunk to request; false if none is ready. */
bool cop_prefetch_next_chunk(struct cop_prefetch *p, struct cop_ask *ask, struct item **of);
/* A chunk of the file is cached: reports the part of it that is in the manifest. */
void cop_prefetch_have_chunk(struct cop_prefetch *p, const struct item *i, uint64_t index);

/* ---- manifest.c, for pack.c ---- */

/* The next job's manifest, as recorded so far. 0 or -ENOMEM. */
int cop_prefetch_make_next(
	struct cop_prefetch_manifest *m, uint64_t begun, struct cop_buf *text, uint64_t *items);
const struct cop_prefetch_manifest_conf *cop_prefetch_manifest_conf(
	const struct cop_prefetch_manifest *m);
/* Directories for packs, the preferred one first; "": none. Creates the user's cache directory. */
void cop_prefetch_pack_places(
	const struct cop_prefetch_manifest *m, char path[2][COP_PREFETCH_PATH]);
/* Path of the pack in use; "": none. */
const char *cop_prefetch_pack_from(const struct cop_prefetch_manifest *m);
/* The -errno of a pack as a sentence for the log. */
const char *cop_prefetch_pack_error(int rc);

#endif
