/* SPDX-License-Identifier: BSD-3-Clause */
/* Prefetch policy: decides when to fetch small files that no program has requested yet, because
 * programs requested files of the same kind in the same directory. It only counts and decides; it
 * touches no files, sends no requests, and reads no clock. The caller holds a lock for every call
 * except cop_bundle_kind.
 *
 * The rules come from recorded starts of Python with numpy, of Perl and of GCC, which read two or
 * more small files of a kind in each of 30 directories. Most of a package is used: where a
 * directory had at most 32 files of the kind, 67 percent of them were read (25 to 100). Larger
 * directories are collections (Python's own modules, encodings, C headers): where there were 44 or
 * more files, 12 percent were read (2 to 29), and the order of names does not predict which.
 * Therefore the second miss in a small directory fetches a few files, and later misses fetch more
 * as those are used. Once a kind has earned credit, the first miss fetches a whole small directory.
 * A collection is never fetched whole: only files that another file mentions are fetched from it
 * (mention.c), and only while the number of unused files stays close to the number of used ones.
 *
 * If a directory's listing has no attributes, a program's lookup can also fetch the file's first
 * bytes. This is tried with two files of each kind, and continues while at least half of these
 * files are read.
 *
 * Programs also list directories in pairs: a package and its __pycache__. A directory name that
 * recurs often, among few others, is such a companion. Its listing is requested along with its
 * presumed parent's, as long as at least half of these listings are used. The rule for mentioned
 * directories is the same as for mentioned files. */
#ifndef COP_TREE_GUESS_POLICY_PRIV_H
#define COP_TREE_GUESS_POLICY_PRIV_H

#include "base/base/base.h"
#include "tree/guess/guess.h"

/* Larger files are neither prefetched nor counted. */
#define COP_BUNDLE_FILE_BYTES COP_GUESS_FILE_BYTES
/* Limits per miss: bytes to fetch, and files of the kind in the directory. */
#define COP_BUNDLE_MOST_BYTES COP_MIB
#define COP_BUNDLE_MOST_FILES 40u
/* Larger listings are not searched for siblings. */
#define COP_BUNDLE_NAMES 1024u
/* Prefetching stops when the unused bytes exceed three sevenths of the used bytes by this constant,
 * so in the long run at most 30 percent of the prefetched bytes are wasted. Bytes that the program
 * has yet to reach also count as unused: with 4 MiB, an import of numpy sent 10 more messages (88
 * instead of 78) for the same bytes. */
#define COP_BUNDLE_WASTE (6 * COP_MIB)

#define COP_BUNDLE_PLACES 1024u
#define COP_BUNDLE_KINDS 64u

/* Number of directory names kept, and their maximum size including the NUL. */
#define COP_BUNDLE_BELOW 32u
#define COP_BUNDLE_BELOW_NAME 64u
/* Maximum number of other listings requested along with a listing. */
#define COP_BUNDLE_COMPANIONS 2u
#define COP_BUNDLE_EXPECTED 64u

/* A kind of file in a directory. If two share a slot, they evict each other, which costs a missed
 * bundle or a superfluous fetch. */
struct cop_bundle_place {
	uint64_t key;
	uint32_t missed, brought, used; /* number of files */
	uint32_t times;                 /* number of bundles fetched */
	bool counted;                   /* the number of files is known */
	bool collection;                /* too many files for a bundle */
};

/* Credit of a kind, across all directories. */
struct cop_bundle_credit {
	uint64_t kind;
	uint64_t brought, used; /* number of files */
};

/* A directory name that programs list. */
struct cop_bundle_below {
	char name[COP_BUNDLE_BELOW_NAME]; /* "": free */
	uint32_t listed;                  /* number of listed directories with this name */
	uint64_t since;                   /* cop_bundle.listed when the slot was filled */
	uint32_t brought, used;
};

/* Zero-initialised when empty. */
struct cop_bundle {
	struct cop_bundle_place place[COP_BUNDLE_PLACES];
	struct cop_bundle_credit credit[COP_BUNDLE_KINDS];
	struct cop_bundle_credit first[COP_BUNDLE_KINDS]; /* fetched with their entries */
	uint64_t brought_bytes, used_bytes;
	struct cop_bundle_below below[COP_BUNDLE_BELOW];
	uint64_t listed;                    /* number of all listed directories */
	uint64_t listings, used_listings;   /* listings prefetched as guesses */
	uint64_t mentioned, used_mentioned; /* listings prefetched because a file mentions them */
	uint64_t expected[COP_BUNDLE_EXPECTED]; /* hashes of the last prefetched paths; bit 1: a
						   file mentions it */
	unsigned expected_at;
};

/* The counters of a file. */
struct cop_bundle_id {
	uint64_t kind, place; /* kind 0: none; never prefetched */
};

/* Derived from the suffix after the last dot of the name; a dot that is the first or last byte does
 * not count. */
struct cop_bundle_id cop_bundle_id(const char *path);
/* The kind of a name without its directory; 0: none. */
uint64_t cop_bundle_kind(const char *name, size_t len);

/* A program missed this file. Returns whether siblings may be fetched, to the extent that this can
 * be decided without knowing their number. */
bool cop_bundle_missed(struct cop_bundle *b, struct cop_bundle_id id);
/* siblings: number of fetchable files of the kind in the directory, including this one. Returns how
 * many bytes may be fetched, and sets *files to how many files; 0: none. Always 0 if there are too
 * many siblings. */
size_t cop_bundle_allow(
	struct cop_bundle *b, struct cop_bundle_id id, unsigned siblings, unsigned *files);
/* Counts requested files and bytes. */
void cop_bundle_brought(
	struct cop_bundle *b, struct cop_bundle_id id, unsigned files, size_t bytes);
/* Whether cop_bundle_allow already knows the number of files of the kind in the directory. */
bool cop_bundle_is_counted(struct cop_bundle *b, struct cop_bundle_id id);
/* Whether a mentioned file may be fetched; if so, counts it as fetched. soon: a program has read
 * the referring file; part of the waste budget is reserved for such files. */
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
/* The same for a directory that no program has requested yet; updates no counter. */
unsigned cop_bundle_companions(const struct cop_bundle *b, const char *path, bool mentioned,
	char name[COP_BUNDLE_COMPANIONS][COP_BUNDLE_BELOW_NAME]);
/* Whether the listing of a mentioned directory may be fetched. */
bool cop_bundle_may_list_mentioned(const struct cop_bundle *b);
/* The listing of this directory was prefetched, either because a file mentions it or its parent
 * (mentioned) or along with its parent's listing. */
void cop_bundle_expect(struct cop_bundle *b, const char *path, bool mentioned);
/* Whether it was prefetched because of a mention and has not been used yet. */
bool cop_bundle_is_mentioned(const struct cop_bundle *b, const char *path);
/* A program needs the listing of this directory, which is cached or in flight. True if it was
 * prefetched and this is its first use. */
bool cop_bundle_met(struct cop_bundle *b, const char *path);

/* mention: searches the bytes of a file for names of files that a program needs next. It opens no
 * files and has neither state nor policy; its results are guesses. */

/* name is valid until fn returns. */
typedef void (*cop_mention_fn)(void *arg, const char *name, size_t len);

/* Calls fn for each module that a compiled Python module (a .pyc file of Python 3.8 to 3.15)
 * imports at module level, in instruction order: once for the dotted name in the import, and once
 * for that name joined with each imported name, which may also be a module. Relative names have no
 * leading dots. Imports in functions and lazy imports (PEP 810) are skipped. Names may repeat.
 *
 * Returns false if the bytes are not a compiled module, are truncated, or are nested too deeply.
 * The format is that of Python's marshal module (Python/marshal.c), the instructions are those of
 * Include/opcode_ids.h; neither is documented. The file's magic number identifies the version. */
bool cop_mention_python(const void *data, size_t len, cop_mention_fn fn, void *arg);
/* The magic number of a module compiled by an unknown Python 3 version; 0 for all other files. */
unsigned cop_mention_new_python(const void *data, size_t len);

/* A file's library names lie within this many first bytes, after its symbols. */
#define COP_MENTION_ELF_BYTES (128 * COP_KIB)
bool cop_mention_is_elf(const void *data, size_t len);
/* Calls fn for each shared library name in the first bytes of an ELF file: each string that
 * contains ".so" and consists only of bytes valid in a library name. These are the needed libraries
 * and the file's own name. The table of needed libraries is at the end of the file and is not read
 * (elf(5)). */
void cop_mention_elf(const void *data, size_t len, cop_mention_fn fn, void *arg);

#endif
