/* SPDX-License-Identifier: BSD-3-Clause */
/* Recognizes the format of a file, and finds where the events of a document end. Only JSON's
 * strings and brackets matter here; the parser looks at the rest. */
#include <string.h>

#include "trace/read/read_priv.h"

/* ---- documents ---- */

static void seek_in_string(struct split *s, char c)
{
	if (s->escape) {
		s->escape = false;
	} else if (c == '\\') {
		s->escape = true;
	} else if (c == '"') {
		s->string = false;
		return;
	}
	if (s->depth == 1 && s->key_len < sizeof(s->key))
		s->key[s->key_len++] = c;
}

static bool is_events(const struct split *s)
{
	return s->depth == 1 && s->key_len == 11 && !memcmp(s->key, "traceEvents", 11);
}

size_t cop_trace_split_seek(struct split *s, const char *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char c = data[i];

		if (s->string) {
			seek_in_string(s, c);
		} else if (c == '"') {
			s->string = true;
			if (s->depth == 1)
				s->key_len = 0;
		} else if (c == '[' && is_events(s)) {
			s->state = SPLIT_EVENTS;
			s->found = true;
			return i + 1;
		} else if (c == '{' || c == '[') {
			s->depth++;
		} else if ((c == '}' || c == ']') && s->depth) {
			s->depth--;
		}
	}
	return len;
}

/* Returns what follows the quote that closes a string that began before p; end if it is not
 * closed. */
static const char *string_after(const char *p, const char *end)
{
	while (p < end && *p != '"')
		p += *p == '\\' ? 2 : 1;
	return p < end ? p + 1 : end;
}

size_t cop_trace_split_events(const char *data, size_t len, bool *over)
{
	const char *p = data, *end = data + len, *whole = data;
	unsigned depth = 0;

	*over = false;
	while (p < end) {
		char c = *p++;

		if (c == '"') {
			p = string_after(p, end);
		} else if (c == '{') {
			depth++;
		} else if (c == '}' && depth) {
			if (!--depth)
				whole = p;
		} else if (c == ']' && !depth) {
			*over = true;
			return (size_t)(p - data);
		}
	}
	return (size_t)(whole - data);
}

/* ---- which form ---- */

struct look {
	struct judge *judge;
	struct scratch scratch;
	char memory[4096];
};

/* What follows the event at p, or NULL if there is no event at p. */
static const char *event_at(struct look *k, const char *p, const char *end)
{
	struct fields f;
	struct record r;
	const char *why, *q = cop_trace_scan(p, end, &f);

	k->scratch = (struct scratch){k->memory, 0, sizeof(k->memory)};
	if (!q)
		q = cop_trace_judge(k->judge, p, end, &k->scratch, &f, &why);
	return q && (f.seen & (1U << F_PH)) && !cop_trace_event_of(&f, &k->scratch, &r) ? q : NULL;
}

static const char *blanks(const char *p, const char *end)
{
	while (p < end && strchr(" \t\r\n,", *p) && *p)
		p++;
	return p;
}

/* Whether some line is an event. */
static bool has_line(struct look *k, const char *p, const char *end)
{
	while (p < end) {
		const char *q = memchr(p, '\n', (size_t)(end - p)), *stop = q ? q : end;

		while (p < stop && (*p == ' ' || *p == '\t' || *p == ',' || *p == '['))
			p++;
		if (p < stop && *p == '{' && event_at(k, p, stop))
			return true;
		p = stop + 1;
	}
	return false;
}

/* p is inside the array, or at the first of the events. */
static const char *detect_events(
	struct look *k, const char *p, const char *end, bool whole, enum form *form)
{
	const char *first = blanks(p, end), *q, *line;

	if (first == end || *first == ']') {
		*form = FORM_LINES; /* a trace without events */
		return whole || first < end ? NULL : "it has no event";
	}
	q = *first == '{' ? event_at(k, first, end) : NULL;
	line = memchr(first, '\n', (size_t)(end - first));
	if (q && (!line || line >= q)) {
		while (q < end && strchr(" \t\r,", *q) && *q)
			q++;
		*form = q < end && *q == '{' ? FORM_DOCUMENT : FORM_LINES;
		return NULL;
	}
	*form = q ? FORM_DOCUMENT : FORM_LINES;
	if (q || has_line(k, first, end))
		return NULL;
	return "it has no event of a format that is known";
}

/* For a beginning that is neither a bracket nor a brace. */
static const char *detect_later(
	struct look *k, const struct beginning *b, const char *p, enum form *form)
{
	if (!b->anywhere || !has_line(k, p, b->data + b->len))
		return "it is neither JSON nor gzip";
	*form = FORM_LINES;
	return NULL;
}

const char *cop_trace_detect(struct judge *j, const struct beginning *b, enum form *form,
	struct split *split, size_t *skip)
{
	const char *data = b->data, *end = data + b->len, *p = data;
	struct look k = {.judge = j};

	*form = FORM_NONE;
	*split = (struct split){.state = SPLIT_EVENTS, .found = true};
	*skip = 0;
	if (b->len >= 3 && !memcmp(p, "\xef\xbb\xbf", 3))
		p += 3;
	p = blanks(p, end);
	if (p == end)
		return "it is empty";
	if (*p == '[') {
		*skip = (size_t)(p + 1 - data);
		return detect_events(&k, p + 1, end, b->whole, form);
	}
	if (*p != '{')
		return detect_later(&k, b, p, form);
	if (has_line(&k, p, end)) {
		/* A line that ends in the array of events, as PerfFlowAspect writes, may come
		 * first. */
		split->state = SPLIT_SEEK;
		*skip = cop_trace_split_seek(split, data, b->len);
		if (split->state == SPLIT_EVENTS) {
			split->lines = true;
			return detect_events(&k, data + *skip, end, b->whole, form);
		}
		*split = (struct split){.state = SPLIT_EVENTS, .found = true};
		*skip = (size_t)(p - data);
		*form = FORM_LINES;
		return NULL;
	}
	*split = (struct split){.state = SPLIT_SEEK};
	*skip = cop_trace_split_seek(split, data, b->len);
	*form = FORM_DOCUMENT;
	if (split->state == SPLIT_EVENTS)
		return detect_events(&k, data + *skip, end, b->whole, form);
	return b->whole ? "it has no traceEvents" : NULL;
}
