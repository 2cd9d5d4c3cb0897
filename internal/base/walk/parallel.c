/* SPDX-License-Identifier: BSD-3-Clause */
#include <time.h>

#include "base/walk/walk_priv.h"

/* The threads mostly wait for storage, so there may be more of them than processors. */
#define THREADS 16u
#define TICK_NS 200000000L

struct crew {
	void (*fn)(void *arg, size_t i);
	void *arg;
	size_t n;
	_Atomic size_t next;
	pthread_mutex_t lock; /* protects busy */
	pthread_cond_t over;
	unsigned busy;
};

static void *run_worker(void *arg)
{
	struct crew *c = arg;
	size_t i;

	while ((i = atomic_fetch_add(&c->next, 1)) < c->n)
		c->fn(c->arg, i);
	pthread_mutex_lock(&c->lock);
	if (!--c->busy)
		pthread_cond_signal(&c->over);
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

static void wait_for_end(struct crew *c, void (*tick)(void *arg))
{
	struct timespec until;

	pthread_mutex_lock(&c->lock);
	while (c->busy) {
		until = cop_moment(cop_now_ns() + TICK_NS);
		if (pthread_cond_timedwait(&c->over, &c->lock, &until) != ETIMEDOUT || !tick)
			continue;
		pthread_mutex_unlock(&c->lock);
		tick(c->arg);
		pthread_mutex_lock(&c->lock);
	}
	pthread_mutex_unlock(&c->lock);
}

int cop_walk_parallel(size_t n, void (*fn)(void *arg, size_t i), void (*tick)(void *arg), void *arg)
{
	struct crew c = {.fn = fn, .arg = arg, .n = n, .lock = PTHREAD_MUTEX_INITIALIZER};
	unsigned wanted = (unsigned)COP_MIN(n, THREADS), started;
	pthread_t thread[THREADS];
	int rc = 0;

	cop_cond_init(&c.over);
	for (started = 0; started < wanted; started++) {
		pthread_mutex_lock(&c.lock);
		c.busy++;
		pthread_mutex_unlock(&c.lock);
		rc = cop_thread_start(&thread[started], "report", run_worker, &c);
		if (rc) {
			pthread_mutex_lock(&c.lock);
			c.busy--;
			pthread_mutex_unlock(&c.lock);
			break;
		}
	}
	wait_for_end(&c, tick);
	for (unsigned i = 0; i < started; i++)
		pthread_join(thread[i], NULL);
	pthread_cond_destroy(&c.over);
	return started ? 0 : rc;
}
