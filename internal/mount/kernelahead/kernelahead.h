/* SPDX-License-Identifier: BSD-3-Clause */
/* kernelahead: populates this node's kernel caches from a manifest before a program needs the data:
 * directory names and file pages. One thread walks the mount like a program, one small request at a
 * time; the kernel reads the pages without copying them to this thread. The front end neither
 * records these requests nor counts them as a program's (cop_fuse_own_thread). The thread requests
 * only data already on the node, pauses while programs' requests wait, and stops for good at a
 * limit or when memory is short.
 *
 * The mount has two sides, the bare mount and, below it, the root of views; in the kernel their
 * directories are separate and their files shared. Until a program has used one of them, the thread
 * walks both, views first because copper run creates one; after that, only the side in use.
 *
 * The node never waits for this thread, because the node itself has to answer its requests. */
#ifndef COP_MOUNT_KERNELAHEAD_H
#define COP_MOUNT_KERNELAHEAD_H

#include "base/base/base.h"

struct cop_kernelahead;

struct cop_kernelahead_conf {
	const char *mountpoint;
	const char *view;    /* the root of views in the mount */
	uint64_t most_bytes; /* of file data; the limit */
	/* The thread calls these until cop_kernelahead_stop returns: begin at its start, with its
	 * tid; waiting before each request, for the number of programs' waiting requests; used, for
	 * whether programs have used the bare mount, and views. */
	void (*begin)(void *arg, uint32_t tid);
	uint64_t (*waiting)(void *arg);
	void (*used)(void *arg, bool *bare, bool *view);
	void *arg;
};

/* -ENOMEM, or the error of starting a thread. */
int cop_kernelahead_start(const struct cop_kernelahead_conf *conf, struct cop_kernelahead **out);
/* Any thread; these three never block. The node now has these bytes of a file. */
void cop_kernelahead_file(
	struct cop_kernelahead *k, const char *path, uint64_t start, uint64_t end);
/* The node now has the listing of this directory. */
void cop_kernelahead_dir(struct cop_kernelahead *k, const char *path);
/* The node now has this name, or its absence. */
void cop_kernelahead_name(struct cop_kernelahead *k, const char *path);
/* Stops the thread before the unmount, and waits briefly for it to release the mount. A thread
 * hanging in the mount remains until the process exits. NULL is fine. */
void cop_kernelahead_stop(struct cop_kernelahead *k);

#endif
