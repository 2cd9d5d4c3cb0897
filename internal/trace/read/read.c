/* SPDX-License-Identifier: BSD-3-Clause */
#include <sched.h>
#include <stdatomic.h>

#include "base/base/grow.h"
#include "trace/read/index_priv.h"
#include "trace/read/read_priv.h"

/* Blocks of one file are parsed in parallel, but begin and end events must be paired in file order,
 * so each parsed block waits for its turn. A block without halves of spans does not wait; its turn
 * is skipped. There is no deadlock, because the thread that took a block always takes its turn, and
 * a turn waits only for earlier blocks. */

#define AHEAD 64u /* bits of source.done */

static void wait_for_turn(struct source *s, uint64_t seq, uint64_t ahead)
{
	pthread_mutex_lock(&s->lock);
	while (seq - s->turn >= ahead)
		pthread_cond_wait(&s->turned, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

static void end_turn(struct source *s, uint64_t seq)
{
	pthread_mutex_lock(&s->lock);
	s->done |= UINT64_C(1) << (seq - s->turn);
	while (s->done & 1) {
		s->done >>= 1;
		s->turn++;
	}
	pthread_cond_broadcast(&s->turned);
	pthread_mutex_unlock(&s->lock);
}

static int pair_all(struct worker *w)
{
	struct open_span *used = NULL;
	int rc = 0;

	for (size_t i = 0; i < w->halves && !rc; i++)
		if (cop_trace_pair(&w->source->pairs, &w->half[i], &used))
			rc = cop_trace_deliver(w, &w->half[i].e);
	if (!rc)
		rc = cop_trace_flush(w);
	cop_trace_spans_free(used);
	w->halves = w->n = 0;
	return rc;
}

/* Call after parsing a block. Waits for the block's turn, then pairs its halves. */
static int trace_turn(struct worker *w)
{
	uint64_t seq = w->block.seq;
	int rc = 0;

	wait_for_turn(w->source, seq, w->halves ? 1 : AHEAD);
	if (w->halves)
		rc = pair_all(w);
	end_turn(w->source, seq);
	return rc;
}

/* ---- reports ---- */

static bool is_before(const struct cop_trace_fault *f, size_t source, uint64_t line)
{
	return f->source < source || (f->source == source && f->line <= line);
}

static void keep_fault(struct cop_trace_result *r, struct cop_trace_fault new)
{
	unsigned at = r->faults;

	while (at && !is_before(&r->fault[at - 1], new.source, new.line))
		at--;
	if (at == COP_TRACE_NAMED)
		return;
	if (r->faults < COP_TRACE_NAMED)
		r->faults++;
	memmove(&r->fault[at + 1], &r->fault[at], (r->faults - at - 1) * sizeof(new));
	r->fault[at] = new;
}

/* Records n unreadable lines or events; the position is that of the first. */
static void note_broken(struct worker *w, size_t source, uint64_t line, const char *why, uint64_t n)
{
	w->r.broken += n;
	atomic_fetch_add(&w->reader->files->file[source].broken, n);
	keep_fault(&w->r, (struct cop_trace_fault){source, line, why});
}

/* ---- events of a worker ---- */

int cop_trace_flush(struct worker *w)
{
	size_t n = w->n;

	w->n = 0;
	if (!n || !w->reader->conf->batch)
		return 0;
	return w->reader->conf->batch(w->reader->conf->arg, w->index, w->batch, n);
}

int cop_trace_deliver(struct worker *w, const struct cop_trace_event *e)
{
	struct cop_trace_event *to;
	int64_t end = e->ts_ns + (int64_t)e->dur_ns;

	w->r.events[e->kind]++;
	if (e->kind != COP_TRACE_META) {
		w->r.first_ns = COP_MIN(w->r.first_ns, e->ts_ns);
		w->r.last_ns = COP_MAX(w->r.last_ns, end);
	}
	to = &w->batch[w->n++];
	*to = *e;
	to->source = w->source->index;
	return w->n == BATCH ? cop_trace_flush(w) : 0;
}

static int keep_half(struct worker *w, const struct record *r)
{
	if (!COP_GROW(w->half, w->halves, w->half_cap))
		return -ENOMEM;
	w->half[w->halves++] = *r;
	return 0;
}

/* Shifts an event's timestamp unless the result would be out of range. Metadata has none. */
static void shift(struct cop_trace_event *e, int64_t ns)
{
	int64_t ts;

	if (ns && e->kind != COP_TRACE_META && !__builtin_add_overflow(e->ts_ns, ns, &ts) &&
		ts < INT64_MAX - 4 * (int64_t)COP_TRACE_MOST && ts > -INT64_MAX / 2)
		e->ts_ns = ts;
}

static int on_record(struct sink *s, const struct fields *f, struct record *r)
{
	struct worker *w = COP_CONTAINER_OF(s, struct worker, sink);

	if (s->names_only)
		return cop_trace_names_take(&w->source->names, f, &r->e);
	cop_trace_clocks_correct(w->reader->files->clocks, &r->e);
	shift(&r->e, w->reader->files->file[w->source->index].shift_ns);
	if (cop_trace_is_omitted(&r->e))
		cop_trace_omit(&w->r, r->e.ph);
	if (!w->reader->conf->args)
		r->e.args = r->e.more = (struct cop_trace_str){"", 0};
	if (!r->half)
		return cop_trace_deliver(w, &r->e);
	w->r.first_ns = COP_MIN(w->r.first_ns, r->e.ts_ns);
	return keep_half(w, r);
}

static void on_broken(struct sink *s, uint64_t line, const char *why)
{
	struct worker *w = COP_CONTAINER_OF(s, struct worker, sink);

	if (!s->names_only)
		note_broken(w, w->source->index, line, why, 1);
}

static int parse_block(struct worker *w)
{
	int rc, turn;

	w->sink.scratch.used = 0;
	w->sink.names = w->reader->names ? &w->source->names : NULL;
	w->sink.who = w->reader->conf->who;
	rc = cop_trace_parse(&w->sink, &w->block);
	if (!rc)
		rc = cop_trace_flush(w);
	if (rc)
		w->halves = w->n = 0;
	turn = trace_turn(w);
	return rc ? rc : turn;
}

/* ---- files and threads ---- */

/* Adds the counts of chunks that a plan skipped. */
static void take_skipped(struct worker *w, struct source *s)
{
	struct cop_trace_event first = {.kind = COP_TRACE_SPAN, .ts_ns = s->skipped.first_ns},
			       last = {.kind = COP_TRACE_SPAN, .ts_ns = s->skipped.last_ns};
	int64_t ns = w->reader->files->file[s->index].shift_ns;

	for (size_t i = 0; i < COP_TRACE_KINDS; i++)
		w->r.events[i] += s->skipped.events[i];
	if (first.ts_ns <= last.ts_ns) {
		shift(&first, ns);
		shift(&last, ns);
		w->r.first_ns = COP_MIN(w->r.first_ns, first.ts_ns);
		w->r.last_ns = COP_MAX(w->r.last_ns, last.ts_ns);
	}
	s->skipped = (struct cop_trace_result){.first_ns = INT64_MAX, .last_ns = INT64_MIN};
}

static int fill_block(struct worker *w, struct source *s)
{
	int rc = cop_trace_source_fill(s, &w->block);

	if (s->plan)
		take_skipped(w, s);
	if (s->broken)
		note_broken(w, s->index, s->broken_line, s->broken_why, s->broken);
	s->broken = 0;
	return rc;
}

/* Returns a file from which no thread is filling, preferably the one this thread used last. The
 * caller holds the lock. */
static struct source *idle_source(const struct worker *w)
{
	const struct reader *r = w->reader;
	struct source *found = NULL;

	for (unsigned i = 0; i < r->actives; i++) {
		struct source *s = r->active[i];

		if (s->filling || s->over)
			continue;
		if (s == w->source)
			return s;
		found = s;
	}
	return found;
}

static void note_clashes(struct reader *r, const struct source *s)
{
	const struct names *n = &s->names;

	if (!n->clashes || !r->notes || r->noted++ >= TRACE_NOTES_MAX)
		return;
	cop_buf_printf(r->notes, "%s: the hash %llu (0x%llx) stands for %s and for %s",
		r->files->file[s->index].name, (unsigned long long)n->clash,
		(unsigned long long)n->clash, n->clash_names[0], n->clash_names[1]);
	if (n->clashes > 1)
		cop_buf_printf(r->notes, ", and %llu more hash%s for two names",
			(unsigned long long)n->clashes - 1, n->clashes > 2 ? "es" : "");
	cop_buf_str(r->notes, "; the first name counts\n");
}

/* Called after the last block of a file. The caller holds the lock. */
static void close_source(struct reader *r, struct source *s)
{
	const char *fault = cop_inflate_fault(s->in);

	cop_trace_forget_source(r, s);
	if (s->pending && !s->split.found) {
		if (r->files->file[s->index].meant)
			cop_trace_note_file(r, s->index, "it has no traceEvents", true);
	} else {
		r->traces++;
	}
	if (fault)
		cop_trace_note_file(r, s->index, fault, false);
	note_clashes(r, s);
	cop_trace_pairs_end(&s->pairs);
	r->unfinished += s->pairs.unfinished;
	r->unmatched += s->pairs.unmatched;
	r->names_lost += s->names.lost;
	cop_trace_source_free(s);
}

static int deliver_open(void *arg, const struct cop_trace_event *e)
{
	return cop_trace_deliver(arg, e);
}

/* Handles begin events with no end once no other thread uses the file. The caller holds the lock,
 * which is released in between. */
static void unfinished(struct worker *w, struct source *s)
{
	struct reader *r = w->reader;
	int rc;

	pthread_mutex_unlock(&r->lock);
	rc = cop_trace_pairs_open(&s->pairs, deliver_open, w);
	if (!rc)
		rc = cop_trace_flush(w);
	w->n = 0;
	pthread_mutex_lock(&r->lock);
	if (rc && !r->rc)
		r->rc = rc;
}

/* Called when this thread is done with the file; the last thread closes it. The caller holds the
 * lock, which may be released in between. Does not wake threads that wait for anything else,
 * because they might wake each other forever. */
static void leave(struct worker *w, struct source *s)
{
	struct reader *r = w->reader;
	bool wake = s->alone;

	if (!--s->users && (s->over || r->rc) && !s->filling) {
		w->source = s;
		if (r->conf->unfinished && !r->rc)
			unfinished(w, s);
		close_source(r, s);
		w->source = NULL;
		wake = true;
	}
	if (wake)
		pthread_cond_broadcast(&r->changed);
}

/* Inflates ahead in one of the active files. Returns false if there is nothing to inflate. The
 * caller holds the lock, which is released in between. */
static bool help(struct worker *w)
{
	struct reader *r = w->reader;
	bool helped = false;

	for (unsigned i = 0; i < r->actives && !helped && !r->conf->peek; i++) {
		unsigned most = (r->threads + r->actives) / r->actives;
		struct source *s = r->active[i];

		if (s->over || s->alone)
			continue;
		s->users++;
		pthread_mutex_unlock(&r->lock);
		helped = cop_inflate_ahead(s->in, most);
		pthread_mutex_lock(&r->lock);
		leave(w, s);
	}
	return helped;
}

/* Waits for a file to fill from; returns NULL at the end. The caller holds the lock. */
static struct source *take_source(struct worker *w)
{
	struct reader *r = w->reader;
	struct source *s;
	bool helped = true;

	for (;;) {
		if (r->rc)
			return NULL;
		s = idle_source(w);
		if (s && s == w->source)
			return s;
		if (r->next < r->files->n && r->actives + r->opening < r->threads)
			cop_trace_open_next(w);
		else if (s)
			return s;
		else if (!r->actives && !r->opening)
			return NULL;
		else if (helped)
			helped = help(w);
		else
			helped = !pthread_cond_wait(&r->changed, &r->lock);
	}
}

/* Handles one block of a file. The caller holds the lock, which is released in between. */
static void one_block(struct worker *w, struct source *s)
{
	struct reader *r = w->reader;
	int filled, rc = 0;

	s->filling = true;
	s->users++;
	w->source = s;
	pthread_mutex_unlock(&r->lock);
	filled = fill_block(w, s);
	pthread_mutex_lock(&r->lock);
	s->filling = false;
	s->over = filled <= 0 || r->conf->peek;
	if (filled < 0)
		cop_trace_note_file(r, s->index, strerror(-filled), false);
	pthread_cond_broadcast(&r->changed);
	if (filled > 0) {
		pthread_mutex_unlock(&r->lock);
		rc = parse_block(w);
		pthread_mutex_lock(&r->lock);
	}
	if (rc && !r->rc)
		r->rc = rc;
	leave(w, s);
	pthread_cond_broadcast(&r->changed);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct reader *r = w->reader;
	struct source *s;

	pthread_mutex_lock(&r->lock);
	while ((s = take_source(w)))
		one_block(w, s);
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

/* ---- top level ---- */

unsigned cop_trace_threads(unsigned threads)
{
	cpu_set_t set;
	unsigned n = 1;

	if (!sched_getaffinity(0, sizeof(set), &set))
		n = (unsigned)CPU_COUNT(&set);
	return COP_MAX(1, COP_MIN(threads ? threads : n, THREADS_MAX));
}

static void worker_fini(struct worker *w)
{
	free(w->sink.scratch.at);
	free(w->block.memory);
	free(w->half);
}

static void worker_init(struct worker *w, struct reader *r, unsigned index)
{
	w->reader = r;
	w->index = index;
	w->r.first_ns = INT64_MAX;
	w->r.last_ns = INT64_MIN;
	w->sink.record = on_record;
	w->sink.broken = on_broken;
	w->sink.scratch.size = BLOCK_MAX;
}

static void add_result(struct cop_trace_result *to, const struct cop_trace_result *r)
{
	for (size_t i = 0; i < COP_TRACE_KINDS; i++)
		to->events[i] += r->events[i];
	to->broken += r->broken;
	to->omitted += r->omitted;
	for (size_t i = 0; i < COP_ARRAY_SIZE(to->omitted_phase); i++)
		to->omitted_phase[i] |= r->omitted_phase[i];
	for (unsigned i = 0; i < r->faults; i++)
		keep_fault(to, r->fault[i]);
	to->first_ns = COP_MIN(to->first_ns, r->first_ns);
	to->last_ns = COP_MAX(to->last_ns, r->last_ns);
}

/* The calling thread is the first worker. */
static void run_workers(struct worker *w, unsigned n)
{
	unsigned started = 1;

	for (; started < n; started++)
		if (cop_thread_start(&w[started].thread, "trace", work, &w[started]))
			break;
	work(&w[0]);
	for (unsigned i = 1; i < started; i++)
		pthread_join(w[i].thread, NULL);
}

static bool has_events(const struct cop_trace_result *r)
{
	for (size_t i = 0; i < COP_TRACE_KINDS; i++)
		if (r->events[i])
			return true;
	return r->unfinished || r->unmatched;
}

static int finish(struct reader *r, struct cop_trace_result *result, struct cop_err *err)
{
	while (r->actives)
		close_source(r, r->active[0]);
	if (r->notes && r->noted > TRACE_NOTES_MAX)
		cop_buf_printf(r->notes, "and %u more files\n", r->noted - TRACE_NOTES_MAX);
	result->traces = r->traces;
	result->unfinished = r->unfinished;
	result->unmatched = r->unmatched;
	result->names_lost = r->names_lost;
	if (r->rc == -ENOMEM)
		return cop_err_set(err, ENOMEM, "no memory to read the traces");
	if (r->rc)
		return r->rc;
	if (r->traces && result->broken && !has_events(result))
		return cop_err_set(err, ENODATA, "no event could be read");
	if (!r->traces)
		return cop_err_set(err, ENODATA,
			"none of the %zu files is a trace that can be read", r->files->n);
	return 0;
}

int cop_trace_read(struct cop_trace_files *f, const struct cop_trace_conf *conf,
	struct cop_trace_result *result, struct cop_buf *notes, struct cop_err *err)
{
	struct reader r = {.files = f, .conf = conf, .notes = notes};
	struct worker *w;

	for (size_t i = 0; i < f->n; i++) {
		f->file[i].why = NULL;
		f->file[i].whole = false;
		f->file[i].broken = 0;
	}
	*result = (struct cop_trace_result){.first_ns = INT64_MAX, .last_ns = INT64_MIN};
	r.threads = cop_trace_threads(conf->threads);
	if (!f->clocks_known)
		r.rc = cop_trace_clocks_new(f, r.threads, &f->clocks);
	f->clocks_known = !r.rc;
	r.names = conf->names || conf->who || f->clocks;
	w = calloc(r.threads, sizeof(*w));
	if (!w)
		return cop_err_set(err, ENOMEM, "no memory to read the traces");
	pthread_mutex_init(&r.lock, NULL);
	pthread_cond_init(&r.changed, NULL);
	for (unsigned i = 0; i < r.threads; i++)
		worker_init(&w[i], &r, i);
	if (!r.rc)
		run_workers(w, r.threads);
	for (unsigned i = 0; i < r.threads; i++) {
		add_result(result, &w[i].r);
		worker_fini(&w[i]);
	}
	free(w);
	pthread_cond_destroy(&r.changed);
	pthread_mutex_destroy(&r.lock);
	return finish(&r, result, err);
}
