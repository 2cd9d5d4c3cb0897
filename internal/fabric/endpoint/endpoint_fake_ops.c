/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations of a fake endpoint; delivery is in endpoint_fake.c (see fake_priv.h). */
#include "fabric/endpoint/fake_priv.h"

static struct fake_peer *peer_get(struct fake *f, cop_endpoint_peer_t id)
{
	for (struct cop_list *i = f->peers.next; i != &f->peers; i = i->next) {
		struct fake_peer *p = COP_CONTAINER_OF(i, struct fake_peer, link);

		if (p->id == id)
			return p;
	}
	return NULL;
}

static int fake_post(struct cop_endpoint *base, struct cop_list *works)
{
	struct fake *f = cop_endpoint_fake_of(base);
	struct cop_list *l;
	int rc = 0;

	while (!rc && (l = cop_list_pop_front(works))) {
		struct event *e = calloc(1, sizeof(*e));

		if (!e)
			abort(); /* the real endpoint needs no memory here */
		e->kind = EVENT_POST;
		e->from = f;
		e->work = COP_CONTAINER_OF(l, struct cop_endpoint_work, link);
		rc = cop_endpoint_fake_push(f->net, e);
		if (rc)
			cop_list_push_front(works, l);
	}
	return rc;
}

/* cop_endpoint_fake_advance always ticks. */
static void fake_keep_ticking(struct cop_endpoint *base, bool on)
{
	(void)base;
	(void)on;
}

static int fake_peer_open(struct cop_endpoint *base, const char *address, cop_endpoint_peer_t *peer)
{
	struct fake *f = cop_endpoint_fake_of(base);
	const char *name = address + strlen(COP_FAKE_SCHEME);
	struct fake_peer *p;

	if (f->closing)
		return -ESHUTDOWN;
	if (strncmp(address, COP_FAKE_SCHEME, strlen(COP_FAKE_SCHEME)) != 0 || *name == '\0' ||
		strnlen(name, COP_FAKE_NAME_MAX) == COP_FAKE_NAME_MAX)
		return -EINVAL;
	for (struct cop_list *i = f->peers.next; i != &f->peers; i = i->next) {
		p = COP_CONTAINER_OF(i, struct fake_peer, link);
		if (strcmp(p->name, name) == 0) {
			*peer = p->id;
			return 0;
		}
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->id = ++f->last_peer;
	snprintf(p->name, sizeof(p->name), "%s", name);
	cop_list_push_back(&f->peers, &p->link);
	*peer = p->id;
	return 0;
}

static void fake_peer_drop(struct cop_endpoint *base, cop_endpoint_peer_t peer)
{
	struct fake *f = cop_endpoint_fake_of(base);
	struct fake_peer *p = peer_get(f, peer);

	if (!p)
		return;
	cop_list_remove(&p->link);
	free(p);
	cop_endpoint_fake_cancel(f, &peer);
}

static int start_operation(struct fake *f, cop_endpoint_peer_t peer, enum event_kind kind,
	size_t len, struct event **out)
{
	struct fake_peer *p = peer_get(f, peer);
	struct event *e;

	if (f->closing)
		return -ESHUTDOWN;
	if (!p)
		return -ENOENT;
	e = calloc(1, sizeof(*e) + (kind == EVENT_SEND ? len : 0));
	if (!e)
		return -ENOMEM;
	e->kind = kind;
	e->from = f;
	e->peer = peer;
	e->len = len;
	snprintf(e->to, sizeof(e->to), "%s", p->name);
	*out = e;
	return 0;
}

static int fake_send(struct cop_endpoint *base, cop_endpoint_peer_t peer, const void *msg,
	size_t len, cop_endpoint_done *done, void *arg)
{
	struct fake *f = cop_endpoint_fake_of(base);
	struct event *e;
	int rc = len > COP_ENDPOINT_MSG_MAX ? -EMSGSIZE
					    : start_operation(f, peer, EVENT_SEND, len, &e);

	if (rc)
		return rc;
	if (len)
		memcpy(e->msg, msg, len);
	e->done = done;
	e->arg = arg;
	cop_stats_add(f->base.stats, COP_FABRIC_BYTES_OUT, len);
	return cop_endpoint_fake_push(f->net, e);
}

static int fake_write(struct cop_endpoint *base, cop_endpoint_peer_t peer, const void *buf,
	size_t len, uint64_t remote_addr, uint64_t remote_key, cop_endpoint_done *done, void *arg)
{
	struct fake *f = cop_endpoint_fake_of(base);
	struct event *e;
	int rc = start_operation(f, peer, EVENT_WRITE, len, &e);

	if (rc)
		return rc;
	if (len == 0) {
		free(e);
		if (done)
			done(arg, 0);
		return 0;
	}
	e->buf = buf;
	e->addr = remote_addr;
	e->key = remote_key;
	e->done = done;
	e->arg = arg;
	cop_stats_add(f->base.stats, COP_FABRIC_BYTES_OUT, len);
	return cop_endpoint_fake_push(f->net, e);
}

/* Remote addresses start at a number that is neither 0 nor the buffer's address, to catch code that
 * does not pass them on. */
static int fake_reg(struct cop_endpoint *base, void *buf, size_t len, struct cop_endpoint_mr **mr,
	uint64_t *addr, uint64_t *key)
{
	struct fake *f = cop_endpoint_fake_of(base);
	struct fake_mr *m;

	if (f->closing)
		return -ESHUTDOWN;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->base.fabric = base;
	m->buf = buf;
	m->len = len;
	*key = m->key = cop_hash64(&f->net->last_key, sizeof(f->net->last_key), 1);
	*addr = m->addr = (++f->net->last_key) << 32;
	cop_list_push_back(&f->mrs, &m->link);
	*mr = &m->base;
	return 0;
}

static void fake_unreg(struct cop_endpoint_mr *mr)
{
	struct fake_mr *m = COP_CONTAINER_OF(mr, struct fake_mr, base);

	cop_list_remove(&m->link);
	free(m);
}

void cop_endpoint_fake_close(struct cop_endpoint *base)
{
	struct fake *f = cop_endpoint_fake_of(base);
	struct event *running = f->net->running;
	struct cop_list *i;

	pthread_mutex_lock(&f->net->lock);
	f->closing = true;
	pthread_mutex_unlock(&f->net->lock);
	cop_list_remove(&f->link);
	cop_endpoint_fake_cancel(f, NULL);
	if (running && running->kind != EVENT_POST && running->from == f)
		cop_endpoint_fake_end(running, -ECANCELED);
	else if (running && running->from == f)
		running->from = NULL;
	while ((i = cop_list_pop_front(&f->peers)))
		free(COP_CONTAINER_OF(i, struct fake_peer, link));
	while ((i = cop_list_pop_front(&f->mrs)))
		free(COP_CONTAINER_OF(i, struct fake_mr, link));
	free(f);
}

const struct cop_endpoint_ops cop_endpoint_fake_ops = {
	.close = cop_endpoint_fake_close,
	.post = fake_post,
	.keep_ticking = fake_keep_ticking,
	.peer = fake_peer_open,
	.peer_drop = fake_peer_drop,
	.send = fake_send,
	.write = fake_write,
	.reg = fake_reg,
	.unreg = fake_unreg,
};
