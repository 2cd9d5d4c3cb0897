/* SPDX-License-Identifier: BSD-3-Clause */
/* Scans the members of an event. Keys are compared as one machine word; values are not copied, and
 * nested values are skipped. */
#include "trace/read/read_priv.h"

/* ---- keys ---- */

#define K1(a) ((uint64_t)(unsigned char)(a))
#define K2(a, b) (K1(a) | K1(b) << 8)
#define K4(a, b, c, d) (K2(a, b) | K2(c, d) << 16)
#define K8(a, b, c, d, e, f, g, h) (K4(a, b, c, d) | K4(e, f, g, h) << 32)

static unsigned field_of_event(uint64_t key)
{
	switch (key) {
	case K4('n', 'a', 'm', 'e'):
		return F_NAME;
	case K4('c', 'a', 't', 0):
		return F_CAT;
	case K4('p', 'i', 'd', 0):
		return F_PID;
	case K4('t', 'i', 'd', 0):
		return F_TID;
	case K2('t', 's'):
		return F_TS;
	case K4('d', 'u', 'r', 0):
		return F_DUR;
	case K2('p', 'h'):
		return F_PH;
	case K2('i', 'd'):
		return F_ID;
	case K4('i', 'd', '2', 0):
		return F_ID2;
	case K4('a', 'r', 'g', 's'):
		return F_ARGS;
	case K8('s', 'c', 'o', 'p', 'e', 0, 0, 0):
		return F_SCOPE;
	case K2('b', 'p'):
		return F_BP;
	case K1('s'):
		return F_S;
	case K8('b', 'i', 'n', 'd', '_', 'i', 'd', 0):
		return F_BIND_ID;
	case K8('f', 'l', 'o', 'w', '_', 'i', 'n', 0):
		return F_FLOW_IN;
	case K8('f', 'l', 'o', 'w', '_', 'o', 'u', 't'):
		return F_FLOW_OUT;
	case K4('t', 't', 's', 0):
		return F_TTS;
	case K4('t', 'd', 'u', 'r'):
		return F_TDUR;
	case K8('c', 'n', 'a', 'm', 'e', 0, 0, 0):
		return F_CNAME;
	case K8('c', 'o', 'n', 't', 'e', 'x', 't', 0):
		return F_CONTEXT;
	default:
		return FIELDS;
	}
}

static unsigned field_of_args(uint64_t key)
{
	switch (key) {
	case K8('h', 'h', 'a', 's', 'h', 0, 0, 0):
		return F_HHASH;
	case K8('f', 'h', 'a', 's', 'h', 0, 0, 0):
		return F_FHASH;
	case K8('f', 'n', 'a', 'm', 'e', 0, 0, 0):
		return F_FNAME;
	case K8('h', 'o', 's', 't', 'n', 'a', 'm', 'e'):
		return F_HOSTNAME;
	case K4('r', 'e', 't', 0):
		return F_RET;
	case K8('d', 'f', 't', '_', 'c', 'n', 't', 0):
		return F_DFT_CNT;
	case K8('d', 'u', 'r', '_', 'm', 'i', 'n', 0):
		return F_DUR_MIN;
	case K8('d', 'u', 'r', '_', 'm', 'a', 'x', 0):
		return F_DUR_MAX;
	case K8('d', 'u', 'r', '_', 's', 'u', 'm', 0):
		return F_DUR_SUM;
	case K4('n', 'a', 'm', 'e'):
		return F_ARG_NAME;
	case K8('v', 'a', 'l', 'u', 'e', 0, 0, 0):
		return F_ARG_VALUE;
	case K8('l', 'a', 'b', 'e', 'l', 's', 0, 0):
		return F_ARG_LABELS;
	case K4('r', 'a', 'n', 'k'):
		return F_RANK;
	case K4('r', 't', 't', 0):
		return F_RTT;
	default:
		return FIELDS;
	}
}

/* Returns the key as a little-endian number. Eight bytes must be readable at p. */
static inline uint64_t key_word(const char *p, size_t len)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	uint64_t w;

	memcpy(&w, p, sizeof(w));
	return len == 8 ? w : w & ((1ULL << 8 * len) - 1);
#else
	uint64_t w = 0;

	for (size_t i = 0; i < len; i++)
		w |= (uint64_t)(unsigned char)p[i] << 8 * i;
	return w;
#endif
}

static unsigned long_field(const char *key, size_t len, bool args)
{
	static const struct {
		const char *key;
		bool args;
		unsigned field;
	} all[] = {
		{"image_size", true, F_IMAGE_SIZE},
		{"resourceSpans", false, F_RESOURCE_SPANS},
		{"resourceMetrics", false, F_RESOURCE_METRICS},
		{"resourceLogs", false, F_RESOURCE_LOGS},
		{"SpanContext", false, F_CONTEXT},
		{"start_time", false, F_START_TIME},
		{"StartTime", false, F_START_TIME},
	};

	for (size_t i = 0; i < COP_ARRAY_SIZE(all); i++)
		if (all[i].args == args && len == strlen(all[i].key) &&
			!memcmp(key, all[i].key, len))
			return all[i].field;
	return FIELDS;
}

static inline unsigned field_at(const char *key, size_t len, bool args)
{
	unsigned i;

	if (len && len <= 8) {
		i = args ? field_of_args(key_word(key, len)) : field_of_event(key_word(key, len));
		return key[len - 1] ? i : FIELDS; /* "ts" with a NUL is a different key */
	}
	return long_field(key, len, args);
}

/* Handles a key with escapes, which may stand for letters. */
static unsigned escaped_field(const char *key, size_t len, bool args)
{
	char plain[6 * 16 + 8] = {0};

	if (len > 6 * 16)
		return FIELDS;
	return field_at(plain, cop_json_undo(key, len, plain), args);
}

unsigned cop_trace_field_for_test(const char *key, size_t len, bool args)
{
	char padded[24] = {0};

	if (len > 16)
		return FIELDS;
	memcpy(padded, key, len);
	return field_at(padded, len, args);
}

/* ---- objects ---- */

static inline void set(struct fields *out, unsigned i, struct field f)
{
	out->f[i] = f;
	out->seen |= UINT64_C(1) << i;
}

static inline void unset(struct fields *out, unsigned i)
{
	out->seen &= ~(UINT64_C(1) << i);
}

static const char *scan_members(
	const char *p, const char *end, bool args, struct fields *out, struct cop_json_scan *s);

/* Unsets a member that is repeated or unusable, with its nested members. */
static void forget(struct fields *out, unsigned i)
{
	unset(out, i);
	if (i == F_ARGS)
		out->seen &= ~ARGS_FIELDS;
	if (i == F_ID2) {
		unset(out, F_ID2_LOCAL);
		unset(out, F_ID2_GLOBAL);
	}
}

/* Reads id2, which is {"local":ID} or {"global":ID}. */
static void take_id2(struct cop_trace_str object, struct fields *out)
{
	struct cop_trace_members m = cop_trace_members_of(object);
	struct cop_trace_str key, v;

	while (cop_trace_members_next(&m, &key, &v)) {
		bool local = cop_trace_str_is(key, "local"), string = *v.at == '"';
		struct field f = {.at = v.at + string,
			.len = (uint32_t)(v.len - 2 * string),
			.type = string ? T_STRING : T_NUMBER};

		if ((!local && !cop_trace_str_is(key, "global")) || *v.at == '{' || *v.at == '[')
			continue;
		if (string && memchr(f.at, '\\', f.len))
			f.type = T_ESCAPED;
		set(out, local ? F_ID2_LOCAL : F_ID2_GLOBAL, f);
	}
}

/* Scans the nested value of member i at p. */
static const char *scan_nested(
	const char *p, const char *end, unsigned i, struct fields *out, struct cop_json_scan *s)
{
	const char *q;

	if (i < FIELDS)
		forget(out, i);
	if (i == F_ARGS && *p == '{') {
		bool odd = s->odd;

		s->odd = false;
		q = scan_members(p, end, true, out, s);
		out->args_odd = s->odd;
		s->odd |= odd;
	} else {
		q = cop_json_nested(p, end, s);
	}
	if (!q || i == FIELDS)
		return q;
	if ((i == F_ARGS && *p == '{') || cop_trace_is_nested(i))
		set(out, i, (struct field){.at = p, .len = (uint32_t)(q - p), .type = T_WORD});
	else if (i == F_ID2)
		take_id2((struct cop_trace_str){p, (size_t)(q - p)}, out);
	return q;
}

/* Scans the value of member i at p, and stores it if there is a field for it. */
static inline const char *scan_value(
	const char *p, const char *end, unsigned i, struct fields *out, struct cop_json_scan *s)
{
	bool is = false;
	struct field f = {.at = p};

	if (*p == '"') {
		f.at = p + 1;
		p = cop_json_string(p + 1, end, &is, s);
		if (!p)
			return NULL;
		f.len = (uint32_t)(p++ - f.at);
		f.type = is ? T_ESCAPED : T_STRING;
	} else if (*p == '{' || *p == '[') {
		return scan_nested(p, end, i, out, s);
	} else {
		p = cop_json_scalar(p, &is, s);
		if (!p)
			return NULL;
		f.len = (uint32_t)(p - f.at);
		f.type = is ? T_WORD : T_NUMBER;
	}
	if (i == F_ARGS || i == F_ID2 || cop_trace_is_nested(i))
		forget(out, i);
	else if (i < FIELDS)
		set(out, i, f);
	return p;
}

static const char *fail(struct cop_json_scan *s, const char *at, const char *end, const char *why)
{
	s->at = COP_MIN(at, end);
	s->why = at >= end ? "the event is cut off" : why;
	return NULL;
}

__attribute__((always_inline)) static inline const char *members(
	const char *p, const char *end, bool args, struct fields *out, struct cop_json_scan *s)
{
	p = cop_json_blanks(p + 1);
	if (*p == '}')
		return p + 1;
	for (;;) {
		const char *key = p + 1;
		bool escaped = false;
		size_t len;
		unsigned i;

		if (*p != '"')
			return fail(s, p, end, "no name in quotes stands here");
		p = cop_json_string(key, end, &escaped, s);
		if (!p)
			return NULL;
		len = (size_t)(p - key);
		p = cop_json_blanks(p + 1);
		if (*p != ':')
			return fail(s, p, end, "a colon is missing");
		i = escaped ? escaped_field(key, len, args) : field_at(key, len, args);
		p = scan_value(cop_json_blanks(p + 1), end, i, out, s);
		if (!p)
			return s->at >= end ? fail(s, end, end, NULL) : NULL;
		p = cop_json_blanks(p);
		if (*p == ',') {
			p = cop_json_blanks(p + 1);
			if (*p != '}')
				continue;
			s->odd = true;
		}
		return *p == '}' ? p + 1 : fail(s, p, end, "a comma is missing");
	}
}

static const char *scan_members(
	const char *p, const char *end, bool args, struct fields *out, struct cop_json_scan *s)
{
	return args ? members(p, end, true, out, s) : members(p, end, false, out, s);
}

const char *cop_trace_scan(
	const char *p, const char *end, struct fields *out, struct cop_json_scan *s)
{
	out->seen = 0;
	out->args_odd = s->odd = false;
	p = members(p, end, false, out, s);
	return !p || p <= end ? p : fail(s, p, end, NULL);
}

const char *cop_trace_skip(const char *p, const char *end)
{
	unsigned depth = 0;
	bool escaped = false;
	struct cop_json_scan s = {0};

	while (p < end && *p != '\n') {
		char c = *p++;

		if (c == '{')
			depth++;
		else if (c == '}' && !--depth)
			return p;
		else if (c == '"') {
			p = cop_json_string(p, end, &escaped, &s);
			if (!p)
				return NULL;
			p++;
		}
	}
	return NULL;
}
