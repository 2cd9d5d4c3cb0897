/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/wire/wire.h"

struct cop_rd cop_rd_init(const void *data, size_t len)
{
	const uint8_t *p = data;

	return (struct cop_rd){.p = p, .end = p ? p + len : p};
}

/* The next len bytes, or NULL after marking the reader bad and moving it to its end. */
static const uint8_t *consume_bytes(struct cop_rd *r, size_t len)
{
	const uint8_t *p = r->p;

	if (r->bad || len > (size_t)(r->end - r->p)) {
		r->bad = true;
		r->p = r->end;
		return NULL;
	}
	r->p += len;
	return p;
}

static uint64_t read_int(struct cop_rd *r, size_t len)
{
	const uint8_t *p = consume_bytes(r, len);
	uint64_t v = 0;

	for (size_t i = 0; p && i < len; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return v;
}

uint8_t cop_rd_u8(struct cop_rd *r)
{
	return (uint8_t)read_int(r, 1);
}

uint16_t cop_rd_u16(struct cop_rd *r)
{
	return (uint16_t)read_int(r, 2);
}

uint32_t cop_rd_u32(struct cop_rd *r)
{
	return (uint32_t)read_int(r, 4);
}

uint64_t cop_rd_u64(struct cop_rd *r)
{
	return read_int(r, 8);
}

const char *cop_rd_str(struct cop_rd *r, size_t *len)
{
	size_t want = cop_rd_u16(r);
	const uint8_t *p = consume_bytes(r, want);

	/* A truncated string reads as empty: callers need not test for NULL. */
	*len = p && !r->bad ? want : 0;
	return p && !r->bad ? (const char *)p : "";
}

const void *cop_rd_rest(struct cop_rd *r, size_t *len)
{
	const uint8_t *p = r->p;

	*len = r->bad ? 0 : (size_t)(r->end - r->p);
	r->p = r->end;
	return *len ? (const void *)p : "";
}

bool cop_rd_done(const struct cop_rd *r)
{
	return !r->bad && r->p == r->end;
}

struct cop_wr cop_wr_init(void *data, size_t size)
{
	uint8_t *p = data;

	return (struct cop_wr){.start = p, .p = p, .end = p ? p + size : p};
}

/* Space for len bytes, or NULL after marking the writer bad; a bad writer does not move. */
static uint8_t *append_space(struct cop_wr *w, size_t len)
{
	uint8_t *p = w->p;

	if (w->bad || len > (size_t)(w->end - w->p)) {
		w->bad = true;
		return NULL;
	}
	w->p += len;
	return p;
}

static void put_int(struct cop_wr *w, uint64_t v, size_t len)
{
	uint8_t *p = append_space(w, len);

	for (size_t i = 0; p && i < len; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

void cop_wr_u8(struct cop_wr *w, uint8_t v)
{
	put_int(w, v, 1);
}

void cop_wr_u16(struct cop_wr *w, uint16_t v)
{
	put_int(w, v, 2);
}

void cop_wr_u32(struct cop_wr *w, uint32_t v)
{
	put_int(w, v, 4);
}

void cop_wr_u64(struct cop_wr *w, uint64_t v)
{
	put_int(w, v, 8);
}

void cop_wr_str(struct cop_wr *w, const char *data, size_t len)
{
	if (len > UINT16_MAX || (!w->bad && len + 2 > (size_t)(w->end - w->p))) {
		w->bad = true;
		return;
	}
	cop_wr_u16(w, (uint16_t)len);
	cop_wr_bytes(w, data, len);
}

void cop_wr_bytes(struct cop_wr *w, const void *data, size_t len)
{
	uint8_t *p = append_space(w, len);

	if (p && len)
		memcpy(p, data, len);
}

size_t cop_wr_len(const struct cop_wr *w)
{
	return (size_t)(w->p - w->start);
}
