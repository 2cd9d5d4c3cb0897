/* SPDX-License-Identifier: BSD-3-Clause */
/* The program on one node: it requests each line of the trace with the recorded delay after the
 * preceding reply. */
#include "sim.h"

struct asked {
	struct cop_waiter waiter;
	struct sim_node *node;
	int32_t line;
};

static void follow_trace(struct sim_node *n, int32_t first);

static void line_answered(struct sim_node *n, int32_t line, int rc)
{
	const struct sim_line *l = &n->sim->conf.trace->line[line];

	if (cop_sim_is_dead(n))
		return;
	if (rc != l->ret) {
		fprintf(stderr, "copper-sim: rank %u: /%s ends with %d instead of %d\n", n->rank,
			l->path, rc, l->ret);
		abort();
	}
	follow_trace(n, l->follower);
}

static void read_completed(struct cop_waiter *w, struct cop_obj *obj, int rc)
{
	struct asked *a = COP_CONTAINER_OF(w, struct asked, waiter);
	struct sim_node *n = a->node;
	int32_t line = a->line;

	if (!rc && n->sim->conf.trace->line[line].waited)
		cop_fetch_used(n->fetch, obj);
	free(a);
	line_answered(n, line, rc);
}

static struct cop_ask ask_of(const struct sim_node *n, const struct sim_line *l)
{
	struct cop_ask ask = {.kind = l->kind,
		.path = l->path,
		.background = l->background,
		.along = l->background,
		.first = l->first};

	if (n->sim->conf.shuffle) {
		l = cop_sim_trace_shuffled(n->sim->conf.trace, l,
			cop_sim_draw(n->sim->conf.seed, 'o', n->rank, UINT64_MAX));
		ask.path = l->path;
	}
	if (l->kind == COP_ASK_CHUNK || l->kind == COP_ASK_HOLES || l->kind == COP_ASK_CHECK)
		ask.version = SIM_VERSION;
	if (l->kind == COP_ASK_CHUNK) {
		ask.size = l->size;
		ask.index = l->index;
	}
	return ask;
}

static void ask_ahead(struct sim_node *n, const struct cop_ask *ask)
{
	struct cop_obj *obj;

	if (ask->kind == COP_ASK_CHUNK)
		cop_fetch_ahead(n->fetch, ask);
	else if (cop_fetch_get(n->fetch, ask, NULL, &obj) == 1)
		cop_obj_put(n->cache, obj);
}

static void ask_and_wait(struct sim_node *n, int32_t line)
{
	const struct sim_line *l = &n->sim->conf.trace->line[line];
	struct cop_ask ask = ask_of(n, l);
	struct cop_obj *obj;
	struct asked *a;
	int rc;

	a = cop_sim_alloc(1, sizeof(*a));
	*a = (struct asked){.waiter.completed = read_completed, .node = n, .line = line};
	rc = cop_fetch_get(n->fetch, &ask, &a->waiter, &obj);
	if (rc == 0)
		return;
	free(a);
	if (rc > 0) {
		rc = obj->error;
		if (!rc && l->waited)
			cop_fetch_used(n->fetch, obj);
		cop_obj_put(n->cache, obj);
	}
	line_answered(n, line, rc);
}

/* Requests a line, and the lines in the same message. */
static void ask_lines(void *arg, uint64_t line)
{
	const struct sim_line *first = ((struct sim_node *)arg)->sim->conf.trace->line;
	const struct sim_line *l = first + line;
	struct sim_node *n = arg;
	struct cop_ask ask;

	if (cop_sim_is_dead(n))
		return;
	if (!l->kind) {
		n->end_ns = cop_sim_now();
		return;
	}
	cop_fetch_cork(n->fetch);
	do {
		ask = ask_of(n, l);
		if (l->waited || l->follower >= 0)
			ask_and_wait(n, (int32_t)(l - first));
		else
			ask_ahead(n, &ask);
	} while ((++l)->joined);
	cop_fetch_uncork(n->fetch);
}

static void follow_trace(struct sim_node *n, int32_t first)
{
	const struct sim_line *line = n->sim->conf.trace->line;

	for (int32_t i = first; i >= 0; i = line[i].next)
		cop_sim_at(cop_sim_now() + line[i].think_ns, ask_lines, n, (uint64_t)i);
}

static void begin_node(void *arg, uint64_t unused)
{
	struct sim_node *n = arg;

	(void)unused;
	if (cop_sim_is_dead(n))
		return;
	if (n->sim->conf.manifest)
		cop_sim_prefetch_start(n);
	follow_trace(n, n->sim->conf.trace->first);
}

static void kill_node(void *arg, uint64_t unused)
{
	struct sim_node *n = arg;

	(void)unused;
	cop_sim_fabric_died(n);
}

/* Draws the time at which the node dies: with the given probability per second, or once within the
 * time in which nodes die. */
static uint64_t death_of(const struct sim_node *n)
{
	const struct sim_conf *c = &n->sim->conf;
	uint64_t span_ns = c->die_within_ns ? c->die_within_ns : COP_NS_PER_S;
	uint64_t spans = c->die_within_ns ? 1 : 600;

	for (uint64_t span = 0; c->die_per_million && span < spans; span++)
		if (cop_sim_draw(c->seed + span, 'd', n->rank, 1000000) < c->die_per_million)
			return span * span_ns + cop_sim_draw(c->seed, 'D', n->rank, span_ns);
	return UINT64_MAX;
}

void cop_sim_node_start(struct sim_node *n)
{
	const struct sim_conf *c = &n->sim->conf;

	n->begin_ns = cop_sim_draw(c->seed, 's', n->rank, c->skew_ns);
	n->dies_ns = death_of(n);
	cop_sim_at(n->begin_ns, begin_node, n, 0);
	if (n->dies_ns != UINT64_MAX)
		cop_sim_at(n->dies_ns, kill_node, n, 0);
}
