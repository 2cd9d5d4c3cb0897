/* SPDX-License-Identifier: BSD-3-Clause */
/* W3C Trace Context, levels 1 and 2: version-trace-span-flags, in lower-case hexadecimal digits.
 * Later versions may append more fields after a dash, which are ignored. */
#include "otlp.h"

#include <sys/random.h>

/* ---- traceparent ---- */

#define LENGTH 55u
#define KNOWN_FLAGS 3u

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Parses the hexadecimal digits of n bytes, which must be followed by end. */
static bool read_bytes(const char *text, char end, uint8_t *out, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int high = digit(text[2 * i]), low = high < 0 ? -1 : digit(text[2 * i + 1]);

		if (low < 0)
			return false;
		out[i] = (uint8_t)(high << 4 | low);
	}
	return text[2 * n] == end;
}

static bool is_zero(const uint8_t *id, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (id[i])
			return false;
	return true;
}

int cop_otlp_parent(const char *text, struct cop_otlp_context *out)
{
	struct cop_otlp_context c;
	size_t len = strlen(text);
	uint8_t version;

	if (len < LENGTH || !read_bytes(text, '-', &version, 1) || version == 0xff)
		return -EBADMSG;
	if (len > LENGTH && (version == 0 || text[LENGTH] != '-'))
		return -EBADMSG;
	if (!read_bytes(text + 3, '-', c.trace, sizeof(c.trace)) ||
		!read_bytes(text + 36, '-', c.span, sizeof(c.span)) ||
		!read_bytes(text + 53, text[LENGTH], &c.flags, 1))
		return -EBADMSG;
	if (is_zero(c.trace, sizeof(c.trace)) || is_zero(c.span, sizeof(c.span)))
		return -EBADMSG;
	c.flags &= KNOWN_FLAGS;
	*out = c;
	return 0;
}

/* ---- tracestate ---- */

#define MEMBERS_MAX 32u

static bool is_key(const char *text, size_t len)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_-*/@";

	return len > 0 && len <= 256 && strspn(text, letters) == len;
}

static bool is_value(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] < ' ' || text[i] > '~' || text[i] == '=')
			return false;
	return len > 0 && len <= 256 && text[len - 1] != ' ';
}

static bool is_member(const char *text, size_t len)
{
	const char *equals = memchr(text, '=', len);
	size_t key = equals ? (size_t)(equals - text) : 0;

	return equals && is_key(text, key) && is_value(equals + 1, len - key - 1);
}

bool cop_otlp_is_state(const char *text)
{
	unsigned members = 0;

	if (strlen(text) > COP_OTLP_STATE_MAX)
		return false;
	for (;;) {
		size_t blank = strspn(text, " \t"), len;

		text += blank;
		len = strcspn(text, ",");
		while (len && (text[len - 1] == ' ' || text[len - 1] == '\t'))
			len--;
		/* Empty members are valid. */
		if (len && (!is_member(text, len) || ++members > MEMBERS_MAX))
			return false;
		text += strcspn(text, ",");
		if (!*text)
			return members > 0;
		text++;
	}
}

/* ---- new identifiers ---- */

static int new_id(uint8_t *id, size_t len)
{
	do {
		ssize_t n = getrandom(id, len, 0);

		if (n != (ssize_t)len)
			return n < 0 ? -errno : -EIO;
	} while (is_zero(id, len));
	return 0;
}

int cop_otlp_new_trace(uint8_t trace[COP_OTLP_TRACE_SIZE])
{
	return new_id(trace, COP_OTLP_TRACE_SIZE);
}

int cop_otlp_new_span(uint8_t span[COP_OTLP_SPAN_SIZE])
{
	return new_id(span, COP_OTLP_SPAN_SIZE);
}
