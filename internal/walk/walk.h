/* SPDX-License-Identifier: BSD-3-Clause */
/* walk: reads once what is below some directories of a disk, chooses these directories, and shares
 * work among a few threads. It knows nothing of jobs and writes nothing.
 *
 * The threads are for parallel file systems, where each operation waits. Symbolic links are entries
 * and are never followed, except in the name of a root. Pseudo file systems and mounts of Copper
 * below a root are entries and are not entered. Directories that cannot be read are counted and the
 * first ones named.
 *
 * Locks: struct walk has one, over the stack of batches and the end. A directory belongs to the
 * thread that reads it until its batch is done; others see the results of its batches only through
 * that lock. After the walk nothing is shared. */
#ifndef COP_WALK_H
#define COP_WALK_H

#include <stdatomic.h>

#include "base/base.h"

/* ---- parallel.c ---- */

/* Calls fn(arg, i) for each i < n on a few threads, and tick (may be NULL) every so often on the
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
};

struct cop_walk_entry {
	const char *name;         /* of a root: its whole path */
	struct cop_walk_dir *dir; /* NULL: not a directory */
	uint64_t size;            /* of a regular file, if sizes were asked for */
	uint16_t len;
	uint8_t type;  /* DT_REG, DT_DIR, DT_LNK, …; DT_UNKNOWN: it has vanished meanwhile */
	uint8_t flags; /* the owner's */
};

enum cop_walk_state {
	COP_WALK_READ,    /* entry[] is all that is in it */
	COP_WALK_FAILED,  /* error says why */
	COP_WALK_SKIPPED, /* a pseudo file system, or a mount of Copper */
};

struct cop_walk_dir {
	struct cop_walk_dir *parent;  /* NULL: the one above the roots */
	struct cop_walk_entry *entry; /* in order of bytes of the name */
	uint32_t n, in_parent;        /* parent->entry[in_parent] is this */
	enum cop_walk_state state;
	int error;
	_Atomic uint32_t batches; /* that need fd */
	int fd;
};

/* Memory that goes all at once. */
struct cop_arena_block;
struct cop_arena {
	struct cop_arena_block *block;
	size_t used, size; /* of the block */
	uint64_t bytes;    /* given out */
};
void *cop_walk_arena_alloc(struct cop_arena *a, size_t bytes);
/* A copy with a NUL after it. */
char *cop_walk_arena_copy(struct cop_arena *a, const char *text, size_t len);
void cop_walk_arena_free(struct cop_arena *a);

struct cop_walk_fault {
	char *path;
	int error;
};

struct cop_walk_tree {
	struct cop_walk_dir top; /* its entries are the roots, as they were given; type 0 and no
				dir: it is not there */
	uint64_t files, dirs;    /* files: whatever is not a directory */
	uint64_t bytes;          /* of regular files, each name counted */
	uint64_t unreadable, skipped;
	struct cop_walk_fault fault[COP_WALK_NAMED];
	unsigned faults;
	struct cop_arena *arena; /* one for each thread */
	unsigned arenas;
};

struct cop_walk_conf {
	const char *const *root; /* normal paths in order of bytes, none below another */
	size_t roots;
	bool sizes;
	unsigned threads;     /* 0: as many as are good */
	uint64_t max_entries; /* 0: COP_WALK_ENTRIES_MAX */
	bool no_openat2;      /* act as if the kernel lacked it */
	/* Every so often while it runs, on the caller's thread; may be NULL. */
	void (*tick)(void *arg, uint64_t entries);
	void *arg;
};

/* -E2BIG with a sentence if there is more than max_entries; -ENOMEM. A root that is not there or
 * cannot be read is not an error. */
int cop_walk(const struct cop_walk_conf *conf, struct cop_walk_tree **out, struct cop_err *err);
void cop_walk_tree_free(struct cop_walk_tree *t);

/* ---- tree.c ---- */

/* The entry of that name, or NULL. */
struct cop_walk_entry *cop_walk_dir_find(
	const struct cop_walk_dir *d, const char *name, size_t len);
/* The entry of a normal path at or below a root, without following links. Where there is none,
 * *absent (may be NULL) says whether the tree proves that nothing is there: the directory that
 * would hold it was read. */
struct cop_walk_entry *cop_walk_tree_find(
	const struct cop_walk_tree *t, const char *path, size_t len, bool *absent);
/* The root's entry, and how many bytes of path it takes up; NULL if path is below none. */
struct cop_walk_entry *cop_walk_tree_root(
	const struct cop_walk_tree *t, const char *path, size_t len, size_t *taken);

/* All entries in the order of the bytes of their whole paths; path is NUL-terminated until the next
 * call. Not 0 ends it. */
typedef int cop_walk_visit(void *arg, const struct cop_walk_entry *e, const char *path, size_t len);
int cop_walk_tree_each(const struct cop_walk_tree *t, cop_walk_visit *visit, void *arg);

/* ---- roots.c ---- */

/* Usage roots (copper-formats.5): the directories whose use is looked at. Given ones first; then
 * what observed paths suggest: each prefix that ends in a component beginning "conda_env", cut
 * right after that word; then $HOME and its first-level children. Nothing here looks at the disk.
 */

/* More roots than that of one kind are left out, and `full` says so. */
#define COP_ROOTS_MAX 4096u

struct cop_root_list { /* normal absolute paths without a slash at the end; each once */
	char **path;
	size_t n;
	bool full;
};

struct cop_roots {
	struct cop_root_list given;    /* in the order given */
	struct cop_root_list conda;    /* in order of bytes, as the next two */
	struct cop_root_list children; /* first-level children of home */
	struct cop_root_list all;      /* after cop_walk_roots_minimize */
	char *home;                    /* normal; NULL: not looked for */
	bool home_observed;            /* as a path of its own, not only through what is below it */
};

/* home: $HOME, or NULL for none of it; one that is not absolute, or "/", counts as none. -ENOMEM.
 */
int cop_walk_roots_init(struct cop_roots *r, const char *home);
void cop_walk_roots_free(struct cop_roots *r);
/* One --usage-root: made absolute from here, links stay as they are. -EINVAL if it is empty,
 * -ENOMEM. */
int cop_walk_roots_give(struct cop_roots *r, const char *dir);
/* What one observed path suggests; path is normal. -ENOMEM. */
int cop_walk_roots_observe(struct cop_roots *r, const char *path, size_t len);
/* Fills all: given, conda, home if observed, children; in order of bytes, none below another.
 * -ENOMEM. */
int cop_walk_roots_minimize(struct cop_roots *r);
/* Index in all of the root that is path or above it, or -1. */
ssize_t cop_walk_roots_above(const struct cop_roots *r, const char *path, size_t len);

/* Whether path is root or below it; root is normal. */
bool cop_walk_path_below(const char *path, size_t len, const char *root);
/* Absolute, without ".", "..", empty components and a slash at the end (except "/" itself). */
bool cop_walk_path_is_normal(const char *path, size_t len);
/* Normalizes it without looking at the disk: "a/.." is removed whatever a is. Relative to cwd,
 * which is absolute. NULL without memory. */
char *cop_walk_path_normal(const char *cwd, const char *path);

#endif
