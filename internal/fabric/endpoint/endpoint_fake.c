/* SPDX-License-Identifier: BSD-3-Clause */
/* The fake network and its event loop; see fake_priv.h. */
#include "fabric/endpoint/fake_priv.h"

static struct fake *find_fake(struct cop_endpoint_net *net, const char *name)
{
	for (struct cop_list *i = net->endpoints.next; i != &net->endpoints; i = i->next) {
		struct fake *f = COP_CONTAINER_OF(i, struct fake, link);

		if (strcmp(f->name, name) == 0)
			return f;
	}
	return NULL;
}

/* ---- events ---- */

int cop_endpoint_fake_push(struct cop_endpoint_net *net, struct event *e)
{
	int rc = 0;

	pthread_mutex_lock(&net->lock);
	if (e->kind == EVENT_POST && e->from->closing) {
		rc = -ESHUTDOWN;
	} else if (e->kind != EVENT_POST && net->count >= COP_FAKE_EVENTS_MAX) {
		rc = -ENOBUFS;
	} else {
		cop_list_push_back(&net->events, &e->link);
		net->count++;
	}
	pthread_mutex_unlock(&net->lock);
	if (rc)
		free(e);
	return rc;
}

static struct event *pop_event(struct cop_endpoint_net *net)
{
	struct cop_list *i;

	pthread_mutex_lock(&net->lock);
	i = cop_list_pop_front(&net->events);
	if (i)
		net->count--;
	pthread_mutex_unlock(&net->lock);
	return i ? COP_CONTAINER_OF(i, struct event, link) : NULL;
}

void cop_endpoint_fake_end(struct event *e, int rc)
{
	cop_endpoint_done *done = e->done;

	e->done = NULL;
	if (done)
		done(e->arg, rc);
}

/* Removes the events of f from the queue: those to one peer, or all. Posted functions are removed
 * only with all. */
static void remove_events(struct fake *f, const cop_endpoint_peer_t *peer, struct cop_list *out)
{
	struct cop_list *i, *next;

	pthread_mutex_lock(&f->net->lock);
	for (i = f->net->events.next; i != &f->net->events; i = next) {
		struct event *e = COP_CONTAINER_OF(i, struct event, link);

		next = i->next;
		if (e->from != f || (peer && (e->kind == EVENT_POST || e->peer != *peer)))
			continue;
		cop_list_remove(i);
		f->net->count--;
		cop_list_push_back(out, i);
	}
	pthread_mutex_unlock(&f->net->lock);
	for (i = f->hung.next; i != &f->hung; i = next) {
		next = i->next;
		if (peer && COP_CONTAINER_OF(i, struct event, link)->peer != *peer)
			continue;
		cop_list_remove(i);
		cop_list_push_back(out, i);
	}
}

void cop_endpoint_fake_cancel(struct fake *f, const cop_endpoint_peer_t *peer)
{
	struct cop_list taken, *i;

	cop_list_init(&taken);
	remove_events(f, peer, &taken);
	while ((i = cop_list_pop_front(&taken))) {
		struct event *e = COP_CONTAINER_OF(i, struct event, link);

		if (e->kind == EVENT_POST)
			e->work->run(e->work);
		else
			cop_endpoint_fake_end(e, -ECANCELED);
		free(e);
	}
}

/* ---- delivery ---- */

static void deliver_send(struct cop_endpoint_net *net, struct event *e, struct fake *to)
{
	if (!e->from->cut && !to->cut &&
		(!net->tap || net->tap(net->tap_arg, e->from->name, to->name, e->msg, e->len))) {
		cop_stats_add(to->base.stats, COP_FABRIC_BYTES_IN, e->len);
		to->base.events.recv(to->base.events.ctx, e->msg, e->len);
	}
	cop_endpoint_fake_end(e, 0);
}

static int write_memory(struct fake *to, const struct event *e)
{
	for (struct cop_list *i = to->mrs.next; i != &to->mrs; i = i->next) {
		struct fake_mr *m = COP_CONTAINER_OF(i, struct fake_mr, link);

		if (m->key != e->key)
			continue;
		if (e->addr < m->addr || e->addr - m->addr > m->len ||
			e->len > m->len - (e->addr - m->addr))
			return -EIO;
		memcpy(m->buf + (e->addr - m->addr), e->buf, e->len);
		return 0;
	}
	return -EIO;
}

/* Whether the next event is posted work of the same endpoint, to run in the same turn. */
static bool more_is_posted(struct cop_endpoint_net *net, const struct fake *f)
{
	const struct event *next;
	bool more;

	pthread_mutex_lock(&net->lock);
	next = COP_CONTAINER_OF(net->events.next, struct event, link);
	more = !cop_list_empty(&net->events) && next->kind == EVENT_POST && next->from == f;
	pthread_mutex_unlock(&net->lock);
	return more;
}

/* The work may close the endpoint, which sets e->from to NULL. */
static void run_posted(struct cop_endpoint_net *net, struct event *e)
{
	e->work->run(e->work);
	if (e->from && e->from->base.events.ran && !more_is_posted(net, e->from))
		e->from->base.events.ran(e->from->base.events.ctx);
}

/* Returns false if the event must not be freed yet. */
static bool run_event(struct cop_endpoint_net *net, struct event *e)
{
	struct fake *to;

	if (e->kind == EVENT_POST) {
		run_posted(net, e);
		return true;
	}
	to = find_fake(net, e->to);
	if (!to) {
		cop_endpoint_fake_end(e, -EHOSTUNREACH);
	} else if (e->kind == EVENT_SEND) {
		deliver_send(net, e, to);
	} else if (e->from->cut || to->cut) {
		cop_list_push_back(&e->from->hung, &e->link);
		return false;
	} else {
		cop_endpoint_fake_end(e, write_memory(to, e));
	}
	return true;
}

size_t cop_endpoint_fake_run(struct cop_endpoint_net *net, size_t max_events)
{
	struct event *e, *outer = net->running;
	size_t count = 0;

	for (; count < max_events && (e = pop_event(net)); count++) {
		net->running = e;
		if (run_event(net, e))
			free(e);
	}
	net->running = outer;
	return count;
}

/* ---- the network ---- */

struct cop_endpoint_net *cop_endpoint_net_new(void)
{
	struct cop_endpoint_net *net = calloc(1, sizeof(*net));

	if (!net)
		return NULL;
	pthread_mutex_init(&net->lock, NULL);
	cop_list_init(&net->events);
	cop_list_init(&net->endpoints);
	/* Start near the real clock, for code that mixes the two. */
	net->now_ms = cop_now_ms();
	return net;
}

void cop_endpoint_net_free(struct cop_endpoint_net *net)
{
	if (!net)
		return;
	while (!cop_list_empty(&net->endpoints))
		cop_endpoint_fake_close(
			&COP_CONTAINER_OF(net->endpoints.next, struct fake, link)->base);
	pthread_mutex_destroy(&net->lock);
	free(net);
}

int cop_endpoint_fake_open(struct cop_endpoint_net *net, const char *name,
	const struct cop_endpoint_conf *conf, struct cop_endpoint **out)
{
	struct fake *f;

	if (*name == '\0' || strnlen(name, COP_FAKE_NAME_MAX) == COP_FAKE_NAME_MAX)
		return -EINVAL;
	if (find_fake(net, name))
		return -EADDRINUSE;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->base.ops = &cop_endpoint_fake_ops;
	f->base.stats = conf->stats;
	f->base.events = conf->events;
	f->base.tick_ms = conf->tick_ms ? conf->tick_ms : 100;
	snprintf(f->base.address, sizeof(f->base.address), COP_FAKE_SCHEME "%s", name);
	snprintf(f->base.provider, sizeof(f->base.provider), "fake");
	snprintf(f->name, sizeof(f->name), "%s", name);
	f->net = net;
	f->next_tick_ms = net->now_ms + f->base.tick_ms;
	cop_list_init(&f->peers);
	cop_list_init(&f->mrs);
	cop_list_init(&f->hung);
	cop_list_push_back(&net->endpoints, &f->link);
	*out = &f->base;
	return 0;
}

/* The endpoint with the earliest tick due, not after target_ms. */
static struct fake *first_due(struct cop_endpoint_net *net, uint64_t target_ms)
{
	struct fake *first = NULL;

	for (struct cop_list *i = net->endpoints.next; i != &net->endpoints; i = i->next) {
		struct fake *f = COP_CONTAINER_OF(i, struct fake, link);

		if (f->next_tick_ms <= target_ms &&
			(!first || f->next_tick_ms < first->next_tick_ms))
			first = f;
	}
	return first;
}

void cop_endpoint_fake_advance(struct cop_endpoint_net *net, uint64_t ms)
{
	uint64_t target_ms = net->now_ms + ms;
	struct fake *f;

	while ((f = first_due(net, target_ms))) {
		net->now_ms = f->next_tick_ms;
		f->next_tick_ms += f->base.tick_ms;
		if (f->base.events.tick)
			f->base.events.tick(f->base.events.ctx, net->now_ms);
	}
	net->now_ms = target_ms;
}

void cop_endpoint_fake_jump(struct cop_endpoint_net *net, uint64_t ms)
{
	net->now_ms += ms;
	for (struct cop_list *i = net->endpoints.next; i != &net->endpoints; i = i->next) {
		struct fake *f = COP_CONTAINER_OF(i, struct fake, link);

		f->next_tick_ms = net->now_ms + f->base.tick_ms;
		if (f->base.events.tick)
			f->base.events.tick(f->base.events.ctx, net->now_ms);
	}
}

void cop_endpoint_fake_cut(struct cop_endpoint_net *net, const char *name, bool cut)
{
	struct fake *f = find_fake(net, name);

	if (f)
		f->cut = cut;
}

void cop_endpoint_fake_tap(struct cop_endpoint_net *net,
	bool (*tap)(void *arg, const char *from, const char *to, void *msg, size_t len), void *arg)
{
	net->tap = tap;
	net->tap_arg = arg;
}
