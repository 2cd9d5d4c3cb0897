/* SPDX-License-Identifier: BSD-3-Clause */
/* What is below some directories, read once, by a few threads, since on a parallel file system each
 * operation waits. Symbolic links are entries and are never followed, except in the name of a root.
 * Pseudo file systems and mounts of Copper below a root are entries and are not entered.
 * Directories that cannot be read are counted and the first ones named.
 *
 * Locks: struct walk has one, over the stack of tasks and the end. A directory belongs to the
 * thread that reads it until its task is done; what its tasks leave in it is seen by others only
 * through that lock. After the walk nothing is shared. */
#ifndef COP_REPORT_WALK_PRIV_H
#define COP_REPORT_WALK_PRIV_H

#include <stdatomic.h>

#include "base/base.h"

#define WALK_ENTRIES_MAX ((uint64_t)1 << 26)
#define WALK_NAMED 20u /* unreadable directories that are named */

struct walk_dir;

enum walk_flags {
	WALK_USED = 1, /* the job asked for it */
	WALK_KEEP = 2, /* or something that the job asked for needs it */
};

struct walk_entry {
	const char *name;     /* of a root: its whole path */
	struct walk_dir *dir; /* NULL: not a directory */
	uint64_t size;        /* of a regular file, if sizes were asked for */
	uint16_t len;
	uint8_t type;  /* DT_REG, DT_DIR, DT_LNK, …; DT_UNKNOWN: it went away meanwhile */
	uint8_t flags; /* the owner's */
};

enum walk_state {
	WALK_READ,    /* entry[] is all that is in it */
	WALK_FAILED,  /* error says why */
	WALK_SKIPPED, /* a pseudo file system, or a mount of Copper */
};

struct walk_dir {
	struct walk_dir *parent;  /* NULL: the one above the roots */
	struct walk_entry *entry; /* in order of bytes of the name */
	uint32_t n, in_parent;    /* parent->entry[in_parent] is this */
	enum walk_state state;
	int error;
	_Atomic uint32_t tasks; /* that need fd */
	int fd;
};

/* Memory that goes all at once. */
struct arena_block;
struct arena {
	struct arena_block *block;
	size_t used, size; /* of the block */
	uint64_t bytes;    /* given out */
};
void *cop_report_arena_alloc(struct arena *a, size_t bytes);
/* A copy with a NUL after it. */
char *cop_report_arena_copy(struct arena *a, const char *text, size_t len);
void cop_report_arena_free(struct arena *a);

struct walk_fault {
	char *path;
	int error;
};

struct walk_tree {
	struct walk_dir top; /* its entries are the roots, as they were given; type 0 and no dir: it
				is not there */
	uint64_t files, dirs; /* files: whatever is not a directory */
	uint64_t bytes;       /* of regular files, each name counted */
	uint64_t unreadable, skipped;
	struct walk_fault fault[WALK_NAMED];
	unsigned faults;
	struct arena *arena; /* one for each thread */
	unsigned arenas;
};

struct walk_conf {
	const char *const *root; /* normal paths in order of bytes, none below another */
	size_t roots;
	bool sizes;
	unsigned threads;     /* 0: as many as are good */
	uint64_t max_entries; /* 0: WALK_ENTRIES_MAX */
	bool no_openat2;      /* as if the kernel lacked it */
	/* Every so often while it runs, on the caller's thread; may be NULL. */
	void (*tick)(void *arg, uint64_t entries);
	void *arg;
};

/* -E2BIG with a sentence if there is more than max_entries; -ENOMEM. A root that is not there or
 * cannot be read is no error. */
int cop_report_walk(const struct walk_conf *conf, struct walk_tree **out, struct cop_err *err);
void cop_report_tree_free(struct walk_tree *t);

/* ---- tree.c ---- */

/* The entry of that name, or NULL. */
struct walk_entry *cop_report_dir_find(const struct walk_dir *d, const char *name, size_t len);
/* The entry of a normal path at or below a root, without following links. Where there is none,
 * *absent (may be NULL) says whether the tree proves that nothing is there: the directory that
 * would hold it was read. */
struct walk_entry *cop_report_tree_find(
	const struct walk_tree *t, const char *path, size_t len, bool *absent);
/* The root's entry, and how many bytes of path it takes up; NULL if path is below none. */
struct walk_entry *cop_report_tree_root(
	const struct walk_tree *t, const char *path, size_t len, size_t *taken);

/* All entries in the order of the bytes of their whole paths; path is NUL-terminated until the next
 * call. Not 0 ends it. */
typedef int walk_visit(void *arg, const struct walk_entry *e, const char *path, size_t len);
int cop_report_tree_each(const struct walk_tree *t, walk_visit *visit, void *arg);

/* ---- mounts.c: places that are not entered ---- */

#define MOUNTS_MAX 4096u
struct mounts {
	char **path; /* where a pseudo file system or Copper is mounted */
	size_t n;
};
/* A cop_mount_visit for a struct mounts. -ENOMEM. */
int cop_report_mounts_add(void *m, const char *dir, const char *type);
/* Those of this process; nothing if they cannot be read. */
int cop_report_mounts_load(struct mounts *m);
void cop_report_mounts_free(struct mounts *m);
/* Whether some of them stand in the directory dir, and whether dir/name is one. */
bool cop_report_mounts_in(const struct mounts *m, const char *dir, size_t len);
bool cop_report_mounts_is(
	const struct mounts *m, const char *dir, size_t dir_len, const char *name, size_t len);

/* ---- walk_dir.c: one directory, on one of the threads ---- */

struct walk_task {
	struct walk_dir *dir;
	uint32_t from, n; /* entries whose attributes are to be read; n 0: read the directory */
};
struct walk_root { /* in the order of top's entries */
	int fd;
	char *real; /* its path without links */
};

struct walk {
	const struct walk_conf *conf;
	struct walk_tree *tree;
	struct walk_root *root;
	struct mounts mounts;
	_Atomic uint64_t entries;
	pthread_mutex_t lock;
	pthread_cond_t more; /* tasks, or the end */
	pthread_cond_t over;
	struct walk_task *task;
	size_t tasks, cap;
	unsigned running, idle; /* threads */
	bool no_openat2;        /* an old kernel or a filter: component by component */
	int rc;                 /* the first failure ends it */
};
struct worker {
	struct walk *walk;
	struct arena *arena;
	char *buffer; /* directory entries as the kernel gives them */
	struct walk_entry *entry;
	size_t n, cap;
	struct walk_task *task; /* to be handed over */
	size_t tasks, task_cap;
	uint64_t files, dirs, bytes, skipped;
	char path[8192];
};
/* Does the task and leaves new ones in worker.task; -ENOMEM or -E2BIG ends the walk. */
int cop_report_walk_do(struct worker *w, const struct walk_task *task);
/* Remembers a directory that could not be read. */
void cop_report_walk_fault(struct walk *walk, struct walk_dir *d, const char *path, int error);

#endif
