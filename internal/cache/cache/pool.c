/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory for chunks. Chunks are separate mappings (launch.c), so freeing one returns its memory to
 * the system, and a new chunk costs a fault per page, five times the cost of copying its bytes. So
 * a few freed buffers are kept for reuse, and a new buffer is populated by one call, which costs a
 * third less. Huge pages would be cheaper still where they are free; on a host that reclaims the
 * free huge pages of its virtual machines, they cost up to three times as much (measured). */
#include "cache/cache/cache_priv.h"

#include <sys/mman.h>

#include "base/base/compat.h"

#if COP_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(data, bytes) ((void)(data), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(data, bytes) ((void)(data), (void)(bytes))
#endif

/* Smaller buffers are allocated on the heap. */
#define LARGE (256 * COP_KIB)

void cop_cache_pool(struct cop_cache *c, size_t chunk_bytes)
{
	if (chunk_bytes >= LARGE)
		c->pool.max = (unsigned)COP_MIN(POOL_MAX, c->limit / 32 / chunk_bytes);
	c->pool.bytes = chunk_bytes;
}

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static void *pop_page(struct pool *p)
{
	void *data = NULL;

	pthread_mutex_lock(&p->lock);
	if (p->count)
		data = p->data[--p->count];
	pthread_mutex_unlock(&p->lock);
	return data;
}

static bool push_page(struct pool *p, void *data)
{
	bool taken;

	pthread_mutex_lock(&p->lock);
	taken = p->count < p->max;
	if (taken)
		p->data[p->count++] = data;
	pthread_mutex_unlock(&p->lock);
	return taken;
}

#define PIECE_PAGES 256u

/* Whether the pages of a reallocated buffer are still resident. */
static bool has_pages(char *data, size_t bytes)
{
	unsigned char resident[PIECE_PAGES];

	if (mincore(data, bytes, resident))
		return false;
	return !memchr(resident, 0, bytes / page_bytes());
}

/* Kernels before Linux 5.14 cannot populate; pages are then faulted in one by one on the first
 * write. Populating existing pages costs a fifth of copying their bytes, so the kernel is queried
 * for them first. */
static void touch_pages(char *data, size_t bytes)
{
	size_t page = page_bytes(), skip = (page - (uintptr_t)data % page) % page;
	size_t left = (bytes - skip) / page * page;

	for (data += skip; left;) {
		size_t piece = COP_MIN(left, PIECE_PAGES * page);

		if (!has_pages(data, piece))
			madvise(data, piece, MADV_POPULATE_WRITE);
		data += piece;
		left -= piece;
	}
}

void *cop_cache_alloc(struct cop_cache *c, size_t bytes)
{
	void *data;

	if (cop_cache_starves(c))
		return NULL;
	data = bytes == c->pool.bytes ? pop_page(&c->pool) : NULL;
	if (data) {
		ASAN_UNPOISON_MEMORY_REGION(data, bytes);
		return data;
	}
	data = malloc(bytes);
	if (data && bytes >= LARGE)
		touch_pages(data, bytes);
	return data;
}

void cop_cache_release(struct cop_cache *c, void *data, size_t bytes)
{
	if (data && bytes == c->pool.bytes) {
		ASAN_POISON_MEMORY_REGION(data, bytes);
		if (push_page(&c->pool, data))
			return;
		ASAN_UNPOISON_MEMORY_REGION(data, bytes);
	}
	free(data);
}

void cop_cache_pool_free(struct pool *p)
{
	void *data;

	while ((data = pop_page(p))) {
		ASAN_UNPOISON_MEMORY_REGION(data, p->bytes);
		free(data);
	}
}
