/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads: the main thread starts and stops everything and sleeps in between; join, gather and
 * serve run on fabric's progress thread; control commands come on the ctl thread. `lock` guards the
 * readiness state and the reasons to end; nothing is called under it. */
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
#include "log/log.h"
#include "node/node.h"
#include "origin/origin.h"
#include "outcome/outcome.h"
#include "prefetch/prefetch.h"
#include "prof/prof.h"
#include "rpc/rpc.h"
#include "stats/stats.h"
#include "status/status.h"
#include "tally/tally.h"
#include "topo/topo.h"
#include "treeop/treeop.h"

/* rpc operations of this module; coop's are below them, treeop's among them. */
enum {
	OP_READY =
		32, /* ranks that are ready below and including the sender, with their addresses */
	OP_GO,      /* answered when the tree is ready (0) or will not be (-ETIMEDOUT, body: why) */
	OP_STATE,   /* is the tree ready already? 0 or -EAGAIN; for a root that was restarted */
	OP_TOLD = COP_TREEOP_RESET + 1, /* from the parent: what became of the start (payload);
		     answered when this node knows */
};

#define STOP_GRACE_MS 2000
/* A node that was stopped a moment ago has unmounted, and may not have closed its sockets yet. */
#define COP_NODE_FREE_MS 3000
#define MISSING_NAMED 16

struct cop_node {
	const struct cop_conf *conf;
	struct cop_place *place;
	char mountpoint[4096], source[4096], job_dir[4096]; /* absolute */
	struct cop_job_hosts hosts;
	char **book; /* address per rank, or NULL */
	struct cop_job_secret secret;
	struct cop_wire_secret wire_secret;
	uint64_t terms; /* what all nodes of the tree have in common */
	uint32_t rank;
	struct cop_topo topo;
	uint64_t cache_bytes, started_ns;
	char cache_note[COP_CACHE_NOTE_SIZE]; /* why that is less than the user asked for, or "" */
	struct cop_stats stats;
	struct cop_tally *tally;
	struct cop_manifest_set *record; /* what this node needed, for the next manifest; or NULL */
	struct cop_buf manifest;         /* rank 0: what was given, whole */
	size_t manifest_body;            /* where its items begin */
	struct cop_prefetch *_Atomic prefetch; /* NULL: nobody asked for it, or it has not begun */
	struct cop_cache *cache;
	struct cop_origin *origin;
	struct cop_rpc *rpc;
	struct cop_rendezvous
		*_Atomic rendezvous; /* the progress thread may look for it before it is there */
	struct cop_gate gate;
	struct cop_coop *_Atomic
		coop; /* requests may come before it is there; the gate is open when it is */
	struct cop_fs *_Atomic fs; /* commands may come before it is mounted */
	_Atomic bool forgot_early; /* a path was invalidated before there was a kernel to tell */
	char tree[COP_NODE_TREE_SIZE]; /* its name, as commands know it; "-": a node alone */
	struct cop_command *commands;
	struct cop_ctl *ctl;
	struct guest *guest; /* not NULL: this is no node of the tree, but a command that speaks
				with it */
	pid_t last_pid;      /* the process with whose end all of this node is gone */
	int wake_fd;         /* eventfd of the main thread */
	int signal_fd;

	pthread_mutex_t lock;
	uint8_t *ready_rank;  /* root: one byte per rank */
	char **ready_address; /* root: as the nodes told them */
	char **ready_networks;
	uint32_t ready_count;
	bool books_written; /* root, main thread: at least once */
	bool books_old;     /* root: a node was started again, elsewhere */
	bool ready, aborted, logging;
	_Atomic bool
		no_news; /* why it does not start is nothing that the others should hear from it */
	struct cop_outcome_watch others; /* who could not start */
	char abort_text[1024];
	struct cop_list go_waiters;  /* requests to answer when it is settled */
	struct cop_list ready_queue; /* ranks still to be told to the parent */
	bool ready_sending, go_sending;
	/* told.c: the nodes below, in the order of cop_topo_children. */
	struct below {
		struct cop_node *node;
		bool came, answered;  /* it said that it is ready or asked for the go; which it has
					 got here */
		_Atomic bool unheard; /* it was told, and has not answered */
	} below[COP_TOPO_MAX_FANOUT];
	uint32_t go_rank; /* the ancestor that is asked for the go: the parent, or above it when
			     that is dead */
	int report_fd; /* whoever started this node listens there until it is ready; -1: nobody */
	char trouble[640];    /* why the parent was not reached */
	char no_address[400]; /* what became of the question for its address, where it has none */
	struct cop_treeop *treeop;
	struct cop_defer deferred; /* for the main thread */
	bool left_dead; /* the kernel has cut the connection, and the mount is still there */
	_Atomic bool stopping;
};

/* Any thread. Its argument is a struct cop_node. */
void cop_node_wake(void *node);
const char *cop_node_host(const struct cop_node *n, uint32_t rank);

/* ---- start.c ---- */
int cop_node_start(struct cop_node *n, struct cop_err *err);
/* A step of it that changes nothing: the hosts and which of them this is. */
int cop_node_find_hosts(struct cop_node *n, struct cop_err *err);
void cop_node_stop(struct cop_node *n);

/* ---- net.c ---- */
/* Ranks after those of the nodes, for commands that speak with a tree and are none of its nodes. */
#define NODE_GUESTS 64
int cop_node_open_rpc(struct cop_node *n, struct cop_err *err);
/* The same with n's terms and book, at this host or this address of it. */
int cop_node_open_network(
	struct cop_node *n, const char *host, const char *address, struct cop_err *err);

/* ---- guest.c ---- */
struct guest;
/* The address of a rank was asked for; it was found, or not. */
void cop_node_guest_looked(struct cop_node *n, uint32_t rank, bool found);

/* ---- gone.c ---- */
#define COP_NODE_GONE_WHY 200
struct sockaddr_in;
struct cop_node_gone {
	uint32_t rank;
	uint64_t deadline_ms;
	bool others; /* nodes of the tree were reached, by this stop or the last one */
	bool again;  /* the last one did not reach this rank */
};
/* An IPv4 address of a host, by its name or in figures. */
bool cop_node_address_of(const char *name, struct sockaddr_in *out);
/* Whether the rank is known not to run; why says so, or why not. Waits for a second at most. */
bool cop_node_is_gone(
	const struct cop_node *n, const struct cop_node_gone *ask, char why[COP_NODE_GONE_WHY]);

/* ---- leave.c ---- */
/* Main thread, when the gate is closed and coop, too: everyone who waits for something of this node
 * is answered. When it returns nothing is under way any more that could touch what is freed next.
 */
void cop_node_leave(struct cop_node *n);

/* ---- join.c ---- */
int cop_node_join_init(struct cop_node *n);
void cop_node_join_fini(struct cop_node *n);
/* Tells the parent that this node is ready and asks for the go. */
void cop_node_join(struct cop_node *n);
/* By what this start is interrupted, in words that follow a name; NULL: by nothing yet. */
const char *cop_node_interrupted(const struct cop_node *n);
/* Something to do for readiness now and then, on the main thread; returns when the wait is over: 1
 * ready, -errno. */
int cop_node_join_wait(struct cop_node *n, struct cop_err *err);

/* ---- ready.c: readiness, on its way up ---- */
/* This node is ready; at the root that may complete the tree, for which the main thread is woken.
 */
void cop_node_ready_begin(struct cop_node *n);
void cop_node_ready_fini(struct cop_node *n);
/* Tells the parent of the ranks that it was not told of, one message at a time; again after a
 * failure. */
void cop_node_ready_send(struct cop_node *n);
void cop_node_serve_ready(struct cop_node *n, struct cop_rpc_req *req);

/* ---- go.c: the go, on its way down ---- */
/* This node ends: who still waits for the go asks above it. */
void cop_node_go_leave(struct cop_node *n);
void cop_node_go_fini(struct cop_node *n);
void cop_node_settle(struct cop_node *n, bool ready, const char *why);
/* Asks the next one above that answers, if no question is under way. */
void cop_node_ask_go(struct cop_node *n);
/* Whether the tree is ready already: of this node's and the root's children; of those of one rank.
 */
void cop_node_ask_state(struct cop_node *n);
void cop_node_ask_children(struct cop_node *n, uint32_t rank);
/* Why the one above was not reached, for the log and for what is said in the end. The lock is held.
 */
void cop_node_trouble(struct cop_node *n, uint32_t above, int status);
/* Who was started with other options, so that nothing is asked of it nor served to it. While the
 * tree forms that ends the matter. */
void cop_node_differs(void *n, uint32_t rank);
void cop_node_serve_go(struct cop_node *n, struct cop_rpc_req *req);
void cop_node_serve_state(struct cop_node *n, struct cop_rpc_req *req);

/* ---- told.c: what became of the start, said to those below ---- */
/* This rank, if it stands right below this node, waits for this start; answered: and the answer to
 * its question for the go is known. The lock is held. */
void cop_node_came(struct cop_node *n, uint32_t rank, bool answered);
/* Main thread, when it is settled: returns when each that came knows it, or is gone, or has not
 * said so in time. */
void cop_node_tell_below(struct cop_node *n);
void cop_node_serve_told(struct cop_node *n, struct cop_rpc_req *req);

/* ---- meet.c ---- */
int cop_node_open_rendezvous(struct cop_node *n, struct cop_err *err);
/* The same for who only asks, at this address of the machine. */
int cop_node_open_asking(struct cop_node *n, const char *address, struct cop_err *err);

/* ---- failure.c: nodes that could not start, as the job directory tells ---- */
/* Main thread; looks every second. Whether another failed for which this one waits. */
bool cop_node_failure_heard(struct cop_node *n, char why[COP_OUTCOME_WHY_SIZE]);

/* ---- books.c: address books ---- */
int cop_node_load_book(struct cop_node *n, struct cop_err *err);
/* Root, main thread, when everyone is ready and when one was started again: the hosts, their
 * addresses and where those came from, into the job directory. */
void cop_node_write_books(struct cop_node *n);
/* Main thread: what a guest needs to know of the tree. The root: when it forms (stopped NULL), and
 * what a stop of all has come to; where the root is dead, the node that was asked for that. Nothing
 * if more are missing than are named. */
void cop_node_write_tree(struct cop_node *n, const struct cop_treeop_sum *stopped);

/* How the files of the job name it. */
struct cop_tally_job cop_node_tally_job(const struct cop_node *n);
int cop_node_tally_start(struct cop_node *n, struct cop_err *err);

/* ---- part.c: this node's part of an operation on the tree ---- */
int cop_node_treeop_start(struct cop_node *n, struct cop_err *err);
/* Any thread; ctx is the node. Forgets a path and what is below it, also in the kernel. 0: then is
 * called once; -ENOMEM: the kernel could not be told. */
int cop_node_forget(void *ctx, const char *path, void (*then)(void *arg), void *arg);
/* Main thread. For a stop that comes later: nothing is left to do for it, or these ranks. Without
 * the secret it could not stop them. */
void cop_node_keep_word(struct cop_node *n, const struct cop_treeop_sum *all);

/* ---- control.c: the control socket ---- */
/* Where n's socket is, and what its name is made from; needs the hosts and the mount point. */
int cop_node_socket(const struct cop_node *n, char path[COP_CTL_PATH_SIZE],
	char key[COP_CTL_KEY_MAX + 1], struct cop_err *err);
int cop_node_control_start(struct cop_node *n, struct cop_err *err);
/* What it says of itself at this moment. */
struct cop_status cop_node_status(struct cop_node *n);
/* What only the nodes of one tree have in common. */
void cop_node_tree_name(const struct cop_node *n, char out[COP_NODE_TREE_SIZE]);

/* ---- prefetch.c ---- */
/* Reads the manifest, if this is rank 0 and there is one. -errno with a sentence if the user named
 * a file that cannot be read. */
int cop_node_prefetch_load(struct cop_node *n, struct cop_err *err);
/* What coop asks rank 0 for. */
int cop_node_prefetch_piece(void *ctx, uint64_t index, void **data, size_t *len);
/* The tree is ready: begins. */
void cop_node_prefetch_start(struct cop_node *n);
/* Nothing was left to record: with --prefetch auto the manifest becomes that of this job. */
void cop_node_prefetch_save(struct cop_node *n);
void cop_node_prefetch_free(struct cop_node *n);

#endif
