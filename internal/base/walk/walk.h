/* SPDX-License-Identifier: BSD-3-Clause */
/* walk: reads directory trees once with a few threads, and chooses the directories to read.
 * Read-only.
 *
 * The threads hide the latency of parallel file systems. Symbolic links are recorded as entries and
 * not followed, except in the path of a root. Pseudo file systems and Copper mounts below a root
 * are recorded but not entered. Unreadable directories are counted, and the first few are listed.
 *
 * Locks: struct walk has one, which protects the stack of batches and the end of the walk. A
 * directory belongs to the thread that reads it until its batch is done; other threads see the
 * results of a batch only after taking that lock. After the walk nothing is shared. */
#ifndef COP_BASE_WALK_H
#define COP_BASE_WALK_H

#include <stdatomic.h>

#include "base/base/base.h"

/* ---- parallel.c ---- */

/* Calls fn(arg, i) for each i < n on a few threads; meanwhile calls tick (may be NULL) periodically
 * on the caller's thread. Returns -ENOMEM or -EAGAIN if no thread could be started; nothing has
 * been called then. */
int cop_walk_parallel(
	size_t n, void (*fn)(void *arg, size_t i), void (*tick)(void *arg), void *arg);

/* ---- walk.c ---- */

#define COP_WALK_ENTRIES_MAX ((uint64_t)1 << 26)
#define COP_WALK_NAMED 20u /* unreadable directories listed by name */

struct cop_walk_dir;

enum cop_walk_flags {
	COP_WALK_USED = 1, /* requested by the job */
	COP_WALK_KEEP = 2, /* or needed by something the job requested */
	/* A program that some users may execute but not read. The walk sets this if sizes are
	 * requested. */
	COP_WALK_HALF_CLOSED = 64,
};

struct cop_walk_entry {
	const char *name;         /* for a root: its full path */
	struct cop_walk_dir *dir; /* NULL: not a directory */
	uint64_t size;            /* of a regular file, if the caller requested sizes */
	uint16_t len;
	uint8_t type;  /* DT_REG, DT_DIR, DT_LNK, …; DT_UNKNOWN: it vanished during the walk */
	uint8_t flags; /* for the caller, except COP_WALK_HALF_CLOSED */
};

enum cop_walk_state {
	COP_WALK_READ,    /* entry[] is complete */
	COP_WALK_FAILED,  /* see error */
	COP_WALK_SKIPPED, /* a pseudo file system or Copper mount */
};

struct cop_walk_dir {
	struct cop_walk_dir *parent;  /* NULL: this is the virtual parent of the roots */
	struct cop_walk_entry *entry; /* sorted bytewise by name */
	uint32_t n, in_parent;        /* parent->entry[in_parent] is this */
	enum cop_walk_state state;
	int error;
	_Atomic uint32_t batches; /* number of batches that need fd */
	int fd;
};

/* An allocator whose memory is freed all at once. */
struct cop_arena_block;
struct cop_arena {
	struct cop_arena_block *block;
	size_t used, size; /* both for the current block */
	uint64_t bytes;    /* total allocated */
};
void *cop_walk_arena_alloc(struct cop_arena *a, size_t bytes);
/* Copies text and appends a NUL. */
char *cop_walk_arena_copy(struct cop_arena *a, const char *text, size_t len);
void cop_walk_arena_free(struct cop_arena *a);

struct cop_walk_fault {
	char *path;
	int error;
};

struct cop_walk_tree {
	struct cop_walk_dir top; /* its entries are the roots, as given; a root with type 0 and no
				    dir does not exist */
	uint64_t files, dirs;    /* files: all non-directories */
	uint64_t bytes; /* of regular files; a file with several names counts once per name */
	uint64_t unreadable, skipped;
	struct cop_walk_fault fault[COP_WALK_NAMED];
	unsigned faults;
	struct cop_arena *arena; /* one per thread */
	unsigned arenas;
};

struct cop_walk_conf {
	const char *const *root; /* normalized paths, sorted bytewise, none below another */
	size_t roots;
	bool sizes;
	unsigned threads;     /* 0: automatic */
	uint64_t max_entries; /* 0: COP_WALK_ENTRIES_MAX */
	bool no_openat2;      /* simulate a kernel without it */
	/* Called periodically on the caller's thread; may be NULL. */
	void (*tick)(void *arg, uint64_t entries);
	void *arg;
};

/* Returns -E2BIG with err set if there are more than max_entries; -ENOMEM. A missing or unreadable
 * root is not an error. */
int cop_walk(const struct cop_walk_conf *conf, struct cop_walk_tree **out, struct cop_err *err);
void cop_walk_tree_free(struct cop_walk_tree *t);

/* ---- tree.c ---- */

/* The entry with that name, or NULL. */
struct cop_walk_entry *cop_walk_dir_find(
	const struct cop_walk_dir *d, const char *name, size_t len);
/* Finds the entry for a normalized path at or below a root, without following links. If there is
 * none, sets *absent (which may be NULL) to whether the tree proves that the path does not exist,
 * i.e. its parent directory was read. */
struct cop_walk_entry *cop_walk_tree_find(
	const struct cop_walk_tree *t, const char *path, size_t len, bool *absent);
/* The entry of the root that path is at or below, or NULL; *taken is the length of the root's part
 * of path. */
struct cop_walk_entry *cop_walk_tree_root(
	const struct cop_walk_tree *t, const char *path, size_t len, size_t *taken);

/* Visits all entries, sorted bytewise by full path. path is NUL-terminated and valid until the next
 * call. A nonzero return value stops the iteration. */
typedef int cop_walk_visit(void *arg, const struct cop_walk_entry *e, const char *path, size_t len);
int cop_walk_tree_each(const struct cop_walk_tree *t, cop_walk_visit *visit, void *arg);

/* ---- roots.c ---- */

/* Usage roots (copper-formats.5) are the directories whose usage is examined. Roots given by the
 * user come first. Then come candidates derived from observed paths: any prefix whose last
 * component starts with "conda_env", cut right after that word, then $HOME and its first-level
 * children. None of these functions touches the disk. */

/* Beyond this many roots of one kind, further ones are dropped and `full` is set. */
#define COP_ROOTS_MAX 4096u

struct cop_root_list { /* normal absolute paths without a trailing slash; no duplicates */
	char **path;
	size_t n;
	bool full;
};

struct cop_roots {
	struct cop_root_list given;    /* in the given order */
	struct cop_root_list conda;    /* this list and the next two are sorted bytewise */
	struct cop_root_list children; /* first-level children of home */
	struct cop_root_list all;      /* set by cop_walk_roots_minimize */
	char *home;                    /* normal; NULL: unused */
	bool home_observed;            /* home itself was observed, not only paths below it */
};

/* home is $HOME; it is ignored if it is NULL, "/" or a relative path. -ENOMEM. */
int cop_walk_roots_init(struct cop_roots *r, const char *home);
void cop_walk_roots_free(struct cop_roots *r);
/* Adds one --usage-root, made absolute without resolving links. Returns -EINVAL if it is empty;
 * -ENOMEM. */
int cop_walk_roots_give(struct cop_roots *r, const char *dir);
/* Adds the candidates derived from one observed path, which is normalized. -ENOMEM. */
int cop_walk_roots_observe(struct cop_roots *r, const char *path, size_t len);
/* Fills r->all with given, conda, home (if observed) and children, sorted bytewise, none below
 * another. -ENOMEM. */
int cop_walk_roots_minimize(struct cop_roots *r);
/* The index in r->all of the root at or above path; -1 if there is none. */
ssize_t cop_walk_roots_above(const struct cop_roots *r, const char *path, size_t len);

/* Whether path is root or below it; root is normalized. */
bool cop_walk_path_below(const char *path, size_t len, const char *root);
/* Whether path is absolute, with no ".", "..", empty components or trailing slash ("/" itself is
 * fine). */
bool cop_walk_path_is_normal(const char *path, size_t len);
/* Normalizes path lexically, relative to cwd, which is absolute: "a/.." is removed even if a is a
 * link. Returns NULL if out of memory. */
char *cop_walk_path_normal(const char *cwd, const char *path);

#endif
