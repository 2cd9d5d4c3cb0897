/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/loop/loop.h"

void cop_defer_init(struct cop_defer *q, void (*wake)(void *ctx), void *ctx)
{
	*q = (struct cop_defer){.wake = wake, .ctx = ctx};
	pthread_mutex_init(&q->lock, NULL);
	cop_list_init(&q->list);
}

void cop_defer_fini(struct cop_defer *q)
{
	pthread_mutex_destroy(&q->lock);
}

bool cop_defer_add(struct cop_defer *q, struct cop_deferred *d)
{
	bool taken;

	pthread_mutex_lock(&q->lock);
	taken = !q->closed && q->count < COP_DEFER_MAX;
	if (taken) {
		cop_list_push_back(&q->list, &d->link);
		q->count++;
	}
	pthread_mutex_unlock(&q->lock);
	if (taken)
		q->wake(q->ctx);
	return taken;
}

void cop_defer_run(struct cop_defer *q, bool close)
{
	struct cop_list *l;

	do {
		pthread_mutex_lock(&q->lock);
		l = cop_list_pop_front(&q->list);
		q->count -= l != NULL;
		q->closed |= close && !l;
		pthread_mutex_unlock(&q->lock);
		if (l) {
			struct cop_deferred *d = COP_CONTAINER_OF(l, struct cop_deferred, link);

			d->run(d);
		}
	} while (l);
}
