/* SPDX-License-Identifier: BSD-3-Clause */
/* siblings.c prefetches small files next to the one that a program requests; companions.c listings
 * of subdirectories; targets.c symlink targets, and the listing of a directory with its attributes;
 * sources.c the source and the compiled file of a Python module. checks.c checks directories in
 * which a program looks up absent names; mentions.c, modules.c and libraries.c prefetch names found
 * in the bytes of files; first.c requests the first bytes with an entry. policy.c counts how many
 * guesses were used and limits the waste. */
#ifndef COP_TREE_GUESS_PRIV_H
#define COP_TREE_GUESS_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/base/htab.h"
#include "tree/fetch/fetch.h"
#include "tree/guess/policy_priv.h"

#define COLLECTIONS 8
#define COLLECTION_DIR 512
#define MENTIONS 128
#define MENTION_NAME 64

/* A directory with many files of a kind, of which programs read only a few (mentions.c). */
struct collection {
	char dir[COLLECTION_DIR];  /* with trailing slash; "": free */
	char ending[MENTION_NAME]; /* common ending of the file names, starting at the first dot */
	struct cop_bundle_id id;
};

enum mention_kind {
	MENTION_NONE,
	MENTION_FILE,
	MENTION_DIR,   /* a directory: its listing */
	MENTION_ENTRY, /* a name: its attributes */
};

/* A name found in a file that a program uses. */
struct mention {
	enum mention_kind kind;
	char dir[COLLECTION_DIR]; /* parent directory of name; for a file, with trailing slash */
	char name[MENTION_NAME];
	struct cop_attr attr; /* of the referring file; a mentioned file must match it */
	bool soon;            /* the referring file has been read: fetch before others */
	uint64_t turn;        /* grows with each referring file; the latest is fetched first */
	uint64_t round;       /* last round in which it was considered and deferred */
};

#define EXTENSIONS 4u /* Python uses three per name */
#define NEEDED_NAMES 32u
#define NEEDED_DIRS 4u

/* Shared libraries needed by files that programs have read (libraries.c). */
struct needed {
	char name[NEEDED_NAMES][MENTION_NAME];     /* not found yet; "": free */
	unsigned at;                               /* next slot to write */
	char dir[NEEDED_DIRS][COLLECTION_DIR + 1]; /* where others were found, with leading slash */
	unsigned dirs;
	uint64_t turn;
};

/* Directories in which programs look up absent names (checks.c). */
struct absence {
	pthread_mutex_t lock;
	struct cop_htab dirs;        /* struct absent_dir by path; bounded */
	struct cop_list order;       /* the same, in order of access */
	struct absent_dir *expected; /* the directory expected next in a scan, or NULL */
	unsigned window, ahead;      /* maximum and actual number of directories checked ahead */
	uint64_t checked_ms;         /* time of that check */
};

struct cop_guess {
	struct cop_fetch *fetch;
	const struct cop_fetch_conf *conf;
	struct absence absence;
	pthread_mutex_t lock; /* protects all fields below */
	struct cop_bundle policy;
	_Atomic unsigned collections; /* total so far; the oldest is overwritten */
	struct collection collection[COLLECTIONS];
	_Atomic unsigned mentions; /* not yet requested */
	_Atomic bool new_python;   /* a module of an unknown Python version was logged */
	uint64_t turns;            /* number of files scanned */
	uint64_t rounds;           /* number of fetch rounds */
	struct mention mention[MENTIONS];
	char module_ending[MENTION_NAME]; /* of the last module read by a program */
	struct cop_attr module_attr;
	char extension[EXTENSIONS][MENTION_NAME]; /* file name endings of extension modules that
						     programs read; "": none */
	unsigned extensions;
	struct needed needed;
};

/* Requests an object as a guess. Returns whether a flight began. */
bool cop_guess_ask(struct cop_guess *g, const struct cop_ask *ask);

/* Writes the path of name in dir (dir_len bytes) to buf. False if it is too long. */
bool cop_guess_path(
	char buf[4096], const char *dir, size_t dir_len, const char *name, size_t name_len);

/* ---- siblings.c ---- */

/* A program requests this small file, which is not cached. */
void cop_guess_siblings(struct cop_guess *g, const struct cop_ask *ask);
/* Whether a program's request is for a small file, which may have siblings. */
bool cop_guess_is_small(const struct cop_guess *g, const struct cop_ask *ask);

/* A file that programs read (or a collection) and its entry in the directory's listing. */
struct bundle {
	struct cop_guess *guess;
	struct cop_bundle_id id;
	const void *list;
	struct cop_fetch_name at; /* identifies the directory */
	struct cop_attr attr;
	bool mentioned; /* prefetched as a mentioned file, not as a sibling */
};
/* Whether the attributes of a listed name are cached, either in the listing or in its own entry. */
bool cop_guess_find_attr(struct cop_guess *g, const char *path, struct cop_listing_entry *e);
/* Returns whether a flight for this file began. */
bool cop_guess_ask_sibling(const struct bundle *b, const struct cop_listing_entry *e);

/* ---- mentions.c ---- */

/* Records the files and directories mentioned in these bytes. used: a program has read them. */
void cop_guess_note_mentions(struct cop_guess *g, const struct cop_key *key, const void *data,
	size_t len, bool packed, bool used);
/* Records one mention, unless it is a duplicate or the table is full. */
void cop_guess_note(struct cop_guess *g, const struct mention *what);
/* Whether requests for mentioned files can be sent along with this program's request. */
bool cop_guess_has_mentions(struct cop_guess *g, const struct cop_ask *ask);
/* Starts the flights for mentioned files. */
void cop_guess_bring_mentioned(struct cop_guess *g);

/* ---- modules.c ---- */

#define MODULE_NAMES 256u
#define MODULE_NAME 128u

/* A compiled module and the names of the modules that it imports. */
struct module {
	struct cop_guess *guess;
	const char *path;
	bool used; /* read by a program */
	uint64_t turn;
	unsigned names;
	char name[MODULE_NAMES][MODULE_NAME]; /* dotted names */
	/* Set by cop_guess_look_up_modules: */
	const char *ending; /* of the module's file name, starting at the first dot */
	struct cop_attr attr;
	char extension[EXTENSIONS][MENTION_NAME]; /* as cop_guess.extension */
};

/* Records that programs read files from this collection. Called with the lock held. */
void cop_guess_add_collection(struct cop_guess *g, const struct bundle *b);
/* Whether to scan a file's bytes for names of others. */
bool cop_guess_may_mention(const struct cop_guess *g, const struct cop_key *key);
/* Records the files and directories that the names in m refer to. */
void cop_guess_look_up_modules(struct module *m);
/* Records the package in a mentioned directory whose listing has arrived. */
void cop_guess_listed_mentioned(struct cop_guess *g, const struct cop_obj *obj, const void *data);
/* Whether to fetch this entry of directory m->dir because of mention m. */
bool cop_guess_may_fetch(
	struct cop_guess *g, const struct mention *m, const struct cop_listing_entry *e);
/* A reference to the cached listing of dir (len bytes with a trailing slash; "" is the source), or
 * NULL. */
struct cop_obj *cop_guess_names_below(struct cop_guess *g, const char *dir, size_t len);

/* ---- libraries.c ---- */

/* A program reads a file's first bytes: records the libraries that it needs. */
void cop_guess_note_libraries(struct cop_guess *g, const struct cop_obj *obj);
/* A program requests a name. If it is a needed library, the others are looked up in the same
 * directory. */
void cop_guess_met_library(struct cop_guess *g, const struct cop_ask *ask);

/* ---- sources.c ---- */

/* A program looks up this name: if it is the source of a module, requests the compiled file. */
void cop_guess_bring_compiled(struct cop_guess *g, const struct cop_fetch_name *source);
/* A compiled file was requested because another file mentions it: requests the entry of its source.
 * dir ends with a slash. */
void cop_guess_bring_source(struct cop_guess *g, const char *dir, const char *compiled);

/* ---- companions.c ---- */

/* Requests listings of subdirectories that probably exist and are needed next. */
void cop_guess_companions(struct cop_guess *g, const char *path);
/* Requests the listing of dir/name, as a background request. */
void cop_guess_listing(struct cop_guess *g, const char *dir, const char *name, bool mentioned);

/* ---- targets.c ---- */

/* Requests what a program needs next after the attributes of this name. */
void cop_guess_targets(struct cop_guess *g, const char *path);
/* Requests the probable target of a symlink without cached attributes. */
void cop_guess_bring_target(struct cop_guess *g, const struct cop_fetch_name *link);

/* ---- checks.c ---- */

void cop_guess_absence_init(struct absence *a);
void cop_guess_absence_fini(struct absence *a);
/* Requests checks of other directories in the same message as the check of this one. */
void cop_guess_checks(struct cop_guess *g, const char *path);

#endif
