/* SPDX-License-Identifier: BSD-3-Clause */
/* bypass: finds programs that access the source at its own path, bypassing the mount and FUSE, e.g.
 * from a job script without copper run. Every COP_BYPASS_EVERY_MS it scans /proc for the mapped and
 * open files of its user's programs, counts these files and keeps one example. It does not depend
 * on the mount and changes nothing; advice interprets the counts.
 *
 * A program is a process of the same real user that started after this process and runs another
 * executable. It counts regular files below the source, each once, with their sizes, if they are
 * open for reading only or mapped without shared write access: files that a job writes next to its
 * software are out of scope. Programs in a view (copper run) are excluded, because they bypass the
 * mount on purpose (--direct, --below). A program in another mount namespace may see different
 * files at the same path, so only its mapped files on the source's device count.
 *
 * It misses programs that start and exit between two scans, files opened and closed between two
 * scans, other users, processes in other pid namespaces (unless they are children of this one), a
 * program started by exec in a shell older than the node, and files of the source under another
 * path. It does not run if the source contains the system's programs (/ and /usr), because then
 * every shell of the user bypasses the mount.
 *
 * A scan reads at most 256 processes and 16,384 lines of /proc; the next scan continues from there.
 * Maps are reread only after a program has grown or shrunk, and the start times of processes older
 * than this one only on every eighth scan. Measured CPU time per scan: 2 ms with few programs, 16
 * ms with 128 programs of 150 maps each: 0.02 and 0.16 percent of one processor. Processes that
 * exit during the scan or are unreadable are skipped.
 *
 * If the storage hangs, a scan may hang too, so every wait for one has a deadline. */
#ifndef COP_NODE_BYPASS_H
#define COP_NODE_BYPASS_H

#include "base/base/base.h"
#include "prof/stats/stats.h"

#define COP_BYPASS_EVERY_MS 10000u

struct cop_bypass_conf {
	const char *proc;                /* "/proc", or a test directory with the same layout */
	const char *source, *mountpoint; /* absolute, no symlinks; both are copied */
	unsigned every_ms;
	struct cop_stats *stats; /* receives the group past and COP_EXAMPLE_PAST, until the stop */
};

struct cop_bypass;

/* Starts the scanning thread. It requests file sizes from the storage and may block there. 0 with
 * *out NULL: the source contains the system's programs. Else -errno. */
int cop_bypass_start(const struct cop_bypass_conf *conf, struct cop_bypass **out);
/* Any thread. Scans now. Returns when the scan is finished, after wait_ms, or as soon as a scan
 * already in progress has taken wait_ms. NULL is fine. */
void cop_bypass_look(struct cop_bypass *p, unsigned wait_ms);
/* Waits for a scan in progress unless it hangs. In that case the thread is abandoned: it counts
 * nothing more, and frees the object if it ever ends. NULL is fine. */
void cop_bypass_stop(struct cop_bypass *p);

#endif
