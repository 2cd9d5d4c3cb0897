/* SPDX-License-Identifier: BSD-3-Clause */
/* The go, on its way down: each node asks its parent for it, and that answers when the root has
 * heard of everyone, or gives up.
 *
 * A node that is restarted joins a tree that is ready already: its parent says so at once, or the
 * next living ancestor; the root, and who finds no ancestor alive, asks its own children and the
 * root's. */
#include "node/node_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct go_waiter {
	struct cop_list link;
	struct cop_rpc_req *req;
};

static void answer_go(struct cop_node *n, struct cop_rpc_req *req)
{
	struct cop_rpc_answer a = {.status = n->ready ? 0 : -ETIMEDOUT,
		.body = n->abort_text,
		.body_len = strlen(n->abort_text)};

	cop_rpc_reply(req, &a);
}

/* The matter is settled: everyone who asked is told. abort_text does not change any more and
 * outlives the replies. */
void cop_node_settle(struct cop_node *n, bool ready, const char *why)
{
	struct cop_rendezvous *rendezvous = atomic_load(&n->rendezvous);
	struct cop_list waiters, *l;

	cop_list_init(&waiters);
	pthread_mutex_lock(&n->lock);
	if (!n->ready && !n->aborted) {
		n->ready = ready;
		n->aborted = !ready;
		snprintf(n->abort_text, sizeof(n->abort_text), "%s", why);
		cop_list_splice(&waiters, &n->go_waiters);
		for (l = waiters.next; l != &waiters; l = l->next)
			cop_node_came(n,
				cop_rpc_req_rank(COP_CONTAINER_OF(l, struct go_waiter, link)->req),
				true);
	}
	pthread_mutex_unlock(&n->lock);
	while ((l = cop_list_pop_front(&waiters))) {
		struct go_waiter *w = COP_CONTAINER_OF(l, struct go_waiter, link);

		answer_go(n, w->req);
		free(w);
	}
	/* Asks of the time when nodes were still coming up must not keep later requests waiting. */
	if (rendezvous)
		cop_rendezvous_hurry(rendezvous, n->conf->peer_timeout_ms / 2);
	cop_node_wake(n);
}

/* ---- asking ---- */

void cop_node_trouble(struct cop_node *n, uint32_t above, int status)
{
	bool parent = above == cop_topo_parent(&n->topo, 0, n->rank);

	snprintf(n->trouble, sizeof(n->trouble), "%s (rank %" PRIu32 ", %s): %s",
		cop_node_host(n, above), above, parent ? "this node's parent" : "above this node",
		status == -EACCES                                    ? "it holds another secret"
		: status == -EHOSTDOWN && parent && n->no_address[0] ? n->no_address
								     : strerror(-status));
}

/* Which of the two is wrong, nobody can tell. Its host's name may be another in its own list. */
void cop_node_differs(void *arg, uint32_t rank)
{
	struct cop_node *n = arg;
	char why[800];

	snprintf(why, sizeof(why),
		"%s (rank %" PRIu32
		") was started with other options: --source, --fanout, --trees, --chunk, the host list or its order, or the version differ",
		rank < n->topo.nodes ? cop_node_host(n, rank) : "a node", rank);
	cop_log_warn("refused: %s", why);
	cop_node_settle(n, false, why);
}

static void go_heard(void *arg, const struct cop_rpc_result *r)
{
	struct cop_node *n = arg;
	uint32_t asked;
	char why[1024];

	pthread_mutex_lock(&n->lock);
	n->go_sending = false;
	asked = n->go_rank;
	/* One that ends cannot know. */
	if (!r->answered || r->status == -ESHUTDOWN) {
		cop_node_trouble(n, asked, r->status);
		n->go_rank = cop_topo_parent(&n->topo, 0, asked);
	}
	pthread_mutex_unlock(&n->lock);
	if (r->answered && r->status == 0) {
		cop_node_settle(n, true, "");
	} else if (r->answered && r->status == -ETIMEDOUT) {
		snprintf(why, sizeof(why), "%.*s", (int)r->body_len,
			r->body ? (const char *)r->body : "");
		atomic_store(&n->no_news, true);
		cop_node_settle(n, false, why);
	} else if (r->status == -EPROTO) {
		cop_node_differs(n, asked);
	}
}

struct state_call {
	struct cop_node *node;
	uint32_t rank;
};

static void state_heard(void *arg, const struct cop_rpc_result *r)
{
	struct state_call c = *(struct state_call *)arg;
	struct cop_node *n = c.node;
	bool news;

	free(arg);
	if (r->status == -EPROTO)
		cop_node_differs(n, c.rank);
	if (!r->answered || r->status)
		return;
	pthread_mutex_lock(&n->lock);
	news = !n->ready && !n->aborted;
	pthread_mutex_unlock(&n->lock);
	if (news)
		cop_log_info("the tree is ready already: this node was restarted");
	cop_node_settle(n, true, "");
}

void cop_node_ask_children(struct cop_node *n, uint32_t rank)
{
	uint32_t child[COP_TOPO_MAX_FANOUT], count = cop_topo_children(&n->topo, 0, rank, child);

	for (uint32_t i = 0; i < count; i++) {
		struct state_call *c = child[i] == n->rank ? NULL : malloc(sizeof(*c));
		struct cop_rpc_call call = {
			.rank = child[i], .op = OP_STATE, .done = state_heard, .arg = c};

		if (!c)
			continue;
		*c = (struct state_call){n, child[i]};
		cop_rpc_call(n->rpc, &call);
	}
}

/* This node was perhaps restarted. Nodes that are not up yet, or no more ready than this one, are
 * no news. */
void cop_node_ask_state(struct cop_node *n)
{
	uint32_t root = cop_topo_root(&n->topo, 0);

	cop_node_ask_children(n, n->rank);
	if (n->rank != root)
		cop_node_ask_children(n, root);
}

void cop_node_ask_go(struct cop_node *n)
{
	struct cop_rpc_call call = {.op = OP_GO, .done = go_heard, .arg = n};
	bool ask, again;

	pthread_mutex_lock(&n->lock);
	ask = !n->go_sending && !n->ready && !n->aborted;
	n->go_sending |= ask;
	/* From the parent up to the root, and again. */
	again = ask && n->go_rank == COP_TOPO_NONE;
	if (again)
		n->go_rank = cop_topo_parent(&n->topo, 0, n->rank);
	call.rank = n->go_rank;
	pthread_mutex_unlock(&n->lock);
	if (ask)
		cop_rpc_call(n->rpc, &call);
	if (again)
		cop_node_ask_state(n);
}

/* ---- being asked ---- */

void cop_node_serve_state(struct cop_node *n, struct cop_rpc_req *req)
{
	bool ready;

	pthread_mutex_lock(&n->lock);
	ready = n->ready;
	pthread_mutex_unlock(&n->lock);
	cop_rpc_reply(req, &(struct cop_rpc_answer){.status = ready ? 0 : -EAGAIN});
}

void cop_node_serve_go(struct cop_node *n, struct cop_rpc_req *req)
{
	struct go_waiter *w = malloc(sizeof(*w));
	bool settled;

	if (!w) {
		cop_rpc_reply(req, &(struct cop_rpc_answer){.status = -ENOMEM});
		return;
	}
	w->req = req;
	pthread_mutex_lock(&n->lock);
	settled = n->ready || n->aborted;
	cop_node_came(n, cop_rpc_req_rank(req), settled);
	if (!settled)
		cop_list_push_back(&n->go_waiters, &w->link);
	pthread_mutex_unlock(&n->lock);
	if (settled) {
		free(w);
		answer_go(n, req);
	}
}

void cop_node_go_leave(struct cop_node *n)
{
	struct cop_list waiters, *l;

	cop_list_init(&waiters);
	pthread_mutex_lock(&n->lock);
	cop_list_splice(&waiters, &n->go_waiters);
	pthread_mutex_unlock(&n->lock);
	while ((l = cop_list_pop_front(&waiters))) {
		struct go_waiter *w = COP_CONTAINER_OF(l, struct go_waiter, link);

		cop_rpc_reply(w->req, &(struct cop_rpc_answer){.status = -ESHUTDOWN});
		free(w);
	}
}

void cop_node_go_fini(struct cop_node *n)
{
	struct cop_list *l;

	while ((l = cop_list_pop_front(&n->go_waiters)))
		free(COP_CONTAINER_OF(l, struct go_waiter, link));
}
