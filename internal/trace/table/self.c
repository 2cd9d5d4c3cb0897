/* SPDX-License-Identifier: BSD-3-Clause */
/* Each thread has a stack of running spans, the latest on top. The time of a new span is subtracted
 * from the span below it; the part beyond that span's end is subtracted from the next one below. */
#include "trace/table/table_priv.h"

struct running {
	struct running *below;
	struct cop_trace_event e;
	int64_t end;
	uint64_t inside_ns; /* time of nested spans */
	char bytes[];
};
struct stack { /* of one thread */
	struct cop_hlink link;
	struct running *top;
	size_t len;
	char key[];
};
struct cop_self {
	cop_self_visit *visit;
	void *arg;
	struct cop_htab table;
	struct stack *before; /* stack of the previous event */
	struct cop_buf key;
};

struct cop_self *cop_self_new(cop_self_visit *visit, void *arg)
{
	struct cop_self *s = calloc(1, sizeof(*s));

	if (s)
		*s = (struct cop_self){.visit = visit, .arg = arg};
	return s;
}

/* Pops the spans that have ended off a stack and passes them on. */
static int pop_until(struct cop_self *s, struct stack *st, int64_t now)
{
	int rc = 0;

	while (st->top && st->top->end <= now && !rc) {
		struct running *r = st->top;
		uint64_t inside = COP_MIN(r->inside_ns, r->e.dur_ns);

		st->top = r->below;
		rc = s->visit(s->arg, &r->e, r->e.dur_ns - inside);
		free(r);
	}
	return rc;
}

int cop_self_end(struct cop_self *s)
{
	struct cop_hlink *l = cop_htab_after(&s->table, NULL);
	int rc = 0;

	for (; l && !rc; l = cop_htab_after(&s->table, l))
		rc = pop_until(s, COP_CONTAINER_OF(l, struct stack, link), INT64_MAX);
	return rc;
}

void cop_self_free(struct cop_self *s)
{
	struct cop_hlink *l, *next;

	if (!s)
		return;
	for (l = cop_htab_after(&s->table, NULL); l; l = next) {
		struct stack *st = COP_CONTAINER_OF(l, struct stack, link);

		next = cop_htab_after(&s->table, l);
		while (st->top) {
			struct running *below = st->top->below;

			free(st->top);
			st->top = below;
		}
		free(st);
	}
	cop_htab_fini(&s->table);
	cop_buf_free(&s->key);
	free(s);
}

/* Returns the stack of an event's thread; NULL if out of memory. */
static struct stack *stack_of(struct cop_self *s, const struct cop_trace_event *e)
{
	size_t head[] = {e->host.len ? 0 : e->source + 1, e->host.len, e->pid.len};
	struct cop_hlink *l;
	struct stack *st;
	uint64_t hash;

	s->key.len = 0;
	cop_buf_add(&s->key, head, sizeof(head));
	cop_buf_add(&s->key, e->host.at, e->host.len);
	cop_buf_add(&s->key, e->pid.at, e->pid.len);
	cop_buf_add(&s->key, e->tid.at, e->tid.len);
	if (s->key.failed)
		return NULL;
	if (s->before && s->before->len == s->key.len &&
		!memcmp(s->before->key, s->key.data, s->key.len))
		return s->before;
	hash = cop_hash64(s->key.data, s->key.len, 0);
	for (l = cop_htab_first(&s->table, hash); l; l = cop_htab_next(l)) {
		st = COP_CONTAINER_OF(l, struct stack, link);
		if (st->len == s->key.len && !memcmp(st->key, s->key.data, st->len))
			return s->before = st;
	}
	st = calloc(1, sizeof(*st) + s->key.len);
	if (!st)
		return NULL;
	st->len = s->key.len;
	memcpy(st->key, s->key.data, st->len);
	cop_htab_add(&s->table, &st->link, hash);
	return s->before = st;
}

/* Subtracts a span from the spans that contain it. */
static void take_time(struct running *top, int64_t from, int64_t to)
{
	for (; top && from < to; top = top->below) {
		int64_t end = COP_MIN(top->end, to);

		if (end <= from)
			continue;
		top->inside_ns += (uint64_t)(end - from);
		from = end;
	}
}

static void keep_text(struct cop_trace_str *s, char **to)
{
	memcpy(*to, s->at, s->len);
	s->at = *to;
	*to += s->len;
}

static struct running *copy_of(const struct cop_trace_event *e)
{
	struct running *r = malloc(sizeof(*r) + e->name.len + e->cat.len + e->pid.len + e->tid.len +
				   e->file.len + e->host.len + e->args.len + e->end_args.len);
	char *to;

	if (!r)
		return NULL;
	*r = (struct running){.e = *e, .end = e->ts_ns + (int64_t)e->dur_ns};
	r->e.id = r->e.scope = r->e.of = r->e.rank = r->e.raw = (struct cop_trace_str){"", 0};
	to = r->bytes;
	keep_text(&r->e.name, &to);
	keep_text(&r->e.cat, &to);
	keep_text(&r->e.pid, &to);
	keep_text(&r->e.tid, &to);
	keep_text(&r->e.file, &to);
	keep_text(&r->e.host, &to);
	keep_text(&r->e.args, &to);
	keep_text(&r->e.end_args, &to);
	return r;
}

int cop_self_add(struct cop_self *s, const struct cop_trace_event *e)
{
	struct running *r;
	struct stack *st;
	int rc;

	if (e->kind != COP_TRACE_SPAN || e->unfinished || (e->ph != 'X' && e->ph != 'B'))
		return s->visit(s->arg, e, e->dur_ns);
	st = stack_of(s, e);
	if (!st)
		return -ENOMEM;
	rc = pop_until(s, st, e->ts_ns);
	if (rc)
		return rc;
	r = copy_of(e);
	if (!r)
		return -ENOMEM;
	take_time(st->top, e->ts_ns, r->end);
	r->below = st->top;
	st->top = r;
	return 0;
}
