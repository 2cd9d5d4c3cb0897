/* SPDX-License-Identifier: BSD-3-Clause */
/* Prefetch policy: decides when to fetch small files that no program has requested yet, because
 * programs requested files of the same kind in the same directory. It only counts and decides: no
 * files, no requests, no clock. The caller holds a lock for every call except cop_bundle_kind.
 *
 * The rules are derived from recorded starts of Python with numpy, of Perl and of GCC, which read
 * two or more small files of a kind in 30 directories. Packages are used nearly whole: in
 * directories with at most 32 files of the kind, 67 percent were read (25 to 100). Larger
 * directories are collections (Python's own modules, encodings, C headers): in those with 44 or
 * more, 12 percent were read (2 to 29), and the order of names does not predict which. Therefore
 * the second miss in a small directory fetches a few files, and more as they are used. Once a kind
 * has reached its credit, the first miss fetches a whole small directory. A collection is never
 * fetched whole; only files mentioned in another file are fetched from it (mention.c), and only
 * while the number of unused ones stays close to that of the used ones.
 *
 * In a directory with a listing without attributes, a program's lookup can fetch the first bytes.
 * This is tried with two files of each kind, and continues if at least half of them were read.
 *
 * Programs also list directories in pairs: a package and its __pycache__. A directory name that
 * recurs often among few others is such a companion. Its listing is requested together with that of
 * its presumed parent while at least half of these listings are used. Mentioned directories are
 * listed under the same rule as mentioned files. */
#ifndef COP_TREE_GUESS_POLICY_PRIV_H
#define COP_TREE_GUESS_POLICY_PRIV_H

#include "base/base/base.h"
#include "tree/guess/guess.h"

/* Larger files are neither prefetched nor counted. */
#define COP_BUNDLE_FILE_BYTES COP_GUESS_FILE_BYTES
/* Limits of one miss: bytes, and the number of files of the kind in the directory. */
#define COP_BUNDLE_MOST_BYTES COP_MIB
#define COP_BUNDLE_MOST_FILES 40u
/* Larger listings are not searched for siblings. */
#define COP_BUNDLE_NAMES 1024u
/* Prefetching stops when the unused bytes exceed three sevenths of the used bytes by this constant.
 * In the long run at most 30 percent of the prefetched bytes are wasted. Bytes that the program has
 * not reached yet also count as unused: with 4 MiB an import of numpy sent 10 more messages (88
 * instead of 78), for the same bytes. */
#define COP_BUNDLE_WASTE (6 * COP_MIB)

#define COP_BUNDLE_PLACES 1024u
#define COP_BUNDLE_KINDS 64u

/* Number of directory names kept, and their maximum size including the NUL. */
#define COP_BUNDLE_BELOW 32u
#define COP_BUNDLE_BELOW_NAME 64u
/* Maximum number of other listings requested with one. */
#define COP_BUNDLE_COMPANIONS 2u
#define COP_BUNDLE_EXPECTED 64u

/* A kind of file in a directory. Two that share a slot evict each other, which costs one bundle or
 * one superfluous fetch. */
struct cop_bundle_place {
	uint64_t key;
	uint32_t missed, brought, used; /* number of files */
	uint32_t times;                 /* number of bundles fetched */
	bool counted;                   /* the number of files is known */
	bool collection;                /* too many files for a bundle */
};

/* Credit of a kind, over all directories. */
struct cop_bundle_credit {
	uint64_t kind;
	uint64_t brought, used; /* number of files */
};

/* A directory name that programs list. */
struct cop_bundle_below {
	char name[COP_BUNDLE_BELOW_NAME]; /* "": free */
	uint32_t listed;                  /* listed directories of this name */
	uint64_t since; /* value of listed in cop_bundle when the slot was filled */
	uint32_t brought, used;
};

/* Zero-initialised when empty. */
struct cop_bundle {
	struct cop_bundle_place place[COP_BUNDLE_PLACES];
	struct cop_bundle_credit credit[COP_BUNDLE_KINDS];
	struct cop_bundle_credit first[COP_BUNDLE_KINDS]; /* fetched with their entries */
	uint64_t brought_bytes, used_bytes;
	struct cop_bundle_below below[COP_BUNDLE_BELOW];
	uint64_t listed;                    /* all listed directories */
	uint64_t listings, used_listings;   /* listings prefetched as guesses */
	uint64_t mentioned, used_mentioned; /* listings prefetched because a file mentions them */
	uint64_t expected[COP_BUNDLE_EXPECTED]; /* hashes of the last prefetched paths; bit 1:
						   mentioned in a file */
	unsigned expected_at;
};

/* The counters of a file. */
struct cop_bundle_id {
	uint64_t kind, place; /* kind 0: no kind; never prefetched */
};

/* Derived from the suffix after the last dot of the name, which is neither its first nor its last
 * byte. */
struct cop_bundle_id cop_bundle_id(const char *path);
/* The kind of a name without its directory; 0: none. */
uint64_t cop_bundle_kind(const char *name, size_t len);

/* A program missed this file. Returns whether siblings may be fetched, as far as can be decided
 * without their number. */
bool cop_bundle_missed(struct cop_bundle *b, struct cop_bundle_id id);
/* siblings: number of files of the kind in the directory that could be fetched, including this one.
 * Returns the allowed number of bytes, and sets *files to the allowed number of files; 0: none.
 * Always 0 with too many siblings. */
size_t cop_bundle_allow(
	struct cop_bundle *b, struct cop_bundle_id id, unsigned siblings, unsigned *files);
/* Counts requested files and bytes. */
void cop_bundle_brought(
	struct cop_bundle *b, struct cop_bundle_id id, unsigned files, size_t bytes);
/* Whether cop_bundle_allow already knows the number of files of the kind in the directory. */
bool cop_bundle_is_counted(struct cop_bundle *b, struct cop_bundle_id id);
/* Whether a mentioned file may be fetched; if so, counts it as fetched. soon: a program has read
 * the referring file; part of the waste budget is reserved for these. */
bool cop_bundle_mentioned(struct cop_bundle *b, struct cop_bundle_id id, size_t bytes, bool soon);
/* A program has read a prefetched file for the first time. */
void cop_bundle_used(struct cop_bundle *b, struct cop_bundle_id id, size_t bytes);

/* ---- first bytes, with an entry ---- */

/* Whether a program that looks up a name of this kind will probably read the file. */
bool cop_bundle_may_ask_first(struct cop_bundle *b, uint64_t kind);
/* Whether the bytes of another file of unknown size may be fetched. */
bool cop_bundle_may_come(const struct cop_bundle *b);
/* A file's bytes arrived with its entry. kind 0: the entry was not requested by a program. */
void cop_bundle_came_first(struct cop_bundle *b, uint64_t kind, size_t bytes);
/* A program has read, for the first time, a file that arrived with an entry requested by a program.
 * */
void cop_bundle_used_first(struct cop_bundle *b, uint64_t kind, size_t bytes);

/* ---- listings ---- */

/* A program needs the listing of this directory, which is not cached. Copies the names of
 * subdirectories whose listings are probably needed next; returns their number. */
unsigned cop_bundle_listed(struct cop_bundle *b, const char *path,
	char name[COP_BUNDLE_COMPANIONS][COP_BUNDLE_BELOW_NAME]);
/* The same for a directory that no program needs yet; counts nothing. */
unsigned cop_bundle_companions(const struct cop_bundle *b, const char *path, bool mentioned,
	char name[COP_BUNDLE_COMPANIONS][COP_BUNDLE_BELOW_NAME]);
/* Whether the listing of a mentioned directory may be fetched. */
bool cop_bundle_may_list_mentioned(const struct cop_bundle *b);
/* The listing of this directory was prefetched: because a file mentions it or its parent, or
 * together with its parent's listing. */
void cop_bundle_expect(struct cop_bundle *b, const char *path, bool mentioned);
/* Whether it was prefetched as mentioned and is not used yet. */
bool cop_bundle_is_mentioned(const struct cop_bundle *b, const char *path);
/* A program needs the listing of this directory, which is cached or in flight. True if it was
 * prefetched and this is its first use. */
bool cop_bundle_met(struct cop_bundle *b, const char *path);

/* mention: finds names of files that a program needs next in the bytes of a file. It has no files,
 * no state and no policy; its results are guesses. */

/* name is valid until fn returns. */
typedef void (*cop_mention_fn)(void *arg, const char *name, size_t len);

/* Calls fn for each module that a compiled Python module (a .pyc file of Python 3.8 to 3.15)
 * imports at module level, in instruction order: for the dotted name in the import, and for that
 * name joined with each imported name, which may also be a module. Relative names have no leading
 * dots. Imports in functions and lazy imports (PEP 810) are skipped. Names may repeat.
 *
 * Returns false if the bytes are not such a file, are truncated, or are nested too deeply. The
 * format is that of Python's marshal module (Python/marshal.c), the instructions are those of
 * Include/opcode_ids.h; neither is documented. The file's magic number identifies the version. */
bool cop_mention_python(const void *data, size_t len, cop_mention_fn fn, void *arg);
/* The magic number of a compiled module of an unknown Python 3 version; 0 for all other files. */
unsigned cop_mention_new_python(const void *data, size_t len);

/* Library names are located within the first bytes of a file, after its symbols. */
#define COP_MENTION_ELF_BYTES (128 * COP_KIB)
bool cop_mention_is_elf(const void *data, size_t len);
/* Calls fn for each shared library name in the first bytes of an ELF file: each string that
 * contains ".so" and only bytes valid in such a name. These are the needed libraries and the file's
 * own name. The table of needed libraries is at the end of the file and is not read (elf(5)). */
void cop_mention_elf(const void *data, size_t len, cop_mention_fn fn, void *arg);

#endif
