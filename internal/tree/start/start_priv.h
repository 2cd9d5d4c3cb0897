/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of join share. The fields up to `lock` belong to the main thread or do not change;
 * the lock guards the others. Only functions marked "the lock is held" are called under it. */
#ifndef COP_TREE_START_PRIV_H
#define COP_TREE_START_PRIV_H

#include <stdatomic.h>

#include "base/base/probe.h"
#include "tree/start/start.h"

/* A rank below this one, in the order of cop_topo_children. */
struct below {
	struct cop_start *join;
	bool came, answered;  /* it reported ready or asked for the end; it has got the answer */
	_Atomic bool unheard; /* it was told and has not confirmed */
	char at[300];         /* the fabric address that it reported; "": none yet */
	bool tried;           /* main thread, as the next one: `way` holds a result or will */
	struct cop_probe way; /* to its fabric address */
};

/* The root: what a rank reported about itself. */
struct arrival {
	bool ready;
	char *address, *networks;
};

/* How the barrier ended. */
enum end {
	END_OPEN,  /* it lasts */
	END_READY, /* the tree is ready */
	END_NEWS,  /* it will not be ready, and the others hear it from this rank */
	END_KNOWN, /* the same, and the others know it already */
};

struct cop_start {
	struct cop_start_conf conf;
	bool root;
	uint32_t parent;                   /* COP_TOPO_NONE: this is the root */
	const char *job_dir;               /* NULL: there is none */
	struct cop_startnote_watch others; /* notes of ranks that could not start */
	uint64_t deadline_ms, say_ms, state_ms, tell_end_ms;
	bool books_written; /* at least once */

	pthread_mutex_t lock;
	struct cop_rpc *rpc;     /* NULL: not open yet, or never will be */
	struct arrival *arrival; /* the root: by rank; else NULL */
	uint32_t arrivals;       /* ranks that are ready */
	bool books_old;          /* a rank was restarted with another address */
	enum end end;
	int64_t began_ns, unix_ns; /* cop_start_job_began; they do not change after the end */
	bool secondhand;           /* cop_start_is_secondhand */
	bool out_of_time;          /* not all were ready in time */
	char why[COP_STARTNOTE_WHY_SIZE]; /* why the tree is not ready; does not change after the
					   * end
					   */
	struct cop_list waiters;          /* requests to answer when the barrier ends */
	struct cop_list ready_queue;      /* ranks still to be reported to the parent */
	bool ready_sending, asking;
	uint32_t upstream; /* the rank that is asked for the end: the parent, or a rank above it if
			      that is dead */
	char trouble[640]; /* why the rank above was not reached */
	char no_address[400]; /* why the parent's address was not found; "": it was */
	char parent_at[300];  /* the fabric address that the parent gave last; "": none yet */
	bool parent_met;      /* the parent has answered at its fabric address */
	struct below below[COP_TOPO_MAX_FANOUT];
};

/* ---- end.c ---- */
const char *cop_start_host(const struct cop_start *j, uint32_t rank);
struct cop_rpc *cop_start_rpc(struct cop_start *j);
/* Notes why the rank above was not reached, for the log and for the final message. The lock is
 * held. */
void cop_start_trouble(struct cop_start *j, uint32_t above, int status);

/* Whether the parent gave its fabric address and has not answered there. The lock is held. */
bool cop_start_is_blocked(const struct cop_start *j);
/* Says so, with the address and the way out. The lock is held. */
void cop_start_say_blocked(const struct cop_start *j, char *out, size_t size);

/* Ends the barrier if it has not ended, and answers everyone who waits for that. */
void cop_start_end_barrier(struct cop_start *j, enum end end, const char *why);
bool cop_start_has_ended(struct cop_start *j);
void cop_start_serve_barrier(struct cop_start *j, struct cop_rpc_req *req);
void cop_start_serve_state(struct cop_start *j, struct cop_rpc_req *req);
void cop_start_end_free(struct cop_start *j);

/* Bytes that say when the job began: how long ago, and in real time. */
#define COP_START_BEGAN_SIZE 16
void cop_start_put_began(struct cop_start *j, struct cop_wr *w);
/* From a rank that knows the end of the barrier; before this one ends it. */
void cop_start_take_began(struct cop_start *j, struct cop_rd *r);

/* Notes that this rank, if it is directly below, waits for this start; answered: it has its answer.
 * The lock is held. */
void cop_start_came(struct cop_start *j, uint32_t rank, bool answered);

/* ---- ready.c ---- */
/* This rank is ready. At the root that may complete the tree; then the main thread is woken. */
void cop_start_ready_begin(struct cop_start *j);
/* Reports ranks to the parent that it does not know of yet, one message at a time; tries again
 * after a failure. */
void cop_start_ready_send(struct cop_start *j);
void cop_start_serve_ready(struct cop_start *j, struct cop_rpc_req *req);
void cop_start_ready_free(struct cop_start *j);

/* ---- upstream.c ---- */
/* Asks the next rank above that answers, unless a request is outstanding. */
void cop_start_ask_upstream(struct cop_start *j);
/* Asks whether the tree is ready already: this rank's and the root's children, or those of one
 * rank. */
void cop_start_ask_state(struct cop_start *j);
void cop_start_ask_children(struct cop_start *j, uint32_t rank);

/* ---- way.c ---- */
/* A rank reports its fabric address; nothing if it is not directly below. The lock is held. */
void cop_start_way_note(struct cop_start *j, uint32_t rank, const char *address, size_t len);
/* Tries the addresses of the ranks below if the tree is ready; for how many ms results may still be
 * missing; and gives up those that are. */
void cop_start_way_begin(struct cop_start *j, uint64_t now_ms);
unsigned cop_start_way_left_ms(struct cop_start *j, uint64_t now_ms);
void cop_start_way_end(struct cop_start *j);

/* ---- told.c ---- */
void cop_start_serve_told(struct cop_start *j, struct cop_rpc_req *req);

/* ---- books.c ---- */
/* Root, main thread, when everyone is ready and when a rank was restarted: writes the hosts, their
 * addresses and where those came from into the job directory. */
void cop_start_write_books(struct cop_start *j);

#endif
