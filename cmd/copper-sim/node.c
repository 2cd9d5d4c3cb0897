/* SPDX-License-Identifier: BSD-3-Clause */
/* The program on one node: it requests each line of the trace as long after the answer that
 * preceded it as in the recording, and reads ahead as fs does. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim.h"

struct asked {
	struct cop_waiter waiter;
	struct sim_node *node;
	int32_t line;
};

static void follow_trace(struct sim_node *n, int32_t first);

/* Adds up the times in which the program waits for at least one answer and does not compute. */
static void wait_begins(struct sim_node *n)
{
	if (n->flying++ == 0)
		n->waiting_since = cop_sim_now();
}

static void wait_ends(struct sim_node *n)
{
	if (--n->flying == 0)
		n->waiting_ns += cop_sim_now() - n->waiting_since;
}

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
	follow_trace(n, l->first);
}

static void read_completed(struct cop_waiter *w, struct cop_obj *obj, int rc)
{
	struct asked *a = COP_CONTAINER_OF(w, struct asked, waiter);
	struct sim_node *n = a->node;
	int32_t line = a->line;

	if (!rc)
		cop_coop_used(n->coop, obj);
	free(a);
	wait_ends(n);
	line_answered(n, line, rc);
}

static struct cop_ask ask_of(const struct sim_line *l)
{
	struct cop_ask ask = {.kind = l->kind, .path = l->path};

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
		cop_coop_ahead(n->coop, ask);
	else if (cop_coop_get(n->coop, ask, NULL, &obj) == 1)
		cop_obj_put(n->cache, obj);
}

/* Reads ahead as fs does, since the traces were recorded before fs did so. */
static void read_ahead(struct sim_node *n, const struct cop_ask *ask)
{
	struct cop_ask other = *ask;

	if (ask->kind != COP_ASK_CHUNK || !ask->index || ask->size <= COP_COOP_GROUP_BYTES ||
		ask->size > COP_COOP_MEDIUM_BYTES)
		return;
	for (other.index = 0; other.index * SIM_CHUNK < ask->size; other.index++)
		cop_coop_ahead(n->coop, &other);
}

static void ask_and_wait(struct sim_node *n, const struct sim_line *l, uint64_t line)
{
	struct cop_ask ask = ask_of(l);
	struct cop_obj *obj;
	struct asked *a;
	int rc;

	a = cop_sim_alloc(1, sizeof(*a));
	*a = (struct asked){.waiter.completed = read_completed, .node = n, .line = (int32_t)line};
	wait_begins(n);
	rc = cop_coop_get(n->coop, &ask, &a->waiter, &obj);
	if (rc == 0)
		return;
	free(a);
	wait_ends(n);
	if (rc > 0) {
		rc = obj->error;
		if (!rc)
			cop_coop_used(n->coop, obj);
		cop_obj_put(n->cache, obj);
	}
	line_answered(n, (int32_t)line, rc);
}

static void ask_line(void *arg, uint64_t line)
{
	struct sim_node *n = arg;
	const struct sim_line *l = &n->sim->conf.trace->line[line];
	struct cop_ask ask = ask_of(l);

	if (cop_sim_is_dead(n))
		return;
	if (!l->kind) {
		n->end_ns = cop_sim_now();
	} else if (!l->waited) {
		ask_ahead(n, &ask);
	} else {
		cop_coop_cork(n->coop);
		ask_and_wait(n, l, line);
		read_ahead(n, &ask);
		cop_coop_uncork(n->coop);
	}
}

static void follow_trace(struct sim_node *n, int32_t first)
{
	const struct sim_line *line = n->sim->conf.trace->line;

	for (int32_t i = first; i >= 0; i = line[i].next)
		cop_sim_at(cop_sim_now() + line[i].think_ns, ask_line, n, (uint64_t)i);
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

/* Draws when the node dies: each second of its life is its last one with the given probability. */
static uint64_t death_of(const struct sim_node *n)
{
	const struct sim_conf *c = &n->sim->conf;

	for (uint64_t second = 0; c->die_per_million && second < 600; second++)
		if (cop_sim_draw(c->seed + second, 'd', n->rank, 1000000) < c->die_per_million)
			return second * COP_NS_PER_S +
			       cop_sim_draw(c->seed, 'D', n->rank, COP_NS_PER_S);
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
