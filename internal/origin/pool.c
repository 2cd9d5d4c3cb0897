/* SPDX-License-Identifier: BSD-3-Clause */
/* The worker pool. As many threads as jobs at hand, up to the limit, which is thereby the limit on operations
 * in flight; a thread without work for idle_ms ends. A job that is made of parts submits them and returns, and the
 * part that ends last goes on, so that one thread is enough for any job. */
#include "origin/origin_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct cop_origin_worker {
	struct cop_origin_pool *pool;
	pthread_t thread;
	enum { FREE, ALIVE, ENDED } state; /* ENDED: only a join is missing */
};

int cop_origin_pool_init(struct cop_origin_pool *p, unsigned max)
{
	pthread_condattr_t attr;

	p->worker = calloc(max, sizeof(*p->worker));
	if (!p->worker)
		return -ENOMEM;
	p->max = max;
	p->idle_ms = COP_ORIGIN_IDLE_MS;
	cop_list_init(&p->queue);
	cop_list_init(&p->later);
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->wake, &attr);
	pthread_condattr_destroy(&attr);
	return 0;
}

static void sleep_ms(struct cop_origin_pool *p, uint64_t ms)
{
	uint64_t until = cop_now_ns() + ms * COP_NS_PER_MS;
	struct timespec ts = {
		.tv_sec = (time_t)(until / COP_NS_PER_S), .tv_nsec = (long)(until % COP_NS_PER_S)};

	p->idle++;
	pthread_cond_timedwait(&p->wake, &p->lock, &ts);
	p->idle--;
}

/* What nobody waits for runs on at most three quarters of the workers. */
static bool may_run_later(const struct cop_origin_pool *p)
{
	return p->running_later < COP_MAX(p->max - p->max / 4, 1u);
}

/* Locked. Whether a free worker would find something. */
static bool have_work(const struct cop_origin_pool *p)
{
	return !cop_list_empty(&p->queue) || (!cop_list_empty(&p->later) && may_run_later(p));
}

/* Locked; unlocks meanwhile. False: there was nothing to do for so long that the worker ends. */
static bool wait_for_work(struct cop_origin_pool *p)
{
	uint64_t end = cop_now_ms() + p->idle_ms;

	for (;;) {
		uint64_t now, ms;
		unsigned tidy_ms = 0;

		if (p->tidy) {
			pthread_mutex_unlock(&p->lock);
			tidy_ms = p->tidy(p->tidy_ctx);
			pthread_mutex_lock(&p->lock);
		}
		if (have_work(p))
			return true;
		now = cop_now_ms();
		if (p->stopping || (now >= end && !tidy_ms))
			return false;
		ms = now < end ? end - now : tidy_ms;
		sleep_ms(p, tidy_ms ? COP_MIN(ms, tidy_ms) : ms);
		if (have_work(p))
			return true;
	}
}

/* Locked. */
static struct cop_origin_job *take_job(struct cop_origin_pool *p)
{
	struct cop_list *item = cop_list_pop_front(&p->queue);

	if (!item && may_run_later(p))
		item = cop_list_pop_front(&p->later);
	return item ? COP_CONTAINER_OF(item, struct cop_origin_job, link) : NULL;
}

/* Runs one job; its struct is gone after it. */
static void run_job(struct cop_origin_pool *p, struct cop_origin_job *job)
{
	bool later = job->later;

	p->queued--;
	p->running++;
	p->running_later += later;
	pthread_mutex_unlock(&p->lock);
	job->fn(job, 0);
	pthread_mutex_lock(&p->lock);
	p->running--;
	p->running_later -= later;
}

static void *work(void *arg)
{
	struct cop_origin_worker *w = arg;
	struct cop_origin_pool *p = w->pool;

	pthread_mutex_lock(&p->lock);
	do {
		struct cop_origin_job *job;

		while ((job = take_job(p)))
			run_job(p, job);
	} while (wait_for_work(p));
	p->threads--;
	w->state = ENDED;
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* Locked. The join is of a thread that has left the lock for the last time, so it is short. */
static int start_worker(struct cop_origin_pool *p)
{
	struct cop_origin_worker *w = p->worker;
	char name[16];
	int rc;

	while (w->state == ALIVE)
		w++;
	if (w->state == ENDED)
		pthread_join(w->thread, NULL);
	w->pool = p;
	w->state = ALIVE;
	p->threads++;
	snprintf(name, sizeof(name), "origin-%u", (unsigned)(w - p->worker));
	rc = cop_thread_start(&w->thread, name, work, w);
	if (rc) {
		w->state = FREE;
		p->threads--;
	}
	return rc;
}

static void end_all(struct cop_list *jobs, int rc)
{
	struct cop_list *item;

	while ((item = cop_list_pop_front(jobs))) {
		struct cop_origin_job *job = COP_CONTAINER_OF(item, struct cop_origin_job, link);

		job->fn(job, rc);
	}
}

static uint64_t hash_of(const char *path)
{
	return cop_hash64(path, strlen(path), 0);
}

/* Locked. Two paths with one hash: a job comes sooner than it had to. */
static bool was_hurried(const struct cop_origin_pool *p, const struct cop_origin_job *job)
{
	uint64_t hash = job->path ? hash_of(job->path) : 0;

	for (unsigned i = 0; job->path && i < COP_MIN(p->hurries, COP_ORIGIN_HURRIED); i++)
		if (p->hurried[i].hash == hash && p->hurried[i].offset >= job->from && p->hurried[i].offset < job->to)
			return true;
	return false;
}

void cop_origin_pool_submit(struct cop_origin_pool *p, struct cop_origin_job *job, bool urgent)
{
	struct cop_list failed, *queue;
	int rc = 0;

	cop_list_init(&failed);
	pthread_mutex_lock(&p->lock);
	job->later = job->later && !was_hurried(p, job);
	queue = job->later ? &p->later : &p->queue;
	if (p->stopping) {
		rc = -ECANCELED;
		cop_list_push_back(&failed, &job->link);
		goto out;
	}
	if (urgent)
		cop_list_push_front(queue, &job->link);
	else
		cop_list_push_back(queue, &job->link);
	p->queued++;
	if (p->queued > p->idle && p->threads < p->max)
		rc = start_worker(p);
	if (p->idle)
		pthread_cond_signal(&p->wake);
	/* Fewer threads than wanted do the work all the same; none at all would never. What pthread_create calls EAGAIN is a shortage. */
	if (rc && p->threads == 0) {
		rc = -ENOMEM;
		cop_list_splice(&failed, &p->queue);
		cop_list_splice(&failed, &p->later);
		p->queued = 0;
	}
out:
	pthread_mutex_unlock(&p->lock);
	end_all(&failed, rc);
}

static bool is_about(const struct cop_origin_job *job, const char *path, uint64_t offset)
{
	return job->path && offset >= job->from && offset < job->to && strcmp(job->path, path) == 0;
}

void cop_origin_pool_hurry(struct cop_origin_pool *p, const char *path, uint64_t offset)
{
	struct cop_list *item, *next;
	unsigned slot;

	pthread_mutex_lock(&p->lock);
	slot = p->hurries++ % COP_ORIGIN_HURRIED;
	p->hurried[slot].hash = hash_of(path);
	p->hurried[slot].offset = offset;
	for (item = p->later.next; item != &p->later; item = next) {
		struct cop_origin_job *job = COP_CONTAINER_OF(item, struct cop_origin_job, link);

		next = item->next;
		if (!is_about(job, path, offset))
			continue;
		job->later = false;
		cop_list_remove(item);
		cop_list_push_back(&p->queue, item);
		/* Those who sleep may sleep because this was for later. Without a new one those that run come to it. */
		if (p->idle)
			pthread_cond_signal(&p->wake);
		else if (p->threads < p->max)
			start_worker(p);
	}
	pthread_mutex_unlock(&p->lock);
}

void cop_origin_pool_fini(struct cop_origin_pool *p)
{
	struct cop_list cancelled;

	if (!p->worker)
		return;
	cop_list_init(&cancelled);
	pthread_mutex_lock(&p->lock);
	p->stopping = true;
	cop_list_splice(&cancelled, &p->queue);
	cop_list_splice(&cancelled, &p->later);
	p->queued = 0;
	pthread_cond_broadcast(&p->wake);
	pthread_mutex_unlock(&p->lock);
	end_all(&cancelled, -ECANCELED);
	for (unsigned i = 0; i < p->max; i++) {
		bool started;

		pthread_mutex_lock(&p->lock);
		started = p->worker[i].state != FREE;
		pthread_mutex_unlock(&p->lock);
		if (started)
			pthread_join(p->worker[i].thread, NULL);
	}
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->lock);
	free(p->worker);
	p->worker = NULL;
}
