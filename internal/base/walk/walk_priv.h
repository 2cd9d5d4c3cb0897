/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_BASE_WALK_PRIV_H
#define COP_BASE_WALK_PRIV_H

#include "base/walk/walk.h"

/* ---- mounts.c: places that are not entered ---- */

#define MOUNTS_MAX 4096u
struct mounts {
	char **path; /* where a pseudo file system or Copper is mounted */
	size_t n;
};
/* A cop_mount_visit for a struct mounts. -ENOMEM. */
int cop_walk_mounts_add(void *m, const char *dir, const char *type);
/* Loads the mounts of this process; none if they cannot be read. */
int cop_walk_mounts_load(struct mounts *m);
void cop_walk_mounts_free(struct mounts *m);
/* The first: whether some of them are in the directory dir; the second: whether dir/name is one. */
bool cop_walk_mounts_in(const struct mounts *m, const char *dir, size_t len);
bool cop_walk_mounts_is(
	const struct mounts *m, const char *dir, size_t dir_len, const char *name, size_t len);

/* ---- walk_dir.c: one directory, on one of the threads ---- */

struct walk_batch {
	struct cop_walk_dir *dir;
	uint32_t from, n; /* the entries whose attributes must be read; n 0: read the directory */
};
struct walk_root { /* in the order of top's entries */
	int fd;
	char *real; /* its path without links */
};

struct walk {
	const struct cop_walk_conf *conf;
	struct cop_walk_tree *tree;
	struct walk_root *root;
	struct mounts mounts;
	_Atomic uint64_t entries;
	pthread_mutex_t lock;
	pthread_cond_t more; /* there are more batches, or the walk has ended */
	pthread_cond_t over;
	struct walk_batch *batch;
	size_t batches, cap;
	unsigned running, idle; /* threads */
	bool no_openat2; /* an old kernel or a filter: paths are opened component by component */
	int rc;          /* the first failure, which ends the walk */
};
struct worker {
	struct walk *walk;
	struct cop_arena *arena;
	char *buffer; /* directory entries in the kernel's form */
	struct cop_walk_entry *entry;
	size_t n, cap;
	struct walk_batch *batch; /* new batches, to be handed over */
	size_t batches, batch_cap;
	uint64_t files, dirs, bytes, skipped;
	char path[8192];
};
/* Runs the batch and leaves new ones in worker.batch; -ENOMEM or -E2BIG ends the walk. */
int cop_walk_run(struct worker *w, const struct walk_batch *batch);
/* Records a directory that could not be read. */
void cop_walk_fault(struct walk *walk, struct cop_walk_dir *d, const char *path, int error);

#endif
