/* SPDX-License-Identifier: BSD-3-Clause */
/* join: the start barrier of a tree, as one rank sees it. Readiness flows up: each rank tells its
 * parent that it is ready, and where it is. When the root has heard of every rank, it writes the
 * address books into the job directory, and the barrier ends. The end flows down: each rank asks
 * the rank above it, and tells those below it before its own command returns. If a rank cannot
 * start, all ranks learn the reason in time. A rank that is started again finds a tree that is
 * ready.
 *
 * It does not open, poll or wait, and has no thread: requests of other ranks arrive through
 * cop_start_serve, and the time through cop_start_step. The opener of rpc knows where other ranks
 * are; the caller decides what happens when the tree is ready.
 *
 * Every object has its own lock, which is never held across a call of another module. "Main thread"
 * is one thread of the caller's choice, the same for all functions that name it. */
#ifndef COP_TREE_START_H
#define COP_TREE_START_H

#include "base/base/base.h"
#include "job/hosts/hosts.h"
#include "job/startnote/startnote.h"
#include "fabric/rpc/rpc.h"
#include "job/topo/topo.h"

/* Its rpc operations. A version of Copper talks only to the same version, so they may change. */
enum cop_start_op {
	COP_START_OP_READY = 32,   /* ranks that are ready below and including the sender, with
				     their addresses */
	COP_START_OP_BARRIER = 33, /* answered when the barrier ends: 0, or -ETIMEDOUT with the
				     reason as the body */
	COP_START_OP_STATE = 34,   /* is the tree ready already? 0 or -EAGAIN, at once */
	COP_START_OP_TOLD = 41,    /* from the parent: how the barrier ended; answered when this
				     rank knows it */
};

/* How often cop_start_step wants to be called, at least. */
#define COP_START_STEP_MS 200

struct cop_start;

struct cop_start_conf {
	uint32_t rank;
	struct cop_topo topo;
	const struct cop_job_hosts *hosts; /* the caller's, while the object lives; count 0: this
					      node is alone and has no host list */
	const char *address_book;  /* the facility's, copied into the job directory; NULL: the ranks
				      tell their networks. The caller's, while the object lives */
	uint32_t ready_timeout_ms; /* the root gives up then, the others a little later */
	uint64_t started_ns;       /* cop_now_ns when this node began */
	void *ctx;                 /* first argument of the callbacks; no lock is held in them */
	/* Any thread. The main thread has something to do: cop_start_step before the barrier has
	 * ended, cop_start_tend after. Must not block. */
	void (*wake)(void *ctx);
	/* Any thread. The barrier has ended, or somebody said so again. Must not block. */
	void (*barrier_ended)(void *ctx);
};

/* Copies conf, except as it says. NULL: out of memory. */
struct cop_start *cop_start_new(const struct cop_start_conf *conf);
/* Call it when rpc is closed, because answers under way point here. NULL is fine. */
void cop_start_free(struct cop_start *j);

/* Main thread, before cop_start_start: address books and failure notes are kept in job_dir (the
 * caller's, while the object lives). log_path is a file that this node has made there in this
 * start; older notes are from an earlier one. Removes the note of this rank. */
void cop_start_use_dir(struct cop_start *j, const char *job_dir, const char *log_path);
/* Without a job directory: looks for failure notes in dir, which is for this start alone.
 */
void cop_start_hear_in(struct cop_start *j, const char *dir);
/* Main thread, once, as soon as rpc is open: passes up what other ranks have reported since then.
 * The caller keeps rpc. A node that is alone has none. */
void cop_start_use_rpc(struct cop_start *j, struct cop_rpc *rpc);

/* ---- the barrier, on the main thread ---- */

/* This rank is ready: tells its parent, and asks for the end of the barrier. now_ms, here and
 * below, is cop_now_ms or a test's own clock. */
void cop_start_start(struct cop_start *j, uint64_t now_ms);
/* Does the periodic work and returns whether the barrier has ended. being_stopped: a stop of the
 * tree has arrived, so a failing rank is not the reason. May write files. */
bool cop_start_step(struct cop_start *j, uint64_t now_ms, bool being_stopped);
/* After the barrier: does the work after a wake. May write files. */
void cop_start_tend(struct cop_start *j);
/* This rank will not start. what says why, in words that follow its name; ranks that wait for it
 * are told. */
void cop_start_give_up(struct cop_start *j, const char *what);
/* Whether another rank reported in the job directory that it failed, so that waiting for it is in
 * vain; why then has the reason. Looks once a second. For waits before cop_start_start; afterwards
 * this happens automatically. */
bool cop_start_failure_heard(
	struct cop_start *j, uint64_t now_ms, char why[COP_STARTNOTE_WHY_SIZE]);

/* The barrier has ended: tells each rank below that has reported, and tries whether it can be
 * reached. Returns at once. */
void cop_start_tell_below(struct cop_start *j, uint64_t now_ms);
/* The ms after which to call this again, for ranks that were told and have not answered; 0: all
 * have answered, or the time is up. A wake follows each answer. */
unsigned cop_start_tell_left_ms(struct cop_start *j, uint64_t now_ms);
/* Logs each rank that has not answered, by name. Returns their number. */
unsigned cop_start_name_untold(struct cop_start *j);
/* After that: the next rank below, from *i on, that a firewall keeps new connections from, as a
 * sentence. False: there is none. */
bool cop_start_blocked_below(struct cop_start *j, uint32_t *i, char *out, size_t size);

/* ---- the result, on any thread ---- */

bool cop_start_is_ready(struct cop_start *j);
/* Why the barrier ended without a ready tree; "" before its end. Does not change after the end;
 * valid while the object lives. */
const char *cop_start_why(struct cop_start *j);
/* Whether this is a root that failed before its time was up, and more ranks than the one that may
 * have failed have not reported: they may begin late, and would wait for it in vain. */
bool cop_start_is_awaited(struct cop_start *j);
/* Whether this rank need not tell the others, because they know it already or said it. */
bool cop_start_is_secondhand(struct cop_start *j);

/* When the job began, that is when rank 0 was first started: by the monotonic clock of this node
 * (cop_now_ns; negative if this machine started later), and in ns since 1970 by the clock of rank
 * 0. The message with the end of the barrier tells it, and it is too late by the time that this
 * message took. Until then: when this node began. */
void cop_start_job_began(struct cop_start *j, int64_t *mono_ns, int64_t *unix_ns);

/* ---- events from outside, on any thread ---- */

/* Takes req and returns true if it is one of the operations above. It is answered by the end of the
 * barrier or by cop_start_leave, and one of them must come while rpc is open. */
bool cop_start_serve(struct cop_start *j, struct cop_rpc_req *req);
/* This rank (any number) has another config hash: it is neither asked nor served. During the
 * barrier, this ends the barrier. */
void cop_start_mismatch(struct cop_start *j, uint32_t rank);
/* This rank cannot be reached, now or later. During the barrier, this ends the barrier. */
void cop_start_no_way(struct cop_start *j, uint32_t rank, const char *why);
/* The result of looking up a rank: its fabric address, or NULL and a sentence that says why there
 * is none. */
void cop_start_looked(struct cop_start *j, uint32_t rank, const char *address, const char *why);

/* Any thread, when no request arrives any more: answers the ranks that still wait here for the end
 * of the barrier; they then ask the rank above. */
void cop_start_leave(struct cop_start *j);

#endif
