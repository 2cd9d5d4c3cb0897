/* SPDX-License-Identifier: BSD-3-Clause */
/* Spans that are written as two halves. B and E nest within a thread: an end closes the begin of
 * its thread that came last in the file. b and e carry an id and a scope, and nest within those;
 * their names may differ, as PerfFlowAspect writes them, and the begin's name counts. The order is
 * that of the file, because the writers of both formats append. */
#include <stdlib.h>
#include <string.h>

#include "trace/read/read_priv.h"

struct open_span {
	struct cop_hlink link;   /* the innermost span of its thread or id is in the table */
	struct open_span *outer; /* the enclosing span, or the next one of a list */
	struct cop_trace_event e;
	size_t key_len;
	char bytes[]; /* the key, then its strings */
};

#define KEY_MAX 512

/* A key of a thread or an id, as bytes. Only the first 240 bytes of words count. */
static size_t key_of(const struct record *r, char *key)
{
	bool async = r->half >= HALF_ASYNC_BEGIN;
	bool local = async && r->e.id_kind == COP_TRACE_ID_PROCESS;
	struct cop_trace_str a = async ? r->e.id : r->e.pid;
	struct cop_trace_str b = local ? r->e.pid : async ? r->e.scope : r->e.tid;
	size_t n = COP_MIN(a.len, (size_t)KEY_MAX / 2 - 16),
	       m = COP_MIN(b.len, (size_t)KEY_MAX / 2 - 16);

	key[0] = (char)(async ? 1 + (unsigned)r->e.id_kind : 0);
	memcpy(key + 1, &a.len, sizeof(a.len));
	memcpy(key + 9, a.at, n);
	memcpy(key + 9 + n, b.at, m);
	return 9 + n + m;
}

static struct open_span *find_span(
	const struct pairs *p, const char *key, size_t len, uint64_t hash)
{
	struct cop_hlink *l = cop_htab_first(&p->table, hash);

	for (; l; l = cop_htab_next(l)) {
		struct open_span *s = COP_CONTAINER_OF(l, struct open_span, link);

		if (s->key_len == len && !memcmp(s->bytes, key, len))
			return s;
	}
	return NULL;
}

static void keep_text(struct cop_trace_str *s, char **to)
{
	memcpy(*to, s->at, s->len);
	s->at = *to;
	*to += s->len;
}

static struct open_span *copy_of(const struct cop_trace_event *e, const char *key, size_t len)
{
	struct open_span *s;
	char *to;

	s = malloc(sizeof(*s) + len + e->name.len + e->cat.len + e->pid.len + e->tid.len +
		   e->file.len + e->host.len + e->id.len + e->scope.len + e->args.len);
	if (!s)
		return NULL;
	s->e = *e;
	s->e.raw = s->e.of = s->e.rank = s->e.end_args = (struct cop_trace_str){"", 0};
	memcpy(s->bytes, key, len);
	s->key_len = len;
	to = s->bytes + len;
	keep_text(&s->e.name, &to);
	keep_text(&s->e.cat, &to);
	keep_text(&s->e.pid, &to);
	keep_text(&s->e.tid, &to);
	keep_text(&s->e.file, &to);
	keep_text(&s->e.host, &to);
	keep_text(&s->e.id, &to);
	keep_text(&s->e.scope, &to);
	keep_text(&s->e.args, &to);
	return s;
}

static void begin_span(struct pairs *p, const struct record *r, const char *key, size_t len,
	uint64_t hash, struct open_span *outer)
{
	struct open_span *s = p->open < COP_TRACE_OPEN_MAX ? copy_of(&r->e, key, len) : NULL;

	if (!s) {
		p->unfinished++;
		return;
	}
	if (outer)
		cop_htab_remove(&p->table, &outer->link);
	s->outer = outer;
	cop_htab_add(&p->table, &s->link, hash);
	p->open++;
}

/* The end's size counts if the begin has none. */
static void become_span(struct record *r, const struct open_span *s)
{
	struct cop_trace_event end = r->e;

	r->e = s->e;
	r->e.raw = end.raw;
	r->e.end_args = end.args;
	r->e.dur_ns = end.ts_ns > s->e.ts_ns ? (uint64_t)end.ts_ns - (uint64_t)s->e.ts_ns : 0;
	r->e.dur_min_ns = r->e.dur_max_ns = r->e.dur_ns;
	if (!r->e.has_size) {
		r->e.has_size = end.has_size;
		r->e.size = end.size;
	}
	r->half = HALF_NONE;
}

bool cop_trace_pair(struct pairs *p, struct record *r, struct open_span **used)
{
	char key[KEY_MAX];
	size_t len = key_of(r, key);
	uint64_t hash = cop_hash64(key, len, 0);
	struct open_span *s = find_span(p, key, len, hash);

	if (r->half == HALF_BEGIN || r->half == HALF_ASYNC_BEGIN) {
		begin_span(p, r, key, len, hash, s);
		return false;
	}
	if (!s) {
		p->unmatched++;
		return false;
	}
	cop_htab_remove(&p->table, &s->link);
	if (s->outer)
		cop_htab_add(&p->table, &s->outer->link, hash);
	p->open--;
	become_span(r, s);
	s->outer = *used;
	*used = s;
	return true;
}

void cop_trace_spans_free(struct open_span *used)
{
	while (used) {
		struct open_span *next = used->outer;

		free(used);
		used = next;
	}
}

int cop_trace_pairs_open(
	const struct pairs *p, int (*visit)(void *arg, const struct cop_trace_event *e), void *arg)
{
	struct cop_hlink *l = cop_htab_after(&p->table, NULL);
	int rc = 0;

	for (; l && !rc; l = cop_htab_after(&p->table, l)) {
		struct open_span *s = COP_CONTAINER_OF(l, struct open_span, link);

		for (; s && !rc; s = s->outer) {
			s->e.unfinished = true;
			rc = visit(arg, &s->e);
		}
	}
	return rc;
}

void cop_trace_pairs_end(struct pairs *p)
{
	struct cop_hlink *l, *next;

	for (l = cop_htab_after(&p->table, NULL); l; l = next) {
		struct open_span *s = COP_CONTAINER_OF(l, struct open_span, link);

		next = cop_htab_after(&p->table, l);
		cop_trace_spans_free(s);
	}
	cop_htab_fini(&p->table);
	p->unfinished += p->open;
	p->open = 0;
}
