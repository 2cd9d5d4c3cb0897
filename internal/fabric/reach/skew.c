/* SPDX-License-Identifier: BSD-3-Clause */
/* A measurement is a chain of calls, each started by the reply to the previous one, so none queues
 * behind another. Its state has one owner at a time: the ticking thread until `busy` is set, then
 * the progress thread until `busy` is cleared. */
#include <stdatomic.h>

#include "fabric/reach/reach.h"

#define ANSWER_BYTES 16
#define SANE_US (INT64_C(1) << 58) /* 9,000 years */

struct cop_skew {
	struct cop_skew_conf conf;
	_Atomic bool busy;
	uint64_t due_ms;
	struct cop_rpc *rpc;
	uint32_t upstream; /* the rank to request from; COP_TOPO_NONE: no ancestor has the offset */
	unsigned samples;
	bool has_best;
	struct cop_skew_sample current, best;
	/* Sent to other nodes. known is stored after offset_us. */
	_Atomic int64_t offset_us;
	_Atomic bool known;
};

/* ---- the arithmetic ---- */

static bool is_sane(int64_t us)
{
	return us > -SANE_US && us < SANE_US;
}

bool cop_skew_is_valid(const struct cop_skew_sample *s)
{
	return is_sane(s->left_us) && is_sane(s->came_us) && is_sane(s->there_us) &&
	       is_sane(s->there_offset_us) && s->came_us >= s->left_us;
}

int64_t cop_skew_rtt_us(const struct cop_skew_sample *s)
{
	return s->came_us - s->left_us;
}

int64_t cop_skew_offset_us(const struct cop_skew_sample *s)
{
	return s->left_us + cop_skew_rtt_us(s) / 2 - s->there_us + s->there_offset_us;
}

/* ---- requests ---- */

struct cop_skew *cop_skew_new(const struct cop_skew_conf *conf)
{
	struct cop_skew *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->conf = *conf;
	s->upstream = cop_topo_parent(&conf->topo, 0, conf->rank);
	atomic_init(&s->known, conf->rank == cop_topo_root(&conf->topo, 0));
	return s;
}

void cop_skew_free(struct cop_skew *s)
{
	free(s);
}

static void ask_time(struct cop_skew *s);

static void end_round(struct cop_skew *s, bool again_soon)
{
	if (s->has_best) {
		int64_t offset_us = cop_skew_offset_us(&s->best);

		atomic_store(&s->offset_us, offset_us);
		atomic_store(&s->known, true);
		s->conf.measured(s->conf.ctx, offset_us, cop_skew_rtt_us(&s->best));
	}
	if (s->has_best || !again_soon)
		s->due_ms += COP_SKEW_EVERY_MS;
	atomic_store(&s->busy, false);
}

static void accept_answer(struct cop_skew *s, const struct cop_rpc_result *r)
{
	struct cop_rd head = cop_rd_init(r->head, r->head_len);

	s->current.there_us = (int64_t)cop_rd_u64(&head);
	s->current.there_offset_us = (int64_t)cop_rd_u64(&head);
	if (!cop_rd_done(&head) || !cop_skew_is_valid(&s->current))
		return;
	if (!s->has_best || cop_skew_rtt_us(&s->current) < cop_skew_rtt_us(&s->best))
		s->best = s->current;
	s->has_best = true;
}

/* Moves on to the next ancestor; after the last, starts again at the parent if the last did not
 * reply. */
static void pass_over(struct cop_skew *s, bool has_answered)
{
	s->upstream = cop_topo_parent(&s->conf.topo, 0, s->upstream);
	if (s->upstream == COP_TOPO_NONE && !has_answered)
		s->upstream = cop_topo_parent(&s->conf.topo, 0, s->conf.rank);
}

/* -EAGAIN: the rank will have an offset soon, or is short of resources. Any other refusal: the rank
 * does not support the request, or will never have an offset. */
static void time_answered(void *arg, const struct cop_rpc_result *r)
{
	struct cop_skew *s = arg;

	s->current.came_us = s->conf.now_us(s->conf.ctx);
	s->samples++;
	if (r->answered && !r->unable && !r->status)
		accept_answer(s, r);
	else if (!r->unable && r->status != -EAGAIN)
		pass_over(s, r->answered);
	if (r->status || s->samples >= COP_SKEW_SAMPLES)
		end_round(s, s->upstream != COP_TOPO_NONE);
	else
		ask_time(s);
}

static void ask_time(struct cop_skew *s)
{
	struct cop_rpc_call call = {
		.rank = s->upstream, .op = COP_SKEW_OP, .done = time_answered, .arg = s};

	s->current.left_us = s->conf.now_us(s->conf.ctx);
	cop_rpc_call(s->rpc, &call);
}

void cop_skew_tick(struct cop_skew *s, struct cop_rpc *rpc, uint64_t now_ms)
{
	if (!rpc || atomic_load(&s->busy) || s->upstream == COP_TOPO_NONE || now_ms < s->due_ms)
		return;
	s->due_ms = now_ms;
	s->rpc = rpc;
	s->samples = 0;
	s->has_best = false;
	atomic_store(&s->busy, true);
	ask_time(s);
}

/* ---- replies ---- */

void cop_skew_serve(struct cop_skew *s, struct cop_rpc_req *req)
{
	uint8_t head[ANSWER_BYTES];
	struct cop_wr w = cop_wr_init(head, sizeof(head));

	if (!atomic_load(&s->known)) {
		cop_rpc_reply(req,
			&(struct cop_rpc_answer){.status = s->conf.asks ? -EAGAIN : -EOPNOTSUPP});
		return;
	}
	cop_wr_u64(&w, (uint64_t)s->conf.now_us(s->conf.ctx));
	cop_wr_u64(&w, (uint64_t)atomic_load(&s->offset_us));
	cop_rpc_reply(req, &(struct cop_rpc_answer){.head = head, .head_len = cop_wr_len(&w)});
}
