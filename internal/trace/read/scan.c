/* SPDX-License-Identifier: BSD-3-Clause */
/* The scanner of flat event objects. It looks at each byte once: eight at a time inside of strings,
 * since most bytes are there (the test for a byte in a word is the well known one by Alan Mycroft),
 * and one at a time elsewhere. Keys are compared as one word. It copies nothing and converts
 * nothing, and declines whatever is not plain. */
#include <string.h>

#include "trace/read/read_priv.h"

#define ONES 0x0101010101010101ULL
#define HIGHS 0x8080808080808080ULL

static inline uint64_t load(const char *p)
{
	uint64_t w;

	memcpy(&w, p, sizeof(w));
	return w;
}

static inline uint64_t has_byte(uint64_t w, unsigned char c)
{
	w ^= ONES * c;
	return (w - ONES) & ~w & HIGHS;
}

void cop_trace_pad(char *end)
{
	memset(end, '"', SCAN_PAD);
}

/* The first quote or backslash at or after p; the padding contains quotes. */
static inline const char *string_stop(const char *p)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	for (;; p += 8) {
		uint64_t w = load(p), hit = has_byte(w, '"') | has_byte(w, '\\');

		/* Only the lowest hit is exact. */
		if (hit)
			return p + __builtin_ctzll(hit) / 8;
	}
#else
	while (*p != '"' && *p != '\\')
		p++;
	return p;
#endif
}

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* p is a backslash; returns what follows the escape, or NULL. */
static const char *skip_escape(const char *p)
{
	if (p[1] == 'u')
		return is_hex(p[2]) && is_hex(p[3]) && is_hex(p[4]) && is_hex(p[5]) ? p + 6 : NULL;
	return p[1] && strchr("\"\\/bfnrt", p[1]) ? p + 2 : NULL;
}

/* p follows the opening quote; returns the closing one, or NULL. */
__attribute__((always_inline)) static inline const char *string_end(
	const char *p, const char *end, bool *escaped)
{
	for (;;) {
		p = string_stop(p);
		if (p >= end)
			return NULL;
		if (*p == '"')
			return p;
		*escaped = true;
		p = skip_escape(p);
		if (!p || p >= end)
			return NULL;
	}
}

static inline const char *blanks(const char *p)
{
	while (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')
		p++;
	return p;
}

/* -12.5; declines exponents, and numbers that begin with 0, as the standard does. */
static inline const char *number_end(const char *p)
{
	const char *digits;

	p += *p == '-';
	digits = p;
	while ((unsigned char)(*p - '0') < 10)
		p++;
	if (p == digits || (*digits == '0' && p > digits + 1))
		return NULL;
	if (*p == '.') {
		digits = ++p;
		while ((unsigned char)(*p - '0') < 10)
			p++;
		if (p == digits)
			return NULL;
	}
	return p;
}

static const char *word_end(const char *p)
{
	if (!memcmp(p, "true", 4) || !memcmp(p, "null", 4))
		return p + 4;
	return memcmp(p, "false", 5) ? NULL : p + 5;
}

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
	case K8('s', 'c', 'o', 'p', 'e', 0, 0, 0):
		return F_SCOPE;
	case K2('b', 'p'):
		return F_BP;
	case K1('s'):
		return F_S;
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

/* The key as a number, its first byte the lowest. Eight bytes can be read from p. */
static inline uint64_t key_word(const char *p, size_t len)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return len == 8 ? load(p) : load(p) & ((1ULL << 8 * len) - 1);
#else
	uint64_t w = 0;

	for (size_t i = 0; i < len; i++)
		w |= (uint64_t)(unsigned char)p[i] << 8 * i;
	return w;
#endif
}

static inline unsigned field_at(const char *key, size_t len, bool args)
{
	unsigned i;

	if (len && len <= 8) {
		i = args ? field_of_args(key_word(key, len)) : field_of_event(key_word(key, len));
		return key[len - 1] ? i : FIELDS; /* "ts" and a NUL is a different key */
	}
	return args && len == 10 && !memcmp(key, "image_size", 10) ? F_IMAGE_SIZE : FIELDS;
}

unsigned cop_trace_field(const char *key, size_t len, bool args)
{
	char padded[16] = {0};

	if (len > 10 || !len)
		return FIELDS;
	memcpy(padded, key, len);
	return field_at(padded, len, args);
}

/* ---- objects ---- */

/* Reads a value that does not nest into *f. */
static inline const char *scan_value(const char *p, const char *end, struct field *f)
{
	bool escaped = false;

	if (*p == '"') {
		f->at = p + 1;
		p = string_end(p + 1, end, &escaped);
		if (!p)
			return NULL;
		f->len = (uint32_t)(p - f->at);
		f->type = escaped ? T_ESCAPED : T_STRING;
		return p + 1;
	}
	f->at = p;
	f->type = T_NUMBER;
	if (*p != '-' && (unsigned char)(*p - '0') >= 10) {
		f->type = T_WORD;
		p = word_end(p);
	} else {
		p = number_end(p);
	}
	if (p)
		f->len = (uint32_t)(p - f->at);
	return p;
}

static inline const char *scan_key(const char *p, const char *end, const char **key, size_t *len)
{
	bool escaped = false;
	const char *q;

	if (*p != '"')
		return NULL;
	q = string_end(p + 1, end, &escaped);
	if (!q || escaped)
		return NULL;
	*key = p + 1;
	*len = (size_t)(q - p - 1);
	p = blanks(q + 1);
	return *p == ':' ? blanks(p + 1) : NULL;
}

static inline const char *scan_members(
	const char *p, const char *end, bool args, struct fields *out)
{
	p = blanks(p + 1);
	if (*p == '}')
		return p + 1;
	for (;;) {
		const char *key;
		size_t len;
		unsigned i;
		struct field other;

		p = scan_key(p, end, &key, &len);
		if (!p)
			return NULL;
		if (!args && len == 4 && !memcmp(key, "args", 4)) {
			if (*p != '{' || (out->seen & (1U << F_ARGS)))
				return NULL;
			out->seen |= 1U << F_ARGS;
			out->f[F_ARGS] = (struct field){.at = p, .type = T_WORD};
			p = scan_members(p, end, true, out);
			if (p)
				out->f[F_ARGS].len = (uint32_t)(p - out->f[F_ARGS].at);
		} else if (!args && len == 3 && !memcmp(key, "id2", 3)) {
			return NULL; /* the value nests */
		} else {
			i = field_at(key, len, args);
			p = scan_value(p, end, i < FIELDS ? &out->f[i] : &other);
			out->seen |= i < FIELDS ? 1U << i : 0;
		}
		if (!p)
			return NULL;
		p = blanks(p);
		if (*p == '}')
			return p + 1;
		if (*p != ',')
			return NULL;
		p = blanks(p + 1);
	}
}

const char *cop_trace_scan(const char *p, const char *end, struct fields *out)
{
	out->seen = 0;
	p = scan_members(p, end, false, out);
	return p && p <= end ? p : NULL;
}

const char *cop_trace_skip(const char *p, const char *end)
{
	unsigned depth = 0;
	bool escaped;

	while (p < end) {
		char c = *p++;

		if (c == '{')
			depth++;
		else if (c == '}' && !--depth)
			return p;
		else if (c == '"') {
			escaped = false;
			p = string_end(p, end, &escaped);
			if (!p)
				return NULL;
			p++;
		}
	}
	return NULL;
}
