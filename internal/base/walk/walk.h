/* SPDX-License-Identifier: BSD-3-Clause */
/* walk: reads the trees below some directories once, selects these directories, and distributes
 * work among a few threads. Read-only.
 *
 * The threads hide the latency of parallel file systems. Symbolic links are entries and never
 * followed, except in the name of a root. Pseudo file systems and Copper mounts below a root are
 * entries and are not entered. Unreadable directories are counted, and the first ones are
 * listed.
 *
 * Locks: struct walk has one, which protects the stack of batches and the end. A directory
 * belongs to its reading thread until its batch is done; others see the results of its batches
 * only through that lock. After the walk nothing is shared. */
#ifndef COP_BASE_WALK_H
#define COP_BASE_WALK_H

#include <stdatomic.h>

#include "base/base/base.h"

/* ---- parallel.c ---- */

/* Calls fn(arg, i) for each i < n on a few threads, and tick (may be NULL) at intervals on the
 * caller's. -ENOMEM or -EAGAIN if no thread could be started; then nothing was called. */
int cop_walk_parallel(
	size_t n, void (*fn)(void *arg, size_t i), void (*tick)(void *arg), void *arg);

/* ---- walk.c ---- */

#define COP_WALK_ENTRIES_MAX ((uint64_t)1 << 26)
#define COP_WALK_NAMED 20u /* unreadable directories listed by name */

struct cop_walk_dir;

enum cop_walk_flags {
	COP_WALK_USED = 1, /* requested by the job */
	COP_WALK_KEEP = 2, /* or needed by something the job requested */
	/* A program that somebody may execute but not read; set by the walk if it reads sizes. */
	COP_WALK_HALF_CLOSED = 64,
};

struct cop_walk_entry {
	const char *name;         /* for a root: its full path */
	struct cop_walk_dir *dir; /* NULL: not a directory */
	uint64_t size;            /* of a regular file, if the caller requested sizes */
	uint16_t len;
	uint8_t type;  /* DT_REG, DT_DIR, DT_LNK, …; DT_UNKNOWN: it has vanished */
	uint8_t flags; /* for the caller, except COP_WALK_HALF_CLOSED */
};

enum cop_walk_state {
	COP_WALK_READ,    /* entry[] is complete */
	COP_WALK_FAILED,  /* see error */
	COP_WALK_SKIPPED, /* a pseudo file system or Copper mount */
};

struct cop_walk_dir {
	struct cop_walk_dir *parent;  /* NULL: this is the parent of the roots */
	struct cop_walk_entry *entry; /* sorted bytewise by name */
	uint32_t n, in_parent;        /* parent->entry[in_parent] is this */
	enum cop_walk_state state;
	int error;
	_Atomic uint32_t batches; /* number of batches that need fd */
	int fd;
};

/* Memory that is freed as a whole. */
struct cop_arena_block;
struct cop_arena {
	struct cop_arena_block *block;
	size_t used, size; /* of the block */
	uint64_t bytes;    /* total allocated */
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
	struct cop_walk_dir
		top; /* its entries are the roots, as given; type 0 and no dir: it does not exist */
	uint64_t files, dirs; /* files: all non-directories */
	uint64_t bytes;       /* of regular files, counted per name */
	uint64_t unreadable, skipped;
	struct cop_walk_fault fault[COP_WALK_NAMED];
	unsigned faults;
	struct cop_arena *arena; /* one per thread */
	unsigned arenas;
};

struct cop_walk_conf {
	const char *const *root; /* normal paths, sorted bytewise, none below another */
	size_t roots;
	bool sizes;
	unsigned threads;     /* 0: automatic */
	uint64_t max_entries; /* 0: COP_WALK_ENTRIES_MAX */
	bool no_openat2;      /* simulate a kernel without it */
	/* Called at intervals on the caller's thread; may be NULL. */
	void (*tick)(void *arg, uint64_t entries);
	void *arg;
};

/* -E2BIG with a sentence if there are more than max_entries; -ENOMEM. A missing or unreadable
 * root is not an error. */
int cop_walk(const struct cop_walk_conf *conf, struct cop_walk_tree **out, struct cop_err *err);
void cop_walk_tree_free(struct cop_walk_tree *t);

/* ---- tree.c ---- */

/* The entry with that name, or NULL. */
struct cop_walk_entry *cop_walk_dir_find(
	const struct cop_walk_dir *d, const char *name, size_t len);
/* The entry of a normal path at or below a root, without following links. If there is none,
 * *absent (may be NULL) reports whether the tree proves that the path does not exist: its parent
 * directory was read. */
struct cop_walk_entry *cop_walk_tree_find(
	const struct cop_walk_tree *t, const char *path, size_t len, bool *absent);
/* The root's entry, and the length of its part of path; NULL if path is below no root. */
struct cop_walk_entry *cop_walk_tree_root(
	const struct cop_walk_tree *t, const char *path, size_t len, size_t *taken);

/* Visits all entries, sorted bytewise by full path; path is NUL-terminated and valid until the
 * next call. A nonzero result ends the iteration. */
typedef int cop_walk_visit(void *arg, const struct cop_walk_entry *e, const char *path, size_t len);
int cop_walk_tree_each(const struct cop_walk_tree *t, cop_walk_visit *visit, void *arg);

/* ---- roots.c ---- */

/* Usage roots (copper-formats.5): the directories whose use is examined. Given ones come first;
 * then candidates from observed paths: each prefix whose last component starts with "conda_env",
 * cut right after that word; then $HOME and its first-level children. None of this accesses the
 * disk. */

/* Further roots of one kind are omitted, and `full` is set. */
#define COP_ROOTS_MAX 4096u

struct cop_root_list { /* normal absolute paths without a trailing slash; no duplicates */
	char **path;
	size_t n;
	bool full;
};

struct cop_roots {
	struct cop_root_list given;    /* in the given order */
	struct cop_root_list conda;    /* sorted bytewise, like the next two */
	struct cop_root_list children; /* first-level children of home */
	struct cop_root_list all;      /* set by cop_walk_roots_minimize */
	char *home;                    /* normal; NULL: unused */
	bool home_observed;            /* by its own path, not only by paths below it */
};

/* home: $HOME; NULL: unused, as is "/" or a relative path. -ENOMEM. */
int cop_walk_roots_init(struct cop_roots *r, const char *home);
void cop_walk_roots_free(struct cop_roots *r);
/* Adds one --usage-root: made absolute here, without resolving links. -EINVAL if it is empty,
 * -ENOMEM. */
int cop_walk_roots_give(struct cop_roots *r, const char *dir);
/* Adds the candidates of one observed path; path is normal. -ENOMEM. */
int cop_walk_roots_observe(struct cop_roots *r, const char *path, size_t len);
/* Fills all: given, conda, home if observed, children; sorted bytewise, none below another.
 * -ENOMEM. */
int cop_walk_roots_minimize(struct cop_roots *r);
/* The index in all of the root at or above path, or -1. */
ssize_t cop_walk_roots_above(const struct cop_roots *r, const char *path, size_t len);

/* Whether path is root or below it; root is normal. */
bool cop_walk_path_below(const char *path, size_t len, const char *root);
/* Whether path is absolute, without ".", "..", empty components and a trailing slash (except "/"
 * itself). */
bool cop_walk_path_is_normal(const char *path, size_t len);
/* Normalizes path lexically: "a/.." is removed even if a is a link. Relative to cwd, which is
 * absolute. NULL: out of memory. */
char *cop_walk_path_normal(const char *cwd, const char *path);

#endif
