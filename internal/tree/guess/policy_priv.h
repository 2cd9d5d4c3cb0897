/* SPDX-License-Identifier: BSD-3-Clause */
/* The policy of guessing: decides when a node asks for small files that nobody has wanted yet,
 * because programs wanted files of the same kind in the same directory. It only counts and decides:
 * it has no files, no requests and no clock. The caller holds a lock around every call except
 * cop_bundle_kind.
 *
 * The rules come from recorded starts of Python with numpy, of Perl and of GCC. In 30 directories
 * these read two or more small files of a kind. Packages are used nearly whole: where there were at
 * most 32 of the kind, 67 percent of them were read (25 to 100). Larger directories are collections
 * (Python's own modules, encodings, C headers): where there were 44 or more, 12 percent were read
 * (2 to 29), and no order of their names says which. So in a small directory a few files are
 * fetched when its second file is missed, and more while they are used. Once the kind has proved
 * itself, the next small directories are fetched whole at the first miss. A collection never is.
 * But files are fetched that another file mentions (mention.c), from a collection as long as not
 * many more of them go unused than are used.
 *
 * Where a listing has no attributes, a program's lookup can bring the bytes along. It does so for
 * two files of each kind, and from then on if at least half of those that came were read.
 *
 * Programs also list directories in pairs: each package, and the __pycache__ in it. A directory
 * name that recurs often among few others is such a companion. Its listing is requested together
 * with that of the directory that it may be in, as long as half of the listings requested this way
 * are used. Directories that a file mentions are listed under the same rule as files. */
#ifndef COP_TREE_GUESS_POLICY_PRIV_H
#define COP_TREE_GUESS_POLICY_PRIV_H

#include "base/base/base.h"
#include "tree/guess/guess.h"

/* Larger files are neither fetched nor counted. */
#define COP_BUNDLE_FILE_BYTES COP_GUESS_FILE_BYTES
/* The most that one miss fetches: bytes, and files of a directory that has at most this many of the
 * kind. */
#define COP_BUNDLE_MOST_BYTES COP_MIB
#define COP_BUNDLE_MOST_FILES 40u
/* If a listing has more names than this, nobody looks for siblings in it. */
#define COP_BUNDLE_NAMES 1024u
/* Bytes that were fetched and not used, beyond three sevenths of those that were used: from there
 * on nothing more is fetched. So at most 30 percent of what is fetched is wasted in the long
 * run. What the program has not come to yet counts as well: with 4 MiB an import of numpy sent 10
 * messages more (88 for 78), for the same bytes. */
#define COP_BUNDLE_WASTE (6 * COP_MIB)

#define COP_BUNDLE_PLACES 1024u
#define COP_BUNDLE_KINDS 64u

/* How many names of directories are kept, and how long they may be, including the NUL. */
#define COP_BUNDLE_BELOW 32u
#define COP_BUNDLE_BELOW_NAME 64u
/* One listing brings at most this many others. */
#define COP_BUNDLE_COMPANIONS 2u
#define COP_BUNDLE_EXPECTED 64u

/* A kind of file in a directory. Two of them that share a slot displace each other, which costs a
 * bundle or fetches one too many. */
struct cop_bundle_place {
	uint64_t key;
	uint32_t missed, brought, used; /* files */
	uint32_t times;                 /* how many times files were brought from it */
	bool counted;                   /* how many files there are has been told: */
	bool collection;                /* too many */
};

/* A kind, in all directories. */
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

/* Zero-initialised, it is empty. */
struct cop_bundle {
	struct cop_bundle_place place[COP_BUNDLE_PLACES];
	struct cop_bundle_credit credit[COP_BUNDLE_KINDS];
	struct cop_bundle_credit first[COP_BUNDLE_KINDS]; /* that came with their entries */
	uint64_t brought_bytes, used_bytes;
	struct cop_bundle_below below[COP_BUNDLE_BELOW];
	uint64_t listed;                        /* directories in all */
	uint64_t listings, used_listings;       /* brought as guesses, */
	uint64_t mentioned, used_mentioned;     /* and because a file mentions them */
	uint64_t expected[COP_BUNDLE_EXPECTED]; /* paths of those brought last, hashed; bit 1: a
						   file mentions it */
	unsigned expected_at;
};

/* What files are counted under. */
struct cop_bundle_id {
	uint64_t kind, place; /* kind 0: a name without one; nothing is brought for it */
};

/* Derived from what follows the last dot of the name; that dot is neither its first nor its last
 * byte. */
struct cop_bundle_id cop_bundle_id(const char *path);
/* The kind of a name without its directory; 0 if it has none. */
uint64_t cop_bundle_kind(const char *name, size_t len);

/* A program missed this file. Returns whether siblings may be brought now, as far as can be told
 * without knowing how many there are. */
bool cop_bundle_missed(struct cop_bundle *b, struct cop_bundle_id id);
/* siblings: how many files of the kind in the directory could be brought, including this one.
 * Returns how many bytes of them may be brought now, and sets *files to the number of files; 0:
 * none. It is always 0 if there are too many siblings. */
size_t cop_bundle_allow(
	struct cop_bundle *b, struct cop_bundle_id id, unsigned siblings, unsigned *files);
/* This many files and bytes were requested. */
void cop_bundle_brought(
	struct cop_bundle *b, struct cop_bundle_id id, unsigned files, size_t bytes);
/* Whether cop_bundle_allow has been told how many files of the kind the directory has. */
bool cop_bundle_is_counted(struct cop_bundle *b, struct cop_bundle_id id);
/* Whether a file may be brought because another one mentions it; if so, counts it as brought. soon:
 * a program has read the other one; a part of what may be wasted is left to those. */
bool cop_bundle_mentioned(struct cop_bundle *b, struct cop_bundle_id id, size_t bytes, bool soon);
/* A program has read a file that was brought, for the first time. */
void cop_bundle_used(struct cop_bundle *b, struct cop_bundle_id id, size_t bytes);

/* ---- bytes that come with an entry ---- */

/* Whether a program that looks up a name of this kind probably reads the file. */
bool cop_bundle_may_ask_first(struct cop_bundle *b, uint64_t kind);
/* Whether the bytes of one more file may be fetched, of whatever size. */
bool cop_bundle_may_come(const struct cop_bundle *b);
/* A file's bytes came with its entry. kind 0: no program had asked for the entry. */
void cop_bundle_came_first(struct cop_bundle *b, uint64_t kind, size_t bytes);
/* A program has read a file for the first time that came with an entry that it had asked for. */
void cop_bundle_used_first(struct cop_bundle *b, uint64_t kind, size_t bytes);

/* ---- listings ---- */

/* A program needs the listing of this directory, which is not cached. Copies the names of
 * directories below it whose listings the program probably needs next; returns how many. */
unsigned cop_bundle_listed(struct cop_bundle *b, const char *path,
	char name[COP_BUNDLE_COMPANIONS][COP_BUNDLE_BELOW_NAME]);
/* The same for a directory that no program needs yet; counts nothing. */
unsigned cop_bundle_companions(const struct cop_bundle *b, const char *path, bool mentioned,
	char name[COP_BUNDLE_COMPANIONS][COP_BUNDLE_BELOW_NAME]);
/* Whether the listing of a directory may be brought because a file mentions it. */
bool cop_bundle_may_list_mentioned(const struct cop_bundle *b);
/* The listing of this directory was requested before anybody needs it: because a file mentions it
 * or the directory above, or else along with that of its parent directory. */
void cop_bundle_expect(struct cop_bundle *b, const char *path, bool mentioned);
/* Whether that was because a file mentions it, and no program has needed it yet. */
bool cop_bundle_is_mentioned(const struct cop_bundle *b, const char *path);
/* A program needs the listing of this directory, which is cached or in flight. True if it was
 * brought and this is its first use. */
bool cop_bundle_met(struct cop_bundle *b, const char *path);

/* mention: names in the bytes of a file that tell which files its reader needs next. It has no
 * files, no state and no policy; what it finds is a guess. */

/* name is valid until fn returns. */
typedef void (*cop_mention_fn)(void *arg, const char *name, size_t len);

/* Calls fn for each module that the module level of a compiled Python module imports (a .pyc file
 * of Python 3.8 to 3.15), in the order of its instructions: the name in the import, with its dots,
 * and that name, a dot and each name that is imported from it, since that may be a module too.
 * Relative names have no leading dots. Imports of its functions and lazy imports (PEP 810) are not
 * among them. Names may repeat.
 *
 * Returns false if the bytes are not such a file, cut off, or nested too deeply. The format is that
 * of Python's marshal module (Python/marshal.c), the instructions are those of
 * Include/opcode_ids.h, and neither is documented; the file's magic number tells the version. */
bool cop_mention_python(const void *data, size_t len, cop_mention_fn fn, void *arg);
/* The magic number of a compiled module whose version of Python 3 is not known here; 0 for all
 * other files. */
unsigned cop_mention_new_python(const void *data, size_t len);

/* Libraries stand within the first bytes of a file: behind its symbols. */
#define COP_MENTION_ELF_BYTES (128 * COP_KIB)
bool cop_mention_is_elf(const void *data, size_t len);
/* Calls fn for each name of a shared library in the first bytes of a program or library (ELF): each
 * string there that has no other bytes than those of such a name and contains ".so". These are the
 * libraries that it needs, and its own name. Its table of needed libraries stands at the file's
 * end, so it is not read (elf(5)). */
void cop_mention_elf(const void *data, size_t len, cop_mention_fn fn, void *arg);

#endif
