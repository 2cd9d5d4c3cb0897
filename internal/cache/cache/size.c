/* SPDX-License-Identifier: BSD-3-Clause */
/* Computes the cache's limit. If a node exceeds the memory limit of its job, the kernel kills it or
 * another process of the job. */
#include "cache/cache/cache_priv.h"

#include <sys/sysinfo.h>

#define RAM_UNKNOWN (2560 * COP_MIB)
#define COMMON_LEAST (64 * COP_MIB)

static uint64_t ram_bytes(void)
{
	struct sysinfo si;

	return sysinfo(&si) ? RAM_UNKNOWN : (uint64_t)si.totalram * si.mem_unit;
}

/* A tenth of memory; on a small machine 64 MiB, or a quarter of memory if that is less. */
static uint64_t tenth_of(uint64_t memory)
{
	return COP_MAX(memory / 10, COP_MIN(COMMON_LEAST, memory / 4));
}

uint64_t cop_cache_size_within(uint64_t asked, uint64_t least, uint64_t ram, uint64_t limit,
	char note[COP_CACHE_NOTE_SIZE])
{
	char want[16], may[16], get[16];
	uint64_t bytes;

	note[0] = '\0';
	if (!asked)
		return COP_MAX(tenth_of(COP_MIN(ram, limit)), least);
	if (asked <= limit)
		return asked;
	bytes = COP_MIN(asked, COP_MAX(limit / 2, least));
	snprintf(note, COP_CACHE_NOTE_SIZE,
		"--cache-size %s is more than the %s that this job may use in all (the limit of its control group): the cache "
		"may grow to %s; for more, ask for more memory",
		cop_format_size(asked, want), cop_format_size(limit, may),
		cop_format_size(bytes, get));
	return bytes;
}

uint64_t cop_cache_size(uint64_t asked, uint64_t least, char note[COP_CACHE_NOTE_SIZE])
{
	return cop_cache_size_within(asked, least, ram_bytes(), cop_memory_limit(""), note);
}
