/* SPDX-License-Identifier: BSD-3-Clause */
/* walk: reads once what is below some directories of a disk, chooses these directories, and shares
 * work among a few threads. It knows nothing about jobs and writes nothing.
 *
 * The threads are for parallel file systems, where each operation waits. Symbolic links are entries
 * and are never followed, except in the name of a root. Pseudo file systems and mounts of Copper
 * below a root are entries and are not entered. Directories that cannot be read are counted, and
 * the first ones are named.
 *
 * Locks: struct walk has one, which protects the stack of batches and the end. A directory belongs
 * to the thread that reads it until its batch is done; others see the results of its batches only
 * through that lock. After the walk nothing is shared. */
#ifndef COP_BASE_WALK_H
#define COP_BASE_WALK_H

#include <stdatomic.h>

#include "base/base/base.h"

/* ---- parallel.c ---- */

/* Calls fn(arg, i) for each i < n on a few threads, and tick (may be NULL) at intervals on the
 * caller's. -ENOMEM or -EAGAIN if not even one thread starts; then nothing was called. */
int cop_walk_parallel(
	size_t n, void (*fn)(void *arg, size_t i), void (*tick)(void *arg), void *arg);

/* ---- walk.c ---- */

#define COP_WALK_ENTRIES_MAX ((uint64_t)1 << 26)
#define COP_WALK_NAMED 20u /* unreadable directories that are named */

struct cop_walk_dir;

enum cop_walk_flags {
	COP_WALK_USED = 1, /* the job asked for it */
	COP_WALK_KEEP = 2, /* or something that the job asked for needs it */
	/* A program that somebody may execute and not read; set by the walk, if it reads sizes. */
	COP_WALK_HALF_CLOSED = 64,
};

struct cop_walk_entry {
	const char *name;         /* for a root: its whole path */
	struct cop_walk_dir *dir; /* NULL: not a directory */
	uint64_t size;            /* of a regular file, if the caller asked for sizes */
	uint16_t len;
	uint8_t type;  /* DT_REG, DT_DIR, DT_LNK, …; DT_UNKNOWN: it has vanished meanwhile */
	uint8_t flags; /* left to the caller, but for COP_WALK_HALF_CLOSED */
};

enum cop_walk_state {
	COP_WALK_READ,    /* entry[] is complete */
	COP_WALK_FAILED,  /* error says why */
	COP_WALK_SKIPPED, /* a pseudo file system, or a mount of Copper */
};

struct cop_walk_dir {
	struct cop_walk_dir *parent;  /* NULL: this is the one above the roots */
	struct cop_walk_entry *entry; /* sorted by the bytes of their names */
	uint32_t n, in_parent;        /* parent->entry[in_parent] is this */
	enum cop_walk_state state;
	int error;
	_Atomic uint32_t batches; /* how many batches need fd */
	int fd;
};

/* Memory that is freed all at once. */
struct cop_arena_block;
struct cop_arena {
	struct cop_arena_block *block;
	size_t used, size; /* of the block */
	uint64_t bytes;    /* given out */
};
void *cop_walk_arena_alloc(struct cop_arena *a, size_t bytes);
/* Copies and appends a NUL. */
char *cop_walk_arena_copy(struct cop_arena *a, const char *text, size_t len);
void cop_walk_arena_free(struct cop_arena *a);

struct cop_walk_fault {
	char *path;
	int error;
};

struct cop_walk_tree {
	struct cop_walk_dir top; /* its entries are the roots, as they were given; type 0 and no
				    dir: it does not exist */
	uint64_t files, dirs;    /* files: everything that is not a directory */
	uint64_t bytes;          /* of regular files, each name counted */
	uint64_t unreadable, skipped;
	struct cop_walk_fault fault[COP_WALK_NAMED];
	unsigned faults;
	struct cop_arena *arena; /* one per thread */
	unsigned arenas;
};

struct cop_walk_conf {
	const char *const *root; /* normal paths sorted by bytes, none below another */
	size_t roots;
	bool sizes;
	unsigned threads;     /* 0: as many as are useful */
	uint64_t max_entries; /* 0: COP_WALK_ENTRIES_MAX */
	bool no_openat2;      /* act as if the kernel lacked it */
	/* Called at intervals on the caller's thread; may be NULL. */
	void (*tick)(void *arg, uint64_t entries);
	void *arg;
};

/* -E2BIG with a sentence if there are more than max_entries; -ENOMEM. A root that does not exist or
 * cannot be read is not an error. */
int cop_walk(const struct cop_walk_conf *conf, struct cop_walk_tree **out, struct cop_err *err);
void cop_walk_tree_free(struct cop_walk_tree *t);

/* ---- tree.c ---- */

/* The entry of that name, or NULL. */
struct cop_walk_entry *cop_walk_dir_find(
	const struct cop_walk_dir *d, const char *name, size_t len);
/* The entry of a normal path at or below a root, without following links. If there is none, *absent
 * (may be NULL) says whether the tree proves that the path does not exist: the directory that would
 * hold it was read. */
struct cop_walk_entry *cop_walk_tree_find(
	const struct cop_walk_tree *t, const char *path, size_t len, bool *absent);
/* The root's entry, and how long its part of path is; NULL if path is below no root. */
struct cop_walk_entry *cop_walk_tree_root(
	const struct cop_walk_tree *t, const char *path, size_t len, size_t *taken);

/* Visits all entries in order of the bytes of their whole paths; path is NUL-terminated until the
 * next call. A result other than 0 ends it. */
typedef int cop_walk_visit(void *arg, const struct cop_walk_entry *e, const char *path, size_t len);
int cop_walk_tree_each(const struct cop_walk_tree *t, cop_walk_visit *visit, void *arg);

/* ---- roots.c ---- */

/* Usage roots (copper-formats.5): the directories whose use is examined. Given ones come first;
 * then what observed paths suggest: each prefix that ends in a component beginning "conda_env",
 * cut right after that word; then $HOME and its first-level children. Nothing here looks at the
 * disk. */

/* Further roots of one kind are omitted, and `full` is set. */
#define COP_ROOTS_MAX 4096u

struct cop_root_list { /* normal absolute paths without a trailing slash; each once */
	char **path;
	size_t n;
	bool full;
};

struct cop_roots {
	struct cop_root_list given;    /* in the order in which they were given */
	struct cop_root_list conda;    /* sorted by bytes, like the next two */
	struct cop_root_list children; /* first-level children of home */
	struct cop_root_list all;      /* set by cop_walk_roots_minimize */
	char *home;                    /* normal; NULL: not looked for */
	bool home_observed;            /* as a path of its own, not only by what is below it */
};

/* home: $HOME; NULL: not used, like one that is not absolute, or "/". -ENOMEM. */
int cop_walk_roots_init(struct cop_roots *r, const char *home);
void cop_walk_roots_free(struct cop_roots *r);
/* Adds one --usage-root: it is made absolute from here, and links stay as they are. -EINVAL if it
 * is empty, -ENOMEM. */
int cop_walk_roots_give(struct cop_roots *r, const char *dir);
/* Adds what one observed path suggests; path is normal. -ENOMEM. */
int cop_walk_roots_observe(struct cop_roots *r, const char *path, size_t len);
/* Fills all: given, conda, home if observed, children; sorted by bytes, none below another.
 * -ENOMEM. */
int cop_walk_roots_minimize(struct cop_roots *r);
/* The index in all of the root that is path or is above it, or -1. */
ssize_t cop_walk_roots_above(const struct cop_roots *r, const char *path, size_t len);

/* Whether path is root or below it; root is normal. */
bool cop_walk_path_below(const char *path, size_t len, const char *root);
/* Whether path is absolute, without ".", "..", empty components and a trailing slash (except "/"
 * itself). */
bool cop_walk_path_is_normal(const char *path, size_t len);
/* Normalizes path without looking at the disk: "a/.." is removed whatever a is. It is relative to
 * cwd, which is absolute. NULL: out of memory. */
char *cop_walk_path_normal(const char *cwd, const char *path);

#endif
