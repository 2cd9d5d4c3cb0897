/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a node that has answered a stop: its answer has the sums of all below it, and they end
 * with it. So it stays until the one that asked has said that it holds them. One that says nothing
 * is asked whether it is there at all: what asks for its state finds out who is dead, and who only
 * gets no processor (rpc). In the place of the dead the next living ancestor asks, as soon as it
 * finds out too: that is waited for. */
#include "treeop/treeop_priv.h"

#include <poll.h>

#include "log/log.h"

/* Nobody waits for longer than this, whoever lives. */
#define CONFIRM_MS 120000
/* Whoever says nothing for so long is asked whether it is there. */
#define DOUBT_MS 1000
#define LOOK_MS_FIRST 1
#define LOOK_MS_MOST 50

static void heard(void *arg, const struct cop_rpc_result *r)
{
	struct asker *a = arg;

	atomic_store(&a->gone, !r->answered);
	atomic_store(&a->heard, true);
}

static struct asker *asker_of(struct cop_treeop *t, uint32_t rank)
{
	for (unsigned i = 0; i < t->askers; i++)
		if (t->asker[i].rank == rank)
			return &t->asker[i];
	if (t->askers == ASKERS)
		return NULL;
	t->asker[t->askers].rank = rank;
	return &t->asker[t->askers++];
}

/* Whether it may still come for the answer. A command that is no node cannot be asked: it has no
 * place where it could be looked up, and does not wait for long. */
static bool is_there(struct cop_treeop *t, uint32_t rank, uint64_t now_ms)
{
	struct asker *a = rank < t->conf.topo.nodes ? asker_of(t, rank) : NULL;

	if (!a || atomic_load(&a->gone))
		return !a && rank < t->conf.topo.nodes;
	if (!a->asked_ms || (atomic_load(&a->heard) && now_ms - a->asked_ms >= DOUBT_MS)) {
		a->asked_ms = now_ms;
		atomic_store(&a->heard, false);
		cop_rpc_call(t->conf.ops->rpc(t->conf.ctx),
			&(struct cop_rpc_call){
				.rank = rank, .op = t->conf.alive_op, .done = heard, .arg = a});
	}
	return true;
}

static unsigned count_there(struct cop_treeop *t, const struct awaited *w, uint64_t now_ms)
{
	unsigned there = 0;

	for (unsigned i = 0; i < COP_MIN(w->count, (unsigned)ASKERS); i++)
		there += is_there(t, w->rank[i], now_ms);
	return there;
}

bool cop_treeop_is_awaited(struct cop_treeop *t, struct awaited *w, uint64_t now_ms)
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

void cop_treeop_await_confirmed(struct cop_treeop *t)
{
	uint64_t now_ms = cop_now_ms();
	struct awaited w = {.began_ms = now_ms, .there_ms = now_ms};
	int look_ms = LOOK_MS_FIRST;

	while (cop_treeop_is_awaited(t, &w, now_ms)) {
		poll(NULL, 0, look_ms);
		look_ms = COP_MIN(2 * look_ms, LOOK_MS_MOST);
		now_ms = cop_now_ms();
	}
	if (w.count)
		cop_log_warn(
			"whoever asked for the stop has not said that the answer came rank=%" PRIu32
			" waited_ms=%" PRIu64,
			w.rank[0], now_ms - w.began_ms);
}
