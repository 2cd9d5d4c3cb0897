/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread holds one of two references to the struct, so a thread that hangs in the mount keeps
 * what it uses. The functions of the configuration are called under the lock and only before
 * `stopping`. */
#include "mount/kernelahead/kernelahead.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base/cpu.h"
#include "base/base/file.h"
#include "base/base/list.h"
#include "base/base/thread.h"
#include "base/log/log.h"

/* One request of the kernel: its read-ahead of a mount of an ordinary user. */
#define PIECE (128 * COP_KIB)
/* Memory is looked at after so many bytes. */
#define LOOK_BYTES (8 * COP_MIB)
/* How long the end of the node waits for the thread. */
#define STOP_MS 300

struct wanted {
	struct cop_list link;
	uint64_t start, end; /* end 0: a directory */
	char path[];
};

struct cop_kernelahead {
	struct cop_kernelahead_conf conf;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct cop_list queue;
	unsigned refs;
	bool stopping, ended;
	bool over;       /* nothing more is read; the thread's */
	uint64_t bytes;  /* of files, read so far; the thread's, like what follows */
	uint64_t looked; /* memory is looked at next when so many bytes have been read */
	int mount;
	bool has_openat2;
	char piece[PIECE];
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
	while ((l = cop_list_pop_front(&k->queue)))
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

/* ---- giving way ---- */

/* The number of programs' requests that wait; UINT64_MAX: the node stops. */
static uint64_t waiting(struct cop_kernelahead *k)
{
	uint64_t n = UINT64_MAX;

	pthread_mutex_lock(&k->lock);
	if (!k->stopping)
		n = k->conf.waiting(k->conf.arg);
	pthread_mutex_unlock(&k->lock);
	return n;
}

/* False: nothing more is to be read. */
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

/* A manifest may come from anybody, and what it names may be a link or a pipe by now. */
static int open_below(struct cop_kernelahead *k, const char *path, int flags)
{
	unsigned calls;

	return cop_open_beneath(
		k->mount, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | flags, k->has_openat2, &calls);
}

static void read_dir(struct cop_kernelahead *k, const char *path)
{
	int fd = open_below(k, path, O_DIRECTORY);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	while (dir && readdir(dir))
		;
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
}

/* Without POSIX_FADV_RANDOM the kernel would read on behind the range, which the node may not
 * have. */
static void read_file(struct cop_kernelahead *k, const struct wanted *w)
{
	int fd = open_below(k, w->path, 0);
	ssize_t got = fd >= 0 ? -posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM) : -1;

	for (uint64_t at = w->start; at < w->end && got >= 0 && may_read(k); at += (uint64_t)got) {
		got = pread(fd, k->piece, (size_t)COP_MIN(w->end - at, PIECE), (off_t)at);
		if (got <= 0)
			break;
		k->bytes += (uint64_t)got;
	}
	if (fd >= 0)
		close(fd);
}

/* The next thing to read; NULL: the node stops. */
static struct wanted *next_wanted(struct cop_kernelahead *k)
{
	struct cop_list *l = NULL;

	pthread_mutex_lock(&k->lock);
	while (!k->stopping && !(l = cop_list_pop_front(&k->queue)))
		pthread_cond_wait(&k->wake, &k->lock);
	pthread_mutex_unlock(&k->lock);
	return l ? COP_CONTAINER_OF(l, struct wanted, link) : NULL;
}

static void walk(struct cop_kernelahead *k)
{
	struct wanted *w;

	while ((w = next_wanted(k))) {
		if (!may_read(k))
			; /* the queue is emptied */
		else if (w->end)
			read_file(k, w);
		else
			read_dir(k, w->path);
		free(w);
	}
}

static void *run_thread(void *arg)
{
	struct cop_kernelahead *k = arg;

	pthread_mutex_lock(&k->lock);
	if (!k->stopping)
		k->conf.begin(k->conf.arg, (uint32_t)syscall(SYS_gettid));
	pthread_mutex_unlock(&k->lock);
	k->mount = open(k->conf.mountpoint, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (k->mount < 0) {
		end_for_good(k, strerror(errno));
	} else {
		k->has_openat2 = cop_has_openat2(k->mount);
		walk(k);
		close(k->mount);
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
	cop_list_init(&k->queue);
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

static void add(struct cop_kernelahead *k, const char *path, uint64_t start, uint64_t end)
{
	size_t len = strlen(path) + 1;
	struct wanted *w = malloc(sizeof(*w) + len);

	if (!w)
		return;
	*w = (struct wanted){.start = start, .end = end};
	memcpy(w->path, path, len);
	cop_list_init(&w->link);
	pthread_mutex_lock(&k->lock);
	cop_list_push_back(&k->queue, &w->link);
	pthread_cond_broadcast(&k->wake);
	pthread_mutex_unlock(&k->lock);
}

void cop_kernelahead_file(struct cop_kernelahead *k, const char *path, uint64_t start, uint64_t end)
{
	if (end > start)
		add(k, path, start, end);
}

void cop_kernelahead_dir(struct cop_kernelahead *k, const char *path)
{
	add(k, path, 0, 0);
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
