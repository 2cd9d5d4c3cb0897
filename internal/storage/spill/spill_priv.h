/* SPDX-License-Identifier: BSD-3-Clause */
/* One lock guards everything. It is not held during a system call on the file, a callback, or a
 * call of the cache. The cache calls leaves() with its own locks held; spill.c never calls the
 * cache with the lock held. */
#ifndef COP_STORAGE_SPILL_PRIV_H
#define COP_STORAGE_SPILL_PRIV_H

#include <pthread.h>

#include "base/base/htab.h"
#include "storage/spill/spill.h"

#define SPILL_WORKERS 4u
/* How long a read may take before the disk is left alone. The reader is answered then. */
#define SPILL_SLOW_MS 3000
/* How long the end of reads and writes may take when the spill closes. */
#define SPILL_END_MS 2000

/* A part on its way to the disk. */
struct spill_write {
	struct cop_list link;      /* in the queue */
	struct spill_entry *entry; /* NULL: it is forgotten */
	struct cop_obj *obj;
	uint64_t offset;
};

/* A part that is here. */
struct spill_entry {
	struct cop_hlink link;
	uint64_t second; /* another hash of its key */
	uint64_t offset, sum;
	struct spill_write *write; /* NULL: it is on the disk */
	uint32_t len;
	bool packed;
};
/* What one costs in memory, with what malloc and the table add. */
#define SPILL_ENTRY_BYTES (sizeof(struct spill_entry) + 4 * sizeof(void *))

struct spill_read {
	struct cop_list link; /* in the queue, or among those that run */
	cop_spill_done *done;
	void *arg;
	struct cop_obj *obj; /* it is still in memory; or NULL */
	uint64_t offset;
	struct cop_spill_part part;
	uint64_t age; /* of the file when it was asked */
	uint64_t begun_ms;
	bool abandoned; /* it has been answered */
};

struct cop_spill {
	struct cop_spill_conf conf;
	char *dir; /* its own copy */
	int fd;
	ssize_t (*pread)(int fd, void *data, size_t len, off_t offset); /* tests have their own */
	uint64_t slow_ms;                                               /* SPILL_SLOW_MS */
	pthread_mutex_t lock;
	pthread_cond_t work, tick, ended;
	bool off; /* the disk is left alone, or the spill closes */
	bool stopping;
	struct cop_htab index;
	size_t entries_max;
	uint64_t end;                  /* of the bytes in the file */
	uint64_t age;                  /* how often it has forgotten all */
	uint64_t passed;               /* bytes that were turned away since a part was last read */
	uint64_t pending, pending_max; /* bytes of memory on their way to the disk */
	struct cop_list writes, reads, running;
	unsigned writing; /* writes that are queued or run */
	unsigned threads;
	pthread_t worker[SPILL_WORKERS], clock;
	unsigned started; /* workers */
	bool has_clock;
};

/* The spill with this file, which it closes, also if this fails (spill_testing.h). */
int cop_spill_start(const struct cop_spill_conf *conf, int fd, struct cop_spill **out);

/* ---- index.c: which parts are where; the lock is held ---- */

struct spill_entry *cop_spill_find(struct cop_spill *s, const struct cop_key *key);
/* Takes the object, whose reference it gets, if there is room: in memory, in the index, on the
 * disk. */
bool cop_spill_take(struct cop_spill *s, struct cop_obj *obj);
void cop_spill_empty(struct cop_spill *s);
/* A write has ended, or will not begin. */
void cop_spill_written(struct cop_spill *s, struct spill_write *w);

/* ---- io.c ---- */

void *cop_spill_work(void *spill);
void *cop_spill_watch(void *spill);
/* Leaves the disk alone. why: for the user. */
void cop_spill_give_up(struct cop_spill *s, const char *why);
/* Ends everything that has not begun: reads with rc, writes without. */
void cop_spill_cancel(struct cop_spill *s, int rc);

#endif
