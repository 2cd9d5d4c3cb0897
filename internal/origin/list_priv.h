/* SPDX-License-Identifier: BSD-3-Clause */
/* What list.c and children.c share: one pass over a directory. */
#ifndef COP_ORIGIN_LIST_PRIV_H
#define COP_ORIGIN_LIST_PRIV_H

#include "origin/origin_priv.h"

struct child {
	uint64_t ino;
	uint32_t name; /* offset in names */
	uint8_t name_len, type;
	bool has_attr, gone;
	struct cop_attr *attr; /* where to put them; NULL: not wanted */
	char *target;
	size_t target_len;
};

struct pass;
struct listing;

/* Some children one after the other, by one worker at a time, or by a job in the queue. */
struct batch {
	struct cop_origin_job job;
	struct pass *p;
	uint32_t next, end;
	struct child *child; /* whose attributes it waits for, and since when; NULL: none, or it
				waits no longer */
	uint64_t since_ms;
};

/* The lock is over what the workers of the batches share. A worker that hangs may come back when
 * the listing has gone out long ago, so the pass stays for it, and so does what it needs of the
 * listing: the directory's descriptor and path. */
struct pass {
	pthread_mutex_t lock;
	struct listing *l; /* a reference */
	unsigned refs;     /* the listing's own, each batch that is not done, the alarm */
	struct cop_buf names, children;
	uint32_t count;
	bool left_out; /* there are names that a listing cannot hold */
	struct cop_attr *attrs;
	struct batch *batch;
	uint32_t batches, pending; /* pending: not done */
	struct cop_origin_alarm alarm;
	unsigned looks; /* at which somebody was given up */
	bool over, gave_up;
	int error;
	uint64_t slowest_ms; /* of the attributes that came */
};

struct listing {
	struct cop_origin_request request;
	char *path;            /* the request's, which ends before the last worker may be back */
	_Atomic unsigned refs; /* until it has gone out, and each pass */
	bool names_only;
	int fd;
	unsigned passes;
	struct cop_attr before; /* of the directory */
	uint64_t dev;
	struct pass *pass;
};

static inline struct child *cop_origin_children(struct pass *p)
{
	return (struct child *)(void *)p->children.data;
}

void cop_origin_pass_put(struct pass *p);
/* All attributes of the pass are there that will be: on a worker, once. */
void cop_origin_pass_done(struct listing *l);
/* Begins to read the attributes that are wanted: 1, and cop_origin_pass_done is called, maybe
 * before this returns; 0: none are; -ENOMEM. */
int cop_origin_read_children(struct pass *p);

#endif
