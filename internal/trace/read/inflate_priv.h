/* SPDX-License-Identifier: BSD-3-Clause */
/* inflate.c is the reader of a file; ahead.c has the members further on, which other threads
 * inflate. One lock guards the members ahead; nothing is read or inflated under it. */
#ifndef COP_TRACE_READ_INFLATE_PRIV_H
#define COP_TRACE_READ_INFLATE_PRIV_H

#include "inflate.h"

#define GZIP_ONLY (16 + 15) /* zlib's word for a gzip header, and the largest window */
#define MEMBERS_MAX 66u

struct member {
	enum { MEMBER_FREE, MEMBER_BUSY, MEMBER_READY, MEMBER_FAILED, MEMBER_TAKEN } state;
	uint64_t start, end; /* in the file */
	char *text;
	size_t len, size;
};

struct ahead {
	pthread_mutex_t lock;
	pthread_cond_t done;
	uint64_t reader;  /* where the member that is being read begins */
	uint64_t scanned; /* starts were looked for up to here */
	bool scanning;
	unsigned failures;
	struct member member[MEMBERS_MAX];
};

void cop_ahead_init(struct ahead *a);
void cop_ahead_fini(struct ahead *a);
/* The reader is at `start`, where a member may begin: that member, which is the reader's until it
 * gives it back, or NULL. Waits for it if a thread is at it. */
struct member *cop_ahead_take(struct ahead *a, uint64_t start);
void cop_ahead_give(struct ahead *a, struct member *m);
/* As cop_inflate_ahead has it. */
bool cop_ahead_work(struct ahead *a, int fd, unsigned most);

#endif
