/* SPDX-License-Identifier: BSD-3-Clause */
/* The events of one thread of the program reach us on several threads, in no order, and a
 * checkpoint event ends after all that it contains, so only the end shows what lies outside of it.
 * So each thread of the program has two unions of spans, of a bounded size. Few events come here:
 * one lock per shard suffices, and no two locks are ever held. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/base/htab.h"
#include "trace/checkpoint/checkpoint_priv.h"

#define SHARDS 64u

struct thread {
	struct cop_hlink link;
	struct cop_union checkpoint, slow;
	size_t pid_len, len;
	char key[]; /* pid, then tid */
};
struct shard {
	pthread_mutex_t lock;
	struct cop_htab table;
};
struct spans {
	struct shard shard[SHARDS];
};

struct spans *cop_ckpt_spans_new(void)
{
	struct spans *s = calloc(1, sizeof(*s));

	for (unsigned i = 0; s && i < SHARDS; i++)
		pthread_mutex_init(&s->shard[i].lock, NULL);
	return s;
}

void cop_ckpt_spans_free(struct spans *s)
{
	struct cop_hlink *l, *next;

	if (!s)
		return;
	for (unsigned i = 0; i < SHARDS; i++) {
		for (l = cop_htab_after(&s->shard[i].table, NULL); l; l = next) {
			struct thread *t = COP_CONTAINER_OF(l, struct thread, link);

			next = cop_htab_after(&s->shard[i].table, l);
			cop_union_free(&t->checkpoint);
			cop_union_free(&t->slow);
			free(t);
		}
		cop_htab_fini(&s->shard[i].table);
		pthread_mutex_destroy(&s->shard[i].lock);
	}
	free(s);
}

static struct thread *find_thread(
	const struct cop_htab *table, const struct cop_trace_event *e, uint64_t hash)
{
	struct cop_hlink *l = cop_htab_first(table, hash);

	for (; l; l = cop_htab_next(l)) {
		struct thread *t = COP_CONTAINER_OF(l, struct thread, link);

		if (t->pid_len == e->pid.len && t->len == e->pid.len + e->tid.len &&
			!memcmp(t->key, e->pid.at, e->pid.len) &&
			!memcmp(t->key + t->pid_len, e->tid.at, e->tid.len))
			return t;
	}
	return NULL;
}

static struct thread *find_or_make(
	struct cop_htab *table, const struct cop_trace_event *e, uint64_t hash)
{
	struct thread *t = find_thread(table, e, hash);

	if (t)
		return t;
	t = calloc(1, sizeof(*t) + e->pid.len + e->tid.len);
	if (!t)
		return NULL;
	t->checkpoint.max = t->slow.max = COP_CKPT_SPANS;
	t->pid_len = e->pid.len;
	t->len = e->pid.len + e->tid.len;
	memcpy(t->key, e->pid.at, e->pid.len);
	memcpy(t->key + e->pid.len, e->tid.at, e->tid.len);
	cop_htab_add(table, &t->link, hash);
	return t;
}

int cop_ckpt_spans_add(struct spans *s, const struct cop_trace_event *e, bool checkpoint)
{
	uint64_t hash = cop_hash64(e->tid.at, e->tid.len, cop_hash64(e->pid.at, e->pid.len, 0));
	struct shard *shard = &s->shard[hash >> 32 & (SHARDS - 1)];
	struct thread *t;
	int rc = -ENOMEM;

	pthread_mutex_lock(&shard->lock);
	t = find_or_make(&shard->table, e, hash);
	if (t)
		rc = cop_union_add(checkpoint ? &t->checkpoint : &t->slow, e->ts_ns,
			e->ts_ns + (int64_t)e->dur_ns);
	pthread_mutex_unlock(&shard->lock);
	return rc;
}

struct sums {
	struct cop_union flush, checkpoint;
	struct flush *out;
};

static int finish_thread(struct thread *t, struct sums *sums)
{
	struct cop_union flush = {0};
	double dur;
	int rc = cop_union_rest(&t->slow, &t->checkpoint, &flush);

	dur = (double)cop_union_length(&flush) / 1e9;
	sums->out->dur = COP_MAX(sums->out->dur, dur);
	sums->out->threads += dur > 0;
	if (!rc)
		rc = cop_union_merge(&sums->flush, &flush);
	if (!rc)
		rc = cop_union_merge(&sums->checkpoint, &t->checkpoint);
	cop_union_free(&flush);
	return rc;
}

int cop_ckpt_spans_finish(struct spans *s, struct flush *out)
{
	struct sums sums = {.out = out};
	struct cop_hlink *l;
	int rc = 0;

	*out = (struct flush){0};
	for (unsigned i = 0; i < SHARDS; i++) {
		const struct cop_htab *table = &s->shard[i].table;

		for (l = cop_htab_after(table, NULL); l && !rc; l = cop_htab_after(table, l))
			rc = finish_thread(COP_CONTAINER_OF(l, struct thread, link), &sums);
	}
	out->covered = (double)cop_union_length(&sums.flush) / 1e9;
	out->overlap = out->covered - (double)cop_union_alone(&sums.flush, &sums.checkpoint) / 1e9;
	out->about = (double)(sums.flush.closed_ns + sums.checkpoint.closed_ns) / 1e9;
	cop_union_free(&sums.flush);
	cop_union_free(&sums.checkpoint);
	return rc;
}
