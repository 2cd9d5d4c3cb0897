/* SPDX-License-Identifier: BSD-3-Clause */
/* kernelahead: populates this node's kernel caches from a manifest before a program needs the
 * data: directory names and file pages. One thread walks the mount with one small request at a
 * time, like a program; the kernel reads the pages without a copy. The front end neither counts
 * nor records these requests (cop_fuse_own_thread). They are limited to data already on the
 * node, pause while programs' requests wait, and stop for good at a limit or when memory is
 * short.
 *
 * The mount has two sides, with separate directories and shared files in the kernel: the bare
 * mount, and below it the root of views. Until a program has used one of them, both are walked,
 * views first because copper run creates one; then only the used side.
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
	/* Called by the thread, until cop_kernelahead_stop returns: at its start, with its tid;
	 * before each request, for the number of programs' waiting requests; and for whether
	 * programs have used the bare mount, and views. */
	void (*begin)(void *arg, uint32_t tid);
	uint64_t (*waiting)(void *arg);
	void (*used)(void *arg, bool *bare, bool *view);
	void *arg;
};

/* -ENOMEM, or the error of starting a thread. */
int cop_kernelahead_start(const struct cop_kernelahead_conf *conf, struct cop_kernelahead **out);
/* The node now has these bytes of a file. Any thread; never blocks. */
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
