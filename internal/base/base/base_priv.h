/* SPDX-License-Identifier: BSD-3-Clause */
/* Declarations shared by the files of base.
 *
 * The XXH3 code for long inputs is compiled twice: the library's build for the baseline
 * architecture, and ours for AVX2, which is 1.6 times as fast. The results are identical, so nodes
 * with different processors agree. */
#ifndef COP_BASE_PRIV_H
#define COP_BASE_PRIV_H

#include "base/base/base.h"

/* Call only if cop_base_has_avx2(). */
uint64_t cop_base_hash_avx2(const void *data, size_t len, uint64_t seed);

/* Fallback of cop_close_range for kernels older than 5.9, which lack close_range(2). */
int cop_base_close_each(unsigned first, unsigned last);

static inline bool cop_base_has_avx2(void)
{
#ifdef __x86_64__
	return __builtin_cpu_supports("avx2");
#else
	return false;
#endif
}

#endif
