/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base/base_priv.h"

#include <xxhash.h>

/* Shorter inputs, such as table keys, gain nothing from AVX2. */
#define LONG_BYTES 1024

uint64_t cop_hash64(const void *data, size_t len, uint64_t seed)
{
	if (len >= LONG_BYTES && cop_base_has_avx2())
		return cop_base_hash_avx2(data, len, seed);
	return XXH3_64bits_withSeed(data, len, seed);
}
