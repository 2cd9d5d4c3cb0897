/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of children. */
#include "coop/coop_priv.h"

#include <errno.h>
#include <stdlib.h>

#include "log/log.h"

struct served {
	struct cop_waiter waiter;
	struct cop_coop *coop;
	struct cop_rpc_req *req; /* NULL once it is answered */
	struct cop_obj *obj;     /* a reference, while the answer waits */
	struct cop_list at;      /* while it waits for the kernel; under coop->telling.lock, */
	uint64_t since_ms;       /* as is the tick that saw it first; 0: none */
};

struct obj_ref {
	struct cop_coop *coop;
	struct cop_obj *obj;
};

static void release_ref(void *arg)
{
	struct obj_ref *h = arg;

	cop_obj_put(h->coop->conf.cache, h->obj);
	free(h);
}

/* Without an object, or with one that says what this node lacks. */
static void answer_error(struct cop_rpc_req *req, int rc)
{
	cop_rpc_reply(req, &(struct cop_rpc_answer){.status = rc, .unable = cop_coop_is_own(rc)});
}

/* Takes the reference to obj. */
static void answer(struct cop_coop *c, struct cop_rpc_req *req, struct cop_obj *obj)
{
	struct cop_rpc_answer a = {.status = obj->error, .unable = cop_coop_is_own(obj->error)};
	struct obj_ref *h = malloc(sizeof(*h));
	uint8_t head[9];
	struct cop_wr w = cop_wr_init(head, sizeof(head));

	if (!h) {
		cop_obj_put(c->conf.cache, obj);
		answer_error(req, -ENOMEM);
		return;
	}
	*h = (struct obj_ref){c, obj};
	cop_wr_u64(&w, obj->sum);
	cop_wr_u8(&w, obj->packed);
	a.head = head;
	a.head_len = cop_wr_len(&w);
	a.body = obj->data;
	a.body_len = obj->len;
	a.has_sum = obj->key.table == COP_TABLE_DATA;
	a.release = release_ref;
	a.release_arg = h;
	cop_rpc_reply(req, &a);
}

/* ---- answers that wait for the kernel of this node ---- */

/* What is to be answered now goes to *out: s, if its request is there still. Under the lock. */
static bool take(struct served *s, struct served *out)
{
	bool waits = s->req != NULL;

	cop_list_remove(&s->at);
	*out = *s;
	s->req = NULL;
	return waits;
}

/* The kernel has forgotten all that it was asked to before. */
static void forgotten(void *arg)
{
	struct served *s = arg, now;
	struct telling *t = &s->coop->telling;
	bool waits;

	pthread_mutex_lock(&t->lock);
	waits = take(s, &now);
	pthread_mutex_unlock(&t->lock);
	free(s);
	if (waits)
		answer(now.coop, now.req, now.obj);
}

static bool take_late(struct telling *t, uint64_t now_ms, struct served *out)
{
	bool late = false;

	pthread_mutex_lock(&t->lock);
	for (struct cop_list *at = t->waiting.next; at != &t->waiting && !late;) {
		struct served *s = COP_CONTAINER_OF(at, struct served, at);

		at = at->next;
		if (!s->since_ms)
			s->since_ms = now_ms;
		late = now_ms - s->since_ms >= FORGET_MS && take(s, out);
	}
	pthread_mutex_unlock(&t->lock);
	return late;
}

void cop_coop_tick(struct cop_coop *c, uint64_t now_ms)
{
	struct served late;

	while (take_late(&c->telling, now_ms, &late)) {
		cop_log_info(
			"a child is told that a file is stale before the kernel here has forgotten its name path=\"/%s\" waited_ms=%d why=\"a program here waits for the storage in that directory\"",
			late.obj->key.path, FORGET_MS);
		answer(c, late.req, late.obj);
	}
}

/* Who hears that a file is not what its name said asks for the directory again, so that is to be
 * gone here by then. */
static void served_completed(struct cop_waiter *w, struct cop_obj *obj, int rc)
{
	struct served *s = COP_CONTAINER_OF(w, struct served, waiter);
	struct cop_coop *c = s->coop;

	s->obj = cop_obj_get(obj);
	if (!c->conf.forget_names || !cop_coop_disproves(rc) || !obj->key.version) {
		answer(c, s->req, s->obj);
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

bool cop_coop_serve(struct cop_coop *c, struct cop_rpc_req *req)
{
	uint8_t op = cop_rpc_req_op(req);
	char path[4096];
	struct cop_ask ask;
	struct cop_obj *obj;
	struct served *s;
	bool raise;
	int rc;

	if (op < 1 || op > COP_ASK_LAST)
		return false;
	if (!cop_coop_decode(req, path, &ask, &raise)) {
		answer_error(req, -EINVAL);
		return true;
	}
	if (raise)
		cop_coop_raise_priority(c, &ask);
	if (raise || (ask.kind == COP_ASK_CHECK && cop_coop_fresh(c, &ask))) {
		cop_rpc_reply(req, &(struct cop_rpc_answer){.status = 0});
		return true;
	}
	cop_log_debug("serving kind=%s path=\"/%s\" index=%llu", cop_coop_kind_name(ask.kind), path,
		(unsigned long long)ask.index);
	s = calloc(1, sizeof(*s));
	if (!s) {
		answer_error(req, -ENOMEM);
		return true;
	}
	cop_list_init(&s->at);
	s->waiter.completed = served_completed;
	s->coop = c;
	s->req = req;
	rc = cop_coop_get_for(c, &ask, &s->waiter, false, &obj);
	if (rc == 0)
		return true;
	free(s);
	if (rc < 0)
		answer_error(req, rc);
	else
		answer(c, req, obj);
	return true;
}
