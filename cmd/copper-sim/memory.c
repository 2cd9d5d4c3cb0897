/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes that are never read. The cache and tree/fetch of 100,000 nodes hold terabytes of chunks.
 * Here a chunk is an address in a reserved part of the address space without memory behind it, and
 * its checksum is a constant. The linker replaces cop_cache_alloc, cop_cache_release, cop_hash64
 * and cop_listing_check with these functions (--wrap); calls for other bytes are forwarded to the
 * real ones.
 *
 * Tables that are mostly zeros are also handled here: a cache and a tree/fetch have 270 KB of them,
 * and a short run writes only a few of their pages. Only these pages use memory if the kernel
 * provides the zeros, so calloc and free are wrapped as well. malloc maps only a limited number of
 * such tables, and only if its heap has no free block of that size; otherwise calloc clears them by
 * writing every page. */
#include <sys/mman.h>

#include "sim.h"
#include "fabric/wire/wire.h"

#define CHUNKS_BYTES ((size_t)1 << 45) /* 32 TiB: 100,000 nodes with 350 MB each */
#define BLOBS_BYTES ((size_t)1 << 32)
#define TABLES_BYTES ((size_t)1 << 39) /* 1,000,000 nodes */
#define TABLES_STEP ((size_t)1 << 30)
#define TABLE_LEAST ((size_t)64 << 10) /* smaller than those of a cache or a tree/fetch */
#define CHUNK_SUM 0x636f70706572ULL

static char *base;
static size_t chunks_used, blobs_used;
static char *tables;
static size_t tables_used, tables_open;

void *__real_calloc(size_t count, size_t bytes);
void __real_free(void *data);
void *__real_cop_cache_alloc(struct cop_cache *c, size_t bytes);
void __real_cop_cache_release(struct cop_cache *c, void *data, size_t bytes);
uint64_t __real_cop_hash64(const void *data, size_t len, uint64_t seed);
int __real_cop_listing_check(const void *blob, size_t len);
void *__wrap_calloc(size_t count, size_t bytes);
void __wrap_free(void *data);
void *__wrap_cop_cache_alloc(struct cop_cache *c, size_t bytes);
void __wrap_cop_cache_release(struct cop_cache *c, void *data, size_t bytes);
uint64_t __wrap_cop_hash64(const void *data, size_t len, uint64_t seed);
int __wrap_cop_listing_check(const void *blob, size_t len);

static bool is_chunk(const void *data)
{
	return base && (const char *)data >= base + BLOBS_BYTES &&
	       (const char *)data < base + BLOBS_BYTES + CHUNKS_BYTES;
}

bool cop_sim_memory_shared(const void *data)
{
	return base && (const char *)data >= base &&
	       (const char *)data < base + BLOBS_BYTES + CHUNKS_BYTES;
}

static char *reserve_addresses(char *before, size_t bytes)
{
	if (before)
		munmap(before, bytes);
	before = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (before == MAP_FAILED) {
		perror("copper-sim: cannot reserve address space (see ulimit -v)");
		exit(1);
	}
	return before;
}

static void open_memory(char *at, size_t bytes)
{
	if (!mprotect(at, bytes, PROT_READ | PROT_WRITE))
		return;
	perror("copper-sim: cannot use reserved address space");
	exit(1);
}

void cop_sim_memory_reset(void)
{
	base = reserve_addresses(base, BLOBS_BYTES + CHUNKS_BYTES);
	open_memory(base, BLOBS_BYTES);
	tables = reserve_addresses(tables, TABLES_BYTES);
	/* With huge pages, nearly all of it would become resident. Failure is harmless: the kernel
	 * then has no huge pages. */
	madvise(tables, TABLES_BYTES, MADV_NOHUGEPAGE);
	chunks_used = blobs_used = tables_used = tables_open = 0;
}

void *cop_sim_memory_blob(size_t bytes)
{
	size_t at = blobs_used;

	blobs_used += (bytes + 15) / 16 * 16;
	return blobs_used <= BLOBS_BYTES ? base + at : NULL;
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	size_t at = tables_used;

	if (count != 1 || bytes < TABLE_LEAST || !tables)
		return __real_calloc(count, bytes);
	if (bytes > TABLES_BYTES - at)
		return NULL;
	tables_used += (bytes + 15) / 16 * 16;
	for (; tables_open < tables_used; tables_open += TABLES_STEP)
		open_memory(tables + tables_open, TABLES_STEP);
	return tables + at;
}

static bool is_table(const char *data)
{
	return tables && data >= tables && data < tables + TABLES_BYTES;
}

/* Tables and bytes in the reserved address space are kept until the reset. */
void __wrap_free(void *data)
{
	if (!is_table(data) && !cop_sim_memory_shared(data))
		__real_free(data);
}

void *__wrap_cop_cache_alloc(struct cop_cache *c, size_t bytes)
{
	size_t at = chunks_used;

	(void)c;
	if (bytes > CHUNKS_BYTES - at)
		return NULL;
	chunks_used += bytes;
	return base + BLOBS_BYTES + at;
}

void __wrap_cop_cache_release(struct cop_cache *c, void *data, size_t bytes)
{
	if (!cop_sim_memory_shared(data))
		__real_cop_cache_release(c, data, bytes);
}

uint64_t __wrap_cop_hash64(const void *data, size_t len, uint64_t seed)
{
	return is_chunk(data) ? CHUNK_SUM : __real_cop_hash64(data, len, seed);
}

int __wrap_cop_listing_check(const void *blob, size_t len)
{
	return cop_sim_memory_shared(blob) ? 0 : __real_cop_listing_check(blob, len);
}
