/* SPDX-License-Identifier: BSD-3-Clause */
#include "storage/spill/spill_priv.h"

/* Called by the cache with its locks held. */
static enum cop_cache_left leaves(void *ctx, struct cop_obj *obj)
{
	struct cop_spill *s = ctx;
	enum cop_cache_left left = COP_CACHE_LEFT_DROPPED;

	pthread_mutex_lock(&s->lock);
	if (!s->off && cop_spill_find(s, &obj->key)) {
		left = COP_CACHE_LEFT_KNOWN;
	} else if (!s->off && cop_spill_take(s, obj)) {
		left = COP_CACHE_LEFT_TAKEN;
		pthread_cond_signal(&s->work);
	}
	pthread_mutex_unlock(&s->lock);
	if (left == COP_CACHE_LEFT_DROPPED)
		cop_stats_add(s->conf.stats, COP_SPILL_DROPPED_BYTES, obj->len);
	return left;
}

static void usage(void *ctx, uint64_t *used, uint64_t *limit)
{
	struct cop_spill *s = ctx;

	pthread_mutex_lock(&s->lock);
	*used = s->off ? 0 : s->end;
	*limit = s->off ? 0 : s->conf.size;
	pthread_mutex_unlock(&s->lock);
}

static int start_threads(struct cop_spill *s)
{
	int rc = cop_thread_start(&s->clock, "spill-clock", cop_spill_watch, s);

	s->has_clock = !rc;
	while (!rc && s->started < SPILL_WORKERS) {
		char name[16];

		snprintf(name, sizeof(name), "spill-%u", s->started);
		pthread_mutex_lock(&s->lock);
		s->threads++;
		pthread_mutex_unlock(&s->lock);
		rc = cop_thread_start(&s->worker[s->started], name, cop_spill_work, s);
		s->started += !rc;
		pthread_mutex_lock(&s->lock);
		s->threads -= rc != 0;
		pthread_mutex_unlock(&s->lock);
	}
	return rc;
}

int cop_spill_start(const struct cop_spill_conf *conf, int fd, struct cop_spill **out)
{
	struct cop_spill *s = calloc(1, sizeof(*s));
	char *dir = s ? strdup(conf->dir) : NULL;
	int rc;

	if (!dir) {
		free(s);
		close(fd);
		return -ENOMEM;
	}
	s->conf = *conf;
	s->conf.dir = s->dir = dir;
	s->fd = fd;
	s->pread = pread;
	s->slow_ms = SPILL_SLOW_MS;
	s->pending_max = conf->memory / 4 * 3;
	s->entries_max = conf->memory / 4 / SPILL_ENTRY_BYTES;
	cop_list_init(&s->writes);
	cop_list_init(&s->reads);
	cop_list_init(&s->running);
	pthread_mutex_init(&s->lock, NULL);
	cop_cond_init(&s->work);
	cop_cond_init(&s->tick);
	cop_cond_init(&s->ended);
	rc = start_threads(s);
	if (rc) {
		cop_spill_close(s);
		cop_spill_free(s);
		return rc;
	}
	cop_cache_spill(conf->cache, &(struct cop_cache_spill){leaves, usage, s});
	*out = s;
	return 0;
}

/* Waits until all workers have ended or are about to end. */
static bool await_end(struct cop_spill *s)
{
	uint64_t until_ns = cop_now_ns() + SPILL_END_MS * COP_NS_PER_MS;
	struct timespec until = cop_moment(until_ns);
	bool ended;

	pthread_mutex_lock(&s->lock);
	while (s->threads && cop_now_ns() < until_ns)
		pthread_cond_timedwait(&s->ended, &s->lock, &until);
	ended = !s->threads;
	pthread_mutex_unlock(&s->lock);
	return ended;
}

bool cop_spill_close(struct cop_spill *s)
{
	if (!s)
		return true;
	pthread_mutex_lock(&s->lock);
	s->off = s->stopping = true;
	pthread_cond_broadcast(&s->work);
	pthread_cond_broadcast(&s->tick);
	pthread_mutex_unlock(&s->lock);
	cop_spill_cancel(s, -ECANCELED);
	if (s->has_clock)
		pthread_join(s->clock, NULL);
	s->has_clock = false;
	if (!await_end(s))
		return false;
	while (s->started)
		pthread_join(s->worker[--s->started], NULL);
	return true;
}

void cop_spill_free(struct cop_spill *s)
{
	if (!s)
		return;
	cop_htab_fini(&s->index);
	pthread_cond_destroy(&s->ended);
	pthread_cond_destroy(&s->tick);
	pthread_cond_destroy(&s->work);
	pthread_mutex_destroy(&s->lock);
	close(s->fd);
	free(s->dir);
	free(s);
}

/* ---- lookup ---- */

bool cop_spill_has(struct cop_spill *s, const struct cop_key *key)
{
	bool has;

	if (!s)
		return false;
	pthread_mutex_lock(&s->lock);
	has = !s->off && cop_spill_find(s, key) != NULL;
	pthread_mutex_unlock(&s->lock);
	return has;
}

static struct spill_read *new_read(cop_spill_done *done, void *arg)
{
	struct spill_read *r = calloc(1, sizeof(*r));

	if (r) {
		r->done = done;
		r->arg = arg;
		cop_list_init(&r->link);
	}
	return r;
}

/* Called with the lock held. */
static bool queue_read(struct cop_spill *s, const struct cop_key *key, struct spill_read *r)
{
	struct spill_entry *e = s->off ? NULL : cop_spill_find(s, key);

	if (!e)
		return false;
	r->offset = e->offset;
	r->part = (struct cop_spill_part){.len = e->len, .sum = e->sum, .packed = e->packed};
	r->obj = e->write ? cop_obj_get(e->write->obj) : NULL;
	r->age = s->age;
	s->passed = 0;
	cop_list_push_back(&s->reads, &r->link);
	pthread_cond_signal(&s->work);
	return true;
}

void cop_spill_read(struct cop_spill *s, const struct cop_key *key, cop_spill_done *done, void *arg)
{
	struct spill_read *r = new_read(done, arg);
	bool queued;

	if (!r) {
		done(arg, -ENOMEM, NULL);
		return;
	}
	pthread_mutex_lock(&s->lock);
	queued = queue_read(s, key, r);
	pthread_mutex_unlock(&s->lock);
	if (!queued) {
		free(r);
		done(arg, -ENOENT, NULL);
	}
}

void cop_spill_forget(struct cop_spill *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	cop_spill_empty(s);
	pthread_mutex_unlock(&s->lock);
}
