/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls: from the caller's thread to the wire and back. */
#include "fabric/rpc/rpc_priv.h"

#include <assert.h>

bool cop_rpc_calls_any(const struct peer *p)
{
	return !cop_list_empty(&p->inflight) || !cop_list_empty(&p->waiting);
}

static void close_memory(struct call *c)
{
	if (c->mr)
		cop_endpoint_unreg(c->mr);
	c->mr = NULL;
}

/* Takes the call off the wire: nothing can be written to its memory afterwards. */
static void leave_wire(struct call *c)
{
	if (c->on_wire)
		cop_htab_remove(&c->peer->by_id, &c->by_id);
	c->on_wire = false;
	cop_list_remove(&c->at);
	close_memory(c);
}

static void end_call(struct call *c, struct cop_rpc_result *result)
{
	bool taken = false;

	if (c->ask.late && c->peer)
		c->peer->lag.watched--;
	result->body_kept = &taken;
	c->ask.done(c->ask.arg, result);
	if (!taken || result->in_landing)
		free(c->body);
	free(c);
}

void cop_rpc_call_fail(struct call *c, int rc)
{
	struct cop_rpc_result result = {.status = rc};

	leave_wire(c);
	end_call(c, &result);
}

static void fail_too_long(struct call *c, uint64_t body_len)
{
	struct cop_rpc_result result = {.status = -EMSGSIZE, .body_len = body_len};

	leave_wire(c);
	end_call(c, &result);
}

void cop_rpc_calls_fail(struct cop_rpc *r, struct peer *p, int rc)
{
	struct cop_list all, *at;

	(void)r;
	cop_list_init(&all);
	cop_list_splice(&all, &p->inflight);
	cop_list_splice(&all, &p->waiting);
	while ((at = cop_list_pop_front(&all)))
		cop_rpc_call_fail(COP_CONTAINER_OF(at, struct call, at), rc);
}

void cop_rpc_call_again(struct cop_rpc *r, struct call *c)
{
	if (c->unwanted) {
		cop_rpc_call_fail(c, -ECANCELED);
		return;
	}
	leave_wire(c);
	free(c->body);
	c->body = NULL;
	c->body_len = 0;
	cop_list_push_front(&c->peer->waiting, &c->at);
	cop_stats_add(r->conf.stats, COP_FABRIC_RETRIES, 1);
	cop_log_debug("sent again rank=%u op=%u", c->peer->rank, c->ask.op);
}

/* ---- out ---- */

static int open_landing(struct cop_rpc *r, struct call *c)
{
	if (!c->ask.landing || c->mr)
		return 0;
	return cop_endpoint_reg(
		r->fabric, c->ask.landing, c->ask.landing_len, &c->mr, &c->addr, &c->key);
}

/* The first waiting calls, as many as one message and the window allow. */
struct batch {
	struct call *call[MSG_MEMBERS_MAX];
	uint64_t id[MSG_MEMBERS_MAX];
	unsigned count;
	size_t bytes;
};

static bool fits_in_batch(const struct peer *p, const struct batch *b, const struct call *c)
{
	size_t bytes = b->bytes + MSG_MEMBER_FIXED + MSG_REQUEST_FIXED + c->ask.payload_len;

	return b->count < MSG_MEMBERS_MAX && p->by_id.count + b->count < PEER_WINDOW &&
	       (!b->count || bytes <= COP_ENDPOINT_MSG_MAX - COP_FRAME_OVERHEAD);
}

static void fill_batch(struct cop_rpc *r, struct peer *p, struct batch *b)
{
	struct cop_list *at = p->waiting.next;

	*b = (struct batch){.count = 0};
	while (at != &p->waiting) {
		struct call *c = COP_CONTAINER_OF(at, struct call, at);
		int rc;

		at = at->next;
		if (!fits_in_batch(p, b, c))
			return;
		rc = open_landing(r, c);
		if (rc) {
			cop_rpc_call_fail(c, rc);
			continue;
		}
		b->bytes += MSG_MEMBER_FIXED + MSG_REQUEST_FIXED + c->ask.payload_len;
		b->call[b->count++] = c;
	}
}

static struct msg_request request_of(const struct call *c)
{
	struct msg_request m = {
		.op = c->ask.op, .payload = c->payload, .payload_len = c->ask.payload_len};

	if (c->mr) {
		m.land_addr = c->addr;
		m.land_key = c->key;
		m.land_len = c->ask.landing_len;
	}
	return m;
}

/* A single request has a message type of its own, without an id in its payload. */
static int send_batch(struct cop_rpc *r, struct peer *p, struct batch *b)
{
	uint8_t msg[COP_ENDPOINT_MSG_MAX];
	bool one = b->count == 1;
	struct cop_frame f = {.type = one ? COP_FRAME_REQUEST : COP_FRAME_REQUESTS,
		.session = p->remote_sid,
		.request = one ? r->next_request : 0};
	struct cop_wr w = cop_frame_begin(msg, sizeof(msg), &f);

	for (unsigned i = 0; i < b->count; i++) {
		struct msg_request m = request_of(b->call[i]);

		b->id[i] = r->next_request++;
		if (one)
			cop_rpc_msg_put_request(&w, &m);
		else
			cop_rpc_msg_put_member(&w, b->id[i], &m);
	}
	return cop_rpc_link_send(r, p->link, msg, cop_frame_seal(&p->keys.tx, &w));
}

static void note_sent(
	struct cop_rpc *r, struct peer *p, struct call *c, uint64_t id, uint64_t at_ns)
{
	cop_htab_add(&p->by_id, &c->by_id, id);
	c->on_wire = true;
	c->checked_ms = r->now_ms;
	cop_list_remove(&c->at);
	cop_list_push_back(&p->inflight, &c->at);
	if (!c->counted) {
		cop_stats_add(r->conf.stats, COP_FABRIC_REQUESTS_SENT, 1);
		cop_rpc_lag_sent(r);
	}
	c->counted = true;
	if (c->ask.sent)
		c->ask.sent(c->ask.arg, cop_rpc_trace_id(p->remote_sid, id), at_ns);
}

static int send_some(struct cop_rpc *r, struct peer *p)
{
	/* Take the time before handing the call over, because the other side may be quicker than
	 * this thread. */
	uint64_t at_ns = cop_now_ns();
	struct batch b;
	int rc;

	fill_batch(r, p, &b);
	if (!b.count)
		return 0;
	rc = send_batch(r, p, &b);
	if (rc)
		return rc;
	cop_stats_add(r->conf.stats, COP_FABRIC_REQUEST_MESSAGES, 1);
	for (unsigned i = 0; i < b.count; i++)
		note_sent(r, p, b.call[i], b.id[i], at_ns);
	return 0;
}

/* If fabric cannot accept it now, the next tick retries. */
void cop_rpc_calls_send(struct cop_rpc *r, struct peer *p)
{
	while (p->state == PEER_UP && p->by_id.count < PEER_WINDOW &&
		!cop_list_empty(&p->waiting)) {
		int rc = send_some(r, p);

		if (rc && cop_rpc_may_retry(rc))
			return;
		if (rc) {
			cop_log_debug("cannot send rank=%u reason=\"%s\"", p->rank, strerror(-rc));
			cop_rpc_peer_dead(r, p, -EHOSTDOWN);
		}
	}
}

/* ---- back ---- */

static int send_pull(struct cop_rpc *r, struct peer *p, uint64_t id, const struct msg_pull *m)
{
	struct cop_frame f = {.type = COP_FRAME_PULL, .session = p->remote_sid, .request = id};
	uint8_t payload[24];
	struct cop_wr w = cop_wr_init(payload, sizeof(payload));

	cop_rpc_msg_put_pull(&w, m);
	return cop_rpc_link_send_sealed(r, p->link, &p->keys.tx, &f, payload, cop_wr_len(&w));
}

/* Confirms a reply that has arrived or is no longer wanted. If this confirmation is lost, the
 * server resends its reply. */
static void confirm_answer(struct cop_rpc *r, struct peer *p, uint64_t id)
{
	send_pull(r, p, id, &(struct msg_pull){0});
}

static int reserve_body(struct cop_rpc *r, struct call *c, uint64_t len)
{
	close_memory(c);
	c->body = malloc(len);
	c->body_len = len;
	return c->body ? cop_endpoint_reg(
				 r->fabric, c->body, c->body_len, &c->mr, &c->addr, &c->key)
		       : -ENOMEM;
}

/* Requests an announced body. A repeated announcement means that the first PULL was lost. */
static void pull_answer(struct cop_rpc *r, struct call *c, const struct msg_reply *m)
{
	size_t most = c->ask.body_max ? c->ask.body_max : COP_RPC_BODY_MAX;
	int rc;

	if (c->unwanted) {
		confirm_answer(r, c->peer, c->by_id.hash);
		cop_rpc_call_fail(c, -ECANCELED);
		return;
	}
	if (!c->body && m->body_len > most) {
		confirm_answer(r, c->peer, c->by_id.hash);
		fail_too_long(c, m->body_len);
		return;
	}
	rc = c->body ? 0 : reserve_body(r, c, m->body_len);
	if (rc) {
		confirm_answer(r, c->peer, c->by_id.hash);
		cop_rpc_call_fail(c, rc);
	} else if (c->body_len == m->body_len &&
		   send_pull(r, c->peer, c->by_id.hash,
			   &(struct msg_pull){
				   .addr = c->addr, .key = c->key, .len = c->body_len})) {
		cop_rpc_call_again(r, c);
	}
}

static void *place_inline(struct call *c, const struct msg_reply *m, struct cop_rpc_result *result)
{
	if (c->ask.landing && m->body_len <= c->ask.landing_len) {
		result->in_landing = true;
		return memcpy(c->ask.landing, m->body, m->body_len);
	}
	free(c->body);
	c->body = malloc(m->body_len);
	if (c->body)
		memcpy(c->body, m->body, m->body_len);
	return c->body;
}

/* Returns the buffer that fabric wrote the body to: one allocated for it, else the landing
 * buffer. */
static void *place_written(struct call *c, const struct msg_reply *m, struct cop_rpc_result *result)
{
	if (c->body)
		return c->body_len == m->body_len ? c->body : NULL;
	if (!c->ask.landing || m->body_len > c->ask.landing_len)
		return NULL;
	result->in_landing = true;
	return c->ask.landing;
}

static int place_body(struct cop_rpc *r, struct peer *p, struct call *c, const struct msg_reply *m,
	struct cop_rpc_result *result)
{
	if (m->mode == MODE_FAILED)
		return -EBADMSG;
	if (!m->body_len)
		return 0;
	if (m->mode == MODE_INLINE) {
		result->body = place_inline(c, m, result);
		return result->body ? 0 : -ENOMEM;
	}
	result->body = place_written(c, m, result);
	if (!result->body)
		return -EBADMSG;
	cop_stats_add(r->conf.stats, COP_FABRIC_BYTES_IN, m->body_len);
	if (c->ask.checks_body ||
		cop_hash64(result->body, m->body_len, p->keys.body_seed) == m->body_hash)
		return 0;
	cop_stats_add(r->conf.stats, COP_FABRIC_CORRUPT, 1);
	cop_log_warn("body corrupt rank=%u bytes=%llu", p->rank, (unsigned long long)m->body_len);
	return -EBADMSG;
}

void cop_rpc_call_reply(struct cop_rpc *r, struct peer *p, const struct cop_frame *f)
{
	struct cop_hlink *n = cop_htab_first(&p->by_id, f->request);
	struct cop_rpc_result result = {0};
	struct msg_reply m;
	struct call *c;
	int rc = cop_rpc_msg_get_reply(f, &m);

	if (rc) {
		cop_rpc_reject(r, "reply", p->rank, rc);
		return;
	}
	/* A duplicate, or the reply to a request that has been resent since. */
	if (!n) {
		if (m.confirm)
			confirm_answer(r, p, f->request);
		return;
	}
	c = COP_CONTAINER_OF(n, struct call, by_id);
	if (m.mode == MODE_ANNOUNCE) {
		pull_answer(r, c, &m);
		cop_rpc_calls_send(r, p);
		return;
	}
	leave_wire(c);
	rc = m.mode == MODE_UNABLE ? 0 : place_body(r, p, c, &m, &result);
	if (rc) {
		result = (struct cop_rpc_result){.status = rc};
	} else {
		result.status = m.status;
		result.answered = true;
		result.unable = m.mode == MODE_UNABLE;
		result.head = m.head;
		result.head_len = m.head_len;
		result.body_len = m.body_len;
	}
	end_call(c, &result);
	if (m.confirm)
		confirm_answer(r, p, f->request);
	cop_rpc_calls_send(r, p);
}

/* ---- in from any thread ---- */

static void start_call(struct cop_rpc *r, struct item *item)
{
	struct call *c = COP_CONTAINER_OF(item, struct call, item);

	cop_list_init(&c->at);
	if (r->torn || r->quiet || c->unwanted) {
		cop_rpc_call_fail(c, -ECANCELED);
		return;
	}
	c->peer = cop_rpc_peer(r, c->ask.rank);
	if (!c->peer) {
		cop_rpc_call_fail(c, -ENOMEM);
		return;
	}
	c->started_ms = r->now_ms;
	c->peer->lag.watched += c->ask.late != NULL;
	cop_list_push_back(&c->peer->waiting, &c->at);
	if (cop_list_empty(&c->peer->caller))
		cop_list_push_back(&r->callers, &c->peer->caller);
}

void cop_rpc_calls_start(struct cop_rpc *r)
{
	struct cop_list *at;

	while ((at = cop_list_pop_front(&r->callers))) {
		struct peer *p = COP_CONTAINER_OF(at, struct peer, caller);

		if (!cop_list_empty(&p->waiting))
			cop_rpc_peer_work(r, p);
	}
}

/* ---- abandoned calls ---- */

static struct call *find_call(const struct cop_list *calls, const void *arg)
{
	for (const struct cop_list *at = calls->next; at != calls; at = at->next) {
		struct call *c = COP_CONTAINER_OF(at, struct call, at);

		if (c->ask.arg == arg && !c->unwanted)
			return c;
	}
	return NULL;
}

/* A new call that has not reached its peer's list. */
static struct call *find_new_call(const struct cop_rpc *r, const void *arg)
{
	for (const struct cop_list *at = r->later.next; at != &r->later; at = at->next) {
		struct item *item = COP_CONTAINER_OF(
			COP_CONTAINER_OF(at, struct cop_endpoint_work, link), struct item, work);
		struct call *c = COP_CONTAINER_OF(item, struct call, item);

		if (item->run == start_call && c->ask.arg == arg)
			return c;
	}
	return NULL;
}

void cop_rpc_abandon(
	struct cop_rpc *r, uint32_t rank, const void *arg, cop_rpc_done *done, void *done_arg)
{
	struct peer *p = r->peers[rank];
	struct call *c = p ? find_call(&p->inflight, arg) : NULL;

	assert(cop_rpc_inside(r));
	if (p && !c)
		c = find_call(&p->waiting, arg);
	if (!c)
		c = find_new_call(r, arg);
	assert(c);
	if (c->peer)
		c->peer->lag.watched -= c->ask.late != NULL;
	c->ask.late = NULL;
	c->ask.sent = NULL;
	c->ask.done = done;
	c->ask.arg = done_arg;
	c->unwanted = true;
	if (c->peer && !c->on_wire)
		cop_rpc_call_fail(c, -ECANCELED);
}

/* ---- corked calls ---- */

/* Calls held back by this thread. */
static __thread struct {
	struct cop_rpc *r; /* NULL: not corked */
	unsigned depth;
	struct items calls;
} corked;

/* Ends a call that was never sent. */
static void end_unsent(struct call *c, int rc)
{
	struct cop_rpc_result result = {.status = rc};
	bool taken = false;

	result.body_kept = &taken;
	c->ask.done(c->ask.arg, &result);
	free(c);
}

void cop_rpc_cork(struct cop_rpc *r)
{
	assert(!corked.r || corked.r == r);
	if (cop_rpc_inside(r) || corked.depth++)
		return;
	corked.r = r;
	cop_list_init(&corked.calls.list);
}

void cop_rpc_uncork(struct cop_rpc *r)
{
	struct items calls;
	struct item *item;

	if (corked.r != r || --corked.depth)
		return;
	corked.r = NULL;
	cop_list_init(&calls.list);
	cop_list_splice(&calls.list, &corked.calls.list);
	if (cop_list_empty(&calls.list) || cop_rpc_push_all(r, &calls))
		return;
	while ((item = cop_rpc_items_pop(&calls)))
		end_unsent(COP_CONTAINER_OF(item, struct call, item), -ECANCELED);
}

void cop_rpc_call(struct cop_rpc *r, const struct cop_rpc_call *ask)
{
	struct cop_rpc_result result = {.status = -EINVAL};
	struct call *c = NULL;
	bool taken = false;

	if (ask->rank < r->conf.nodes && ask->rank != r->conf.rank &&
		ask->payload_len <= COP_RPC_PAYLOAD_MAX) {
		result.status = -ENOMEM;
		c = calloc(1, sizeof(*c) + ask->payload_len);
	}
	if (c) {
		c->item.run = start_call;
		c->ask = *ask;
		if (!ask->landing_len)
			c->ask.landing = NULL;
		if (ask->payload_len)
			memcpy(c->payload, ask->payload, ask->payload_len);
		if (corked.r == r) {
			cop_rpc_items_add(r, &corked.calls, &c->item);
			return;
		}
		if (cop_rpc_push(r, &c->item))
			return;
		result.status = -ECANCELED;
	}
	free(c);
	result.body_kept = &taken;
	ask->done(ask->arg, &result);
}

/* ---- addresses, from any thread ---- */

struct resolved {
	struct item item;
	uint32_t rank;
	bool known, lives;
	char address[];
};

static void run_resolved(struct cop_rpc *r, struct item *item)
{
	struct resolved *s = COP_CONTAINER_OF(item, struct resolved, item);
	struct peer *p = r->peers[s->rank];

	if (p && !r->torn)
		cop_rpc_peer_resolved(r, p, s->known ? s->address : NULL, s->lives);
	free(s);
}

void cop_rpc_resolved(struct cop_rpc *r, uint32_t rank, const char *address, bool lives)
{
	size_t len = address ? strlen(address) : 0;
	struct resolved *s;

	if (rank >= r->conf.nodes)
		return;
	s = calloc(1, sizeof(*s) + len + 1);
	if (!s)
		return;
	s->item.run = run_resolved;
	s->rank = rank;
	s->lives = lives;
	s->known = address && len <= COP_HELLO_ADDRESS_MAX;
	if (s->known)
		memcpy(s->address, address, len);
	if (!cop_rpc_push(r, &s->item))
		free(s);
}
