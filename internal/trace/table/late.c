/* SPDX-License-Identifier: BSD-3-Clause */
/* The identity, rank and name of a process are known only after all metadata has been read. Until
 * then, a key holds the event's process and thread as file, host, pid and tid. At the end, it is
 * replaced, and groups whose keys become equal are merged. */
#include "trace/table/table_priv.h"

/* The fixed part of such a key; the bytes of host, pid and tid follow. */
struct blob {
	uint64_t source;
	uint32_t host, pid, tid;
};

size_t cop_late_room(const struct cop_trace_event *e)
{
	return sizeof(struct blob) + e->host.len + e->pid.len + e->tid.len;
}

size_t cop_late_put(const struct cop_trace_event *e, char *to)
{
	struct blob b = {.source = e->source,
		.host = (uint32_t)e->host.len,
		.pid = (uint32_t)e->pid.len,
		.tid = (uint32_t)e->tid.len};
	char *at = to + sizeof(b);

	memcpy(to, &b, sizeof(b));
	memcpy(at, e->host.at, b.host);
	memcpy(at + b.host, e->pid.at, b.pid);
	memcpy(at + b.host + b.pid, e->tid.at, b.tid);
	return sizeof(b) + b.host + b.pid + b.tid;
}

struct resolving {
	struct cop_tab *t;
	struct crew crew;
	struct cop_htab table;
	struct cop_buf key;
};

/* Returns an event with the process and thread in the key. */
static struct cop_trace_event event_of(struct cop_trace_str key)
{
	struct cop_trace_event e = {.kind = COP_TRACE_SPAN};
	const char *at = key.at + sizeof(struct blob);
	struct blob b;

	memcpy(&b, key.at, sizeof(b));
	e.source = (size_t)b.source;
	e.host = (struct cop_trace_str){at, b.host};
	e.pid = (struct cop_trace_str){at + b.host, b.pid};
	e.tid = (struct cop_trace_str){at + b.host + b.pid, b.tid};
	return e;
}

/* Writes an identity that is the same in all tables of one read: the host, or else the file, and
 * the pid. */
static void put_which(struct resolving *r, const struct process *p)
{
	if (p->host.len)
		cop_buf_printf(&r->key, "h%.*s", (int)p->host.len, p->host.at);
	else
		cop_buf_printf(&r->key, "s%zu", p->source);
	cop_buf_str(&r->key, "\1");
	cop_buf_add(&r->key, p->pid.at, p->pid.len);
}

static void put_process_text(
	struct resolving *r, enum cop_tab_key key, const struct process *p, bool per)
{
	if (key == COP_KEY_PROCESS)
		cop_process_label(r->t->conf.files, p, &r->key);
	else if (key == COP_KEY_RANK && p->has_rank)
		cop_buf_printf(&r->key, "%llu", (unsigned long long)p->rank);
	else if (key == COP_KEY_WHICH_PROCESS || per) /* keep processes without a rank distinct */
		put_which(r, p);
}

static void put_thread_text(struct resolving *r, enum cop_tab_key key, const struct thread *th)
{
	const struct cop_trace_str name =
		th->name.len && key == COP_KEY_THREAD ? th->name : th->tid;

	if (key == COP_KEY_WHICH_THREAD) {
		put_which(r, th->process);
		cop_buf_str(&r->key, "\1");
	}
	cop_buf_add(&r->key, name.at, name.len);
}

static void put_late(struct resolving *r, unsigned i, struct cop_trace_str blob)
{
	enum cop_tab_key key = r->t->conf.key[i];
	struct cop_trace_event e = event_of(blob);
	const struct thread *th = cop_crew_find(&r->t->part[0].seen, &e);

	if (key == COP_KEY_THREAD || key == COP_KEY_WHICH_THREAD)
		put_thread_text(r, key, th);
	else
		put_process_text(r, key, th->process, i >= r->t->conf.keys);
}

static struct group *replace(struct resolving *r, struct group *g)
{
	struct cop_trace_str key[COP_TAB_KEYS_MAX];
	const struct cop_tab_conf *c = &r->t->conf;
	struct group *new;

	cop_tab_split(g, c->keys + c->pers, key);
	r->key.len = 0;
	for (unsigned i = 0; i < c->keys + c->pers; i++) {
		size_t at = r->key.len;
		uint32_t len = (uint32_t)key[i].len;

		cop_buf_add(&r->key, &len, sizeof(len));
		if (cop_tab_is_late(c->key[i]))
			put_late(r, i, key[i]);
		else
			cop_buf_add(&r->key, key[i].at, key[i].len);
		if (r->key.failed)
			return NULL;
		len = (uint32_t)(r->key.len - at - sizeof(len));
		memcpy(r->key.data + at, &len, sizeof(len));
	}
	new = calloc(1, sizeof(*new) + r->key.len);
	if (!new)
		return NULL;
	new->agg = g->agg;
	new->len = (uint32_t)r->key.len;
	memcpy(new->key, r->key.data, r->key.len);
	return new;
}

static int replace_all(struct resolving *r)
{
	struct cop_htab *from = &r->t->part[0].table;
	struct cop_hlink *l, *next;
	int rc = 0;

	for (l = cop_htab_after(from, NULL); l && !rc; l = next) {
		struct group *g = COP_CONTAINER_OF(l, struct group, link), *new = replace(r, g);

		next = cop_htab_after(from, l);
		if (!new)
			return -ENOMEM;
		cop_htab_remove(from, l);
		free(g);
		rc = cop_tab_put_group(&r->table, new);
	}
	return rc;
}

static int by_text(const void *p, const void *q)
{
	const struct process *a = *(const struct process *const *)p;
	const struct process *b = *(const struct process *const *)q;
	int c = memcmp(a->pid.at, b->pid.at, COP_MIN(a->pid.len, b->pid.len));

	return c ? c : (a->pid.len > b->pid.len) - (a->pid.len < b->pid.len);
}

/* Whether two processes share a pid. */
static bool is_shared(const struct crew *c)
{
	const struct process **p = calloc(c->processes + 1, sizeof(const struct process *));
	bool shared = false;

	for (size_t i = 0; p && i < c->processes; i++)
		p[i] = &c->process[i];
	if (p)
		qsort(p, c->processes, sizeof(const struct process *), by_text);
	for (size_t i = 1; p && i < c->processes && !shared; i++)
		shared = !by_text(&p[i - 1], &p[i]);
	free(p);
	return shared;
}

/* Whether rows are keyed by pid or tid and no other key tells their processes apart. */
static bool needs_telling(const struct cop_tab_conf *c)
{
	bool pid = false, apart = false;

	for (unsigned i = 0; i < c->keys; i++) {
		pid |= c->key[i] == COP_KEY_PID || c->key[i] == COP_KEY_TID;
		apart |= c->key[i] == COP_KEY_TRACE || c->key[i] == COP_KEY_HOST ||
			 c->key[i] == COP_KEY_RANK || c->key[i] == COP_KEY_PROCESS;
	}
	return pid && !apart && !c->pers;
}

static bool has_late(const struct cop_tab_conf *c)
{
	for (unsigned i = 0; i < c->keys + c->pers; i++)
		if (cop_tab_is_late(c->key[i]))
			return true;
	return false;
}

static void swap_tables(struct cop_htab *a, struct cop_htab *b)
{
	struct cop_htab c = *a;

	*a = *b;
	*b = c;
}

int cop_late_resolve(struct cop_tab *t)
{
	struct resolving r = {.t = t};
	struct seen *seen = calloc(t->threads, sizeof(*seen));
	int rc = -ENOMEM;

	for (unsigned i = 0; seen && i < t->threads; i++) {
		seen[i] = t->part[i].seen;
		t->part[i].seen = (struct seen){0};
	}
	if (seen)
		rc = cop_crew_new(seen, t->threads, &r.crew);
	if (seen)
		t->part[0].seen = seen[0];
	free(seen);
	if (rc)
		return rc;
	t->shared = needs_telling(&t->conf) && is_shared(&r.crew);
	if (has_late(&t->conf)) {
		rc = replace_all(&r);
		swap_tables(&t->part[0].table, &r.table);
		if (rc)
			cop_tab_drop(&r.table);
		else
			cop_htab_fini(&r.table);
	}
	cop_crew_free(&r.crew);
	cop_buf_free(&r.key);
	return rc;
}
