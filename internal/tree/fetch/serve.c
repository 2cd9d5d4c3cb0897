/* SPDX-License-Identifier: BSD-3-Clause */
/* Serves requests from children. */
#include "tree/fetch/fetch_priv.h"

#include "base/log/log.h"

struct served {
	struct cop_waiter waiter;
	struct cop_fetch *fetch;
	struct cop_rpc_req *req; /* NULL once answered */
	struct cop_obj *obj;     /* a reference while the answer is pending */
	struct cop_obj *bytes;   /* a reference to the bytes of obj, an entry; or NULL */
	struct cop_list at;      /* while waiting for the kernel; under fetch->telling.lock */
	uint64_t since_ms;       /* time of the first tick that found it; 0: none */
	bool at_hand;            /* the answer was cached */
	bool first, background;  /* flags of the request */
	uint32_t from;
	struct served_trace trace;
};

struct obj_ref {
	struct cop_fetch *fetch;
	struct cop_obj *obj;
};

static void release_ref(void *arg)
{
	struct obj_ref *h = arg;

	cop_obj_put(h->fetch->conf.cache, h->obj);
	free(h);
}

/* Answers without an object. rc may be 0. */
static void answer_status(struct cop_rpc_req *req, int rc)
{
	cop_rpc_reply(req, &(struct cop_rpc_answer){.status = rc, .unable = cop_fetch_is_own(rc)});
}

/* The entry is in the head, the bytes are the body. */
static void put_head(struct cop_wr *w, const struct served *s, const struct cop_obj *body)
{
	cop_wr_u64(w, body->sum);
	cop_wr_u8(w, (body->packed ? ANSWER_PACKED : 0) | (s->at_hand ? ANSWER_AT_HAND : 0) |
			     (s->bytes ? ANSWER_FIRST : 0) |
			     (atomic_load(&s->fetch->lends) ? ANSWER_LENDS : 0));
	if (s->bytes)
		cop_wr_bytes(w, s->obj->data, s->obj->len);
}

/* Takes the references to s->obj and s->bytes. */
static void answer(const struct served *s)
{
	struct cop_fetch *c = s->fetch;
	struct cop_rpc_req *req = s->req;
	struct cop_obj *obj = s->bytes ? s->bytes : s->obj;
	struct cop_ask ask = {.path = obj->key.path, .index = obj->key.index};
	struct cop_rpc_answer a = {.status = obj->error, .unable = cop_fetch_is_own(obj->error)};
	struct obj_ref *h = malloc(sizeof(*h));
	uint8_t head[COP_RPC_HEAD_MAX];
	struct cop_wr w = cop_wr_init(head, sizeof(head));

	cop_fetch_trace_served(c, &s->trace, req, &ask, obj->error, obj->len);
	put_head(&w, s, obj);
	if (s->bytes)
		cop_obj_put(c->conf.cache, s->obj);
	if (!h) {
		cop_obj_put(c->conf.cache, obj);
		answer_status(req, -ENOMEM);
		return;
	}
	*h = (struct obj_ref){c, obj};
	cop_cache_used(c->conf.cache, obj, COP_USE_BELOW);
	a.head = head;
	a.head_len = cop_wr_len(&w);
	a.body = obj->data;
	a.body_len = obj->len;
	a.has_sum = obj->key.table == COP_TABLE_DATA;
	a.release = release_ref;
	a.release_arg = h;
	cop_rpc_reply(req, &a);
}

/* ---- answers that wait for this node's kernel ---- */

/* Moves s to *out if its request is still unanswered. Called with the lock held. */
static bool detach(struct served *s, struct served *out)
{
	bool waits = s->req != NULL;

	cop_list_remove(&s->at);
	*out = *s;
	s->req = NULL;
	return waits;
}

/* The kernel has forgotten all names that it had been asked to forget. */
static void forgotten(void *arg)
{
	struct served *s = arg, now;
	struct telling *t = &s->fetch->telling;
	bool waits;

	pthread_mutex_lock(&t->lock);
	waits = detach(s, &now);
	pthread_mutex_unlock(&t->lock);
	free(s);
	if (waits)
		answer(&now);
}

static bool detach_late(struct telling *t, uint64_t now_ms, struct served *out)
{
	bool late = false;

	pthread_mutex_lock(&t->lock);
	for (struct cop_list *at = t->waiting.next; at != &t->waiting && !late;) {
		struct served *s = COP_CONTAINER_OF(at, struct served, at);

		at = at->next;
		if (!s->since_ms)
			s->since_ms = now_ms;
		late = now_ms - s->since_ms >= FORGET_MS && detach(s, out);
	}
	pthread_mutex_unlock(&t->lock);
	return late;
}

void cop_fetch_tick(struct cop_fetch *c, uint64_t now_ms)
{
	struct served late;

	while (detach_late(&c->telling, now_ms, &late)) {
		cop_log_info(
			"a child is told that a file is stale before the kernel here has forgotten its name path=\"/%s\" waited_ms=%d why=\"a program here waits for the storage in that directory\"",
			late.obj->key.path, FORGET_MS);
		answer(&late);
	}
}

/* ---- first bytes of a file, in the answer with its entry ---- */

static void bytes_completed(struct cop_waiter *w, struct cop_obj *obj, int rc)
{
	struct served *s = COP_CONTAINER_OF(w, struct served, waiter);

	if (!rc)
		s->bytes = cop_obj_get(obj);
	answer(s);
	free(s);
}

/* Whether the bytes are cached or may be fetched: nothing is evicted to make room for them, and an
 * ancestor that has just answered without them is not asked again. */
static bool may_ask_bytes(const struct served *s, const struct cop_ask *bytes)
{
	struct cop_cache *cache = s->fetch->conf.cache;
	struct cop_key key = cop_fetch_key(bytes);

	return cop_cache_has(cache, &key) || ((s->at_hand || !atomic_load(&s->obj->first)) &&
						     cop_cache_has_headroom(cache, bytes->size));
}

/* The entry is cached. True: the answer waits for the bytes, and the caller no longer owns s.
 * False: the caller answers now, with the bytes if they are cached. */
static bool wait_for_bytes(struct served *s)
{
	struct cop_fetch *c = s->fetch;
	bool at_hand = s->at_hand;
	struct cop_obj *bytes;
	struct cop_ask ask;
	int rc;

	if (!s->first || s->obj->len > COP_RPC_HEAD_MAX - ANSWER_HEAD ||
		!cop_fetch_first_of(c, s->obj, &ask) || !may_ask_bytes(s, &ask))
		return false;
	ask.background = true;
	/* The entry may have a waiter by now. */
	ask.first = !s->background || (!at_hand && !atomic_load(&s->obj->background));
	ask.from = s->from;
	s->at_hand = false;
	s->waiter = (struct cop_waiter){.completed = bytes_completed};
	rc = cop_fetch_get_for(c, &ask, &s->waiter, false, &bytes);
	if (rc == 0)
		return true;
	s->at_hand = at_hand;
	if (rc == 1)
		s->bytes = bytes;
	return false;
}

/* A requester that finds its file stale requests the directory again, so the old names must be gone
 * here before it is answered. */
static void served_completed(struct cop_waiter *w, struct cop_obj *obj, int rc)
{
	struct served *s = COP_CONTAINER_OF(w, struct served, waiter);
	struct cop_fetch *c = s->fetch;

	s->obj = cop_obj_get(obj);
	if (wait_for_bytes(s))
		return;
	if (!c->conf.forget_names || !cop_fetch_disproves(rc) || !obj->key.version) {
		answer(s);
		free(s);
		return;
	}
	pthread_mutex_lock(&c->telling.lock);
	cop_list_push_back(&c->telling.waiting, &s->at);
	pthread_mutex_unlock(&c->telling.lock);
	if (c->conf.forget_names(c->conf.ctx, NULL, forgotten, s))
		forgotten(s);
}

/* ---- the requests ---- */

/* Answers without an object and ends the request's span in the trace. */
static void answer_plain(struct cop_fetch *c, struct cop_rpc_req *req, const struct cop_ask *ask,
	const struct served_trace *trace, int rc)
{
	cop_fetch_trace_served(c, trace, req, ask, rc, 0);
	answer_status(req, rc);
}

static void get_for_child(struct cop_fetch *c, struct cop_rpc_req *req, const struct cop_ask *ask,
	const struct served_trace *trace)
{
	struct served *s = calloc(1, sizeof(*s));
	struct cop_obj *obj;
	int rc;

	if (!s) {
		answer_plain(c, req, ask, trace, -ENOMEM);
		return;
	}
	cop_list_init(&s->at);
	s->waiter.completed = served_completed;
	/* For part of a large file or a lent chunk, the requester can try another node. */
	s->waiter.guesses = ask->guess || ask->home ||
			    (ask->kind == COP_ASK_CHUNK && cop_fetch_is_striped(c, ask->size));
	s->fetch = c;
	s->req = req;
	s->trace = *trace;
	s->first = cop_fetch_wants_first(ask);
	s->background = ask->background;
	s->from = ask->from;
	rc = cop_fetch_get_for(c, ask, &s->waiter, false, &obj);
	if (rc == 0)
		return;
	if (rc < 0) {
		answer_plain(c, req, ask, trace, rc);
	} else {
		s->obj = obj;
		s->at_hand = true;
		if (wait_for_bytes(s))
			return;
		answer(s);
	}
	free(s);
}

bool cop_fetch_serve(struct cop_fetch *c, struct cop_rpc_req *req)
{
	uint8_t op = cop_rpc_req_op(req);
	char path[4096];
	struct cop_ask ask;
	struct served_trace trace;
	bool raise;

	if (op < 1 || op > COP_ASK_LAST)
		return false;
	if (!cop_fetch_decode(req, path, &ask, &raise)) {
		answer_status(req, -EINVAL);
		return true;
	}
	ask.from = cop_rpc_req_rank(req);
	if (ask.home)
		cop_fetch_hear_of_lending(c);
	if (raise) {
		cop_fetch_raise_priority(c, &ask, true);
		if (ask.kind == COP_ASK_ENTRY)
			cop_fetch_raise_first(c, &ask);
		answer_status(req, 0);
		return true;
	}
	trace = cop_fetch_trace_arrived(c, req);
	if (ask.kind == COP_ASK_CHECK && cop_fetch_fresh(c, &ask)) {
		answer_plain(c, req, &ask, &trace, 0);
		return true;
	}
	if (ask.peek && !cop_fetch_can_show(c, &ask)) {
		answer_plain(c, req, &ask, &trace, -ENODATA);
		return true;
	}
	cop_log_debug("serving kind=%s path=\"/%s\" index=%llu", cop_fetch_kind_name(ask.kind),
		path, (unsigned long long)ask.index);
	get_for_child(c, req, &ask, &trace);
	return true;
}
