/* SPDX-License-Identifier: BSD-3-Clause */
/* inflate.c reads a file; ahead.c manages the later members that other threads inflate. One lock
 * protects these members; it is not held while reading or inflating. */
#ifndef COP_TRACE_READ_INFLATE_PRIV_H
#define COP_TRACE_READ_INFLATE_PRIV_H

#include "inflate.h"

#define GZIP_ONLY (16 + 15) /* zlib's windowBits: gzip header, largest window */
#define MEMBERS_MAX 66u

struct member {
	enum { MEMBER_FREE, MEMBER_BUSY, MEMBER_READY, MEMBER_FAILED, MEMBER_TAKEN } state;
	uint64_t start, end; /* offsets in the file */
	char *text;
	size_t len, size;
};

struct ahead {
	pthread_mutex_t lock;
	pthread_cond_t done;
	uint64_t reader;  /* start of the member being read */
	uint64_t scanned; /* member starts have been searched for up to here */
	bool scanning;
	unsigned failures;
	struct member member[MEMBERS_MAX];
};

void cop_ahead_init(struct ahead *a);
void cop_ahead_fini(struct ahead *a);
/* Returns the member that was inflated ahead from offset `start`, or NULL if there is none. The
 * reader owns it until cop_ahead_give. Waits if a thread is inflating it. */
struct member *cop_ahead_take(struct ahead *a, uint64_t start);
void cop_ahead_give(struct ahead *a, struct member *m);
/* Implements cop_inflate_ahead. */
bool cop_ahead_work(struct ahead *a, int fd, unsigned most);

#endif
