/* SPDX-License-Identifier: BSD-3-Clause */
/* manifest: what a job needed of a tree, in the order in which it needed it first: directories,
 * names and byte ranges of files. The file is text and described in copper-formats(5). A manifest
 * is a hint: whoever uses it looks everything up anew, so a stale or hostile one costs work and
 * nothing else. Pure: no files, no clocks, no network; fuzzed. */
#ifndef COP_MANIFEST_H
#define COP_MANIFEST_H

#include "base/base.h"

#define COP_MANIFEST_VERSION                                                                       \
	2 /* what is written; 1 differs from it in the form of times, and is read */
#define COP_MANIFEST_RANGES_MAX 16
#define COP_MANIFEST_PATH_MAX 4095            /* bytes of a path */
#define COP_MANIFEST_LINE_MAX (12 * COP_KIB)  /* what is longer is passed over */
#define COP_MANIFEST_BYTES_MAX (32 * COP_MIB) /* of a whole manifest */
#define COP_MANIFEST_PIECE (256 * COP_KIB)    /* as it travels */

enum cop_manifest_kind {
	COP_MANIFEST_DIR,  /* its listing was needed */
	COP_MANIFEST_NAME, /* its attributes were needed */
	COP_MANIFEST_FILE, /* and bytes of it */
	COP_MANIFEST_KINDS
};

struct cop_manifest_item {
	enum cop_manifest_kind kind;
	const char *path; /* relative to the source, NUL-terminated; "" is the source */
	size_t len;
	uint64_t size;   /* files: when it was needed; a reader that finds another one, or another
			    mtime, knows that the file changed */
	int64_t mtime_s; /* seconds since the epoch, before it negative, */
	uint32_t mtime_nsec; /* and nanoseconds after them */
	unsigned ranges;
	struct cop_range range[COP_MANIFEST_RANGES_MAX]; /* rising, apart from each other */
};

/* Adds the bytes [start, end) to the item's ranges: merged where they touch; past the limit the
 * smallest gap is closed. */
void cop_manifest_range_add(struct cop_manifest_item *item, uint64_t start, uint64_t end);

/* Whether a path can stand in a manifest: relative, no empty part, no "." or "..", names and length
 * in bounds, no NUL. */
bool cop_manifest_path_ok(const char *path, size_t len);

/* ---- writing ---- */

/* The head; source is absolute. */
void cop_manifest_begin(struct cop_buf *out, const char *source);
void cop_manifest_add(struct cop_buf *out, const struct cop_manifest_item *item);
/* The last line, by which a reader knows that nothing is missing. */
void cop_manifest_end(struct cop_buf *out, uint64_t items);

/* ---- reading ---- */

/* Checks the head. source has COP_MANIFEST_PATH_MAX + 1 bytes; *body is where the items begin.
 * -EBADMSG with a sentence for what is no manifest, -EPROTO for one of a later version. */
int cop_manifest_head(
	const char *data, size_t len, char *source, size_t *body, struct cop_err *err);

/* Reads items out of the body or a piece of it. Zero-initialised plus data and len. */
struct cop_manifest_reader {
	const char *data;
	size_t len, at;
	uint64_t items, bad; /* lines taken; lines passed over because they are not valid */
	bool ended; /* the last line was seen, and its count is that of the items (where the whole
		       body was read) */
	char path[COP_MANIFEST_PATH_MAX + 1];
};
/* The next item: true, and item->path points into the reader; false at the end. */
bool cop_manifest_next(struct cop_manifest_reader *r, struct cop_manifest_item *item);

/* Cuts the body into pieces of whole lines, of at most COP_MANIFEST_PIECE bytes: returns the length
 * of the one that begins at `at`; 0 at the end. A line that is too long to be one is cut, and no
 * longer one. */
size_t cop_manifest_piece(const char *body, size_t len, size_t at);

/* ---- a set of items ----
 *
 * What one node needs while it runs, or the union over many. An item that comes again is merged:
 * the least order, all ranges, size and mtime of the later call. Any thread; a short lock. */

struct cop_manifest_set;

/* Bounded: what does not fit is counted. NULL without memory. */
struct cop_manifest_set *cop_manifest_set_new(uint64_t max_bytes);
void cop_manifest_set_free(struct cop_manifest_set *s);
/* order 0: after everything that came before. -ENOMEM if it does not fit, -EINVAL for a path that
 * cannot stand in a manifest. */
int cop_manifest_set_add(
	struct cop_manifest_set *s, const struct cop_manifest_item *item, uint64_t order);
/* Calls fn in order for every item, without the lock, until it returns other than 0, which is
 * returned; fn may change the item. -ENOMEM. Equal orders stand in order of path. */
int cop_manifest_set_each(struct cop_manifest_set *s,
	int (*fn)(void *arg, struct cop_manifest_item *item), void *arg);
size_t cop_manifest_set_count(struct cop_manifest_set *s);
/* A whole manifest of the set. -ENOMEM. */
int cop_manifest_set_write(struct cop_manifest_set *s, const char *source, struct cop_buf *out);

#endif
