/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside origin: the seam between the real origin and the fake one, the pool, and the way from a
 * path to a descriptor.
 *
 * Locks: pool.lock (queue, workers and alarms), fds.lock (kept descriptors), types.lock (what
 * the listings of each device say), unanswered.lock, and the lock of one pass over a directory
 * (list_priv.h), under which unanswered.lock may be taken. No other two are held together, and none
 * is held during a system call on the source or a callback. */
#ifndef COP_STORAGE_ORIGIN_PRIV_H
#define COP_STORAGE_ORIGIN_PRIV_H

#include "storage/origin/origin.h"

#define COP_ORIGIN_PATH_MAX 4095
#define COP_ORIGIN_KEPT_FDS 64
#define COP_ORIGIN_KEPT_MS 2000
#define COP_ORIGIN_IDLE_MS 30000
#define COP_ORIGIN_CLOCK_MS 200
/* How long the storage may take for attributes, and for other requests, before the node stops
 * waiting for the answer. */
#define COP_ORIGIN_ATTR_MS 1000
#define COP_ORIGIN_ANY_MS 5000

/* ---- the seam: what the real and the fake origin do differently ---- */

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
	/* The second and the third handle of a real origin (cop_origin_background,
	 * cop_origin_soon). */
	bool background, soon;
};

/* ---- the pool ---- */

/* A job is a member of the object it works on. fn is called once: with rc 0 on a worker, with
 * -ECANCELED on the thread that closes the pool or submits while it closes, or with another error
 * if no thread could be started. */
struct cop_origin_job {
	struct cop_list link;
	void (*fn)(struct cop_origin_job *job, int rc);
	bool background; /* has no waiter: it runs after all others, and never on all workers
			  */
	bool soon;       /* of a background job: it runs before the others of them */
	const char
		*path; /* the path and the offset it is about; NULL if priorities do not matter */
	uint64_t from, to;
	unsigned patience_ms; /* 0: COP_ORIGIN_ANY_MS */
	uint64_t begun_ns;    /* when a worker took it */
};

/* A job that is to be submitted after a delay. */
struct cop_origin_alarm {
	struct cop_origin_job job;
	uint64_t due_ms;
	bool set;
};

/* A worker is lost from the moment when a system call of it has taken longer than the patience of
 * its job, until that call returns. A lost worker does not count against the limit, so that hanging
 * calls do not keep out those that would be answered. At most max workers are lost at a time, so
 * there are at most twice as many threads; and one more, only for alarms. */
struct cop_origin_worker {
	struct cop_origin_pool *pool;
	pthread_t thread;
	enum {
		COP_ORIGIN_FREE,
		COP_ORIGIN_ALIVE,
		COP_ORIGIN_ENDED
	} state; /* ended: has only to be joined */
	_Atomic uint64_t
		since_ms; /* when its last system call or its job began; 0: it has no job */
	unsigned patience_ms;
	bool background, lost;
};

#define COP_ORIGIN_WORKERS(max) (2 * (max) + 1)
#define COP_ORIGIN_RAISED 32

struct cop_origin_pool {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct cop_list due; /* jobs of alarms, which go first */
	struct cop_list queue, soon, background;
	unsigned passed; /* jobs of the queue that went ahead of those in soon */
	unsigned max, threads, idle, queued, running, running_background, lost, lost_background;
	/* The last paths whose priority was raised, for the parts of a directory that is being
	 * read: they are submitted only after that. */
	struct {
		uint64_t hash, offset;
	} raised[COP_ORIGIN_RAISED];
	unsigned raises;
	bool stopping;
	_Atomic bool left; /* the pool closed although a worker waits for the storage */
	struct cop_origin_worker *worker; /* COP_ORIGIN_WORKERS of them */
	struct cop_list alarms;
	pthread_t
		clock; /* checks every COP_ORIGIN_CLOCK_MS while a job runs, and sleeps otherwise */
	pthread_cond_t tick;
	bool has_clock, clock_sleeps;
	unsigned idle_ms;
	/* An idle worker calls this without the lock. Returns in how many ms it wants to be called
	 * again; 0: only after more work. */
	unsigned (*expire_idle)(void *ctx);
	void *expire_idle_ctx;
};

int cop_origin_pool_init(struct cop_origin_pool *p, unsigned max);
/* Cancels queued jobs and waits for running ones. Jobs that a running job submits meanwhile are
 * cancelled. False: a worker hangs in the storage; nothing was freed, and its threads end with the
 * process. */
bool cop_origin_pool_fini(struct cop_origin_pool *p);
/* Called by a worker after a system call, before it touches what the pool's owner may have freed:
 * does not return if the pool was closed without this worker. */
void cop_origin_pool_park(struct cop_origin_pool *p);
/* urgent: goes ahead of the jobs that wait in its queue; for the parts of a job that has already
 * started. */
void cop_origin_pool_submit(struct cop_origin_pool *p, struct cop_origin_job *job, bool urgent);
/* Somebody waits now: background jobs on this path and offset become ordinary ones. */
void cop_origin_pool_raise_priority(struct cop_origin_pool *p, const char *path, uint64_t offset);

/* Submits the alarm's job as urgent after this many ms. The job ends with -ECANCELED if the pool
 * closes first or is already closing. */
void cop_origin_pool_alarm(struct cop_origin_pool *p, struct cop_origin_alarm *a, unsigned ms);
/* Cancels an alarm. True: its job has not been submitted and will not be. */
bool cop_origin_pool_calm(struct cop_origin_pool *p, struct cop_origin_alarm *a);
/* Whether most of the workers would be lost with this many more. */
bool cop_origin_pool_is_short(struct cop_origin_pool *p, unsigned more);
/* Called by a worker that begins a system call. */
void cop_origin_pool_alive(void);

/* ---- clock.c, under the pool's lock ---- */

void cop_origin_pool_need_clock(struct cop_origin_pool *p);
/* Called when there is a new job: wakes a worker, or starts one if the limit allows it. */
int cop_origin_pool_call_worker(struct cop_origin_pool *p);

/* ---- descriptors that are kept between reads of one file ---- */

struct cop_origin_kept {
	char *path; /* NULL: free */
	uint64_t hash, version;
	uint64_t used_ms;
	unsigned users;
	int fd;
	bool doomed; /* close it when its last user is done */
};

struct cop_origin_fds {
	pthread_mutex_t lock;
	struct cop_origin_kept slot[COP_ORIGIN_KEPT_FDS];
};

void cop_origin_fds_init(struct cop_origin_fds *f);
void cop_origin_fds_fini(struct cop_origin_fds *f);
/* The slot of this path and version, in use until put; NULL if there is none. */
struct cop_origin_kept *cop_origin_fds_get(
	struct cop_origin_fds *f, const char *path, uint64_t version);
void cop_origin_fds_put(struct cop_origin_fds *f, struct cop_origin_kept *slot, bool drop);
/* Keeps fd, or closes it if there is no free slot. */
void cop_origin_fds_keep(struct cop_origin_fds *f, const char *path, uint64_t version, int fd);
/* Closes descriptors that have been idle for COP_ORIGIN_KEPT_MS; returns in how many ms to call it
 * again; 0: none is kept. */
unsigned cop_origin_fds_expire_idle(struct cop_origin_fds *f);
/* Closes all idle descriptors; returns whether there were any. */
bool cop_origin_fds_drop(struct cop_origin_fds *f);

/* ---- the real origin ---- */

#define COP_ORIGIN_TYPES 64

/* What the listings of a file system say about a name that they do not have (types.c). */
enum cop_origin_lists {
	COP_ORIGIN_LISTS_NOTHING,   /* it may appear when it is asked for */
	COP_ORIGIN_LISTS_SPELLINGS, /* it may exist as another spelling of one that they have */
	COP_ORIGIN_LISTS_HIDES,     /* it may exist, for all that is known */
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

/* Hashes of the names whose attributes were requested and have not arrived: a listing that is read
 * again does not wait for them. */
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
	uint64_t dev;    /* of the source */
	bool no_openat2; /* an old kernel or a filter: paths are opened component by component */
	_Atomic bool no_noatime;  /* O_NOATIME was refused once: somebody else owns the files */
	_Atomic uint64_t stat_ns; /* the recent duration of one statx of a child */
	_Atomic bool in_pieces;   /* a directory gave its names in blocks that were not full */
};

static inline struct cop_origin_real *cop_origin_real_of(struct cop_origin *o)
{
	if (o->soon)
		return COP_CONTAINER_OF(o, struct cop_origin_real, soon);
	return o->background ? COP_CONTAINER_OF(o, struct cop_origin_real, background)
			     : COP_CONTAINER_OF(o, struct cop_origin_real, base);
}

/* The head of every request to the real origin. */
struct cop_origin_request {
	struct cop_origin_job job;
	struct cop_origin_real *o;
	cop_origin_done *done;
	void *arg;
	char *path;
	int path_error; /* why the path must not reach a system call, or 0 */
	uint64_t asked_ns;
};

/* Fills a request inside a larger malloc'ed object. path may be NULL. -ENOMEM. */
int cop_origin_request_init(struct cop_origin_request *t, struct cop_origin *o, const char *path,
	cop_origin_done *done, void *arg);
/* Counts the request, frees its path and calls done, which takes data. The caller frees the object
 * afterwards. */
void cop_origin_request_end(struct cop_origin_request *t, int rc, void *data, size_t len);

/* Call it before cop_origin_request_end: records the request as an event of the node's trace. what:
 * a constant; bytes: of the answer. */
void cop_origin_request_trace(
	const struct cop_origin_request *t, const char *what, int rc, size_t bytes);

/* Counts one more system call that reaches the storage. */
static inline void cop_origin_count(struct cop_origin_real *o)
{
	cop_origin_pool_alive();
	cop_stats_add(o->stats, COP_ORIGIN_OPERATIONS, 1);
}

/* Counts how long the storage has taken since begin_ns. The caller excludes what runs after the
 * answer, when no request waits for the storage. */
static inline void cop_origin_took(struct cop_origin_real *o, uint64_t begin_ns)
{
	cop_stats_add(o->stats, COP_ORIGIN_TIME_US, (cop_now_ns() - begin_ns + 500) / 1000);
}

/* 0, -EINVAL (leading, trailing or double slash, "." or ".." anywhere) or -ENAMETOOLONG. */
int cop_origin_path_check(const char *path);
/* Opens path, never outside the source and never through a symlink; a descriptor or -errno. */
int cop_origin_open_at(struct cop_origin_real *o, const char *path, int flags);
/* The same for reading, without changing the access time where that is allowed. */
int cop_origin_open_read(struct cop_origin_real *o, const char *path, int flags);

/* A device's inode number as the tree shows it. */
uint64_t cop_origin_ino(const struct cop_origin_real *o, uint64_t dev, uint64_t ino);
/* Attributes of name in fd, or of fd itself if name is "". */
int cop_origin_statx(
	struct cop_origin_real *o, int fd, const char *name, struct cop_attr *attr, uint64_t *dev);
/* Calls fn for each name in the directory fd on which this process sees a mount; for none if mounts
 * cannot be read. */
void cop_origin_mounted(int fd, void (*fn)(void *arg, const char *name), void *arg);
/* The target of the symlink name in fd (malloc'ed); "" as above. */
int cop_origin_readlink(
	struct cop_origin_real *o, int fd, const char *name, char **target, size_t *len);
/* The flags of a listing that has all names of the directory fd on this device. */
uint32_t cop_origin_listing_flags(struct cop_origin_real *o, int fd, uint64_t dev);
/* What listings say on a type of file system, as in statfs(2), if nothing else is known of it. */
enum cop_origin_lists cop_origin_type_lists(uint32_t type);
/* Calls fn for each layer in the options of an overlay, as in mountinfo. False: one of them cannot
 * be told, or fn returned false. Changes the text. */
bool cop_origin_layers(char *options, bool (*fn)(void *arg, const char *dir), void *arg);

/* list.c, read.c: entries of the real origin's ops. */
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
