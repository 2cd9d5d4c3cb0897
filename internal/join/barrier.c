/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of the barrier, on its way down: each rank asks its parent for it, and that answers when
 * the root has heard of everyone, or gives up.
 *
 * A rank that is started again joins a tree that is ready already: its parent says so at once, or
 * the next upstream rank that lives; the root, and who finds nobody alive upstream, asks its own
 * children and the root's. */
#include "join/join_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/log.h"

struct waiter {
	struct cop_list link;
	struct cop_rpc_req *req;
};

/* ---- the end ---- */

/* Is not called before the end, and `why` does not change any more then. */
static void answer(struct cop_join *j, struct cop_rpc_req *req)
{
	struct cop_rpc_answer a = {.status = cop_join_is_ready(j) ? 0 : -ETIMEDOUT,
		.body = j->why,
		.body_len = strlen(j->why)};

	cop_rpc_reply(req, &a);
}

static struct waiter *pop_waiter(struct cop_list *waiters)
{
	struct cop_list *l = cop_list_pop_front(waiters);

	return l ? COP_CONTAINER_OF(l, struct waiter, link) : NULL;
}

void cop_join_settle(struct cop_join *j, enum end end, const char *why)
{
	struct cop_list waiters, *l;
	struct waiter *w;

	cop_list_init(&waiters);
	pthread_mutex_lock(&j->lock);
	if (j->end == END_OPEN) {
		j->end = end;
		j->secondhand = end == END_KNOWN;
		snprintf(j->why, sizeof(j->why), "%s", why);
		cop_list_splice(&waiters, &j->waiters);
		for (l = waiters.next; l != &waiters; l = l->next)
			cop_join_came(j,
				cop_rpc_req_rank(COP_CONTAINER_OF(l, struct waiter, link)->req),
				true);
	}
	pthread_mutex_unlock(&j->lock);
	while ((w = pop_waiter(&waiters))) {
		answer(j, w->req);
		free(w);
	}
	j->conf.settled(j->conf.ctx);
	j->conf.wake(j->conf.ctx);
}

bool cop_join_is_settled(struct cop_join *j)
{
	bool yes;

	pthread_mutex_lock(&j->lock);
	yes = j->end != END_OPEN;
	pthread_mutex_unlock(&j->lock);
	return yes;
}

bool cop_join_is_ready(struct cop_join *j)
{
	bool yes;

	pthread_mutex_lock(&j->lock);
	yes = j->end == END_READY;
	pthread_mutex_unlock(&j->lock);
	return yes;
}

const char *cop_join_why(struct cop_join *j)
{
	return cop_join_is_settled(j) ? j->why : "";
}

/* Which of the two is wrong, nobody can tell. Its host's name may be another in its own list. */
void cop_join_mismatch(struct cop_join *j, uint32_t rank)
{
	char why[800];

	snprintf(why, sizeof(why),
		"%s (rank %" PRIu32
		") was started with other options: --source, --fanout, --trees, --chunk, the host list or its order, or the version differ",
		rank < j->conf.topo.nodes ? cop_join_host(j, rank) : "a node", rank);
	cop_log_warn("refused: %s", why);
	cop_join_settle(j, END_NEWS, why);
}

/* ---- asking ---- */

static void upstream_answered(void *arg, const struct cop_rpc_result *r)
{
	struct cop_join *j = arg;
	uint32_t asked;
	char why[COP_OUTCOME_WHY_SIZE];

	pthread_mutex_lock(&j->lock);
	j->asking = false;
	asked = j->upstream;
	/* One that ends cannot know. */
	if (!r->answered || r->status == -ESHUTDOWN) {
		cop_join_trouble(j, asked, r->status);
		j->upstream = cop_topo_parent(&j->conf.topo, 0, asked);
	}
	pthread_mutex_unlock(&j->lock);
	if (r->answered && r->status == 0) {
		cop_join_settle(j, END_READY, "");
	} else if (r->answered && r->status == -ETIMEDOUT) {
		snprintf(why, sizeof(why), "%.*s", (int)r->body_len,
			r->body ? (const char *)r->body : "");
		cop_join_settle(j, END_KNOWN, why);
	} else if (r->status == -EPROTO) {
		cop_join_mismatch(j, asked);
	}
}

void cop_join_ask_upstream(struct cop_join *j)
{
	struct cop_rpc_call call = {.op = COP_JOIN_OP_BARRIER, .done = upstream_answered, .arg = j};
	bool ask, again;

	pthread_mutex_lock(&j->lock);
	ask = !j->asking && j->end == END_OPEN;
	j->asking |= ask;
	/* From the parent up to the root, and again. */
	again = ask && j->upstream == COP_TOPO_NONE;
	if (again)
		j->upstream = j->parent;
	call.rank = j->upstream;
	pthread_mutex_unlock(&j->lock);
	if (ask)
		cop_rpc_call(cop_join_rpc(j), &call);
	if (again)
		cop_join_ask_state(j);
}

struct state_call {
	struct cop_join *join;
	uint32_t rank;
};

static void state_heard(void *arg, const struct cop_rpc_result *r)
{
	struct state_call c = *(struct state_call *)arg;
	struct cop_join *j = c.join;

	free(arg);
	if (r->status == -EPROTO)
		cop_join_mismatch(j, c.rank);
	if (!r->answered || r->status)
		return;
	if (!cop_join_is_settled(j))
		cop_log_info("the tree is ready already: this node was restarted");
	cop_join_settle(j, END_READY, "");
}

void cop_join_ask_children(struct cop_join *j, uint32_t rank)
{
	uint32_t child[COP_TOPO_MAX_FANOUT],
		count = cop_topo_children(&j->conf.topo, 0, rank, child);

	for (uint32_t i = 0; i < count; i++) {
		struct state_call *c = child[i] == j->conf.rank ? NULL : malloc(sizeof(*c));
		struct cop_rpc_call call = {
			.rank = child[i], .op = COP_JOIN_OP_STATE, .done = state_heard, .arg = c};

		if (!c)
			continue;
		*c = (struct state_call){j, child[i]};
		cop_rpc_call(cop_join_rpc(j), &call);
	}
}

/* This rank was perhaps started again. Others that are not up yet, or no more ready than this one,
 * are no news. */
void cop_join_ask_state(struct cop_join *j)
{
	cop_join_ask_children(j, j->conf.rank);
	if (!j->root)
		cop_join_ask_children(j, cop_topo_root(&j->conf.topo, 0));
}

/* ---- being asked ---- */

void cop_join_serve_state(struct cop_join *j, struct cop_rpc_req *req)
{
	int status = cop_join_is_ready(j) ? 0 : -EAGAIN;

	cop_rpc_reply(req, &(struct cop_rpc_answer){.status = status});
}

void cop_join_serve_barrier(struct cop_join *j, struct cop_rpc_req *req)
{
	struct waiter *w = malloc(sizeof(*w));
	bool settled;

	if (!w) {
		cop_rpc_reply(req, &(struct cop_rpc_answer){.status = -ENOMEM});
		return;
	}
	w->req = req;
	pthread_mutex_lock(&j->lock);
	settled = j->end != END_OPEN;
	cop_join_came(j, cop_rpc_req_rank(req), settled);
	if (!settled)
		cop_list_push_back(&j->waiters, &w->link);
	pthread_mutex_unlock(&j->lock);
	if (settled) {
		free(w);
		answer(j, req);
	}
}

/* ---- leaving ---- */

void cop_join_leave(struct cop_join *j)
{
	struct cop_list waiters;
	struct waiter *w;

	cop_list_init(&waiters);
	pthread_mutex_lock(&j->lock);
	cop_list_splice(&waiters, &j->waiters);
	pthread_mutex_unlock(&j->lock);
	while ((w = pop_waiter(&waiters))) {
		cop_rpc_reply(w->req, &(struct cop_rpc_answer){.status = -ESHUTDOWN});
		free(w);
	}
}

void cop_join_barrier_free(struct cop_join *j)
{
	struct waiter *w;

	while ((w = pop_waiter(&j->waiters)))
		free(w);
}
