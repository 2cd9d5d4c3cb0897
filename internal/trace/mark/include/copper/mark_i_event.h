/* SPDX-License-Identifier: BSD-3-Clause */
/* Part of copper/mark.h: formats one event as JSON. */

struct copper_mark_i_event {
	const char *name, *cat, *scope; /* scope NULL or "": none */
	const char *key, *key2;         /* of args; NULL: none */
	size_t name_len;
	char phase;
	int with_id;
	long long ts_ns, dur_ns; /* dur_ns -1: none */
	unsigned long long id;
	double value, value2; /* of key and key2 */
};

static inline char *copper_mark_i_text(char *at, const char *text)
{
	size_t n = strlen(text);

	memcpy(at, text, n);
	return at + n;
}

static inline char *copper_mark_i_number(char *at, unsigned long long number)
{
	char digit[24], *d = digit + sizeof(digit);
	size_t n;

	do
		*--d = (char)('0' + number % 10);
	while (number /= 10);
	n = (size_t)(digit + sizeof(digit) - d);
	memcpy(at, d, n);
	return at + n;
}

/* Prints nanoseconds as microseconds. */
static inline char *copper_mark_i_us(char *at, long long ns)
{
	unsigned rest;

	if (ns < 0)
		ns = 0;
	at = copper_mark_i_number(at, (unsigned long long)ns / 1000);
	rest = (unsigned)(ns % 1000);
	*at++ = '.';
	*at++ = (char)('0' + rest / 100);
	*at++ = (char)('0' + rest / 10 % 10);
	*at++ = (char)('0' + rest % 10);
	return at;
}

/* JSON has no infinities, and a locale may use a decimal comma. */
COPPER_MARK_I_COLD char *copper_mark_i_real(char *at, double value)
{
	int i, n = snprintf(at, 40, "%.15g", value);

	if (value - value != 0)
		return copper_mark_i_text(at, "null");
	for (i = 0; i < n; i++)
		if (at[i] == ',')
			at[i] = '.';
	return at + n;
}

/* Returns the length of the UTF-8 character at s; 0 if invalid. */
COPPER_MARK_I_COLD size_t copper_mark_i_utf8(const unsigned char *s, size_t left)
{
	size_t n = *s < 0xc2 ? 0 : *s < 0xe0 ? 2 : *s < 0xf0 ? 3 : *s < 0xf5 ? 4 : 0, i;

	if (n > left)
		return 0;
	for (i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((*s == 0xe0 && s[1] < 0xa0) || (*s == 0xed && s[1] > 0x9f) ||
		(*s == 0xf0 && s[1] < 0x90) || (*s == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

/* Copies a character that is not plain ASCII, escaping it if JSON requires, and advances *s. */
COPPER_MARK_I_COLD char *copper_mark_i_odd(char *at, const unsigned char **s, size_t left)
{
	size_t n = **s < 0x80 ? 0 : copper_mark_i_utf8(*s, left);

	if (n) {
		memcpy(at, *s, n);
		at += n;
		*s += n;
		return at;
	}
	if (**s == '"' || **s == '\\') {
		*at++ = '\\';
		*at++ = (char)**s;
	} else if (**s < 0x80) {
		at += snprintf(at, 8, "\\u%04x", **s);
	} else {
		*at++ = '?';
	}
	++*s;
	return at;
}

static inline char *copper_mark_i_string(char *at, const char *text, size_t len)
{
	const unsigned char *s = (const unsigned char *)text, *end;

	end = s + (len < COPPER_MARK_I_NAME ? len : COPPER_MARK_I_NAME);
	*at++ = '"';
	while (s < end) {
		if (*s >= 0x20 && *s < 0x7f && *s != '"' && *s != '\\')
			*at++ = (char)*s++;
		else
			at = copper_mark_i_odd(at, &s, (size_t)(end - s));
	}
	*at++ = '"';
	return at;
}

COPPER_MARK_I_COLD char *copper_mark_i_rest(char *at, const struct copper_mark_i_event *e)
{
	if (e->with_id)
		at = copper_mark_i_number(copper_mark_i_text(at, ",\"id\":"), e->id);
	if (e->scope && *e->scope)
		at = copper_mark_i_string(
			copper_mark_i_text(at, ",\"scope\":"), e->scope, strlen(e->scope));
	if (!e->key)
		return at;
	at = copper_mark_i_text(at, ",\"args\":{");
	at = copper_mark_i_string(at, e->key, strlen(e->key));
	*at++ = ':';
	at = copper_mark_i_real(at, e->value);
	if (e->key2) {
		*at++ = ',';
		at = copper_mark_i_string(at, e->key2, strlen(e->key2));
		*at++ = ':';
		at = copper_mark_i_real(at, e->value2);
	}
	*at++ = '}';
	return at;
}

/* Writes a comma and the event, at most COPPER_MARK_I_MOST bytes. Returns the end. */
static inline char *copper_mark_i_format(
	char *at, const struct copper_mark_i_event *e, int pid, long tid)
{
	at = copper_mark_i_string(copper_mark_i_text(at, ",\n{\"name\":"), e->name, e->name_len);
	at = copper_mark_i_string(copper_mark_i_text(at, ",\"cat\":"), e->cat, strlen(e->cat));
	at = copper_mark_i_number(copper_mark_i_text(at, ",\"pid\":"), (unsigned)pid);
	at = copper_mark_i_number(copper_mark_i_text(at, ",\"tid\":"), (unsigned long)tid);
	at = copper_mark_i_us(copper_mark_i_text(at, ",\"ts\":"), e->ts_ns);
	at = copper_mark_i_text(at, ",\"ph\":\"");
	*at++ = e->phase;
	*at++ = '"';
	if (e->dur_ns >= 0)
		at = copper_mark_i_us(copper_mark_i_text(at, ",\"dur\":"), e->dur_ns);
	if (e->with_id || e->key)
		at = copper_mark_i_rest(at, e);
	*at++ = '}';
	return at;
}

static inline void copper_mark_i_init(struct copper_mark_i_event *e, char phase, const char *name,
	size_t name_len, const char *category)
{
	struct timespec t;

	memset(e, 0, sizeof(*e));
	e->name = name;
	e->name_len = name_len;
	e->cat = category;
	e->phase = phase;
	e->dur_ns = -1;
	clock_gettime(CLOCK_REALTIME, &t);
	e->ts_ns = t.tv_sec * COPPER_MARK_I_S + t.tv_nsec;
}

/* Finds the name in the compiler's function signature: a::b<c>::d in "int a::b<c>::d(e) const". */
COPPER_MARK_I_COLD const char *copper_mark_i_function(const char *text, size_t *len)
{
	const char *begin = text, *at = text;
	int depth = 0;

	for (; *at; at++) {
		if (!strncmp(at, "(anonymous", 10)) {
			at = strchr(at, ')');
			if (!at)
				break;
		} else if (!strncmp(at, "operator", 8)) {
			at += at[8] == '(' ? 9 : at[8] == ' ' ? 8 : 7 + strcspn(at + 8, "(");
			depth = 0;
		} else if (*at == '<') {
			depth++;
		} else if (*at == '>') {
			depth--;
		} else if (*at == '(' && depth == 0) {
			break;
		} else if ((*at == ' ' || *at == '*' || *at == '&') && depth == 0) {
			begin = at + 1;
		}
	}
	*len = at ? (size_t)(at - begin) : strlen(begin);
	return begin;
}
