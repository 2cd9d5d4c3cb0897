/* SPDX-License-Identifier: BSD-3-Clause */
/* The resolver: one thread that looks up names one after another. */
#include "base/log/log.h"
#include "job/rendezvous/rdv_priv.h"

#define STOP_MS 1000 /* how long we wait for a running lookup */

void cop_rdv_lookup_free(struct rdv_lookup *l)
{
	if (!l)
		return;
	free(l->name);
	free(l);
}

static void look_up(struct rdv_lookup *l)
{
	l->verdict = cop_host_address(l->name, &l->found, &l->problem);
}

/* Returns the next name, or NULL when the rendezvous stops. */
static struct rdv_lookup *next_lookup(struct cop_rendezvous *r)
{
	struct rdv_lookup *l = NULL;

	pthread_mutex_lock(&r->lock);
	while (!r->stopping && cop_list_empty(&r->resolver.todo))
		pthread_cond_wait(&r->resolver.more, &r->lock);
	if (!r->stopping) {
		l = COP_CONTAINER_OF(
			cop_list_pop_front(&r->resolver.todo), struct rdv_lookup, link);
		r->resolver.running = l;
	}
	pthread_mutex_unlock(&r->lock);
	return l;
}

static void end(struct cop_rendezvous *r)
{
	bool left;

	pthread_mutex_lock(&r->lock);
	r->resolver.ended = true;
	left = r->resolver.left;
	pthread_mutex_unlock(&r->lock);
	if (left)
		cop_rdv_free(r);
}

static void *run_resolver(void *arg)
{
	struct cop_rendezvous *r = arg;
	struct rdv_lookup *l;

	while ((l = next_lookup(r))) {
		look_up(l);
		pthread_mutex_lock(&r->lock);
		r->resolver.running = NULL;
		if (l->ask) {
			cop_list_push_back(&r->resolver.done, &l->link);
			l = NULL;
		}
		pthread_mutex_unlock(&r->lock);
		cop_rdv_lookup_free(l);
		cop_rdv_wake(r);
	}
	end(r);
	return NULL;
}

int cop_rdv_resolve_give(struct cop_rendezvous *r, struct rdv_ask *a)
{
	struct rdv_lookup *l = calloc(1, sizeof(*l));
	int rc = -ENOMEM;

	if (!l)
		return rc;
	cop_list_init(&l->link);
	l->ask = a;
	l->name = strdup(a->name);
	if (!l->name)
		goto fail;
	if (!r->resolver.started) {
		rc = cop_thread_start(&r->resolver.thread, "cop-resolve", run_resolver, r);
		if (rc)
			goto fail;
		r->resolver.started = true;
	}
	a->lookup = l;
	pthread_mutex_lock(&r->lock);
	cop_list_push_back(&r->resolver.todo, &l->link);
	pthread_cond_signal(&r->resolver.more);
	pthread_mutex_unlock(&r->lock);
	return 0;
fail:
	cop_rdv_lookup_free(l);
	return rc;
}

void cop_rdv_resolve_drop(struct cop_rendezvous *r, struct rdv_ask *a)
{
	struct rdv_lookup *l = a->lookup;

	if (!l)
		return;
	a->lookup = NULL;
	pthread_mutex_lock(&r->lock);
	l->ask = NULL;
	if (l == r->resolver.running)
		l = NULL; /* the resolver will free it */
	else
		cop_list_remove(&l->link);
	pthread_mutex_unlock(&r->lock);
	cop_rdv_lookup_free(l);
}

/* Leaves the rendezvous to the resolver to free, unless the resolver has just ended. */
static bool leave(struct cop_rendezvous *r)
{
	char host[COP_JOB_LABEL_SIZE] = "";
	bool left;

	pthread_mutex_lock(&r->lock);
	if (r->resolver.running)
		snprintf(host, sizeof(host), "%s", r->resolver.running->name);
	left = r->resolver.left = !r->resolver.ended;
	pthread_mutex_unlock(&r->lock);
	if (left)
		cop_log_warn(
			"the name service does not answer: the look-up of %s is abandoned", host);
	return !left;
}

/* A lookup cannot be interrupted, and may take longer than a node is allowed to take to exit. */
bool cop_rdv_resolve_stop(struct cop_rendezvous *r)
{
	if (!r->resolver.started)
		return true;
	pthread_mutex_lock(&r->lock);
	pthread_cond_signal(&r->resolver.more);
	pthread_mutex_unlock(&r->lock);
	return cop_thread_join_within(r->resolver.thread, STOP_MS) || leave(r);
}
