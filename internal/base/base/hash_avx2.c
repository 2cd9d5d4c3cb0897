/* SPDX-License-Identifier: BSD-3-Clause */
/* Compiled with -mavx2 where the processor architecture has it (Makefile). Nothing else may be in
 * this file, because the compiler uses AVX2 wherever it likes. */
#ifdef __AVX2__
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

#include "base/base/base_priv.h"

uint64_t cop_base_hash_avx2(const void *data, size_t len, uint64_t seed)
{
	return XXH3_64bits_withSeed(data, len, seed);
}
