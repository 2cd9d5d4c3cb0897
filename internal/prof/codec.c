/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums as bytes. Numbers are LEB128 in their shortest form; rows and buckets stand in ascending order and none is empty: a sum has
 * exactly one encoding, and decoding accepts nothing else.
 *
 *	"CPS" version, operations, buckets,            what the sender was built with
 *	nodes, stores, serves, expires, clears, rows,
 *	row: operation, hits, misses, negatives, errors, latency, maximum, n, n times (buckets skipped, count)
 */
#include <errno.h>
#include <string.h>

#include "prof/prof_priv.h"

_Static_assert(COP_PROF_OPS * (HIST_BUCKETS * 12 + 80) + 100 <= COP_PROF_ENCODED_MAX, "a full sum fits");

static const unsigned char magic[] = {'C', 'P', 'S', 1};

static void put(struct cop_buf *out, uint64_t value)
{
	unsigned char byte[10];
	size_t n = 0;

	for (; value >= 0x80; value >>= 7)
		byte[n++] = (unsigned char)(value | 0x80);
	byte[n++] = (unsigned char)value;
	cop_buf_add(out, byte, n);
}

static unsigned used_buckets(const struct sum_op *op)
{
	unsigned used = 0;

	for (unsigned i = 0; i < HIST_BUCKETS; i++)
		used += op->bucket[i] != 0;
	return used;
}

/* Whether anything was counted: sums taken while others count may have an outcome without its call. */
static bool row_used(const struct sum_op *op)
{
	uint64_t any = op->latency_ns | op->max_ns;

	for (unsigned o = COP_PROF_HIT; o < COP_PROF_OUTCOMES; o++)
		any |= op->outcome[o];
	return any || used_buckets(op);
}

static void put_row(struct cop_buf *out, unsigned id, const struct sum_op *op)
{
	unsigned next = 0;

	put(out, id);
	for (unsigned o = COP_PROF_HIT; o < COP_PROF_OUTCOMES; o++)
		put(out, op->outcome[o]);
	put(out, op->latency_ns);
	put(out, op->max_ns);
	put(out, used_buckets(op));
	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		if (!op->bucket[i])
			continue;
		put(out, i - next);
		put(out, op->bucket[i]);
		next = i + 1;
	}
}

void cop_prof_encode(const struct cop_prof_sum *s, struct cop_buf *out)
{
	unsigned rows = 0;

	cop_buf_add(out, magic, sizeof(magic));
	put(out, COP_PROF_OPS);
	put(out, HIST_BUCKETS);
	put(out, s->nodes);
	for (unsigned e = 0; e < COP_PROF_TTLS; e++)
		put(out, s->ttl[e]);
	for (unsigned id = 0; id < COP_PROF_OPS; id++)
		rows += row_used(&s->op[id]);
	put(out, rows);
	for (unsigned id = 0; id < COP_PROF_OPS; id++)
		if (row_used(&s->op[id]))
			put_row(out, id, &s->op[id]);
}

/* Reading stops at the first fault; bad says that there was one. */
struct reader {
	const unsigned char *at, *end;
	bool bad;
};

static uint64_t get(struct reader *r)
{
	uint64_t value = 0;

	for (unsigned shift = 0; !r->bad && r->at < r->end && shift < 64; shift += 7) {
		unsigned char byte = *r->at++;

		if ((shift == 63 && byte > 1) || (shift && byte == 0))
			break; /* past 64 bits, or not the shortest form */
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
	r->bad = true;
	return 0;
}

static uint64_t get_at_most(struct reader *r, uint64_t most)
{
	uint64_t value = get(r);

	if (value <= most)
		return value;
	r->bad = true;
	return 0;
}

static void get_buckets(struct reader *r, struct sum_op *op)
{
	uint64_t n = get_at_most(r, HIST_BUCKETS), next = 0;

	for (uint64_t k = 0; k < n && !r->bad; k++) {
		uint64_t i = next + get_at_most(r, HIST_BUCKETS);
		uint64_t count = get(r);

		if (i >= HIST_BUCKETS || count == 0) {
			r->bad = true;
			return;
		}
		op->bucket[i] = count;
		next = i + 1;
	}
}

static void get_rows(struct reader *r, struct cop_prof_sum *s)
{
	uint64_t rows = get_at_most(r, COP_PROF_OPS), next = 0;

	for (uint64_t k = 0; k < rows && !r->bad; k++) {
		uint64_t id = get_at_most(r, COP_PROF_OPS - 1);
		struct sum_op *op = &s->op[id];

		if (id < next)
			r->bad = true;
		for (unsigned o = COP_PROF_HIT; o < COP_PROF_OUTCOMES; o++)
			op->outcome[o] = get(r);
		op->latency_ns = get(r);
		op->max_ns = get(r);
		get_buckets(r, op);
		if (!row_used(op))
			r->bad = true;
		next = id + 1;
	}
}

int cop_prof_decode(const void *data, size_t len, struct cop_prof_sum **out)
{
	struct reader r = {.at = data, .end = (const unsigned char *)data + len};
	struct cop_prof_sum *s;

	if (len < sizeof(magic) || len > COP_PROF_ENCODED_MAX || memcmp(data, magic, 3) != 0)
		return -EBADMSG;
	if (memcmp(data, magic, sizeof(magic)) != 0)
		return -EPROTO;
	r.at += sizeof(magic);
	if (get(&r) != COP_PROF_OPS || get(&r) != HIST_BUCKETS)
		return r.bad ? -EBADMSG : -EPROTO;
	s = cop_prof_sum_new();
	if (!s)
		return -ENOMEM;
	s->nodes = get(&r);
	for (unsigned e = 0; e < COP_PROF_TTLS; e++)
		s->ttl[e] = get(&r);
	get_rows(&r, s);
	if (r.bad || r.at != r.end) {
		cop_prof_sum_free(s);
		return -EBADMSG;
	}
	*out = s;
	return 0;
}
