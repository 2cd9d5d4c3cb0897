/* SPDX-License-Identifier: BSD-3-Clause */
/* One ring per thread. head and tail only grow; modulo the ring size, they are offsets into the
 * data. The producer publishes a record by storing head, and the writer frees space by storing
 * tail. Records are contiguous: if one does not fit before the end of the data, the end is skipped.
 *
 * A thread gets a ring at its first event, preferably one that an exited thread left behind. That
 * ring may still contain the old thread's events, so each record has a thread number. */
#include <assert.h>
#include <sys/eventfd.h>

#include "prof/tracer/tracer_priv.h"

#define HALF (COP_TRACER_RING_BYTES / 2)

static void leave(void *ring)
{
	atomic_store(&((struct ring *)ring)->taken, false);
}

int cop_tracer_rings_init(struct rings *r)
{
	int rc;

	*r = (struct rings){.wake_fd = -1};
	rc = -pthread_key_create(&r->key, leave);
	if (rc)
		return rc;
	r->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r->wake_fd >= 0)
		return 0;
	rc = -errno;
	pthread_key_delete(r->key);
	return rc;
}

void cop_tracer_rings_fini(struct rings *r)
{
	pthread_key_delete(r->key);
	close(r->wake_fd);
	for (unsigned i = 0; i < atomic_load(&r->count); i++)
		free(atomic_load(&r->ring[i]));
}

uint32_t cop_tracer_tid(void)
{
	static _Thread_local uint32_t tid;

	if (!tid)
		tid = (uint32_t)gettid();
	return tid;
}

/* ---- the producers ---- */

static struct ring *left_ring(struct rings *r)
{
	for (unsigned i = 0; i < COP_MIN(atomic_load(&r->count), COP_TRACER_RINGS); i++) {
		struct ring *ring = atomic_load(&r->ring[i]);
		bool taken = false;

		if (ring && atomic_compare_exchange_strong(&ring->taken, &taken, true))
			return ring;
	}
	return NULL;
}

static struct ring *new_ring(struct rings *r)
{
	struct ring *ring = NULL;
	unsigned slot = atomic_load(&r->count);

	do
		if (slot >= COP_TRACER_RINGS)
			return NULL;
	while (!atomic_compare_exchange_weak(&r->count, &slot, slot + 1));
	if (posix_memalign((void **)&ring, CACHE_LINE, sizeof(*ring)))
		return NULL;
	memset(ring, 0, offsetof(struct ring, data));
	atomic_init(&ring->taken, true);
	atomic_store(&r->ring[slot], ring);
	return ring;
}

static void put_in(
	struct rings *r, struct ring *ring, enum kind kind, const struct cop_tracer_event *e);

static struct ring *ring_of_thread(struct rings *r)
{
	struct ring *ring = pthread_getspecific(r->key);
	char name[16] = "";
	struct cop_tracer_event e = {.path = name};

	if (ring)
		return ring;
	ring = left_ring(r);
	if (!ring)
		ring = new_ring(r);
	if (!ring || pthread_setspecific(r->key, ring)) {
		if (ring)
			leave(ring);
		return NULL;
	}
	pthread_getname_np(pthread_self(), name, sizeof(name));
	e.path_len = strlen(name);
	put_in(r, ring, KIND_THREAD, &e);
	return ring;
}

/* Finds contiguous space for a record and sets *at; returns false if there is none. */
static bool find_room(struct ring *ring, uint64_t head, size_t size, uint64_t *at)
{
	size_t left = COP_TRACER_RING_BYTES - head % COP_TRACER_RING_BYTES;
	uint64_t end = head + size + (left < size ? left : 0);

	if (end - ring->seen_tail > COP_TRACER_RING_BYTES)
		ring->seen_tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
	if (end - ring->seen_tail > COP_TRACER_RING_BYTES)
		return false;
	if (left < size) {
		struct record *skip = (void *)(ring->data + head % COP_TRACER_RING_BYTES);

		skip->size = (uint32_t)left;
		skip->kind = KIND_SKIP;
		head += left;
	}
	*at = head;
	return true;
}

static void fill_record(
	struct record *to, enum kind kind, const struct cop_tracer_event *e, size_t path)
{
	to->kind = (uint8_t)kind;
	to->phase = (uint8_t)e->phase;
	to->args = (uint8_t)e->args;
	to->texts = 0;
	to->tid = e->tid ? e->tid : cop_tracer_tid();
	to->path_len = (uint16_t)path;
	to->has_path = e->path != NULL;
	to->name = e->name;
	to->begin_ns = e->begin_ns;
	to->end_ns = e->end_ns;
	for (unsigned i = 0; i < e->args; i++) {
		to->arg[i].key = e->arg[i].key;
		if (e->arg[i].text) {
			to->arg[i].text = e->arg[i].text;
			to->texts |= (uint8_t)(1u << i);
		} else {
			to->arg[i].value = e->arg[i].value;
		}
	}
	if (path)
		memcpy(&to->arg[e->args], e->path, path);
}

static void put_in(
	struct rings *r, struct ring *ring, enum kind kind, const struct cop_tracer_event *e)
{
	size_t path = e->path ? COP_MIN(e->path_len, PATH_KEPT) : 0;
	size_t size = sizeof(struct record) + e->args * sizeof(struct packed_arg) + path;
	uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed), at, one = 1;
	struct record *to;

	assert(e->args <= COP_TRACER_ARGS_MAX);
	size = (size + 7) & ~(size_t)7;
	if (!find_room(ring, head, size, &at)) {
		atomic_fetch_add_explicit(&ring->lost, 1, memory_order_relaxed);
		return;
	}
	to = (void *)(ring->data + at % COP_TRACER_RING_BYTES);
	to->size = (uint32_t)size;
	fill_record(to, kind, e, path);
	atomic_store_explicit(&ring->head, at + size, memory_order_release);
	/* The writer may have read this record already, but this thread cannot tell, so always wake
	 * it. */
	if ((head % HALF) + (at + size - head) >= HALF)
		(void)!write(r->wake_fd, &one, sizeof(one));
}

void cop_tracer_put(struct rings *r, enum kind kind, const struct cop_tracer_event *e)
{
	struct ring *ring = ring_of_thread(r);

	if (ring)
		put_in(r, ring, kind, e);
	else
		atomic_fetch_add_explicit(&r->homeless, 1, memory_order_relaxed);
}

/* ---- the writer ---- */

static void drain_one(struct ring *ring, void (*fn)(void *arg, const struct record *r), void *arg)
{
	uint64_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);

	while (tail < head) {
		const struct record *r = (const void *)(ring->data + tail % COP_TRACER_RING_BYTES);

		if (r->kind != KIND_SKIP)
			fn(arg, r);
		tail += r->size;
		/* Free space after each record, so that a busy thread can reuse it early. */
		atomic_store_explicit(&ring->tail, tail, memory_order_release);
	}
}

void cop_tracer_drain(
	struct rings *r, void (*fn)(void *arg, const struct record *record), void *arg)
{
	for (unsigned i = 0; i < atomic_load(&r->count); i++) {
		struct ring *ring = atomic_load(&r->ring[i]);

		if (ring)
			drain_one(ring, fn, arg);
	}
}

uint64_t cop_tracer_lost(const struct rings *r)
{
	struct rings *rings = (struct rings *)(uintptr_t)r;
	uint64_t n = atomic_load_explicit(&rings->homeless, memory_order_relaxed);

	for (unsigned i = 0; i < atomic_load(&rings->count); i++) {
		struct ring *ring = atomic_load(&rings->ring[i]);

		if (ring)
			n += atomic_load_explicit(&ring->lost, memory_order_relaxed);
	}
	return n;
}
