/* SPDX-License-Identifier: BSD-3-Clause */
/* manifest: the directories, names and byte ranges of files that a job needed of a tree, in the
 * order of first need. The file is text; copper-formats(5) describes it. A manifest is a hint: its
 * user looks everything up again, so a stale or hostile manifest costs only work. Pure: no files,
 * no clocks, no network; fuzzed. */
#ifndef COP_STORAGE_MANIFEST_H
#define COP_STORAGE_MANIFEST_H

#include "base/base/base.h"

#define COP_MANIFEST_VERSION                                                                       \
	2 /* what is written; 1 differs from it in the form of times, and is read */
#define COP_MANIFEST_RANGES_MAX 64
#define COP_MANIFEST_PATH_MAX 4095            /* bytes of a path */
#define COP_MANIFEST_LINE_MAX (16 * COP_KIB)  /* longer lines are skipped */
#define COP_MANIFEST_BYTES_MAX (32 * COP_MIB) /* of a whole manifest */
#define COP_MANIFEST_PIECE (256 * COP_KIB)    /* as it is sent */
/* An item that so many jobs in a row did not need leaves the manifest. */
#define COP_MANIFEST_UNUSED_JOBS 3u
/* A manifest has at most so many parts, of which each belongs to a program; a part leaves it when
 * its program has not begun in so many jobs in a row. */
#define COP_MANIFEST_PARTS 64u
#define COP_MANIFEST_IDLE_JOBS 32u

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
	uint64_t size;   /* files: the size when it was needed; a reader that finds another size or
			    mtime knows that the file changed */
	int64_t mtime_s; /* seconds since the epoch, before it negative, */
	uint32_t mtime_nsec; /* and nanoseconds after them */
	unsigned unused;     /* how many jobs in a row, up to the last one, did not need it */
	unsigned part;       /* from 0; only readers set it */
	unsigned ranges;
	struct cop_range range[COP_MANIFEST_RANGES_MAX]; /* ascending, not touching */
};

/* Adds the bytes [start, end) to the item's ranges: merged where they touch; past the limit the
 * smallest gap is closed. */
void cop_manifest_range_add(struct cop_manifest_item *item, uint64_t start, uint64_t end);

/* Whether a path is valid in a manifest: relative, no empty part, no "." or "..", names and length
 * in bounds, no NUL. */
bool cop_manifest_path_ok(const char *path, size_t len);

/* ---- writing ---- */

/* The head; source is absolute. */
void cop_manifest_begin(struct cop_buf *out, const char *source);
void cop_manifest_add(struct cop_buf *out, const struct cop_manifest_item *item);
/* Begins a part, after items of which the text says `unused`: the items that follow are needed by
 * the program whose first file is this one, and that did not begin in the last `idle` jobs. A
 * manifest without such a line is one part. */
void cop_manifest_part(
	struct cop_buf *out, unsigned *unused, unsigned idle, const char *path, size_t len);
/* The last line, by which a reader knows that nothing is missing. */
void cop_manifest_end(struct cop_buf *out, uint64_t items);

/* ---- reading ---- */

/* Checks the head. source has COP_MANIFEST_PATH_MAX + 1 bytes; *body is where the items begin.
 * -EBADMSG with a sentence if it is not a manifest, -EPROTO for a later version. */
int cop_manifest_head(
	const char *data, size_t len, char *source, size_t *body, struct cop_err *err);

/* Reads items from the body or a piece of it. Zero-initialise it and set data and len. */
struct cop_manifest_reader {
	const char *data;
	size_t len, at;
	uint64_t items, bad; /* lines taken; lines skipped because they are not valid */
	bool ended; /* the last line was read, and its count matches the items (if the whole body
		       was read) */
	unsigned unused; /* of the items that follow */
	unsigned parts;  /* how many began so far; lines past the limit continue the last one */
	unsigned idle;   /* of the last one */
	char part_path[COP_MANIFEST_PATH_MAX + 1]; /* its first file */
	char path[COP_MANIFEST_PATH_MAX + 1];
};
/* The next item: true, and item->path points into the reader; false at the end. */
bool cop_manifest_next(struct cop_manifest_reader *r, struct cop_manifest_item *item);

/* Splits the body into pieces of whole lines, of at most COP_MANIFEST_PIECE bytes: returns the
 * length of the piece that begins at `at`; 0 at the end. An overlong line is split and thereby
 * becomes invalid. */
size_t cop_manifest_piece(const char *body, size_t len, size_t at);

/* ---- a set of items ----
 *
 * What one node needs while it runs, or the union over many nodes. A repeated item is merged: the
 * lowest order, all ranges, size and mtime of the later call. Any thread; a short lock. */

struct cop_manifest_set;

/* Bounded: items that do not fit are counted. NULL if out of memory. */
struct cop_manifest_set *cop_manifest_set_new(uint64_t max_bytes);
void cop_manifest_set_free(struct cop_manifest_set *s);
/* order 0: after all earlier items. -ENOMEM if it does not fit, -EINVAL for a path that is not
 * valid in a manifest. */
int cop_manifest_set_add(
	struct cop_manifest_set *s, const struct cop_manifest_item *item, uint64_t order);
/* Adds an item that an earlier job needed and the last `unused` jobs did not, after all items that
 * were needed. An existing item stays as it is. -ENOMEM, -EINVAL as above. */
int cop_manifest_set_keep(
	struct cop_manifest_set *s, const struct cop_manifest_item *item, unsigned unused);
/* Calls fn in order for every item, without the lock, until it returns something other than 0,
 * which is returned; fn may change the item. -ENOMEM. Items of equal order are in order of path. */
int cop_manifest_set_each(struct cop_manifest_set *s,
	int (*fn)(void *arg, struct cop_manifest_item *item), void *arg);
size_t cop_manifest_set_count(struct cop_manifest_set *s);
/* Whether it has an item of this kind and path; *found (may be NULL) is that item, valid while the
 * set lives. */
bool cop_manifest_set_find(struct cop_manifest_set *s, const struct cop_manifest_item *item,
	struct cop_manifest_item *found);
/* Appends the items without head and end, and adds their number. *unused is what the text says of
 * the last item before them, and becomes that of the last of these; at first 0. -ENOMEM. */
int cop_manifest_set_write(
	struct cop_manifest_set *s, struct cop_buf *out, uint64_t *items, unsigned *unused);

#endif
