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

/* A run of consecutive children, queued as a job or processed by one worker at a time. */
struct batch {
	struct cop_origin_job job;
	struct pass *p;
	uint32_t next, end;
	struct child *child; /* the child whose statx is running, and when it started; NULL: none,
				or abandoned */
	uint64_t since_ms;
};

/* The lock protects what the workers of the batches share. A hung worker may return long after the
 * listing has been delivered, so the pass, the directory's descriptor and path, and the parts of
 * the listing that the worker needs outlive the listing. */
struct pass {
	pthread_mutex_t lock;
	struct listing *l; /* a reference */
	unsigned refs; /* held by the listing, each unfinished batch, the alarm, and the check for
			  the end */
	struct cop_buf names, children;
	uint32_t count;
	bool left_out; /* some names cannot be represented in a listing */
	bool at_end; /* the directory has reported its end; needs the lock after the first batch */
	bool more;   /* the directory turned out to have more names */
	struct cop_attr *attrs;
	struct batch *batch;
	uint32_t batches, pending; /* pending: not yet finished, including the check for the end */
	struct cop_origin_alarm alarm;
	unsigned looks; /* number of checks that abandoned a worker */
	bool over, gave_up;
	int error;
	uint64_t slowest_ms; /* the slowest answer so far */
};

struct listing {
	struct cop_origin_request request;
	char *path; /* its own copy: the request may end before the last worker returns */
	_Atomic unsigned refs; /* one until the listing is delivered, and one per pass */
	bool names_only;
	struct cop_listing_page page; /* pages == 0: all names are wanted */
	const void *names; /* a listing to take the names of a page from; NULL: read them */
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

/* list.c: submits a listing whose kind is set, as an urgent or a background job. */
void cop_origin_list_submit(struct listing *l, struct cop_origin *o, const char *path,
	cop_origin_done *done, void *arg);
/* Adds a child to the pass. Returns 0 or -ENOMEM. */
int cop_origin_add_child(struct pass *p, struct child *c, const char *name);
/* page.c: whether the name is wanted. Only a pass that reads a page skips any names. */
bool cop_origin_page_wants(const struct listing *l, const char *name, size_t len);
/* Copies the page's names from l->names. */
int cop_origin_page_names(struct pass *p);
/* Builds the page from all names with attributes. */
int cop_origin_page_build(struct listing *l, void **blob, size_t *len);

/* known.c: whether the directory still has the version of l->known, and therefore its names. */
bool cop_origin_known_holds(const struct listing *l);
/* Copies all names from l->known. */
int cop_origin_known_names(struct pass *p);

void cop_origin_pass_put(struct pass *p);
/* Called once, on a worker, when all attributes of the pass have arrived or were abandoned. */
void cop_origin_pass_done(struct listing *l);
/* Whether to start on the attributes before the directory has reported its end. */
bool cop_origin_reads_ahead(struct cop_origin_real *o);
/* Checks whether the directory has names that were not read yet, and if so sets more. Returns 0 or
 * -errno. */
int cop_origin_check_end(struct pass *p);
/* Starts reading the wanted attributes. Returns 1 if cop_origin_pass_done will be called, possibly
 * before this returns; 0 if none are wanted; or -ENOMEM. */
int cop_origin_read_children(struct pass *p);

#endif
