/* SPDX-License-Identifier: BSD-3-Clause */
/* The virtual clock: a binary heap of events, ordered by time and then by creation. */
#include "base/base/grow.h"
#include "sim.h"

struct event {
	uint64_t time, seq;
	sim_fn *fn;
	void *arg;
	uint64_t value;
};

static struct event *heap;
static size_t count, room;
static uint64_t now, made;

void *cop_sim_alloc(size_t n, size_t bytes)
{
	void *p = calloc(n ? n : 1, bytes);

	if (!p) {
		fputs("copper-sim: no memory left; give fewer --nodes\n", stderr);
		exit(1);
	}
	return p;
}

uint64_t cop_sim_now(void)
{
	return now;
}

static bool is_before(const struct event *a, const struct event *b)
{
	return a->time < b->time || (a->time == b->time && a->seq < b->seq);
}

void cop_sim_at(uint64_t time_ns, sim_fn *fn, void *arg, uint64_t value)
{
	struct event e = {COP_MAX(time_ns, now), made++, fn, arg, value};
	size_t at = count++;

	if (!COP_GROW(heap, at, room))
		abort();
	for (; at && is_before(&e, &heap[(at - 1) / 2]); at = (at - 1) / 2)
		heap[at] = heap[(at - 1) / 2];
	heap[at] = e;
}

static struct event pop_event(void)
{
	struct event top = heap[0], e = heap[--count];
	size_t at = 0;

	for (size_t child; (child = 2 * at + 1) < count; at = child) {
		child += child + 1 < count && is_before(&heap[child + 1], &heap[child]);
		if (!is_before(&heap[child], &e))
			break;
		heap[at] = heap[child];
	}
	heap[at] = e;
	return top;
}

void cop_sim_run(void)
{
	while (count) {
		struct event e = pop_event();

		now = e.time;
		e.fn(e.arg, e.value);
	}
	free(heap);
	heap = NULL;
	room = 0;
}

uint64_t cop_sim_events(void)
{
	return made;
}

void cop_sim_clock_reset(void)
{
	now = made = 0;
}

uint64_t cop_sim_draw(uint64_t seed, uint64_t kind, uint64_t n, uint64_t limit)
{
	uint64_t key[3] = {seed, kind, n};

	return limit ? cop_hash64(key, sizeof(key), 0) % limit : 0;
}
