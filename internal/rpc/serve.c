/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of other nodes and the answers to them. */
#include "rpc/rpc_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A part of a body that fabric is writing. */
struct piece {
	struct item item;
	struct cop_rpc_req *req;
	size_t len;
	int rc;
};

static void unlink_req(struct cop_rpc_req *q)
{
	struct session *s = q->session;

	if (!s)
		return;
	cop_rpc_idmap_remove(&s->by_id, &q->by_id);
	cop_list_remove(&q->session_at);
	cop_list_remove(&q->ready_at);
	q->session = NULL;
}

/* The request is over: the body goes back to its owner. */
static void release(struct cop_rpc_req *q)
{
	struct cop_rpc *r = q->r;

	unlink_req(q);
	if (q->answer.release)
		q->answer.release(q->answer.release_arg);
	free(q);
	cop_rpc_unref(r);
}

static bool is_being_written(const struct cop_rpc_req *q)
{
	return q->posted > q->acked;
}

void cop_rpc_reqs_orphan(struct cop_rpc *r, struct session *s)
{
	(void)r;
	while (!cop_list_empty(&s->reqs)) {
		struct cop_rpc_req *q =
			COP_CONTAINER_OF(s->reqs.next, struct cop_rpc_req, session_at);

		unlink_req(q);
		if ((q->state == REQ_READY || q->state == REQ_PINNED) && !is_being_written(q))
			release(q);
	}
}

/* ---- answers out ---- */

static int send_reply(struct cop_rpc_req *q, const struct msg_reply *m)
{
	struct session *s = q->session;
	uint8_t msg[COP_FABRIC_MSG_MAX];
	struct cop_frame f = {.type = COP_FRAME_REPLY, .session = s->remote_sid,
		.request = q->by_id.id};
	struct cop_wr w = cop_frame_begin(msg, sizeof(msg), &f);

	cop_rpc_msg_put_reply(&w, m);
	return cop_rpc_link_send(q->r, s->link, msg, cop_frame_seal(&s->keys.tx, &w));
}

static struct msg_reply reply_of(const struct cop_rpc_req *q, enum msg_mode mode)
{
	return (struct msg_reply){.status = q->answer.status, .mode = (uint8_t)mode,
		.body_len = q->answer.body_len, .body_hash = q->body_hash,
		.head = q->head, .head_len = q->answer.head_len, .body = q->answer.body};
}

/* The last message of a request. */
static int send_final(struct cop_rpc_req *q, enum msg_mode mode)
{
	struct msg_reply m = reply_of(q, mode);
	int rc = send_reply(q, &m);

	if (rc)
		return rc;
	cop_stats_add(q->r->conf.stats, COP_FABRIC_REQUESTS_SERVED, 1);
	release(q);
	return 0;
}

static int announce(struct cop_rpc_req *q)
{
	struct msg_reply m = reply_of(q, MODE_ANNOUNCE);
	int rc;

	m.head_len = 0;
	rc = send_reply(q, &m);
	if (rc)
		return rc;
	q->state = REQ_PINNED;
	q->since_ms = q->r->now_ms;
	cop_list_remove(&q->ready_at);
	return 0;
}

static void send_ready(struct session *s);
static int advance(struct cop_rpc_req *q);

static void piece_ended(struct cop_rpc *r, struct item *item)
{
	struct piece *piece = COP_CONTAINER_OF(item, struct piece, item);
	struct cop_rpc_req *q = piece->req;
	struct session *s = q->session;

	q->acked += piece->len;
	if (piece->rc && !q->write_rc)
		q->write_rc = piece->rc;
	if (!s) {
		if (!is_being_written(q))
			release(q);
	} else {
		s->outstanding -= piece->len;
		s->advanced_ms = r->now_ms;
		if (!piece->rc)
			cop_stats_add(r->conf.stats, COP_FABRIC_BYTES_OUT, piece->len);
		advance(q);
		send_ready(s);
	}
	free(piece);
}

/* May run inside cop_fabric_write, hence the detour. */
static void piece_done(void *arg, int rc)
{
	struct piece *piece = arg;
	struct cop_rpc *r = piece->req->r, *outer;

	piece->rc = rc;
	cop_rpc_enter(r, &outer);
	cop_rpc_later(r, &piece->item);
	cop_rpc_leave(r, outer);
}

static int write_piece(struct cop_rpc_req *q, cop_fabric_peer_t fpeer)
{
	struct session *s = q->session;
	struct piece *piece = calloc(1, sizeof(*piece));
	const char *body = q->answer.body;
	int rc;

	if (!piece)
		return -ENOMEM;
	piece->item.run = piece_ended;
	piece->req = q;
	piece->len = COP_MIN(PIECE, q->answer.body_len - q->posted);
	rc = cop_fabric_write(q->r->fabric, fpeer, body + q->posted, piece->len,
		q->land_addr + q->posted, q->land_key, piece_done, piece);
	if (rc == -ENOENT)
		rc = cop_rpc_link_reopen(q->r, s->link, &fpeer) ? rc : -EAGAIN;
	if (rc) {
		free(piece);
		return rc;
	}
	if (!s->outstanding)
		s->advanced_ms = q->r->now_ms;
	q->posted += piece->len;
	s->outstanding += piece->len;
	return 0;
}

/* Writes as much of the body as may be outstanding; with all of it placed, says so. -EAGAIN: not through yet. */
static int write_body(struct cop_rpc_req *q)
{
	struct session *s = q->session;
	cop_fabric_peer_t fpeer;
	int rc = cop_rpc_link_open(q->r, s->link, &fpeer);

	while (!rc && !q->write_rc && q->posted < q->answer.body_len &&
		s->outstanding < OUTSTANDING)
		rc = write_piece(q, fpeer);
	if (rc && !cop_rpc_is_for_later(rc))
		q->write_rc = rc;
	if (q->write_rc && !is_being_written(q))
		return send_final(q, MODE_FAILED);
	if (q->acked == q->answer.body_len)
		return send_final(q, MODE_LANDED);
	return -EAGAIN;
}

static int advance(struct cop_rpc_req *q)
{
	if (q->is_inline)
		return send_final(q, MODE_INLINE);
	if (q->land_len >= q->answer.body_len)
		return write_body(q);
	return announce(q);
}

/* First come, first served. */
static void send_ready(struct session *s)
{
	struct cop_list *at, *next;

	for (at = s->ready.next; at != &s->ready; at = next) {
		next = at->next;
		if (s->outstanding >= OUTSTANDING)
			return;
		advance(COP_CONTAINER_OF(at, struct cop_rpc_req, ready_at));
	}
}

static void make_ready(struct cop_rpc_req *q)
{
	struct session *s = q->session;

	if (cop_list_empty(&s->ready))
		s->advanced_ms = q->r->now_ms;
	q->state = REQ_READY;
	cop_list_push_back(&s->ready, &q->ready_at);
	/* What fits a message does not queue behind bulk bytes. */
	if (q->is_inline)
		advance(q);
	else
		send_ready(s);
}

static void answered(struct cop_rpc *r, struct item *item)
{
	struct cop_rpc_req *q = COP_CONTAINER_OF(item, struct cop_rpc_req, item);

	(void)r;
	if (q->session)
		make_ready(q);
	else
		release(q);
}

/* The answer is never lost for want of memory: the request carries all that is needed. */
void cop_rpc_reply(struct cop_rpc_req *q, const struct cop_rpc_answer *answer)
{
	q->answer = *answer;
	if (answer->head_len > COP_RPC_HEAD_MAX || answer->body_len > COP_RPC_BODY_MAX) {
		q->answer.status = -EMSGSIZE;
		q->answer.head_len = q->answer.body_len = 0;
	}
	if (q->answer.head_len)
		memcpy(q->head, answer->head, q->answer.head_len);
	q->is_inline = q->answer.head_len + q->answer.body_len <= MSG_INLINE_MAX;
	/* Here and not on the progress thread, which has other peers to serve. */
	if (!q->is_inline)
		q->body_hash = cop_hash64(answer->body, q->answer.body_len, q->body_seed);
	q->item.run = answered;
	q->state = REQ_QUEUED;
	if (!cop_rpc_push(q->r, &q->item))
		release(q);
}

/* ---- requests in ---- */

uint32_t cop_rpc_req_rank(const struct cop_rpc_req *q)
{
	return q->rank;
}

uint8_t cop_rpc_req_op(const struct cop_rpc_req *q)
{
	return q->op;
}

const void *cop_rpc_req_payload(const struct cop_rpc_req *q, size_t *len)
{
	*len = q->payload_len;
	return q->payload;
}

static struct cop_rpc_req *make_req(struct cop_rpc *r, struct session *s,
	const struct msg_request *m, uint64_t id)
{
	struct cop_rpc_req *q = calloc(1, sizeof(*q) + m->payload_len);

	if (!q)
		return NULL;
	q->r = r;
	q->session = s;
	q->rank = s->rank;
	q->op = m->op;
	q->body_seed = s->keys.body_seed;
	q->land_addr = m->land_addr;
	q->land_key = m->land_key;
	q->land_len = m->land_len;
	q->payload_len = m->payload_len;
	if (m->payload_len)
		memcpy(q->payload, m->payload, m->payload_len);
	cop_list_init(&q->ready_at);
	cop_list_push_back(&s->reqs, &q->session_at);
	cop_rpc_idmap_put(&s->by_id, &q->by_id, id);
	cop_rpc_ref(r);
	return q;
}

static int request(struct cop_rpc *r, struct session *s, const struct cop_frame *f)
{
	struct msg_request m;
	struct cop_rpc_req *q;
	int rc = cop_rpc_msg_get_request(f, &m);

	if (rc)
		return rc;
	if (cop_rpc_idmap_get(&s->by_id, f->request))
		return -EEXIST;
	if (s->by_id.count >= SERVED_MAX)
		return -ENOBUFS;
	q = make_req(r, s, &m, f->request);
	if (!q)
		return -ENOMEM;
	if (cop_list_empty(&s->at))
		cop_list_push_back(&r->serving, &s->at);
	cop_rpc_wake(r);
	r->conf.serve(r->conf.ctx, q);
	return 0;
}

static struct cop_rpc_req *find(struct session *s, uint64_t id)
{
	struct idnode *n = cop_rpc_idmap_get(&s->by_id, id);

	return n ? COP_CONTAINER_OF(n, struct cop_rpc_req, by_id) : NULL;
}

/* A PULL that comes after the body was given up is no offence: the caller's next ping tells it to ask again. */
static int pull(struct session *s, const struct cop_frame *f)
{
	struct cop_rpc_req *q = find(s, f->request);
	struct msg_pull m;
	int rc = cop_rpc_msg_get_pull(f, &m);

	if (rc || !q || q->state != REQ_PINNED)
		return rc;
	if (!m.len) {
		release(q);
		return 0;
	}
	if (m.len != q->answer.body_len)
		return -EPROTO;
	q->land_addr = m.addr;
	q->land_key = m.key;
	q->land_len = m.len;
	make_ready(q);
	return 0;
}

static int ping(struct cop_rpc *r, struct session *s, const struct cop_frame *f)
{
	struct cop_rd rd = cop_rd_init(f->payload, f->payload_len);
	struct cop_frame pong = {.type = COP_FRAME_PONG, .session = s->remote_sid,
		.request = f->request};
	uint8_t unknown[8 * PING_IDS];
	struct cop_wr w = cop_wr_init(unknown, sizeof(unknown));

	if (f->payload_len % 8 || f->payload_len > sizeof(unknown))
		return -EBADMSG;
	while (rd.p < rd.end) {
		uint64_t id = cop_rd_u64(&rd);

		if (!cop_rpc_idmap_get(&s->by_id, id))
			cop_wr_u64(&w, id);
	}
	cop_rpc_link_send_sealed(r, s->link, &s->keys.tx, &pong, unknown, cop_wr_len(&w));
	return 0;
}

void cop_rpc_serve_frame(struct cop_rpc *r, struct session *s, const struct cop_frame *f)
{
	int rc = -EPROTO;

	if (f->type == COP_FRAME_REQUEST)
		rc = request(r, s, f);
	else if (f->type == COP_FRAME_PULL)
		rc = pull(s, f);
	else if (f->type == COP_FRAME_PING)
		rc = ping(r, s, f);
	if (rc)
		cop_rpc_reject(r, "request", s->rank, rc);
}

void cop_rpc_serve_tick(struct cop_rpc *r, struct session *s)
{
	struct cop_list *at, *next;

	send_ready(s);
	for (at = s->reqs.next; at != &s->reqs; at = next) {
		struct cop_rpc_req *q = COP_CONTAINER_OF(at, struct cop_rpc_req, session_at);

		next = at->next;
		if (q->state == REQ_PINNED && r->now_ms - q->since_ms >= PIN_MS)
			release(q);
	}
	if (!cop_list_empty(&s->ready) && r->now_ms - s->advanced_ms >= PIN_MS) {
		cop_log_warn("peer takes no bytes rank=%u", s->rank);
		cop_rpc_link_reset(r, s->link);
		cop_rpc_session_free(r, s);
	} else if (cop_list_empty(&s->reqs)) {
		cop_list_remove(&s->at);
	}
}
