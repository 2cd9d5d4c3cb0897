/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/wire/wire_priv.h"

#include <sodium.h>

static const char hello_context[] = "copper hello 1";
static const char welcome_context[] = "copper welcome 1";
static const char keys_context[] = "copper session 1";

/* Appends the tag to a handshake message; transcript: the preceding messages of this handshake. */
static size_t append_tag(const struct cop_wire_secret *s, const char *context,
	const void *transcript, size_t transcript_len, struct cop_wr *w)
{
	uint8_t tag[COP_HANDSHAKE_TAG];

	if (w->bad)
		return 0;
	cop_frame_set_len(w, sizeof(tag));
	cop_wire_derive(
		s, context, transcript, transcript_len, w->start, cop_wr_len(w), tag, sizeof(tag));
	cop_wr_bytes(w, tag, sizeof(tag));
	return w->bad ? 0 : cop_wr_len(w);
}

static int check_tag(const struct cop_wire_secret *s, const char *context, const void *transcript,
	size_t transcript_len, const void *msg, size_t len)
{
	uint8_t tag[COP_HANDSHAKE_TAG];
	size_t body = len - sizeof(tag);

	cop_wire_derive(s, context, transcript, transcript_len, msg, body, tag, sizeof(tag));
	return sodium_memcmp(tag, (const uint8_t *)msg + body, sizeof(tag)) ? -EACCES : 0;
}

size_t cop_hello_write(const struct cop_wire_secret *s, const struct cop_hello *h, void *msg)
{
	struct cop_frame f = {.type = COP_FRAME_HELLO};
	struct cop_wr w = cop_frame_begin(msg, COP_HELLO_MAX, &f);

	if (!h->address_len || h->address_len > COP_HELLO_ADDRESS_MAX)
		return 0;
	cop_wr_u32(&w, h->from);
	cop_wr_u32(&w, h->to);
	cop_wr_u64(&w, h->session);
	cop_wr_u64(&w, h->current);
	cop_wr_u64(&w, h->config_hash);
	cop_wr_bytes(&w, h->nonce, sizeof(h->nonce));
	cop_wr_str(&w, h->address, h->address_len);
	return append_tag(s, hello_context, NULL, 0, &w);
}

/* Parses a frame of this handshake type whose unused header fields are zero. */
static int parse_message(
	const void *msg, size_t len, uint8_t type, struct cop_frame *f, struct cop_rd *r)
{
	int rc = len > COP_HELLO_MAX ? -EBADMSG : cop_frame_parse(msg, len, f);

	if (rc)
		return rc;
	if (f->type != type || f->flags || f->counter || f->request)
		return -EBADMSG;
	*r = cop_rd_init(f->payload, f->payload_len);
	return 0;
}

int cop_hello_read(
	const struct cop_wire_secret *s, const void *msg, size_t len, struct cop_hello *h)
{
	struct cop_frame f;
	struct cop_rd r;
	const uint8_t *nonce;
	int rc = parse_message(msg, len, COP_FRAME_HELLO, &f, &r);

	*h = (struct cop_hello){0};
	if (rc)
		return rc;
	h->from = cop_rd_u32(&r);
	h->to = cop_rd_u32(&r);
	h->session = cop_rd_u64(&r);
	h->current = cop_rd_u64(&r);
	h->config_hash = cop_rd_u64(&r);
	nonce = r.p;
	for (size_t i = 0; i < sizeof(h->nonce) / 8; i++)
		cop_rd_u64(&r);
	if (!r.bad)
		memcpy(h->nonce, nonce, sizeof(h->nonce));
	h->address = cop_rd_str(&r, &h->address_len);
	if (!cop_rd_done(&r) || f.session || !h->session || !h->address_len ||
		h->address_len > COP_HELLO_ADDRESS_MAX || memchr(h->address, 0, h->address_len))
		return -EBADMSG;
	return check_tag(s, hello_context, NULL, 0, msg, len);
}

/* Both sides derive the same bytes; the role determines which key sends. */
static void make_keys(const struct cop_wire_secret *s, const void *hello, size_t hello_len,
	const void *welcome, size_t welcome_len, bool initiator, struct cop_frame_keys *keys)
{
	uint8_t out[40] = {0};
	const uint8_t *to_responder = out, *to_initiator = out + 16;
	struct cop_rd seed = cop_rd_init(out + 32, 8);

	cop_wire_derive(s, keys_context, hello, hello_len, welcome, welcome_len, out, sizeof(out));
	*keys = (struct cop_frame_keys){.body_seed = cop_rd_u64(&seed)};
	memcpy(keys->tx.key, initiator ? to_responder : to_initiator, 16);
	memcpy(keys->rx.key, initiator ? to_initiator : to_responder, 16);
	sodium_memzero(out, sizeof(out));
}

size_t cop_welcome_write(const struct cop_wire_secret *s, const void *hello, size_t hello_len,
	uint64_t session, void *msg, struct cop_frame_keys *keys)
{
	struct cop_frame f = {.type = COP_FRAME_WELCOME};
	struct cop_hello h;
	struct cop_wr w;
	uint8_t nonce[COP_HELLO_NONCE];
	size_t len;

	if (cop_hello_read(s, hello, hello_len, &h))
		return 0;
	cop_wire_random(nonce, sizeof(nonce));
	f.session = h.session;
	w = cop_frame_begin(msg, COP_WELCOME_LEN, &f);
	cop_wr_u64(&w, session);
	cop_wr_bytes(&w, nonce, sizeof(nonce));
	len = append_tag(s, welcome_context, hello, hello_len, &w);
	if (len)
		make_keys(s, hello, hello_len, msg, len, false, keys);
	return len;
}

int cop_welcome_read(const struct cop_wire_secret *s, const void *hello, size_t hello_len,
	const void *msg, size_t len, uint64_t *session, struct cop_frame_keys *keys)
{
	struct cop_frame f;
	struct cop_rd r;
	uint64_t id;
	int rc = parse_message(msg, len, COP_FRAME_WELCOME, &f, &r);

	if (rc)
		return rc;
	id = cop_rd_u64(&r);
	if (r.bad || (size_t)(r.end - r.p) != COP_HELLO_NONCE)
		return -EBADMSG;
	rc = check_tag(s, welcome_context, hello, hello_len, msg, len);
	if (rc || !id)
		return rc ? rc : -EPROTO;
	*session = id;
	make_keys(s, hello, hello_len, msg, len, true, keys);
	return 0;
}
