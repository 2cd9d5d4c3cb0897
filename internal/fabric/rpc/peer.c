/* SPDX-License-Identifier: BSD-3-Clause */
/* The sessions that this node opens: resolve, greet, ping, declare dead. */
#include "fabric/rpc/rpc_priv.h"

struct peer *cop_rpc_peer(struct cop_rpc *r, uint32_t rank)
{
	struct peer *p = r->peers[rank];

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->rank = rank;
	cop_list_init(&p->active);
	cop_list_init(&p->caller);
	cop_list_init(&p->inflight);
	cop_list_init(&p->waiting);
	cop_list_push_back(&r->peers_used, &p->at);
	r->peers[rank] = p;
	return p;
}

void cop_rpc_peer_free(struct cop_rpc *r, struct peer *p)
{
	cop_rpc_link_reset(r, p->link);
	cop_rpc_calls_fail(r, p, -ECANCELED);
	if (p->in)
		cop_rpc_session_free(r, p->in);
	cop_rpc_link_put(r, p->link);
	cop_list_remove(&p->active);
	cop_list_remove(&p->caller);
	cop_list_remove(&p->at);
	r->peers[p->rank] = NULL;
	cop_htab_fini(&p->by_id);
	free(p);
}

uint64_t cop_rpc_make_sid(struct cop_rpc *r, uint32_t rank)
{
	struct peer *p = r->peers[rank];
	uint64_t sid;

	do
		sid = cop_wire_random64() << 32 | rank;
	while (!(sid >> 32) ||
		(p && (p->sid == sid || p->greeting.sid == sid || (p->in && p->in->sid == sid))) ||
		cop_rpc_half_find(r, sid));
	return sid;
}

static void enter_state(struct cop_rpc *r, struct peer *p, enum peer_state state)
{
	p->state = state;
	p->since_ms = r->now_ms;
	p->lag.ping = 0;
	cop_rpc_lag_heard(r, p);
	if (cop_list_empty(&p->active))
		cop_list_push_back(&r->active, &p->active);
	cop_rpc_wake(r);
}

/* ---- connecting ---- */

static void send_hello(struct cop_rpc *r, struct peer *p)
{
	p->greeting.sent_ms = r->now_ms;
	cop_rpc_link_send(r, p->link, p->greeting.hello, p->greeting.len);
}

/* Sends a new HELLO. While the peer is UP, the HELLO names the session in doubt. */
static void make_hello(struct cop_rpc *r, struct peer *p)
{
	const char *self = cop_endpoint_address(r->fabric);
	struct cop_hello h = {.from = r->conf.rank,
		.to = p->rank,
		.config_hash = r->conf.config_hash,
		.address = self,
		.address_len = strlen(self)};

	h.session = cop_rpc_make_sid(r, p->rank);
	h.current = p->state == PEER_UP ? p->remote_sid : 0;
	cop_wire_random(h.nonce, sizeof(h.nonce));
	p->greeting.sid = h.session;
	p->greeting.len = cop_hello_write(&r->conf.secret, &h, p->greeting.hello);
	send_hello(r, p);
}

void cop_rpc_requeue_calls(struct cop_rpc *r, struct peer *p)
{
	while (!cop_list_empty(&p->inflight)) {
		struct cop_list *at = p->inflight.prev;

		cop_rpc_call_again(r, COP_CONTAINER_OF(at, struct call, at));
	}
}

static void look_up(struct cop_rpc *r, struct peer *p)
{
	p->looked_up = true;
	p->looked_up_ms = r->now_ms;
	r->conf.resolve(r->conf.ctx, p->rank, p->state != PEER_RESOLVING);
}

/* A silent peer now resolves to another address, so it was restarted. */
static void follow_address(struct cop_rpc *r, struct peer *p, const char *address)
{
	struct link *old = p->link, *link;

	if (!address || (strlen(address) == old->len && !memcmp(address, old->text, old->len)))
		return;
	link = cop_rpc_link_get(r, address, strlen(address));
	if (!link)
		return;
	cop_log_info("peer has moved rank=%u address=%s", p->rank, address);
	/* The calls' memory is released next, so nothing may be written to it later. */
	cop_rpc_link_reset(r, old);
	cop_rpc_requeue_calls(r, p);
	p->link = link;
	cop_rpc_link_put(r, old);
	p->sid = p->greeting.sid = 0;
	enter_state(r, p, PEER_CONNECTING);
	make_hello(r, p);
}

/* Whether to declare the peer dead: it was silent for the timeout and no look-up found its process.
 * Not while a look-up is in progress. */
static bool is_given_up(const struct cop_rpc *r, const struct peer *p, uint64_t silent)
{
	uint64_t timeout = r->conf.peer_timeout_ms;

	return silent >= timeout &&
	       ((!p->lives && !p->looked_up) || silent >= COP_RPC_PATIENCE * timeout);
}

void cop_rpc_peer_resolved(struct cop_rpc *r, struct peer *p, const char *address, bool lives)
{
	struct link *old = p->link;
	bool expected = p->looked_up;

	p->looked_up = false;
	p->lives = lives;
	if (expected && (p->state == PEER_UP || p->state == PEER_CONNECTING))
		follow_address(r, p, address);
	if (p->state != PEER_RESOLVING)
		return;
	/* The process exists but was too busy to send its address: retry. */
	if (!address && lives &&
		r->now_ms - p->since_ms < COP_RPC_PATIENCE * (uint64_t)r->conf.peer_timeout_ms)
		return;
	p->link = address ? cop_rpc_link_get(r, address, strlen(address)) : NULL;
	cop_rpc_link_put(r, old);
	if (!p->link) {
		cop_log_info("no usable address rank=%u address=%s", p->rank,
			address ? address : "none");
		cop_rpc_peer_dead(r, p, -EHOSTDOWN);
		return;
	}
	enter_state(r, p, PEER_CONNECTING);
	make_hello(r, p);
}

static void say_changed(struct cop_rpc *r, struct peer *p, bool lives)
{
	p->lost = !lives;
	if (r->conf.peer_changed)
		r->conf.peer_changed(r->conf.ctx, p->rank, lives);
}

/* The peer replied to our HELLO: a first session, or a new one after it restarted. */
static void adopt_session(
	struct cop_rpc *r, struct peer *p, uint64_t remote_sid, const struct cop_frame_keys *keys)
{
	bool again = p->state == PEER_UP;

	p->sid = p->greeting.sid;
	p->remote_sid = remote_sid;
	p->keys = *keys;
	p->greeting.sid = 0;
	p->heard_ms = p->pinged_ms = r->now_ms;
	p->pause_ms = 0;
	enter_state(r, p, PEER_UP);
	if (p->lost)
		say_changed(r, p, true);
	cop_log_debug("session up rank=%u again=%d", p->rank, again);
	cop_rpc_requeue_calls(r, p);
	cop_rpc_calls_send(r, p);
}

void cop_rpc_peer_welcome(struct cop_rpc *r, const void *msg, size_t len, const struct cop_frame *f)
{
	uint32_t rank = (uint32_t)f->session;
	struct peer *p = rank < r->conf.nodes ? r->peers[rank] : NULL;
	struct cop_frame_keys keys;
	uint64_t remote_sid;
	int rc;

	/* A HELLO that was sent twice may be answered twice. */
	if (p && p->state == PEER_UP && p->sid == f->session)
		return;
	if (rank >= r->conf.nodes) {
		cop_rpc_reject(r, "welcome", rank, -EBADMSG);
		return;
	}
	/* Late: the HELLO was abandoned, or another one has been answered. */
	if (!p || !p->greeting.sid || p->greeting.sid != f->session) {
		cop_rpc_drop(r, "welcome", rank, -ENOENT);
		return;
	}
	rc = cop_welcome_read(
		&r->conf.secret, p->greeting.hello, p->greeting.len, msg, len, &remote_sid, &keys);
	if (rc == -EPROTO) {
		cop_rpc_peer_dead(r, p, rc);
		return;
	}
	if (rc) {
		/* Unauthenticated, so this node keeps waiting for the authentic reply. */
		p->refused |= rc == -EACCES;
		cop_rpc_reject(r, "welcome", rank, rc);
		return;
	}
	cop_stats_add(r->conf.stats, COP_FABRIC_BYTES_IN, len);
	adopt_session(r, p, remote_sid, &keys);
}

/* ---- work, life and death ---- */

void cop_rpc_peer_dead(struct cop_rpc *r, struct peer *p, int rc)
{
	uint64_t pause = p->pause_ms ? 2 * p->pause_ms : PAUSE_MIN_MS;
	static const char *const was[] = {[PEER_RESOLVING] = "without address",
		[PEER_CONNECTING] = "connecting",
		[PEER_UP] = "up"};
	uint64_t silent = r->now_ms - (p->state == PEER_UP ? p->heard_ms : p->since_ms);

	/* Warn only about a peer that was up; it is normal that a peer is not up yet. */
	cop_log(p->state == PEER_UP ? COP_LOG_WARNING : COP_LOG_INFO,
		"peer is dead rank=%u was=\"%s\" silent_ms=%llu", p->rank, was[p->state],
		(unsigned long long)silent);
	if (p->state == PEER_UP)
		say_changed(r, p, false);
	p->pause_ms = COP_MIN(pause, PAUSE_MAX_MS);
	p->sid = p->greeting.sid = 0;
	p->refused = p->lives = false;
	enter_state(r, p, PEER_DEAD);
	/* Reset the connection first: nothing can be written to the calls' buffers after their
	 * release. */
	cop_rpc_link_reset(r, p->link);
	cop_rpc_calls_fail(r, p, rc);
}

static bool is_paused(const struct cop_rpc *r, const struct peer *p)
{
	return p->state == PEER_DEAD && r->now_ms - p->since_ms < p->pause_ms;
}

void cop_rpc_peer_work(struct cop_rpc *r, struct peer *p)
{
	cop_rpc_lag_refuse(p);
	if (cop_list_empty(&p->waiting))
		return;
	if (is_paused(r, p)) {
		cop_rpc_calls_fail(r, p, -EHOSTDOWN);
		return;
	}
	if (p->state == PEER_IDLE || p->state == PEER_DEAD) {
		enter_state(r, p, PEER_RESOLVING);
		look_up(r, p);
		return;
	}
	if (p->state != PEER_UP)
		return;
	/* Silence counts from the peer's first open request. */
	if (cop_list_empty(&p->inflight) && cop_list_empty(&p->active)) {
		p->heard_ms = r->now_ms;
		p->lag.ping = 0;
		cop_rpc_lag_heard(r, p);
	}
	if (cop_list_empty(&p->active))
		cop_list_push_back(&r->active, &p->active);
	cop_rpc_wake(r);
	cop_rpc_calls_send(r, p);
}

void cop_rpc_peer_alive(struct cop_rpc *r, struct peer *p, bool restarted)
{
	if (p->state == PEER_DEAD)
		p->pause_ms = 0;
	else if (p->state == PEER_UP && restarted && cop_rpc_calls_any(p))
		make_hello(r, p);
}

/* ---- pings ---- */

static void send_ping(struct cop_rpc *r, struct peer *p)
{
	uint8_t ids[8 * PING_IDS];
	struct cop_frame f = {
		.type = COP_FRAME_PING, .session = p->remote_sid, .request = ++r->pings};
	struct cop_wr w = cop_wr_init(ids, sizeof(ids));

	/* Each call listed in a ping moves to the end: the first is always the next to be
	 * listed. */
	for (int i = 0; i < PING_IDS && !cop_list_empty(&p->inflight); i++) {
		struct call *c = COP_CONTAINER_OF(p->inflight.next, struct call, at);

		if (r->now_ms - c->checked_ms < r->conf.peer_timeout_ms / 3)
			break;
		c->checked_ms = r->now_ms;
		cop_wr_u64(&w, c->by_id.hash);
		cop_list_remove(&c->at);
		cop_list_push_back(&p->inflight, &c->at);
	}
	p->pinged_ms = r->now_ms;
	cop_rpc_lag_pinged(r, p);
	cop_rpc_link_send_sealed(r, p->link, &p->keys.tx, &f, ids, cop_wr_len(&w));
}

void cop_rpc_peer_pong(struct cop_rpc *r, struct peer *p, const struct cop_frame *f)
{
	struct cop_rd rd = cop_rd_init(f->payload, f->payload_len);
	struct cop_hlink *n;

	cop_rpc_lag_ponged(r, p, f->request);
	while (rd.p < rd.end) {
		n = cop_htab_first(&p->by_id, cop_rd_u64(&rd));
		if (n)
			cop_rpc_call_again(r, COP_CONTAINER_OF(n, struct call, by_id));
	}
	cop_rpc_calls_send(r, p);
}

static bool ping_is_due(const struct cop_rpc *r, const struct peer *p, uint64_t silent)
{
	uint64_t third = r->conf.peer_timeout_ms / 3;
	const struct call *first;

	if (cop_rpc_lag_wants_ping(r, p))
		return true;
	if (r->now_ms - p->pinged_ms < third)
		return false;
	if (silent >= third || cop_list_empty(&p->inflight))
		return silent >= third;
	first = COP_CONTAINER_OF(p->inflight.next, struct call, at);
	return r->now_ms - first->checked_ms >= r->conf.peer_timeout_ms;
}

/* A silent peer may be slow, dead, or at another address. */
static void look_again(struct cop_rpc *r, struct peer *p)
{
	if (!p->looked_up && r->now_ms - p->looked_up_ms >= r->conf.peer_timeout_ms / 2)
		look_up(r, p);
}

static void tick_up(struct cop_rpc *r, struct peer *p)
{
	uint64_t silent = r->now_ms - p->heard_ms, timeout = r->conf.peer_timeout_ms;

	if (!cop_rpc_calls_any(p) && !p->lag.left)
		return;
	if (is_given_up(r, p, silent)) {
		cop_rpc_peer_dead(r, p, -EHOSTDOWN);
		return;
	}
	if (ping_is_due(r, p, silent))
		send_ping(r, p);
	if (silent < timeout / 2)
		p->lives = false;
	else
		look_again(r, p);
	if (silent >= timeout / 2 && r->now_ms - p->greeting.sent_ms >= timeout / 4) {
		if (p->greeting.sid)
			send_hello(r, p);
		else
			make_hello(r, p);
	}
	cop_rpc_calls_send(r, p);
}

static void tick_connecting(struct cop_rpc *r, struct peer *p, uint64_t age)
{
	uint64_t timeout = r->conf.peer_timeout_ms;

	if (is_given_up(r, p, age) || (p->refused && age >= timeout)) {
		cop_rpc_peer_dead(r, p, p->refused ? -EACCES : -EHOSTDOWN);
		return;
	}
	if (age >= timeout / 2)
		look_again(r, p);
	if (r->now_ms - p->greeting.sent_ms >= timeout / 6)
		send_hello(r, p);
}

static void tick_peer(struct cop_rpc *r, struct peer *p)
{
	uint64_t age = r->now_ms - p->since_ms;

	if (p->state == PEER_UP)
		tick_up(r, p);
	else if (p->state == PEER_RESOLVING && age >= RESOLVE_MS)
		cop_rpc_peer_dead(r, p, -EHOSTDOWN);
	else if (p->state == PEER_RESOLVING)
		look_again(r, p);
	else if (p->state == PEER_CONNECTING)
		tick_connecting(r, p, age);
	else if (p->state == PEER_DEAD && p->lag.left && !is_paused(r, p)) {
		enter_state(r, p, PEER_RESOLVING);
		look_up(r, p);
	}
	cop_rpc_lag_tick(r, p);
}

static bool needs_ticks(const struct cop_rpc *r, const struct peer *p)
{
	return cop_rpc_calls_any(p) || is_paused(r, p) || p->lag.left ||
	       p->state == PEER_RESOLVING || p->state == PEER_CONNECTING;
}

void cop_rpc_peers_tick(struct cop_rpc *r)
{
	struct cop_list *at = r->active.next, *next;

	for (; at != &r->active; at = next) {
		struct peer *p = COP_CONTAINER_OF(at, struct peer, active);

		next = at->next;
		tick_peer(r, p);
		if (!needs_ticks(r, p)) {
			p->greeting.sid = 0;
			cop_list_remove(&p->active);
		}
	}
}
