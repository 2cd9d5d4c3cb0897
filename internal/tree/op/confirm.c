/* SPDX-License-Identifier: BSD-3-Clause */
/* Delays the end of a node after its answer to a stop. The answer contains the sums of all nodes
 * below and is lost if the node exits too early, so the node waits until the requester has
 * confirmed it. If the requester is silent, this node sends it a request, and rpc detects whether
 * it is dead or merely short of CPU time. If it is dead, the next live ancestor also notices and
 * repeats the stop; this node waits for that. */
#include "tree/op/op_priv.h"

#include <poll.h>

#include "base/log/log.h"

/* Maximum wait, even with live requesters. */
#define CONFIRM_MS 120000
/* A requester is probed after it has been silent for this long. */
#define DOUBT_MS 1000
#define LOOK_MS_FIRST 1
#define LOOK_MS_MOST 50

static void on_answer(void *arg, const struct cop_rpc_result *r)
{
	struct asker *a = arg;

	atomic_store(&a->gone, !r->answered);
	atomic_store(&a->heard, true);
}

static struct asker *asker_of(struct cop_op *t, uint32_t rank)
{
	for (unsigned i = 0; i < t->askers; i++)
		if (t->asker[i].rank == rank)
			return &t->asker[i];
	if (t->askers == ASKERS)
		return NULL;
	t->asker[t->askers].rank = rank;
	return &t->asker[t->askers++];
}

/* Whether the requester may still fetch the answer. A command is not a node and cannot be probed,
 * because its address is unknown; it does not wait for long. */
static bool is_there(struct cop_op *t, uint32_t rank, uint64_t now_ms)
{
	struct asker *a = rank < t->conf.topo.nodes ? asker_of(t, rank) : NULL;

	if (!a || atomic_load(&a->gone))
		return !a && rank < t->conf.topo.nodes;
	if (!a->asked_ms || (atomic_load(&a->heard) && now_ms - a->asked_ms >= DOUBT_MS)) {
		a->asked_ms = now_ms;
		atomic_store(&a->heard, false);
		cop_rpc_call(t->conf.ops->rpc(t->conf.ctx),
			&(struct cop_rpc_call){
				.rank = rank, .op = t->conf.alive_op, .done = on_answer, .arg = a});
	}
	return true;
}

static unsigned count_there(struct cop_op *t, const struct awaited *w, uint64_t now_ms)
{
	unsigned there = 0;

	for (unsigned i = 0; i < COP_MIN(w->count, (unsigned)ASKERS); i++)
		there += is_there(t, w->rank[i], now_ms);
	return there;
}

bool cop_op_is_awaited(struct cop_op *t, struct awaited *w, uint64_t now_ms)
{
	struct cop_rpc *rpc = t->conf.ops->rpc(t->conf.ctx);
	uint64_t orphan_ms = 2 * (uint64_t)t->conf.peer_timeout_ms;

	w->count = rpc ? cop_rpc_unconfirmed(rpc, w->rank, ASKERS) : 0;
	if (!w->count)
		return false;
	if (now_ms - w->began_ms < DOUBT_MS || count_there(t, w, now_ms))
		w->there_ms = now_ms;
	return now_ms - w->began_ms < CONFIRM_MS && now_ms - w->there_ms < orphan_ms;
}

void cop_op_await_confirmed(struct cop_op *t)
{
	uint64_t now_ms = cop_now_ms();
	struct awaited w = {.began_ms = now_ms, .there_ms = now_ms};
	int look_ms = LOOK_MS_FIRST;

	while (cop_op_is_awaited(t, &w, now_ms)) {
		poll(NULL, 0, look_ms);
		look_ms = COP_MIN(2 * look_ms, LOOK_MS_MOST);
		now_ms = cop_now_ms();
	}
	if (w.count)
		cop_log_warn("the requester of the stop has not confirmed the answer rank=%" PRIu32
			     " waited_ms=%" PRIu64,
			w.rank[0], now_ms - w.began_ms);
}
