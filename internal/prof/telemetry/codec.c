/* SPDX-License-Identifier: BSD-3-Clause */
/* A sum as bytes. Numbers are LEB128; signed ones are zigzag-encoded first (0, -1, 1, -2...).
 *
 *     "CTM" version, phases, totals, metrics, kinds        the sender's build
 *     nodes of the job, level, start of the job, events dropped
 *     n, n times (ranks skipped, start, ready, stopped, phases, totals, intervals, their rows)
 *     of series, then of rows: nodes folded, cells in use,
 *          these times (least, most, n, n times (classes skipped, nodes))
 *     n, n times (time, rank, kind, length, text)
 */
#include "prof/telemetry/telemetry_priv.h"

static const unsigned char magic[] = {'C', 'T', 'M', 1, COP_TELEMETRY_PHASES, COP_TELEMETRY_TOTALS,
	COP_TELEMETRY_METRICS, COP_TELEMETRY_KINDS};

#define TIME_MAX_US (INT64_MAX / 4000)
#define PHASE_MAX_US ((uint64_t)TIME_MAX_US / COP_TELEMETRY_PHASES)
#define CELL_MAX (2 * 10 + 2 + SPREAD_CLASSES * (2 + 5))
_Static_assert(COP_TELEMETRY_ALL_NODES *(5 + 3 * 10 + 2 + 10 * (NUMBERS - 3)) +
			       COP_TELEMETRY_ALL_SERIES * INTERVALS * METRICS * 10 +
			       (INTERVALS * METRICS + NUMBERS) * CELL_MAX +
			       COP_TELEMETRY_EVENTS_JOB * (COP_TELEMETRY_DETAIL + 20) + 100 <=
		       COP_TELEMETRY_ENCODED_MAX,
	"a full sum fits");

static void put_signed(struct cop_buf *out, int64_t value)
{
	cop_buf_varint(out, value < 0 ? ~((uint64_t)value << 1) : (uint64_t)value << 1);
}

static void put_all(struct cop_buf *out, const uint64_t *value, size_t n)
{
	for (size_t i = 0; i < n; i++)
		cop_buf_varint(out, value[i]);
}

static void put_node(struct cop_buf *out, const struct cop_telemetry_node *n)
{
	put_signed(out, n->start_us);
	put_signed(out, n->ready_us);
	put_signed(out, n->stopped_us);
	put_all(out, n->phase_us, COP_TELEMETRY_PHASES);
	put_all(out, n->total, COP_TELEMETRY_TOTALS);
	cop_buf_varint(out, n->intervals);
	for (unsigned i = 0; i < n->intervals; i++)
		put_all(out, n->series[i], METRICS);
}

static void put_cell(struct cop_buf *out, const struct spread *s)
{
	unsigned used = 0, next = 0;

	for (unsigned c = 0; s->count && c < SPREAD_CLASSES; c++)
		used += s->count[c] != 0;
	cop_buf_varint(out, used);
	if (!used)
		return;
	cop_buf_varint(out, s->least);
	cop_buf_varint(out, s->most);
	for (unsigned c = 0; c < SPREAD_CLASSES; c++) {
		if (!s->count[c])
			continue;
		cop_buf_varint(out, c - next);
		cop_buf_varint(out, s->count[c]);
		next = c + 1;
	}
}

static void put_folded(struct cop_buf *out, const struct folded *f)
{
	unsigned cells = f->cells;

	while (cells > 0 && !f->cell[cells - 1].others)
		cells--;
	cop_buf_varint(out, f->nodes);
	cop_buf_varint(out, cells);
	for (unsigned i = 0; i < cells; i++)
		put_cell(out, &f->cell[i]);
}

static void put_event(struct cop_buf *out, const struct cop_telemetry_event *e)
{
	size_t len = strlen(e->detail);

	put_signed(out, e->at_us);
	cop_buf_varint(out, e->rank);
	cop_buf_varint(out, e->kind);
	cop_buf_varint(out, len);
	cop_buf_add(out, e->detail, len);
}

void cop_telemetry_encode(const struct cop_telemetry_sum *s, struct cop_buf *out)
{
	uint32_t next = 0;

	cop_buf_add(out, magic, sizeof(magic));
	cop_buf_varint(out, s->job_nodes);
	cop_buf_varint(out, s->level);
	put_signed(out, s->unix_ns);
	cop_buf_varint(out, s->dropped);
	cop_buf_varint(out, s->nodes);
	for (size_t i = 0; i < s->nodes; i++) {
		cop_buf_varint(out, s->node[i].rank - next);
		put_node(out, &s->node[i]);
		next = s->node[i].rank + 1;
	}
	put_folded(out, &s->series);
	put_folded(out, &s->rows);
	cop_buf_varint(out, s->events);
	for (size_t i = 0; i < s->events; i++)
		put_event(out, &s->event[i]);
}

/* ---- decoding ---- */

struct in {
	const unsigned char *p, *end;
	int rc; /* the first error; after it, all numbers read as 0 */
};

static uint64_t fail_decoding(struct in *in, int rc)
{
	if (!in->rc)
		in->rc = rc;
	in->p = in->end;
	return 0;
}

static uint64_t get_number(struct in *in)
{
	uint64_t value;

	return cop_varint(&in->p, in->end, &value) ? value : fail_decoding(in, -EBADMSG);
}

static uint64_t get_up_to(struct in *in, uint64_t most)
{
	uint64_t value = get_number(in);

	return value <= most ? value : fail_decoding(in, -EBADMSG);
}

static int64_t get_signed(struct in *in)
{
	uint64_t value = get_number(in);

	return (int64_t)(value & 1 ? ~(value >> 1) : value >> 1);
}

/* Times outside this range could overflow when added or converted to nanoseconds. */
static int64_t get_time(struct in *in)
{
	int64_t value = get_signed(in);

	return value > -TIME_MAX_US && value < TIME_MAX_US ? value
							   : (int64_t)fail_decoding(in, -EBADMSG);
}

static void get_all(struct in *in, uint64_t *value, size_t n)
{
	for (size_t i = 0; i < n; i++)
		value[i] = get_number(in);
}

static void get_series(struct in *in, struct cop_telemetry_node *n)
{
	n->intervals = (unsigned)get_up_to(in, INTERVALS);
	if (!n->intervals)
		return;
	n->series = calloc(INTERVALS, sizeof(*n->series));
	if (!n->series) {
		n->intervals = 0;
		fail_decoding(in, -ENOMEM);
		return;
	}
	for (unsigned i = 0; i < n->intervals; i++)
		get_all(in, n->series[i], METRICS);
}

static void get_node(struct in *in, struct cop_telemetry_node *n)
{
	n->start_us = get_time(in);
	n->ready_us = get_time(in);
	n->stopped_us = get_time(in);
	for (unsigned p = 0; p < COP_TELEMETRY_PHASES; p++)
		n->phase_us[p] = get_up_to(in, PHASE_MAX_US);
	get_all(in, n->total, COP_TELEMETRY_TOTALS);
	get_series(in, n);
}

static void get_nodes(struct in *in, struct cop_telemetry_sum *s)
{
	uint64_t n = get_up_to(in, COP_MIN(s->job_nodes, COP_TELEMETRY_ALL_NODES)), next = 0;
	unsigned series = 0;

	for (uint64_t i = 0; i < n && !in->rc; i++) {
		struct cop_telemetry_node *slot = cop_telemetry_sum_slot(s);
		uint64_t rank = next + get_up_to(in, s->job_nodes);

		if (!slot || rank >= s->job_nodes) {
			fail_decoding(in, slot ? -EBADMSG : -ENOMEM);
			return;
		}
		*slot = (struct cop_telemetry_node){.rank = (uint32_t)rank};
		s->nodes++;
		get_node(in, slot);
		series += slot->series != NULL;
		if (series > COP_TELEMETRY_ALL_SERIES)
			fail_decoding(in, -EBADMSG);
		next = rank + 1;
	}
}

static void get_cell(struct in *in, struct spread *s, uint32_t nodes)
{
	uint64_t used = get_up_to(in, SPREAD_CLASSES - 1), class = 0, others = 0;

	if (!used)
		return;
	s->count = calloc(SPREAD_CLASSES, sizeof(*s->count));
	if (!s->count) {
		fail_decoding(in, -ENOMEM);
		return;
	}
	s->least = get_number(in);
	s->most = get_number(in);
	for (uint64_t i = 0; i < used && !in->rc; i++) {
		class += get_up_to(in, SPREAD_CLASSES);
		if (class == 0 || class >= SPREAD_CLASSES) {
			fail_decoding(in, -EBADMSG);
			return;
		}
		s->count[class] = (uint32_t)get_up_to(in, nodes);
		others += s->count[class ++];
	}
	s->others = (uint32_t)others;
	if (others > nodes || !others || !s->least || s->least > s->most)
		fail_decoding(in, -EBADMSG);
}

static void get_folded(struct in *in, struct folded *f, unsigned cells, uint32_t job_nodes)
{
	unsigned used;

	f->nodes = (uint32_t)get_up_to(in, job_nodes);
	used = (unsigned)get_up_to(in, cells);
	if (!f->nodes && used)
		fail_decoding(in, -EBADMSG);
	if (!in->rc && f->nodes && cop_telemetry_folded_open(f, cells))
		fail_decoding(in, -ENOMEM);
	for (unsigned i = 0; i < used && !in->rc; i++)
		get_cell(in, &f->cell[i], f->nodes);
}

static char *get_text(struct in *in)
{
	size_t len = (size_t)get_up_to(in, COP_TELEMETRY_DETAIL - 1);
	char *text;

	if (in->rc || len > (size_t)(in->end - in->p)) {
		fail_decoding(in, -EBADMSG);
		return NULL;
	}
	text = strndup((const char *)in->p, len);
	if (!text)
		fail_decoding(in, -ENOMEM);
	in->p += text ? len : 0;
	for (char *c = text; c && *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	return text;
}

static void get_events(struct in *in, struct cop_telemetry_sum *s)
{
	size_t n = (size_t)get_up_to(in, COP_TELEMETRY_EVENTS_JOB);

	s->event = calloc(n + 1, sizeof(*s->event));
	if (!s->event)
		fail_decoding(in, -ENOMEM);
	for (size_t i = 0; i < n && !in->rc; i++) {
		struct cop_telemetry_event *e = &s->event[i];

		e->at_us = get_time(in);
		e->rank = (uint32_t)get_up_to(in, s->job_nodes - 1);
		e->kind = (enum cop_telemetry_kind)get_up_to(in, COP_TELEMETRY_KINDS - 1);
		e->detail = get_text(in);
		s->events += e->detail != NULL;
	}
}

static void get_sum(struct in *in, struct cop_telemetry_sum *s)
{
	s->job_nodes = (uint32_t)get_up_to(in, UINT32_MAX);
	if (!s->job_nodes)
		fail_decoding(in, -EBADMSG);
	s->level = (unsigned)get_up_to(in, LEVEL_MAX);
	s->unix_ns = get_signed(in);
	if (s->unix_ns < 0 || s->unix_ns > INT64_MAX / 2)
		fail_decoding(in, -EBADMSG);
	s->dropped = get_number(in);
	if (!in->rc)
		get_nodes(in, s);
	if (!in->rc)
		get_folded(in, &s->series, INTERVALS * METRICS, s->job_nodes);
	if (!in->rc)
		get_folded(in, &s->rows, NUMBERS, s->job_nodes);
	if (!in->rc)
		get_events(in, s);
	if (!in->rc && (in->p != in->end || !cop_telemetry_sum_fits(s, NULL)))
		fail_decoding(in, -EBADMSG);
}

int cop_telemetry_decode(const void *data, size_t len, struct cop_telemetry_sum **out)
{
	struct in in = {data, (const unsigned char *)data + len, 0};

	*out = NULL;
	if (len < sizeof(magic) || len > COP_TELEMETRY_ENCODED_MAX ||
		memcmp(data, magic, sizeof(magic)) != 0)
		return -EBADMSG;
	in.p += sizeof(magic);
	*out = cop_telemetry_sum_new(0);
	if (!*out)
		return -ENOMEM;
	get_sum(&in, *out);
	if (!in.rc)
		return 0;
	cop_telemetry_sum_free(*out);
	*out = NULL;
	return in.rc;
}
