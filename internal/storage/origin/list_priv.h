/* SPDX-License-Identifier: BSD-3-Clause */
/* What list.c, page.c and children.c share: one pass over a directory. */
#ifndef COP_STORAGE_ORIGIN_LIST_PRIV_H
#define COP_STORAGE_ORIGIN_LIST_PRIV_H

#include "storage/origin/origin_priv.h"

struct child {
	uint64_t ino;
	uint32_t name; /* offset in names */
	uint8_t name_len, type;
	bool has_attr, gone;
	bool bare;             /* its attributes are not wanted */
	struct cop_attr *attr; /* where to put them; NULL: not wanted */
	char *target;
	size_t target_len;
};

struct pass;
struct listing;

/* A run of children, handled by one worker at a time, or waiting in the queue as a job. */
struct batch {
	struct cop_origin_job job;
	struct pass *p;
	uint32_t next, end;
	struct child *child; /* the child whose attributes it waits for, and since when; NULL: none,
				or it was given up */
	uint64_t since_ms;
};

/* The lock protects what the workers of the batches share. A worker that hangs may come back long
 * after the listing has gone out. So the pass stays for it, together with what it needs of the
 * listing: the directory's descriptor and path. */
struct pass {
	pthread_mutex_t lock;
	struct listing *l; /* a reference */
	unsigned refs;     /* one for the listing, each unfinished batch, the alarm, and the check
			      of the end */
	struct cop_buf names, children;
	uint32_t count;
	bool left_out; /* some names do not fit a listing */
	bool at_end;   /* the directory has said that these are all names; under the lock once
			  batches have begun */
	bool more;     /* it has said that there are more */
	struct cop_attr *attrs;
	struct batch *batch;
	uint32_t batches, pending; /* pending: unfinished, with the check of the end */
	struct cop_origin_alarm alarm;
	unsigned looks; /* checks at which some worker was given up */
	bool over, gave_up;
	int error;
	uint64_t slowest_ms; /* the slowest answer so far */
};

struct listing {
	struct cop_origin_request request;
	char *path; /* a copy, because the request may end before the last worker comes back */
	_Atomic unsigned refs; /* one until the listing has gone out, and one for each pass */
	bool names_only;
	struct cop_listing_page page; /* pages == 0: all names are wanted */
	const void *names; /* the listing from which a page's names may be taken; NULL: read them */
	const void
		*known; /* a listing that may still be right; NULL: there is none, or it is not */
	int fd;
	unsigned passes;
	struct cop_attr before; /* the directory's attributes before the pass */
	uint64_t dev;
	struct pass *pass;
};

static inline struct child *cop_origin_children(struct pass *p)
{
	return (struct child *)(void *)p->children.data;
}

/* list.c: submits a listing, with what it is to read set, as an urgent or a background job. */
void cop_origin_list_submit(struct listing *l, struct cop_origin *o, const char *path,
	cop_origin_done *done, void *arg);
/* Adds a child to the pass. -ENOMEM. */
int cop_origin_add_child(struct pass *p, struct child *c, const char *name);
/* page.c: whether the name is wanted. Only a pass that reads a page leaves names out. */
bool cop_origin_page_wants(const struct listing *l, const char *name, size_t len);
/* Takes the page's names from l->names. */
int cop_origin_page_names(struct pass *p);
/* Builds the page from all names that have attributes. */
int cop_origin_page_build(struct listing *l, void **blob, size_t *len);

/* known.c: whether the directory has the version of l->known, so that its names are those. */
bool cop_origin_known_holds(const struct listing *l);
/* Takes all names from l->known. */
int cop_origin_known_names(struct pass *p);

void cop_origin_pass_put(struct pass *p);
/* All attributes that the pass will get are there. Called once, on a worker. */
void cop_origin_pass_done(struct listing *l);
/* Whether attributes are read before the directory has said that there are no more names. */
bool cop_origin_reads_ahead(struct cop_origin_real *o);
/* Whether the directory had more names than have been read; sets more. 0, or -errno. */
int cop_origin_check_end(struct pass *p);
/* Begins to read the wanted attributes. 1: cop_origin_pass_done will be called, possibly before
 * this returns; 0: none are wanted; -ENOMEM. */
int cop_origin_read_children(struct pass *p);

#endif
