/* SPDX-License-Identifier: BSD-3-Clause */
/* Outgoing replies to the requests of other nodes. */
#include "fabric/rpc/rpc_priv.h"

/* A piece of a body in transit through fabric. */
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
	cop_htab_remove(&s->by_id, &q->by_id);
	cop_list_remove(&q->session_at);
	cop_list_remove(&q->ready_at);
	q->session = NULL;
}

void cop_rpc_req_free(struct cop_rpc_req *q)
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

void cop_rpc_reqs_orphan(struct session *s)
{
	while (!cop_list_empty(&s->reqs)) {
		struct cop_rpc_req *q =
			COP_CONTAINER_OF(s->reqs.next, struct cop_rpc_req, session_at);

		unlink_req(q);
		if (q->state != REQ_SERVING && !is_being_written(q))
			cop_rpc_req_free(q);
	}
}

/* ---- outgoing replies ---- */

static int send_reply(struct cop_rpc_req *q, const struct msg_reply *m)
{
	struct session *s = q->session;
	uint8_t msg[COP_ENDPOINT_MSG_MAX];
	struct cop_frame f = {
		.type = COP_FRAME_REPLY, .session = s->remote_sid, .request = q->by_id.hash};
	struct cop_wr w = cop_frame_begin(msg, sizeof(msg), &f);

	cop_rpc_msg_put_reply(&w, m);
	return cop_rpc_link_send(q->r, s->link, msg, cop_frame_seal(&s->keys.tx, &w));
}

static struct msg_reply reply_of(const struct cop_rpc_req *q, enum msg_mode mode)
{
	return (struct msg_reply){.status = q->answer.status,
		.mode = (uint8_t)mode,
		.confirm = q->answer.confirm,
		.body_len = q->answer.body_len,
		.body_hash = q->body_hash,
		.head = q->head,
		.head_len = q->answer.head_len,
		.body = q->answer.body};
}

/* Sends the last message of a request. This ends the request unless its caller must confirm the
 * reply. */
static int send_final(struct cop_rpc_req *q, enum msg_mode mode)
{
	struct msg_reply m = reply_of(q, mode);
	int rc = send_reply(q, &m);

	if (rc)
		return rc;
	cop_stats_add(q->r->conf.stats, COP_FABRIC_REQUESTS_SERVED, 1);
	if (!q->answer.confirm) {
		cop_rpc_req_free(q);
		return 0;
	}
	q->state = REQ_SENT;
	q->final = mode;
	q->since_ms = q->said_ms = q->r->now_ms;
	cop_list_remove(&q->ready_at);
	return 0;
}

static int announce_body(struct cop_rpc_req *q)
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

void cop_rpc_req_again(struct cop_rpc_req *q)
{
	struct msg_reply m;

	/* Until the request is ready, its answer belongs to another thread. */
	if (q->state != REQ_PINNED && q->state != REQ_SENT)
		return;
	m = reply_of(q, q->state == REQ_SENT ? q->final : MODE_ANNOUNCE);
	if (q->state == REQ_PINNED)
		m.head_len = 0;
	q->said_ms = q->r->now_ms;
	send_reply(q, &m);
}

static int advance_answer(struct cop_rpc_req *q);

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
			cop_rpc_req_free(q);
	} else {
		s->outstanding -= piece->len;
		s->advanced_ms = r->now_ms;
		if (!piece->rc)
			cop_stats_add(r->conf.stats, COP_FABRIC_BYTES_OUT, piece->len);
		advance_answer(q);
		cop_rpc_session_send(s);
	}
	free(piece);
}

/* This may run inside cop_endpoint_write, so it waits for leave. */
static void piece_done(void *arg, int rc)
{
	struct piece *piece = arg;
	struct cop_rpc *r = piece->req->r, *outer;

	piece->rc = rc;
	cop_rpc_enter(r, &outer);
	cop_rpc_queue(r, &piece->item);
	cop_rpc_leave(r, outer);
}

static int write_piece(struct cop_rpc_req *q, cop_endpoint_peer_t fpeer)
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
	rc = cop_endpoint_write(q->r->fabric, fpeer, body + q->posted, piece->len,
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

/* Writes as much of the body as may be outstanding; announces the end after the last byte. -EAGAIN:
 * not finished yet. */
static int write_body(struct cop_rpc_req *q)
{
	struct session *s = q->session;
	cop_endpoint_peer_t fpeer;
	int rc = cop_rpc_link_open(q->r, s->link, &fpeer);

	while (!rc && !q->write_rc && q->posted < q->answer.body_len &&
		s->outstanding < OUTSTANDING)
		rc = write_piece(q, fpeer);
	if (rc && !cop_rpc_may_retry(rc))
		q->write_rc = rc;
	if (q->write_rc && !is_being_written(q))
		return send_final(q, MODE_FAILED);
	if (q->acked == q->answer.body_len)
		return send_final(q, MODE_LANDED);
	return -EAGAIN;
}

static int advance_answer(struct cop_rpc_req *q)
{
	if (q->is_inline)
		return send_final(q, q->answer.unable ? MODE_UNABLE : MODE_INLINE);
	if (q->land_len >= q->answer.body_len)
		return write_body(q);
	return announce_body(q);
}

/* Sends replies in the order they became ready. */
void cop_rpc_session_send(struct session *s)
{
	struct cop_list *at, *next;

	for (at = s->ready.next; at != &s->ready; at = next) {
		next = at->next;
		if (s->outstanding >= OUTSTANDING)
			return;
		advance_answer(COP_CONTAINER_OF(at, struct cop_rpc_req, ready_at));
	}
}

void cop_rpc_req_ready(struct cop_rpc_req *q)
{
	struct session *s = q->session;

	if (cop_list_empty(&s->ready))
		s->advanced_ms = q->r->now_ms;
	q->state = REQ_READY;
	cop_list_push_back(&s->ready, &q->ready_at);
	/* A reply that fits a message does not queue behind bulk bytes. */
	if (q->is_inline)
		advance_answer(q);
	else
		cop_rpc_session_send(s);
}

static void request_answered(struct cop_rpc *r, struct item *item)
{
	struct cop_rpc_req *q = COP_CONTAINER_OF(item, struct cop_rpc_req, item);

	(void)r;
	if (q->session)
		cop_rpc_req_ready(q);
	else
		cop_rpc_req_free(q);
}

/* A reply is never lost to a lack of memory: the request holds all the memory it needs. */
void cop_rpc_reply(struct cop_rpc_req *q, const struct cop_rpc_answer *answer)
{
	q->answer = *answer;
	if (answer->head_len > COP_RPC_HEAD_MAX || answer->body_len > COP_RPC_BODY_MAX) {
		q->answer.status = -EMSGSIZE;
		q->answer.head_len = q->answer.body_len = 0;
	}
	if (answer->unable)
		q->answer.head_len = q->answer.body_len = 0;
	if (q->answer.head_len)
		memcpy(q->head, answer->head, q->answer.head_len);
	q->is_inline = q->answer.head_len + q->answer.body_len <= MSG_INLINE_MAX;
	/* The checksum is computed here and not on the progress thread, which serves other
	 * peers. */
	if (!q->is_inline)
		q->body_hash = answer->has_sum
				       ? 0
				       : cop_hash64(answer->body, q->answer.body_len, q->body_seed);
	q->item.run = request_answered;
	if (!cop_rpc_push(q->r, &q->item))
		cop_rpc_req_free(q);
}
