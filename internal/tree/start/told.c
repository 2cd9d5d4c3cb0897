/* SPDX-License-Identifier: BSD-3-Clause */
/* Each rank sends the result of the barrier to its children. The children also request it
 * themselves (upstream.c), but a launcher may kill this node as soon as its command has returned,
 * as Slurm does with all processes of a step, and later requests would go unanswered. So the
 * command does not return until each child that contacted this rank during this start has confirmed
 * the result. A time limit covers children that contacted it and then died or hung. */
#include "tree/start/start_priv.h"

#include "base/log/log.h"

#define READY_MS 10000
/* Short, because the children also query higher ranks and read the job directory. */
#define FAILED_MS 2000

/* The children, in the order of j->below; none without a network. */
static uint32_t those_below(struct cop_start *j, uint32_t child[COP_TOPO_MAX_FANOUT])
{
	return cop_start_rpc(j) ? cop_topo_children(&j->conf.topo, 0, j->conf.rank, child) : 0;
}

/* ---- sending ---- */

static void on_answer(void *arg, const struct cop_rpc_result *r)
{
	struct below *b = arg;
	struct cop_start *j = b->join;

	(void)r;
	atomic_store(&b->unheard, false);
	j->conf.wake(j->conf.ctx);
}

/* A rank that was told of a failure exits and may be unable to confirm. */
static bool is_to_hear(struct cop_start *j, const struct below *b)
{
	bool yes;

	pthread_mutex_lock(&j->lock);
	yes = b->came && (j->end == END_READY || !b->answered);
	pthread_mutex_unlock(&j->lock);
	return yes;
}

void cop_start_tell_below(struct cop_start *j, uint64_t now_ms)
{
	uint8_t payload[sizeof(j->why) + 16 + COP_START_BEGAN_SIZE];
	struct cop_wr w = cop_wr_init(payload, sizeof(payload));
	uint32_t child[COP_TOPO_MAX_FANOUT], count = those_below(j, child);
	bool ready = cop_start_is_ready(j);

	j->tell_end_ms = now_ms + (ready ? READY_MS : FAILED_MS);
	cop_wr_u8(&w, ready);
	cop_wr_str(&w, j->why, strlen(j->why));
	cop_start_put_began(j, &w);
	cop_start_way_begin(j, now_ms);
	for (uint32_t i = 0; i < count; i++) {
		struct below *b = &j->below[i];
		struct cop_rpc_call call = {.rank = child[i],
			.op = COP_START_OP_TOLD,
			.payload = payload,
			.payload_len = cop_wr_len(&w),
			.done = on_answer,
			.arg = b};

		if (!is_to_hear(j, b))
			continue;
		b->join = j;
		atomic_store(&b->unheard, true);
		cop_rpc_call(cop_start_rpc(j), &call);
	}
}

unsigned cop_start_tell_left_ms(struct cop_start *j, uint64_t now_ms)
{
	unsigned way_ms = cop_start_way_left_ms(j, now_ms);
	bool unheard = false;

	for (uint32_t i = 0; i < COP_TOPO_MAX_FANOUT; i++)
		unheard |= atomic_load(&j->below[i].unheard);
	if (way_ms || !unheard || now_ms >= j->tell_end_ms)
		return way_ms;
	return (unsigned)(j->tell_end_ms - now_ms);
}

unsigned cop_start_name_untold(struct cop_start *j)
{
	uint32_t child[COP_TOPO_MAX_FANOUT], count = those_below(j, child);
	unsigned untold = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (!atomic_load(&j->below[i].unheard))
			continue;
		untold++;
		cop_log_warn(
			"a node below has not said that it knows what became of the start rank=%" PRIu32
			" host=%s",
			child[i], cop_start_host(j, child[i]));
	}
	return untold;
}

/* ---- receiving ---- */

/* Accepted only from the parent. A rank that is requesting the result from another ancestor may
 * learn it here first. */
void cop_start_serve_told(struct cop_start *j, struct cop_rpc_req *req)
{
	size_t len, why_len;
	const void *payload = cop_rpc_req_payload(req, &len);
	struct cop_rd r = cop_rd_init(payload, len);
	bool ready = cop_rd_u8(&r);
	const char *why = cop_rd_str(&r, &why_len);
	char text[sizeof(j->why)];
	int rc = cop_rpc_req_rank(req) != j->parent ? -EPERM
		 : r.bad || why_len >= sizeof(text) ? -EINVAL
						    : 0;

	if (!rc) {
		snprintf(text, sizeof(text), "%.*s", (int)why_len, why);
		cop_start_take_began(j, &r);
		cop_start_end_barrier(j, ready ? END_READY : END_KNOWN, text);
	}
	cop_rpc_reply(req, &(struct cop_rpc_answer){.status = rc});
}
