/* SPDX-License-Identifier: BSD-3-Clause */
/* Pairs begins with ends. B and E match within a thread, b and e within a category, an id and a
 * scope; S and F, their old form, also by name. An end closes the last begin of its name; an end
 * without a name closes the last begin. PerfFlowAspect may write another function's name at an end:
 * such an end closes the last begin if the file has no begin of that name and the category matches
 * (for b and e, only if it is the only one); the begin's name is kept. Spans begun later remain
 * open. Order is file order, since all writers append. */
#include "trace/read/read_priv.h"

/* Maximum number of open spans that an end is compared with. */
#define NESTED_MAX 4096u
#define NAMES_MAX ((size_t)1 << 16) /* of begins; beyond this, every name counts as seen */
#define TDUR_MAX 32                 /* ,"tdur":N */

struct pair_key {
	uint64_t a, b;
};
struct open_span {
	struct cop_hlink link;   /* in the table: the innermost span of its thread or id */
	struct open_span *outer; /* enclosing span, or next in a list */
	struct pair_key key;
	struct cop_trace_event e;
	char bytes[]; /* its strings, with room for the thread-time duration */
};

static void add_to_key(struct pair_key *k, struct cop_trace_str s)
{
	k->a = cop_hash64(s.at, s.len, k->a);
	k->b = cop_hash64(s.at, s.len, k->b);
}

/* The key shared by a begin and its end; two hashes stand for the strings. */
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

/* Whether an end with an unmatched name closes the innermost span anyway. */
static bool closes_another(
	const struct pairs *p, const struct open_span *inner, const struct record *r)
{
	if (r->half == HALF_ASYNC_END)
		return !inner->outer;
	return p->begun.count < NAMES_MAX && same(inner->e.cat, r->e.cat) &&
	       !cop_seen_has(&p->begun, hash_of(r->e.name));
}

/* The link to the span that this end closes, or NULL. */
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

/* Removes a span from the list of its key. */
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

/* The duration in thread time, if both halves have it. */
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

/* The end's size is used if the begin has none. */
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
