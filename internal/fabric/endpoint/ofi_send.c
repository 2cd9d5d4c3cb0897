/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages and writes. Operations refused with EAGAIN (the provider's queue is full, or rxm is
 * still connecting) stay in the peer's queue. pump_all retries after each completion and, during
 * refusals, after a pause growing from 1 to 32 ms, because each try at an absent peer is a
 * connection attempt. */
#include "fabric/endpoint/ofi_priv.h"

#include <assert.h>

#define MISSES_AT_1MS 8
#define MISSES_MAX (MISSES_AT_1MS + 5) /* 32 ms */

static void mark_busy(struct ofi *o, struct ofi_peer *p)
{
	if (cop_list_empty(&p->busy))
		cop_list_push_back(&o->busy, &p->busy);
}

static void back_off(struct ofi_peer *p, uint64_t now_ns)
{
	uint64_t delay = COP_NS_PER_MS;

	if (!p->stuck_ns)
		p->stuck_ns = now_ns;
	if (p->misses < MISSES_MAX)
		p->misses++;
	if (p->misses > MISSES_AT_1MS)
		delay <<= p->misses - MISSES_AT_1MS;
	p->next_try_ns = now_ns + delay;
}

static void note_alive(struct ofi_peer *p)
{
	p->connected = true;
	p->misses = 0;
	p->stuck_ns = 0;
	p->next_try_ns = 0;
}

/* Runs done, which may drop the peer: a caller that still needs the peer holds a flying
 * reference. */
static void finish_send(struct ofi_send *s, int rc)
{
	if (s->mr)
		cop_endpoint_ofi_unreg(&s->mr->base);
	if (s->done)
		s->done(s->arg, rc);
	free(s);
}

static void finish_write(struct ofi_write *w)
{
	if (w->mr)
		cop_endpoint_ofi_unreg(&w->mr->base);
	if (w->done)
		w->done(w->arg, w->rc);
	free(w);
}

static void unqueue_write(struct ofi_write *w)
{
	if (!w->queued)
		return;
	w->queued = false;
	w->peer->queued--;
	cop_list_remove(&w->link);
}

/* ---- handing over ---- */

static void note_flying(struct ofi *o, struct ofi_peer *p, struct ofi_ctx *ctx, size_t len)
{
	cop_list_push_back(&o->flying, &ctx->link);
	p->flying++;
	note_alive(p);
	cop_stats_add(o->base.stats, COP_FABRIC_BYTES_OUT, len);
}

/* 0: handed over; -EAGAIN; or another -errno. */
static int post_send(struct ofi *o, struct ofi_peer *p, struct ofi_send *s)
{
	int rc = cop_endpoint_ofi_errno(
		fi_send(o->ep, s->msg, s->len, cop_endpoint_ofi_desc(s->mr), p->addr, &s->ctx));

	if (rc) {
		p->connected = false;
		return rc;
	}
	o->flying_sends++;
	p->sends_flying++;
	note_flying(o, p, &s->ctx, s->len);
	return 0;
}

static int post_part(struct ofi *o, struct ofi_peer *p, struct ofi_write *w)
{
	struct ofi_part *part = calloc(1, sizeof(*part));
	size_t len = COP_MIN(o->part_size, w->len - w->sent);
	struct iovec iov = {(void *)(uintptr_t)(w->buf + w->sent), len};
	struct fi_rma_iov target = {w->addr + w->sent, len, w->key};
	void *desc = cop_endpoint_ofi_desc(w->mr);
	struct fi_msg_rma msg = {&iov, &desc, 1, p->addr, &target, 1, NULL, 0};
	int rc;

	if (!part)
		return -ENOMEM;
	part->ctx.kind = OFI_PART;
	part->write = w;
	part->len = len;
	msg.context = &part->ctx;
	rc = cop_endpoint_ofi_errno(fi_writemsg(o->ep, &msg, o->write_flags));
	if (rc) {
		p->connected = false;
		free(part);
		return rc;
	}
	w->sent += len;
	w->flying++;
	p->parts++;
	o->flying_parts++;
	note_flying(o, p, &part->ctx, len);
	return 0;
}

static bool may_send(const struct ofi *o, const struct ofi_peer *p)
{
	return p->sends_flying == 0 ||
	       (p->sends_flying < COP_OFI_SENDS_PEER && o->flying_sends < COP_OFI_SENDS_ALL);
}

static bool may_write(const struct ofi *o, const struct ofi_peer *p)
{
	return p->parts == 0 ||
	       (p->parts < COP_OFI_PARTS_PEER && o->flying_parts < COP_OFI_PARTS_ALL);
}

static int pump_sends(struct ofi *o, struct ofi_peer *p)
{
	while (!p->dropped && !cop_list_empty(&p->sends) && may_send(o, p)) {
		struct ofi_send *s = COP_CONTAINER_OF(p->sends.next, struct ofi_send, ctx.link);
		int rc;

		cop_list_remove(&s->ctx.link);
		rc = post_send(o, p, s);
		if (rc == -EAGAIN) {
			cop_list_push_front(&p->sends, &s->ctx.link);
			return rc;
		}
		p->queued--;
		if (rc)
			finish_send(s, rc);
	}
	return 0;
}

static int pump_writes(struct ofi *o, struct ofi_peer *p)
{
	while (!p->dropped && !cop_list_empty(&p->writes) && may_write(o, p)) {
		struct ofi_write *w = COP_CONTAINER_OF(p->writes.next, struct ofi_write, link);
		int rc = post_part(o, p, w);

		if (rc == -EAGAIN)
			return rc;
		if (rc)
			w->rc = rc;
		if (rc || w->sent == w->len)
			unqueue_write(w);
		if (rc && w->flying == 0)
			finish_write(w);
	}
	return 0;
}

/* Hands over as much of one peer's queue as the provider accepts. */
static void pump_peer(struct ofi *o, struct ofi_peer *p, uint64_t now_ns)
{
	int rc;

	p->flying++; /* done may drop the peer */
	rc = pump_sends(o, p);
	if (rc == 0)
		rc = pump_writes(o, p);
	if (rc == -EAGAIN)
		back_off(p, now_ns ? now_ns : cop_now_ns());
	if (!p->dropped && p->queued)
		mark_busy(o, p);
	p->flying--;
	cop_endpoint_ofi_peer_free_if_unused(p);
}

static void pump_due(struct ofi *o, struct ofi_peer *p, uint64_t now_ns)
{
	p->flying++;
	if (p->stuck_ns && now_ns - p->stuck_ns > COP_OFI_STUCK_MS * COP_NS_PER_MS) {
		p->stuck_ns = 0;
		cop_endpoint_ofi_cancel(p, -EHOSTUNREACH);
	}
	if (!p->dropped && p->next_try_ns <= now_ns)
		pump_peer(o, p, now_ns);
	if (!p->dropped && p->queued) {
		mark_busy(o, p);
		if (p->next_try_ns && (!o->next_due_ns || p->next_try_ns < o->next_due_ns))
			o->next_due_ns = p->next_try_ns;
	}
	p->flying--;
	cop_endpoint_ofi_peer_free_if_unused(p);
}

/* A served peer moves to the end of the list, for fair sharing of the limits. */
void cop_endpoint_ofi_pump_all(struct ofi *o, uint64_t now_ns)
{
	struct cop_list todo, *i;

	o->next_due_ns = 0;
	if (cop_list_empty(&o->busy))
		return;
	cop_list_init(&todo);
	cop_list_splice(&todo, &o->busy);
	while ((i = cop_list_pop_front(&todo)))
		pump_due(o, COP_CONTAINER_OF(i, struct ofi_peer, busy), now_ns);
}

/* ---- landing ---- */

static void part_completed(struct ofi *o, struct ofi_part *part, int rc)
{
	struct ofi_write *w = part->write;

	o->flying_parts--;
	w->peer->parts--;
	w->flying--;
	free(part);
	if (rc && !w->rc)
		w->rc = rc;
	if (w->rc)
		unqueue_write(w);
	if (w->flying == 0 && !w->queued)
		finish_write(w);
}

void cop_endpoint_ofi_completed(struct ofi *o, struct ofi_ctx *ctx, int rc)
{
	struct ofi_send *s = COP_CONTAINER_OF(ctx, struct ofi_send, ctx);
	struct ofi_part *part = COP_CONTAINER_OF(ctx, struct ofi_part, ctx);
	struct ofi_peer *p = ctx->kind == OFI_SEND ? s->peer : part->write->peer;

	cop_list_remove(&ctx->link);
	if (rc == 0)
		note_alive(p);
	else if (p->dropped)
		rc = -ECANCELED;
	if (ctx->kind == OFI_SEND) {
		o->flying_sends--;
		p->sends_flying--;
		finish_send(s, rc);
	} else {
		part_completed(o, part, rc);
	}
	p->flying--;
	cop_endpoint_ofi_peer_free_if_unused(p);
}

void cop_endpoint_ofi_cancel(struct ofi_peer *p, int rc)
{
	struct cop_list sends, writes, *i;

	p->flying++; /* done may drop the peer */
	cop_list_init(&sends);
	cop_list_init(&writes);
	cop_list_splice(&sends, &p->sends);
	cop_list_splice(&writes, &p->writes);
	cop_list_remove(&p->busy);
	while ((i = cop_list_pop_front(&sends))) {
		p->queued--;
		finish_send(COP_CONTAINER_OF(i, struct ofi_send, ctx.link), rc);
	}
	while (!cop_list_empty(&writes)) {
		struct ofi_write *w = COP_CONTAINER_OF(writes.next, struct ofi_write, link);

		unqueue_write(w);
		w->rc = rc;
		if (w->flying == 0)
			finish_write(w);
	}
	p->flying--;
	cop_endpoint_ofi_peer_free_if_unused(p);
}

/* ---- the public calls ---- */

static int start_operation(struct ofi *o, cop_endpoint_peer_t id, struct ofi_peer **p)
{
	assert(cop_endpoint_ofi_on_thread(o));
	if (o->stopping)
		return -ESHUTDOWN;
	*p = cop_endpoint_ofi_peer_get(o, id);
	if (!*p)
		return -ENOENT;
	return (*p)->queued < COP_OFI_QUEUE_MAX ? 0 : -ENOBUFS;
}

/* A small message to a peer with an empty queue needs no copy and no completion. */
static int inject_message(struct ofi *o, struct ofi_peer *p, const void *msg, size_t len)
{
	int rc;

	if (len > o->info->tx_attr->inject_size || p->next_try_ns || !cop_list_empty(&p->sends))
		return -EAGAIN;
	rc = cop_endpoint_ofi_errno(fi_inject(o->ep, msg, len, p->addr));
	if (rc) {
		p->connected = false;
		return rc;
	}
	note_alive(p);
	cop_stats_add(o->base.stats, COP_FABRIC_BYTES_OUT, len);
	return 0;
}

static int make_send(
	struct ofi *o, struct ofi_peer *p, const void *msg, size_t len, struct ofi_send **out)
{
	struct ofi_send *s = malloc(sizeof(*s) + len);
	int rc;

	if (!s)
		return -ENOMEM;
	memset(s, 0, sizeof(*s));
	s->ctx.kind = OFI_SEND;
	s->peer = p;
	s->len = len;
	if (len)
		memcpy(s->msg, msg, len);
	rc = cop_endpoint_ofi_reg_local(o, s->msg, len, FI_SEND, &s->mr);
	if (rc) {
		free(s);
		return rc;
	}
	*out = s;
	return 0;
}

int cop_endpoint_ofi_send(struct cop_endpoint *f, cop_endpoint_peer_t peer, const void *msg,
	size_t len, cop_endpoint_done *done, void *arg)
{
	struct ofi *o = cop_endpoint_ofi_of(f);
	struct ofi_peer *p;
	struct ofi_send *s;
	int rc = len > COP_ENDPOINT_MSG_MAX ? -EMSGSIZE : start_operation(o, peer, &p);

	if (rc)
		return rc;
	rc = inject_message(o, p, msg, len);
	if (rc == 0 && done)
		done(arg, 0);
	if (rc != -EAGAIN)
		return rc;
	rc = make_send(o, p, msg, len, &s);
	if (rc)
		return rc;
	s->done = done;
	s->arg = arg;
	cop_list_push_back(&p->sends, &s->ctx.link);
	p->queued++;
	mark_busy(o, p);
	if (!p->next_try_ns)
		pump_peer(o, p, 0);
	return 0;
}

int cop_endpoint_ofi_write(struct cop_endpoint *f, cop_endpoint_peer_t peer, const void *buf,
	size_t len, uint64_t remote_addr, uint64_t remote_key, cop_endpoint_done *done, void *arg)
{
	struct ofi *o = cop_endpoint_ofi_of(f);
	struct ofi_peer *p;
	struct ofi_write *w;
	int rc = start_operation(o, peer, &p);

	if (rc)
		return rc;
	if (len == 0) {
		if (done)
			done(arg, 0);
		return 0;
	}
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	rc = cop_endpoint_ofi_reg_local(o, buf, len, FI_WRITE, &w->mr);
	if (rc) {
		free(w);
		return rc;
	}
	*w = (struct ofi_write){.peer = p,
		.buf = buf,
		.len = len,
		.addr = remote_addr,
		.key = remote_key,
		.queued = true,
		.mr = w->mr,
		.done = done,
		.arg = arg};
	cop_list_push_back(&p->writes, &w->link);
	p->queued++;
	mark_busy(o, p);
	if (!p->next_try_ns)
		pump_peer(o, p, 0);
	return 0;
}
