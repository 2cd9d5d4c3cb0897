/* SPDX-License-Identifier: BSD-3-Clause */
/* The worker pool. Each job has a thread, up to a limit, which therefore also limits the operations
 * in flight, not counting those that hang in the storage. An idle thread exits after idle_ms. A job
 * that consists of several parts submits them and returns; the part that finishes last continues
 * the job, so a single thread can run any job. Alarms end waits, so they get a thread even if all
 * others hang. */
#include "storage/origin/origin_priv.h"

#include <time.h>

/* After this many jobs with waiters, one job that will soon have a waiter runs. */
#define PASSED_MAX 16

/* The current thread's worker. */
static _Thread_local struct cop_origin_worker *me;

int cop_origin_pool_init(struct cop_origin_pool *p, unsigned max)
{
	p->worker = calloc(COP_ORIGIN_WORKERS(max), sizeof(*p->worker));
	if (!p->worker)
		return -ENOMEM;
	p->max = max;
	p->idle_ms = COP_ORIGIN_IDLE_MS;
	p->end_ms = COP_ORIGIN_END_MS;
	cop_list_init(&p->due);
	cop_list_init(&p->queue);
	cop_list_init(&p->soon);
	cop_list_init(&p->background);
	cop_list_init(&p->alarms);
	pthread_mutex_init(&p->lock, NULL);
	cop_cond_init(&p->wake);
	cop_cond_init(&p->tick);
	return 0;
}

static void sleep_ms(struct cop_origin_pool *p, uint64_t ms)
{
	struct timespec until = cop_moment(cop_now_ns() + ms * COP_NS_PER_MS);

	p->idle++;
	pthread_cond_timedwait(&p->wake, &p->lock, &until);
	p->idle--;
}

/* Background jobs run on at most three quarters of the workers. */
static bool may_run_background(const struct cop_origin_pool *p)
{
	return p->running_background - p->lost_background < COP_MAX(p->max - p->max / 4, 1u);
}

/* Whether there is a job that a free worker may run. Called with the lock held. */
static bool have_work(const struct cop_origin_pool *p)
{
	return !cop_list_empty(&p->due) || !cop_list_empty(&p->queue) ||
	       ((!cop_list_empty(&p->soon) || !cop_list_empty(&p->background)) &&
		       may_run_background(p));
}

/* Called with the lock held; releases it while waiting. Returns false if there was no work for
 * idle_ms, so the worker should exit. */
static bool wait_for_work(struct cop_origin_pool *p)
{
	uint64_t end = cop_now_ms() + p->idle_ms;

	for (;;) {
		uint64_t now, ms;
		unsigned expire_ms = 0;

		if (p->expire_idle) {
			pthread_mutex_unlock(&p->lock);
			expire_ms = p->expire_idle(p->expire_idle_ctx);
			pthread_mutex_lock(&p->lock);
		}
		if (have_work(p))
			return true;
		now = cop_now_ms();
		if (p->stopping || (now >= end && !expire_ms))
			return false;
		ms = now < end ? end - now : expire_ms;
		sleep_ms(p, expire_ms ? COP_MIN(ms, expire_ms) : ms);
		if (have_work(p))
			return true;
	}
}

/* Whether there are more workers than the limit allows, because a lost worker returned or an alarm
 * needed an extra one. Called with the lock held. */
static bool is_surplus(const struct cop_origin_pool *p)
{
	return p->threads - p->lost > p->max;
}

/* Prefers `queue`, but takes from `soon` often enough not to starve it. Called with the lock
 * held. */
static struct cop_list *next_item(struct cop_origin_pool *p)
{
	bool background = may_run_background(p), soon = background && !cop_list_empty(&p->soon);
	struct cop_list *item = NULL;

	if (!soon || p->passed < PASSED_MAX)
		item = cop_list_pop_front(&p->queue);
	p->passed = item && soon ? p->passed + 1 : 0;
	if (!item && background)
		item = cop_list_pop_front(&p->soon);
	if (!item && background)
		item = cop_list_pop_front(&p->background);
	return item;
}

/* Called with the lock held. */
static struct cop_origin_job *next_job(struct cop_origin_pool *p)
{
	struct cop_list *item = cop_list_pop_front(&p->due);

	if (!item && is_surplus(p))
		return NULL;
	if (!item)
		item = next_item(p);
	return item ? COP_CONTAINER_OF(item, struct cop_origin_job, link) : NULL;
}

void cop_origin_pool_alive(void)
{
	if (me)
		atomic_store_explicit(&me->since_ms, cop_now_ms(), memory_order_relaxed);
}

/* Runs one job; its struct may have been freed when this returns. */
static void run_job(
	struct cop_origin_pool *p, struct cop_origin_worker *w, struct cop_origin_job *job)
{
	w->background = job->background;
	w->patience_ms = job->patience_ms ? job->patience_ms : COP_ORIGIN_ANY_MS;
	p->queued--;
	p->running++;
	p->running_background += w->background;
	cop_origin_pool_need_clock(p);
	pthread_mutex_unlock(&p->lock);
	cop_origin_pool_alive();
	job->begun_ns = cop_now_ns();
	job->fn(job, 0);
	atomic_store(&w->since_ms, 0);
	pthread_mutex_lock(&p->lock);
	p->running--;
	p->running_background -= w->background;
	p->lost -= w->lost;
	p->lost_background -= w->lost && w->background;
	w->lost = false;
}

static void *run_worker(void *arg)
{
	struct cop_origin_worker *w = arg;
	struct cop_origin_pool *p = w->pool;

	me = w;
	pthread_mutex_lock(&p->lock);
	do {
		struct cop_origin_job *job;

		while ((job = next_job(p)))
			run_job(p, w, job);
	} while (!is_surplus(p) && wait_for_work(p));
	/* This worker may have been woken for a job that another one must run. */
	if (have_work(p) && p->idle)
		pthread_cond_signal(&p->wake);
	p->threads--;
	w->state = COP_ORIGIN_ENDED;
	if (p->stopping)
		pthread_cond_broadcast(&p->wake);
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* The thread being joined has released the lock for the last time, so joining takes no time. Called
 * with the lock held. */
static int start_worker(struct cop_origin_pool *p)
{
	struct cop_origin_worker *w = p->worker;
	char name[16];
	int rc;

	while (w->state == COP_ORIGIN_ALIVE)
		w++;
	if (w->state == COP_ORIGIN_ENDED)
		pthread_join(w->thread, NULL);
	w->pool = p;
	w->state = COP_ORIGIN_ALIVE;
	w->lost = false;
	p->threads++;
	snprintf(name, sizeof(name), "origin-%u", (unsigned)(w - p->worker));
	rc = cop_thread_start(&w->thread, name, run_worker, w);
	if (rc) {
		w->state = COP_ORIGIN_FREE;
		p->threads--;
	}
	return rc;
}

static bool may_start(const struct cop_origin_pool *p)
{
	unsigned for_alarm = !cop_list_empty(&p->due);

	return p->threads - p->lost < p->max + for_alarm && p->threads < 2 * p->max + for_alarm;
}

int cop_origin_pool_call_worker(struct cop_origin_pool *p)
{
	int rc = 0;

	if (p->queued > p->idle && may_start(p))
		rc = start_worker(p);
	if (p->idle)
		pthread_cond_signal(&p->wake);
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

/* If the hashes of two paths collide, a job runs earlier than necessary, which is harmless. Called
 * with the lock held. */
static bool was_raised(const struct cop_origin_pool *p, const struct cop_origin_job *job)
{
	uint64_t hash = job->path ? hash_of(job->path) : 0;

	for (unsigned i = 0; job->path && i < COP_MIN(p->raises, COP_ORIGIN_RAISED); i++)
		if (p->raised[i].hash == hash && p->raised[i].offset >= job->from &&
			p->raised[i].offset < job->to)
			return true;
	return false;
}

void cop_origin_pool_submit(struct cop_origin_pool *p, struct cop_origin_job *job, bool urgent)
{
	struct cop_list failed, *queue;
	int rc = 0;

	cop_list_init(&failed);
	pthread_mutex_lock(&p->lock);
	job->background = job->background && !was_raised(p, job);
	queue = !job->background ? &p->queue : job->soon ? &p->soon : &p->background;
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
	rc = cop_origin_pool_call_worker(p);
	/* Having fewer threads only slows the work down, but there must be at least one. EAGAIN
	 * from pthread_create means a shortage, so it is reported as ENOMEM. */
	if (rc && p->threads == 0) {
		rc = -ENOMEM;
		cop_list_splice(&failed, &p->due);
		cop_list_splice(&failed, &p->queue);
		cop_list_splice(&failed, &p->soon);
		cop_list_splice(&failed, &p->background);
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

/* Called with the lock held. */
static void raise_those_of(
	struct cop_origin_pool *p, struct cop_list *jobs, const char *path, uint64_t offset)
{
	struct cop_list *item, *next;

	for (item = jobs->next; item != jobs; item = next) {
		struct cop_origin_job *job = COP_CONTAINER_OF(item, struct cop_origin_job, link);

		next = item->next;
		if (!is_about(job, path, offset))
			continue;
		job->background = false;
		cop_list_remove(item);
		cop_list_push_back(&p->queue, item);
		/* Idle workers may be asleep because background jobs were not allowed to run. If no
		 * worker can be started, one of the running workers will take the job. */
		if (p->idle)
			pthread_cond_signal(&p->wake);
		else if (may_start(p))
			start_worker(p);
	}
}

void cop_origin_pool_raise_priority(struct cop_origin_pool *p, const char *path, uint64_t offset)
{
	unsigned slot;

	pthread_mutex_lock(&p->lock);
	slot = p->raises++ % COP_ORIGIN_RAISED;
	p->raised[slot].hash = hash_of(path);
	p->raised[slot].offset = offset;
	raise_those_of(p, &p->soon, path, offset);
	raise_those_of(p, &p->background, path, offset);
	pthread_mutex_unlock(&p->lock);
}

void cop_origin_pool_alarm(struct cop_origin_pool *p, struct cop_origin_alarm *a, unsigned ms)
{
	bool stopping;

	pthread_mutex_lock(&p->lock);
	stopping = p->stopping;
	if (!stopping) {
		a->due_ms = cop_now_ms() + ms;
		a->set = true;
		cop_list_push_back(&p->alarms, &a->job.link);
		cop_origin_pool_need_clock(p);
	}
	pthread_mutex_unlock(&p->lock);
	if (stopping)
		a->job.fn(&a->job, -ECANCELED);
}

bool cop_origin_pool_calm(struct cop_origin_pool *p, struct cop_origin_alarm *a)
{
	bool was_set;

	pthread_mutex_lock(&p->lock);
	was_set = a->set;
	if (was_set)
		cop_list_remove(&a->job.link);
	a->set = false;
	pthread_mutex_unlock(&p->lock);
	return was_set;
}

/* Removes all waiting jobs, including those of alarms. Called with the lock held. */
static void remove_all(struct cop_origin_pool *p, struct cop_list *jobs)
{
	for (struct cop_list *i = p->alarms.next; i != &p->alarms; i = i->next)
		COP_CONTAINER_OF(COP_CONTAINER_OF(i, struct cop_origin_job, link),
			struct cop_origin_alarm, job)
			->set = false;
	cop_list_splice(jobs, &p->due);
	cop_list_splice(jobs, &p->queue);
	cop_list_splice(jobs, &p->soon);
	cop_list_splice(jobs, &p->background);
	cop_list_splice(jobs, &p->alarms);
	p->queued = 0;
}

/* Waits until all workers have ended or are about to end. Called with the lock held. */
static bool await_end(struct cop_origin_pool *p)
{
	uint64_t until_ns = cop_now_ns() + p->end_ms * COP_NS_PER_MS;
	struct timespec until = cop_moment(until_ns);

	while (p->threads && cop_now_ns() < until_ns)
		pthread_cond_timedwait(&p->wake, &p->lock, &until);
	atomic_store(&p->left, p->threads > 0);
	return !p->threads;
}

/* Joins the workers that have ended, which takes no time. Detaches those that hang, so that the
 * system frees them when they end. Called with the lock held. */
static void release_workers(struct cop_origin_pool *p)
{
	for (unsigned i = 0; i < COP_ORIGIN_WORKERS(p->max); i++) {
		struct cop_origin_worker *w = &p->worker[i];

		if (w->state == COP_ORIGIN_ALIVE)
			pthread_detach(w->thread);
		if (w->state != COP_ORIGIN_ENDED)
			continue;
		pthread_join(w->thread, NULL);
		w->state = COP_ORIGIN_FREE;
	}
}

void cop_origin_pool_park(struct cop_origin_pool *p)
{
	while (atomic_load(&p->left))
		pause();
}

bool cop_origin_pool_fini(struct cop_origin_pool *p)
{
	struct cop_list cancelled;
	bool ended;

	if (!p->worker)
		return true;
	cop_list_init(&cancelled);
	pthread_mutex_lock(&p->lock);
	p->stopping = true;
	remove_all(p, &cancelled);
	pthread_cond_broadcast(&p->wake);
	pthread_cond_broadcast(&p->tick);
	pthread_mutex_unlock(&p->lock);
	end_all(&cancelled, -ECANCELED);
	if (p->has_clock)
		pthread_join(p->clock, NULL);
	pthread_mutex_lock(&p->lock);
	ended = await_end(p);
	release_workers(p);
	pthread_mutex_unlock(&p->lock);
	if (!ended)
		return false;
	pthread_cond_destroy(&p->tick);
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->lock);
	free(p->worker);
	p->worker = NULL;
	return true;
}
