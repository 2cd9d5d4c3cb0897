/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by list.c, page.c and children.c: a pass over a directory. */
#ifndef COP_STORAGE_ORIGIN_LIST_PRIV_H
#define COP_STORAGE_ORIGIN_LIST_PRIV_H

#include "storage/origin/origin_priv.h"

struct child {
	uint64_t ino;
	uint32_t name; /* offset in names */
	uint8_t name_len, type;
	bool has_attr, gone;
	bool bare;             /* attributes not wanted */
	struct cop_attr *attr; /* destination; NULL: not wanted */
	char *target;
	size_t target_len;
};

struct pass;
struct listing;

/* A run of children, processed by one worker at a time, or queued as a job. */
struct batch {
	struct cop_origin_job job;
	struct pass *p;
	uint32_t next, end;
	struct child *
		child; /* the child with a running statx, and its start; NULL: none, or abandoned */
	uint64_t since_ms;
};

/* The lock protects data shared by the workers of the batches. A hung worker may return long after
 * the listing was returned. The pass and the necessary parts of the listing, the directory's
 * descriptor and path, therefore outlive the listing. */
struct pass {
	pthread_mutex_t lock;
	struct listing *l; /* a reference */
	unsigned refs; /* one for the listing, each unfinished batch, the alarm, and the check of
			  the end */
	struct cop_buf names, children;
	uint32_t count;
	bool left_out; /* some names are not valid in a listing */
	bool at_end; /* the directory has reported its end; under the lock after the first batch */
	bool more;   /* the directory has reported more names */
	struct cop_attr *attrs;
	struct batch *batch;
	uint32_t batches, pending; /* pending: unfinished, including the check of the end */
	struct cop_origin_alarm alarm;
	unsigned looks; /* checks that abandoned a worker */
	bool over, gave_up;
	int error;
	uint64_t slowest_ms; /* the slowest answer so far */
};

struct listing {
	struct cop_origin_request request;
	char *path;            /* a copy: the request may end before the last worker returns */
	_Atomic unsigned refs; /* one until the listing is returned, and one per pass */
	bool names_only;
	struct cop_listing_page page; /* pages == 0: all names are wanted */
	const void *names; /* a listing from which to take the names of a page; NULL: read them */
	const void *known; /* an earlier listing that may be current; NULL: none, or outdated */
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

/* list.c: submits a listing, with its kind already set, as an urgent or a background job. */
void cop_origin_list_submit(struct listing *l, struct cop_origin *o, const char *path,
	cop_origin_done *done, void *arg);
/* Adds a child to the pass. -ENOMEM. */
int cop_origin_add_child(struct pass *p, struct child *c, const char *name);
/* page.c: whether the name is wanted. Only a pass that reads a page skips names. */
bool cop_origin_page_wants(const struct listing *l, const char *name, size_t len);
/* Copies the page's names from l->names. */
int cop_origin_page_names(struct pass *p);
/* Builds the page from all names with attributes. */
int cop_origin_page_build(struct listing *l, void **blob, size_t *len);

/* known.c: whether the directory still has the version of l->known, and thus its names. */
bool cop_origin_known_holds(const struct listing *l);
/* Copies all names from l->known. */
int cop_origin_known_names(struct pass *p);

void cop_origin_pass_put(struct pass *p);
/* All attributes of the pass have arrived or were abandoned. Called once, on a worker. */
void cop_origin_pass_done(struct listing *l);
/* Whether to read attributes before the directory has reported its end. */
bool cop_origin_reads_ahead(struct cop_origin_real *o);
/* Checks whether the directory has more names than were read; sets more. 0 or -errno. */
int cop_origin_check_end(struct pass *p);
/* Starts reading the wanted attributes. 1: cop_origin_pass_done will be called, possibly before
 * this returns; 0: none are wanted; -ENOMEM. */
int cop_origin_read_children(struct pass *p);

#endif
