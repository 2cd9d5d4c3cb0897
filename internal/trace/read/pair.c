/* SPDX-License-Identifier: BSD-3-Clause */
/* Pairs begin events with end events. B and E match within a thread; b and e within a category, id
 * and scope; S and F, their old form, also by name. An end closes the last open begin of the same
 * name, or the last open begin if the end has no name. PerfFlowAspect may write another function's
 * name into an end event. Such an end closes the last begin if the file has no begin of that name
 * and the category matches (b and e: if there is only one open begin); the span keeps the name of
 * its begin. Spans that began later stay open. Order is file order, because all writers append. */
#include "trace/read/read_priv.h"

/* Maximum number of open spans to compare with an end event. */
#define NESTED_MAX 4096u
#define NAMES_MAX ((size_t)1 << 16) /* of begin events; beyond this, every name counts as seen */
#define TDUR_MAX 32                 /* ,"tdur":N */

struct pair_key {
	uint64_t a, b;
};
struct open_span {
	struct cop_hlink link;   /* used in the table by the innermost span of a thread or id */
	struct open_span *outer; /* enclosing span, or next in the list of used spans */
	struct pair_key key;
	struct cop_trace_event e;
	char bytes[]; /* its strings, and room for its duration in thread time */
};

static void add_to_key(struct pair_key *k, struct cop_trace_str s)
{
	k->a = cop_hash64(s.at, s.len, k->a);
	k->b = cop_hash64(s.at, s.len, k->b);
}

/* Returns the key that a begin and its end share; two hashes represent the strings. */
static struct pair_key key_of(const struct record *r)
{
	const struct cop_trace_event *e = &r->e;
	bool async = r->half >= HALF_ASYNC_BEGIN;
	struct pair_key k = {async ? 1 + (unsigned)e->id_kind : 0, 16 + (unsigned)e->old_async};

	if (!async) {
		add_to_key(&k, e->pid);
		add_to_key(&k, e->tid);
		return k;
	}
	add_to_key(&k, e->cat);
	add_to_key(&k, e->id);
	add_to_key(&k, e->scope);
	if (e->id_kind == COP_TRACE_ID_PROCESS)
		add_to_key(&k, e->pid);
	if (e->old_async)
		add_to_key(&k, e->name);
	return k;
}

static struct open_span *find_span(const struct pairs *p, struct pair_key key)
{
	struct cop_hlink *l = cop_htab_first(&p->table, key.a);

	for (; l; l = cop_htab_next(l)) {
		struct open_span *s = COP_CONTAINER_OF(l, struct open_span, link);

		if (s->key.a == key.a && s->key.b == key.b)
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

static struct open_span *copy_of(const struct cop_trace_event *e, struct pair_key key)
{
	struct cop_trace_event copy = *e;
	struct cop_trace_str *const all[] = {&copy.name, &copy.cat, &copy.pid, &copy.tid,
		&copy.file, &copy.host, &copy.id, &copy.scope, &copy.args, &copy.rank,
		&copy.process, &copy.thread, &copy.bind_id, &copy.more};
	struct open_span *s;
	size_t len = TDUR_MAX;
	char *to;

	for (size_t i = 0; i < COP_ARRAY_SIZE(all); i++)
		len += all[i]->len;
	s = malloc(sizeof(*s) + len);
	if (!s)
		return NULL;
	to = s->bytes;
	for (size_t i = 0; i < COP_ARRAY_SIZE(all); i++)
		keep_text(all[i], &to);
	copy.raw = copy.of = copy.end_args = (struct cop_trace_str){"", 0};
	s->e = copy;
	s->key = key;
	return s;
}

static void begin_span(
	struct pairs *p, const struct record *r, struct pair_key key, struct open_span *outer)
{
	struct open_span *s = p->open < COP_TRACE_OPEN_MAX ? copy_of(&r->e, key) : NULL;

	if (!s) {
		p->unfinished++;
		return;
	}
	if (outer)
		cop_htab_remove(&p->table, &outer->link);
	s->outer = outer;
	cop_htab_add(&p->table, &s->link, key.a);
	p->open++;
}

static bool same(struct cop_trace_str a, struct cop_trace_str b)
{
	return a.len == b.len && !memcmp(a.at, b.at, a.len);
}

static uint64_t hash_of(struct cop_trace_str s)
{
	return cop_hash64(s.at, s.len, 0);
}

/* Whether an end whose name does not match closes the innermost span anyway. */
static bool closes_another(
	const struct pairs *p, const struct open_span *inner, const struct record *r)
{
	if (r->half == HALF_ASYNC_END)
		return !inner->outer;
	return p->begun.count < NAMES_MAX && same(inner->e.cat, r->e.cat) &&
	       !cop_seen_has(&p->begun, hash_of(r->e.name));
}

/* Returns the link to the span that this end closes, or NULL. */
static struct open_span **closed_by(
	const struct pairs *p, struct open_span **inner, const struct record *r)
{
	struct open_span **s = inner;

	if (!r->e.name.len)
		return inner;
	for (unsigned i = 0; *s && i < NESTED_MAX; i++, s = &(*s)->outer)
		if (same((*s)->e.name, r->e.name))
			return s;
	return closes_another(p, *inner, r) ? inner : NULL;
}

/* Removes a span from the list for its key. */
static struct open_span *take_out(struct pairs *p, struct open_span *inner, struct open_span **at)
{
	struct open_span *s = *at;

	p->open--;
	if (s != inner) {
		*at = s->outer;
		return s;
	}
	cop_htab_remove(&p->table, &s->link);
	if (s->outer)
		cop_htab_add(&p->table, &s->outer->link, s->key.a);
	return s;
}

/* Appends the duration in thread time if both halves have a thread time. */
static void take_tdur(struct cop_trace_event *begin, const struct cop_trace_event *end)
{
	struct cop_trace_str object = {begin->more.at - 1, begin->more.len + 1}, value;
	char *to = (char *)begin->more.at + begin->more.len;
	long double from, until;

	if (!begin->more.len || !end->more.len || !cop_trace_member(object, "tts", &value) ||
		!cop_trace_value_number(value, &from))
		return;
	object = (struct cop_trace_str){end->more.at - 1, end->more.len + 1};
	if (!cop_trace_member(object, "tts", &value) || !cop_trace_value_number(value, &until) ||
		!(until >= from) || until - from > 1e15)
		return;
	begin->more.len += (size_t)snprintf(to, TDUR_MAX, ",\"tdur\":%.15Lg", until - from);
}

/* Merges the begin into the end. If only the end has a size, it is used. */
static void become_span(struct record *r, const struct open_span *s)
{
	struct cop_trace_event end = r->e;

	r->e = s->e;
	take_tdur(&r->e, &end);
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
	struct pair_key key = key_of(r);
	struct open_span *inner = find_span(p, key), *s = inner, **at;

	if (r->half == HALF_BEGIN)
		cop_seen_add(&p->begun, hash_of(r->e.name), NAMES_MAX);
	if (r->half == HALF_BEGIN || r->half == HALF_ASYNC_BEGIN) {
		begin_span(p, r, key, inner);
		return false;
	}
	at = inner ? closed_by(p, &s, r) : NULL;
	if (!at) {
		p->unmatched++;
		return false;
	}
	s = take_out(p, inner, at);
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
	cop_seen_forget(&p->begun);
	p->unfinished += p->open;
	p->open = 0;
}
