/* SPDX-License-Identifier: BSD-3-Clause */
/* Declarations shared by the files of start. The fields up to `lock` belong to the main thread or
 * are constant; the lock protects the others. Only functions marked "with the lock held" are called
 * under it. */
#ifndef COP_TREE_START_PRIV_H
#define COP_TREE_START_PRIV_H

#include <stdatomic.h>

#include "base/base/probe.h"
#include "tree/start/start.h"

/* A child of this rank, in the order of cop_topo_children. */
struct below {
	struct cop_start *join;
	bool came, answered;  /* came: it reported ready or requested the end; answered: it has
				 received the answer */
	_Atomic bool unheard; /* it was notified and has not confirmed yet */
	char at[300];         /* the fabric address in its report; "": none yet */
	bool tried;           /* a probe was started; main thread only, like `way` */
	struct cop_probe way; /* probe of its fabric address */
};

/* At the root: one rank's report. */
struct arrival {
	bool ready;
	char *address, *networks;
};

/* How the barrier ended. */
enum end {
	END_OPEN,  /* still open */
	END_READY, /* the tree is ready */
	END_NEWS,  /* it failed, and this rank must notify the others */
	END_KNOWN, /* it failed, and the others already know */
};

struct cop_start {
	struct cop_start_conf conf;
	bool root;
	uint32_t parent;                   /* COP_TOPO_NONE: this is the root */
	const char *job_dir;               /* NULL: none */
	struct cop_startnote_watch others; /* notes of ranks that could not start */
	uint64_t deadline_ms, say_ms, state_ms, tell_end_ms;
	bool books_written; /* the address books were written at least once */

	pthread_mutex_t lock;
	struct cop_rpc *rpc;     /* NULL: not open, possibly forever */
	struct arrival *arrival; /* at the root: by rank; else NULL */
	uint32_t arrivals;       /* number of ready ranks */
	bool books_old; /* a rank was restarted with another address, so the address books are
			   outdated */
	enum end end;
	int64_t began_ns, unix_ns;        /* cop_start_job_began; constant after the end */
	bool secondhand;                  /* cop_start_is_secondhand */
	bool out_of_time;                 /* timed out before all were ready */
	char why[COP_STARTNOTE_WHY_SIZE]; /* why the tree is not ready; constant after the end */
	struct cop_list waiters;          /* requests to answer at the end of the barrier */
	struct cop_list ready_queue;      /* ranks not yet reported to the parent */
	bool ready_sending, asking;
	uint32_t upstream; /* the rank from which this one requests the end: the parent or, if it is
			      dead, a higher ancestor */
	char trouble[640]; /* why the rank above is unreachable */
	char no_address[400]; /* why the parent's address is unknown; "": it is known */
	char parent_at[300];  /* the latest fabric address of the parent; "": none yet */
	bool parent_met;      /* the parent has answered at its fabric address */
	struct below below[COP_TOPO_MAX_FANOUT];
};

/* ---- end.c ---- */
const char *cop_start_host(const struct cop_start *j, uint32_t rank);
struct cop_rpc *cop_start_rpc(struct cop_start *j);
/* Records why the rank above is unreachable, for the log and the final message. Called with the
 * lock held. */
void cop_start_trouble(struct cop_start *j, uint32_t above, int status);

/* Whether the parent published its fabric address but has not answered there. Called with the lock
 * held. */
bool cop_start_is_blocked(const struct cop_start *j);
/* Describes this in a sentence, with the address and the remedy. Called with the lock held. */
void cop_start_say_blocked(const struct cop_start *j, char *out, size_t size);

/* Ends the barrier if it is open, and answers all waiting ranks. */
void cop_start_end_barrier(struct cop_start *j, enum end end, const char *why);
bool cop_start_has_ended(struct cop_start *j);
void cop_start_serve_barrier(struct cop_start *j, struct cop_rpc_req *req);
void cop_start_serve_state(struct cop_start *j, struct cop_rpc_req *req);
void cop_start_end_free(struct cop_start *j);

/* Encoded start time of the job: its age and the real time. */
#define COP_START_BEGAN_SIZE 16
void cop_start_put_began(struct cop_start *j, struct cop_wr *w);
/* Reads it from the message of a rank that has the result of the barrier; call before ending the
 * barrier here. */
void cop_start_take_began(struct cop_start *j, struct cop_rd *r);

/* Records that this rank, if it is a child, takes part in this start. answered: it has received its
 * answer. Called with the lock held. */
void cop_start_came(struct cop_start *j, uint32_t rank, bool answered);

/* ---- ready.c ---- */
/* This rank is ready. At the root this may complete the tree, which wakes the main thread. */
void cop_start_ready_begin(struct cop_start *j);
/* Reports the queued ranks to the parent, one message at a time; retries after a failure. */
void cop_start_ready_send(struct cop_start *j);
void cop_start_serve_ready(struct cop_start *j, struct cop_rpc_req *req);
void cop_start_ready_free(struct cop_start *j);

/* ---- upstream.c ---- */
/* Sends a request to the next rank above that answers, unless one is outstanding. */
void cop_start_ask_upstream(struct cop_start *j);
/* Asks whether the tree is already ready: the first asks the children of this rank and of the root,
 * the second those of one rank. */
void cop_start_ask_state(struct cop_start *j);
void cop_start_ask_children(struct cop_start *j, uint32_t rank);

/* ---- way.c ---- */
/* A rank reports its fabric address; ignored unless it is a child. Called with the lock held. */
void cop_start_way_note(struct cop_start *j, uint32_t rank, const char *address, size_t len);
/* The first starts probing the children if the tree is ready, the second returns for how many ms
 * results may still be outstanding, and the third ends the outstanding probes. */
void cop_start_way_begin(struct cop_start *j, uint64_t now_ms);
unsigned cop_start_way_left_ms(struct cop_start *j, uint64_t now_ms);
void cop_start_way_end(struct cop_start *j);

/* ---- told.c ---- */
void cop_start_serve_told(struct cop_start *j, struct cop_rpc_req *req);

/* ---- books.c ---- */
/* At the root, on the main thread, when all ranks are ready and after each restart of a rank:
 * writes the hosts, their addresses and where the addresses came from into the job directory. */
void cop_start_write_books(struct cop_start *j);

#endif
