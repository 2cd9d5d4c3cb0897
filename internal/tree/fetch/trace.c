/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports flights as events of the node's trace: one for the whole flight at its end, and one for
 * each phase: "queue" until the first request is sent, "wire" from a request to its answer
 * (repeated for each ancestor tried), "origin" or "disk", "landing" from the answer until the
 * object is cached. A request and its arrival at the parent carry the same number, which links the
 * two nodes' traces. */
#include "tree/fetch/fetch_priv.h"

/* Traces have microsecond resolution; shorter phases are omitted. */
#define MICROSECOND_NS 1000

static void span(const struct flight *f, const char *name, uint64_t begin_ns, uint64_t end_ns,
	const struct cop_tracer_arg *arg, unsigned args)
{
	struct cop_tracer_event e = {.phase = COP_TRACER_SPAN,
		.name = name,
		.begin_ns = begin_ns,
		.end_ns = end_ns,
		.path = f->ask.path,
		.path_len = f->obj->key.path_len,
		.arg = arg,
		.args = args};

	cop_tracer_event(f->fetch->conf.tracer, &e);
}

/* Viewers merge the arguments of both ends, so each end names its peer differently. */
static void flow(struct cop_fetch *c, enum cop_tracer_phase phase, uint64_t id, uint64_t now_ns,
	uint32_t rank)
{
	const struct cop_tracer_arg args[] = {{.key = "id", .value = (int64_t)id},
		{.key = phase == COP_TRACER_LEAVES ? "to_rank" : "from_rank", .value = rank}};
	struct cop_tracer_event e = {.phase = phase,
		.name = "flight",
		.begin_ns = now_ns,
		.arg = args,
		.args = COP_ARRAY_SIZE(args)};

	cop_tracer_event(c->conf.tracer, &e);
}

/* The request, or the origin's job, is about to begin; the caller still owns *f. */
static void leave_queue(struct flight *f, uint64_t at_ns)
{
	bool first = !f->sent_ns;

	f->sent_ns = at_ns;
	f->is_asked = true;
	if (first && f->sent_ns - f->led_ns >= MICROSECOND_NS)
		span(f, "queue", f->led_ns, f->sent_ns, NULL, 0);
}

void cop_fetch_trace_sent(void *flight, uint64_t id, uint64_t at_ns)
{
	struct flight *f = flight;

	leave_queue(f, at_ns);
	/* A little after the start of "wire": at the start itself, viewers would attach the flow to
	 * "queue", which ends there. */
	flow(f->fetch, COP_TRACER_LEAVES, id, f->sent_ns + MICROSECOND_NS, f->upstream);
}

void cop_fetch_trace_origin(struct flight *f)
{
	if (f->fetch->conf.tracer)
		leave_queue(f, cop_now_ns());
}

void cop_fetch_trace_answered(struct flight *f, int rc, size_t len)
{
	bool asked = f->upstream != COP_TOPO_NONE;
	const struct cop_tracer_arg args[] = {{.key = "ret", .value = rc},
		{.key = "image_size", .value = (int64_t)len},
		{.key = "rank", .value = asked ? (int64_t)f->upstream : -1}};

	if (!f->fetch->conf.tracer)
		return;
	f->answered_ns = cop_now_ns();
	/* A call that failed at once was never sent. */
	if (f->is_asked)
		span(f,
			asked        ? "wire"
			: f->spilled ? "disk"
				     : "origin",
			f->sent_ns, f->answered_ns, args, COP_ARRAY_SIZE(args));
	f->is_asked = false;
}

void cop_fetch_trace_complete(const struct flight *f, const struct cop_completion *l)
{
	const struct cop_tracer_arg args[] = {
		{.key = "kind", .text = cop_fetch_kind_name(f->ask.kind)},
		{.key = "ret", .value = l->rc},
		{.key = "image_size", .value = l->rc ? 0 : (int64_t)l->len},
		{.key = "index", .value = (int64_t)f->ask.index},
		{.key = f->local ? "thread" : "child", .value = f->ask.from},
		{.key = "rank", .value = f->upstream != COP_TOPO_NONE ? (int64_t)f->upstream : -1},
		{.key = "background", .value = f->ask.background}};
	uint64_t now_ns;

	if (!f->fetch->conf.tracer)
		return;
	now_ns = cop_now_ns();
	if (f->answered_ns && now_ns - f->answered_ns >= MICROSECOND_NS)
		span(f, "landing", f->answered_ns, now_ns, NULL, 0);
	span(f, "flight", f->led_ns, now_ns, args, COP_ARRAY_SIZE(args));
}

/* ---- requests of children ---- */

struct served_trace cop_fetch_trace_arrived(struct cop_fetch *c, const struct cop_rpc_req *req)
{
	struct served_trace t = {0};

	if (!c->conf.tracer)
		return t;
	t.began_ns = cop_now_ns();
	t.tid = cop_tracer_tid();
	flow(c, COP_TRACER_ARRIVES, cop_rpc_req_id(req), t.began_ns, cop_rpc_req_rank(req));
	return t;
}

void cop_fetch_trace_served(struct cop_fetch *c, const struct served_trace *since,
	const struct cop_rpc_req *req, const struct cop_ask *ask, int rc, size_t len)
{
	const struct cop_tracer_arg args[] = {
		{.key = "kind",
			.text = cop_fetch_kind_name((enum cop_ask_kind)cop_rpc_req_op(req))},
		{.key = "ret", .value = rc}, {.key = "image_size", .value = (int64_t)len},
		{.key = "index", .value = (int64_t)ask->index},
		{.key = "child", .value = cop_rpc_req_rank(req)}};
	struct cop_tracer_event e = {.phase = COP_TRACER_SPAN,
		.name = "serve",
		.begin_ns = since->began_ns,
		.tid = since->tid,
		.path = ask->path,
		.arg = args,
		.args = COP_ARRAY_SIZE(args)};

	if (!c->conf.tracer)
		return;
	e.path_len = strlen(ask->path);
	/* At least a microsecond long: Chromium's viewer attaches an empty span at the end of
	 * another to that one, whose floating-point end may lie before this time, which would leave
	 * the flow without a target. */
	e.end_ns = COP_MAX(cop_now_ns(), e.begin_ns + MICROSECOND_NS);
	cop_tracer_event(c->conf.tracer, &e);
}
