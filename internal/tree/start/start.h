/* SPDX-License-Identifier: BSD-3-Clause */
/* start: the start barrier of a tree, as one rank sees it. Readiness is reported upwards: each rank
 * sends its address to its parent when it is ready. When all ranks have reported, the root writes
 * the address books into the job directory and ends the barrier. The end propagates downwards: each
 * rank requests it from the rank above and notifies the ranks below before its own command returns.
 * If a rank cannot start, all ranks learn the reason before they time out. A restarted rank finds
 * the tree ready.
 *
 * This module opens nothing, never polls or blocks, and has no thread: requests from other ranks
 * arrive through cop_start_serve, and the current time through cop_start_step. The owner of rpc
 * resolves the addresses of other ranks; the caller acts on the result.
 *
 * Every object has its own lock, which is never held across a call into another module. "Main
 * thread" is one thread of the caller's choice, the same for all functions marked that way. */
#ifndef COP_TREE_START_H
#define COP_TREE_START_H

#include "base/base/base.h"
#include "job/hosts/hosts.h"
#include "job/startnote/startnote.h"
#include "fabric/rpc/rpc.h"
#include "job/topo/topo.h"

/* The rpc operations. Nodes communicate only if they run the same version of Copper, so these may
 * change. */
enum cop_start_op {
	COP_START_OP_READY =
		32, /* ready ranks of the sender's subtree, itself included, with their addresses */
	COP_START_OP_BARRIER = 33, /* answered when the barrier ends: 0, or -ETIMEDOUT with the
				      reason in the body */
	COP_START_OP_STATE =
		34, /* whether the tree is already ready; answered immediately with 0 or -EAGAIN */
	COP_START_OP_TOLD = 41, /* from the parent: the result of the barrier; answered when this
				   rank has recorded it */
};

/* Maximum interval between calls of cop_start_step. */
#define COP_START_STEP_MS 200

struct cop_start;

struct cop_start_conf {
	uint32_t rank;
	struct cop_topo topo;
	const struct cop_job_hosts
		*hosts;            /* borrowed; count 0: a single node without a host list */
	const char *address_book;  /* the site's address book, copied into the job directory; NULL:
				      ranks report their networks; borrowed */
	uint32_t ready_timeout_ms; /* the root gives up after this, the others a little later */
	uint64_t started_ns;       /* cop_now_ns at the start of this node */
	void *ctx; /* first argument of the callbacks, which are called without a lock */
	/* Any thread. Tells the main thread to call cop_start_step or, after the end of the
	 * barrier, cop_start_tend. Must not block. */
	void (*wake)(void *ctx);
	/* Any thread. The barrier has ended, or the end was reported again. Must not block. */
	void (*barrier_ended)(void *ctx);
};

/* Copies conf except for borrowed pointers, which must outlive the object. NULL: out of memory. */
struct cop_start *cop_start_new(const struct cop_start_conf *conf);
/* Close rpc first, because pending answers refer to j. j may be NULL. */
void cop_start_free(struct cop_start *j);

/* Main thread, before cop_start_start: address books and failure notes are in job_dir (borrowed).
 * log_path is a file that this node created there during this start; notes older than it are from
 * an earlier start. Removes the note of this rank. */
void cop_start_use_dir(struct cop_start *j, const char *job_dir, const char *log_path);
/* Without a job directory: reads failure notes in dir, which belongs to this start only. */
void cop_start_hear_in(struct cop_start *j, const char *dir);
/* Main thread, once, when rpc is open: forwards the reports received so far. rpc is borrowed. A
 * single node has none. */
void cop_start_use_rpc(struct cop_start *j, struct cop_rpc *rpc);

/* ---- the barrier, on the main thread ---- */

/* This rank is ready: reports to its parent and requests the end of the barrier. now_ms, here and
 * below, is cop_now_ms or a test clock. */
void cop_start_start(struct cop_start *j, uint64_t now_ms);
/* Does the periodic work and returns whether the barrier has ended. being_stopped: the tree is
 * being stopped, so do not report a failing rank as the reason. May write files. */
bool cop_start_step(struct cop_start *j, uint64_t now_ms, bool being_stopped);
/* After the barrier: call after each wake. May write files. */
void cop_start_tend(struct cop_start *j);
/* This rank will not start. what is the reason, worded to follow the rank's name; waiting ranks
 * receive it. */
void cop_start_give_up(struct cop_start *j, const char *what);
/* Whether another rank has written a failure note, so that waiting is pointless; if so, stores its
 * reason in why. Checks once a second. For use before cop_start_start; afterwards, cop_start_step
 * does this. */
bool cop_start_failure_heard(
	struct cop_start *j, uint64_t now_ms, char why[COP_STARTNOTE_WHY_SIZE]);

/* The barrier has ended: notifies each rank below that has reported and probes its port. Does not
 * block. */
void cop_start_tell_below(struct cop_start *j, uint64_t now_ms);
/* Milliseconds until the next call while notified ranks have not answered; 0: all have answered, or
 * the time is up. Each answer triggers a wake. */
unsigned cop_start_tell_left_ms(struct cop_start *j, uint64_t now_ms);
/* Logs the name of each rank that has not answered. Returns their number. */
unsigned cop_start_name_untold(struct cop_start *j);
/* Afterwards: writes a sentence about the next rank below, starting at *i, whose port a firewall
 * blocks. False: there is none. */
bool cop_start_blocked_below(struct cop_start *j, uint32_t *i, char *out, size_t size);

/* ---- the result, on any thread ---- */

bool cop_start_is_ready(struct cop_start *j);
/* Why the barrier ended without a ready tree; "" before its end. Constant after the end; valid for
 * the lifetime of j. */
const char *cop_start_why(struct cop_start *j);
/* Whether this is a root whose barrier failed before the timeout, and before all ranks but the
 * failed one had reported: the rest may start late and would wait for the root in vain. */
bool cop_start_is_awaited(struct cop_start *j);
/* Whether the other ranks already have the result, so this rank need not report it. */
bool cop_start_is_secondhand(struct cop_start *j);

/* Start time of the job, i.e. the first start of rank 0: on this node's monotonic clock
 * (cop_now_ns; negative if this machine booted later), and in ns since 1970 on rank 0's clock. It
 * arrives with the end of the barrier and is late by the latency of that message. Until then: the
 * start of this node. */
void cop_start_job_began(struct cop_start *j, int64_t *mono_ns, int64_t *unix_ns);

/* ---- events from outside, on any thread ---- */

/* Takes req and returns true if it is one of the operations above. The answer is sent at the end of
 * the barrier or by cop_start_leave, one of which must happen while rpc is open. */
bool cop_start_serve(struct cop_start *j, struct cop_rpc_req *req);
/* This rank (possibly out of range) has a different config hash and receives no requests. Ends the
 * barrier if it is still open. */
void cop_start_mismatch(struct cop_start *j, uint32_t rank);
/* This rank is permanently unreachable. Ends the barrier if it is still open. */
void cop_start_no_way(struct cop_start *j, uint32_t rank, const char *why);
/* A rank has been looked up: its fabric address, or NULL with the reason as a sentence in why. */
void cop_start_looked(struct cop_start *j, uint32_t rank, const char *address, const char *why);

/* Any thread, after the last request: answers the ranks that are still waiting here for the end of
 * the barrier; they then try the rank above. */
void cop_start_leave(struct cop_start *j);

#endif
