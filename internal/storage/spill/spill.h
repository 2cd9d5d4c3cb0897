/* SPDX-License-Identifier: BSD-3-Clause */
/* spill: the second tier of a node's cache, a file on a local disk. Parts of files that are evicted
 * from memory are written in their cached form (compressed or not), and read back when needed, with
 * their original checksum.
 *
 * It stores only parts that a node keeps for others or for itself alone, never copies of parts that
 * another node keeps (enum cop_duty), so the disks of a job together hold everything once.
 *
 * The file is unnamed and inaccessible to others, and its space is freed when the process ends for
 * any reason. It is append-only. A full file keeps its contents, because with cyclic reads the
 * newest part is the last to be needed again; but after turning away four times its size without a
 * single read of its contents, it is restarted.
 *
 * Only the threads of this module access the disk. Parts that arrive faster than they can be
 * written are dropped. A disk that is full, fails, returns corrupt data or does not respond within
 * seconds is disabled with a single warning, and the node continues without a spill. */
#ifndef COP_STORAGE_SPILL_H
#define COP_STORAGE_SPILL_H

#include "base/base/base.h"
#include "cache/cache/cache.h"
#include "prof/stats/stats.h"

struct cop_spill;

struct cop_spill_conf {
	const char *dir;
	uint64_t size;     /* maximum size of the file; 0: half of the free space */
	uint64_t memory;   /* maximum memory for the index and queued writes */
	uint64_t sum_seed; /* seed of the chunk checksums */
	struct cop_cache *cache;
	struct cop_stats *stats;
};

/* Checks the directory. Returns 0, or -ENOENT, -EACCES etc. with a message. *size is the requested
 * size on entry and the allowed size on return; if that is smaller, note explains why, else note is
 * "". */
#define COP_SPILL_NOTE_SIZE 512
int cop_spill_check(
	const char *dir, uint64_t *size, char note[COP_SPILL_NOTE_SIZE], struct cop_err *err);

/* Performs the same check and opens the file; from now on, the spill accepts evicted objects. Call
 * it before any other thread uses the cache. */
int cop_spill_open(const struct cop_spill_conf *conf, char note[COP_SPILL_NOTE_SIZE],
	struct cop_spill **out, struct cop_err *err);
/* Ends queued reads with -ECANCELED, stops accepting objects, and waits 2 s for its threads. s may
 * be NULL. Returns false if a thread hangs, in which case nothing may be freed. */
bool cop_spill_close(struct cop_spill *s);
/* Call it only after cop_spill_close has returned true. */
void cop_spill_free(struct cop_spill *s);

/* Whether the part can be read from the spill. */
bool cop_spill_has(struct cop_spill *s, const struct cop_key *key);

/* A part of a file in its cached form; data is from cop_cache_alloc and owned by the callee. */
struct cop_spill_part {
	void *data;
	size_t len;
	uint64_t sum;
	bool packed;
};
/* rc is 0, or -errno with no part: fetch it as if there were no spill. */
typedef void cop_spill_done(void *arg, int rc, const struct cop_spill_part *part);
/* Reads a part. done is called once, on another thread or before this returns. Never blocks. */
void cop_spill_read(
	struct cop_spill *s, const struct cop_key *key, cop_spill_done *done, void *arg);

/* Drops all contents. s may be NULL. */
void cop_spill_forget(struct cop_spill *s);

#endif
