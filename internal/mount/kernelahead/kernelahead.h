/* SPDX-License-Identifier: BSD-3-Clause */
/* kernelahead: puts what a manifest brought to this node into its own kernel before a program asks
 * for it: the names of directories and the pages of files. One thread walks this node's mount, one
 * small request at a time, as a program would; the front end neither counts nor records its
 * requests (cop_fuse_own_thread). It reads only what the node has, waits while requests of programs
 * wait, and ends for good at a bound or when memory is short.
 *
 * Nothing of the node waits for this thread, because the node itself has to answer it. */
#ifndef COP_MOUNT_KERNELAHEAD_H
#define COP_MOUNT_KERNELAHEAD_H

#include "base/base/base.h"

struct cop_kernelahead;

struct cop_kernelahead_conf {
	const char *mountpoint;
	uint64_t most_bytes; /* of files; the bound */
	/* Both are called by the thread, and not any more once cop_kernelahead_stop returns: at its
	 * begin, with its number; and before each request, for the number of programs' requests
	 * that wait. */
	void (*begin)(void *arg, uint32_t tid);
	uint64_t (*waiting)(void *arg);
	void *arg;
};

/* -ENOMEM, or the error of starting a thread. */
int cop_kernelahead_start(const struct cop_kernelahead_conf *conf, struct cop_kernelahead **out);
/* The node has these bytes of a file now. Any thread; never waits. */
void cop_kernelahead_file(
	struct cop_kernelahead *k, const char *path, uint64_t start, uint64_t end);
/* The node has the listing of this directory now. */
void cop_kernelahead_dir(struct cop_kernelahead *k, const char *path);
/* Ends the thread before the mount ends, and waits a moment for it, so that it does not hold the
 * mount. A thread that hangs in the mount is left to the end of the process. NULL is fine. */
void cop_kernelahead_stop(struct cop_kernelahead *k);

#endif
