/* SPDX-License-Identifier: BSD-3-Clause */
/* bypass: finds programs that use files of the source at its own path, past the mount, where FUSE
 * does not see them: a job script without copper run. Every COP_BYPASS_EVERY_MS it looks through
 * /proc at what the programs of its own user have mapped and open, counts the files and keeps one
 * example. It knows no mount, changes nothing, and judges nothing: advice does.
 *
 * A program is a process of the same real user that started after this process, of another
 * executable file. Counted are regular files below the source, each once, with their sizes, that
 * are open for reading only, or mapped but not to change them for others: what a job writes beside
 * its software is not Copper's. Of a program in a view of Copper (copper run) nothing counts,
 * because what such a view leaves to the storage was meant so (--direct, --below). A program in
 * another mount namespace may see something else at the same path, so of it only mapped files on
 * the source's own device count.
 *
 * What it cannot see: programs that do not run at any look, files that were read and closed again
 * between two of them, other users, processes in other pid namespaces (unless they are children of
 * this one), a program for which a shell that is older than the node made way (exec), and files of
 * the source under another path. It does not look at all where the source holds the system's own
 * programs (/ and /usr), because there every shell of the user is past the mount, of whatever job.
 *
 * A look reads at most 256 processes and 16,384 lines of /proc; the next one goes on from there.
 * Maps are read again only when a program has grown or shrunk, and processes that were there before
 * this one are asked when they began only in each eighth look. A look took 2 ms of a processor
 * where there were few programs, and 16 ms where there were 128 of 150 maps each: 0.02 and 0.16
 * percent of one processor. A process that ends meanwhile, or that may not be read, is skipped.
 *
 * A look may hang where the storage does. Nothing waits for it without a deadline. */
#ifndef COP_NODE_BYPASS_H
#define COP_NODE_BYPASS_H

#include "base/base/base.h"
#include "prof/stats/stats.h"

#define COP_BYPASS_EVERY_MS 10000u

struct cop_bypass_conf {
	const char *proc;                /* "/proc", or a test's directory of that form */
	const char *source, *mountpoint; /* absolute, without links; both are copied */
	unsigned every_ms;
	struct cop_stats *stats; /* gets the group past, and COP_EXAMPLE_PAST, until the stop */
};

struct cop_bypass;

/* Starts a thread that looks. The thread asks the storage for sizes and so may block on it. 0 with
 * *out NULL: the source holds the system's own programs. Else -errno. */
int cop_bypass_start(const struct cop_bypass_conf *conf, struct cop_bypass **out);
/* Any thread. Looks now, and returns when that is done, or after wait_ms, or when a look that was
 * under way already has taken wait_ms. NULL is fine. */
void cop_bypass_look(struct cop_bypass *p, unsigned wait_ms);
/* Waits for a look under way, but not for one that hangs: its thread is left behind, counts nothing
 * any more, and frees the object if it ever ends. NULL is fine. */
void cop_bypass_stop(struct cop_bypass *p);

#endif
