/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a node that has answered a stop: its answer has the sums of all below it, and they end
 * with it. So it stays until the one that asked has said that it holds them. One that says nothing
 * is asked whether it is there at all: what asks for its state finds out who is dead, and who only
 * gets no processor (rpc). In the place of the dead the next living ancestor asks, as soon as it
 * finds out too: that is waited for. */
#include "node/node_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>

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

static struct asker *asker_of(struct cop_node *n, uint32_t rank)
{
	for (unsigned i = 0; i < n->askers; i++)
		if (n->asker[i].rank == rank)
			return &n->asker[i];
	if (n->askers == ASKERS)
		return NULL;
	n->asker[n->askers].rank = rank;
	return &n->asker[n->askers++];
}

/* Whether it may still come for the answer. A guest (guest.c) cannot be asked: it has no place
 * where it could be looked up, and does not wait for long. */
static bool is_there(struct cop_node *n, uint32_t rank)
{
	struct asker *a = rank < n->topo.nodes ? asker_of(n, rank) : NULL;
	uint64_t now = cop_now_ms();

	if (!a || atomic_load(&a->gone))
		return !a && rank < n->topo.nodes;
	if (!a->asked_ms || (atomic_load(&a->heard) && now - a->asked_ms >= DOUBT_MS)) {
		a->asked_ms = now;
		atomic_store(&a->heard, false);
		cop_rpc_call(
			n->rpc, &(struct cop_rpc_call){
					.rank = rank, .op = OP_STATE, .done = heard, .arg = a});
	}
	return true;
}

static unsigned count_there(struct cop_node *n, const uint32_t *rank, unsigned count)
{
	unsigned there = 0;

	for (unsigned i = 0; i < COP_MIN(count, (unsigned)ASKERS); i++)
		there += is_there(n, rank[i]);
	return there;
}

void cop_node_confirmed(struct cop_node *n)
{
	uint64_t began = cop_now_ms(), now = began, there = began,
		 orphan_ms = 2 * (uint64_t)n->conf->peer_timeout_ms;
	unsigned count = 0;
	uint32_t rank[ASKERS];
	int look_ms = LOOK_MS_FIRST;

	while (n->rpc && (count = cop_rpc_unconfirmed(n->rpc, rank, ASKERS)) &&
		now - began < CONFIRM_MS && now - there < orphan_ms) {
		poll(NULL, 0, look_ms);
		look_ms = COP_MIN(2 * look_ms, LOOK_MS_MOST);
		now = cop_now_ms();
		if (now - began < DOUBT_MS || count_there(n, rank, count))
			there = now;
	}
	if (count)
		cop_log_warn(
			"whoever asked for the stop has not said that the answer came rank=%" PRIu32
			" waited_ms=%" PRIu64,
			rank[0], now - began);
}
