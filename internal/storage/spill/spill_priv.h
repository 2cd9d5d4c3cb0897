/* SPDX-License-Identifier: BSD-3-Clause */
/* One lock protects everything. It is not held during file I/O, callbacks, or calls into the cache.
 * The cache calls leaves() with its own locks held, so the lock order is cache before spill. */
#ifndef COP_STORAGE_SPILL_PRIV_H
#define COP_STORAGE_SPILL_PRIV_H

#include <pthread.h>

#include "base/base/htab.h"
#include "storage/spill/spill.h"

#define SPILL_WORKERS 4u
/* A read that takes longer than this disables the disk, and its requester gets an error. */
#define SPILL_SLOW_MS 3000
/* How long closing waits for reads and writes. */
#define SPILL_END_MS 2000

/* A queued write. */
struct spill_write {
	struct cop_list link;      /* in the queue */
	struct spill_entry *entry; /* NULL: dropped */
	struct cop_obj *obj;
	uint64_t offset;
};

/* A stored part. */
struct spill_entry {
	struct cop_hlink link;
	uint64_t second; /* second hash of its key */
	uint64_t offset, sum;
	struct spill_write *write; /* NULL: written */
	uint32_t len;
	bool packed;
};
/* Memory per entry, including malloc and hash table overhead. */
#define SPILL_ENTRY_BYTES (sizeof(struct spill_entry) + 4 * sizeof(void *))

struct spill_read {
	struct cop_list link; /* in the queue or the list of running reads */
	cop_spill_done *done;
	void *arg;
	struct cop_obj *obj; /* its data if it is still in memory, or NULL */
	uint64_t offset;
	struct cop_spill_part part;
	uint64_t age; /* age of the file when the read was requested */
	uint64_t begun_ms;
	bool abandoned; /* the requester already has an answer */
};

struct cop_spill {
	struct cop_spill_conf conf;
	char *dir; /* its own copy */
	int fd;
	ssize_t (*pread)(int fd, void *data, size_t len, off_t offset); /* replaced by tests */
	uint64_t slow_ms; /* SPILL_SLOW_MS, except in tests */
	pthread_mutex_t lock;
	pthread_cond_t work, tick, ended;
	bool off; /* the disk is disabled, or the spill is closing */
	bool stopping;
	struct cop_htab index;
	size_t entries_max;
	uint64_t end;                  /* end of the data in the file */
	uint64_t age;                  /* how often the file was restarted */
	uint64_t passed;               /* bytes turned away since the last read of a part */
	uint64_t pending, pending_max; /* memory used by queued writes, and its limit */
	struct cop_list writes, reads, running;
	unsigned writing; /* number of writes queued or running */
	unsigned threads;
	pthread_t worker[SPILL_WORKERS], clock;
	unsigned started; /* number of workers started */
	bool has_clock;
};

/* Starts a spill with this file, which it closes in the end, and also on failure
 * (spill_testing.h). */
int cop_spill_start(const struct cop_spill_conf *conf, int fd, struct cop_spill **out);

/* ---- index.c: offsets of the parts; with the lock held ---- */

struct spill_entry *cop_spill_find(struct cop_spill *s, const struct cop_key *key);
/* Takes the object and its reference if there is room in memory, in the index and on the disk. */
bool cop_spill_take(struct cop_spill *s, struct cop_obj *obj);
void cop_spill_empty(struct cop_spill *s);
/* Called when a write has ended or was cancelled. */
void cop_spill_written(struct cop_spill *s, struct spill_write *w);

/* ---- io.c ---- */

void *cop_spill_work(void *spill);
void *cop_spill_watch(void *spill);
/* Disables the disk. why: the reason for the user. */
void cop_spill_give_up(struct cop_spill *s, const char *why);
/* Cancels all queued work: ends reads with rc, and drops writes. */
void cop_spill_cancel(struct cop_spill *s, int rc);

#endif
