/* SPDX-License-Identifier: BSD-3-Clause */
/* The sessions that other nodes open to this one. Each is half-open until the other side has proved
 * the secret. */
#include "fabric/rpc/rpc_priv.h"

struct session *cop_rpc_half_find(struct cop_rpc *r, uint64_t sid)
{
	for (struct cop_list *at = r->halves.next; at != &r->halves; at = at->next) {
		struct session *s = COP_CONTAINER_OF(at, struct session, at);

		if (s->sid == sid)
			return s;
	}
	return NULL;
}

void cop_rpc_session_free(struct cop_rpc *r, struct session *s)
{
	if (s->half)
		r->half_count--;
	else if (r->peers[s->rank] && r->peers[s->rank]->in == s)
		r->peers[s->rank]->in = NULL;
	cop_rpc_reqs_orphan(s);
	cop_list_remove(&s->at);
	cop_rpc_link_put(r, s->link);
	cop_htab_fini(&s->by_id);
	free(s);
}

static void send_welcome(struct cop_rpc *r, struct session *s)
{
	s->welcomed_ms = r->now_ms;
	cop_rpc_link_send(r, s->link, s->welcome, sizeof(s->welcome));
}

/* Whether the HELLO names a session that is alive here. If so, this node does not reply to it,
 * because it answers the ping. */
static bool is_known_peer(struct cop_rpc *r, const struct cop_hello *h)
{
	const struct peer *p = r->peers[h->from];
	const struct session *half;

	if (!h->current)
		return false;
	if (p && p->in && p->in->sid == h->current)
		return true;
	half = cop_rpc_half_find(r, h->current);
	return half && half->rank == h->from;
}

/* A repeated HELLO is answered once per tick while the session is half-open, and never
 * afterwards. */
static bool is_repeat(struct cop_rpc *r, const struct cop_hello *h)
{
	for (struct cop_list *at = r->halves.next; at != &r->halves; at = at->next) {
		struct session *s = COP_CONTAINER_OF(at, struct session, at);

		if (s->rank != h->from || memcmp(s->nonce, h->nonce, sizeof(h->nonce)))
			continue;
		if (s->welcomed_ms != r->now_ms)
			send_welcome(r, s);
		return true;
	}
	if (!cop_recent_has(&r->hellos, h->nonce))
		return false;
	cop_rpc_reject(r, "hello", h->from, -EALREADY);
	return true;
}

static struct session *session_new(
	struct cop_rpc *r, const struct cop_hello *h, const void *hello, size_t hello_len)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->half = true;
	s->refused = h->config_hash != r->conf.config_hash;
	s->rank = h->from;
	s->remote_sid = h->session;
	s->made_ms = r->now_ms;
	memcpy(s->nonce, h->nonce, sizeof(s->nonce));
	cop_list_init(&s->at);
	cop_list_init(&s->reqs);
	cop_list_init(&s->ready);
	s->sid = s->refused ? 0 : cop_rpc_make_sid(r, h->from);
	if (cop_welcome_write(&r->conf.secret, hello, hello_len, s->refused ? 0 : s->sid,
		    s->welcome, &s->keys))
		s->link = cop_rpc_link_get(r, h->address, h->address_len);
	if (!s->link) {
		free(s);
		return NULL;
	}
	return s;
}

/* A node started with another host list may use this rank for another node, or may not belong to
 * this job. */
static int check_ranks(const struct cop_rpc *r, const struct cop_hello *h)
{
	if (h->config_hash == r->conf.config_hash &&
		(h->to != r->conf.rank || h->from >= r->conf.nodes || h->from == r->conf.rank))
		return -EADDRNOTAVAIL;
	return 0;
}

static void report_mismatch(struct cop_rpc *r, uint32_t rank)
{
	cop_rpc_reject(r, "terms", rank, -EPROTO);
	if (r->conf.mismatch)
		r->conf.mismatch(r->conf.ctx, rank);
}

void cop_rpc_hello(struct cop_rpc *r, const void *msg, size_t len)
{
	struct cop_hello h;
	struct session *s;
	int rc = cop_hello_read(&r->conf.secret, msg, len, &h);

	if (!rc)
		rc = check_ranks(r, &h);
	if (rc) {
		cop_rpc_reject(r, "hello", rc == -EBADMSG ? UINT32_MAX : h.from, rc);
		return;
	}
	if ((h.config_hash == r->conf.config_hash && is_known_peer(r, &h)) || is_repeat(r, &h))
		return;
	s = session_new(r, &h, msg, len);
	if (!s) {
		cop_rpc_drop(r, "address", h.from, -EADDRNOTAVAIL);
		return;
	}
	if (r->half_count >= HALF_OPEN_MAX)
		cop_rpc_session_free(r, COP_CONTAINER_OF(r->halves.next, struct session, at));
	cop_list_push_back(&r->halves, &s->at);
	r->half_count++;
	cop_rpc_wake(r);
	cop_stats_add(r->conf.stats, COP_FABRIC_BYTES_IN, len);
	send_welcome(r, s);
	if (s->refused)
		report_mismatch(r, s->rank);
}

int cop_rpc_session_promote(struct cop_rpc *r, struct session *s)
{
	struct peer *p = cop_rpc_peer(r, s->rank);
	struct session *old;

	if (!p)
		return -ENOMEM;
	old = p->in;
	cop_list_remove(&s->at);
	s->half = false;
	r->half_count--;
	cop_recent_add(&r->hellos, s->nonce);
	p->in = s;
	s->advanced_ms = r->now_ms;
	cop_log_debug("session accepted rank=%u again=%d", s->rank, old != NULL);
	if (old)
		cop_rpc_session_free(r, old);
	cop_rpc_peer_alive(r, p, old != NULL);
	return 0;
}

/* Neither this session nor a later one received a message. */
static bool came_to_nothing(const struct cop_rpc *r, const struct session *s)
{
	const struct peer *p = s->rank < r->conf.nodes ? r->peers[s->rank] : NULL;

	return !s->refused && (!p || !p->in || p->in->made_ms < s->made_ms);
}

void cop_rpc_sessions_tick(struct cop_rpc *r)
{
	struct cop_list *at, *next;

	for (at = r->halves.next; at != &r->halves; at = next) {
		struct session *s = COP_CONTAINER_OF(at, struct session, at);

		next = at->next;
		if (r->now_ms - s->made_ms < 2 * (uint64_t)r->conf.peer_timeout_ms)
			continue;
		if (came_to_nothing(r, s))
			cop_rpc_drop(r, "hello", s->rank, -ETIMEDOUT);
		cop_rpc_session_free(r, s);
	}
	for (at = r->serving.next; at != &r->serving; at = next) {
		next = at->next;
		cop_rpc_serve_tick(r, COP_CONTAINER_OF(at, struct session, at));
	}
}
