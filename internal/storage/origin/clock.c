/* SPDX-License-Identifier: BSD-3-Clause */
/* The pool's clock thread: detects workers with hung system calls, starts others in their place,
 * and submits the jobs of alarms. It is not one of the workers because all of them may hang, and it
 * never waits for anything but its next tick. */
#include "storage/origin/origin_priv.h"

#include <time.h>

/* Counts the lost workers again: more may be lost, and some may have returned. */
static void count_lost(struct cop_origin_pool *p, uint64_t now)
{
	p->lost = p->lost_background = 0;
	for (unsigned i = 0; i < COP_ORIGIN_WORKERS(p->max); i++) {
		struct cop_origin_worker *w = &p->worker[i];
		uint64_t since = w->state == COP_ORIGIN_ALIVE
					 ? atomic_load_explicit(&w->since_ms, memory_order_relaxed)
					 : 0;

		w->lost = since && now > since + w->patience_ms && p->lost < p->max;
		p->lost += w->lost;
		p->lost_background += w->lost && w->background;
	}
}

bool cop_origin_pool_is_short(struct cop_origin_pool *p, unsigned more)
{
	unsigned lost;

	pthread_mutex_lock(&p->lock);
	lost = p->lost;
	pthread_mutex_unlock(&p->lock);
	return 2 * COP_MAX(lost, more) > p->max;
}

static void submit_due(struct cop_origin_pool *p, uint64_t now)
{
	struct cop_list *item, *next;

	for (item = p->alarms.next; item != &p->alarms; item = next) {
		struct cop_origin_job *job = COP_CONTAINER_OF(item, struct cop_origin_job, link);
		struct cop_origin_alarm *a = COP_CONTAINER_OF(job, struct cop_origin_alarm, job);

		next = item->next;
		if (a->due_ms > now)
			continue;
		a->set = false;
		cop_list_remove(item);
		cop_list_push_back(&p->due, item);
		p->queued++;
	}
}

static void wait_for_tick(struct cop_origin_pool *p)
{
	struct timespec until = cop_moment(cop_now_ns() + COP_ORIGIN_CLOCK_MS * COP_NS_PER_MS);

	p->clock_sleeps = !p->running && cop_list_empty(&p->alarms);
	if (p->clock_sleeps)
		pthread_cond_wait(&p->tick, &p->lock);
	else
		pthread_cond_timedwait(&p->tick, &p->lock, &until);
	p->clock_sleeps = false;
}

static void *clock_main(void *arg)
{
	struct cop_origin_pool *p = arg;

	pthread_mutex_lock(&p->lock);
	while (!p->stopping) {
		uint64_t now = cop_now_ms();
		unsigned wanted;

		count_lost(p, now);
		submit_due(p, now);
		for (wanted = p->queued; wanted > 0; wanted--)
			cop_origin_pool_call_worker(p);
		wait_for_tick(p);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* Without a clock thread, lost workers go undetected; the next job tries to start it again. */
void cop_origin_pool_need_clock(struct cop_origin_pool *p)
{
	if (!p->has_clock && !p->stopping)
		p->has_clock = cop_thread_start(&p->clock, "origin-clock", clock_main, p) == 0;
	else if (p->clock_sleeps)
		pthread_cond_signal(&p->tick);
}
