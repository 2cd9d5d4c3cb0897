/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_BASE_WALK_PRIV_H
#define COP_BASE_WALK_PRIV_H

#include "base/walk/walk.h"

/* ---- mounts.c: directories not entered ---- */

#define MOUNTS_MAX 4096u
struct mounts {
	char **path; /* mount points of pseudo file systems or Copper */
	size_t n;
};
/* A cop_mount_visit whose arg is a struct mounts. -ENOMEM. */
int cop_walk_mounts_add(void *m, const char *dir, const char *type);
/* Loads the mounts of this process; leaves m empty if they cannot be read. */
int cop_walk_mounts_load(struct mounts *m);
void cop_walk_mounts_free(struct mounts *m);
/* _in: whether the directory dir contains one of the mount points; _is: whether dir/name is one. */
bool cop_walk_mounts_in(const struct mounts *m, const char *dir, size_t len);
bool cop_walk_mounts_is(
	const struct mounts *m, const char *dir, size_t dir_len, const char *name, size_t len);

/* ---- walk_dir.c: reading one directory, on a worker thread ---- */

struct walk_batch {
	struct cop_walk_dir *dir;
	uint32_t from,
		n; /* entries whose attributes are still missing; n == 0: read the directory */
};
struct walk_root { /* in the order of top's entries */
	int fd;
	char *real; /* its path with links resolved */
};

struct walk {
	const struct cop_walk_conf *conf;
	struct cop_walk_tree *tree;
	struct walk_root *root;
	struct mounts mounts;
	_Atomic uint64_t entries;
	pthread_mutex_t lock;
	pthread_cond_t more; /* more batches are available, or the walk has ended */
	pthread_cond_t over;
	struct walk_batch *batch;
	size_t batches, cap;
	unsigned running, idle; /* threads */
	bool no_openat2;        /* old kernel or a filter: open paths component by component */
	int rc;                 /* the first failure, which ends the walk */
};
struct worker {
	struct walk *walk;
	struct cop_arena *arena;
	char *buffer; /* directory entries in the kernel's format */
	struct cop_walk_entry *entry;
	size_t n, cap;
	struct walk_batch *batch; /* new batches, not yet on the shared stack */
	size_t batches, batch_cap;
	uint64_t files, dirs, bytes, skipped;
	char path[8192];
};
/* Processes the batch and leaves any new batches in w->batch; -ENOMEM or -E2BIG ends the walk. */
int cop_walk_run(struct worker *w, const struct walk_batch *batch);
/* Records an unreadable directory. */
void cop_walk_fault(struct walk *walk, struct cop_walk_dir *d, const char *path, int error);

#endif
