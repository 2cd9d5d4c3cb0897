/* SPDX-License-Identifier: BSD-3-Clause */
/* run.c calls start.c, which calls the others: net.c, leave.c, join.c, part.c and control.c do not
 * know each other, and the last two call record.c; each may call self.c, which calls none.
 *
 * Threads: the main thread starts and stops everything and sleeps in between; what other nodes ask
 * for runs on fabric's progress thread; control commands come on the ctl thread. There is no lock:
 * what may be asked for by several threads has one of its own, in its module, or is atomic. */
#ifndef COP_NODE_PRIV_H
#define COP_NODE_PRIV_H

#include <inttypes.h>
#include <stdatomic.h>

#include "cache/cache.h"
#include "command/command.h"
#include "coop/coop.h"
#include "ctl/ctl.h"
#include "defer/defer.h"
#include "fs/fs.h"
#include "gate/gate.h"
#include "job/job.h"
#include "join/join.h"
#include "log/log.h"
#include "node/node.h"
#include "origin/origin.h"
#include "outcome/outcome.h"
#include "prefetch/prefetch.h"
#include "prof/prof.h"
#include "reach/reach.h"
#include "rpc/rpc.h"
#include "stats/stats.h"
#include "status/status.h"
#include "tally/tally.h"
#include "topo/topo.h"
#include "treeop/treeop.h"

#define STOP_GRACE_MS 2000
/* A node that was stopped a moment ago has unmounted, and may not have closed its sockets yet. */
#define COP_NODE_FREE_MS 3000

struct cop_node {
	const struct cop_conf *conf;
	struct cop_place *place;
	char mountpoint[4096], source[4096], job_dir[4096]; /* absolute */
	struct cop_job_hosts hosts;
	struct cop_job_secret secret;
	struct cop_wire_secret wire_secret;
	uint64_t config_hash; /* what all nodes of the tree have in common */
	uint32_t rank;
	struct cop_topo topo;
	uint64_t cache_bytes, started_ns;
	char cache_note[COP_CACHE_NOTE_SIZE]; /* why that is less than the user asked for, or "" */
	struct cop_stats stats;
	struct cop_tally *tally;
	struct cop_prefetch_manifest *manifest; /* rank 0, if it is to prefetch; or NULL */
	struct cop_prefetch *_Atomic prefetch;  /* NULL: nobody asked for it, or it has not begun */
	struct cop_cache *cache;
	struct cop_origin *origin;
	struct cop_rpc *rpc;
	struct cop_reach *reach; /* NULL: this node is alone */
	struct cop_gate gate;
	struct cop_coop *_Atomic
		coop; /* requests may come before it is there; the gate is open when it is */
	struct cop_fs *_Atomic fs; /* commands may come before it is mounted */
	_Atomic bool forgot_early; /* a path was invalidated before there was a kernel to tell */
	char tree[COP_REACH_TREE_SIZE]; /* its name, as commands know it; "-": a node alone */
	struct cop_command *commands;
	struct cop_ctl *ctl;
	pid_t last_pid; /* the process with whose end all of this node is gone */
	int wake_fd;    /* eventfd of the main thread */
	int signal_fd;
	int view_ns; /* the user namespace of this node's views; -1: they need none */

	int report_fd; /* whoever started this node listens there until it is ready; -1: nobody */
	struct cop_join *join; /* NULL: the start has not come so far */
	bool logging;
	struct cop_treeop *treeop;
	struct cop_defer deferred; /* for the main thread */
	bool left_dead; /* the kernel has cut the connection, and the mount is still there */
	_Atomic bool stopping;
};

/* ---- start.c ---- */
int cop_node_start(struct cop_node *n, struct cop_err *err);
void cop_node_stop(struct cop_node *n);

/* ---- net.c ---- */
int cop_node_open_rpc(struct cop_node *n, struct cop_err *err);
int cop_node_open_rendezvous(struct cop_node *n, struct cop_err *err);

/* ---- leave.c ---- */
/* Main thread, when the gate is closed and coop, too: everyone who waits for something of this node
 * is answered. When it returns nothing is under way any more that could touch what is freed next.
 */
void cop_node_leave(struct cop_node *n);

/* ---- join.c ---- */
int cop_node_join_open(struct cop_node *n, struct cop_err *err);
/* By what this start is interrupted, in words that follow a name; NULL: by nothing yet. */
const char *cop_node_interrupted(const struct cop_node *n);
/* Main thread: this node is ready; returns when the barrier has ended: 0 the tree is ready, -EINTR,
 * -ETIMEDOUT with a sentence. */
int cop_node_join_wait(struct cop_node *n, struct cop_err *err);
/* Main thread, then: returns when each below that came knows it, or is gone, or has not said so in
 * time. */
void cop_node_tell_below(struct cop_node *n);

/* ---- part.c: this node's part of an operation on the tree ---- */
int cop_node_treeop_start(struct cop_node *n, struct cop_err *err);
/* Any thread; ctx is the node. Forgets a path and what is below it, also in the kernel. 0: then is
 * called once; -ENOMEM: the kernel could not be told. */
int cop_node_forget(void *ctx, const char *path, void (*then)(void *arg), void *arg);

/* ---- control.c: the control socket ---- */
int cop_node_control_start(struct cop_node *n, struct cop_err *err);

/* ---- record.c: the tree, as the job directory keeps it ---- */
/* Main thread: what a guest needs to know of the tree. The root: when it forms (stopped NULL), and
 * what a stop of all has come to; where the root is dead, the node that was asked for that. Nothing
 * if more are missing than are named. */
void cop_node_write_tree(struct cop_node *n, const struct cop_treeop_sum *stopped);
/* Main thread. For a stop that comes later: nothing is left to do for it, or these ranks. Without
 * the secret it could not stop them. */
void cop_node_keep_word(struct cop_node *n, const struct cop_treeop_sum *all);

/* ---- self.c: what a node knows of itself ---- */
/* Any thread. Its argument is a struct cop_node. */
void cop_node_wake(void *node);
const char *cop_node_host(const struct cop_node *n, uint32_t rank);
/* What it says of itself at this moment. */
struct cop_status cop_node_status(struct cop_node *n);
/* How the files of the job name it. */
struct cop_tally_job cop_node_tally_job(const struct cop_node *n);
/* Where n's socket is, and what its name is made from; needs the hosts and the mount point. */
int cop_node_socket(const struct cop_node *n, char path[COP_CTL_PATH_SIZE],
	char key[COP_CTL_KEY_MAX + 1], struct cop_err *err);

#endif
