/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the events in a file and the bytes after which a block may end. It goes by JSON structure,
 * not by line breaks: a line may have several events, an event may span several lines, and objects
 * outside traceEvents are not events. It looks only at strings and brackets; the parser does the
 * rest.
 *
 * A file is a sequence of events and documents, with optional brackets and commas in between: a
 * bare event (DFTracer), an array (PerfFlowAspect, never closed), an object with traceEvents
 * (torch.profiler), or a sequence of these.
 *
 * Most files have one event per line and no arrays. For these, it is enough that the line before
 * the cut is an event; quotes and brackets are examined only if a block has an array bracket.
 *
 * Damage must not hide later events. A string ends at the end of its line at the latest, and an
 * object where JSON does not allow one means that the previous object was truncated. */
#include "trace/read/read_priv.h"

/* ---- one object ---- */

#ifdef __SSE2__
/* Finds the next quote or bracket at or after p; the padding contains quotes, so there is one. */
static inline const char *next_mark(const char *p)
{
	const __m128i quote = _mm_set1_epi8('"'), bit = _mm_set1_epi8(0x20),
		      open = _mm_set1_epi8('{'), close = _mm_set1_epi8('}');

	for (;; p += 16) {
		__m128i b = _mm_loadu_si128((const __m128i *)(const void *)p);
		__m128i low = _mm_or_si128(b, bit);
		__m128i hit = _mm_or_si128(_mm_cmpeq_epi8(b, quote),
			_mm_or_si128(_mm_cmpeq_epi8(low, open), _mm_cmpeq_epi8(low, close)));
		unsigned bits = (unsigned)_mm_movemask_epi8(hit);

		if (bits)
			return p + __builtin_ctz(bits);
	}
}
#else
static inline const char *next_mark(const char *p)
{
	while (*p != '"' && (*p | 0x20) != '{' && (*p | 0x20) != '}')
		p++;
	return p;
}
#endif

/* Returns the last nonblank byte before p; there must be one. */
static char before(const char *p)
{
	do
		p--;
	while (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r');
	return *p;
}

enum { WALK_END, WALK_MORE, WALK_DOCUMENT, WALK_BROKEN };
struct walk {
	const char *p; /* in: the object; out: the byte after it, or where to resume */
	bool event;    /* the object has a member ph */
};

static bool is_key(const char *at, size_t len, const char *key)
{
	return len == strlen(key) && !memcmp(at, key, len);
}

static int walk_object(struct walk *w, const char *end)
{
	const char *p = w->p, *key = p;
	uint64_t objects = 0; /* one bit for each of the innermost levels, set if it is an object */
	unsigned depth = 0;
	size_t key_len = 0;
	struct cop_json_scan s = {0};
	bool escaped = false, deep = false;

	for (w->event = false;; p++) {
		bool open;

		p = next_mark(p);
		if (p >= end)
			return WALK_MORE;
		if (*p == '"') {
			const char *at = p + 1;

			p = cop_json_string(at, end, &escaped, &s);
			if (!p) {
				w->p = COP_MIN(s.at + 1, end);
				return s.at >= end ? WALK_MORE : WALK_BROKEN;
			}
			if (depth == 1) {
				key = at;
				key_len = (size_t)(p - at);
				w->event |= is_key(at, key_len, "ph");
			}
			continue;
		}
		open = *p == '{' || *p == '[';
		if (open && depth) {
			char c = before(p);

			w->p = p;
			if (!deep && (objects & 1 ? c != ':' : c != ',' && c != '['))
				return WALK_BROKEN;
			if (depth == 1 && *p == '[' && is_key(key, key_len, "traceEvents"))
				return WALK_DOCUMENT;
		}
		if (open) {
			objects = objects << 1 | (*p == '{');
			deep |= ++depth > 64;
			continue;
		}
		w->p = p + 1;
		if (!deep && (objects & 1) != (*p == '}'))
			return WALK_BROKEN;
		objects >>= 1;
		if (!--depth)
			return WALK_END;
	}
}

/* ---- many events ---- */

/* Cuts after the last line that holds exactly one event, trying the last eight lines. Returns the
 * length up to there, or 0. */
static size_t cut_lines(const char *data, size_t len)
{
	const char *end = data + len;

	for (unsigned tries = 0; tries < 8; tries++) {
		const char *last = end > data ? memrchr(data, '\n', (size_t)(end - data)) : NULL;
		const char *line =
			last && last > data ? memrchr(data, '\n', (size_t)(last - data)) : NULL;
		struct cop_json_scan s;
		struct fields f;

		if (!last)
			return 0;
		line = cop_json_blanks(line ? line + 1 : data);
		end = last;
		if (line >= last || *line != '{')
			continue;
		line = cop_trace_scan(line, last, &f, &s);
		while (line && line < last && (*line == ',' || *line == ' ' || *line == '\r'))
			line++;
		if (line == last && cop_trace_has(&f, F_PH))
			return (size_t)(last + 1 - data);
	}
	return 0;
}

/* Returns the position after the object at p, or NULL if it is incomplete. Sets *next if it is a
 * document. */
static const char *pass_object(const char *p, const char *end, enum cut *next, bool *event)
{
	struct walk w = {.p = p};

	switch (walk_object(&w, end)) {
	case WALK_MORE:
		*event = w.event;
		return NULL;
	case WALK_DOCUMENT:
		*next = CUT_DOCUMENT;
		return p;
	default:
		return w.p;
	}
}

static bool is_mark(const char *p, const char *end)
{
	return end - p >= 3 && !memcmp(p, "\xef\xbb\xbf", 3); /* byte order mark */
}

static size_t cut_objects(
	const struct split *s, const char *data, size_t len, enum cut *next, bool *event)
{
	const char *p = data, *end = data + len, *q;

	while (p < end) {
		switch (*p) {
		case ' ':
		case '\t':
		case '\r':
		case '\n':
		case ',':
		case '[':
		case '}':
			p++;
			break;
		case ']':
			p++;
			if (s->where != AT_ARRAY)
				break;
			*next = CUT_ARRAY;
			return (size_t)(p - data);
		case '{':
			q = pass_object(p, end, next, event);
			if (!q || *next == CUT_DOCUMENT)
				return (size_t)(p - data);
			p = q;
			break;
		default:
			if (is_mark(p, end)) {
				p += 3;
				break;
			}
			q = memchr(p, '\n', (size_t)(end - p));
			if (!q)
				return (size_t)(p - data);
			p = q + 1;
		}
	}
	return len;
}

size_t cop_trace_cut(
	const struct split *s, const char *data, size_t len, enum cut *next, bool *event)
{
	size_t n = 0;

	*next = CUT_NONE;
	*event = false;
	if (!memchr(data, '[', len) && !memchr(data, ']', len))
		n = cut_lines(data, len);
	return n ? n : cut_objects(s, data, len, next, event);
}

/* ---- a document outside of its traceEvents ---- */

void cop_trace_split_enter(struct split *s, unsigned depth, bool lost)
{
	s->back = s->where;
	s->where = AT_OBJECT;
	s->lost = lost;
	s->string = s->escape = s->fresh = s->value = s->of_rank = false;
	s->depth = depth;
	s->text_len = 0;
	s->key = KEY_OTHER;
	if (!depth && !lost) {
		s->has_base = false;
		s->rank_len = 0;
	}
}

static enum key key_of(const struct split *s)
{
	if (s->depth == 2)
		return s->of_rank && is_key(s->text, s->text_len, "rank") ? KEY_RANK : KEY_OTHER;
	if (s->depth != 1)
		return KEY_OTHER;
	return is_key(s->text, s->text_len, "traceEvents")           ? KEY_EVENTS
	       : is_key(s->text, s->text_len, "baseTimeNanoseconds") ? KEY_BASE
	       : is_key(s->text, s->text_len, "distributedInfo")     ? KEY_DISTRIBUTED
								     : KEY_OTHER;
}

/* Called at the end of a value; keeps it if its key is of interest. */
static void take_value(struct split *s)
{
	struct field f = {.at = s->text, .len = (uint32_t)s->text_len, .type = T_NUMBER};
	int64_t v;

	if (s->key == KEY_BASE && cop_trace_number(&f, 1, &v)) {
		s->has_base = true;
		s->base_ns = v;
	}
	if (s->key == KEY_RANK && cop_trace_number(&f, 1, &v) && s->text_len < sizeof(s->rank)) {
		memcpy(s->rank, s->text, s->text_len);
		s->rank_len = s->text_len;
	}
	s->key = KEY_OTHER;
	s->value = false;
}

static void keep_char(struct split *s, char c)
{
	if (s->text_len < sizeof(s->text))
		s->text[s->text_len++] = c;
}

static void in_string(struct split *s, char c)
{
	if (s->escape)
		s->escape = false;
	else if (c == '\\')
		s->escape = true;
	else if (c == '"')
		s->string = false;
	if (s->string)
		keep_char(s, c);
}

/* Handles one byte outside strings. Returns false if the array of events begins after it. */
static bool outside(struct split *s, char c)
{
	switch (c) {
	case '"':
		s->string = true;
		s->text_len = 0;
		break;
	case ':':
		s->key = key_of(s);
		s->value = true;
		s->text_len = 0;
		break;
	case '[':
		if (s->key == KEY_EVENTS)
			return false;
		s->depth++;
		s->key = KEY_OTHER;
		break;
	case '{':
		s->of_rank = s->key == KEY_DISTRIBUTED;
		s->depth++;
		s->key = KEY_OTHER;
		break;
	case ',':
	case '}':
	case ']':
		take_value(s);
		s->depth -= c != ',' && s->depth;
		break;
	case ' ':
	case '\t':
	case '\r':
	case '\n':
		break;
	default:
		keep_char(s, c);
	}
	return true;
}

/* Whether c ends an oversized event: an object at the start of a line does, and so does a newline
 * within a string. */
static bool ends_lost(struct split *s, char c)
{
	if (c == '\n' && s->string)
		return true;
	if (c == '{' && s->fresh)
		return true;
	s->fresh = c == '\n' || (s->fresh && (c == ' ' || c == '\t'));
	return false;
}

size_t cop_trace_split_seek(struct split *s, const char *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char c = data[i];

		if (s->lost && ends_lost(s, c)) {
			s->where = s->back;
			return i;
		}
		if (s->string) {
			in_string(s, c);
		} else if (!outside(s, c)) {
			s->where = AT_ARRAY;
			s->found = true;
			return i + 1;
		} else if (!s->depth) {
			s->where = s->lost ? s->back : AT_TOP;
			return i + 1;
		}
	}
	return len;
}

/* ---- format detection ---- */

struct look {
	struct split split;
	bool bracket; /* begins with a bracket */
	bool event;   /* an event was found */
	bool number;  /* its phase is a number */
	bool open;    /* the bytes end within an object */
	int64_t first_us;
};

static void take_event(struct look *k, const struct fields *f)
{
	const struct field *ph = &f->f[F_PH];

	k->event = true;
	if (!cop_trace_has(f, F_PH))
		return;
	k->number = ph->type == T_NUMBER;
	if (!cop_trace_has(f, F_TS) || !cop_trace_number(&f->f[F_TS], 1, &k->first_us))
		k->first_us = INT64_MAX;
}

/* Searches for an event among the objects from p to end. */
static void look_for_event(struct look *k, const char *p, const char *end)
{
	while (p < end && !k->event) {
		struct cop_json_scan s;
		struct fields f;
		const char *q;

		if (*p != '{') {
			bool other = !strchr(" \t\r\n,[]}", *p) || !*p;

			q = other ? memchr(p, '\n', (size_t)(end - p)) : p;
			p = q ? q + 1 : end;
			continue;
		}
		q = cop_trace_scan(p, end, &f, &s);
		if (cop_trace_is_event(&f) || (q && cop_trace_is_otel(&f)))
			take_event(k, &f);
		p = q ? q : cop_trace_resume(p, s.at, end);
	}
}

/* Walks through the bytes to the first event, just as a read does. */
static void look_at(struct look *k, const char *p, const char *end, bool whole)
{
	while (p < end && !k->event) {
		enum cut next;
		bool event;
		size_t n;

		if (k->split.where == AT_OBJECT) {
			p += cop_trace_split_seek(&k->split, p, (size_t)(end - p));
			continue;
		}
		n = cop_trace_cut(&k->split, p, (size_t)(end - p), &next, &event);
		k->open = n < (size_t)(end - p) && next == CUT_NONE;
		if (whole && next == CUT_NONE)
			n = (size_t)(end - p);
		look_for_event(k, p, p + n);
		p += n;
		if (next != CUT_NONE)
			cop_trace_split_enter(&k->split, next == CUT_ARRAY, false);
		else if (!n)
			return;
	}
}

static bool is_nothing(const char *p, const char *end)
{
	while (p < end && strchr(" \t\r\n,[]", *p) && *p)
		p++;
	return p == end;
}

static const char no_json[] = "it is neither JSON nor gzip", no_array[] = "it has no traceEvents",
		  no_event[] = "it has no event of a format that is known",
		  cut_off[] = "it is cut off before its first event";

bool cop_trace_is_other(const char *why)
{
	return why == no_json || why == no_array || why == no_event;
}

const char *cop_trace_look(const struct beginning *b, struct first *out)
{
	const char *p = b->data, *end = p + b->len;
	struct look k = {.first_us = INT64_MAX};
	bool json;

	p += is_mark(p, end) ? 3 : 0;
	*out = (struct first){.skip = (size_t)(p - b->data)};
	p = cop_json_blanks(p);
	while (p < end && *p == ',')
		p = cop_json_blanks(p + 1);
	if (p >= end)
		return "it is empty";
	json = *p == '{' || *p == '[';
	if (json || b->anywhere)
		look_at(&k, p, end, b->whole);
	out->number = k.number;
	out->first_us = k.first_us;
	out->document = k.split.found;
	if (k.event || k.split.found || (json && is_nothing(p, end) && b->whole))
		return NULL;
	out->may_come = !b->whole && json;
	if (b->len >= 4 && !memcmp(b->data, "\x28\xb5\x2f\xfd", 4))
		return "it is compressed by zstd: give <(zstd -dc FILE) in its place";
	if (!json)
		return no_json;
	if (b->whole && (k.split.where == AT_OBJECT || k.open))
		return cut_off;
	return *p == '{' ? no_array : no_event;
}
