/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies all strings, because a detached follower thread may outlive the telemetry. */
#include "writers/otel/otel_priv.h"

/* ---- the starts ---- */

static int64_t wall_ns(const struct cop_telemetry_sum *sum, int64_t us)
{
	return cop_telemetry_sum_unix_ns(sum) + us * 1000;
}

/* When the node reached the barrier. All nodes leave it together, so only the time before it
 * differs. */
static int64_t reached_us(const struct cop_telemetry_node *n)
{
	int64_t us = n->start_us;

	for (unsigned p = 0; p < COP_TELEMETRY_BARRIER; p++)
		us += (int64_t)n->phase_us[p];
	return us;
}

/* Inserts a node into the sorted list of the SLOWEST slowest nodes. */
static size_t insert_slowest(const struct cop_telemetry_node *slowest[SLOWEST], size_t n,
	const struct cop_telemetry_node *node)
{
	size_t at = n;

	while (at > 0 && reached_us(slowest[at - 1]) < reached_us(node))
		at--;
	if (at == SLOWEST)
		return n;
	n = COP_MIN(n + 1, SLOWEST);
	memmove(&slowest[at + 1], &slowest[at], (n - at - 1) * sizeof(*slowest));
	slowest[at] = node;
	return n;
}

static void take_starts(struct facts *f, const struct cop_telemetry_sum *sum,
	const char *(*host)(void *ctx, uint32_t rank), void *ctx)
{
	const struct cop_telemetry_node *slowest[SLOWEST], *node;
	size_t n = 0;

	for (size_t i = 0; (node = cop_telemetry_sum_node(sum, i)); i++)
		n = insert_slowest(slowest, n, node);
	for (size_t i = 0; i < n; i++) {
		struct node_start *s = &f->slowest[i];

		*s = (struct node_start){.rank = slowest[i]->rank,
			.host = strdup(host(ctx, slowest[i]->rank)),
			.start_ns = wall_ns(sum, slowest[i]->start_us),
			.reached_ns = wall_ns(sum, reached_us(slowest[i]))};
		memcpy(s->phase_us, slowest[i]->phase_us, sizeof(s->phase_us));
		if (!s->host)
			break;
		f->nodes++;
	}
}

/* ---- the events ---- */

bool cop_otel_is_trouble(enum cop_telemetry_kind kind)
{
	return kind <= COP_TELEMETRY_STORAGE_ERROR;
}

static size_t count_events(const struct cop_telemetry_sum *sum)
{
	size_t n = 0;

	while (cop_telemetry_sum_event(sum, n))
		n++;
	return n;
}

static void take_events(struct facts *f, const struct cop_telemetry_sum *sum,
	const char *(*host)(void *ctx, uint32_t rank), void *ctx)
{
	size_t n = count_events(sum);

	f->dropped = cop_telemetry_sum_dropped(sum);
	f->fact = n ? calloc(n, sizeof(*f->fact)) : NULL;
	for (size_t i = 0; f->fact && i < n; i++) {
		const struct cop_telemetry_event *e = cop_telemetry_sum_event(sum, i);
		struct fact *to = &f->fact[f->n++];

		*to = (struct fact){.wall_ns = wall_ns(sum, e->at_us),
			.rank = e->rank,
			.kind = e->kind,
			.host = strdup(host(ctx, e->rank)),
			.detail = strdup(e->detail)};
		if (!to->host || !to->detail)
			break;
	}
	/* The last fact may be incomplete. */
	if (f->n && (!f->fact[f->n - 1].host || !f->fact[f->n - 1].detail)) {
		free(f->fact[f->n - 1].host);
		free(f->fact[--f->n].detail);
	}
	f->dropped += n - f->n;
}

void cop_otel_take_facts(struct facts *f, const struct cop_telemetry_sum *sum,
	const char *(*host)(void *ctx, uint32_t rank), void *ctx)
{
	take_starts(f, sum, host, ctx);
	take_events(f, sum, host, ctx);
}

void cop_otel_free_facts(struct facts *f)
{
	for (size_t i = 0; i < f->nodes; i++)
		free(f->slowest[i].host);
	for (size_t i = 0; i < f->n; i++) {
		free(f->fact[i].host);
		free(f->fact[i].detail);
	}
	free(f->fact);
}
