/* SPDX-License-Identifier: BSD-3-Clause */
#include "node/bypass/bypass_priv.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/log/log.h"

/* How long a stop waits for a scan in progress. */
#define STOP_MS 200

/* ---- the thread ---- */

static bool is_waiting(const struct cop_bypass *p, uint64_t until_ns)
{
	return !p->stop && p->asked == p->done && cop_now_ns() < until_ns;
}

/* Called with the lock held; releases it during the scan. */
static void look_unlocked(struct cop_bypass *p)
{
	uint64_t asked = p->asked;

	p->since_ns = cop_now_ns();
	pthread_mutex_unlock(&p->lock);
	cop_bypass_look_now(p);
	pthread_mutex_lock(&p->lock);
	p->since_ns = 0;
	p->done = asked;
	pthread_cond_broadcast(&p->cond);
}

static void *look_again_and_again(void *arg)
{
	struct cop_bypass *p = arg;
	bool left;

	pthread_mutex_lock(&p->lock);
	while (!p->stop) {
		uint64_t until_ns = cop_now_ns() + p->conf.every_ms * COP_NS_PER_MS;
		struct timespec until = cop_moment(until_ns);

		while (is_waiting(p, until_ns))
			pthread_cond_timedwait(&p->cond, &p->lock, &until);
		if (!p->stop)
			look_unlocked(p);
	}
	p->over = true;
	left = p->left;
	pthread_cond_broadcast(&p->cond);
	pthread_mutex_unlock(&p->lock);
	if (left)
		cop_bypass_free(p);
	return NULL;
}

void cop_bypass_count(struct cop_bypass *p, enum cop_counter counter, uint64_t n, const char *path)
{
	pthread_mutex_lock(&p->lock);
	if (!p->stop) {
		cop_stats_add(p->conf.stats, counter, n);
		if (path)
			cop_stats_example(p->conf.stats, COP_EXAMPLE_PAST, path);
	}
	pthread_mutex_unlock(&p->lock);
}

void cop_bypass_look(struct cop_bypass *p, unsigned wait_ms)
{
	uint64_t until_ns = cop_now_ns() + wait_ms * COP_NS_PER_MS, mine;
	struct timespec until;

	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	if (p->since_ns)
		until_ns = p->since_ns + wait_ms * COP_NS_PER_MS;
	until = cop_moment(until_ns);
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
	       (realpath("/bin/sh", shell) && cop_bypass_is_below(shell, source));
}

static int read_own_identity(struct cop_bypass *p)
{
	int self = openat(p->proc, "self", O_PATH | O_DIRECTORY | O_CLOEXEC), rc;

	if (self < 0)
		return -errno;
	rc = cop_bypass_began(self, &p->began);
	if (!rc)
		rc = cop_bypass_identity(self, "exe", p->exe);
	if (!rc)
		rc = cop_bypass_identity(self, "ns/mnt", p->mnt_ns);
	close(self);
	return rc;
}

int cop_bypass_new(const struct cop_bypass_conf *conf, struct cop_bypass **out)
{
	struct cop_bypass *p;
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
	p->proc = -1;
	p->conf.source = p->source = strdup(conf->source);
	p->conf.mountpoint = p->mountpoint = strdup(conf->mountpoint);
	p->source_major = major(st.st_dev);
	p->source_minor = minor(st.st_dev);
	pthread_mutex_init(&p->lock, NULL);
	cop_cond_init(&p->cond);
	rc = p->source && p->mountpoint ? 0 : -ENOMEM;
	if (!rc)
		p->proc = open(conf->proc, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!rc)
		rc = p->proc < 0 ? -errno : read_own_identity(p);
	if (rc) {
		cop_bypass_free(p);
		return rc;
	}
	cop_bypass_note_elders(p);
	*out = p;
	return 0;
}

void cop_bypass_free(struct cop_bypass *p)
{
	if (p->proc >= 0)
		close(p->proc);
	cop_buf_free(&p->elders);
	cop_seen_forget(&p->files);
	cop_seen_forget(&p->counted);
	cop_seen_forget(&p->processes);
	cop_seen_forget(&p->looked);
	pthread_cond_destroy(&p->cond);
	pthread_mutex_destroy(&p->lock);
	free(p->source);
	free(p->mountpoint);
	free(p);
}

int cop_bypass_start(const struct cop_bypass_conf *conf, struct cop_bypass **out)
{
	int rc = cop_bypass_new(conf, out);

	if (rc) {
		*out = NULL;
		return rc == -ENOTSUP ? 0 : rc;
	}
	rc = cop_thread_start(&(*out)->thread, "cop-bypass", look_again_and_again, *out);
	if (rc) {
		cop_bypass_free(*out);
		*out = NULL;
	}
	return rc;
}

void cop_bypass_stop(struct cop_bypass *p)
{
	uint64_t until_ns = cop_now_ns() + STOP_MS * COP_NS_PER_MS;
	struct timespec until = cop_moment(until_ns);
	pthread_t thread;
	bool over;

	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	thread = p->thread;
	p->stop = true;
	pthread_cond_broadcast(&p->cond);
	while (!p->over && cop_now_ns() < until_ns)
		pthread_cond_timedwait(&p->cond, &p->lock, &until);
	over = p->over;
	p->left = !over;
	pthread_mutex_unlock(&p->lock);
	if (!over) {
		cop_log_warn(
			"the storage does not answer: the last look for programs that bypass the mount is abandoned");
		pthread_detach(thread);
		cop_thread_left();
		return;
	}
	pthread_join(thread, NULL);
	cop_bypass_free(p);
}
