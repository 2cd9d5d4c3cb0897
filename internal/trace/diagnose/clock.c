/* SPDX-License-Identifier: BSD-3-Clause */
/* Detects clocks that were set back. Writers append, so either the start times or the end times of
 * a thread increase from line to line. A clock that is set back makes them decrease once or a few
 * times; in an unordered file they decrease often, which proves nothing. Each of our threads gets
 * the lines of a file in order, but not all of them, so it may miss a step between two blocks. */
#include "trace/diagnose/diagnose_priv.h"

/* Smaller steps may come from rounding, or from a writer that reads the clock before it takes its
 * lock. */
#define STEP_MIN_NS 1000000u

enum { BEGINS, ENDS, ORDERS };
struct fall {
	uint64_t n, line, back_ns; /* number of decreases; line and size of the largest */
	int64_t before;
};
struct line_of_thread {
	struct cop_hlink link;
	size_t source;
	uint64_t line, n;
	struct fall fall[ORDERS];
	size_t pid_len, len;
	char key[];
};
struct clock_part {
	struct cop_htab table;
	struct line_of_thread *before;
};

struct clock_part *cop_diagnose_clock_new(unsigned threads)
{
	return calloc(threads, sizeof(struct clock_part));
}

void cop_diagnose_clock_free(struct clock_part *c, unsigned threads)
{
	struct cop_hlink *l, *next;

	for (unsigned i = 0; c && i < threads; i++) {
		for (l = cop_htab_after(&c[i].table, NULL); l; l = next) {
			next = cop_htab_after(&c[i].table, l);
			free(COP_CONTAINER_OF(l, struct line_of_thread, link));
		}
		cop_htab_fini(&c[i].table);
	}
	free(c);
}

static bool is_of(const struct line_of_thread *t, const struct cop_trace_event *e)
{
	return t->source == e->source && t->pid_len == e->pid.len &&
	       t->len == e->pid.len + e->tid.len && !memcmp(t->key, e->pid.at, e->pid.len) &&
	       !memcmp(t->key + t->pid_len, e->tid.at, e->tid.len);
}

static struct line_of_thread *find(struct clock_part *c, const struct cop_trace_event *e)
{
	uint64_t hash =
		cop_hash64(e->tid.at, e->tid.len, cop_hash64(e->pid.at, e->pid.len, e->source));
	struct cop_hlink *l = cop_htab_first(&c->table, hash);
	struct line_of_thread *t;

	for (; l; l = cop_htab_next(l)) {
		t = COP_CONTAINER_OF(l, struct line_of_thread, link);
		if (is_of(t, e))
			return t;
	}
	t = calloc(1, sizeof(*t) + e->pid.len + e->tid.len);
	if (!t)
		return NULL;
	t->source = e->source;
	t->pid_len = e->pid.len;
	t->len = e->pid.len + e->tid.len;
	memcpy(t->key, e->pid.at, e->pid.len);
	memcpy(t->key + e->pid.len, e->tid.at, e->tid.len);
	cop_htab_add(&c->table, &t->link, hash);
	return t;
}

static void take(struct fall *f, int64_t now, uint64_t line, bool first)
{
	uint64_t back = !first && now < f->before ? (uint64_t)(f->before - now) : 0;

	f->before = now;
	if (back < STEP_MIN_NS)
		return;
	f->n++;
	if (back <= f->back_ns)
		return;
	f->back_ns = back;
	f->line = line;
}

int cop_diagnose_clock_take(
	struct clock_part *all, unsigned worker, const struct cop_trace_event *e)
{
	struct clock_part *c = &all[worker];
	struct line_of_thread *t = c->before;

	if (e->kind != COP_TRACE_SPAN || e->ph != 'X')
		return 0;
	if (!t || !is_of(t, e))
		t = c->before = find(c, e);
	if (!t)
		return -ENOMEM;
	if (t->n && e->line <= t->line)
		return 0;
	take(&t->fall[BEGINS], e->ts_ns, e->line, !t->n);
	take(&t->fall[ENDS], e->ts_ns + (int64_t)e->dur_ns, e->line, !t->n);
	t->line = e->line;
	t->n++;
	return 0;
}

bool cop_diagnose_clock_step(const struct clock_part *c, unsigned threads, struct step *out)
{
	*out = (struct step){0};
	for (unsigned i = 0; i < threads; i++) {
		struct cop_hlink *l = cop_htab_after(&c[i].table, NULL);

		for (; l; l = cop_htab_after(&c[i].table, l)) {
			const struct line_of_thread *t =
				COP_CONTAINER_OF(l, struct line_of_thread, link);
			const struct fall *f = t->fall[ENDS].n <= t->fall[BEGINS].n
						       ? &t->fall[ENDS]
						       : &t->fall[BEGINS];

			if (!f->n || t->n < 10 || f->n > 1 + t->n / 1000 ||
				f->back_ns <= out->back_ns)
				continue;
			*out = (struct step){t->source, f->line, f->back_ns};
		}
	}
	return out->back_ns > 0;
}
