/* SPDX-License-Identifier: BSD-3-Clause */
/* The inbox, the events of fabric, and finding the session of a message. */
#include "fabric/rpc/rpc_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DRAIN_ROUNDS 4

/* The rpc whose event this thread is handling. */
static __thread struct cop_rpc *current;

/* ---- the inbox ---- */

bool cop_rpc_drain(struct cop_rpc *r)
{
	struct cop_list batch, *at;
	struct item *item;

	cop_list_init(&batch);
	pthread_mutex_lock(&r->lock);
	cop_list_splice(&batch, &r->inbox);
	pthread_mutex_unlock(&r->lock);
	if (cop_list_empty(&batch))
		return false;
	while ((at = cop_list_pop_front(&batch))) {
		item = COP_CONTAINER_OF(at, struct item, at);
		item->run(r, item);
	}
	cop_rpc_calls_start(r);
	return true;
}

static void drain_posted(void *arg)
{
	struct cop_rpc *r = arg, *outer;

	pthread_mutex_lock(&r->lock);
	r->posted = false;
	pthread_mutex_unlock(&r->lock);
	if (cop_rpc_enter(r, &outer))
		cop_rpc_leave(r, outer);
}

/* The lock is held. Whether the caller must call post_drain after unlocking. `posting` keeps close
 * from closing fabric before that call returns. */
static bool must_post(struct cop_rpc *r)
{
	if (cop_list_empty(&r->inbox) || r->posted || r->closed)
		return false;
	r->posted = true;
	r->posting++;
	return true;
}

/* If a post fails, the next event makes up for it, because its leave also drains. */
static void post_drain(struct cop_rpc *r)
{
	int rc = cop_endpoint_post(r->fabric, drain_posted, r);

	pthread_mutex_lock(&r->lock);
	if (rc)
		r->posted = false;
	if (!--r->posting)
		pthread_cond_signal(&r->posters_gone);
	pthread_mutex_unlock(&r->lock);
}

static bool queue_item(struct cop_rpc *r, struct item *item, bool even_closed)
{
	bool taken, post;

	pthread_mutex_lock(&r->lock);
	taken = even_closed || !r->closed;
	if (taken)
		cop_list_push_back(&r->inbox, &item->at);
	post = current != r && must_post(r);
	pthread_mutex_unlock(&r->lock);
	if (post)
		post_drain(r);
	return taken;
}

bool cop_rpc_push_all(struct cop_rpc *r, struct cop_list *items)
{
	bool taken, post;

	pthread_mutex_lock(&r->lock);
	taken = !r->closed;
	if (taken)
		cop_list_splice(&r->inbox, items);
	post = current != r && must_post(r);
	pthread_mutex_unlock(&r->lock);
	if (post)
		post_drain(r);
	return taken;
}

bool cop_rpc_push(struct cop_rpc *r, struct item *item)
{
	return queue_item(r, item, false);
}

void cop_rpc_queue(struct cop_rpc *r, struct item *item)
{
	queue_item(r, item, true);
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

void cop_rpc_leave(struct cop_rpc *r, struct cop_rpc *outer)
{
	bool post, left = false;

	if (outer != r) {
		for (int i = 0; i < DRAIN_ROUNDS; i++) {
			left = cop_rpc_drain(r);
			if (!left)
				break;
		}
	}
	current = outer;
	if (!left)
		return;
	pthread_mutex_lock(&r->lock);
	post = must_post(r);
	pthread_mutex_unlock(&r->lock);
	if (post)
		post_drain(r);
}

/* A message of a verified node of this job fails only for lack of memory or buffers. */
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

/* A frame on a session that this node opened: only answers may come on it. */
static void client_frame(struct cop_rpc *r, struct peer *p, const struct cop_frame *f)
{
	p->heard_ms = r->now_ms;
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
		/* This is the answer of a peer that was declared dead, or a request to an earlier
		 * process at this address. */
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
	return (struct cop_endpoint_events){.ctx = r, .recv = recv_msg, .tick = tick};
}
