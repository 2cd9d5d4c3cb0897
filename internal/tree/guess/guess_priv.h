/* SPDX-License-Identifier: BSD-3-Clause */
/* Which file guesses what: siblings.c small files beside one that a program asks for; companions.c
 * listings below a listing; targets.c what a link leads to, and the listing of a directory whose
 * attributes are asked for; sources.c a Python module's source and compiled file; checks.c other
 * directories in which a program looks for absent names; mentions.c, modules.c and libraries.c what
 * the bytes of a file name; first.c when an entry brings its file's first bytes. policy.c counts
 * what was used, and decides how much may go to waste. */
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

/* A directory with many files of a kind, of which programs read some (mentions.c). */
struct collection {
	char dir[COLLECTION_DIR];  /* with a slash at its end; "": free */
	char ending[MENTION_NAME]; /* of its files' names, from the first dot on */
	struct cop_bundle_id id;
};

enum mention_kind {
	MENTION_NONE,
	MENTION_FILE,
	MENTION_DIR,   /* whose listing is wanted */
	MENTION_ENTRY, /* whose attributes are */
};

/* What a program's file mentions. */
struct mention {
	enum mention_kind kind;
	char dir[COLLECTION_DIR]; /* with name in it; of a file, with a slash at its end */
	char name[MENTION_NAME];
	struct cop_attr attr; /* of a file that mentions it: this one must be like it */
	bool soon;            /* that file has been read, so this one comes before others; */
	uint64_t turn;        /* those of the file that was read last come first */
	uint64_t round;       /* in which it was taken last, and its turn had not come */
};

#define EXTENSIONS 4u /* endings; Python looks for three of each name */
#define NEEDED_NAMES 32u
#define NEEDED_DIRS 4u

/* Shared libraries that files need which programs have read (libraries.c). */
struct needed {
	char name[NEEDED_NAMES][MENTION_NAME]; /* of those that were not found yet; "": free */
	unsigned at;                           /* the next one goes here */
	char dir[NEEDED_DIRS]
		[COLLECTION_DIR + 1]; /* where others were found, with a slash before */
	unsigned dirs;
	uint64_t turn;
};

/* Directories in which programs look for absent names (checks.c). */
struct absence {
	pthread_mutex_t lock;
	struct cop_htab dirs;        /* struct absent_dir by path, in bounded number, */
	struct cop_list order;       /* and in the order in which programs came to them */
	struct absent_dir *expected; /* where a program that goes on goes on, or NULL */
	unsigned window, ahead;      /* directories that were checked ahead, at most and really, */
	uint64_t checked_ms;         /* with the check of this time */
};

struct cop_guess {
	struct cop_fetch *fetch;
	const struct cop_fetch_conf *conf;
	struct absence absence;
	pthread_mutex_t lock; /* for all that follows */
	struct cop_bundle policy;
	_Atomic unsigned collections; /* of all so far; a later one takes the place of the oldest */
	struct collection collection[COLLECTIONS];
	_Atomic unsigned mentions; /* that nobody has requested yet */
	_Atomic bool new_python;   /* a module of an unknown version was reported */
	uint64_t turns;            /* files that were looked at */
	uint64_t rounds;           /* how many times mentions were fetched */
	struct mention mention[MENTIONS];
	char module_ending[MENTION_NAME]; /* of the module that a program read last */
	struct cop_attr module_attr;
	char extension[EXTENSIONS]
		      [MENTION_NAME]; /* endings of extensions that programs read; "": none */
	unsigned extensions;
	struct needed needed;
};

/* Requests this; it is no program's. Returns whether a flight began. */
bool cop_guess_ask(struct cop_guess *g, const struct cop_ask *ask);

/* A path into buf: dir, of dir_len bytes, and name below it. False if it is too long. */
bool cop_guess_path(
	char buf[4096], const char *dir, size_t dir_len, const char *name, size_t name_len);

/* ---- siblings.c ---- */

/* A program needs this small file, which is not here. */
void cop_guess_siblings(struct cop_guess *g, const struct cop_ask *ask);
/* Whether a program's request is for a file that may have siblings. */
bool cop_guess_is_small(const struct cop_guess *g, const struct cop_ask *ask);

/* A file that programs read, or a collection, and what the directory's listing says about it. */
struct bundle {
	struct cop_guess *guess;
	struct cop_bundle_id id;
	const void *list;
	struct cop_fetch_name at; /* whose directory it is */
	struct cop_attr attr;
	bool mentioned; /* not as a sibling */
};
/* Whether the attributes of a listed name are known here. Those that the listing lacks were asked
 * for singly. */
bool cop_guess_find_attr(struct cop_guess *g, const char *path, struct cop_listing_entry *e);
/* Whether a flight for this file began. */
bool cop_guess_ask_sibling(const struct bundle *b, const struct cop_listing_entry *e);

/* ---- mentions.c ---- */

/* Notes which files and directories these bytes mention. used: a program has read them. */
void cop_guess_note_mentions(struct cop_guess *g, const struct cop_key *key, const void *data,
	size_t len, bool packed, bool used);
/* Notes one, unless it has been noted, or too many have. */
void cop_guess_note(struct cop_guess *g, const struct mention *what);
/* Whether a program's request could take requests for mentioned files along. */
bool cop_guess_has_mentions(struct cop_guess *g, const struct cop_ask *ask);
/* Starts their flights. */
void cop_guess_bring_mentioned(struct cop_guess *g);

/* ---- modules.c ---- */

#define MODULE_NAMES 256u
#define MODULE_NAME 128u

/* A compiled module, and the names of modules that it imports. */
struct module {
	struct cop_guess *guess;
	const char *path;
	bool used; /* by a program */
	uint64_t turn;
	unsigned names;
	char name[MODULE_NAMES][MODULE_NAME]; /* with dots */
	/* Set by cop_guess_look_up_modules: */
	const char *ending; /* of its file's name, from the first dot on */
	struct cop_attr attr;
	char extension[EXTENSIONS][MENTION_NAME]; /* as cop_guess.extension */
};

/* Under the lock: programs read files of this collection. */
void cop_guess_add_collection(struct cop_guess *g, const struct bundle *b);
/* Whether a file's bytes are looked at for names of others. */
bool cop_guess_may_mention(const struct cop_guess *g, const struct cop_key *key);
/* Notes where the names of m lead. */
void cop_guess_look_up_modules(struct module *m);
/* Notes the package in a directory that was mentioned and whose listing has come. */
void cop_guess_listed_mentioned(struct cop_guess *g, const struct cop_obj *obj, const void *data);
/* Whether this entry of the directory m->dir is fetched because of m. */
bool cop_guess_may_fetch(
	struct cop_guess *g, const struct mention *m, const struct cop_listing_entry *e);
/* The listing of dir, len bytes with a slash at their end ("" is the source), with a reference;
 * NULL if it is not here. */
struct cop_obj *cop_guess_names_below(struct cop_guess *g, const char *dir, size_t len);

/* ---- libraries.c ---- */

/* A program reads a file's first bytes: notes the libraries that it needs. */
void cop_guess_note_libraries(struct cop_guess *g, const struct cop_obj *obj);
/* A program asks for a name. If that is a needed library, the others are looked for beside it. */
void cop_guess_met_library(struct cop_guess *g, const struct cop_ask *ask);

/* ---- sources.c ---- */

/* A program looks up this name: if it is a module's source, requests the compiled file. */
void cop_guess_bring_compiled(struct cop_guess *g, const struct cop_fetch_name *source);
/* A compiled file was requested because another one mentions it: requests its source's entry. dir
 * ends with a slash. */
void cop_guess_bring_source(struct cop_guess *g, const char *dir, const char *compiled);

/* ---- companions.c ---- */

/* Requests the listings of directories that are probably below this one and needed next. */
void cop_guess_companions(struct cop_guess *g, const char *path);
/* Requests the listing of dir/name, which nobody needs yet. */
void cop_guess_listing(struct cop_guess *g, const char *dir, const char *name, bool mentioned);

/* ---- targets.c ---- */

/* Requests what a program needs next after the attributes of this name. */
void cop_guess_targets(struct cop_guess *g, const char *path);
/* Requests the name that this one, whose attributes nobody has, probably links to. */
void cop_guess_bring_target(struct cop_guess *g, const struct cop_fetch_name *link);

/* ---- checks.c ---- */

void cop_guess_absence_init(struct absence *a);
void cop_guess_absence_fini(struct absence *a);
/* Requests checks of other directories, together with that of this one. */
void cop_guess_checks(struct cop_guess *g, const char *path);

#endif
