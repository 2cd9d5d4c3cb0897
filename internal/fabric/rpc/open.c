/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/rpc/rpc_priv.h"

#include <time.h>

void cop_rpc_ref(struct cop_rpc *r)
{
	atomic_fetch_add(&r->refs, 1);
}

void cop_rpc_unref(struct cop_rpc *r)
{
	if (atomic_fetch_sub(&r->refs, 1) != 1)
		return;
	cop_htab_fini(&r->links);
	free(r->peers);
	free(r);
}

struct cop_rpc *cop_rpc_new(const struct cop_rpc_conf *conf, unsigned tick_ms)
{
	struct cop_rpc *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->conf = *conf;
	if (!r->conf.peer_timeout_ms)
		r->conf.peer_timeout_ms = 3000;
	r->peers = calloc(conf->nodes ? conf->nodes : 1, sizeof(*r->peers));
	if (!r->peers) {
		free(r);
		return NULL;
	}
	r->tick_ms = tick_ms ? tick_ms : 100;
	r->tick_cap_ms = COP_MAX(r->conf.peer_timeout_ms / 6, 2 * r->tick_ms);
	r->now_ms = 1;
	r->next_request = 1;
	r->refs = 1;
	cop_list_init(&r->later);
	cop_list_init(&r->peers_used);
	cop_list_init(&r->active);
	cop_list_init(&r->callers);
	cop_list_init(&r->halves);
	cop_list_init(&r->serving);
	return r;
}

int cop_rpc_open(const struct cop_rpc_conf *conf, const struct cop_endpoint_conf *fabric_conf,
	struct cop_rpc **out, struct cop_err *err)
{
	struct cop_endpoint_conf fc = *fabric_conf;
	struct cop_endpoint *fabric;
	struct cop_rpc *r = cop_rpc_new(conf, fc.tick_ms);
	int rc;

	if (!r)
		return cop_err_set(err, ENOMEM, "out of memory for %u peers", conf->nodes);
	fc.events = cop_rpc_events(r);
	/* rpc counts the bytes, because only rpc knows which were requested. */
	fc.stats = NULL;
	fc.rejected = conf->stats;
	/* out must be set before the thread starts: its callbacks read it. */
	*out = r;
	rc = cop_endpoint_open(&fc, &fabric, err);
	if (rc) {
		*out = NULL;
		cop_rpc_unref(r);
		return rc;
	}
	atomic_store_explicit(&r->fabric, fabric, memory_order_release);
	return 0;
}

struct cop_endpoint *cop_rpc_fabric(struct cop_rpc *r)
{
	return r->fabric;
}

/* Ends everything while fabric is still open: memory must be unregistered before fabric closes. */
static void teardown(struct cop_rpc *r)
{
	struct cop_rpc *outer;
	struct cop_list *at;
	struct peer *p;

	cop_rpc_enter(r, &outer);
	r->torn = true;
	while (cop_rpc_drain(r))
		;
	while ((at = cop_list_pop_front(&r->halves)))
		cop_rpc_session_free(r, COP_CONTAINER_OF(at, struct session, at));
	while ((at = cop_list_pop_front(&r->peers_used))) {
		p = COP_CONTAINER_OF(at, struct peer, at);
		cop_rpc_peer_free(r, p);
	}
	/* Set only now that no request belongs to a session: later replies are dropped by the
	 * replying thread. */
	atomic_store(&r->closed, true);
	while (cop_rpc_drain(r))
		;
	cop_rpc_leave(r, outer);
}

struct errand {
	struct cop_endpoint_work work;
	struct cop_rpc *r;
	void (*run)(struct cop_rpc *r);
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool done;
};

static void run_errand(struct cop_endpoint_work *w)
{
	struct errand *e = COP_CONTAINER_OF(w, struct errand, work);

	e->run(e->r);
	pthread_mutex_lock(&e->lock);
	e->done = true;
	pthread_cond_signal(&e->cond);
	pthread_mutex_unlock(&e->lock);
}

/* The progress thread runs all posts; close has to join it anyway, so waiting here costs
 * nothing. */
void cop_rpc_run_on_thread(struct cop_rpc *r, void (*run)(struct cop_rpc *r))
{
	struct errand e = {.work.run = run_errand,
		.r = r,
		.run = run,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.cond = PTHREAD_COND_INITIALIZER};

	if (r->fake) {
		run(r);
		return;
	}
	/* Fabric is not closed yet. */
	if (cop_endpoint_post(r->fabric, &e.work))
		abort();
	pthread_mutex_lock(&e.lock);
	while (!e.done)
		pthread_cond_wait(&e.cond, &e.lock);
	pthread_mutex_unlock(&e.lock);
}

void cop_rpc_close(struct cop_rpc *r)
{
	const struct timespec pause = {.tv_nsec = COP_NS_PER_MS};
	struct cop_rpc *outer;

	if (!r)
		return;
	cop_rpc_run_on_thread(r, teardown);
	/* A post takes only a moment. */
	while (atomic_load(&r->posting))
		nanosleep(&pause, NULL);
	cop_endpoint_close(r->fabric);
	/* The thread has ended, so items left by its last completions run here. */
	cop_rpc_enter(r, &outer);
	while (cop_rpc_drain(r))
		;
	cop_rpc_leave(r, outer);
	cop_rpc_unref(r);
}
