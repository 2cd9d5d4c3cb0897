/* SPDX-License-Identifier: BSD-3-Clause */
/* manifest: the directories, names and byte ranges of files that a job needed from a tree, in order
 * of first use. The format is text, see copper-formats(5). A manifest is only a hint: its user
 * looks everything up again, so a stale or hostile manifest costs work but does no harm. Pure: no
 * files, no clocks, no network. Fuzzed. */
#ifndef COP_STORAGE_MANIFEST_H
#define COP_STORAGE_MANIFEST_H

#include "base/base/base.h"

#define COP_MANIFEST_VERSION                                                                       \
	2 /* the version written; version 1 differs in its time format and can be read */
#define COP_MANIFEST_RANGES_MAX 64
#define COP_MANIFEST_PATH_MAX 4095            /* maximum length of a path in bytes */
#define COP_MANIFEST_LINE_MAX (16 * COP_KIB)  /* longer lines are skipped */
#define COP_MANIFEST_BYTES_MAX (32 * COP_MIB) /* maximum size of a manifest */
#define COP_MANIFEST_PIECE (256 * COP_KIB)    /* maximum size of a piece in transit */
/* An item is removed after this many consecutive jobs that did not need it. */
#define COP_MANIFEST_UNUSED_JOBS 3u
/* Maximum number of parts, each for one program. A part is removed after this many consecutive jobs
 * without its program. */
#define COP_MANIFEST_PARTS 64u
#define COP_MANIFEST_IDLE_JOBS 32u

enum cop_manifest_kind {
	COP_MANIFEST_DIR,  /* its listing was needed */
	COP_MANIFEST_NAME, /* its attributes were needed */
	COP_MANIFEST_FILE, /* its attributes and bytes were needed */
	COP_MANIFEST_KINDS
};

struct cop_manifest_item {
	enum cop_manifest_kind kind;
	const char *path; /* relative to the source, NUL-terminated; "" is the source */
	size_t len;
	uint64_t size;   /* files: the size at that time; if size or mtime now differ, the file has
			    changed */
	int64_t mtime_s; /* seconds since the epoch; may be negative */
	uint32_t mtime_nsec; /* nanoseconds to add */
	unsigned unused;     /* number of the most recent consecutive jobs that did not need it */
	unsigned part;       /* index of its part; set only by readers */
	unsigned ranges;
	struct cop_range
		range[COP_MANIFEST_RANGES_MAX]; /* ascending and disjoint, with gaps between them */
};

/* Adds the bytes [start, end) to the item's ranges. Merges adjacent ranges; if there are too many,
 * closes the smallest gap. */
void cop_manifest_range_add(struct cop_manifest_item *item, uint64_t start, uint64_t end);

/* Whether a manifest may contain this path: it is relative, has no empty component, no "." or ".."
 * and no NUL, and its names and its length are within the limits. */
bool cop_manifest_path_ok(const char *path, size_t len);

/* ---- writing ---- */

/* Writes the header; source is absolute. */
void cop_manifest_begin(struct cop_buf *out, const char *source);
void cop_manifest_add(struct cop_buf *out, const struct cop_manifest_item *item);
/* Begins a part. The following items are needed by the program whose first file is path, which did
 * not run in the last `idle` jobs. *unused is the `unused` value in effect before this line. A
 * manifest without such a line is a single part. */
void cop_manifest_part(
	struct cop_buf *out, unsigned *unused, unsigned idle, const char *path, size_t len);
/* Writes the last line, which proves to a reader that the manifest is complete. */
void cop_manifest_end(struct cop_buf *out, uint64_t items);

/* ---- reading ---- */

/* Parses the header. source has room for COP_MANIFEST_PATH_MAX + 1 bytes; *body is set to the
 * offset of the items. -EBADMSG with a message if it is not a manifest, -EPROTO if it is from a
 * later version. */
int cop_manifest_head(
	const char *data, size_t len, char *source, size_t *body, struct cop_err *err);

/* Reads items from the body or a piece of it. Zero-initialise it and set data and len. */
struct cop_manifest_reader {
	const char *data;
	size_t len, at;
	uint64_t items, bad; /* lines parsed; invalid lines skipped */
	bool ended; /* the last line was read and, if the whole body was read, its count matches the
		       items */
	unsigned unused; /* value for the following items */
	unsigned parts;  /* number of parts begun so far; beyond the limit, items belong to the last
			    part */
	unsigned idle;   /* value for the last part */
	char part_path[COP_MANIFEST_PATH_MAX + 1]; /* first file of the last part */
	char path[COP_MANIFEST_PATH_MAX + 1];
};
/* Reads the next item. Returns true with item->path pointing into the reader, or false at the
 * end. */
bool cop_manifest_next(struct cop_manifest_reader *r, struct cop_manifest_item *item);

/* Splits the body into pieces of whole lines, at most COP_MANIFEST_PIECE bytes each. Returns the
 * length of the piece at offset `at`, or 0 at the end. A line that is too long is split, which
 * makes it invalid. */
size_t cop_manifest_piece(const char *body, size_t len, size_t at);

/* ---- a set of items ----
 *
 * The objects that one node needs while it runs, or the union over many nodes. If an item is added
 * again, the two are merged: the lowest order, all ranges, and the size and mtime of the later
 * call. Safe from any thread; the lock is held only briefly. */

struct cop_manifest_set;

/* Its memory is bounded: items that do not fit are only counted. Returns NULL if out of memory. */
struct cop_manifest_set *cop_manifest_set_new(uint64_t max_bytes);
void cop_manifest_set_free(struct cop_manifest_set *s);
/* order 0: after all items added so far. -ENOMEM if it does not fit, -EINVAL for an invalid
 * path. */
int cop_manifest_set_add(
	struct cop_manifest_set *s, const struct cop_manifest_item *item, uint64_t order);
/* Adds an item that an earlier job needed but the last `unused` jobs did not; it comes after all
 * needed items. Leaves an existing item unchanged. -ENOMEM and -EINVAL as above. */
int cop_manifest_set_keep(
	struct cop_manifest_set *s, const struct cop_manifest_item *item, unsigned unused);
/* Calls fn for every item in order, without holding the lock, until fn returns non-zero, and then
 * returns that value. fn may change the item. Items of equal order are sorted by path. -ENOMEM. */
int cop_manifest_set_each(struct cop_manifest_set *s,
	int (*fn)(void *arg, struct cop_manifest_item *item), void *arg);
size_t cop_manifest_set_count(struct cop_manifest_set *s);
/* Whether the set contains an item of this kind and path. *found (found may be NULL) is set to that
 * item, which is valid for the lifetime of the set. */
bool cop_manifest_set_find(struct cop_manifest_set *s, const struct cop_manifest_item *item,
	struct cop_manifest_item *found);
/* Appends the items without the header and the last line, and adds their number to *items. *unused
 * is the `unused` value in effect before these items, initially 0, and is set to that of the last
 * item. Returns 0 or -ENOMEM. */
int cop_manifest_set_write(
	struct cop_manifest_set *s, struct cop_buf *out, uint64_t *items, unsigned *unused);

#endif
