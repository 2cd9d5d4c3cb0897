/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of other nodes, and their later messages about them. */
#include "fabric/rpc/rpc_priv.h"

uint32_t cop_rpc_req_rank(const struct cop_rpc_req *q)
{
	return q->rank;
}

uint8_t cop_rpc_req_op(const struct cop_rpc_req *q)
{
	return q->op;
}

uint64_t cop_rpc_req_id(const struct cop_rpc_req *q)
{
	return q->session ? cop_rpc_trace_id(q->session->sid, q->by_id.hash) : 0;
}

const void *cop_rpc_req_payload(const struct cop_rpc_req *q, size_t *len)
{
	*len = q->payload_len;
	return q->payload;
}

static struct cop_rpc_req *make_req(
	struct cop_rpc *r, struct session *s, const struct msg_request *m, uint64_t id)
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
	cop_htab_add(&s->by_id, &q->by_id, id);
	cop_rpc_ref(r);
	return q;
}

/* No memory for the request itself. If this refusal is lost, the caller's next ping makes it resend
 * the request. */
static int refuse_request(struct cop_rpc *r, struct session *s, const struct cop_frame *f, int rc)
{
	struct cop_frame reply = {
		.type = COP_FRAME_REPLY, .session = s->remote_sid, .request = f->request};
	struct msg_reply m = {.status = rc, .mode = MODE_UNABLE};
	uint8_t payload[MSG_REPLY_FIXED];
	struct cop_wr w = cop_wr_init(payload, sizeof(payload));

	cop_rpc_msg_put_reply(&w, &m);
	cop_rpc_link_send_sealed(r, s->link, &s->keys.tx, &reply, payload, cop_wr_len(&w));
	return 0;
}

static int take_request(struct cop_rpc *r, struct session *s, const struct cop_frame *f)
{
	struct msg_request m;
	struct cop_rpc_req *q;
	int rc = cop_rpc_msg_get_request(f, &m);

	if (rc)
		return rc;
	if (cop_htab_first(&s->by_id, f->request))
		return -EEXIST;
	if (s->by_id.count >= SERVED_MAX)
		return refuse_request(r, s, f, -ENOBUFS);
	q = make_req(r, s, &m, f->request);
	if (!q)
		return refuse_request(r, s, f, -ENOMEM);
	if (cop_list_empty(&s->at))
		cop_list_push_back(&r->serving, &s->at);
	cop_rpc_wake(r);
	r->conf.serve(r->conf.ctx, q);
	return 0;
}

/* A message with several requests: each is checked and answered like a separate message. */
static int take_requests(struct cop_rpc *r, struct session *s, const struct cop_frame *f)
{
	struct cop_rd rd = cop_rd_init(f->payload, f->payload_len);
	struct cop_frame member;
	int rc = f->payload_len ? 0 : -EBADMSG;

	for (unsigned i = 0; !rc && rd.p < rd.end; i++) {
		rc = i < MSG_MEMBERS_MAX ? cop_rpc_msg_next_member(&rd, f, &member) : -EBADMSG;
		if (!rc)
			rc = take_request(r, s, &member);
	}
	return rc;
}

static struct cop_rpc_req *find_request(struct session *s, uint64_t id)
{
	struct cop_hlink *n = cop_htab_first(&s->by_id, id);

	return n ? COP_CONTAINER_OF(n, struct cop_rpc_req, by_id) : NULL;
}

/* A duplicate PULL, or one after the body was abandoned, is harmless: the reply to the caller's
 * next ping makes it retry. */
static int answer_pull(struct session *s, const struct cop_frame *f)
{
	struct cop_rpc_req *q = find_request(s, f->request);
	struct msg_pull m;
	int rc = cop_rpc_msg_get_pull(f, &m);

	if (rc || !q || (q->state != REQ_PINNED && q->state != REQ_SENT))
		return rc;
	if (!m.len) {
		cop_rpc_req_free(q);
		return 0;
	}
	if (q->state == REQ_SENT)
		return 0;
	if (m.len != q->answer.body_len)
		return -EPROTO;
	q->land_addr = m.addr;
	q->land_key = m.key;
	q->land_len = m.len;
	cop_rpc_req_ready(q);
	return 0;
}

static int answer_ping(struct cop_rpc *r, struct session *s, const struct cop_frame *f)
{
	struct cop_rd rd = cop_rd_init(f->payload, f->payload_len);
	struct cop_frame pong = {
		.type = COP_FRAME_PONG, .session = s->remote_sid, .request = f->request};
	uint8_t unknown[8 * PING_IDS];
	struct cop_wr w = cop_wr_init(unknown, sizeof(unknown));

	if (f->payload_len % 8 || f->payload_len > sizeof(unknown))
		return -EBADMSG;
	while (rd.p < rd.end) {
		uint64_t id = cop_rd_u64(&rd);
		struct cop_rpc_req *q = find_request(s, id);

		if (q)
			cop_rpc_req_again(q);
		else
			cop_wr_u64(&w, id);
	}
	cop_rpc_link_send_sealed(r, s->link, &s->keys.tx, &pong, unknown, cop_wr_len(&w));
	return 0;
}

void cop_rpc_serve_frame(struct cop_rpc *r, struct session *s, const struct cop_frame *f)
{
	int rc = -EPROTO;

	if (f->type == COP_FRAME_REQUEST)
		rc = take_request(r, s, f);
	else if (f->type == COP_FRAME_REQUESTS)
		rc = take_requests(r, s, f);
	else if (f->type == COP_FRAME_PULL)
		rc = answer_pull(s, f);
	else if (f->type == COP_FRAME_PING)
		rc = answer_ping(r, s, f);
	if (rc)
		cop_rpc_reject(r, "request", s->rank, rc);
}

void cop_rpc_serve_tick(struct cop_rpc *r, struct session *s)
{
	struct cop_list *at, *next;

	cop_rpc_session_send(s);
	for (at = s->reqs.next; at != &s->reqs; at = next) {
		struct cop_rpc_req *q = COP_CONTAINER_OF(at, struct cop_rpc_req, session_at);

		next = at->next;
		if ((q->state == REQ_PINNED && r->now_ms - q->since_ms >= PIN_MS) ||
			(q->state == REQ_SENT && r->now_ms - q->since_ms >= CONFIRM_MS))
			cop_rpc_req_free(q);
		else if (q->state == REQ_SENT && r->now_ms - q->said_ms >= SAY_AGAIN_MS)
			cop_rpc_req_again(q);
	}
	if (!cop_list_empty(&s->ready) && r->now_ms - s->advanced_ms >= PIN_MS) {
		cop_log_warn("peer takes no bytes rank=%u", s->rank);
		cop_rpc_link_reset(r, s->link);
		cop_rpc_session_free(r, s);
	} else if (cop_list_empty(&s->reqs)) {
		cop_list_remove(&s->at);
	}
}
