/* SPDX-License-Identifier: BSD-3-Clause */
/* Scans JSON in place (strings, escapes, numbers, nested values) without building, copying or
 * converting anything; callers interpret the members. Each byte is examined once: sixteen or eight
 * at a time in strings, which make up most of the input, and one at a time elsewhere.
 *
 * Trace writers are careless, so the scanner accepts some deviations from JSON (RFC 8259) and
 * reports them as odd: a comma before a closing bracket, NaN and infinities, numbers in C syntax, a
 * backslash without an escape. Strings may contain raw control characters and any other bytes
 * except line ends, which indicate a truncated line.
 *
 * COP_JSON_PAD bytes after the scanned text must be readable and filled by cop_json_pad. Their
 * quotes terminate any string or token, so only strings need to be checked against the end. */
#ifndef COP_BASE_JSON_READ_H
#define COP_BASE_JSON_READ_H

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/base/base.h"

#define COP_JSON_PAD 32
#define COP_JSON_NESTED_MAX 1024u

static inline void cop_json_pad(char *end)
{
	memset(end, '"', COP_JSON_PAD);
}

/* The result of a scan: whether it met oddities, and why it failed. */
struct cop_json_scan {
	bool odd;
	const char *at;  /* position of the failure */
	const char *why; /* a static string */
};

#ifdef __SSE2__
/* The first quote, backslash or control character at or after p. */
static inline const char *cop_json_stop(const char *p)
{
	const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\'),
		      last = _mm_set1_epi8(0x1f);

	for (;; p += 16) {
		__m128i b = _mm_loadu_si128((const __m128i *)(const void *)p);
		__m128i hit = _mm_or_si128(
			_mm_or_si128(_mm_cmpeq_epi8(b, quote), _mm_cmpeq_epi8(b, slash)),
			_mm_cmpeq_epi8(_mm_min_epu8(b, last), b));
		unsigned bits = (unsigned)_mm_movemask_epi8(hit);

		if (bits)
			return p + __builtin_ctz(bits);
	}
}
#elif __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
/* Finds bytes equal to c in a word, by Alan Mycroft's method. Only the lowest hit is reliable. */
static inline uint64_t cop_json_has(uint64_t w, unsigned char c)
{
	w ^= 0x0101010101010101ULL * c;
	return (w - 0x0101010101010101ULL) & ~w & 0x8080808080808080ULL;
}

static inline const char *cop_json_stop(const char *p)
{
	for (;; p += 8) {
		uint64_t w, hit;

		memcpy(&w, p, sizeof(w));
		hit = cop_json_has(w, '"') | cop_json_has(w, '\\') |
		      ((w - 0x2020202020202020ULL) & ~w & 0x8080808080808080ULL);
		if (hit)
			return p + __builtin_ctzll(hit) / 8;
	}
}
#else
static inline const char *cop_json_stop(const char *p)
{
	while (*p != '"' && *p != '\\' && (unsigned char)*p >= 0x20)
		p++;
	return p;
}
#endif

/* Scans the rest of a string after cop_json_stop stopped at something other than its end. */
const char *cop_json_string_rest(
	const char *p, const char *end, bool *escaped, struct cop_json_scan *s);

/* p is just past the opening quote; returns the closing quote, or NULL. */
static inline const char *cop_json_string(
	const char *p, const char *end, bool *escaped, struct cop_json_scan *s)
{
	p = cop_json_stop(p);
	if (__builtin_expect(*p == '"' && p < end, 1))
		return p;
	return cop_json_string_rest(p, end, escaped, s);
}

static inline const char *cop_json_blanks(const char *p)
{
	while (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')
		p++;
	return p;
}

/* Returns the position after a number, true, false or null; sets *word if it is not a number. */
const char *cop_json_scalar_rest(const char *p, bool *word, struct cop_json_scan *s);

/* Fast path for numbers like -12.5. */
static inline const char *cop_json_scalar(const char *p, bool *word, struct cop_json_scan *s)
{
	const char *q = p + (*p == '-'), *digits = q;

	*word = false;
	while ((unsigned char)(*q - '0') < 10)
		q++;
	if (__builtin_expect(q > digits && (*digits != '0' || q == digits + 1), 1)) {
		if (*q == '.' && (unsigned char)(q[1] - '0') < 10)
			for (q++; (unsigned char)(*q - '0') < 10;)
				q++;
		if (*q == ',' || *q == '}' || *q == ']' || *q == ' ' || *q == '\n')
			return q;
	}
	return cop_json_scalar_rest(p, word, s);
}

/* Returns the position after the object or array at p, or NULL if it is unclosed, not JSON, or
 * nested more than COP_JSON_NESTED_MAX levels deep. */
const char *cop_json_nested(const char *p, const char *end, struct cop_json_scan *s);

/* Decodes the escapes in a string of `len` bytes and returns the decoded length. `to` needs room
 * for `len` bytes and may be the same buffer. An unpaired surrogate becomes U+FFFD; a backslash
 * that starts no valid escape is kept. */
size_t cop_json_undo(const char *text, size_t len, char *to);
/* The length of the escape at p, which points to a backslash; 0 if invalid. */
unsigned cop_json_escape(const char *p, const char *end);

/* ---- text already accepted: these only check against the end ---- */

static inline bool cop_json_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Returns the position after the string whose opening quote is at p. */
static inline const char *cop_json_string_end(const char *p, const char *end)
{
	for (p++; p < end && *p != '"'; p++)
		p += *p == '\\';
	return p < end ? p + 1 : end;
}

static inline bool cop_json_ends_scalar(char c)
{
	return cop_json_is_blank(c) || c == ',' || c == ':' || c == '}' || c == ']' || c == '{' ||
	       c == '[' || c == '"';
}

static inline const char *cop_json_scalar_end(const char *p, const char *end)
{
	while (p < end && !cop_json_ends_scalar(*p))
		p++;
	return p;
}

/* Returns 16 or more if c is not a hex digit. */
static inline unsigned cop_json_hex_digit(char c)
{
	unsigned u = (unsigned char)c;

	if (u - '0' < 10)
		return u - '0';
	u |= 32;
	return u - 'a' < 26 ? u - 'a' + 10 : 255;
}

#endif
