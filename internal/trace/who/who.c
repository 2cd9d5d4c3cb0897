/* SPDX-License-Identifier: BSD-3-Clause */
/* A mention is a process and a thread as one file names them. Mentions are the same process if they
 * share host and pid or, without a host, file and pid. In some formats, not every event names its
 * host, so a mention without one gets the host that other events with the same file and pid
 * name. */
#include <ctype.h>

#include "trace/who/who.h"

#define NAME_MAX_BYTES ((size_t)512) /* longer names are truncated */
/* The system's pids and tids are kept where possible; numbers assigned here are larger. */
#define PID_MAX ((uint32_t)1 << 22)
#define TID_MAX ((uint32_t)1 << 30)

struct text { /* the text from the last line wins */
	char *at;
	size_t len;
	uint64_t line;
};
enum { TEXT_PROCESS, TEXT_LABELS, TEXT_THREAD, TEXTS };
struct mention {
	struct cop_hlink link;
	size_t source;
	struct cop_trace_str host, pid, tid;
	struct cop_trace_str of; /* the host it belongs to, after merging */
	bool has_events, has_rank;
	uint64_t rank;
	int64_t last_ns;
	struct text text[TEXTS];
	struct thread *thread;
	char bytes[];
};

/* ---- taking ---- */

static bool same(struct cop_trace_str a, struct cop_trace_str b)
{
	return a.len == b.len && !memcmp(a.at, b.at, a.len);
}

static uint64_t hash_of(const struct cop_trace_event *e, struct cop_trace_str tid)
{
	uint64_t h = cop_hash64(e->host.at, e->host.len, e->source);

	h = cop_hash64(e->pid.at, e->pid.len, h);
	return cop_hash64(tid.at, tid.len, h);
}

static bool is_of(
	const struct mention *m, const struct cop_trace_event *e, struct cop_trace_str tid)
{
	return m->source == e->source && same(m->tid, tid) && same(m->pid, e->pid) &&
	       same(m->host, e->host);
}

static struct mention *find_mention(
	struct seen *s, const struct cop_trace_event *e, struct cop_trace_str tid, uint64_t hash)
{
	struct cop_hlink *l = cop_htab_first(&s->table, hash);

	for (; l; l = cop_htab_next(l)) {
		struct mention *m = COP_CONTAINER_OF(l, struct mention, link);

		if (is_of(m, e, tid))
			return m;
	}
	return NULL;
}

static struct cop_trace_str keep_text(struct cop_trace_str s, char **to)
{
	char *at = memcpy(*to, s.at, s.len);

	*to += s.len;
	return (struct cop_trace_str){at, s.len};
}

static struct mention *mention(
	struct seen *s, const struct cop_trace_event *e, struct cop_trace_str tid)
{
	uint64_t hash;
	struct mention *m;
	char *to;

	if (s->before && is_of(s->before, e, tid))
		return s->before;
	hash = hash_of(e, tid);
	m = find_mention(s, e, tid, hash);
	if (!m) {
		m = calloc(1, sizeof(*m) + e->host.len + e->pid.len + tid.len);
		if (!m)
			return NULL;
		to = m->bytes;
		m->source = e->source;
		m->host = m->of = keep_text(e->host, &to);
		m->pid = keep_text(e->pid, &to);
		m->tid = keep_text(tid, &to);
		m->last_ns = INT64_MIN;
		cop_htab_add(&s->table, &m->link, hash);
	}
	s->before = m;
	return m;
}

static int set_text(struct text *t, struct cop_trace_str s, uint64_t line)
{
	char *copy;

	if (!s.len || (t->at && t->line >= line))
		return 0;
	s.len = COP_MIN(s.len, NAME_MAX_BYTES);
	copy = malloc(s.len);
	if (!copy)
		return -ENOMEM;
	free(t->at);
	memcpy(copy, s.at, s.len);
	t->at = copy;
	t->len = s.len;
	t->line = line;
	return 0;
}

/* Parses an integer from 0 to most, without sign or blanks. */
static bool number(struct cop_trace_str s, uint64_t most, uint64_t *out)
{
	uint64_t v = 0;

	for (size_t i = 0; i < s.len; i++) {
		if (!isdigit((unsigned char)s.at[i]) || v > most / 10)
			return false;
		v = v * 10 + (unsigned)(s.at[i] - '0');
	}
	*out = v;
	return s.len && v <= most;
}

/* Parses "Rank 3", DFTracer's name for a process under MPI. */
static bool is_rank(struct cop_trace_str s, uint64_t *rank)
{
	return s.len > 5 && !memcmp(s.at, "Rank ", 5) &&
	       number((struct cop_trace_str){s.at + 5, s.len - 5}, UINT32_MAX, rank);
}

static int take_meta(struct seen *s, const struct cop_trace_event *e)
{
	const struct cop_trace_str none = {"", 0};
	bool thread = cop_trace_str_is(e->name, "thread_name");
	struct mention *m;

	if (!thread && !e->rank.len && !cop_trace_str_is(e->name, "process_name") &&
		!cop_trace_str_is(e->name, "process_labels"))
		return 0;
	m = mention(s, e, thread ? e->tid : none);
	if (!m)
		return -ENOMEM;
	if (thread)
		return set_text(&m->text[TEXT_THREAD], e->of, e->line);
	if (cop_trace_str_is(e->name, "process_labels"))
		return set_text(&m->text[TEXT_LABELS], e->of, e->line);
	if (cop_trace_str_is(e->name, "PR") && number(e->rank, UINT32_MAX, &m->rank))
		m->has_rank = true;
	if (!cop_trace_str_is(e->name, "process_name"))
		return 0;
	if (!is_rank(e->of, &m->rank))
		return set_text(&m->text[TEXT_PROCESS], e->of, e->line);
	m->has_rank = true;
	return 0;
}

int cop_seen_take(struct seen *s, const struct cop_trace_event *e)
{
	int64_t end = e->ts_ns + (int64_t)e->dur_ns;
	struct mention *m;

	if (e->kind == COP_TRACE_META)
		return take_meta(s, e);
	m = mention(s, e, e->tid);
	if (!m)
		return -ENOMEM;
	m->has_events = true;
	if (!m->has_rank && e->rank.len)
		m->has_rank = number(e->rank, UINT32_MAX, &m->rank);
	m->last_ns = COP_MAX(m->last_ns, end);
	return 0;
}

static void mention_free(struct mention *m)
{
	for (unsigned i = 0; i < TEXTS; i++)
		free(m->text[i].at);
	free(m);
}

void cop_seen_free(struct seen *s)
{
	struct cop_hlink *l, *next;

	for (l = cop_htab_after(&s->table, NULL); l; l = next) {
		next = cop_htab_after(&s->table, l);
		mention_free(COP_CONTAINER_OF(l, struct mention, link));
	}
	cop_htab_fini(&s->table);
	*s = (struct seen){0};
}

/* ---- merging ---- */

static void add_to(struct mention *to, struct mention *m)
{
	to->has_events |= m->has_events;
	to->last_ns = COP_MAX(to->last_ns, m->last_ns);
	if (m->has_rank && !to->has_rank) {
		to->has_rank = true;
		to->rank = m->rank;
	}
	for (unsigned i = 0; i < TEXTS; i++) {
		struct text t = to->text[i];

		if (!m->text[i].at || (t.at && t.line >= m->text[i].line))
			continue;
		to->text[i] = m->text[i];
		m->text[i] = t;
	}
}

/* Moves the contents of `from` to `to`. */
static void join(struct seen *to, struct seen *from)
{
	struct cop_hlink *l, *next;

	for (l = cop_htab_after(&from->table, NULL); l; l = next) {
		struct mention *m = COP_CONTAINER_OF(l, struct mention, link), *there;
		struct cop_trace_event key = {.source = m->source, .host = m->host, .pid = m->pid};
		uint64_t hash = hash_of(&key, m->tid);

		next = cop_htab_after(&from->table, l);
		cop_htab_remove(&from->table, l);
		there = find_mention(to, &key, m->tid, hash);
		if (there) {
			add_to(there, m);
			mention_free(m);
		} else {
			cop_htab_add(&to->table, &m->link, hash);
		}
	}
	cop_htab_fini(&from->table);
	*from = (struct seen){0};
}

static int by_text(struct cop_trace_str a, struct cop_trace_str b)
{
	int c = memcmp(a.at, b.at, COP_MIN(a.len, b.len));

	return c ? c : (a.len > b.len) - (a.len < b.len);
}

/* Numbers sort before words, and by value. */
static int by_number(struct cop_trace_str a, struct cop_trace_str b)
{
	uint64_t x = UINT64_MAX, y = UINT64_MAX;
	bool p = number(a, UINT64_MAX - 1, &x), q = number(b, UINT64_MAX - 1, &y);

	if (p && q && x != y)
		return x < y ? -1 : 1;
	return p != q ? q - p : by_text(a, b);
}

static int compare_numbers(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* Orders mentions by file and pid, those with a host first. */
static int by_file(const void *a, const void *b)
{
	const struct mention *x = *(struct mention *const *)a, *y = *(struct mention *const *)b;
	int c = compare_numbers(x->source, y->source);

	c = c ? c : by_text(x->pid, y->pid);
	c = c ? c : compare_numbers(!x->host.len, !y->host.len);
	return c ? c : by_text(x->host, y->host);
}

/* Orders mentions by process. */
static int by_process(const struct mention *x, const struct mention *y)
{
	int c = by_text(x->of, y->of);

	c = c || x->of.len ? c : compare_numbers(x->source, y->source);
	return c ? c : by_text(x->pid, y->pid);
}

static int by_thread(const void *a, const void *b)
{
	const struct mention *x = *(struct mention *const *)a, *y = *(struct mention *const *)b;
	int c = by_process(x, y);

	c = c ? c : by_number(x->tid, y->tid);
	return c ? c : compare_numbers(x->source, y->source);
}

static struct mention **list(struct seen *s)
{
	struct mention **all = calloc(s->table.count + 1, sizeof(struct mention *));
	struct cop_hlink *l = cop_htab_after(&s->table, NULL);
	size_t n = 0;

	for (; l && all; l = cop_htab_after(&s->table, l))
		all[n++] = COP_CONTAINER_OF(l, struct mention, link);
	return all;
}

static void give_hosts(struct mention **all, size_t n)
{
	qsort(all, n, sizeof(struct mention *), by_file);
	for (size_t i = 1; i < n; i++)
		if (!all[i]->host.len && all[i]->source == all[i - 1]->source &&
			same(all[i]->pid, all[i - 1]->pid))
			all[i]->of = all[i - 1]->of;
}

/* ---- processes and threads ---- */

static void take_text(struct cop_trace_str *to, const struct text *t)
{
	if (!to->len && t->at)
		*to = (struct cop_trace_str){t->at, t->len};
}

static void describe(struct process *p, struct thread *t, const struct mention *m)
{
	take_text(&p->name, &m->text[TEXT_PROCESS]);
	take_text(&p->labels, &m->text[TEXT_LABELS]);
	if (m->has_rank && !p->has_rank) {
		p->has_rank = true;
		p->rank = m->rank;
	}
	if (!t)
		return;
	take_text(&t->name, &m->text[TEXT_THREAD]);
	t->last_ns = COP_MAX(t->last_ns, m->last_ns);
}

static bool any_events(struct mention **m, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (m[i]->has_events)
			return true;
	return false;
}

/* Creates a thread from its n mentions. A thread without events is dropped, but its mentions may
 * still describe the process. */
static void one_thread(struct crew *c, struct process *p, struct mention **m, size_t n)
{
	const struct cop_trace_str none = {"", 0};
	struct thread *t = NULL;

	if (any_events(m, n)) {
		t = &c->thread[c->threads];
		*t = (struct thread){.tid = m[0]->tid, .name = none, .last_ns = INT64_MIN};
		c->of[c->threads++] = t;
		p->threads++;
	}
	for (size_t i = 0; i < n; i++) {
		p->source = COP_MIN(p->source, m[i]->source);
		m[i]->thread = t;
		describe(p, t, m[i]);
	}
}

/* Creates a process and its threads from its n mentions. */
static void one_process(struct crew *c, struct mention **m, size_t n)
{
	const struct cop_trace_str none = {"", 0};
	struct process *p = &c->process[c->processes];

	if (!any_events(m, n))
		return;
	*p = (struct process){.host = m[0]->of,
		.pid = m[0]->pid,
		.name = none,
		.labels = none,
		.source = m[0]->source,
		.thread = &c->of[c->threads]};
	for (size_t i = 0, k; i < n; i = k) {
		for (k = i + 1; k < n && same(m[i]->tid, m[k]->tid);)
			k++;
		one_thread(c, p, m + i, k - i);
	}
	c->processes++;
}

static int by_rank(const void *a, const void *b)
{
	const struct process *x = a, *y = b;
	int c = compare_numbers(!x->has_rank, !y->has_rank);

	c = c || !x->has_rank ? c : compare_numbers(x->rank, y->rank);
	c = c ? c : by_text(x->host, y->host);
	c = c ? c : by_number(x->pid, y->pid);
	return c ? c : compare_numbers(x->source, y->source);
}

/* Returns the system's pid if it is still free, else a new number. */
static uint32_t number_of(const struct process *p, uint64_t *used, uint32_t *next)
{
	uint64_t n;

	if (!number(p->pid, PID_MAX, &n) || !n || (used[n / 64] >> n % 64 & 1))
		return ++*next;
	used[n / 64] |= UINT64_C(1) << n % 64;
	return (uint32_t)n;
}

static void number_threads(struct process *p)
{
	uint32_t next = TID_MAX;
	uint64_t n;

	for (size_t i = 0; i < p->threads; i++) {
		p->thread[i]->process = p;
		p->thread[i]->is_own = number(p->thread[i]->tid, TID_MAX, &n);
		p->thread[i]->number = p->thread[i]->is_own ? (uint32_t)n : ++next;
	}
}

static void fill_crew(struct crew *c, struct mention **m, size_t n, uint64_t *used)
{
	uint32_t next = PID_MAX;
	size_t from = 0;

	give_hosts(m, n);
	qsort(m, n, sizeof(struct mention *), by_thread);
	for (size_t i = 1; i <= n; i++) {
		if (i < n && !by_process(m[i - 1], m[i]))
			continue;
		one_process(c, m + from, i - from);
		from = i;
	}
	qsort(c->process, c->processes, sizeof(*c->process), by_rank);
	for (size_t i = 0; i < c->processes; i++) {
		c->process[i].number = number_of(&c->process[i], used, &next);
		number_threads(&c->process[i]);
	}
}

int cop_crew_new(struct seen *all, unsigned n, struct crew *c)
{
	struct mention **m;
	uint64_t *used = calloc(PID_MAX / 64 + 1, sizeof(*used));
	size_t count;
	int rc = -ENOMEM;

	for (unsigned i = 1; i < n; i++)
		join(&all[0], &all[i]);
	all[0].before = NULL;
	count = all[0].table.count;
	m = list(&all[0]);
	*c = (struct crew){.process = calloc(count + 1, sizeof(*c->process)),
		.thread = calloc(count + 1, sizeof(*c->thread)),
		.of = calloc(count + 1, sizeof(struct thread *))};
	if (m && used && c->process && c->thread && c->of) {
		if (count)
			fill_crew(c, m, count, used);
		rc = 0;
	}
	free(used);
	free(m);
	if (rc)
		cop_crew_free(c);
	return rc;
}

void cop_crew_free(struct crew *c)
{
	free(c->process);
	free(c->thread);
	free(c->of);
	*c = (struct crew){0};
}

const struct thread *cop_crew_find(struct seen *first, const struct cop_trace_event *e)
{
	if (!first->before || !is_of(first->before, e, e->tid))
		first->before = find_mention(first, e, e->tid, hash_of(e, e->tid));
	return first->before->thread;
}

/* Appends the host or, without one, the name of the file, which then tells processes apart. */
static void place_of(
	const struct cop_trace_files *files, const struct process *p, struct cop_buf *to)
{
	const char *path, *slash;

	if (p->host.len) {
		cop_buf_add(to, p->host.at, p->host.len);
		return;
	}
	path = cop_trace_files_name(files, p->source);
	slash = strrchr(path, '/');
	cop_buf_str(to, slash ? slash + 1 : path);
}

void cop_process_label(
	const struct cop_trace_files *files, const struct process *p, struct cop_buf *to)
{
	place_of(files, p, to);
	if (p->has_rank)
		cop_buf_printf(to, " rank %llu", (unsigned long long)p->rank);
	if (p->name.len || p->labels.len)
		cop_buf_str(to, ":");
	if (p->name.len)
		cop_buf_printf(to, " %.*s", (int)p->name.len, p->name.at);
	if (p->labels.len)
		cop_buf_printf(to, " %.*s", (int)p->labels.len, p->labels.at);
	if (p->pid.len)
		cop_buf_printf(to, " (pid %.*s)", (int)COP_MIN(p->pid.len, (size_t)512), p->pid.at);
}
