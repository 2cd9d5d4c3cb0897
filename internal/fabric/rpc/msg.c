/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/rpc/rpc_priv.h"

void cop_rpc_msg_put_request(struct cop_wr *w, const struct msg_request *m)
{
	cop_wr_u8(w, m->op);
	cop_wr_u64(w, m->land_addr);
	cop_wr_u64(w, m->land_key);
	cop_wr_u64(w, m->land_len);
	cop_wr_bytes(w, m->payload, m->payload_len);
}

int cop_rpc_msg_get_request(const struct cop_frame *f, struct msg_request *m)
{
	struct cop_rd r = cop_rd_init(f->payload, f->payload_len);

	m->op = cop_rd_u8(&r);
	m->land_addr = cop_rd_u64(&r);
	m->land_key = cop_rd_u64(&r);
	m->land_len = cop_rd_u64(&r);
	m->payload = cop_rd_rest(&r, &m->payload_len);
	return cop_rd_done(&r) && m->payload_len <= COP_RPC_PAYLOAD_MAX ? 0 : -EBADMSG;
}

void cop_rpc_msg_put_member(struct cop_wr *w, uint64_t id, const struct msg_request *m)
{
	cop_wr_u64(w, id);
	cop_wr_u16(w, (uint16_t)(MSG_REQUEST_FIXED + m->payload_len));
	cop_rpc_msg_put_request(w, m);
}

int cop_rpc_msg_next_member(struct cop_rd *r, const struct cop_frame *f, struct cop_frame *member)
{
	*member = *f;
	member->type = COP_FRAME_REQUEST;
	member->request = cop_rd_u64(r);
	member->payload = (const uint8_t *)cop_rd_str(r, &member->payload_len);
	return r->bad ? -EBADMSG : 0;
}

void cop_rpc_msg_put_reply(struct cop_wr *w, const struct msg_reply *m)
{
	cop_wr_u32(w, (uint32_t)-m->status);
	cop_wr_u8(w, m->mode);
	cop_wr_u8(w, m->confirm);
	cop_wr_u64(w, m->body_len);
	cop_wr_u64(w, m->body_hash);
	cop_wr_str(w, m->head, m->head_len);
	if (m->mode == MODE_INLINE)
		cop_wr_bytes(w, m->body, m->body_len);
}

int cop_rpc_msg_get_reply(const struct cop_frame *f, struct msg_reply *m)
{
	struct cop_rd r = cop_rd_init(f->payload, f->payload_len);
	uint32_t code = cop_rd_u32(&r);
	uint8_t confirm;
	size_t rest;

	m->mode = cop_rd_u8(&r);
	confirm = cop_rd_u8(&r);
	m->body_len = cop_rd_u64(&r);
	m->body_hash = cop_rd_u64(&r);
	m->head = cop_rd_str(&r, &m->head_len);
	m->body = cop_rd_rest(&r, &rest);
	/* 4095 is the largest error number that Linux can return. */
	if (!cop_rd_done(&r) || code > 4095 || m->mode >= MODES || confirm > 1 ||
		m->head_len > COP_RPC_HEAD_MAX)
		return -EBADMSG;
	m->status = -(int)code;
	m->confirm = confirm;
	if (rest != (m->mode == MODE_INLINE ? m->body_len : 0))
		return -EBADMSG;
	if ((m->mode == MODE_LANDED || m->mode == MODE_ANNOUNCE) && !m->body_len)
		return -EBADMSG;
	if (m->mode == MODE_UNABLE && (m->body_len || !m->status))
		return -EBADMSG;
	return 0;
}

void cop_rpc_msg_put_pull(struct cop_wr *w, const struct msg_pull *m)
{
	cop_wr_u64(w, m->addr);
	cop_wr_u64(w, m->key);
	cop_wr_u64(w, m->len);
}

int cop_rpc_msg_get_pull(const struct cop_frame *f, struct msg_pull *m)
{
	struct cop_rd r = cop_rd_init(f->payload, f->payload_len);

	m->addr = cop_rd_u64(&r);
	m->key = cop_rd_u64(&r);
	m->len = cop_rd_u64(&r);
	return cop_rd_done(&r) ? 0 : -EBADMSG;
}
