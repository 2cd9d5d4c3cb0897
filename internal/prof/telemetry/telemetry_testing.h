/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests of telemetry: a clock that does not advance, and synthetic nodes. */
#ifndef COP_PROF_TELEMETRY_TESTING_H
#define COP_PROF_TELEMETRY_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "prof/telemetry/telemetry_priv.h"

#define STARTED_NS (100 * COP_NS_PER_S)
#define UNIX_NS INT64_C(1700000000000000000)

static uint64_t clock_ns = STARTED_NS;

static uint64_t clock_now_ns(void)
{
	return clock_ns;
}

static int64_t clock_wall_ns(void)
{
	return UNIX_NS + (int64_t)(clock_ns - STARTED_NS);
}

static inline int stop_clock(void **state)
{
	(void)state;
	clock_ns = STARTED_NS;
	cop_clocks_for_test(clock_now_ns, clock_wall_ns);
	return 0;
}

static inline int start_clock(void **state)
{
	(void)state;
	cop_clocks_for_test(NULL, NULL);
	return 0;
}

static inline void pass_ms(uint64_t ms)
{
	clock_ns += ms * COP_NS_PER_MS;
}

/* The value that a synthetic node reports, derived from its rank. */
static inline uint64_t value_of_node(uint32_t rank, unsigned what)
{
	return cop_hash64(&rank, sizeof(rank), what) >> 40;
}

/* A sum of one node, in a job of this many nodes, that was active in each of these intervals. */
static inline struct cop_telemetry_sum *a_node(
	uint32_t job_nodes, uint32_t rank, unsigned intervals, unsigned level)
{
	struct cop_telemetry_sum *s = cop_telemetry_sum_new(job_nodes);
	struct cop_telemetry_node *n = cop_telemetry_sum_slot(s);

	assert_non_null(n);
	*n = (struct cop_telemetry_node){.rank = rank,
		.start_us = 1000 * (int64_t)(rank % 7),
		.ready_us = 50000 + rank,
		.stopped_us = ((int64_t)intervals * 1000000) << level,
		.intervals = intervals,
		.series = calloc(INTERVALS, sizeof(*n->series))};
	for (unsigned i = 0; i < intervals; i++)
		for (unsigned m = 0; m < METRICS; m++)
			n->series[i][m] = value_of_node(rank, i * METRICS + m);
	for (unsigned t = 0; t < COP_TELEMETRY_TOTALS; t++)
		n->total[t] = value_of_node(rank, 5000 + t);
	for (unsigned p = 0; p < COP_TELEMETRY_PHASES; p++)
		n->phase_us[p] = value_of_node(rank, 6000 + p);
	s->nodes = 1;
	s->level = level;
	s->unix_ns = UNIX_NS;
	return s;
}

static inline void add_event(struct cop_telemetry_sum *s, enum cop_telemetry_kind kind,
	int64_t at_us, const char *detail)
{
	struct cop_telemetry_event *e = reallocarray(s->event, s->events + 1, sizeof(*s->event));

	assert_non_null(e);
	s->event = e;
	s->event[s->events++] = (struct cop_telemetry_event){
		.at_us = at_us, .rank = s->node[0].rank, .kind = kind, .detail = strdup(detail)};
}

static inline struct cop_buf encoded(const struct cop_telemetry_sum *s)
{
	struct cop_buf out = {0};

	cop_telemetry_encode(s, &out);
	assert_false(out.failed);
	return out;
}

#endif
