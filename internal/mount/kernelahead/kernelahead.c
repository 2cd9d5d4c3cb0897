/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread holds one of the two references to the struct, so a thread that hangs in the mount
 * never uses freed memory. The configuration's functions are called under the lock, and only before
 * `stopping` is set. */
#include "mount/kernelahead/kernelahead.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base/cpu.h"
#include "base/base/file.h"
#include "base/base/list.h"
#include "base/base/thread.h"
#include "base/log/log.h"

/* The kernel's maximum read-ahead. */
#define PIECE (128 * COP_KIB)
/* Check for memory pressure every so many bytes read. */
#define LOOK_BYTES (8 * COP_MIB)
/* How long the end of the node waits for the thread. */
#define STOP_MS 300

enum side { VIEW, BARE, SIDES };

struct wanted {
	struct cop_list link;
	enum { DIRECTORY, NAME, PAGES } kind;
	bool read;           /* the kernel has cached it through the other side */
	uint64_t start, end; /* for PAGES */
	char path[];
};

struct cop_kernelahead {
	struct cop_kernelahead_conf conf;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct cop_list queue[SIDES]; /* items move from the VIEW queue to the BARE queue */
	unsigned refs;
	bool stopping, ended;
	bool over;       /* reading has stopped; owned by the thread */
	uint64_t bytes;  /* file bytes read so far; owned by the thread, as are the fields below */
	uint64_t looked; /* next memory check, in bytes read */
	int root[SIDES];
	bool has_openat2;
};

static void put_ref(struct cop_kernelahead *k)
{
	struct cop_list *l;
	unsigned left;

	pthread_mutex_lock(&k->lock);
	left = --k->refs;
	pthread_mutex_unlock(&k->lock);
	if (left)
		return;
	for (enum side side = VIEW; side < SIDES; side++)
		while ((l = cop_list_pop_front(&k->queue[side])))
			free(COP_CONTAINER_OF(l, struct wanted, link));
	pthread_cond_destroy(&k->wake);
	pthread_mutex_destroy(&k->lock);
	free(k);
}

static void end_for_good(struct cop_kernelahead *k, const char *why)
{
	k->over = true;
	cop_log_info("kernel ahead ended after %llu bytes why=\"%s\"", (unsigned long long)k->bytes,
		why);
}

/* ---- yielding to programs ---- */

/* The number of requests by programs that are waiting; UINT64_MAX: the node is stopping. */
static uint64_t waiting(struct cop_kernelahead *k)
{
	uint64_t n = UINT64_MAX;

	pthread_mutex_lock(&k->lock);
	if (!k->stopping)
		n = k->conf.waiting(k->conf.arg);
	pthread_mutex_unlock(&k->lock);
	return n;
}

/* False: stop reading. */
static bool may_read(struct cop_kernelahead *k)
{
	uint64_t n;

	while ((n = waiting(k)) && n != UINT64_MAX)
		nanosleep(&(struct timespec){.tv_nsec = (long)COP_NS_PER_MS}, NULL);
	if (n == UINT64_MAX || k->over)
		return false;
	if (k->bytes >= k->conf.most_bytes)
		end_for_good(k, "its bound is reached");
	else if (k->bytes >= k->looked && cop_memory_is_short(""))
		end_for_good(k, "memory is short");
	if (k->bytes >= k->looked)
		k->looked = k->bytes + LOOK_BYTES;
	return !k->over;
}

/* ---- the walk ---- */

/* A manifest is untrusted, and its names may have become links or pipes. */
static int open_below(struct cop_kernelahead *k, enum side side, const char *path, int flags)
{
	unsigned calls;

	return cop_open_beneath(k->root[side], path, O_RDONLY | O_NONBLOCK | O_NOCTTY | flags,
		k->has_openat2, &calls);
}

static void read_dir(struct cop_kernelahead *k, enum side side, const char *path)
{
	int fd = open_below(k, side, path, O_DIRECTORY);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	while (dir && readdir(dir))
		;
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
}

/* Makes the kernel look up the name; it also caches an absence. */
static void look_up(struct cop_kernelahead *k, enum side side, const char *path)
{
	int fd = open_below(k, side, path, O_PATH | O_NOFOLLOW);

	if (fd >= 0)
		close(fd);
}

/* The kernel reads asynchronously; this thread blocks only if too many reads are in progress. */
static void read_pages(struct cop_kernelahead *k, enum side side, const struct wanted *w)
{
	int fd = open_below(k, side, w->path, 0);
	struct stat st;
	uint64_t end = 0;

	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode))
		end = COP_MIN(w->end, (uint64_t)st.st_size);
	for (uint64_t at = w->start, len; at < end && may_read(k); at += len) {
		len = COP_MIN(end - at, PIECE - at % PIECE);
		if (posix_fadvise(fd, (off_t)at, (off_t)len, POSIX_FADV_WILLNEED))
			break;
		k->bytes += len;
	}
	if (fd >= 0)
		close(fd);
}

static void put_into_kernel(struct cop_kernelahead *k, enum side side, struct wanted *w)
{
	if (w->kind == DIRECTORY)
		read_dir(k, side, w->path);
	else if (w->kind == NAME || w->read)
		look_up(k, side, w->path);
	else
		read_pages(k, side, w);
	w->read = true;
}

/* The next item, its side, and which sides to walk; NULL: the node is stopping. */
static struct wanted *next_wanted(struct cop_kernelahead *k, enum side *side, bool walked[SIDES])
{
	struct cop_list *l = NULL;

	pthread_mutex_lock(&k->lock);
	while (!k->stopping && cop_list_empty(&k->queue[VIEW]) && cop_list_empty(&k->queue[BARE]))
		pthread_cond_wait(&k->wake, &k->lock);
	if (!k->stopping) {
		*side = cop_list_empty(&k->queue[VIEW]) ? BARE : VIEW;
		l = cop_list_pop_front(&k->queue[*side]);
		k->conf.used(k->conf.arg, &walked[BARE], &walked[VIEW]);
	}
	pthread_mutex_unlock(&k->lock);
	if (!walked[BARE] && !walked[VIEW])
		walked[BARE] = walked[VIEW] = true;
	walked[VIEW] &= k->root[VIEW] >= 0;
	return l ? COP_CONTAINER_OF(l, struct wanted, link) : NULL;
}

static void walk(struct cop_kernelahead *k)
{
	bool walked[SIDES] = {false};
	struct wanted *w;
	enum side side;

	while ((w = next_wanted(k, &side, walked))) {
		/* Once reading has stopped, this only empties the queue. */
		if (walked[side] && may_read(k))
			put_into_kernel(k, side, w);
		if (side == VIEW && walked[BARE]) {
			pthread_mutex_lock(&k->lock);
			cop_list_push_back(&k->queue[BARE], &w->link);
			pthread_mutex_unlock(&k->lock);
		} else {
			free(w);
		}
	}
}

static void *run_thread(void *arg)
{
	struct cop_kernelahead *k = arg;

	pthread_mutex_lock(&k->lock);
	if (!k->stopping)
		k->conf.begin(k->conf.arg, (uint32_t)syscall(SYS_gettid));
	pthread_mutex_unlock(&k->lock);
	k->root[BARE] = open(k->conf.mountpoint, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (k->root[BARE] < 0) {
		end_for_good(k, strerror(errno));
	} else {
		k->root[VIEW] =
			openat(k->root[BARE], k->conf.view, O_PATH | O_DIRECTORY | O_CLOEXEC);
		k->has_openat2 = cop_has_openat2(k->root[BARE]);
		walk(k);
		close(k->root[BARE]);
		if (k->root[VIEW] >= 0)
			close(k->root[VIEW]);
	}
	pthread_mutex_lock(&k->lock);
	k->ended = true;
	pthread_cond_broadcast(&k->wake);
	pthread_mutex_unlock(&k->lock);
	put_ref(k);
	return NULL;
}

int cop_kernelahead_start(const struct cop_kernelahead_conf *conf, struct cop_kernelahead **out)
{
	struct cop_kernelahead *k = calloc(1, sizeof(*k));
	pthread_t thread;
	int rc;

	if (!k)
		return -ENOMEM;
	k->conf = *conf;
	k->refs = 2;
	pthread_mutex_init(&k->lock, NULL);
	cop_cond_init(&k->wake);
	for (enum side side = VIEW; side < SIDES; side++)
		cop_list_init(&k->queue[side]);
	rc = cop_thread_start(&thread, "kernel-ahead", run_thread, k);
	if (rc) {
		k->refs = 1;
		put_ref(k);
		return rc;
	}
	pthread_detach(thread);
	*out = k;
	return 0;
}

static void add(struct cop_kernelahead *k, const struct wanted *what, const char *path)
{
	size_t len = strlen(path) + 1;
	struct wanted *w = malloc(sizeof(*w) + len);

	if (!w)
		return;
	*w = *what;
	memcpy(w->path, path, len);
	cop_list_init(&w->link);
	pthread_mutex_lock(&k->lock);
	cop_list_push_back(&k->queue[VIEW], &w->link);
	pthread_cond_broadcast(&k->wake);
	pthread_mutex_unlock(&k->lock);
}

void cop_kernelahead_file(struct cop_kernelahead *k, const char *path, uint64_t start, uint64_t end)
{
	if (end > start)
		add(k, &(struct wanted){.kind = PAGES, .start = start, .end = end}, path);
}

void cop_kernelahead_dir(struct cop_kernelahead *k, const char *path)
{
	add(k, &(struct wanted){.kind = DIRECTORY}, path);
}

void cop_kernelahead_name(struct cop_kernelahead *k, const char *path)
{
	add(k, &(struct wanted){.kind = NAME}, path);
}

void cop_kernelahead_stop(struct cop_kernelahead *k)
{
	struct timespec until = cop_moment(cop_now_ns() + STOP_MS * COP_NS_PER_MS);
	int rc = 0;

	if (!k)
		return;
	pthread_mutex_lock(&k->lock);
	k->stopping = true;
	pthread_cond_broadcast(&k->wake);
	while (!k->ended && !rc)
		rc = pthread_cond_timedwait(&k->wake, &k->lock, &until);
	pthread_mutex_unlock(&k->lock);
	put_ref(k);
}
