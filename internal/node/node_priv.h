/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads: the main thread starts and stops everything and sleeps in between; join, gather and
 * serve run on fabric's progress thread; control commands come on the ctl thread. `lock` guards the
 * readiness state and the reasons to end; nothing is called under it. */
#ifndef COP_NODE_PRIV_H
#define COP_NODE_PRIV_H

#include <inttypes.h>
#include <stdatomic.h>

#include "cache/cache.h"
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
#include "topo/topo.h"

/* rpc operations of this module; coop's are below. */
enum {
	OP_READY =
		32, /* ranks that are ready below and including the sender, with their addresses */
	OP_GO,      /* answered when the tree is ready (0) or will not be (-ETIMEDOUT, body: why) */
	OP_STATE,   /* is the tree ready already? 0 or -EAGAIN; for a root that was restarted */
	OP_STOP,    /* stop the subtree, then yourself; the answer tells how many */
	OP_STATS,   /* the statistics of the subtree */
	OP_INVALIDATE, /* forget a path and what is below it (payload), first here, then in the
			  subtree */
	OP_TABLE,      /* the statistics of the subtree, a line for each node */
	OP_SNAPSHOT,   /* write the reports of this moment */
	OP_RESET, /* the same, and count from zero; the payload tells one command from another */
	OP_TOLD,  /* from the parent: what became of the start (payload); answered when this node
		     knows */
};

#define STOP_GRACE_MS 2000
/* A node that was stopped a moment ago has unmounted, and may not have closed its sockets yet. */
#define COP_NODE_FREE_MS 3000
#define MISSING_NAMED 16
/* How gather.c says it and guest.c reads it. */
#define NODE_SILENT_LINE "%s (rank %" PRIu32 ") did not answer"
#define ASKERS 16

/* What every node of a subtree is to do. */
struct task {
	uint8_t op;
	const char *path; /* OP_INVALIDATE: relative to the source; OP_RESET: of this one command;
			     else "" */
};

/* What a whole subtree answered. */
#define NODE_UNWRITTEN 384
struct gathered {
	uint32_t nodes;                 /* that have answered */
	uint32_t dead, refused, failed; /* that have not, by what became of it */
	uint32_t missing; /* these and, with those that failed, the nodes below them: nothing is
			     known of them */
	uint32_t lost[MISSING_NAMED]; /* the first of the missing ranks */
	uint32_t unwritten;           /* of nodes: those whose final files could not be written */
	char why_unwritten[NODE_UNWRITTEN]; /* "HOST: sentence" of one of them */
	uint32_t
		cut; /* of nodes: those whose part of the text was left out, since it did not fit */
	struct cop_stats stats;
	struct cop_cache_usage usage;
	struct cop_buf text; /* JSON objects with commas between; lines of a table, or sentences,
				with newlines */
	struct cop_prof_sum *prof; /* stop: what these nodes have counted; NULL: nothing */
};
/* ---- gathered.c ---- */
/* Bytes of a text: what a control socket carries in a reply, and a little room. */
#define COP_NODE_TEXT_MAX (COP_CTL_REPLY_MAX - 16 * COP_MIB)
void cop_node_gathered_free(struct gathered *g);
/* The final files of this node are not there, because of why. */
void cop_node_gathered_unwritten(struct gathered *g, const char *host, const char *why);
/* Then a line that says so, and of how many. */
void cop_node_gathered_say_unwritten(const struct gathered *g, struct cop_buf *out);
/* Adds from, whose text and prof are left to the caller; separator: what stands between two texts.
 */
void cop_node_gathered_add(struct gathered *into, const struct gathered *from, char separator);
/* One more rank is missing. */
void cop_node_gathered_lose(struct gathered *g, uint32_t rank);
/* The body of an answer, at most COP_RPC_BODY_MAX long, added to an empty out; and back into an
 * empty g, which is the caller's to free also then: -EBADMSG, -ENOMEM. */
int cop_node_gathered_encode(const struct gathered *g, struct cop_buf *out);
int cop_node_gathered_decode(const void *body, size_t len, struct gathered *g);

struct cop_node;

#define COP_NODE_RESET_NAME 64

struct cop_node {
	const struct cop_conf *conf;
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
	struct cop_prof *prof;           /* NULL: nobody asked for one */
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
	struct cop_list stop_requests; /* who wants to know that this node has stopped */
	struct gathered stop_result;   /* what the nodes below answered */
	bool stop_asked,
		stop_answered; /* the nodes below were, once, whoever asks again; they have */
	bool stopped; /* and this node too: stop_result has all of them and does not change any more
		       */
	char reset_done[COP_NODE_RESET_NAME]; /* main thread: the last OP_RESET that was done here
					       */
	struct cop_defer deferred;            /* for the main thread */
	bool left_dead; /* the kernel has cut the connection, and the mount is still there */
	_Atomic bool stopping;
	_Atomic uint32_t initiators; /* stop commands under way that started here */
	struct asker {
		uint32_t rank;
		uint64_t asked_ms;
		_Atomic bool heard, gone;
	} asker[ASKERS]; /* confirmed.c: who asked for the stop and has not said that it has the
			    answer */
	unsigned askers;
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
void cop_node_write_tree(struct cop_node *n, const struct gathered *stopped);

/* ---- gather.c: one operation on every node of a subtree ---- */
typedef void cop_node_gathered(void *arg, struct gathered *g);
/* Asks the subtree of rank (or, if that node is dead, those of its children); done is called once,
 * and may free nothing of g. */
int cop_node_gather(struct cop_node *n, const struct task *task, uint32_t rank,
	cop_node_gathered *done, void *arg);
/* The same for the subtrees of all children of this node, not itself. */
int cop_node_gather_below(
	struct cop_node *n, const struct task *task, cop_node_gathered *done, void *arg);
void cop_node_answer_gathered(struct cop_rpc_req *req, const struct gathered *g);
/* A node without an answer: dead; of another secret or other options; or it has failed, with a
 * reason. */
enum lost_kind { LOST_DEAD, LOST_REFUSED, LOST_FAILED };
struct lost {
	enum lost_kind kind;
	uint32_t rank, below; /* below: how many nodes are missing with it */
	const char *host, *reason;
};
/* Says so in the form of the operation's text. */
void cop_node_lost_text(uint8_t op, const struct lost *l, struct cop_buf *out);

/* ---- operate.c: an operation on this node and everything below ---- */
struct doing {
	struct cop_node *node;
	cop_node_gathered *done;
	void *arg;
	struct cop_list link; /* in stop_requests */
	struct gathered below;
	struct task task;
	bool local;               /* stop: not the nodes below */
	bool untold;              /* invalidate: the kernel could not be told */
	struct cop_deferred work; /* snapshot, reset: this node's part, and */
	struct gathered own;      /* what came of it; */
	_Atomic unsigned parts;   /* the last of both finishes */
	char path[];
};
/* Does the operation here and below; done is called once. */
void cop_node_do(struct cop_node *n, const struct task *task, cop_node_gathered *done, void *arg);
struct doing *cop_node_doing(
	struct cop_node *n, const struct task *task, cop_node_gathered *done, void *arg);
void cop_node_finish(struct doing *d);
/* The operation is over for d. */
void cop_node_doing_free(struct doing *d);
/* The text and the profile of g go to d. */
void cop_node_take(struct doing *d, struct gathered *g);

/* ---- control.c: commands from the socket, and their rpc sides ---- */
struct command {
	struct cop_node *node;
	struct cop_ctl_conn *conn;
	struct cop_deferred work;
	struct gathered late; /* stop: sums that nobody above has written */
};
/* Where n's socket is, and what its name is made from; needs the hosts and the mount point. */
int cop_node_socket(const struct cop_node *n, char path[COP_CTL_PATH_SIZE],
	char key[COP_CTL_KEY_MAX + 1], struct cop_err *err);
int cop_node_control_start(struct cop_node *n, struct cop_err *err);
void cop_node_serve_gather(struct cop_node *n, struct cop_rpc_req *req);
/* Frees b. */
void cop_node_reply(struct cop_ctl_conn *conn, int status, struct cop_buf *b);

/* ---- stop.c ---- */
/* Asks the nodes below to stop, then this one does. */
void cop_node_stop_here(struct doing *d);
/* It has stopped, and was not asked to pass that on. */
bool cop_node_stopped_alone(struct cop_node *n);
void cop_node_stop_command(struct cop_node *n, struct command *c, bool local);
/* Main thread, when the node has unmounted: adds its counts to those from below, writes them if it
 * is the root, and answers everyone who asked for it. */
void cop_node_stopped(struct cop_node *n, const char *holders, const char *unwritten);

/* ---- confirmed.c ---- */
/* Main thread, after cop_node_stopped: waits until whoever asked has the answer, or is gone. */
void cop_node_confirmed(struct cop_node *n);

/* ---- profile.c ---- */
int cop_node_profile_start(struct cop_node *n, struct cop_err *err);
/* The tag of the reports that a user asks for: those have what the cache holds, too. */
#define COP_NODE_ASKED_TAG "ioctl-snapshot"
/* The reports of this moment under a tag, or the final ones (NULL). 0; -ENOENT: this node writes
 * none; else it is logged, and err (may be NULL) has the sentence. */
int cop_node_profile_write(struct cop_node *n, const char *tag, struct cop_err *err);
/* Main thread. The reports of before under the tag pre-reset, where this node writes any, and every
 * counter from zero. If they cannot be written, or without memory, the counters go on as they were,
 * and err has the sentence. */
int cop_node_profile_reset(struct cop_node *n, struct cop_err *err);
/* What the cache holds, for the writers of prof. */
struct cop_prof_sizes cop_node_sizes(struct cop_node *n);

/* ---- snapshot.c: reports when they are asked for ---- */
void cop_node_snapshot_here(struct doing *d);
void cop_node_snapshot_command(struct cop_node *n, struct command *c, bool local);
void cop_node_reset_command(struct cop_node *n, struct command *c, bool all);
void cop_node_sizes_command(struct cop_node *n, struct command *c);

/* ---- cluster.c: the sums of the job ---- */
/* Main thread. Adds what this node has counted. */
void cop_node_cluster_add(struct cop_node *n, struct gathered *g);
/* Main thread. Writes the files of the job; 0, or it is logged and err has the sentence. */
int cop_node_cluster_write(struct cop_node *n, const struct gathered *g, struct cop_err *err);

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

/* ---- status.c ---- */
void cop_node_status(struct cop_node *n, struct cop_buf *out);
void cop_node_own(struct cop_node *n, struct gathered *g, bool table);
void cop_node_total_json(const struct gathered *g, struct cop_buf *out);
void cop_node_table(struct cop_node *n, struct cop_buf *out);
/* One line of the table of all nodes, without its end; the lines above and below all of them. */
void cop_node_table_row(struct cop_node *n, struct cop_buf *out);
void cop_node_table_head(struct cop_buf *out);
/* Cuts the rows at their line ends and adds them in order of rank. */
void cop_node_table_rows(char *rows, struct cop_buf *out);
void cop_node_table_total(const struct gathered *g, struct cop_buf *out);

#endif
