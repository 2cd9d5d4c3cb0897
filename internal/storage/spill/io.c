/* SPDX-License-Identifier: BSD-3-Clause */
/* File I/O: the workers, and the timer that detects a hung disk. */
#include "storage/spill/spill_priv.h"

#include "base/log/log.h"

static int write_all(int fd, const char *data, size_t len, uint64_t offset)
{
	while (len) {
		ssize_t n = pwrite(fd, data, len, (off_t)offset);

		if (n < 0 && errno != EINTR)
			return -errno;
		n = COP_MAX(n, 0);
		data += n;
		len -= (size_t)n;
		offset += (uint64_t)n;
	}
	return 0;
}

static int read_all(const struct cop_spill *s, char *data, size_t len, uint64_t offset)
{
	while (len) {
		ssize_t n = s->pread(s->fd, data, len, (off_t)offset);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			return -EIO;
		n = COP_MAX(n, 0);
		data += n;
		len -= (size_t)n;
		offset += (uint64_t)n;
	}
	return 0;
}

/* ---- disabling the disk ---- */

struct answer {
	cop_spill_done *done;
	void *arg;
};

/* Answers the requesters of reads that are still running. Called with the lock held. */
static unsigned abandon_running(struct cop_spill *s, struct answer out[SPILL_WORKERS])
{
	struct cop_list *item;
	unsigned n = 0;

	while ((item = cop_list_pop_front(&s->running))) {
		struct spill_read *r = COP_CONTAINER_OF(item, struct spill_read, link);

		r->abandoned = true;
		out[n++] = (struct answer){r->done, r->arg};
	}
	return n;
}

static void drop_write(struct cop_spill *s, struct spill_write *w)
{
	cop_obj_put(s->conf.cache, w->obj);
	free(w);
}

static void end_read(struct cop_spill *s, struct spill_read *r, int rc)
{
	if (r->obj)
		cop_obj_put(s->conf.cache, r->obj);
	r->done(r->arg, rc, rc ? NULL : &r->part);
	free(r);
}

void cop_spill_cancel(struct cop_spill *s, int rc)
{
	struct cop_list reads, writes, *item;

	cop_list_init(&reads);
	cop_list_init(&writes);
	pthread_mutex_lock(&s->lock);
	cop_list_splice(&reads, &s->reads);
	cop_list_splice(&writes, &s->writes);
	for (item = writes.next; item != &writes; item = item->next)
		cop_spill_written(s, COP_CONTAINER_OF(item, struct spill_write, link));
	cop_spill_empty(s);
	pthread_mutex_unlock(&s->lock);
	while ((item = cop_list_pop_front(&reads)))
		end_read(s, COP_CONTAINER_OF(item, struct spill_read, link), rc);
	while ((item = cop_list_pop_front(&writes)))
		drop_write(s, COP_CONTAINER_OF(item, struct spill_write, link));
}

void cop_spill_give_up(struct cop_spill *s, const char *why)
{
	struct answer running[SPILL_WORKERS];
	unsigned n = 0;
	bool first;

	pthread_mutex_lock(&s->lock);
	first = !s->off;
	s->off = true;
	if (first)
		n = abandon_running(s, running);
	pthread_mutex_unlock(&s->lock);
	if (!first)
		return;
	cop_log_warn(
		"the spill in %s is left alone: %s; what leaves memory is fetched again from now on",
		s->conf.dir, why);
	cop_stats_add(s->conf.stats, COP_SPILL_FAILED, 1);
	for (unsigned i = 0; i < n; i++)
		running[i].done(running[i].arg, -EIO, NULL);
	cop_spill_cancel(s, -EIO);
}

/* Disables the disk and frees its space, which programs may need. */
static void fail(struct cop_spill *s, const char *what, int rc)
{
	char why[128];

	if (rc == -EBADMSG)
		snprintf(why, sizeof(why), "it gave other bytes than it got");
	else
		snprintf(why, sizeof(why), "%s: %s", what, strerror(-rc));
	cop_spill_give_up(s, why);
	(void)!ftruncate(s->fd, 0);
}

/* ---- a write and a read ---- */

/* Called with the lock held; releases it during the I/O. */
static void run_write(struct cop_spill *s, struct spill_write *w)
{
	size_t len = w->obj->len;
	bool wanted = w->entry != NULL;
	int rc = 0;

	pthread_mutex_unlock(&s->lock);
	if (wanted)
		rc = write_all(s->fd, w->obj->data, len, w->offset);
	if (wanted && !rc)
		cop_stats_add(s->conf.stats, COP_SPILL_WRITTEN_BYTES, len);
	/* Until this point, the part is read from memory. */
	if (rc)
		fail(s, "cannot write", rc);
	pthread_mutex_lock(&s->lock);
	cop_spill_written(s, w);
	pthread_mutex_unlock(&s->lock);
	drop_write(s, w);
	pthread_mutex_lock(&s->lock);
}

static int fill(struct cop_spill *s, struct spill_read *r)
{
	int rc = 0;

	r->part.data = cop_cache_alloc(s->conf.cache, r->part.len);
	if (!r->part.data)
		return -ENOMEM;
	if (r->obj)
		memcpy(r->part.data, r->obj->data, r->part.len);
	else
		rc = read_all(s, r->part.data, r->part.len, r->offset);
	if (!rc && cop_hash64(r->part.data, r->part.len, s->conf.sum_seed) != r->part.sum)
		rc = -EBADMSG;
	return rc;
}

static void answer_read(struct cop_spill *s, struct spill_read *r, int rc)
{
	if (rc || r->abandoned)
		cop_cache_release(s->conf.cache, r->part.data, r->part.len);
	if (r->abandoned) {
		if (r->obj)
			cop_obj_put(s->conf.cache, r->obj);
		free(r);
		return;
	}
	if (!rc) {
		cop_stats_add(s->conf.stats, COP_SPILL_READS, 1);
		cop_stats_add(s->conf.stats, COP_SPILL_READ_BYTES, r->part.len);
	}
	end_read(s, r, rc);
}

/* Called with the lock held; releases it during the I/O. */
static void run_read(struct cop_spill *s, struct spill_read *r)
{
	bool is_same;
	int rc;

	r->begun_ms = cop_now_ms();
	cop_list_push_back(&s->running, &r->link);
	pthread_cond_signal(&s->tick);
	pthread_mutex_unlock(&s->lock);
	rc = fill(s, r);
	pthread_mutex_lock(&s->lock);
	cop_list_remove(&r->link);
	is_same = s->age == r->age;
	pthread_mutex_unlock(&s->lock);
	/* The disk is to blame, unless the bytes were overwritten during the read. */
	if (rc && rc != -ENOMEM && is_same)
		fail(s, "cannot read", rc);
	answer_read(s, r, rc);
	pthread_mutex_lock(&s->lock);
}

/* ---- the threads ---- */

/* Reads go first because somebody waits for them; nobody waits for writes. */
void *cop_spill_work(void *spill)
{
	struct cop_spill *s = spill;
	struct cop_list *item;

	pthread_mutex_lock(&s->lock);
	while (!s->stopping) {
		if ((item = cop_list_pop_front(&s->reads)))
			run_read(s, COP_CONTAINER_OF(item, struct spill_read, link));
		else if ((item = cop_list_pop_front(&s->writes)))
			run_write(s, COP_CONTAINER_OF(item, struct spill_write, link));
		else
			pthread_cond_wait(&s->work, &s->lock);
	}
	s->threads--;
	pthread_cond_signal(&s->ended);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* The number of ms until the oldest read is too slow; UINT64_MAX: none is running. Called with the
 * lock held. */
static uint64_t patience_ms(const struct cop_spill *s)
{
	const struct spill_read *r;
	uint64_t age_ms;

	if (cop_list_empty(&s->running))
		return UINT64_MAX;
	r = COP_CONTAINER_OF(s->running.next, struct spill_read, link);
	age_ms = cop_now_ms() - r->begun_ms;
	return age_ms < s->slow_ms ? s->slow_ms - age_ms : 0;
}

void *cop_spill_watch(void *spill)
{
	struct cop_spill *s = spill;

	pthread_mutex_lock(&s->lock);
	while (!s->stopping) {
		uint64_t ms = patience_ms(s);
		struct timespec until;

		if (!ms) {
			pthread_mutex_unlock(&s->lock);
			cop_spill_give_up(s, "a read takes longer than 3 s");
			pthread_mutex_lock(&s->lock);
		} else if (ms == UINT64_MAX) {
			pthread_cond_wait(&s->tick, &s->lock);
		} else {
			until = cop_moment(cop_now_ns() + ms * COP_NS_PER_MS);
			pthread_cond_timedwait(&s->tick, &s->lock, &until);
		}
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}
