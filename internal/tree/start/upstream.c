/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests the end of the barrier from above: each rank sends a request to its parent, which
 * answers when all ranks have reported to the root, or when the root has given up.
 *
 * A restarted rank joins a ready tree: its parent, or the next live rank upstream, answers
 * immediately. The root, and any rank without a live ancestor, ask their own children and those of
 * the root. */
#include "tree/start/start_priv.h"

#include "base/log/log.h"

static void upstream_answered(void *arg, const struct cop_rpc_result *r)
{
	struct cop_rd head = cop_rd_init(r->head, r->head_len);
	struct cop_start *j = arg;
	uint32_t asked;
	char why[COP_STARTNOTE_WHY_SIZE];

	pthread_mutex_lock(&j->lock);
	j->asking = false;
	asked = j->upstream;
	j->parent_met |= r->answered && asked == j->parent;
	/* A rank that is shutting down has no result. */
	if (!r->answered || r->status == -ESHUTDOWN) {
		cop_start_trouble(j, asked, r->status);
		j->upstream = cop_topo_parent(&j->conf.topo, 0, asked);
	}
	pthread_mutex_unlock(&j->lock);
	if (r->answered && r->status == 0) {
		cop_start_take_began(j, &head);
		cop_start_end_barrier(j, END_READY, "");
	} else if (r->answered && r->status == -ETIMEDOUT) {
		snprintf(why, sizeof(why), "%.*s", (int)r->body_len,
			r->body ? (const char *)r->body : "");
		cop_start_end_barrier(j, END_KNOWN, why);
	} else if (r->status == -EPROTO) {
		cop_start_mismatch(j, asked);
	}
}

void cop_start_ask_upstream(struct cop_start *j)
{
	struct cop_rpc_call call = {
		.op = COP_START_OP_BARRIER, .done = upstream_answered, .arg = j};
	bool ask, again;

	pthread_mutex_lock(&j->lock);
	ask = !j->asking && j->end == END_OPEN;
	j->asking |= ask;
	/* From the parent up to the root, then again from the parent. */
	again = ask && j->upstream == COP_TOPO_NONE;
	if (again)
		j->upstream = j->parent;
	call.rank = j->upstream;
	pthread_mutex_unlock(&j->lock);
	if (ask)
		cop_rpc_call(cop_start_rpc(j), &call);
	if (again)
		cop_start_ask_state(j);
}

struct state_call {
	struct cop_start *join;
	uint32_t rank;
};

static void state_heard(void *arg, const struct cop_rpc_result *r)
{
	struct cop_rd head = cop_rd_init(r->head, r->head_len);
	struct state_call c = *(struct state_call *)arg;
	struct cop_start *j = c.join;

	free(arg);
	if (r->status == -EPROTO)
		cop_start_mismatch(j, c.rank);
	if (!r->answered || r->status)
		return;
	if (!cop_start_has_ended(j))
		cop_log_info("the tree is ready already: this node was restarted");
	cop_start_take_began(j, &head);
	cop_start_end_barrier(j, END_READY, "");
}

void cop_start_ask_children(struct cop_start *j, uint32_t rank)
{
	uint32_t child[COP_TOPO_MAX_FANOUT],
		count = cop_topo_children(&j->conf.topo, 0, rank, child);

	for (uint32_t i = 0; i < count; i++) {
		struct state_call *c = child[i] == j->conf.rank ? NULL : malloc(sizeof(*c));
		struct cop_rpc_call call = {
			.rank = child[i], .op = COP_START_OP_STATE, .done = state_heard, .arg = c};

		if (!c)
			continue;
		*c = (struct state_call){j, child[i]};
		cop_rpc_call(cop_start_rpc(j), &call);
	}
}

/* This rank may have been restarted. Ranks that are down, or not ready themselves, do not answer
 * with a result. */
void cop_start_ask_state(struct cop_start *j)
{
	cop_start_ask_children(j, j->conf.rank);
	if (!j->root)
		cop_start_ask_children(j, cop_topo_root(&j->conf.topo, 0));
}
