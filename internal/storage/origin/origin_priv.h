/* SPDX-License-Identifier: BSD-3-Clause */
/* Internals of origin: the interface between the real and the fake origin, the pool, and path
 * resolution.
 *
 * Locks: pool.lock (queue, workers and alarms), fds.lock (cached descriptors), types.lock
 * (properties of each device's listings), unanswered.lock, and the lock of a pass over a directory
 * (list_priv.h), under which unanswered.lock may be taken. No other two locks are held together,
 * and no lock is held during a callback or a system call on the source. */
#ifndef COP_STORAGE_ORIGIN_PRIV_H
#define COP_STORAGE_ORIGIN_PRIV_H

#include "storage/origin/origin.h"

#define COP_ORIGIN_PATH_MAX 4095
#define COP_ORIGIN_KEPT_FDS 64
#define COP_ORIGIN_KEPT_MS 2000
#define COP_ORIGIN_IDLE_MS 30000
/* How long closing the pool waits for operations in flight. */
#define COP_ORIGIN_END_MS 2000
#define COP_ORIGIN_CLOCK_MS 200
/* Timeouts, for attributes and for other requests, after which the node stops waiting for the
 * storage. */
#define COP_ORIGIN_ATTR_MS 1000
#define COP_ORIGIN_ANY_MS 5000

/* ---- operations that differ between the real and the fake origin ---- */

struct cop_origin_ops {
	bool (*close)(struct cop_origin *o);
	void (*list)(struct cop_origin *o, const char *path, bool names_only, cop_origin_done *done,
		void *arg);
	void (*list_known)(struct cop_origin *o, const char *path, const void *known,
		cop_origin_done *done, void *arg);
	void (*page)(struct cop_origin *o, const char *path, const struct cop_listing_page *page,
		const void *names, cop_origin_done *done, void *arg);
	void (*stat)(struct cop_origin *o, const char *path, cop_origin_done *done, void *arg);
	void (*read)(struct cop_origin *o, const char *path, uint64_t version, uint64_t size,
		uint64_t offset, const struct iovec *iov, int n_iov, cop_origin_done *done,
		void *arg);
	void (*holes)(struct cop_origin *o, const char *path, uint64_t version,
		cop_origin_done *done, void *arg);
	void (*statfs)(struct cop_origin *o, cop_origin_done *done, void *arg);
	void (*run)(struct cop_origin *o, void (*fn)(void *arg, int rc), void *arg);
	void (*raise_priority)(struct cop_origin *o, const char *path, uint64_t offset);
	void (*load)(struct cop_origin *o, unsigned *queued, unsigned *running);
};

struct cop_origin {
	const struct cop_origin_ops *ops;
	int dirfd; /* -1 in the fake origin */
	/* The other two handles of a real origin (cop_origin_background, cop_origin_soon). */
	bool background, soon;
};

/* ---- the pool ---- */

/* A job is embedded in the object it works on. fn is called once: with rc 0 on a worker; with
 * -ECANCELED on the thread that closes the pool, or that submits a job while it closes; or with
 * another error if no thread could be started. */
struct cop_origin_job {
	struct cop_list link;
	void (*fn)(struct cop_origin_job *job, int rc);
	bool background;  /* has no waiter: runs after all others, and never on all workers */
	bool soon;        /* a background job that runs before the other ones */
	const char *path; /* path and byte range of the request; NULL: its priority never changes */
	uint64_t from, to;
	unsigned patience_ms; /* 0: COP_ORIGIN_ANY_MS */
	uint64_t begun_ns;    /* when a worker started it */
};

/* A job to submit after a delay. */
struct cop_origin_alarm {
	struct cop_origin_job job;
	uint64_t due_ms;
	bool set;
};

/* A worker is lost while a system call exceeds the timeout (patience) of its job. Lost workers do
 * not count against the limit, so hung calls do not hold up calls that the storage would answer. At
 * most max workers are lost at a time, which limits the pool to 2 * max threads, plus one that runs
 * only alarms. */
struct cop_origin_worker {
	struct cop_origin_pool *pool;
	pthread_t thread;
	enum {
		COP_ORIGIN_FREE,
		COP_ORIGIN_ALIVE,
		COP_ORIGIN_ENDED
	} state;                   /* COP_ORIGIN_ENDED: must be joined */
	_Atomic uint64_t since_ms; /* when its last system call or job began; 0: no job */
	unsigned patience_ms;
	bool background, lost;
};

#define COP_ORIGIN_WORKERS(max) (2 * (max) + 1)
#define COP_ORIGIN_RAISED 32

struct cop_origin_pool {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct cop_list due; /* jobs of alarms; they run first */
	struct cop_list queue, soon, background;
	unsigned passed; /* number of jobs in queue that overtook those in soon */
	unsigned max, threads, idle, queued, running, running_background, lost, lost_background;
	/* The last paths whose priority was raised: a directory read submits some of its parts only
	 * afterwards. */
	struct {
		uint64_t hash, offset;
	} raised[COP_ORIGIN_RAISED];
	unsigned raises;
	bool stopping;
	_Atomic bool left; /* the pool was closed while a worker hung in the storage */
	struct cop_origin_worker *worker; /* array of COP_ORIGIN_WORKERS(max) */
	struct cop_list alarms;
	pthread_t clock; /* ticks every COP_ORIGIN_CLOCK_MS while a job runs, otherwise sleeps */
	pthread_cond_t tick;
	bool has_clock, clock_sleeps;
	unsigned idle_ms, end_ms;
	/* Called by an idle worker without the lock. Returns the number of ms until the next call;
	 * 0: not until there has been more work. */
	unsigned (*expire_idle)(void *ctx);
	void *expire_idle_ctx;
};

int cop_origin_pool_init(struct cop_origin_pool *p, unsigned max);
/* Cancels queued jobs, and jobs that a running job still submits, and waits for running ones.
 * Returns false if a worker hangs in the storage: nothing was freed, and workers that are still
 * running are detached, to exit with the process or before. */
bool cop_origin_pool_fini(struct cop_origin_pool *p);
/* Called by a worker after a system call, before it accesses memory that the pool's owner may have
 * freed. Does not return if the pool was closed without this worker. */
void cop_origin_pool_park(struct cop_origin_pool *p);
/* urgent: put the job at the head of its queue, for the parts of a job that has already started. */
void cop_origin_pool_submit(struct cop_origin_pool *p, struct cop_origin_job *job, bool urgent);
/* A waiter has arrived: background jobs on this path and offset become normal ones. */
void cop_origin_pool_raise_priority(struct cop_origin_pool *p, const char *path, uint64_t offset);

/* Submits the alarm's job as urgent after this many ms. The job ends with -ECANCELED if the pool is
 * closed first. */
void cop_origin_pool_alarm(struct cop_origin_pool *p, struct cop_origin_alarm *a, unsigned ms);
/* Cancels an alarm. Returns true if its job was not submitted and will not be. */
bool cop_origin_pool_calm(struct cop_origin_pool *p, struct cop_origin_alarm *a);
/* Whether most workers would be lost if this many more were. */
bool cop_origin_pool_is_short(struct cop_origin_pool *p, unsigned more);
/* Called by a worker at the start of a system call. */
void cop_origin_pool_alive(void);

/* ---- clock.c; with the pool's lock held ---- */

void cop_origin_pool_need_clock(struct cop_origin_pool *p);
/* Called for a new job: wakes a worker, or starts one if the limit allows it. */
int cop_origin_pool_call_worker(struct cop_origin_pool *p);

/* ---- descriptors cached between reads of a file ---- */

struct cop_origin_kept {
	char *path; /* NULL: free */
	uint64_t hash, version;
	uint64_t used_ms;
	unsigned users;
	int fd;
	bool doomed; /* to be closed by its last user */
};

struct cop_origin_fds {
	pthread_mutex_t lock;
	struct cop_origin_kept slot[COP_ORIGIN_KEPT_FDS];
};

void cop_origin_fds_init(struct cop_origin_fds *f);
void cop_origin_fds_fini(struct cop_origin_fds *f);
/* Returns the slot of this path and version, in use until put, or NULL. */
struct cop_origin_kept *cop_origin_fds_get(
	struct cop_origin_fds *f, const char *path, uint64_t version);
void cop_origin_fds_put(struct cop_origin_fds *f, struct cop_origin_kept *slot, bool drop);
/* Caches fd, or closes it if there is no free slot. */
void cop_origin_fds_keep(struct cop_origin_fds *f, const char *path, uint64_t version, int fd);
/* Closes descriptors that have been idle for COP_ORIGIN_KEPT_MS. Returns the number of ms until the
 * next call; 0: none is cached. */
unsigned cop_origin_fds_expire_idle(struct cop_origin_fds *f);
/* Closes all idle descriptors; returns whether there were any. */
bool cop_origin_fds_drop(struct cop_origin_fds *f);

/* ---- the real origin ---- */

#define COP_ORIGIN_TYPES 64

/* What it means on a file system that a listing lacks a name (types.c). */
enum cop_origin_lists {
	COP_ORIGIN_LISTS_NOTHING,   /* a lookup may create it */
	COP_ORIGIN_LISTS_SPELLINGS, /* it may be another spelling of a listed name */
	COP_ORIGIN_LISTS_HIDES,     /* unknown: it may exist */
	COP_ORIGIN_LISTS_BY_FLAG,   /* it does not exist, unless the directory ignores case */
	COP_ORIGIN_LISTS_ALL,       /* it does not exist */
};

struct cop_origin_types {
	pthread_mutex_t lock;
	unsigned count;
	struct {
		uint64_t dev;
		enum cop_origin_lists lists;
	} dev[COP_ORIGIN_TYPES];
};

#define COP_ORIGIN_UNANSWERED 64

/* Hashes of the names whose attributes were requested without an answer; later listings do not wait
 * for them. */
struct cop_origin_unanswered {
	pthread_mutex_t lock;
	_Atomic unsigned count;
	uint64_t name[COP_ORIGIN_UNANSWERED]; /* 0: free */
};

struct cop_origin_real {
	struct cop_origin base, soon, background; /* the handles */
	struct cop_origin_pool pool;
	struct cop_origin_fds fds;
	struct cop_origin_types types;
	struct cop_origin_unanswered unanswered;
	uint32_t listing_max, listing_attrs;
	bool trusts_listings;
	struct cop_stats *stats;
	struct cop_tracer *tracer;
	struct cop_telemetry *telemetry;
	uint64_t dev;    /* device of the source */
	bool no_openat2; /* old kernel or seccomp filter: paths are opened component by component */
	_Atomic bool no_noatime;  /* O_NOATIME was refused once: the files have another owner */
	_Atomic uint64_t stat_ns; /* recent duration of the statx of a child */
	_Atomic bool in_pieces;   /* a directory returned its names in blocks that were not full */
};

static inline struct cop_origin_real *cop_origin_real_of(struct cop_origin *o)
{
	if (o->soon)
		return COP_CONTAINER_OF(o, struct cop_origin_real, soon);
	return o->background ? COP_CONTAINER_OF(o, struct cop_origin_real, background)
			     : COP_CONTAINER_OF(o, struct cop_origin_real, base);
}

/* The head common to all requests to the real origin. */
struct cop_origin_request {
	struct cop_origin_job job;
	struct cop_origin_real *o;
	cop_origin_done *done;
	void *arg;
	char *path;
	int path_error; /* error if the path must not be used in a system call, or 0 */
	uint64_t asked_ns;
};

/* Initialises a request embedded in a larger malloc'ed object. path may be NULL. Returns 0 or
 * -ENOMEM. */
int cop_origin_request_init(struct cop_origin_request *t, struct cop_origin *o, const char *path,
	cop_origin_done *done, void *arg);
/* Counts the request, frees its path and calls done, which takes data. The caller frees the object
 * afterwards. */
void cop_origin_request_end(struct cop_origin_request *t, int rc, void *data, size_t len);

/* Call before cop_origin_request_end: records the request as an event in the node's trace. what: a
 * constant string; bytes: the size of the answer. */
void cop_origin_request_trace(
	const struct cop_origin_request *t, const char *what, int rc, size_t bytes);

/* Counts a system call that reaches the storage. */
static inline void cop_origin_count(struct cop_origin_real *o)
{
	cop_origin_pool_alive();
	cop_stats_add(o->stats, COP_ORIGIN_OPERATIONS, 1);
}

/* Counts the storage time since begin_ns. Callers must exclude work done after the answer. */
static inline void cop_origin_took(struct cop_origin_real *o, uint64_t begin_ns)
{
	cop_stats_add(o->stats, COP_ORIGIN_TIME_US, (cop_now_ns() - begin_ns + 500) / 1000);
}

/* 0, -EINVAL (leading, trailing or double slash, any "." or "..") or -ENAMETOOLONG. */
int cop_origin_path_check(const char *path);
/* Opens path, never outside the source and never through a symlink. Returns a descriptor or -errno.
 * */
int cop_origin_open_at(struct cop_origin_real *o, const char *path, int flags);
/* The same for reading, without updating the access time where that is permitted. */
int cop_origin_open_read(struct cop_origin_real *o, const char *path, int flags);

/* Maps an inode number on a device to the inode number in the tree. */
uint64_t cop_origin_ino(const struct cop_origin_real *o, uint64_t dev, uint64_t ino);
/* Attributes of name in fd, or of fd itself if name is "". */
int cop_origin_statx(
	struct cop_origin_real *o, int fd, const char *name, struct cop_attr *attr, uint64_t *dev);
/* Calls fn for each mount point in the directory fd that this process can see; not at all if the
 * mounts cannot be read. */
void cop_origin_mounted(int fd, void (*fn)(void *arg, const char *name), void *arg);
/* Reads the target of the symlink name in fd (malloc'ed); name "" as above. */
int cop_origin_readlink(
	struct cop_origin_real *o, int fd, const char *name, char **target, size_t *len);
/* The flags of a complete listing of the directory fd on this device. */
uint32_t cop_origin_listing_flags(struct cop_origin_real *o, int fd, uint64_t dev);
/* What listings mean on a file system of this type (statfs(2)), as far as the type alone tells. */
enum cop_origin_lists cop_origin_type_lists(uint32_t type);
/* Calls fn for each layer in the mountinfo options of an overlay. False: a layer is unknown, or fn
 * returned false. Changes the text. */
bool cop_origin_layers(char *options, bool (*fn)(void *arg, const char *dir), void *arg);

/* list.c, read.c: operations of the real origin. */
void cop_origin_real_list(
	struct cop_origin *o, const char *path, bool names_only, cop_origin_done *done, void *arg);
void cop_origin_real_list_known(struct cop_origin *o, const char *path, const void *known,
	cop_origin_done *done, void *arg);
void cop_origin_real_page(struct cop_origin *o, const char *path,
	const struct cop_listing_page *page, const void *names, cop_origin_done *done, void *arg);
void cop_origin_real_read(struct cop_origin *o, const char *path, uint64_t version, uint64_t size,
	uint64_t offset, const struct iovec *iov, int n_iov, cop_origin_done *done, void *arg);
void cop_origin_real_holes(
	struct cop_origin *o, const char *path, uint64_t version, cop_origin_done *done, void *arg);

#endif
