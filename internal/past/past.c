/* SPDX-License-Identifier: BSD-3-Clause */
#include "past/past_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "log/log.h"

/* ---- what has been seen ---- */

static uint64_t hash_of(const struct cop_past_process *q)
{
	uint64_t of[3] = {(uint64_t)q->pid, q->began, q->pages};

	return cop_hash64(of, sizeof(of), 0);
}

bool cop_past_is_known(const struct cop_past *p, const struct cop_past_process *q)
{
	return q->pages && cop_seen_has(&p->looked, hash_of(q));
}

void cop_past_know(struct cop_past *p, const struct cop_past_process *q)
{
	if (q->pages && cop_seen_add(&p->looked, hash_of(q), COP_PAST_TABLE) == COP_SEEN_FULL)
		cop_seen_forget(&p->looked);
}

/* The storage is asked once for each path, and a client of a network file system may answer with
 * what it has: a program has just opened it. */
static bool size_of(const char *path, uint64_t *bytes)
{
	struct statx st;

	if (statx(AT_FDCWD, path, AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_SIZE,
		    &st) ||
		!S_ISREG(st.stx_mode))
		return false;
	*bytes = st.stx_size;
	return true;
}

static void count_process(struct cop_past *p, struct cop_past_process *q)
{
	uint64_t of[2] = {(uint64_t)q->pid, q->began};

	if (q->counted)
		return;
	q->counted = true;
	if (cop_seen_add(&p->processes, cop_hash64(of, sizeof(of), 0), COP_PAST_TABLE) ==
		COP_SEEN_NEW)
		cop_stats_add(p->conf.stats, COP_PAST_PROGRAMS, 1);
}

static void count_file(
	struct cop_past *p, const struct cop_past_process *q, const char *path, uint64_t bytes)
{
	if (!p->counted.count)
		cop_log_info("a program uses files of the source past the mount pid=%d file=\"%s\"",
			(int)q->pid, path);
	cop_stats_add(p->conf.stats, COP_PAST_FILES, 1);
	cop_stats_add(p->conf.stats, COP_PAST_BYTES, bytes);
	cop_stats_example(p->conf.stats, COP_EXAMPLE_PAST, path);
}

void cop_past_found(struct cop_past *p, struct cop_past_process *q, const char *path)
{
	uint64_t hash = cop_hash64(path, strlen(path), 0), bytes;

	switch (cop_seen_add(&p->files, hash, COP_PAST_TABLE)) {
	case COP_SEEN_FULL:
		cop_stats_add(p->conf.stats, COP_PAST_BEYOND, 1);
		return;
	case COP_SEEN_NEW:
		if (!size_of(path, &bytes))
			return;
		count_file(p, q, path, bytes);
		cop_seen_add(&p->counted, hash, COP_PAST_TABLE);
		break;
	case COP_SEEN_BEFORE:
		if (!cop_seen_has(&p->counted, hash))
			return;
	}
	count_process(p, q);
}

/* ---- the thread ---- */

static bool is_waiting(const struct cop_past *p, uint64_t until_ns)
{
	return !p->stop && p->asked == p->done && cop_now_ns() < until_ns;
}

static void *look_again_and_again(void *arg)
{
	struct cop_past *p = arg;

	pthread_mutex_lock(&p->lock);
	while (!p->stop) {
		uint64_t until_ns = cop_now_ns() + p->conf.every_ms * COP_NS_PER_MS, asked;
		struct timespec until = cop_moment(until_ns);

		while (is_waiting(p, until_ns))
			pthread_cond_timedwait(&p->cond, &p->lock, &until);
		if (p->stop)
			break;
		asked = p->asked;
		pthread_mutex_unlock(&p->lock);
		cop_past_look_now(p);
		pthread_mutex_lock(&p->lock);
		p->done = asked;
		pthread_cond_broadcast(&p->cond);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

void cop_past_look(struct cop_past *p, unsigned wait_ms)
{
	uint64_t until_ns = cop_now_ns() + wait_ms * COP_NS_PER_MS, mine;
	struct timespec until = cop_moment(until_ns);

	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	mine = ++p->asked;
	pthread_cond_broadcast(&p->cond);
	while (p->done < mine && cop_now_ns() < until_ns)
		pthread_cond_timedwait(&p->cond, &p->lock, &until);
	pthread_mutex_unlock(&p->lock);
}

/* ---- from start to stop ---- */

static bool holds_the_system(const char *source)
{
	char shell[PATH_MAX];

	return strcmp(source, "/") == 0 ||
	       (realpath("/bin/sh", shell) && cop_past_is_below(shell, source));
}

static int know_oneself(struct cop_past *p)
{
	int self = openat(p->proc, "self", O_PATH | O_DIRECTORY | O_CLOEXEC), rc;

	if (self < 0)
		return -errno;
	rc = cop_past_began(self, &p->began);
	if (!rc)
		rc = cop_past_identity(self, "exe", p->exe);
	if (!rc)
		rc = cop_past_identity(self, "ns/mnt", p->mnt_ns);
	close(self);
	return rc;
}

int cop_past_new(const struct cop_past_conf *conf, struct cop_past **out)
{
	struct cop_past *p;
	struct stat st;
	int rc;

	if (holds_the_system(conf->source))
		return -ENOTSUP;
	if (stat(conf->source, &st))
		return -errno;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->conf = *conf;
	p->source_major = major(st.st_dev);
	p->source_minor = minor(st.st_dev);
	pthread_mutex_init(&p->lock, NULL);
	cop_cond_init(&p->cond);
	p->proc = open(conf->proc, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rc = p->proc < 0 ? -errno : know_oneself(p);
	if (!rc)
		*out = p;
	else
		cop_past_free(p);
	return rc;
}

void cop_past_free(struct cop_past *p)
{
	if (p->proc >= 0)
		close(p->proc);
	cop_seen_forget(&p->files);
	cop_seen_forget(&p->counted);
	cop_seen_forget(&p->processes);
	cop_seen_forget(&p->looked);
	pthread_cond_destroy(&p->cond);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

int cop_past_start(const struct cop_past_conf *conf, struct cop_past **out)
{
	int rc = cop_past_new(conf, out);

	if (rc) {
		*out = NULL;
		return rc == -ENOTSUP ? 0 : rc;
	}
	rc = cop_thread_start(&(*out)->thread, "cop-past", look_again_and_again, *out);
	if (rc) {
		cop_past_free(*out);
		*out = NULL;
	}
	return rc;
}

void cop_past_stop(struct cop_past *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_broadcast(&p->cond);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->thread, NULL);
	cop_past_free(p);
}
