/* SPDX-License-Identifier: BSD-3-Clause */
/* slowfs: a read-only FUSE passthrough that is as slow as a busy parallel file system, for tests
 * and benchmarks. Each metadata operation and read takes a given number of microseconds; all mounts
 * on a machine share one bandwidth and a number of service slots. It has exact counters, and faults
 * that a script can switch on and off.
 *
 * Time is reserved: the shared state holds the time at which each slot and the link become free. An
 * operation takes the earliest free slot, adds its cost and sleeps until then. The state's lock
 * orders arrivals, so all mounts together are served first come, first served, without condition
 * variables. A killed mount leaves only a reservation, which expires.
 *
 * Lock order: the state's lock and the inode table's lock are never held together. */
#ifndef COP_SLOWFS_PRIV_H
#define COP_SLOWFS_PRIV_H

#include <fuse_lowlevel.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/base/htab.h"

#define COP_SLOWFS_MAX_SLOTS 1024
#define COP_SLOWFS_MAX_MOUNTS 64
#define COP_SLOWFS_MAX_FAULTS 16
#define COP_SLOWFS_PATH_MAX 4096

enum cop_slowfs_counter {
	SLOWFS_LOOKUP,
	SLOWFS_GETATTR,
	SLOWFS_READLINK,
	SLOWFS_ACCESS,
	SLOWFS_OPEN,
	SLOWFS_OPENDIR,
	SLOWFS_READDIR,
	SLOWFS_READ,
	SLOWFS_STATFS,
	SLOWFS_LSEEK,
	SLOWFS_IOCTL,
	SLOWFS_RELEASE,
	SLOWFS_RELEASEDIR,
	SLOWFS_FORGET,
	SLOWFS_NEGATIVE,
	SLOWFS_ERRORS,
	SLOWFS_BYTES,
	SLOWFS_MAX_SERVED,
	SLOWFS_MAX_OUTSTANDING,
	SLOWFS_COUNTERS,
};

struct cop_slowfs_costs {
	uint64_t meta_ns;
	uint64_t read_ns;
	uint64_t bytes_per_s; /* 0: unlimited */
	uint32_t slots;       /* 0: unlimited */
};

struct cop_slowfs_inode {
	struct cop_hlink link;
	uint64_t lookups;
	dev_t dev;
	ino_t ino;
	int fd; /* O_PATH; pins the inode, so that (dev, ino) is not reused */
};

struct cop_slowfs_state;

/* Names that can be looked up but are not listed. */
struct cop_slowfs_names {
	const char *at[8];
	unsigned n;
};

struct cop_slowfs {
	struct cop_slowfs_costs costs;
	double cache_s;
	int64_t tick_s; /* granularity of the reported timestamps; 0: unchanged */
	bool direct_io, keep_pages;
	struct cop_slowfs_names hidden;
	char *source; /* absolute, without links and trailing slash */
	/* share holds the times, the faults and the sums over all mounts; counters is NULL, or
	 * counts the operations of this mount, except max_served, which belongs to the slots. With
	 * only --counters that file is the share. */
	struct cop_slowfs_state *share, *counters;
	uint32_t mount_index, counters_index;
	struct fuse_session *session;
	pthread_mutex_t lock;   /* protects the inode table */
	struct cop_htab inodes; /* by device and number */
	struct cop_slowfs_inode root;
};

/* ---- state.c: the mapped file ---- */

/* Maps path, creating the file if necessary. path NULL: uses memory private to this process. */
int cop_slowfs_state_open(const char *path, struct cop_slowfs_state **out, struct cop_err *err);
void cop_slowfs_state_close(struct cop_slowfs_state *s);
/* Registers a live mount of s; the first one finds all slots free. -ENOSPC if there are too
 * many. */
int cop_slowfs_state_join(struct cop_slowfs_state *s, uint32_t *index);
void cop_slowfs_state_leave(struct cop_slowfs_state *s, uint32_t index);
void cop_slowfs_state_count(
	struct cop_slowfs_state *s, enum cop_slowfs_counter counter, uint64_t amount);
void cop_slowfs_state_enter(struct cop_slowfs_state *s, uint32_t index);
void cop_slowfs_state_exit(struct cop_slowfs_state *s, uint32_t index);
/* Reserves a slot for cost_ns and then the link for this many bytes. Returns the completion
 * time. */
uint64_t cop_slowfs_state_reserve(struct cop_slowfs_state *s, const struct cop_slowfs_costs *c,
	uint64_t cost_ns, uint64_t bytes);
/* Appends `name value` lines. */
void cop_slowfs_state_print(struct cop_slowfs_state *s, struct cop_buf *out);
void cop_slowfs_state_reset(struct cop_slowfs_state *s);

/* ---- fault.c ---- */

enum cop_slowfs_fault { SLOWFS_NO_FAULT, SLOWFS_EIO, SLOWFS_ENOENT, SLOWFS_HANG, SLOWFS_SIZE };

/* Sets a fault ("eio=PATH", "enoent=PATH", "hang=PATH" or "size=BYTES:PATH"), or removes all with
 * "clear". PATH is relative to the root of the mount; the fault also applies to everything below
 * it. */
int cop_slowfs_fault_set(struct cop_slowfs_state *s, const char *text, struct cop_err *err);
/* Returns SLOWFS_EIO, SLOWFS_ENOENT, SLOWFS_HANG or SLOWFS_NO_FAULT. path has no slashes at either
 * end. */
enum cop_slowfs_fault cop_slowfs_fault_of(struct cop_slowfs_state *s, const char *path);
/* How much the reported size of the file is off, in bytes. */
int64_t cop_slowfs_fault_size(struct cop_slowfs_state *s, const char *path);
bool cop_slowfs_fault_any(struct cop_slowfs_state *s);

/* ---- serve.c: shared by all operations ---- */

/* Counts the operation, applies a fault, and waits as long as the operation costs. name NULL: the
 * inode itself. Returns 0, or an errno value for the reply; in both cases, call cop_slowfs_done
 * before replying. */
int cop_slowfs_begin(struct cop_slowfs *fs, fuse_req_t req, enum cop_slowfs_counter op,
	fuse_ino_t ino, const char *name);
/* Charges a read for its bytes, which cop_slowfs_begin does not know yet. */
void cop_slowfs_charge_read(struct cop_slowfs *fs, uint64_t bytes);
void cop_slowfs_done(struct cop_slowfs *fs);
/* Applies a size fault to the reported attributes. name: as above. */
void cop_slowfs_lie(struct cop_slowfs *fs, fuse_ino_t ino, const char *name, struct stat *st);
void cop_slowfs_count(struct cop_slowfs *fs, enum cop_slowfs_counter counter, uint64_t amount);
void cop_slowfs_reply_err(struct cop_slowfs *fs, fuse_req_t req, int code);

/* Rounds the timestamps down to the tick, like a storage with coarse timestamps. */
void cop_slowfs_round(const struct cop_slowfs *fs, struct stat *st);

/* ---- inode.c ---- */

int cop_slowfs_inode_init(struct cop_slowfs *fs, int root_fd);
void cop_slowfs_inode_fini(struct cop_slowfs *fs);
struct cop_slowfs_inode *cop_slowfs_inode_at(struct cop_slowfs *fs, fuse_ino_t ino);
/* Fills e and counts one lookup. Returns 0 or an errno value. */
int cop_slowfs_inode_lookup(
	struct cop_slowfs *fs, fuse_ino_t parent, const char *name, struct fuse_entry_param *e);
void cop_slowfs_inode_forget(struct cop_slowfs *fs, fuse_ino_t ino, uint64_t lookups);
/* "/proc/self/fd/N", to open or examine an O_PATH descriptor. */
void cop_slowfs_inode_proc_path(struct cop_slowfs *fs, fuse_ino_t ino, char out[64]);

/* ---- ops.c ---- */

extern const struct fuse_lowlevel_ops cop_slowfs_ops;

/* ---- loop.c ---- */

/* Serves with this many threads until the mount is removed or a signal arrives; libfuse before 3.12
 * chooses the number itself. Returns 0, the signal, or -errno. */
int cop_slowfs_loop(struct fuse_session *session, unsigned threads);

#endif
