/* SPDX-License-Identifier: BSD-3-Clause */
/* Encodes sums as bytes. Numbers are LEB128 in their shortest form. Rows, buckets, names and
 * classes are in ascending order, and empty ones are omitted. So each sum has exactly one encoding,
 * and decoding accepts nothing else. A name is written without the prefix that it shares with the
 * previous one.
 *
 *     "CPS" version, operations, buckets           the sender's build
 *     nodes, stores, serves, expires, clears, latency in us, top path rows requested, rows,
 *     row: operation, hits, misses, negatives, errors, latency in ns, in us, maximum, n,
 *          n times (buckets skipped, count)
 *     for each category: error, n, n times (shared length, rest length, rest, weight, 4 counts),
 *          n, n times (class, entries, events, events of the example, its length, the example)
 *     n, n times (rank minus the previous one, hits, misses, negatives, serves, latency in us),
 *          nodes whose classes cover every path
 */
#include "prof/profile/profile_priv.h"

#define EXAMPLE_MAX (2 * PATH_LEN_MAX) /* a source and a path */

_Static_assert(COP_PROF_OPS *(HIST_BUCKETS * 12 + 90) +
			       CATEGORIES * (SKETCH_BYTES + SKETCH_ROWS * 60) +
			       COP_PATHCLASSES * (EXAMPLE_MAX + 50) +
			       (size_t)COP_PROF_SHARES_MAX * (COP_PROF_SHARES + 1) * 10 + 200 <=
		       COP_PROF_ENCODED_MAX,
	"a full sum fits");

static const unsigned char magic[] = {'C', 'P', 'S', 3};

static unsigned used_buckets(const struct sum_op *op)
{
	unsigned used = 0;

	for (unsigned i = 0; i < HIST_BUCKETS; i++)
		used += op->bucket[i] != 0;
	return used;
}

/* Whether anything was counted: a sum taken during counting may contain an outcome without its
 * call. */
static bool row_used(const struct sum_op *op)
{
	uint64_t any = op->latency_ns | op->latency_us | op->max_ns;

	for (unsigned o = COP_PROF_HIT; o < COP_PROF_OUTCOMES; o++)
		any |= op->outcome[o];
	return any || used_buckets(op);
}

static void put_row(struct cop_buf *out, unsigned id, const struct sum_op *op)
{
	unsigned next = 0;

	cop_buf_varint(out, id);
	for (unsigned o = COP_PROF_HIT; o < COP_PROF_OUTCOMES; o++)
		cop_buf_varint(out, op->outcome[o]);
	cop_buf_varint(out, op->latency_ns);
	cop_buf_varint(out, op->latency_us);
	cop_buf_varint(out, op->max_ns);
	cop_buf_varint(out, used_buckets(op));
	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		if (!op->bucket[i])
			continue;
		cop_buf_varint(out, i - next);
		cop_buf_varint(out, op->bucket[i]);
		next = i + 1;
	}
}

static size_t common_bytes(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t n = 0;

	while (n < a_len && n < b_len && a[n] == b[n])
		n++;
	return n;
}

static void put_sketch(struct cop_buf *out, const struct sketch *s)
{
	const char *before = "";
	size_t before_len = 0;

	cop_buf_varint(out, s->error);
	cop_buf_varint(out, s->n);
	for (size_t i = 0; i < s->n; i++) {
		const struct sketch_row *row = &s->row[i];
		const char *path = s->text + row->at;
		size_t same = common_bytes(before, before_len, path, row->len);

		cop_buf_varint(out, same);
		cop_buf_varint(out, row->len - same);
		cop_buf_add(out, path + same, row->len - same);
		cop_buf_varint(out, row->weight);
		for (unsigned slot = 0; slot < SLOTS; slot++)
			cop_buf_varint(out, row->count[slot]);
		before = path;
		before_len = row->len;
	}
}

static void put_classes(struct cop_buf *out, const struct cop_pathclass_totals *t)
{
	cop_buf_varint(out, (uint64_t)__builtin_popcount(cop_pathclass_seen(t)));
	for (unsigned i = 0; i < COP_PATHCLASSES; i++) {
		const struct cop_pathclass_total *one = &t->of[i];

		if (!one->example)
			continue;
		cop_buf_varint(out, i);
		cop_buf_varint(out, one->entries);
		cop_buf_varint(out, one->events);
		cop_buf_varint(out, one->most);
		cop_buf_varint(out, one->example_len);
		cop_buf_add(out, one->example, one->example_len);
	}
}

static void put_shares(struct cop_buf *out, const struct cop_prof_sum *s)
{
	uint32_t before = 0;

	cop_buf_varint(out, s->shares);
	for (size_t i = 0; i < s->shares; i++) {
		cop_buf_varint(out, s->share[i].rank - before);
		before = s->share[i].rank;
		for (unsigned v = 0; v < COP_PROF_SHARES; v++)
			cop_buf_varint(out, s->share[i].value[v]);
	}
}

void cop_prof_encode(const struct cop_prof_sum *s, struct cop_buf *out)
{
	unsigned rows = 0;

	cop_buf_add(out, magic, sizeof(magic));
	cop_buf_varint(out, COP_PROF_OPS);
	cop_buf_varint(out, HIST_BUCKETS);
	cop_buf_varint(out, s->nodes);
	for (unsigned e = 0; e < COP_PROF_TTLS; e++)
		cop_buf_varint(out, s->ttl[e]);
	cop_buf_varint(out, s->latency_us);
	cop_buf_varint(out, s->top_n);
	for (unsigned id = 0; id < COP_PROF_OPS; id++)
		rows += row_used(&s->op[id]);
	cop_buf_varint(out, rows);
	for (unsigned id = 0; id < COP_PROF_OPS; id++)
		if (row_used(&s->op[id]))
			put_row(out, id, &s->op[id]);
	for (unsigned c = 0; c < CATEGORIES; c++)
		put_sketch(out, &s->top[c]);
	put_classes(out, &s->classes);
	put_shares(out, s);
	cop_buf_varint(out, s->whole);
}

/* Reading stops at the first error, which sets bad. */
struct reader {
	const unsigned char *at, *end;
	bool bad;
};

static uint64_t get_varint(struct reader *r)
{
	uint64_t value;

	if (!r->bad && cop_varint(&r->at, r->end, &value))
		return value;
	r->bad = true;
	return 0;
}

static uint64_t get_at_most(struct reader *r, uint64_t most)
{
	uint64_t value = get_varint(r);

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
		uint64_t count = get_varint(r);

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
			op->outcome[o] = get_varint(r);
		op->latency_ns = get_varint(r);
		op->latency_us = get_varint(r);
		op->max_ns = get_varint(r);
		get_buckets(r, op);
		if (!row_used(op))
			r->bad = true;
		next = id + 1;
	}
}

/* Returns the next n bytes, or NULL. */
static const char *get_bytes(struct reader *r, size_t n)
{
	const unsigned char *at = r->at;

	if (r->bad || (size_t)(r->end - at) < n) {
		r->bad = true;
		return NULL;
	}
	r->at += n;
	return (const char *)at;
}

/* Reads a name, completing its shared prefix; the text has room for SKETCH_BYTES. */
static void get_path(struct reader *r, struct sketch *s, struct sketch_row *row)
{
	const struct sketch_row *before = s->n ? &s->row[s->n - 1] : NULL;
	size_t same = get_at_most(r, before ? before->len : 0), more = get_at_most(r, PATH_LEN_MAX);
	const char *rest = get_bytes(r, more);
	const char *was = before ? s->text + before->at : "";

	if (!rest || same + more > PATH_LEN_MAX || s->text_len + same + more > SKETCH_BYTES) {
		r->bad = true;
		return;
	}
	/* Names must ascend, and be in their shortest form. */
	if (before && (!more || (same < before->len &&
					(unsigned char)rest[0] <= (unsigned char)was[same]))) {
		r->bad = true;
		return;
	}
	row->at = (uint32_t)s->text_len;
	row->len = (uint32_t)(same + more);
	memcpy(s->text + row->at, was, same);
	memcpy(s->text + row->at + same, rest, more);
	s->text_len += row->len;
}

static void get_sketch_rows(struct reader *r, struct sketch *s, uint64_t rows)
{
	for (uint64_t k = 0; k < rows && !r->bad; k++) {
		struct sketch_row *row = &s->row[s->n];
		uint64_t seen = 0;

		get_path(r, s, row);
		row->weight = get_varint(r);
		for (unsigned slot = 0; slot < SLOTS; slot++) {
			row->count[slot] = get_varint(r);
			seen = cop_add_saturating(seen, row->count[slot]);
		}
		if (!seen || row->weight > seen)
			r->bad = true;
		s->n++;
	}
}

/* Allocates at most as many rows as the remaining bytes can hold, and frees unused ones.
 * -ENOMEM. */
static int get_sketch(struct reader *r, struct sketch *s)
{
	uint64_t rows;
	char *less;

	s->error = get_varint(r);
	rows = get_at_most(r, SKETCH_ROWS);
	if (r->bad || rows > (size_t)(r->end - r->at)) {
		r->bad = true;
		return 0;
	}
	if (!rows)
		return 0;
	s->row = calloc(rows, sizeof(*s->row));
	s->text = malloc(SKETCH_BYTES);
	if (!s->row || !s->text)
		return -ENOMEM;
	get_sketch_rows(r, s, rows);
	less = realloc(s->text, s->text_len ? s->text_len : 1);
	if (less)
		s->text = less;
	return 0;
}

static int get_classes(struct reader *r, struct cop_pathclass_totals *t)
{
	uint64_t n = get_at_most(r, COP_PATHCLASSES), next = 0;
	int rc = 0;

	for (uint64_t k = 0; k < n && !r->bad && !rc; k++) {
		struct cop_pathclass_total one = {0};
		uint64_t class = get_at_most(r, COP_PATHCLASSES - 1);

		one.entries = get_varint(r);
		one.events = get_varint(r);
		one.most = get_varint(r);
		one.example_len = get_at_most(r, EXAMPLE_MAX);
		one.example = (char *)get_bytes(r, one.example_len);
		if (r->bad || class < next) {
			r->bad = true;
			break;
		}
		rc = cop_pathclass_add_total(t, class, &one);
		next = class + 1;
	}
	return rc;
}

static int get_shares(struct reader *r, struct cop_prof_sum *s)
{
	uint64_t n = get_at_most(r, COP_PROF_SHARES_MAX);
	uint32_t before = 0;

	if (r->bad || !n || n > (size_t)(r->end - r->at) / (COP_PROF_SHARES + 1)) {
		r->bad |= n != 0;
		return 0;
	}
	s->share = calloc(n, sizeof(*s->share));
	if (!s->share)
		return -ENOMEM;
	for (; s->shares < n && !r->bad; s->shares++) {
		struct cop_prof_shares *to = &s->share[s->shares];

		before += (uint32_t)get_at_most(r, UINT32_MAX - before);
		to->rank = before;
		for (unsigned v = 0; v < COP_PROF_SHARES; v++)
			to->value[v] = get_varint(r);
	}
	return 0;
}

static int get_sum(struct reader *r, struct cop_prof_sum *s)
{
	int rc = 0;

	s->nodes = get_varint(r);
	for (unsigned e = 0; e < COP_PROF_TTLS; e++)
		s->ttl[e] = get_varint(r);
	s->latency_us = get_varint(r);
	s->top_n = get_at_most(r, COP_PROF_TOP_N_MAX);
	get_rows(r, s);
	for (unsigned c = 0; c < CATEGORIES && !rc; c++)
		rc = get_sketch(r, &s->top[c]);
	if (!rc)
		rc = get_classes(r, &s->classes);
	if (!rc)
		rc = get_shares(r, s);
	s->whole = get_varint(r);
	return rc ? rc : r->bad || r->at != r->end ? -EBADMSG : 0;
}

int cop_prof_decode(const void *data, size_t len, struct cop_prof_sum **out)
{
	struct reader r = {.at = data, .end = (const unsigned char *)data + len};
	struct cop_prof_sum *s;
	int rc;

	if (len < sizeof(magic) || len > COP_PROF_ENCODED_MAX || memcmp(data, magic, 3) != 0)
		return -EBADMSG;
	if (memcmp(data, magic, sizeof(magic)) != 0)
		return -EPROTO;
	r.at += sizeof(magic);
	if (get_varint(&r) != COP_PROF_OPS || get_varint(&r) != HIST_BUCKETS)
		return r.bad ? -EBADMSG : -EPROTO;
	s = cop_prof_sum_new();
	if (!s)
		return -ENOMEM;
	rc = get_sum(&r, s);
	if (rc) {
		cop_prof_sum_free(s);
		return rc;
	}
	*out = s;
	return 0;
}
