/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base/json.h"
#include "fabric/rpc/rpc_priv.h"

#include <time.h>

#define WAIT_MS 1000

static uint64_t oldest_call(const struct cop_list *calls, uint64_t started, unsigned *count)
{
	for (const struct cop_list *at = calls->next; at != calls; at = at->next) {
		const struct call *c = COP_CONTAINER_OF(at, struct call, at);

		started = COP_MIN(started, c->started_ms);
		++*count;
	}
	return started;
}

static void describe_peer(const struct cop_rpc *r, const struct peer *p, struct cop_json *j)
{
	static const char *const states[] = {
		[PEER_RESOLVING] = "connecting",
		[PEER_CONNECTING] = "connecting",
		[PEER_UP] = "up",
		[PEER_DEAD] = "dead",
	};
	static const char *const waits[] = {
		[PEER_RESOLVING] = "address",
		[PEER_CONNECTING] = "session",
		[PEER_UP] = "answer",
		[PEER_DEAD] = "session",
	};
	unsigned calls = 0;
	uint64_t started = oldest_call(&p->inflight, r->now_ms, &calls);

	started = oldest_call(&p->waiting, started, &calls);
	cop_json_object(j, NULL);
	cop_json_u64(j, "rank", p->rank);
	cop_json_str(j, "state", states[p->state]);
	cop_json_u64(j, "calls", calls);
	cop_json_u64(j, "oldest_ms", r->now_ms - started);
	cop_json_bool(j, "left", p->lag.left);
	cop_json_u64(j, "lags", p->lag.times);
	if (calls)
		cop_json_str(j, "waits_for", waits[p->state]);
	cop_json_end(j);
}

static void put_peers(const struct cop_rpc *r, struct cop_buf *out)
{
	struct cop_json j = cop_json_to(out);

	cop_json_array(&j, NULL);
	for (const struct cop_list *at = r->peers_used.next; at != &r->peers_used; at = at->next) {
		const struct peer *p = COP_CONTAINER_OF(at, struct peer, at);

		if (p->state != PEER_IDLE)
			describe_peer(r, p, &j);
	}
	cop_json_end(&j);
}

/* Shared by the requesting thread and the progress thread. The last reference frees it: the
 * requesting thread may return earlier, on timeout. */
struct question {
	struct cop_endpoint_work work;
	struct cop_rpc *r;
	_Atomic int refs;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool done;
	struct cop_buf text;
};

static struct question *ask_progress_thread(struct cop_rpc *r)
{
	struct question *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	q->r = r;
	q->refs = 2;
	pthread_mutex_init(&q->lock, NULL);
	cop_cond_init(&q->cond);
	return q;
}

static void put_down(struct question *q)
{
	if (atomic_fetch_sub(&q->refs, 1) != 1)
		return;
	cop_buf_free(&q->text);
	pthread_cond_destroy(&q->cond);
	pthread_mutex_destroy(&q->lock);
	free(q);
}

static void answer_question(struct cop_endpoint_work *w)
{
	struct question *q = COP_CONTAINER_OF(w, struct question, work);
	struct cop_buf text = {0};

	put_peers(q->r, &text);
	pthread_mutex_lock(&q->lock);
	q->text = text;
	q->done = true;
	pthread_cond_signal(&q->cond);
	pthread_mutex_unlock(&q->lock);
	put_down(q);
}

static bool await_answer(struct question *q)
{
	struct timespec until = cop_moment(cop_now_ns() + WAIT_MS * COP_NS_PER_MS);
	int rc = 0;

	while (!q->done && !rc)
		rc = pthread_cond_timedwait(&q->cond, &q->lock, &until);
	return q->done;
}

static bool snapshot_there(struct cop_rpc *r, struct cop_buf *out)
{
	struct question *q = ask_progress_thread(r);
	bool done = false;

	if (!q)
		return false;
	q->work.run = answer_question;
	if (cop_endpoint_post(r->fabric, &q->work)) {
		put_down(q);
	} else {
		pthread_mutex_lock(&q->lock);
		done = await_answer(q);
		if (done)
			cop_buf_add(out, q->text.data, q->text.len);
		pthread_mutex_unlock(&q->lock);
	}
	put_down(q);
	return done;
}

void cop_rpc_peers_json(struct cop_rpc *r, struct cop_buf *out)
{
	/* A fake has no thread: its caller is the progress thread. */
	if (r->fake || cop_rpc_inside(r))
		put_peers(r, out);
	else if (!snapshot_there(r, out))
		cop_buf_str(out, "[]");
}
