/* SPDX-License-Identifier: BSD-3-Clause */
#include "tree/prefetch/prefetch_priv.h"

#include <sys/stat.h>

#include "base/log/log.h"

/* Assumed size of a listing or entry when checking for free memory. */
#define SMALL_BYTES (64 * COP_KIB)
/* The same for a listing that may be read whole: some thousand names. */
#define LISTING_BYTES (256 * COP_KIB)

static const unsigned stage_slots[STAGES] = {SLOTS_LISTINGS, SLOTS_NAMES, SLOTS_CHUNKS};

/* ---- requests ---- */

static void fetch_completed(struct cop_waiter *w, struct cop_obj *obj, int rc)
{
	struct slot *s = COP_CONTAINER_OF(w, struct slot, waiter);
	struct cop_prefetch *p = s->p;

	s->obj = cop_obj_get(obj);
	s->rc = rc;
	pthread_mutex_lock(&p->lock);
	cop_list_push_back(&p->completed, &s->link);
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
}

static void give_up(struct cop_prefetch *p, const char *why)
{
	p->over = true;
	if (!p->why)
		p->why = why;
}

/* True: s has its answer. False: the answer comes later, or never (p->over). */
static bool ask_fetch(
	struct cop_prefetch *p, struct slot *s, const struct cop_ask *ask, size_t bytes)
{
	struct cop_obj *obj;
	int rc;

	s->bytes = bytes;
	s->obj = cop_fetch_peek(p->conf.fetch, ask);
	if (s->obj) {
		s->rc = s->obj->error;
		s->bytes = 0;
		return true;
	}
	if (!p->over && !cop_cache_has_headroom(p->conf.cache, bytes))
		give_up(p, "the cache is nearly full; the rest is fetched when it is asked for");
	/* A slot with an answer may need another request after another slot has set p->over; s is
	 * then not in flight. */
	if (p->over)
		return false;
	s->waiter.completed = fetch_completed;
	rc = cop_fetch_get(p->conf.fetch, ask, &s->waiter, &obj);
	/* The request may already be complete: from here on, the waiter owns s. */
	p->flying += rc == 0;
	if (rc == 0)
		return false;
	s->obj = rc > 0 ? obj : NULL;
	s->rc = rc > 0 ? obj->error : rc;
	return true;
}

static void let_go(struct cop_prefetch *p, struct slot *s)
{
	if (s->obj)
		cop_obj_put(p->conf.cache, s->obj);
	s->obj = NULL;
}

/* Large listings have no attributes, so a program that reads such a directory would still send more
 * requests. A name may be absent. */
static void report(struct cop_prefetch *p, const struct slot *s)
{
	if (!p->conf.have || !s->obj || (s->rc && s->stage != STAGE_NAMES))
		return;
	if (s->stage == STAGE_CHUNKS) {
		if (!p->rest)
			cop_prefetch_have_chunk(p, s->item, s->index);
	} else if (s->stage == STAGE_LISTINGS ? s->obj->len <= LISTING_BYTES
					      : s->item->kind == COP_MANIFEST_NAME) {
		p->conf.have(p->conf.arg, s->item->kind, cop_prefetch_path(p, s->item), 0, 0);
	}
}

static void done_with(struct cop_prefetch *p, struct slot *s)
{
	report(p, s);
	let_go(p, s);
	cop_list_push_back(&p->free[s->stage], &s->link);
}

/* Counts an answer: fetched by this prefetch, cached before, or failed. */
static void count_slot(struct cop_prefetch *p, const struct slot *s)
{
	struct cop_stats *stats = p->conf.stats;

	if (s->rc && s->rc != -ENOENT) {
		cop_stats_add(stats, COP_PREFETCH_FAILED, 1);
	} else if (s->bytes == 0) {
		cop_stats_add(stats, COP_PREFETCH_PRESENT, 1);
	} else {
		cop_stats_add(stats, COP_PREFETCH_OBJECTS, 1);
		cop_stats_add(stats, COP_PREFETCH_BYTES, s->obj ? s->obj->len : 0);
		if (s->stage == STAGE_CHUNKS)
			cop_stats_add(stats, COP_PREFETCH_FILE_BYTES, s->obj ? s->obj->len : 0);
	}
}

/* ---- names ---- */

static void ask_entry(struct cop_prefetch *p, struct slot *s);

static void count_changed(struct cop_prefetch *p)
{
	cop_stats_add(p->conf.stats, COP_PREFETCH_CHANGED, 1);
}

static void name_known(struct cop_prefetch *p, struct slot *s, const struct cop_attr *attr)
{
	if (s->item->kind == COP_MANIFEST_FILE)
		cop_prefetch_file_ready(p, s->item, attr);
	done_with(p, s);
}

static void with_entry(struct cop_prefetch *p, struct slot *s)
{
	struct cop_attr attr;

	count_slot(p, s);
	if (s->rc) {
		if (s->item->kind == COP_MANIFEST_FILE)
			count_changed(p);
		done_with(p, s);
		return;
	}
	cop_entry_get(s->obj->data, &attr, NULL, NULL);
	name_known(p, s, &attr);
}

/* As in a lookup by the mount, the listing answers or, if it is inconclusive, the single entry
 * does. */
static void with_listing(struct cop_prefetch *p, struct slot *s)
{
	const char *path = cop_prefetch_path(p, s->item), *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	struct cop_listing_entry e;

	if (s->rc == -ENOENT || s->rc == -ENOTDIR) {
		count_changed(p);
		done_with(p, s);
	} else if (s->rc || !cop_listing_find(s->obj->data, name, strlen(name), &e)) {
		if (!s->rc && cop_listing_flags(s->obj->data) == COP_LISTING_COMPLETE) {
			/* The name may be absent, as it was for the recorded job. If the directory
			 * may have unlisted names, the entry is requested again; no program waits
			 * for it. */
			if (s->item->kind == COP_MANIFEST_FILE)
				count_changed(p);
			done_with(p, s);
		} else {
			ask_entry(p, s);
		}
	} else if (!e.has_attr || (S_ISLNK(e.attr.mode) && !e.target)) {
		ask_entry(p, s);
	} else {
		name_known(p, s, &e.attr);
	}
}

static void ask_entry(struct cop_prefetch *p, struct slot *s)
{
	struct cop_ask entry = {
		.kind = COP_ASK_ENTRY, .path = cop_prefetch_path(p, s->item), .background = true};

	let_go(p, s);
	s->entry = true;
	if (ask_fetch(p, s, &entry, SMALL_BYTES))
		with_entry(p, s);
	else if (p->over)
		done_with(p, s);
}

static struct item *todo_item(const struct cop_prefetch *p, size_t index)
{
	return cop_prefetch_item(p, p->todo[index]);
}

/* ---- the stages: each function starts at most one request and returns whether it did ---- */

static bool begin_listing(struct cop_prefetch *p, struct slot *s)
{
	struct cop_ask list = {.kind = COP_ASK_LISTING, .background = true};

	while (p->next_listing < p->n_todo &&
		todo_item(p, p->next_listing)->kind != COP_MANIFEST_DIR)
		p->next_listing++;
	if (p->next_listing == p->n_todo)
		return false;
	s->item = todo_item(p, p->next_listing++);
	list.path = cop_prefetch_path(p, s->item);
	atomic_fetch_add(&p->listings, 1);
	if (ask_fetch(p, s, &list, SMALL_BYTES)) {
		count_slot(p, s);
		done_with(p, s);
	} else if (p->over) {
		done_with(p, s);
	}
	return true;
}

/* Includes the source itself: its attributes are in no parent's listing, and every mount requests
 * them. */
static bool is_name(const struct cop_prefetch *p, const struct item *i)
{
	return i->kind != COP_MANIFEST_DIR || !*cop_prefetch_path(p, i);
}

static bool begin_name(struct cop_prefetch *p, struct slot *s)
{
	struct cop_ask list = {.kind = COP_ASK_LISTING, .background = true};
	char dir[COP_MANIFEST_PATH_MAX + 1];
	const char *path, *slash;

	while (p->next_name < p->n_todo && !is_name(p, todo_item(p, p->next_name)))
		p->next_name++;
	if (p->next_name == p->n_todo)
		return false;
	s->item = todo_item(p, p->next_name++);
	s->entry = false;
	path = cop_prefetch_path(p, s->item);
	if (!*path) {
		ask_entry(p, s);
		return true;
	}
	slash = strrchr(path, '/');
	memcpy(dir, path, slash ? (size_t)(slash - path) : 0);
	dir[slash ? slash - path : 0] = '\0';
	list.path = dir;
	if (ask_fetch(p, s, &list, SMALL_BYTES))
		with_listing(p, s);
	else if (p->over)
		done_with(p, s);
	return true;
}

/* All objects in the manifest have been requested, and nothing in flight can add names: continues
 * with the rest of the files. */
static bool begin_rest(struct cop_prefetch *p)
{
	if (p->rest || !p->chunks || p->flying || p->next_name < p->n_todo)
		return false;
	p->rest = true;
	p->named = p->n_ready;
	p->at_file = 0;
	p->at_range = 0;
	p->at_chunk = 0;
	return true;
}

static bool begin_chunk(struct cop_prefetch *p, struct slot *s)
{
	struct cop_ask chunk;

	if (!p->chunks)
		return false;
	if (!cop_prefetch_next_chunk(p, &chunk, &s->item) &&
		!(begin_rest(p) && cop_prefetch_next_chunk(p, &chunk, &s->item)))
		return false;
	s->index = chunk.index;
	if (ask_fetch(p, s, &chunk, cop_fetch_chunk_len(p->conf.fetch, chunk.size, chunk.index))) {
		/* The rest of a file starts after the chunks requested above. */
		if (s->bytes || !p->rest)
			count_slot(p, s);
		done_with(p, s);
	} else if (p->over) {
		done_with(p, s);
	}
	return true;
}

static bool (*const begin[STAGES])(struct cop_prefetch *p, struct slot *s) = {
	[STAGE_LISTINGS] = begin_listing, [STAGE_NAMES] = begin_name, [STAGE_CHUNKS] = begin_chunk};

static void finish_slot(struct cop_prefetch *p, struct slot *s)
{
	p->flying--;
	if (s->rc == -ESHUTDOWN) {
		give_up(p, "the node stops");
		done_with(p, s);
	} else if (s->stage == STAGE_NAMES && !s->entry) {
		with_listing(p, s);
	} else if (s->stage == STAGE_NAMES) {
		with_entry(p, s);
	} else {
		count_slot(p, s);
		done_with(p, s);
	}
}

static void fill_windows(struct cop_prefetch *p)
{
	for (unsigned stage = 0; stage < STAGES; stage++)
		while (!p->over && !cop_list_empty(&p->free[stage])) {
			struct slot *s = COP_CONTAINER_OF(
				cop_list_pop_front(&p->free[stage]), struct slot, link);

			if (begin[stage](p, s))
				continue;
			cop_list_push_front(&p->free[stage], &s->link);
			break;
		}
}

/* ---- the thread ---- */

/* Waits until slots complete (and takes all of them), a part begins, or the tree has formed; false
 * if the node is stopping. */
static bool wait_completed(struct cop_prefetch *p, struct cop_list *slots)
{
	bool stopping;

	cop_list_init(slots);
	pthread_mutex_lock(&p->lock);
	while (!p->stopping && cop_list_empty(&p->completed) && p->chunks == p->formed &&
		!cop_prefetch_has_begun(p))
		pthread_cond_wait(&p->wake, &p->lock);
	stopping = p->stopping;
	p->chunks = p->formed;
	if (!stopping)
		cop_list_splice(slots, &p->completed);
	pthread_mutex_unlock(&p->lock);
	return !stopping;
}

/* Requests all pieces, one after another. 0 or -errno. */
static int load_manifest(struct cop_prefetch *p)
{
	struct slot *s = COP_CONTAINER_OF(p->free[STAGE_CHUNKS].next, struct slot, link);
	struct cop_ask piece = {.kind = COP_ASK_MANIFEST, .path = ""};
	struct cop_list slots;
	bool fits = true;

	cop_list_remove(&s->link);
	for (s->rc = 0; !s->rc && fits && !p->over; piece.index++) {
		if (!ask_fetch(p, s, &piece, SMALL_BYTES) && !p->over) {
			do
				if (!wait_completed(p, &slots))
					return -ESHUTDOWN;
			while (cop_list_empty(&slots));
			p->flying--;
		}
		if (p->over)
			break;
		if (!s->rc)
			fits = cop_prefetch_parse_piece(p, s->obj->data, s->obj->len);
		let_go(p, s);
	}
	cop_list_push_back(&p->free[STAGE_CHUNKS], &s->link);
	p->ready = calloc(p->n_items ? p->n_items : 1, sizeof(*p->ready));
	if (!p->ready || !cop_prefetch_know_parts(p))
		return -ENOMEM;
	if (p->over || s->rc == -ENODATA)
		return 0;
	return fits ? s->rc : -ENOMEM;
}

static void set_state(struct cop_prefetch *p, int state)
{
	pthread_mutex_lock(&p->lock);
	p->state = state;
	pthread_mutex_unlock(&p->lock);
}

static void forget_manifest(struct cop_prefetch *p)
{
	cop_buf_free(&p->text);
	cop_buf_free(&p->items);
	cop_buf_free(&p->ranges);
	free(p->ready);
	free(p->todo);
	p->ready = NULL;
	p->todo = NULL;
}

/* Runs until all requests are complete or p->over is set; false if the node is stopping. */
static bool run_stages(struct cop_prefetch *p)
{
	struct cop_list slots, *l;

	for (cop_prefetch_take_begun(p), fill_windows(p); p->flying || (!p->chunks && !p->over);
		fill_windows(p)) {
		if (!wait_completed(p, &slots))
			return false;
		while ((l = cop_list_pop_front(&slots)))
			finish_slot(p, COP_CONTAINER_OF(l, struct slot, link));
		cop_prefetch_take_begun(p);
	}
	return true;
}

/* tree/fetch traces each object as a flight; this traces the prefetch as a whole. */
static void trace(struct cop_prefetch *p, uint64_t begin_ns)
{
	const struct cop_tracer_arg args[] = {{.key = "items", .value = (int64_t)p->n_items},
		{.key = "listings", .value = (int64_t)atomic_load(&p->listings)},
		{.key = "files", .value = (int64_t)atomic_load(&p->files)}};
	struct cop_tracer_event e = {.phase = COP_TRACER_SPAN,
		.name = "prefetch",
		.begin_ns = begin_ns,
		.end_ns = cop_now_ns(),
		.arg = args,
		.args = COP_ARRAY_SIZE(args)};

	cop_tracer_event(p->conf.tracer, &e);
}

static void set_why(struct cop_prefetch *p, const char *why)
{
	pthread_mutex_lock(&p->lock);
	p->why = why;
	pthread_mutex_unlock(&p->lock);
}

/* All objects of the begun parts have been requested, or p->over is set. */
static void report_end(struct cop_prefetch *p, uint64_t begin_ns)
{
	if (p->over || p->n_todo == p->n_items)
		cop_fetch_use_pack(p->conf.fetch, false);
	if (!p->over && p->n_todo)
		cop_fetch_prefetched(p->conf.fetch);
	if (!p->over && p->n_items)
		set_why(p, p->n_todo ? NULL : "no program has begun a part of the manifest");
	set_state(p, p->over ? STOPPED : DONE);
	cop_log_info("prefetch %s items=%zu listings=%" PRIu64 " files=%" PRIu64 "%s%s",
		p->over ? "stopped" : "done", p->n_todo, atomic_load(&p->listings),
		atomic_load(&p->files), p->why ? " why=" : "", p->why ? p->why : "");
	cop_telemetry_event(p->conf.telemetry, COP_TELEMETRY_PREFETCH_END,
		"%s: %zu lines, %" PRIu64 " listings, %" PRIu64 " files%s%s",
		p->over ? "stopped" : "done", p->n_todo, atomic_load(&p->listings),
		atomic_load(&p->files), p->why ? "; " : "", p->why ? p->why : "");
	trace(p, begin_ns);
}

/* Fetches parts as they begin, until the node stops or no part is left. */
static void run_rounds(struct cop_prefetch *p, uint64_t begin_ns)
{
	struct cop_list none;

	for (;;) {
		set_state(p, RUNNING);
		if (!run_stages(p)) {
			give_up(p, "the node stops");
			report_end(p, begin_ns);
			return;
		}
		report_end(p, begin_ns);
		if (p->over || p->n_todo == p->n_items || !wait_completed(p, &none))
			return;
		begin_ns = cop_now_ns();
		cop_telemetry_event(p->conf.telemetry, COP_TELEMETRY_PREFETCH_BEGIN, "%s", "");
	}
}

static void *run_worker(void *arg)
{
	struct cop_prefetch *p = arg;
	uint64_t begin_ns = cop_now_ns();
	int rc;

	cop_telemetry_event(p->conf.telemetry, COP_TELEMETRY_PREFETCH_BEGIN, "%s", "");
	rc = load_manifest(p);
	if (rc == -ENODATA || (!rc && !p->n_items && !p->over))
		p->why = "there is no manifest";
	else if (rc)
		give_up(p,
			rc == -ESHUTDOWN ? "the node stops" : "the manifest could not be fetched");
	if (!rc)
		run_rounds(p, begin_ns);
	else
		report_end(p, begin_ns);
	forget_manifest(p);
	return NULL;
}

int cop_prefetch_start(const struct cop_prefetch_conf *conf, struct cop_prefetch **out)
{
	struct cop_prefetch *p = calloc(1, sizeof(*p));
	unsigned n = 0;
	int rc;

	if (!p)
		return -ENOMEM;
	p->conf = *conf;
	p->formed = p->chunks = !conf->forming;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->wake, NULL);
	cop_list_init(&p->completed);
	for (unsigned stage = 0; stage < STAGES; stage++) {
		cop_list_init(&p->free[stage]);
		for (unsigned i = 0; i < stage_slots[stage]; i++, n++) {
			p->slot[n].p = p;
			p->slot[n].stage = stage;
			cop_list_push_back(&p->free[stage], &p->slot[n].link);
		}
	}
	rc = cop_thread_start(&p->thread, "prefetch", run_worker, p);
	if (rc) {
		p->stopping = true;
		cop_prefetch_free(p);
		return rc;
	}
	*out = p;
	return 0;
}

void cop_prefetch_formed(struct cop_prefetch *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->formed = true;
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
}

void cop_prefetch_stop(struct cop_prefetch *p)
{
	bool first;

	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	first = !p->stopping;
	p->stopping = true;
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
	if (first)
		pthread_join(p->thread, NULL);
}

/* Slots that completed after the thread ended still hold their references. */
void cop_prefetch_free(struct cop_prefetch *p)
{
	struct cop_list *l;

	if (!p)
		return;
	cop_prefetch_stop(p);
	while ((l = cop_list_pop_front(&p->completed)))
		let_go(p, COP_CONTAINER_OF(l, struct slot, link));
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->lock);
	free(p);
}
