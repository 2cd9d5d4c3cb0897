/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the events in a block of text. Ignores brackets and commas between events, so an array need
 * not be opened or closed. */
#include "trace/read/read_priv.h"

/* Returns the line number of p. Within a block, p must not decrease from call to call. */
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

/* Resolves hashes while their fields are at hand. */
static void resolve(struct sink *s, const struct fields *f, struct cop_trace_event *e)
{
	const struct cop_trace_str *name;
	uint64_t hash;

	if (cop_trace_has(f, F_FHASH) && !cop_trace_has(f, F_FNAME) &&
		cop_trace_hash(&f->f[F_FHASH], &hash)) {
		name = cop_trace_names_get(s->names, NAME_FILE, hash);
		e->file = name ? *name : e->file;
		e->file_is_hash = !name;
	}
	if (cop_trace_has(f, F_HHASH) && !cop_trace_has(f, F_HOSTNAME) &&
		cop_trace_hash(&f->f[F_HHASH], &hash)) {
		name = cop_trace_names_get(s->names, NAME_HOST, hash);
		e->host = name ? *name : e->host;
		e->host_is_hash = !name;
	}
}

/* Finds the next line after p that begins with an object. */
static const char *next_object(const char *p, const char *end)
{
	while ((p = memchr(p, '\n', (size_t)(end - p)))) {
		for (p++; p < end && (*p == ' ' || *p == '\t' || *p == ',');)
			p++;
		if (p < end && *p == '{')
			return p;
	}
	return end;
}

const char *cop_trace_resume(const char *p, const char *at, const char *end)
{
	const char *line = memchr(p, '\n', (size_t)(end - p)), *q;

	if (line && at > line)
		return next_object(line, end);
	q = cop_trace_skip(p, end);
	return q ? q : line ? line + 1 : end;
}

/* Whether the object from p to end is empty; some writers end an array with {} to avoid a trailing
 * comma. */
static bool is_padding(const char *p, const char *end)
{
	return cop_json_blanks(p + 1) == end - 1;
}

static bool add_base(struct cop_trace_event *e, int64_t base_ns)
{
	return !__builtin_add_overflow(e->ts_ns, base_ns, &e->ts_ns) &&
	       cop_trace_is_in_range(e->ts_ns);
}

/* Parses the object at p; returns where to continue. */
static const char *object(struct sink *s, const char *p, const char *end, int *rc)
{
	struct cop_json_scan scan;
	struct fields f;
	struct record r;
	const char *why, *q = cop_trace_scan(p, end, &f, &scan);

	if (!q) {
		q = cop_trace_resume(p, scan.at, end);
		s->broken(s, line_of(s, p), q == scan.at ? "the event is cut off" : scan.why);
		return q;
	}
	if (!cop_trace_has(&f, F_PH) && cop_trace_is_otel(&f)) {
		*rc = cop_trace_otel(
			s, &f, (struct cop_trace_str){p, (size_t)(q - p)}, line_of(s, p));
		return q;
	}
	why = cop_trace_event_of(&f, &s->scratch, &r);
	if (why) {
		if (f.seen || !is_padding(p, q))
			s->broken(s, line_of(s, p), why);
		return q;
	}
	r.e.raw = (struct cop_trace_str){p, (size_t)(q - p)};
	r.e.line = line_of(s, p);
	if (r.e.kind != COP_TRACE_META && !add_base(&r.e, s->block->base_ns)) {
		s->broken(s, r.e.line, "the time (ts) is out of range");
		return q;
	}
	if (!r.e.rank.len)
		r.e.rank = (struct cop_trace_str){s->block->rank, s->block->rank_len};
	if (s->names)
		resolve(s, &f, &r.e);
	if (s->who && r.e.kind != COP_TRACE_META)
		cop_trace_names_who(s->names, &r.e);
	*rc = s->record(s, &f, &r);
	return q;
}

static const char *no_object(struct sink *s, const char *p, const char *end)
{
	const char *line;

	if (end - p >= 3 && !memcmp(p, "\xef\xbb\xbf", 3))
		return p + 3;
	s->broken(s, line_of(s, p), "no event begins here");
	line = memchr(p, '\n', (size_t)(end - p));
	return line ? line + 1 : end;
}

/* Parses all objects from p to end. */
static int objects(struct sink *s, const char *p, const char *end)
{
	int rc = 0;

	while (p < end && !rc) {
		switch (*p) {
		case ' ':
		case '\t':
		case '\r':
		case '\n':
		case ',':
		case '[':
		case ']':
		case '}':
			p++;
			break;
		case '{':
			p = object(s, p, end, &rc);
			break;
		default:
			p = no_object(s, p, end);
		}
	}
	return rc;
}

/* ---- names only ---- */

/* Whether these bytes may contain metadata: phase "M", or 4 if phases are numbers. */
static bool may_define(const struct sink *s, const char *p, size_t len)
{
	const char *end = p + len;

	if (s->numbers && (memmem(p, len, "\"ph\":4", 6) || memmem(p, len, "\"ph\": 4", 7)))
		return true;
	if (len < 3)
		return false;
	for (p++, end--; p < end && (p = memchr(p, 'M', (size_t)(end - p))); p++)
		if (p[-1] == '"' && p[1] == '"')
			return true;
	return false;
}

/* Skips lines that are whole events and define no names. Once a line continues the one before it,
 * parses everything that follows. */
static int names(struct sink *s, const struct block *b)
{
	const char *p = b->data, *end = p + b->len, *before = p;
	int rc = 0;

	if (!may_define(s, p, b->len))
		return 0;
	while (p < end && !rc) {
		const char *q = memchr(p, '\n', (size_t)(end - p)), *stop = q ? q + 1 : end;
		const char *first = cop_json_blanks(p);

		if (first < stop && !strchr("{[],", *first))
			return objects(s, before, end);
		before = p;
		if (may_define(s, p, (size_t)(stop - p)))
			rc = objects(s, p, stop);
		p = stop;
	}
	return rc;
}

int cop_trace_parse(struct sink *s, const struct block *b)
{
	int rc;

	s->line = b->line;
	s->at = b->data;
	s->block = b;
	rc = s->names_only ? names(s, b) : objects(s, b->data, b->data + b->len);
	return rc || s->scratch.size ? rc : -ENOMEM;
}
