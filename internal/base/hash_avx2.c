/* SPDX-License-Identifier: BSD-3-Clause */
/* Compiled with -mavx2 where there is such a thing (Makefile). Nothing else may stand here, because
 * the compiler uses AVX2 for whatever it likes. */
#ifdef __AVX2__
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

#include "base/base_priv.h"

uint64_t cop_base_hash_avx2(const void *data, size_t len, uint64_t seed)
{
	return XXH3_64bits_withSeed(data, len, seed);
}
