/* SPDX-License-Identifier: BSD-3-Clause */
/* kernelahead: puts what a manifest brought to this node into its own kernel before a program asks
 * for it: the names of directories and the pages of files. One thread walks this node's mount, one
 * small request at a time, as a program would; the kernel reads the pages, and none is copied. The
 * front end neither counts nor records these requests (cop_fuse_own_thread). They are only for what
 * the node has, wait while requests of programs wait, and end for good at a bound or when memory is
 * short.
 *
 * The mount has two sides, whose directories the kernel takes for different ones and whose files
 * for the same: the bare mount, and below it the root of views. Until a program has used one of
 * them, both are walked, views first because copper run makes one; then the side that is used.
 *
 * Nothing of the node waits for this thread, because the node itself has to answer it. */
#ifndef COP_MOUNT_KERNELAHEAD_H
#define COP_MOUNT_KERNELAHEAD_H

#include "base/base/base.h"

struct cop_kernelahead;

struct cop_kernelahead_conf {
	const char *mountpoint;
	const char *view;    /* the root of views in it */
	uint64_t most_bytes; /* of files; the bound */
	/* These are called by the thread, and not any more once cop_kernelahead_stop returns: at
	 * its begin, with its number; before each request, for the number of programs' requests
	 * that wait; and for whether programs have used the bare mount, and views. */
	void (*begin)(void *arg, uint32_t tid);
	uint64_t (*waiting)(void *arg);
	void (*used)(void *arg, bool *bare, bool *view);
	void *arg;
};

/* -ENOMEM, or the error of starting a thread. */
int cop_kernelahead_start(const struct cop_kernelahead_conf *conf, struct cop_kernelahead **out);
/* The node has these bytes of a file now. Any thread; never waits. */
void cop_kernelahead_file(
	struct cop_kernelahead *k, const char *path, uint64_t start, uint64_t end);
/* The node has the listing of this directory now. */
void cop_kernelahead_dir(struct cop_kernelahead *k, const char *path);
/* The node knows this name now, or that it is absent. */
void cop_kernelahead_name(struct cop_kernelahead *k, const char *path);
/* Ends the thread before the mount ends, and waits a moment for it, so that it does not hold the
 * mount. A thread that hangs in the mount is left to the end of the process. NULL is fine. */
void cop_kernelahead_stop(struct cop_kernelahead *k);

#endif
