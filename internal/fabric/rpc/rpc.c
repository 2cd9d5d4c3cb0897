/* SPDX-License-Identifier: BSD-3-Clause */
/* Work from other threads, fabric's events, and the session of a message. */
#include "fabric/rpc/rpc_priv.h"

#include <assert.h>

#define DRAIN_ROUNDS 4

/* The rpc whose event this thread is handling. */
static __thread struct cop_rpc *current;

/* ---- work from any thread ---- */

/* Runs between two turns of the endpoint; work from its callbacks waits for `ran`. */
static void run_item(struct cop_endpoint_work *w)
{
	struct item *item = COP_CONTAINER_OF(w, struct item, work);
	struct cop_rpc *r = item->r, *outer = current;

	current = r;
	item->run(r, item);
	current = outer;
}

static void prepare(struct cop_rpc *r, struct item *item)
{
	item->r = r;
	item->work.run = run_item;
}

void cop_rpc_queue(struct cop_rpc *r, struct item *item)
{
	assert(current == r);
	prepare(r, item);
	cop_list_push_back(&r->later, &item->work.link);
}

void cop_rpc_items_add(struct cop_rpc *r, struct items *items, struct item *item)
{
	prepare(r, item);
	cop_list_push_back(&items->list, &item->work.link);
}

struct item *cop_rpc_items_pop(struct items *items)
{
	struct cop_list *l = cop_list_pop_front(&items->list);

	return l ? COP_CONTAINER_OF(
			   COP_CONTAINER_OF(l, struct cop_endpoint_work, link), struct item, work)
		 : NULL;
}

/* `posting` keeps close from closing fabric before this returns. */
bool cop_rpc_push_all(struct cop_rpc *r, struct items *items)
{
	bool taken;

	if (current == r) {
		taken = !atomic_load(&r->closed);
		if (taken)
			cop_list_splice(&r->later, &items->list);
		return taken;
	}
	atomic_fetch_add(&r->posting, 1);
	taken = !atomic_load(&r->closed) && cop_endpoint_post_all(r->fabric, &items->list) == 0;
	atomic_fetch_sub(&r->posting, 1);
	return taken;
}

bool cop_rpc_push(struct cop_rpc *r, struct item *item)
{
	struct items one;

	cop_list_init(&one.list);
	cop_rpc_items_add(r, &one, item);
	return cop_rpc_push_all(r, &one);
}

bool cop_rpc_drain(struct cop_rpc *r)
{
	struct items batch;
	struct item *item;

	cop_list_init(&batch.list);
	cop_list_splice(&batch.list, &r->later);
	if (cop_list_empty(&batch.list))
		return false;
	while ((item = cop_rpc_items_pop(&batch)))
		item->run(r, item);
	cop_rpc_calls_start(r);
	return true;
}

/* ---- events ---- */

bool cop_rpc_inside(const struct cop_rpc *r)
{
	return current == r;
}

bool cop_rpc_enter(struct cop_rpc *r, struct cop_rpc **outer)
{
	*outer = current;
	if (!atomic_load_explicit(&r->fabric, memory_order_acquire))
		return false;
	current = r;
	return true;
}

void cop_rpc_wake(struct cop_rpc *r)
{
	if (r->ticking)
		return;
	r->ticking = true;
	cop_endpoint_keep_ticking(r->fabric, true);
}

static void run_more(struct cop_endpoint_work *w)
{
	COP_CONTAINER_OF(w, struct cop_rpc, more)->has_more = false;
}

/* Items left after a few rounds wait for the endpoint's next turn, so that they do not starve its
 * other work. */
void cop_rpc_leave(struct cop_rpc *r, struct cop_rpc *outer)
{
	if (outer != r) {
		for (int i = 0; i < DRAIN_ROUNDS && cop_rpc_drain(r); i++)
			continue;
		if (!cop_list_empty(&r->later) && !r->has_more) {
			r->more.run = run_more;
			r->has_more = cop_endpoint_post(r->fabric, &r->more) == 0;
		}
	}
	current = outer;
}

static void ran(void *ctx)
{
	struct cop_rpc *r = ctx, *outer;

	if (!cop_rpc_enter(r, &outer))
		return;
	cop_rpc_calls_start(r);
	cop_rpc_leave(r, outer);
}

/* A valid message from a node of this job can fail only because memory or buffers are short. */
static bool is_for_want_of_room(int rc)
{
	return rc == -ENOMEM || rc == -ENOBUFS;
}

static const char *reason_for(int rc)
{
	switch (rc) {
	case -EBADMSG:
		return "it is malformed";
	case -EACCES:
		return "it does not prove the job's secret";
	case -EALREADY:
		return "it was received before";
	case -EADDRNOTAVAIL:
		return "it is from or for another rank";
	default:
		return "no node of this job says that";
	}
}

void cop_rpc_reject(struct cop_rpc *r, const char *what, uint32_t rank, int rc)
{
	char from[40] = "?";

	if (is_for_want_of_room(rc)) {
		cop_rpc_drop(r, what, rank, rc);
		return;
	}
	if (rank < r->conf.nodes)
		snprintf(from, sizeof(from), "rank-%u-as-it-says", rank);
	cop_stats_rejected(r->conf.stats, rc, 1);
	cop_log_refused(what, reason_for(rc), from);
}

void cop_rpc_drop(struct cop_rpc *r, const char *what, uint32_t rank, int rc)
{
	cop_stats_add(r->conf.stats, COP_FABRIC_DROPPED, 1);
	cop_log_debug("dropped what=%s rank=%u reason=\"%s\"", what, rank, strerror(-rc));
}

static void tick(void *ctx, uint64_t now_ms)
{
	struct cop_rpc *r = ctx, *outer;
	uint64_t delta;

	if (!cop_rpc_enter(r, &outer))
		return;
	delta = r->last_tick_ms && now_ms > r->last_tick_ms ? now_ms - r->last_tick_ms : 0;
	r->last_tick_ms = now_ms;
	r->now_ms += COP_MIN(delta, r->tick_cap_ms);
	cop_rpc_lag_clock(r, delta);
	if (!r->torn) {
		cop_rpc_peers_tick(r);
		cop_rpc_sessions_tick(r);
		if (r->conf.tick)
			r->conf.tick(r->conf.ctx, r->now_ms);
	}
	if (r->ticking && cop_list_empty(&r->active) && cop_list_empty(&r->halves) &&
		cop_list_empty(&r->serving)) {
		r->ticking = false;
		cop_endpoint_keep_ticking(r->fabric, false);
	}
	cop_rpc_leave(r, outer);
}

/* A frame on a session that this node opened: it can carry only replies. */
static void client_frame(struct cop_rpc *r, struct peer *p, const struct cop_frame *f)
{
	p->heard_ms = r->now_ms;
	cop_rpc_lag_heard(r, p);
	if (f->type == COP_FRAME_REPLY)
		cop_rpc_call_reply(r, p, f);
	else if (f->type == COP_FRAME_PONG)
		cop_rpc_peer_pong(r, p, f);
	else
		cop_rpc_reject(r, "type", p->rank, -EPROTO);
}

static void server_frame(struct cop_rpc *r, struct session *s, const void *msg, size_t len)
{
	struct cop_frame f;
	int rc = s->refused ? -EPROTO : cop_frame_open(&s->keys.rx, msg, len, &f);

	if (rc) {
		cop_rpc_reject(r, "message", s->rank, rc);
		return;
	}
	if (s->half && cop_rpc_session_promote(r, s))
		return;
	cop_stats_add(r->conf.stats, COP_FABRIC_BYTES_IN, len);
	cop_rpc_serve_frame(r, s, &f);
}

static void open_sealed(struct cop_rpc *r, const void *msg, size_t len, struct cop_frame *f)
{
	uint32_t rank = (uint32_t)f->session;
	struct peer *p = rank < r->conf.nodes ? r->peers[rank] : NULL;
	struct session *half;
	int rc;

	if (p && p->state == PEER_UP && p->sid == f->session) {
		rc = cop_frame_open(&p->keys.rx, msg, len, f);
		if (rc) {
			cop_rpc_reject(r, "message", rank, rc);
			return;
		}
		cop_stats_add(r->conf.stats, COP_FABRIC_BYTES_IN, len);
		client_frame(r, p, f);
	} else if (p && p->in && p->in->sid == f->session) {
		server_frame(r, p->in, msg, len);
	} else if ((half = cop_rpc_half_find(r, f->session))) {
		server_frame(r, half, msg, len);
	} else if (rank < r->conf.nodes) {
		/* The reply of a peer that was declared dead, or a request to an earlier process at
		 * this address. */
		cop_rpc_drop(r, "session", rank, -ENOENT);
	} else {
		cop_rpc_reject(r, "session", rank, -EBADMSG);
	}
}

static void recv_msg(void *ctx, const void *msg, size_t len)
{
	struct cop_rpc *r = ctx, *outer;
	struct cop_frame f;
	int rc;

	if (!cop_rpc_enter(r, &outer))
		return;
	if (r->torn)
		goto out;
	rc = cop_frame_parse(msg, len, &f);
	if (rc)
		cop_rpc_reject(r, "form", UINT32_MAX, rc);
	else if (f.type == COP_FRAME_HELLO)
		cop_rpc_hello(r, msg, len);
	else if (f.type == COP_FRAME_WELCOME)
		cop_rpc_peer_welcome(r, msg, len, &f);
	else
		open_sealed(r, msg, len, &f);
out:
	cop_rpc_leave(r, outer);
}

struct cop_endpoint_events cop_rpc_events(struct cop_rpc *r)
{
	return (struct cop_endpoint_events){.ctx = r, .recv = recv_msg, .tick = tick, .ran = ran};
}
