/* SPDX-License-Identifier: BSD-3-Clause */
/* spill: the second tier of a node's cache, a file on a disk of the machine. Parts of files that
 * leave memory are written there as they rest there (compressed or not), and read back when they
 * are needed again, with the checksum that they had.
 *
 * Only what a node keeps for others or for itself alone goes there, never copies of what another
 * node keeps (enum cop_duty): the job's disks together hold everything once, too.
 *
 * The file has no name, and nobody else can open it: its bytes are gone when the process ends,
 * however that happens. Bytes are appended to it. When it is full, it keeps what it has, because of
 * data that is read in turn the newest part is the last to be needed again; but once four times
 * as many bytes as it holds have been turned away without one of its own being read, it begins
 * anew.
 *
 * The disk is asked by threads of this module alone. What comes faster than they write is dropped.
 * A disk that is full, fails, gives other bytes than it got or does not answer within seconds is
 * left alone from then on, with one warning: the node then works as if it had none. */
#ifndef COP_STORAGE_SPILL_H
#define COP_STORAGE_SPILL_H

#include "base/base/base.h"
#include "cache/cache/cache.h"
#include "prof/stats/stats.h"

struct cop_spill;

struct cop_spill_conf {
	const char *dir;
	uint64_t size;     /* of the file at most; 0: half of what is free there */
	uint64_t memory;   /* bytes that the index and parts on their way to the disk may take */
	uint64_t sum_seed; /* of the checksums of chunks */
	struct cop_cache *cache;
	struct cop_stats *stats;
};

/* Whether a spill can be there: -ENOENT, -EACCES and so on with a sentence. *size is what was asked
 * for, and then what it may have. If that is less, note is a sentence that says so, else "". */
#define COP_SPILL_NOTE_SIZE 512
int cop_spill_check(
	const char *dir, uint64_t *size, char note[COP_SPILL_NOTE_SIZE], struct cop_err *err);

/* Checks the same and opens the file; from now on takes what the cache evicts. Call it before any
 * other thread uses the cache. */
int cop_spill_open(const struct cop_spill_conf *conf, char note[COP_SPILL_NOTE_SIZE],
	struct cop_spill **out, struct cop_err *err);
/* Ends reads that have not begun with -ECANCELED, takes nothing from the cache any more, and waits
 * 2 s for its threads. NULL is fine. False: one of them hangs; nothing may be freed. */
bool cop_spill_close(struct cop_spill *s);
/* After cop_spill_close, which has to have returned true. */
void cop_spill_free(struct cop_spill *s);

/* Whether the part can be read from here. */
bool cop_spill_has(struct cop_spill *s, const struct cop_key *key);

/* A part of a file as it left memory; data is from cop_cache_alloc and belongs to the callee. */
struct cop_spill_part {
	void *data;
	size_t len;
	uint64_t sum;
	bool packed;
};
/* rc 0, or -errno without a part: it has to be fetched as if there were no spill. */
typedef void cop_spill_done(void *arg, int rc, const struct cop_spill_part *part);
/* Reads it; done is called once, on another thread or before this returns. Never blocks. */
void cop_spill_read(
	struct cop_spill *s, const struct cop_key *key, cop_spill_done *done, void *arg);

/* Forgets all that it has. NULL is fine. */
void cop_spill_forget(struct cop_spill *s);

#endif
