/* SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>
#include <math.h>

#include "base/base/json.h"
#include "trace/timeline/timeline_priv.h"
#include "trace/timeline/timeline.h"

#define PART_BYTES (64 * COP_KIB)

struct cop_merge {
	unsigned threads;
	struct cop_order *order;
	struct crew crew;
	/* State while writing the document: */
	cop_merge_write_fn *write;
	void *arg;
	struct cop_buf out;
	bool comma;
	struct seen seen[]; /* one per thread */
};

struct cop_merge *cop_merge_new(unsigned threads, const char *dir)
{
	struct cop_merge *m = calloc(1, sizeof(*m) + threads * sizeof(m->seen[0]));

	if (!m)
		return NULL;
	m->threads = threads;
	m->order = cop_order_new(
		&(struct cop_order_conf){.threads = threads, .dir = dir, .whole = true});
	if (m->order)
		return m;
	free(m);
	return NULL;
}

void cop_merge_free(struct cop_merge *m)
{
	if (!m)
		return;
	for (unsigned i = 0; i < m->threads; i++)
		cop_seen_free(&m->seen[i]);
	cop_crew_free(&m->crew);
	cop_order_free(m->order);
	cop_buf_free(&m->out);
	free(m);
}

/* ---- taking ---- */

/* Adds the end of an asynchronous span as a separate event. At equal times, ends must precede
 * begins, and inner ends must precede outer ones. dur_ns is set so that both hold, since longer
 * events sort first. */
static int add_end(struct cop_merge *m, unsigned worker, const struct cop_trace_event *e)
{
	struct cop_trace_event end = *e;

	end.ph = 'e';
	end.ts_ns += (int64_t)e->dur_ns;
	end.dur_ns = e->dur_ns ? UINT64_MAX - e->dur_ns : 0;
	end.args = e->end_args;
	end.end_args = (struct cop_trace_str){"", 0};
	end.line++;
	return cop_order_add(m->order, worker, &end);
}

int cop_merge_add(struct cop_merge *m, unsigned worker, const struct cop_trace_event *e)
{
	struct cop_trace_event begin;
	int rc = cop_seen_take(&m->seen[worker], e);

	if (rc || e->kind == COP_TRACE_META)
		return rc;
	if (e->kind != COP_TRACE_SPAN || e->ph != 'b')
		return cop_order_add(m->order, worker, e);
	begin = *e;
	begin.end_args = (struct cop_trace_str){"", 0};
	begin.ph = e->unfinished ? 'n' : 'b';
	rc = cop_order_add(m->order, worker, &begin);
	return rc || e->unfinished ? rc : add_end(m, worker, e);
}

/* ---- writing ---- */

static int flush(struct cop_merge *m)
{
	int rc = m->out.failed ? -ENOMEM : 0;

	if (!rc && m->out.len)
		rc = m->write(m->arg, m->out.data, m->out.len);
	m->out.len = 0;
	return rc;
}

/* Begins a line, after a comma unless it is the first line. */
static struct cop_json begin_line(struct cop_merge *m)
{
	struct cop_json j = cop_json_to(&m->out);

	cop_buf_str(&m->out, m->comma ? ",\n" : "");
	m->comma = true;
	cop_json_object(&j, NULL);
	return j;
}

static void put_str(struct cop_json *j, const char *key, struct cop_trace_str s)
{
	cop_json_bytes(j, key, s.at, s.len);
}

/* Writes microseconds, with decimals only if they are nonzero. */
static void put_us(struct cop_json *j, const char *key, int64_t ns)
{
	uint64_t abs = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;

	if (ns >= 0) {
		cop_json_u64(j, key, abs / 1000);
	} else {
		cop_json_value(j, key);
		cop_buf_printf(j->out, "-%llu", (unsigned long long)(abs / 1000));
	}
	if (abs % 1000) {
		const char decimals[] = {'.', (char)('0' + abs / 100 % 10),
			(char)('0' + abs / 10 % 10), (char)('0' + abs % 10)};

		cop_buf_add(j->out, decimals, sizeof(decimals));
	}
}

/* ---- names ---- */

/* Writes the members before args. Some readers require a category and a timestamp even here. */
static struct cop_json begin_meta(struct cop_merge *m, const struct thread *t, const char *what)
{
	struct cop_json j = begin_line(m);

	cop_json_str(&j, "name", what);
	cop_json_str(&j, "cat", "__metadata");
	cop_json_u64(&j, "pid", t->process->number);
	cop_json_u64(&j, "tid", t->number);
	cop_json_u64(&j, "ts", 0);
	cop_json_str(&j, "ph", "M");
	cop_json_object(&j, "args");
	return j;
}

static void put_meta(
	struct cop_merge *m, const struct thread *t, const char *what, struct cop_trace_str name)
{
	struct cop_json j = begin_meta(m, t, what);

	put_str(&j, "name", name);
	cop_json_end(&j);
	cop_json_end(&j);
}

static void put_sort_index(struct cop_merge *m, const struct thread *t, size_t index)
{
	struct cop_json j = begin_meta(m, t, "process_sort_index");

	cop_json_u64(&j, "sort_index", index);
	cop_json_end(&j);
	cop_json_end(&j);
}

/* Names each process, and each thread whose name is known or whose number differs from that in the
 * files. */
static int put_names(struct cop_merge *m, const struct cop_trace_files *files)
{
	int rc = 0;

	for (size_t i = 0; i < m->crew.processes && !rc; i++) {
		const struct process *p = &m->crew.process[i];
		struct cop_buf name = {0};

		cop_process_label(files, p, &name);
		put_meta(m, p->thread[0], "process_name",
			(struct cop_trace_str){name.data ? name.data : "", name.len});
		put_sort_index(m, p->thread[0], i);
		for (size_t k = 0; k < p->threads; k++) {
			const struct thread *t = p->thread[k];

			if (t->name.len || (t->tid.len && !t->is_own))
				put_meta(m, t, "thread_name", t->name.len ? t->name : t->tid);
		}
		m->out.failed |= name.failed;
		cop_buf_free(&name);
		rc = m->out.len >= PART_BYTES ? flush(m) : 0;
	}
	return rc;
}

/* ---- one event ---- */

static bool is_resolved(struct cop_trace_str s, bool is_hash)
{
	return s.len && !is_hash;
}

static bool has_member(struct cop_trace_str object, struct cop_trace_str key)
{
	struct cop_trace_members m = cop_trace_members_of(object);
	struct cop_trace_str k, value;

	while (cop_trace_members_next(&m, &k, &value))
		if (k.len == key.len && !memcmp(k.at, key.at, k.len))
			return true;
	return false;
}

/* Strips the quotes that some writers put around the value of a counter. */
static struct cop_trace_str number_in(struct cop_trace_str value)
{
	long double d;

	if (value.len > 2 && *value.at == '"' && cop_trace_value_number(value, &d) && isfinite(d))
		return (struct cop_trace_str){value.at + 1, value.len - 2};
	return value;
}

/* Replaces hashes with their names. Viewers treat every arg of a counter as a value, so a counter
 * gets no extra args, and the labels that describe its values are omitted: they are part of its
 * id. */
static void put_members(struct cop_json *j, const struct cop_trace_event *e,
	struct cop_trace_str object, struct cop_trace_str later)
{
	struct cop_trace_members m = cop_trace_members_of(object);
	struct cop_trace_str key, value;
	bool counter = e->kind == COP_TRACE_COUNTER;
	unsigned left = counter && e->values ? e->values : UINT_MAX;

	while (left-- && cop_trace_members_next(&m, &key, &value)) {
		if (cop_trace_str_is(key, "hhash") &&
			(counter || is_resolved(e->host, e->host_is_hash)))
			continue;
		if (later.len && has_member(later, key))
			continue;
		if (cop_trace_str_is(key, "fhash") && is_resolved(e->file, e->file_is_hash)) {
			put_str(j, "fname", e->file);
			continue;
		}
		cop_buf_str(j->out, j->comma ? ",\"" : "\"");
		j->comma = true;
		cop_members_copy_inside(j->out, key);
		cop_buf_str(j->out, "\":");
		cop_members_copy(j->out, counter ? number_in(value) : value);
	}
}

/* Whether args can be copied in one go. Most can, because they contain neither hashes nor special
 * characters. */
static bool may_copy_args(const struct cop_trace_event *e)
{
	return e->kind != COP_TRACE_COUNTER && !e->args_odd && !e->end_args.len && !e->unfinished &&
	       e->args.len > 1 && !e->host.len && !e->file.len;
}

static void put_args(struct cop_json *j, const struct cop_trace_event *e)
{
	const struct cop_trace_str none = {"", 0};

	if (!e->args.len && !e->end_args.len && !e->unfinished && e->kind != COP_TRACE_COUNTER)
		return;
	if (may_copy_args(e)) {
		cop_json_value(j, "args");
		if (cop_members_copy_plain(j->out, e->args))
			return;
		j->out->len -= strlen(",\"args\":");
	}
	cop_json_object(j, "args");
	put_members(j, e, e->args, e->end_args);
	put_members(j, e, e->end_args, none);
	if (e->unfinished)
		cop_json_bool(j, "unfinished", true);
	cop_json_end(j);
}

/* The ids of Copper's flows are global; spans in the old form also match by name. */
uint64_t cop_merge_id(const struct cop_trace_event *e, const struct process *p, bool flow,
	struct cop_trace_str text)
{
	uint64_t of[] = {e->id_kind, 0}, id;

	if (flow && cop_trace_str_is(e->cat, "copper"))
		of[0] = COP_TRACE_ID_ALL;
	if (of[0] == COP_TRACE_ID_FILE)
		of[1] = e->source;
	else if (of[0] == COP_TRACE_ID_PROCESS)
		of[1] = p->number;
	id = cop_hash64(of, sizeof(of), flow);
	if (!flow)
		id = cop_hash64(e->scope.at, e->scope.len, id);
	if (e->old_async)
		id = cop_hash64(e->name.at, e->name.len, id);
	return cop_hash64(text.at, text.len, id);
}

static void put_id(struct cop_json *j, const struct cop_trace_event *e, const struct process *p)
{
	cop_json_value(j, "id");
	cop_buf_printf(j->out, "\"0x%llx\"",
		(unsigned long long)cop_merge_id(e, p, e->kind == COP_TRACE_FLOW, e->id));
	if (e->kind != COP_TRACE_FLOW && e->scope.len)
		put_str(j, "scope", e->scope);
}

/* Writes version 2 flows, and members that are copied unchanged. */
static void put_more(struct cop_json *j, const struct cop_trace_event *e, const struct process *p)
{
	struct cop_trace_members m = {e->more.at, e->more.at + e->more.len};
	struct cop_trace_str key, value;

	while (cop_trace_members_next(&m, &key, &value)) {
		cop_buf_str(j->out, ",\"");
		cop_members_copy_inside(j->out, key);
		cop_buf_str(j->out, "\":");
		cop_members_copy(j->out, value);
	}
	if (!e->bind_id.len)
		return;
	cop_json_value(j, "bind_id");
	cop_buf_printf(
		j->out, "\"0x%llx\"", (unsigned long long)cop_merge_id(e, p, true, e->bind_id));
	if (e->flow_in)
		cop_json_bool(j, "flow_in", true);
	if (e->flow_out)
		cop_json_bool(j, "flow_out", true);
}

/* Returns the phase letter of an event. A matched span is a complete event; an aggregate is an
 * instant, because the times of its spans are unknown. */
static char letter_of(const struct cop_trace_event *e)
{
	if (e->kind == COP_TRACE_AGGREGATE || e->ph == 'I' || e->ph == 'R')
		return 'i';
	return e->ph == 'B' ? 'X' : e->ph;
}

static void put_letter(struct cop_json *j, const char *key, char letter)
{
	cop_json_bytes(j, key, &letter, 1);
}

static void put_kind(struct cop_json *j, const struct cop_trace_event *e, const struct thread *t)
{
	char ph = letter_of(e);
	int64_t dur = (int64_t)e->dur_ns;

	put_letter(j, "ph", ph);
	if (e->unfinished)
		dur = COP_MAX(t->last_ns - e->ts_ns, 0);
	if (ph == 'X')
		put_us(j, "dur", dur);
	if (memchr("benstf", ph, 6))
		put_id(j, e, t->process);
	if (ph == 'C' && e->id_is_text)
		put_str(j, "id", e->id);
	if (ph == 'f' && e->bp)
		put_letter(j, "bp", e->bp);
	if (ph == 'i')
		put_letter(j, "s", e->s ? e->s : 't');
}

static int put_event(void *arg, const struct cop_trace_event *e)
{
	struct cop_merge *m = arg;
	const struct thread *t = cop_crew_find(&m->seen[0], e);
	struct cop_json j = begin_line(m);

	put_str(&j, "name", e->name);
	put_str(&j, "cat", e->cat);
	cop_json_u64(&j, "pid", t->process->number);
	cop_json_u64(&j, "tid", t->number);
	put_us(&j, "ts", e->ts_ns);
	put_kind(&j, e, t);
	if (e->more.len || e->bind_id.len)
		put_more(&j, e, t->process);
	put_args(&j, e);
	cop_json_end(&j);
	return m->out.len >= PART_BYTES ? flush(m) : 0;
}

int cop_merge_write(struct cop_merge *m, const struct cop_trace_files *files,
	cop_merge_write_fn *write, void *arg)
{
	int rc = cop_crew_new(m->seen, m->threads, &m->crew);

	m->write = write;
	m->arg = arg;
	cop_buf_str(&m->out, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
	if (!rc)
		rc = put_names(m, files);
	if (!rc)
		rc = cop_order_each(m->order, put_event, m);
	cop_buf_str(&m->out, "\n]}\n");
	return rc ? rc : flush(m);
}
