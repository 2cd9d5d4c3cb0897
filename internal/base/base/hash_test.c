/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <xxhash.h>

#include "base/base/base_priv.h"

#define MOST (3 * COP_MIB)

static const uint64_t seeds[] = {0, 1, 0x9e3779b97f4a7c15ULL};

/* Tests every length around the steps of the algorithm at every alignment, and the lengths of
 * chunks. */
static void compare(uint64_t (*hash)(const void *data, size_t len, uint64_t seed))
{
	static const size_t long_ones[] = {
		65536, 100000, COP_MIB - 1, COP_MIB, COP_MIB + 1, 3 * COP_MIB - 64};
	unsigned char *bytes = malloc(MOST);

	assert_non_null(bytes);
	for (size_t i = 0; i < MOST; i++)
		bytes[i] = (unsigned char)((i * 2654435761u) >> 13);
	for (size_t s = 0; s < COP_ARRAY_SIZE(seeds); s++) {
		for (size_t len = 0; len < 2200; len++)
			assert_int_equal(hash(bytes + len % 64, len, seeds[s]),
				XXH3_64bits_withSeed(bytes + len % 64, len, seeds[s]));
		for (size_t i = 0; i < COP_ARRAY_SIZE(long_ones); i++)
			assert_int_equal(hash(bytes + i, long_ones[i], seeds[s]),
				XXH3_64bits_withSeed(bytes + i, long_ones[i], seeds[s]));
	}
	free(bytes);
}

static void the_hash_is_the_librarys_whatever_the_processor(void **state)
{
	(void)state;
	compare(cop_hash64);
}

static void the_fast_hash_gives_the_same_for_every_length(void **state)
{
	(void)state;
	if (!cop_base_has_avx2()) {
		print_message("this processor has no AVX2\n");
		skip();
	}
	compare(cop_base_hash_avx2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_hash_is_the_librarys_whatever_the_processor),
		cmocka_unit_test(the_fast_hash_gives_the_same_for_every_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
