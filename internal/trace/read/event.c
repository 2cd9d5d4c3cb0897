/* SPDX-License-Identifier: BSD-3-Clause */
/* Interprets the members of an object, in all formats. Numbers may be quoted (dlio_profiler quotes
 * all of them), phases may be letters or numbers (DFTracer 2.x), and hashes may be decimal or
 * hexadecimal. */
#include "trace/read/read_priv.h"

static const struct field *get(const struct fields *f, unsigned i)
{
	return f->seen & (UINT64_C(1) << i) ? &f->f[i] : NULL;
}

static const char too_far[] = "the time (ts) is out of range";

/* ---- strings ---- */

char *cop_trace_scratch(struct scratch *s, size_t len)
{
	if (!s->at) {
		s->at = malloc(s->size);
		s->size = s->at ? s->size : 0;
	}
	if (len > s->size - s->used || !s->at)
		return NULL;
	s->used += len;
	return s->at + s->used - len;
}

bool cop_trace_undo(struct cop_trace_str text, struct scratch *s, struct cop_trace_str *out)
{
	char *to = cop_trace_scratch(s, text.len);

	if (!to)
		return false;
	*out = (struct cop_trace_str){to, cop_json_undo(text.at, text.len, to)};
	return true;
}

static bool undo(const struct field *f, struct scratch *s, struct cop_trace_str *out)
{
	return cop_trace_undo((struct cop_trace_str){f->at, f->len}, s, out);
}

/* Returns a string or a number as text. */
static bool text(const struct fields *f, unsigned i, struct scratch *s, struct cop_trace_str *out)
{
	const struct field *at = get(f, i);

	if (at && at->type == T_ESCAPED)
		return undo(at, s, out);
	*out = (struct cop_trace_str){"", 0};
	if (at && at->type != T_WORD)
		*out = (struct cop_trace_str){at->at, at->len};
	return true;
}

/* ---- numbers ---- */

/* Longer text is not a number. */
#define NUMBER_MAX 63u

/* Unescapes the field; room has 6 bytes for each byte of a number. Returns false if the field
 * cannot be a number. */
static bool plain_number(const struct field *f, char room[6 * NUMBER_MAX], struct field *out)
{
	struct scratch s = {room, 0, 6 * (size_t)NUMBER_MAX};
	struct cop_trace_str undone;

	*out = *f;
	if (f->type == T_ESCAPED) {
		if (!undo(f, &s, &undone))
			return false;
		*out = (struct field){
			.at = undone.at, .len = (uint32_t)undone.len, .type = T_STRING};
	}
	return out->type != T_WORD && out->len > 0 && out->len <= NUMBER_MAX;
}

/* Parses a number with an exponent or another unusual form with strtod, which would accept leading
 * white space. */
static bool odd_number(const char *p, size_t len, int64_t scale, int64_t *out)
{
	char copy[NUMBER_MAX + 1], *end;
	double d;

	if (*p == ' ' || (*p >= '\t' && *p <= '\r'))
		return false;
	memcpy(copy, p, len);
	copy[len] = '\0';
	d = strtod(copy, &end) * (double)scale;
	if (end != copy + len || !(d > -9e18 && d < 9e18))
		return false;
	*out = (int64_t)(d < 0 ? d - 0.5 : d + 0.5);
	return true;
}

/* Converts the digits after the point, rounded to the precision of scale. */
static int64_t fraction(const char *p, const char *end, int64_t scale)
{
	int64_t v = 0;

	for (; p < end && scale > 1; p++) {
		scale /= 10;
		v += (*p - '0') * scale;
	}
	return v + (p < end && *p >= '5');
}

static bool is_fraction(const char *p, const char *end)
{
	if (*p != '.')
		return false;
	while (++p < end)
		if ((unsigned char)(*p - '0') >= 10)
			return false;
	return true;
}

static bool number(const char *text, size_t len, int64_t scale, int64_t *out)
{
	const char *p = text, *end = p + len, *begin;
	bool minus = *p == '-';
	uint64_t v = 0;

	begin = p += minus;
	for (; p < end && (unsigned char)(*p - '0') < 10; p++) {
		if (v > (uint64_t)INT64_MAX / 10 - 1)
			return odd_number(text, len, scale, out);
		v = v * 10 + (unsigned char)(*p - '0');
	}
	if (p == begin || v > (uint64_t)(INT64_MAX / scale - 1))
		return odd_number(text, len, scale, out);
	v *= (uint64_t)scale;
	if (p < end) {
		if (!is_fraction(p, end))
			return odd_number(text, len, scale, out);
		v += (uint64_t)fraction(p + 1, end, scale);
	}
	*out = minus ? -(int64_t)v : (int64_t)v;
	return true;
}

bool cop_trace_number(const struct field *f, int64_t scale, int64_t *out)
{
	char room[6 * NUMBER_MAX];
	struct field plain;

	return plain_number(f, room, &plain) && number(plain.at, plain.len, scale, out);
}

/* Converts microseconds to nanoseconds; *out is unchanged if there is no duration. */
static bool duration(const struct fields *f, unsigned i, uint64_t *out)
{
	const struct field *at = get(f, i);
	int64_t v;

	if (!at || at->type == T_WORD)
		return true;
	if (!cop_trace_number(at, 1000, &v) || v < 0 || (uint64_t)v > COP_TRACE_MOST)
		return false;
	*out = (uint64_t)v;
	return true;
}

bool cop_trace_hash(const struct field *f, uint64_t *hash)
{
	char room[6 * NUMBER_MAX];
	struct field plain;
	const char *p;
	unsigned base;
	size_t len;
	uint64_t v = 0;

	if (!plain_number(f, room, &plain))
		return false;
	p = plain.at;
	len = plain.len;
	base = plain.type == T_STRING && len <= 18 ? 16 : 10;
	if (base == 16 && len > 2 && p[0] == '0' && (p[1] | 32) == 'x') {
		p += 2;
		len -= 2;
	}
	if (len > (base == 16 ? 16 : 20))
		return false;
	for (size_t i = 0; i < len; i++) {
		unsigned digit = cop_json_hex_digit(p[i]);

		if (digit >= base)
			return false;
		v = v * base + digit;
	}
	*hash = v;
	return true;
}

/* ---- kinds ---- */

/* Other phases (objects, memory dumps, future ones) are delivered as metadata and counted as
 * omitted. */
static bool phase_letter(char c, struct record *r)
{
	static const struct {
		char letter;
		unsigned kind, half;
	} phases[] = {
		{'X', COP_TRACE_SPAN, HALF_NONE},
		{'B', COP_TRACE_SPAN, HALF_BEGIN},
		{'E', COP_TRACE_SPAN, HALF_END},
		{'b', COP_TRACE_SPAN, HALF_ASYNC_BEGIN},
		{'e', COP_TRACE_SPAN, HALF_ASYNC_END},
		{'S', COP_TRACE_SPAN, HALF_ASYNC_BEGIN},
		{'F', COP_TRACE_SPAN, HALF_ASYNC_END},
		{'T', COP_TRACE_INSTANT, HALF_NONE},
		{'p', COP_TRACE_INSTANT, HALF_NONE},
		{'C', COP_TRACE_COUNTER, HALF_NONE},
		{'i', COP_TRACE_INSTANT, HALF_NONE},
		{'I', COP_TRACE_INSTANT, HALF_NONE},
		{'n', COP_TRACE_INSTANT, HALF_NONE},
		{'P', COP_TRACE_INSTANT, HALF_NONE},
		{'R', COP_TRACE_INSTANT, HALF_NONE},
		{'s', COP_TRACE_FLOW, HALF_NONE},
		{'t', COP_TRACE_FLOW, HALF_NONE},
		{'f', COP_TRACE_FLOW, HALF_NONE},
		{'M', COP_TRACE_META, HALF_NONE},
	};

	r->half = HALF_NONE;
	r->e.kind = COP_TRACE_META;
	r->e.ph = c;
	for (size_t i = 0; i < COP_ARRAY_SIZE(phases); i++) {
		if (phases[i].letter != c)
			continue;
		r->e.kind = phases[i].kind;
		r->half = phases[i].half;
		return true;
	}
	return false;
}

/* DFTracer 2.x: 1 complete, 2 counter, 3 aggregated, 4 metadata. */
static bool phase_number(char c, struct record *r)
{
	static const enum cop_trace_kind kinds[] = {
		COP_TRACE_SPAN, COP_TRACE_COUNTER, COP_TRACE_AGGREGATE, COP_TRACE_META};
	static const char letters[] = "XCXM";

	r->half = HALF_NONE;
	r->e.kind = COP_TRACE_META;
	r->e.ph = c;
	if (c < '1' || c > '4')
		return false;
	r->e.kind = kinds[c - '1'];
	r->e.ph = letters[c - '1'];
	return true;
}

/* Reads the phase; returns false if absent. *known tells whether the reader supports it. */
static bool phase(const struct fields *f, struct record *r, bool *known)
{
	const struct field *at = get(f, F_PH);
	char c;

	*known = false;
	if (!at || !at->len || at->type == T_WORD)
		return false;
	c = at->len == 1 ? *at->at : 0;
	if (at->type == T_NUMBER || (c >= '0' && c <= '9'))
		*known = phase_number(c, r);
	else
		*known = phase_letter(c, r);
	return true;
}

bool cop_trace_is_event(const struct fields *f)
{
	struct record r;
	bool known;

	return phase(f, &r, &known) && known && (get(f, F_NAME) || get(f, F_TS) || get(f, F_PID));
}

/* Names are short: searching for the first letter is faster than a search with a setup cost. */
static bool holds(struct cop_trace_str s, const char *word, size_t len)
{
	for (size_t i = 0; i + len <= s.len; i++)
		if (s.at[i] == *word && !memcmp(s.at + i, word, len))
			return true;
	return false;
}

/* Sets the bytes transferred: the return value of POSIX reads and writes, else the size of an image
 * (TRACE.md, 1b). */
static void size(const struct fields *f, struct cop_trace_event *e)
{
	const struct field *at = get(f, F_RET);
	int64_t v;

	if (at && e->cat.len == 5 && !memcmp(e->cat.at, "POSIX", 5) &&
		cop_trace_number(at, 1, &v) && v > 0 && (uint64_t)v <= COP_TRACE_MOST &&
		(holds(e->name, "read", 4) || holds(e->name, "write", 5)) &&
		!holds(e->name, "readdir", 7)) {
		e->size = (uint64_t)v;
		e->has_size = true;
		return;
	}
	at = get(f, F_IMAGE_SIZE);
	if (at && cop_trace_number(at, 1, &v) && v >= 0 && (uint64_t)v <= COP_TRACE_MOST) {
		e->size = (uint64_t)v;
		e->has_size = true;
	}
}

static bool aggregate(const struct fields *f, struct cop_trace_event *e)
{
	const struct field *at = get(f, F_DFT_CNT);
	int64_t v;

	if (!at)
		return true;
	if (!cop_trace_number(at, 1, &v) || v < 0 || (uint64_t)v > COP_TRACE_MOST)
		return false;
	e->kind = COP_TRACE_AGGREGATE;
	e->count = (uint64_t)v;
	if (!duration(f, F_DUR_SUM, &e->dur_ns))
		return false;
	e->dur_min_ns = e->dur_max_ns = e->count ? e->dur_ns / e->count : 0;
	return duration(f, F_DUR_MIN, &e->dur_min_ns) && duration(f, F_DUR_MAX, &e->dur_max_ns);
}

static bool strings(const struct fields *f, struct scratch *s, struct cop_trace_event *e)
{
	const struct {
		unsigned first, second;
		struct cop_trace_str *out;
	} all[] = {
		{F_NAME, F_NAME, &e->name},
		{F_CAT, F_CAT, &e->cat},
		{F_PID, F_PID, &e->pid},
		{F_TID, F_TID, &e->tid},
		{F_FNAME, F_FHASH, &e->file},
		{F_HOSTNAME, F_HHASH, &e->host},
		{F_SCOPE, F_SCOPE, &e->scope},
		{F_ARG_NAME, F_ARG_NAME, &e->of},
	};

	for (size_t i = 0; i < COP_ARRAY_SIZE(all); i++)
		if (!text(f, get(f, all[i].first) ? all[i].first : all[i].second, s, all[i].out))
			return false;
	return true;
}

static char letter(const struct fields *f, unsigned i)
{
	const struct field *at = get(f, i);

	return at && at->type == T_STRING && at->len == 1 ? *at->at : 0;
}

/* Sets the id; id2 takes precedence over id. */
static bool take_id(const struct fields *f, struct scratch *s, struct cop_trace_event *e)
{
	const struct field *at = get(f, F_ID);

	e->id_kind = get(f, F_ID2_LOCAL)    ? COP_TRACE_ID_PROCESS
		     : get(f, F_ID2_GLOBAL) ? COP_TRACE_ID_ALL
					    : COP_TRACE_ID_FILE;
	e->id_is_text = e->id_kind || (at && (at->type == T_STRING || at->type == T_ESCAPED));
	return text(f,
		e->id_kind == COP_TRACE_ID_PROCESS ? F_ID2_LOCAL
		: e->id_kind                       ? F_ID2_GLOBAL
						   : F_ID,
		s, &e->id);
}

/* Reads the metadata of a process: its rank, from a PR event with a member rank or the name "rank",
 * or its labels. */
static bool take_meta(const struct fields *f, struct scratch *s, struct cop_trace_event *e)
{
	if (cop_trace_str_is(e->name, "process_labels"))
		return text(f, F_ARG_LABELS, s, &e->of);
	return text(f, !get(f, F_RANK) && cop_trace_str_is(e->of, "rank") ? F_ARG_VALUE : F_RANK, s,
		&e->rank);
}

static bool is_true(const struct fields *f, unsigned i)
{
	const struct field *at = get(f, i);

	return at && at->len == 4 && !memcmp(at->at, "true", 4);
}

/* Concatenates the members that a timeline keeps in scratch. */
static bool take_more(const struct fields *f, struct scratch *s, struct cop_trace_str *out)
{
	static const struct {
		unsigned field;
		const char *key;
	} all[] = {{F_TTS, "\"tts\":"}, {F_TDUR, "\"tdur\":"}, {F_CNAME, "\"cname\":"}};

	for (size_t i = 0; i < COP_ARRAY_SIZE(all); i++) {
		const struct field *at = get(f, all[i].field);
		size_t key = strlen(all[i].key), quote;
		char *to;

		if (!at || at->type == T_WORD)
			continue;
		quote = at->type != T_NUMBER;
		to = cop_trace_scratch(s, key + at->len + 3);
		if (!to)
			return false;
		*to = ',';
		memcpy(to + 1, all[i].key, key);
		memset(to + 1 + key, '"', 1);
		memcpy(to + 1 + key + quote, at->at, at->len);
		memset(to + 1 + key + quote + at->len, '"', quote);
		if (!out->len)
			out->at = to + 1;
		s->used = (size_t)(to - s->at) + 1 + key + 2 * quote + at->len;
		out->len = (size_t)(s->at + s->used - out->at);
	}
	return true;
}

static bool take_flow(const struct fields *f, struct scratch *s, struct cop_trace_event *e)
{
	const struct field *at = get(f, F_BIND_ID);

	e->flow_in = is_true(f, F_FLOW_IN);
	e->flow_out = is_true(f, F_FLOW_OUT);
	e->bind_is_text = at && (at->type == T_STRING || at->type == T_ESCAPED);
	return !at || text(f, F_BIND_ID, s, &e->bind_id);
}

/* Reads the members that only some kinds have. */
static bool rest(const struct fields *f, struct scratch *s, struct cop_trace_event *e)
{
	const struct cop_trace_str none = {"", 0};
	const struct field *args = get(f, F_ARGS);

	e->bp = letter(f, F_BP);
	e->s = letter(f, F_S);
	e->unfinished = false;
	e->values = 0;
	e->rank = e->end_args = e->process = e->thread = e->bind_id = e->more = none;
	e->bind_is_text = e->flow_in = e->flow_out = e->old_async = false;
	e->args = args ? (struct cop_trace_str){args->at, args->len} : none;
	e->args_odd = args && f->args_odd;
	if ((f->seen & RARE_FIELDS) && !(take_more(f, s, &e->more) && take_flow(f, s, e)))
		return false;
	return take_id(f, s, e) && (e->kind != COP_TRACE_META || take_meta(f, s, e));
}

/* Converts the old phases of spans with an id: S T p F become b n n e. */
static void be_new(struct record *r)
{
	if (r->e.ph == 'S' || r->e.ph == 'F') {
		r->e.ph = r->e.ph == 'S' ? 'b' : 'e';
		r->e.old_async = true;
	} else if (r->e.ph == 'T' || r->e.ph == 'p') {
		r->e.ph = r->e.id.len ? 'n' : 'i';
	} else if (r->e.ph == 'P') {
		r->e.ph = 'i';
	}
}

const char *cop_trace_event_of(const struct fields *f, struct scratch *s, struct record *out)
{
	struct cop_trace_event *e = &out->e;
	const struct field *ts = get(f, F_TS);
	bool known;

	if (!phase(f, out, &known))
		return "no event: it has no phase (ph)";
	e->ts_ns = 0;
	e->dur_ns = e->size = 0;
	e->has_size = false;
	e->count = 1;
	if (e->kind != COP_TRACE_META && (!ts || !cop_trace_number(ts, 1000, &e->ts_ns)))
		return ts && ts->type == T_NUMBER ? too_far : "no event: it has no time (ts)";
	if (!duration(f, F_DUR, &e->dur_ns))
		return "the duration (dur) is not a number from 0";
	e->dur_min_ns = e->dur_max_ns = e->dur_ns;
	if ((e->kind == COP_TRACE_SPAN || e->kind == COP_TRACE_AGGREGATE) && !aggregate(f, e))
		return "the counts of an aggregated event are no numbers";
	if (!cop_trace_is_in_range(e->ts_ns))
		return too_far;
	if (!strings(f, s, e) || !rest(f, s, e))
		return "an event that is too long";
	be_new(out);
	e->file_is_hash = e->file.len && !get(f, F_FNAME);
	e->host_is_hash = e->host.len && !get(f, F_HOSTNAME);
	if (e->kind == COP_TRACE_SPAN || e->kind == COP_TRACE_AGGREGATE)
		size(f, e);
	return NULL;
}
