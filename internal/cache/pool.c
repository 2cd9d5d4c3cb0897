/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory for chunks. As mappings of their own (launch.c) they go back to the system when they are
 * freed, and a new one costs a fault for each page, five times what copying its bytes does. So a
 * few that come free are kept for the next ones, and a new one gets its pages by one call, which
 * costs a third less. Huge pages would be cheaper still where they are at hand; where a host takes
 * free ones back from its virtual machines they cost up to three times as much (tried). */
#include "cache/cache_priv.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/compat.h"

#if COP_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(data, bytes) ((void)(data), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(data, bytes) ((void)(data), (void)(bytes))
#endif

/* Smaller ones come from the heap. */
#define LARGE (256 * COP_KIB)

void cop_cache_pool(struct cop_cache *c, size_t chunk_bytes)
{
	if (chunk_bytes >= LARGE)
		c->pool.max = (unsigned)COP_MIN(POOL_MAX, c->limit / 32 / chunk_bytes);
	c->pool.bytes = chunk_bytes;
}

static void *pop(struct pool *p)
{
	void *data = NULL;

	pthread_mutex_lock(&p->lock);
	if (p->count)
		data = p->data[--p->count];
	pthread_mutex_unlock(&p->lock);
	return data;
}

static bool push(struct pool *p, void *data)
{
	bool taken;

	pthread_mutex_lock(&p->lock);
	taken = p->count < p->max;
	if (taken)
		p->data[p->count++] = data;
	pthread_mutex_unlock(&p->lock);
	return taken;
}

/* Refused before Linux 5.14: then the pages come one by one, when they are written. */
static void populate(char *data, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), skip = (page - (uintptr_t)data % page) % page;

	madvise(data + skip, (bytes - skip) / page * page, MADV_POPULATE_WRITE);
}

void *cop_cache_alloc(struct cop_cache *c, size_t bytes)
{
	void *data;

	if (cop_cache_starves(c))
		return NULL;
	data = bytes == c->pool.bytes ? pop(&c->pool) : NULL;
	if (data) {
		ASAN_UNPOISON_MEMORY_REGION(data, bytes);
		return data;
	}
	data = malloc(bytes);
	if (data && bytes >= LARGE)
		populate(data, bytes);
	return data;
}

void cop_cache_release(struct cop_cache *c, void *data, size_t bytes)
{
	if (data && bytes == c->pool.bytes) {
		ASAN_POISON_MEMORY_REGION(data, bytes);
		if (push(&c->pool, data))
			return;
		ASAN_UNPOISON_MEMORY_REGION(data, bytes);
	}
	free(data);
}

void cop_cache_pool_free(struct pool *p)
{
	void *data;

	while ((data = pop(p))) {
		ASAN_UNPOISON_MEMORY_REGION(data, p->bytes);
		free(data);
	}
}
