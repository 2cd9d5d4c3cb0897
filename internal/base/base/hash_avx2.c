/* SPDX-License-Identifier: BSD-3-Clause */
/* Compiled with -mavx2 where the architecture supports it (Makefile). Nothing else may go in this
 * file, because the compiler may use AVX2 anywhere in it. */
#ifdef __AVX2__
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

#include "base/base/base_priv.h"

uint64_t cop_base_hash_avx2(const void *data, size_t len, uint64_t seed)
{
	return XXH3_64bits_withSeed(data, len, seed);
}
