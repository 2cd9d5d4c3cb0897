/* SPDX-License-Identifier: BSD-3-Clause */
/* Part of copper/mark.h: thread buffers, and what happens on fork, thread end and exit. The caller
 * holds the thread's lock. */

/* Limits the time spent on writes to 1 %. A single slow write is ignored. */
COPPER_MARK_I_COLD void copper_mark_i_set_pace(
	struct copper_mark_i_thread *t, long long now, long long took_ns)
{
	t->pace_ns = 100 * (took_ns < t->took_ns ? took_ns : t->took_ns);
	if (t->pace_ns < COPPER_MARK_I_MS)
		t->pace_ns = COPPER_MARK_I_MS;
	if (t->pace_ns > COPPER_MARK_I_S)
		t->pace_ns = COPPER_MARK_I_S;
	t->took_ns = took_ns;
	t->wrote_ns = now;
}

/* Writes the buffer to the file. On failure, the events stay buffered. */
COPPER_MARK_I_COLD void copper_mark_i_drain(
	struct copper_mark_i_process *p, struct copper_mark_i_thread *t, long long now, int again)
{
	char *text = t->text + COPPER_MARK_I_HEAD;
	size_t len = t->used;
	const char *opening =
		p->object ? "{\"displayTimeUnit\":\"us\",\"otherData\":{},\"traceEvents\":[" : "[";

	if (!len)
		return;
	pthread_mutex_lock(&copper_mark_i_file_1);
	if (!again && p->retry_ns > now && p->retry_ns - now <= COPPER_MARK_I_S) {
		pthread_mutex_unlock(&copper_mark_i_file_1);
		return;
	}
	if (!p->end) { /* the opening replaces the comma */
		text -= strlen(opening) - 1;
		len += strlen(opening) - 1;
		memcpy(text, opening, strlen(opening));
	}
	if (!copper_mark_i_append(p, text, len)) {
		t->used = t->events = 0;
		p->retry_ns = 0;
	} else {
		copper_mark_i_failed(p, errno);
		t->text[COPPER_MARK_I_HEAD] = ',';
	}
	pthread_mutex_unlock(&copper_mark_i_file_1);
	copper_mark_i_set_pace(t, now, copper_mark_i_now() - now);
}

/* In a forked child: drops the buffered events and the file, which belong to the parent. */
COPPER_MARK_I_COLD void copper_mark_i_forked(void)
{
	struct copper_mark_i_process *p = &copper_mark_i_process_1;
	struct copper_mark_i_thread *t = p->first, *next, *self = copper_mark_i_self_1;

	pthread_mutex_init(&copper_mark_i_list_1, NULL);
	pthread_mutex_init(&copper_mark_i_file_1, NULL);
	for (; t; t = next) {
		next = t->next;
		if (t != self)
			free(t);
	}
	p->first = self;
	if (self) {
		pthread_mutex_init(&self->lock, NULL);
		self->next = self->previous = NULL;
		self->used = self->events = 0;
		self->missing = 0;
		self->wrote_ns = self->pace_ns = self->took_ns = 0;
		self->tid = syscall(SYS_gettid);
	}
	if (p->fd)
		close(p->fd);
	p->fd = p->told = 0;
	p->end = p->retry_ns = p->finished_ns = 0;
	p->missing = 0;
	p->pid = (int)getpid();
}

COPPER_MARK_I_COLD void copper_mark_i_child(void)
{
	if (copper_mark_i_process_1.pid)
		copper_mark_i_forked();
}

/* Called before each write to detect a fork that ran no handlers (_Fork, clone). */
COPPER_MARK_I_COLD void copper_mark_i_look(void)
{
	if (copper_mark_i_process_1.pid != (int)getpid())
		copper_mark_i_forked();
}

COPPER_MARK_I_COLD void copper_mark_i_unlink(
	struct copper_mark_i_process *p, struct copper_mark_i_thread *t)
{
	if (t->next)
		t->next->previous = t->previous;
	if (t->previous)
		t->previous->next = t->next;
	else
		p->first = t->next;
}

/* Reports dropped events once there is room for the report. */
COPPER_MARK_I_COLD void copper_mark_i_confess(
	struct copper_mark_i_process *p, struct copper_mark_i_thread *t)
{
	struct copper_mark_i_event e;
	char *end = t->text + COPPER_MARK_I_HEAD + t->used;

	copper_mark_i_init(&e, 'C', "events left out", 15, "copper-mark");
	e.key = "events";
	e.value = (double)t->missing;
	t->used += (unsigned)(copper_mark_i_format(end, &e, p->pid, t->tid) - end);
	t->events++;
	t->missing = 0;
}

COPPER_MARK_I_COLD void copper_mark_i_last(
	struct copper_mark_i_process *p, struct copper_mark_i_thread *t)
{
	copper_mark_i_drain(p, t, copper_mark_i_now(), 1);
	if (t->used || !t->missing)
		return;
	copper_mark_i_confess(p, t);
	copper_mark_i_drain(p, t, copper_mark_i_now(), 1);
}

COPPER_MARK_I_COLD void copper_mark_i_thread_ends(void *arg)
{
	struct copper_mark_i_thread *t = (struct copper_mark_i_thread *)arg;
	struct copper_mark_i_process *p = &copper_mark_i_process_1;

	copper_mark_i_inside_1++;
	copper_mark_i_self_1 = NULL;
	pthread_mutex_lock(&copper_mark_i_list_1);
	copper_mark_i_unlink(p, t);
	copper_mark_i_last(p, t);
	p->missing += t->missing + t->events;
	pthread_mutex_unlock(&copper_mark_i_list_1);
	free(t);
	copper_mark_i_inside_1--;
}

/* Runs at exit, or when the library that contains these functions is unloaded; in the latter case,
 * the next event from another copy of them registers again. */
COPPER_MARK_I_COLD void copper_mark_i_finish(void)
{
	struct copper_mark_i_process *p = &copper_mark_i_process_1;
	struct copper_mark_i_thread *t;
	unsigned long long missing;
	char count[64];

	if (copper_mark_i_inside_1) /* a signal handler that interrupted a mark called exit */
		return;
	copper_mark_i_look();
	copper_mark_i_inside_1++;
	pthread_mutex_lock(&copper_mark_i_list_1);
	missing = p->missing;
	for (t = p->first; t; t = t->next) {
		pthread_mutex_lock(&t->lock);
		copper_mark_i_last(p, t);
		missing += t->missing + t->events;
		pthread_mutex_unlock(&t->lock);
	}
	p->finished_ns = copper_mark_i_now();
	if (p->hooked)
		pthread_key_delete(p->key);
	p->hooked = 0;
	__atomic_add_fetch(&p->hooks, 1, __ATOMIC_RELAXED);
	if (p->fd && !p->end) /* nothing was written */
		unlink(p->path);
	if (p->fd)
		close(p->fd);
	p->fd = 0;
	pthread_mutex_unlock(&copper_mark_i_list_1);
	snprintf(count, sizeof(count), "%llu events are missing in ", missing);
	if (missing && p->state == 2)
		copper_mark_i_say(count, p->path, "");
	copper_mark_i_inside_1--;
}

/* Called for a thread's first event, and for its first after copper_mark_i_finish. */
COPPER_MARK_I_COLD struct copper_mark_i_thread *copper_mark_i_attach(void)
{
	struct copper_mark_i_process *p = &copper_mark_i_process_1;
	struct copper_mark_i_thread *t = copper_mark_i_self_1;

	copper_mark_i_look();
	pthread_mutex_lock(&copper_mark_i_list_1);
	if (!p->hooked && !pthread_key_create(&p->key, copper_mark_i_thread_ends)) {
		p->hooked = 1;
		atexit(copper_mark_i_finish);
		pthread_atfork(NULL, NULL, copper_mark_i_child);
	}
	if (!t && (t = (struct copper_mark_i_thread *)calloc(1, sizeof(*t)))) {
		pthread_mutex_init(&t->lock, NULL);
		t->tid = syscall(SYS_gettid);
		t->next = p->first;
		if (t->next)
			t->next->previous = t;
		p->first = t;
		copper_mark_i_self_1 = t;
	}
	if (t) {
		t->hooks = p->hooks;
		if (p->hooked)
			pthread_setspecific(p->key, t);
	} else {
		p->missing++;
	}
	pthread_mutex_unlock(&copper_mark_i_list_1);
	return t;
}

COPPER_MARK_I_COLD void copper_mark_i_write(
	struct copper_mark_i_process *p, struct copper_mark_i_thread *t, long long now)
{
	copper_mark_i_drain(p, t, now, 0);
	if (!t->used && t->missing)
		copper_mark_i_confess(p, t);
}

static inline int copper_mark_i_is_full(const struct copper_mark_i_thread *t)
{
	return t->used > COPPER_MARK_I_TEXT - COPPER_MARK_I_MOST;
}

/* Whether a write is due; it also is if the clock went back. */
static inline int copper_mark_i_is_due(
	const struct copper_mark_i_process *p, const struct copper_mark_i_thread *t, long long now)
{
	return copper_mark_i_is_full(t) ||
	       (unsigned long long)(now - t->wrote_ns) >= (unsigned long long)t->pace_ns ||
	       (unsigned long long)(now - p->finished_ns) < (unsigned long long)COPPER_MARK_I_S;
}

static inline void copper_mark_i_put(const struct copper_mark_i_event *e)
{
	struct copper_mark_i_process *p = &copper_mark_i_process_1;
	struct copper_mark_i_thread *t = copper_mark_i_self_1;
	long long now = e->ts_ns + (e->dur_ns > 0 ? e->dur_ns : 0);
	int due;
	char *end;

	if (copper_mark_i_inside_1) { /* called from a signal handler, or from an instrumented
					 malloc */
		if (t)
			t->missing++;
		return;
	}
	copper_mark_i_inside_1++;
	if (!t || t->hooks != __atomic_load_n(&p->hooks, __ATOMIC_RELAXED))
		t = copper_mark_i_attach();
	if (t) {
		due = copper_mark_i_is_due(p, t, now);
		if (due)
			copper_mark_i_look();
		pthread_mutex_lock(&t->lock);
		if (copper_mark_i_is_full(t))
			copper_mark_i_write(p, t, now);
		end = t->text + COPPER_MARK_I_HEAD + t->used;
		if (copper_mark_i_is_full(t)) {
			t->missing++;
		} else {
			t->used += (unsigned)(copper_mark_i_format(end, e, p->pid, t->tid) - end);
			t->events++;
			if (due)
				copper_mark_i_write(p, t, now);
		}
		pthread_mutex_unlock(&t->lock);
	}
	copper_mark_i_inside_1--;
}

/* ---- scopes ---- */

COPPER_MARK_I_COLD long long copper_mark_i_cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * COPPER_MARK_I_S + t.tv_nsec;
}

/* Writes a region's counters with the time of its start, and zeros at its end, so that viewers draw
 * them over the region. */
COPPER_MARK_I_COLD void copper_mark_i_usage(
	struct copper_mark_i_event e, long long begin_ns, long long cpu_ns)
{
	long long end_ns = e.ts_ns;
	struct rusage usage;

	memset(&usage, 0, sizeof(usage));
	getrusage(RUSAGE_SELF, &usage);
	e.phase = 'C';
	e.key = "cpu_usage";
	e.key2 = "memory_usage";
	e.ts_ns = begin_ns;
	e.value = end_ns > begin_ns ? 100.0 * (double)cpu_ns / (double)(end_ns - begin_ns) : 0;
	e.value2 = (double)usage.ru_maxrss;
	copper_mark_i_put(&e);
	e.ts_ns = end_ns;
	e.value = e.value2 = 0;
	copper_mark_i_put(&e);
}
