/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks of one file are parsed in parallel, but begins and ends are paired in file order: each
 * parsed block waits for its turn. A block without halves does not wait; its turn is skipped. The
 * thread that took a block always takes its turn, and a turn waits only for earlier blocks, so
 * there is no deadlock. */
#include "trace/read/read_priv.h"

#define AHEAD 64u /* bits of source.done */

static void wait_for_turn(struct source *s, uint64_t seq, uint64_t ahead)
{
	pthread_mutex_lock(&s->lock);
	while (seq - s->turn >= ahead)
		pthread_cond_wait(&s->turned, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

static void end_turn(struct source *s, uint64_t seq)
{
	pthread_mutex_lock(&s->lock);
	s->done |= UINT64_C(1) << (seq - s->turn);
	while (s->done & 1) {
		s->done >>= 1;
		s->turn++;
	}
	pthread_cond_broadcast(&s->turned);
	pthread_mutex_unlock(&s->lock);
}

static int pair_all(struct worker *w)
{
	struct open_span *used = NULL;
	int rc = 0;

	for (size_t i = 0; i < w->halves && !rc; i++)
		if (cop_trace_pair(&w->source->pairs, &w->half[i], &used))
			rc = cop_trace_deliver(w, &w->half[i].e);
	if (!rc)
		rc = cop_trace_flush(w);
	cop_trace_spans_free(used);
	w->halves = w->n = 0;
	return rc;
}

int cop_trace_turn(struct worker *w)
{
	uint64_t seq = w->block.seq;
	int rc = 0;

	wait_for_turn(w->source, seq, w->halves ? 1 : AHEAD);
	if (w->halves)
		rc = pair_all(w);
	end_turn(w->source, seq);
	return rc;
}
