/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside origin: the seam between the real and the fake one, the pool, the way from a path to a
 * descriptor.
 *
 * Locks, never two at once and none held during a system call on the source or a callback:
 * pool.lock (queue, workers and alarms), fds.lock (kept descriptors), types.lock (which devices are
 * autofs), unanswered.lock, and that of one pass over a directory (list_priv.h), under which
 * unanswered.lock may be taken. */
#ifndef COP_ORIGIN_PRIV_H
#define COP_ORIGIN_PRIV_H

#include "origin/origin.h"

#define COP_ORIGIN_PATH_MAX 4095
#define COP_ORIGIN_KEPT_FDS 64
#define COP_ORIGIN_KEPT_MS 2000
#define COP_ORIGIN_IDLE_MS 30000
#define COP_ORIGIN_CLOCK_MS 200
/* How long the storage may take for attributes, and for anything else, before its answer is no
 * longer counted on. */
#define COP_ORIGIN_ATTR_MS 1000
#define COP_ORIGIN_ANY_MS 5000

/* ---- the seam: what the real and the fake origin do differently ---- */

struct cop_origin_ops {
	void (*close)(struct cop_origin *o);
	void (*list)(struct cop_origin *o, const char *path, bool names_only, cop_origin_done *done,
		void *arg);
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
	int dirfd;       /* -1 in the fake */
	bool background; /* the other handle of a real one (cop_origin_background) */
};

/* ---- the pool ---- */

/* A job is a member of what it works on. fn is called once: rc 0 on a worker, or -ECANCELED on the
 * thread that closes or that submits while the pool closes, or another error if no thread could be
 * had. */
struct cop_origin_job {
	struct cop_list link;
	void (*fn)(struct cop_origin_job *job, int rc);
	bool background; /* nobody waits for it: after all the others, and never on all workers */
	const char
		*path; /* what it is about, NULL if that does not matter, and which bytes of it */
	uint64_t from, to;
	unsigned patience_ms; /* 0: COP_ORIGIN_ANY_MS */
};

/* A job for a time that may come. */
struct cop_origin_alarm {
	struct cop_origin_job job;
	uint64_t due_ms;
	bool set;
};

/* A worker whose system call the storage has not answered for the patience of its job is lost until
 * it comes back: it does not count against the limit, so that what hangs does not keep out what
 * would be answered. At most max are lost at a time, so there are at most twice as many threads. */
struct cop_origin_worker {
	struct cop_origin_pool *pool;
	pthread_t thread;
	enum {
		COP_ORIGIN_FREE,
		COP_ORIGIN_ALIVE,
		COP_ORIGIN_ENDED
	} state;                   /* ended: only a join is missing */
	_Atomic uint64_t since_ms; /* when its last system call began, or its job; 0: it has none */
	unsigned patience_ms;
	bool background, lost;
};

#define COP_ORIGIN_RAISED 32

struct cop_origin_pool {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct cop_list queue, background;
	unsigned max, threads, idle, queued, running, running_background, lost, lost_background;
	/* What was raised last: of a directory that is being read, the parts are
	 * still to be submitted. */
	struct {
		uint64_t hash, offset;
	} raised[COP_ORIGIN_RAISED];
	unsigned raises;
	bool stopping;
	struct cop_origin_worker *worker; /* twice max of them */
	struct cop_list alarms;
	pthread_t clock; /* looks every COP_ORIGIN_CLOCK_MS while anything runs, and sleeps while
			    nothing does */
	pthread_cond_t tick;
	bool has_clock, clock_sleeps;
	unsigned idle_ms;
	/* A worker without work calls this, unlocked; returns in how many ms it wants to be
	 * called again, 0: not before there was more work. */
	unsigned (*expire_idle)(void *ctx);
	void *expire_idle_ctx;
};

int cop_origin_pool_init(struct cop_origin_pool *p, unsigned max);
/* Cancels what is queued, waits for what runs. The jobs that a running job submits meanwhile are
 * cancelled. */
void cop_origin_pool_fini(struct cop_origin_pool *p);
/* urgent: before the jobs that wait already in its queue, for the parts of a job that was let in
 * before. */
void cop_origin_pool_submit(struct cop_origin_pool *p, struct cop_origin_job *job, bool urgent);
/* Somebody waits for it now: background jobs about this path and offset become jobs like any other.
 */
void cop_origin_pool_raise_priority(struct cop_origin_pool *p, const char *path, uint64_t offset);

/* Submits it as urgent in so many ms; at the close, or if it is too late for that, it ends with
 * -ECANCELED. */
void cop_origin_pool_alarm(struct cop_origin_pool *p, struct cop_origin_alarm *a, unsigned ms);
/* True: it is not submitted and will not be. */
bool cop_origin_pool_calm(struct cop_origin_pool *p, struct cop_origin_alarm *a);
/* Whether, with so many more, most of the workers are lost. */
bool cop_origin_pool_is_short(struct cop_origin_pool *p, unsigned more);
/* The worker that calls this begins a system call. */
void cop_origin_pool_alive(void);

/* ---- clock.c, under the pool's lock ---- */

void cop_origin_pool_need_clock(struct cop_origin_pool *p);
/* Work has come: wakes a worker, or starts one where that is allowed. */
int cop_origin_pool_call_worker(struct cop_origin_pool *p);

/* ---- descriptors that are kept between reads of one file ---- */

struct cop_origin_kept {
	char *path; /* NULL: free */
	uint64_t hash, version;
	uint64_t used_ms;
	unsigned users;
	int fd;
	bool doomed; /* close when the last user is done */
};

struct cop_origin_fds {
	pthread_mutex_t lock;
	struct cop_origin_kept slot[COP_ORIGIN_KEPT_FDS];
};

void cop_origin_fds_init(struct cop_origin_fds *f);
void cop_origin_fds_fini(struct cop_origin_fds *f);
/* A slot of this path and version, held until put; NULL if there is none. */
struct cop_origin_kept *cop_origin_fds_get(
	struct cop_origin_fds *f, const char *path, uint64_t version);
void cop_origin_fds_put(struct cop_origin_fds *f, struct cop_origin_kept *slot, bool drop);
/* Keeps fd, or closes it if there is no room. */
void cop_origin_fds_keep(struct cop_origin_fds *f, const char *path, uint64_t version, int fd);
/* Closes what was not used for COP_ORIGIN_KEPT_MS; returns in how many ms to come again, 0: nothing
 * is kept. */
unsigned cop_origin_fds_expire_idle(struct cop_origin_fds *f);
/* Closes all that is not in use; whether there was any. */
bool cop_origin_fds_drop(struct cop_origin_fds *f);

/* ---- the real origin ---- */

#define COP_ORIGIN_TYPES 64

struct cop_origin_types {
	pthread_mutex_t lock;
	unsigned count;
	struct {
		uint64_t dev;
		bool autofs;
	} dev[COP_ORIGIN_TYPES];
};

#define COP_ORIGIN_UNANSWERED 64

/* Names whose attributes the storage was asked for and has not given, by hash: a listing that is
 * read again does not wait for them. */
struct cop_origin_unanswered {
	pthread_mutex_t lock;
	_Atomic unsigned count;
	uint64_t name[COP_ORIGIN_UNANSWERED]; /* 0: free */
};

struct cop_origin_real {
	struct cop_origin base, other; /* other: what cop_origin_background gives out */
	struct cop_origin_pool pool;
	struct cop_origin_fds fds;
	struct cop_origin_types types;
	struct cop_origin_unanswered unanswered;
	uint32_t listing_max, listing_attrs;
	struct cop_stats *stats;
	uint64_t dev;             /* of the source */
	bool no_openat2;          /* an old kernel or a filter: component by component */
	_Atomic bool no_noatime;  /* O_NOATIME was refused once: others own the files */
	_Atomic uint64_t stat_ns; /* what one statx of a child took lately */
};

static inline struct cop_origin_real *cop_origin_real_of(struct cop_origin *o)
{
	return o->background ? COP_CONTAINER_OF(o, struct cop_origin_real, other)
			     : COP_CONTAINER_OF(o, struct cop_origin_real, base);
}

/* Every request to the real origin begins with this. */
struct cop_origin_request {
	struct cop_origin_job job;
	struct cop_origin_real *o;
	cop_origin_done *done;
	void *arg;
	char *path;
	int path_error; /* of a path that must not reach a system call */
};

/* Fills a request of a larger, malloc'ed object. path may be NULL. -ENOMEM. */
int cop_origin_request_init(struct cop_origin_request *t, struct cop_origin *o, const char *path,
	cop_origin_done *done, void *arg);
/* Counts, frees the path and calls done, which takes data. The caller frees the request's object
 * after. */
void cop_origin_request_end(struct cop_origin_request *t, int rc, void *data, size_t len);

/* One more system call that reaches the storage. */
static inline void cop_origin_count(struct cop_origin_real *o)
{
	cop_origin_pool_alive();
	cop_stats_add(o->stats, COP_ORIGIN_OPERATIONS, 1);
}

/* What the storage took since then. Whoever measures leaves out what runs after the answer: nobody
 * waits for the storage in it. */
static inline void cop_origin_took(struct cop_origin_real *o, uint64_t begin_ns)
{
	cop_stats_add(o->stats, COP_ORIGIN_TIME_US, (cop_now_ns() - begin_ns + 500) / 1000);
}

/* 0, -EINVAL (leading, trailing or double slash, "." or ".." anywhere) or -ENAMETOOLONG. */
int cop_origin_path_check(const char *path);
/* A descriptor of what path names, never outside the source and never through a symlink; or -errno.
 */
int cop_origin_open_at(struct cop_origin_real *o, const char *path, int flags);
/* The same for reading, without touching the access time where that is allowed. */
int cop_origin_open_read(struct cop_origin_real *o, const char *path, int flags);

/* An inode number of a device as the tree shows it. */
uint64_t cop_origin_ino(const struct cop_origin_real *o, uint64_t dev, uint64_t ino);
/* Attributes of name in fd, of fd itself if name is "". */
int cop_origin_statx(
	struct cop_origin_real *o, int fd, const char *name, struct cop_attr *attr, uint64_t *dev);
/* Calls fn for the names in the directory fd on which this process sees something mounted; for none
 * where that cannot be read. */
void cop_origin_mounted(int fd, void (*fn)(void *arg, const char *name), void *arg);
/* The target of the symlink name in fd (malloc'ed), "" as above. */
int cop_origin_readlink(
	struct cop_origin_real *o, int fd, const char *name, char **target, size_t *len);
/* Whether absent names may appear when asked for in the directory fd on this device. */
bool cop_origin_is_autofs(struct cop_origin_real *o, int fd, uint64_t dev);

/* list.c, read.c: rows of the real ops. */
void cop_origin_real_list(
	struct cop_origin *o, const char *path, bool names_only, cop_origin_done *done, void *arg);
void cop_origin_real_read(struct cop_origin *o, const char *path, uint64_t version, uint64_t size,
	uint64_t offset, const struct iovec *iov, int n_iov, cop_origin_done *done, void *arg);
void cop_origin_real_holes(
	struct cop_origin *o, const char *path, uint64_t version, cop_origin_done *done, void *arg);

#endif
