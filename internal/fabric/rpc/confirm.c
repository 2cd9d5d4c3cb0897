/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the nodes that have yet to confirm a reply. */
#include "fabric/rpc/rpc_priv.h"

struct wait_count {
	struct item item;
	uint32_t *ranks;
	unsigned max, found;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool done;
};

static bool awaits_confirmation(const struct session *s)
{
	for (const struct cop_list *at = s->reqs.next; at != &s->reqs; at = at->next) {
		const struct cop_rpc_req *q = COP_CONTAINER_OF(at, struct cop_rpc_req, session_at);

		/* Until the request is ready, its answer belongs to another thread. */
		if (q->state != REQ_SERVING && q->answer.confirm)
			return true;
	}
	return false;
}

static void count_waiting(struct cop_rpc *r, struct wait_count *c)
{
	for (const struct cop_list *at = r->serving.next; at != &r->serving; at = at->next) {
		const struct session *s = COP_CONTAINER_OF(at, struct session, at);

		if (!awaits_confirmation(s))
			continue;
		if (c->found < c->max)
			c->ranks[c->found] = s->rank;
		c->found++;
	}
}

static void run_count(struct cop_rpc *r, struct item *item)
{
	struct wait_count *c = COP_CONTAINER_OF(item, struct wait_count, item);

	count_waiting(r, c);
	pthread_mutex_lock(&c->lock);
	c->done = true;
	pthread_cond_signal(&c->cond);
	pthread_mutex_unlock(&c->lock);
}

/* The post runs after all replies given earlier. */
unsigned cop_rpc_unconfirmed(struct cop_rpc *r, uint32_t *ranks, unsigned max)
{
	struct wait_count c = {.item.run = run_count,
		.ranks = ranks,
		.max = max,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.cond = PTHREAD_COND_INITIALIZER};

	if (r->fake || cop_rpc_inside(r)) {
		count_waiting(r, &c);
		return c.found;
	}
	if (!cop_rpc_push(r, &c.item))
		return 0;
	pthread_mutex_lock(&c.lock);
	while (!c.done)
		pthread_cond_wait(&c.cond, &c.lock);
	pthread_mutex_unlock(&c.lock);
	return c.found;
}
