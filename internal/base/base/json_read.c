/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base/json_read.h"

#include <strings.h>

static const char cut_off[] = "the event is cut off", no_value[] = "no value stands here",
		  no_name[] = "no name in quotes stands here", no_comma[] = "a comma is missing",
		  too_deep[] = "it nests more than 1024 deep";

static const char *fail(struct cop_json_scan *s, const char *at, const char *end, const char *why)
{
	s->at = COP_MIN(at, end);
	s->why = at >= end ? cut_off : why;
	return NULL;
}

/* ---- strings ---- */

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

unsigned cop_json_escape(const char *p, const char *end)
{
	if (end - p < 2)
		return 0;
	if (p[1] == 'u')
		return end - p >= 6 && is_hex(p[2]) && is_hex(p[3]) && is_hex(p[4]) && is_hex(p[5])
			       ? 6
			       : 0;
	return p[1] && strchr("\"\\/bfnrt", p[1]) ? 2 : 0;
}

const char *cop_json_string_rest(
	const char *p, const char *end, bool *escaped, struct cop_json_scan *s)
{
	for (; p < end; p = cop_json_stop(p)) {
		unsigned n = 1;

		if (*p == '"')
			return p;
		if (*p == '\n')
			break;
		if (*p == '\\') {
			n = cop_json_escape(p, end);
			*escaped = true;
			s->odd |= !n;
			n = COP_MAX(n, 1u);
		}
		p += n;
	}
	return fail(s, COP_MIN(p, end), end, cut_off);
}

static unsigned hex4(const char *p)
{
	return cop_json_hex_digit(p[0]) << 12 | cop_json_hex_digit(p[1]) << 8 |
	       cop_json_hex_digit(p[2]) << 4 | cop_json_hex_digit(p[3]);
}

static char *put_utf8(char *out, unsigned c)
{
	if (c < 0x80) {
		*out++ = (char)c;
		return out;
	}
	if (c < 0x800) {
		*out++ = (char)(0xc0 | c >> 6);
	} else {
		if (c < 0x10000) {
			*out++ = (char)(0xe0 | c >> 12);
		} else {
			*out++ = (char)(0xf0 | c >> 18);
			*out++ = (char)(0x80 | (c >> 12 & 0x3f));
		}
		*out++ = (char)(0x80 | (c >> 6 & 0x3f));
	}
	*out++ = (char)(0x80 | (c & 0x3f));
	return out;
}

/* Decodes \uXXXX at p, or a pair of them for a character beyond 16 bits. */
static const char *undo_unicode(const char *p, const char *end, char **out)
{
	unsigned c = hex4(p + 2), low;

	p += 6;
	if (c >= 0xd800 && c < 0xdc00 && p < end && *p == '\\' && cop_json_escape(p, end) == 6) {
		low = hex4(p + 2);
		if (low >= 0xdc00 && low < 0xe000) {
			c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
			p += 6;
		}
	}
	if (c >= 0xd800 && c < 0xe000)
		c = 0xfffd;
	*out = put_utf8(*out, c);
	return p;
}

static char plain_escape(char c)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	const char *at = strchr(from, c);

	return at ? to[at - from] : c;
}

size_t cop_json_undo(const char *text, size_t len, char *to)
{
	const char *p = text, *end = text + len;
	char *out = to;

	while (p < end) {
		unsigned n = *p == '\\' ? cop_json_escape(p, end) : 0;

		if (n == 6) {
			p = undo_unicode(p, end, &out);
		} else if (n) {
			*out++ = plain_escape(p[1]);
			p += 2;
		} else {
			*out++ = *p++;
		}
	}
	return (size_t)(out - to);
}

/* ---- numbers and words ---- */

static const char *digits_end(const char *p)
{
	while ((unsigned char)(*p - '0') < 10)
		p++;
	return p;
}

/* Returns the end of a number in C syntax, given its digits, or NULL. */
static const char *number_end(const char *p, bool *odd)
{
	const char *q = digits_end(p), *r;
	size_t n = (size_t)(q - p);

	*odd |= !n || (*p == '0' && n > 1);
	if (*q == '.') {
		r = digits_end(q + 1);
		*odd |= r == q + 1;
		n += (size_t)(r - q - 1);
		q = r;
	}
	if (!n)
		return NULL;
	if ((*q | 32) != 'e')
		return q;
	q += q[1] == '+' || q[1] == '-' ? 2 : 1;
	r = digits_end(q);
	return r > q ? r : NULL;
}

static bool ends_scalar(char c)
{
	return c == ',' || c == '}' || c == ']' || c == ' ' || c == '\n' || c == '\t' ||
	       c == '\r' || c == '"' || c == ':';
}

static const char *word_end(const char *p, bool sign, bool *odd)
{
	static const char *const words[] = {"true", "false", "null", "nan", "inf", "infinity"};

	for (size_t i = 0; i < COP_ARRAY_SIZE(words); i++) {
		size_t n = strlen(words[i]);

		if (strncasecmp(p, words[i], n) || !ends_scalar(p[n]) || (sign && i < 3))
			continue;
		*odd |= i >= 3 || memcmp(p, words[i], n);
		return p + n;
	}
	return NULL;
}

const char *cop_json_scalar_rest(const char *p, bool *word, struct cop_json_scan *s)
{
	bool sign = *p == '-' || *p == '+';
	const char *q = p + sign, *after;

	s->odd |= *p == '+';
	*word = (unsigned char)(*q - '0') >= 10 && *q != '.';
	after = *word ? word_end(q, sign, &s->odd) : number_end(q, &s->odd);
	if (after && ends_scalar(*after))
		return after;
	s->at = p;
	s->why = no_value;
	return NULL;
}

/* ---- nested values ---- */

struct stack {
	uint64_t now, full[COP_JSON_NESTED_MAX / 64]; /* one bit per level: set for an object */
	unsigned depth;
};

static inline bool push(struct stack *k, bool object)
{
	if (__builtin_expect(k->depth && k->depth % 64 == 0, 0)) {
		if (k->depth == COP_JSON_NESTED_MAX)
			return false;
		k->full[k->depth / 64 - 1] = k->now;
	}
	k->now = k->now << 1 | object;
	k->depth++;
	return true;
}

/* Pops a level; returns whether the enclosing one is an object. */
static inline bool pop(struct stack *k)
{
	k->now >>= 1;
	if (__builtin_expect(--k->depth && k->depth % 64 == 0, 0))
		k->now = k->full[k->depth / 64 - 1];
	return k->now & 1;
}

/* A state machine with four states, written with gotos: most bytes of nested arguments are scanned
 * here. */
const char *cop_json_nested(const char *p, const char *end, struct cop_json_scan *s)
{
	struct stack k;
	bool object, escaped = false, word;

	k.now = k.depth = 0;
open:
	object = *p == '{';
	if (!push(&k, object))
		return fail(s, p, end, too_deep);
	p = cop_json_blanks(p + 1);
	if (*p == (object ? '}' : ']'))
		goto close;
	if (!object)
		goto value;
name:
	if (*p != '"')
		return fail(s, p, end, no_name);
	p = cop_json_string(p + 1, end, &escaped, s);
	if (!p)
		return NULL;
	p = cop_json_blanks(p + 1);
	if (*p != ':')
		return fail(s, p, end, "a colon is missing");
	p = cop_json_blanks(p + 1);
value:
	if (*p == '{' || *p == '[')
		goto open;
	if (*p == '"') {
		p = cop_json_string(p + 1, end, &escaped, s);
		if (!p)
			return NULL;
		p++;
	} else {
		const char *q = cop_json_scalar(p, &word, s);

		if (!q)
			return fail(s, p, end, s->why);
		p = q;
	}
after:
	p = cop_json_blanks(p);
	if (*p == ',') {
		p = cop_json_blanks(p + 1);
		if (*p != (object ? '}' : ']')) {
			if (object)
				goto name;
			goto value;
		}
		s->odd = true;
	}
	if (*p != (object ? '}' : ']'))
		return fail(s, p, end, no_comma);
close:
	p++;
	object = pop(&k);
	if (k.depth)
		goto after;
	return p <= end ? p : fail(s, p, end, cut_off);
}
