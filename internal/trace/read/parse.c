/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the events in a block of text. Brackets and commas between events are ignored, so files
 * with and without them, closed or not, are read alike. */
#include <string.h>

#include "trace/read/read_priv.h"

/* The line that p is in; p never goes back within a block. */
static uint64_t line_of(struct sink *s, const char *p)
{
	const char *at = s->at;

	while (at < p && (at = memchr(at, '\n', (size_t)(p - at)))) {
		at++;
		s->line++;
	}
	s->at = p;
	return s->line;
}

/* Hashes are resolved here, where the field is at hand. */
static void resolve(struct sink *s, const struct fields *f, struct cop_trace_event *e)
{
	const struct cop_trace_str *name;
	uint64_t hash;

	if ((f->seen & (1U << F_FHASH)) && !(f->seen & (1U << F_FNAME)) &&
		cop_trace_hash(&f->f[F_FHASH], &hash)) {
		name = cop_trace_names_get(s->names, NAME_FILE, hash);
		e->file = name ? *name : e->file;
		e->file_is_hash = !name;
	}
	if ((f->seen & (1U << F_HHASH)) && !(f->seen & (1U << F_HOSTNAME)) &&
		cop_trace_hash(&f->f[F_HHASH], &hash)) {
		name = cop_trace_names_get(s->names, NAME_HOST, hash);
		e->host = name ? *name : e->host;
		e->host_is_hash = !name;
	}
}

/* Reads the object at p. Returns what follows it; NULL ends the line, or a document whose object
 * does not end. */
static const char *object(struct sink *s, bool line, const char *p, const char *end, int *rc)
{
	struct fields f;
	struct record r;
	const char *why = NULL, *q;

	q = cop_trace_scan(p, end, &f);
	if (!q)
		q = cop_trace_judge(s->judge, p, end, &s->scratch, &f, &why);
	if (q)
		why = cop_trace_event_of(&f, &s->scratch, &r);
	if (why) {
		s->broken(s, line_of(s, p), why);
		return line ? NULL : q ? q : cop_trace_skip(p, end);
	}
	r.e.raw = (struct cop_trace_str){p, (size_t)(q - p)};
	r.e.line = line_of(s, p);
	if (s->names)
		resolve(s, &f, &r.e);
	*rc = s->record(s, &f, &r);
	return q;
}

/* Reads all objects between p and end. */
static int objects(struct sink *s, bool line, const char *p, const char *end)
{
	int rc = 0;

	while (p && p < end && !rc) {
		switch (*p) {
		case ' ':
		case '\t':
		case '\r':
		case '\n':
		case ',':
		case '[':
			p++;
			break;
		case ']': /* with what closes a document behind it */
			return 0;
		case '{':
			p = object(s, line, p, end, &rc);
			break;
		default:
			s->broken(s, line_of(s, p), "no event begins here");
			return 0;
		}
	}
	return rc;
}

/* Whether a line may define names or clocks: those lines contain this, quotes included. */
static bool may_define(const struct sink *s, const char *p, size_t len)
{
	return memmem(p, len, "\"FH\"", 4) || memmem(p, len, "\"HH\"", 4) ||
	       (s->clocks && memmem(p, len, "\"CO\"", 4));
}

static int lines(struct sink *s, const struct block *b)
{
	const char *p = b->data, *end = p + b->len;
	int rc = 0;

	for (; p < end && !rc; s->line++) {
		const char *q = memchr(p, '\n', (size_t)(end - p)), *stop = q ? q : end;

		s->at = p;
		if (!s->names_only || may_define(s, p, (size_t)(stop - p)))
			rc = objects(s, true, p, stop);
		p = stop + 1;
	}
	return rc;
}

int cop_trace_parse(struct sink *s, const struct block *b)
{
	s->line = b->line;
	s->at = b->data;
	return b->lines ? lines(s, b) : objects(s, false, b->data, b->data + b->len);
}
