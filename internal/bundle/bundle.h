/* SPDX-License-Identifier: BSD-3-Clause */
/* bundle: when a node asks for small files that nobody has wanted yet, because files of the same
 * kind in the same directory were. It only counts and decides: no files, no requests, no clock. The
 * caller holds a lock around every call but cop_bundle_kind.
 *
 * Recorded starts of Python with numpy, of Perl and of GCC say what to go by. In 30 directories
 * they read two or more small files of a kind. Packages are used nearly whole: where there were at
 * most 32 of the kind, 67 percent of them were read (25 to 100). Larger directories are collections
 * (Python's own modules, encodings, C headers): where there were 44 or more, 12 percent were read
 * (2 to 29), and no order of their names says which. So of a small directory a few files are
 * brought when its second file is missed, and more while they are used. Once the kind has proved
 * itself, the next small directories are taken whole at the first miss. A collection never is.
 *
 * Programs also list directories in pairs: each package, and the __pycache__ in it. A name of
 * directories that comes again and again among few others is such a companion: it is asked for
 * together with the directory that it may be in, for as long as half of those asked for are used.
 */
#ifndef COP_BUNDLE_H
#define COP_BUNDLE_H

#include "base/base.h"

/* Larger files are never brought, nor counted. */
#define COP_BUNDLE_FILE_BYTES (256 * COP_KIB)
/* The most that one miss brings: bytes, and files of a directory that has at most this many of the
 * kind. */
#define COP_BUNDLE_MOST_BYTES COP_MIB
#define COP_BUNDLE_MOST_FILES 40u
/* Names in a listing beyond which nobody looks for siblings. */
#define COP_BUNDLE_NAMES 1024u
/* Bytes that were brought and not used, beyond three sevenths of those that were used: from there
 * on nothing more is brought. So at most 30 percent of what is brought is wasted in the long run.
 */
#define COP_BUNDLE_WASTE (2 * COP_MIB)

#define COP_BUNDLE_PLACES 1024u
#define COP_BUNDLE_KINDS 64u

/* Names of directories that are kept, and how long they may be, with the 0 at the end. */
#define COP_BUNDLE_BELOW 32u
#define COP_BUNDLE_BELOW_NAME 64u
/* One listing brings at most this many others. */
#define COP_BUNDLE_COMPANIONS 2u
#define COP_BUNDLE_EXPECTED 16u

/* A kind of file in a directory. Two that share a slot displace each other, which costs a bundle or
 * brings one too many. */
struct cop_bundle_place {
	uint64_t key;
	uint32_t missed, brought, used; /* files */
	uint32_t times;                 /* how often files were brought from it */
	bool collection;
};

/* A kind in all directories. */
struct cop_bundle_credit {
	uint64_t kind;
	uint64_t brought, used; /* files */
};

/* A name of directories that programs list. */
struct cop_bundle_below {
	char name[COP_BUNDLE_BELOW_NAME]; /* "": free */
	uint32_t listed;                  /* directories of this name, */
	uint64_t since;                   /* from the since-th directory on */
	uint32_t brought, used;
};

/* Zero-initialised is empty. */
struct cop_bundle {
	struct cop_bundle_place place[COP_BUNDLE_PLACES];
	struct cop_bundle_credit credit[COP_BUNDLE_KINDS];
	uint64_t brought_bytes, used_bytes;
	struct cop_bundle_below below[COP_BUNDLE_BELOW];
	uint64_t listed;                        /* directories in all */
	uint64_t listings, used_listings;       /* brought */
	uint64_t expected[COP_BUNDLE_EXPECTED]; /* paths of those brought last, hashed */
	unsigned expected_at;
};

/* What files are counted under. */
struct cop_bundle_id {
	uint64_t kind, place; /* kind 0: a name without one; nothing is brought for it */
};

/* From what follows the last dot of the name (which is neither its first nor its last byte). */
struct cop_bundle_id cop_bundle_id(const char *path);
/* The kind of a name without its directory; 0: it has none. */
uint64_t cop_bundle_kind(const char *name, size_t len);

/* A program missed such a file. Whether siblings may be brought now, as far as can be told without
 * knowing how many there are. */
bool cop_bundle_missed(struct cop_bundle *b, struct cop_bundle_id id);
/* siblings: how many files of the kind in the directory could be brought, this one included.
 * Returns how many bytes of them may be brought now, and sets *files to how many files; 0: none,
 * and never if there are too many. */
size_t cop_bundle_allow(
	struct cop_bundle *b, struct cop_bundle_id id, unsigned siblings, unsigned *files);
/* This much was asked for. */
void cop_bundle_brought(
	struct cop_bundle *b, struct cop_bundle_id id, unsigned files, size_t bytes);
/* A program has read a file that was brought, for the first time. */
void cop_bundle_used(struct cop_bundle *b, struct cop_bundle_id id, size_t bytes);

/* ---- listings ---- */

/* A program needs the listing of this directory, which is not here. Copies the names of directories
 * below it whose listings it probably needs next; returns how many. */
unsigned cop_bundle_listed(struct cop_bundle *b, const char *path,
	char name[COP_BUNDLE_COMPANIONS][COP_BUNDLE_BELOW_NAME]);
/* The listing of this directory was asked for along with that of the one above. */
void cop_bundle_expect(struct cop_bundle *b, const char *path);
/* A program needs the listing of this directory, and it is here or on its way. True if it was
 * brought and this is the first time. */
bool cop_bundle_met(struct cop_bundle *b, const char *path);

#endif
