/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/wire/wire_priv.h"

#include <sodium.h>

#define MAGIC 0x31504f43u /* "COP1" in memory */
#define VERSION 2
#define LENGTH_AT 8
#define COUNTER_AT 24
#define WINDOW 64

_Static_assert(COP_FRAME_TAG == crypto_shorthash_siphashx24_BYTES, "tag size");
_Static_assert(sizeof(((struct cop_frame_tx *)0)->key) == crypto_shorthash_siphashx24_KEYBYTES,
	"key size");

static size_t tag_len(uint8_t type)
{
	return type == COP_FRAME_HELLO || type == COP_FRAME_WELCOME ? COP_HANDSHAKE_TAG
								    : COP_FRAME_TAG;
}

int cop_frame_parse(const void *msg, size_t len, struct cop_frame *f)
{
	struct cop_rd r = cop_rd_init(msg, len);
	uint32_t magic = cop_rd_u32(&r);
	uint8_t version = cop_rd_u8(&r);
	uint32_t length, zero;

	*f = (struct cop_frame){.type = cop_rd_u8(&r)};
	f->flags = cop_rd_u16(&r);
	length = cop_rd_u32(&r);
	zero = cop_rd_u32(&r);
	f->session = cop_rd_u64(&r);
	f->counter = cop_rd_u64(&r);
	f->request = cop_rd_u64(&r);
	if (r.bad || magic != MAGIC || version != VERSION || zero || length != len || !f->type ||
		f->type >= COP_FRAME_TYPES || len < COP_FRAME_HEAD + tag_len(f->type))
		return -EBADMSG;
	f->payload = r.p;
	f->payload_len = len - COP_FRAME_HEAD - tag_len(f->type);
	return 0;
}

struct cop_wr cop_frame_begin(void *buf, size_t size, const struct cop_frame *f)
{
	struct cop_wr w = cop_wr_init(buf, size);

	cop_wr_u32(&w, MAGIC);
	cop_wr_u8(&w, VERSION);
	cop_wr_u8(&w, f->type);
	cop_wr_u16(&w, f->flags);
	cop_wr_u32(&w, 0);
	cop_wr_u32(&w, 0);
	cop_wr_u64(&w, f->session);
	cop_wr_u64(&w, 0);
	cop_wr_u64(&w, f->request);
	return w;
}

void cop_frame_set_len(struct cop_wr *w, size_t tail)
{
	struct cop_wr at = cop_wr_init(w->start + LENGTH_AT, 4);

	cop_wr_u32(&at, (uint32_t)(cop_wr_len(w) + tail));
}

static void make_tag(const uint8_t key[16], const void *msg, size_t len, uint8_t tag[COP_FRAME_TAG])
{
	crypto_shorthash_siphashx24(tag, msg, len, key);
}

size_t cop_frame_seal(struct cop_frame_tx *tx, struct cop_wr *w)
{
	struct cop_wr at;
	uint8_t tag[COP_FRAME_TAG];

	if (w->bad || (size_t)(w->end - w->p) < sizeof(tag))
		return 0;
	at = cop_wr_init(w->start + COUNTER_AT, 8);
	cop_wr_u64(&at, ++tx->counter);
	cop_frame_set_len(w, sizeof(tag));
	make_tag(tx->key, w->start, cop_wr_len(w), tag);
	cop_wr_bytes(w, tag, sizeof(tag));
	return cop_wr_len(w);
}

/* Whether this counter is acceptable; if so, records it in *rx. */
static bool window_take(struct cop_frame_rx *rx, uint64_t counter)
{
	uint64_t back, ahead;

	if (!counter)
		return false;
	if (counter > rx->highest) {
		ahead = counter - rx->highest;
		rx->seen = ahead < WINDOW ? rx->seen << ahead | 1 : 1;
		rx->highest = counter;
		return true;
	}
	back = rx->highest - counter;
	if (back >= WINDOW || rx->seen >> back & 1)
		return false;
	rx->seen |= 1ULL << back;
	return true;
}

int cop_frame_open(struct cop_frame_rx *rx, const void *msg, size_t len, struct cop_frame *f)
{
	uint8_t tag[COP_FRAME_TAG];
	size_t body;
	int rc = cop_frame_parse(msg, len, f);

	if (rc)
		return rc;
	if (tag_len(f->type) != COP_FRAME_TAG)
		return -EBADMSG;
	body = len - sizeof(tag);
	make_tag(rx->key, msg, body, tag);
	if (sodium_memcmp(tag, (const uint8_t *)msg + body, sizeof(tag)))
		return -EACCES;
	return window_take(rx, f->counter) ? 0 : -EALREADY;
}
