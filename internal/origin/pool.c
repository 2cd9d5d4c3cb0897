/* SPDX-License-Identifier: BSD-3-Clause */
/* The worker pool. As many threads as jobs at hand, up to the limit, which is thereby the limit on operations
 * in flight; a thread without work for idle_ms ends. A job that is made of parts submits them and returns, and the
 * part that ends last goes on, so that one thread is enough for any job. */
#include "origin/origin_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
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
		if (!cop_list_empty(&p->queue))
			return true;
		now = cop_now_ms();
		if (p->stopping || (now >= end && !tidy_ms))
			return false;
		ms = now < end ? end - now : tidy_ms;
		sleep_ms(p, tidy_ms ? COP_MIN(ms, tidy_ms) : ms);
		if (!cop_list_empty(&p->queue))
			return true;
	}
}

static void *work(void *arg)
{
	struct cop_origin_worker *w = arg;
	struct cop_origin_pool *p = w->pool;

	pthread_mutex_lock(&p->lock);
	do {
		struct cop_list *item;

		while ((item = cop_list_pop_front(&p->queue))) {
			struct cop_origin_job *job =
				COP_CONTAINER_OF(item, struct cop_origin_job, link);

			p->queued--;
			p->running++;
			pthread_mutex_unlock(&p->lock);
			job->fn(job, 0);
			pthread_mutex_lock(&p->lock);
			p->running--;
		}
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

void cop_origin_pool_submit(struct cop_origin_pool *p, struct cop_origin_job *job, bool urgent)
{
	struct cop_list failed;
	int rc = 0;

	cop_list_init(&failed);
	pthread_mutex_lock(&p->lock);
	if (p->stopping) {
		rc = -ECANCELED;
		cop_list_push_back(&failed, &job->link);
		goto out;
	}
	if (urgent)
		cop_list_push_front(&p->queue, &job->link);
	else
		cop_list_push_back(&p->queue, &job->link);
	p->queued++;
	if (p->queued > p->idle && p->threads < p->max)
		rc = start_worker(p);
	if (p->idle)
		pthread_cond_signal(&p->wake);
	/* Fewer threads than wanted do the work all the same; none at all would never. */
	if (rc && p->threads == 0) {
		cop_list_splice(&failed, &p->queue);
		p->queued = 0;
	}
out:
	pthread_mutex_unlock(&p->lock);
	end_all(&failed, rc);
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
