/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/wire/wire.h"

static uint8_t *text_like(size_t len)
{
	uint8_t *data = malloc(len);

	for (size_t i = 0; i < len; i++)
		data[i] = (uint8_t)("import numpy as np\n"[i % 19] + (i % 1000 == 0));
	return data;
}

static void every_range_of_a_packed_chunk_reads_as_the_original(void **state)
{
	static const size_t lens[] = {
		1000, COP_PACK_BLOCK, COP_PACK_BLOCK + 1, 5 * COP_PACK_BLOCK + 77, COP_MIB};

	(void)state;
	for (size_t k = 0; k < COP_ARRAY_SIZE(lens); k++) {
		size_t len = lens[k], blob_len;
		uint8_t *raw = text_like(len), *out = malloc(len);
		void *blob;

		assert_int_equal(cop_pack(raw, len, &blob, &blob_len), 0);
		assert_true(blob_len < len / 2);
		assert_int_equal(cop_pack_check(blob, blob_len, len), 0);
		for (size_t off = 0; off < len; off += len / 7 + 1)
			for (size_t n = 1; off + n <= len; n = n * 3 + 1) {
				assert_int_equal(cop_pack_read(blob, off, n, out), 0);
				assert_memory_equal(out, raw + off, n);
			}
		free(raw);
		free(out);
		free(blob);
	}
}

static void data_that_does_not_shrink_by_a_tenth_stays_raw(void **state)
{
	uint8_t raw[20000];
	size_t blob_len;
	void *blob;
	unsigned seed = 1;

	(void)state;
	for (size_t i = 0; i < sizeof(raw); i++)
		raw[i] = (uint8_t)rand_r(&seed);
	assert_int_equal(cop_pack(raw, sizeof(raw), &blob, &blob_len), -ENODATA);
	assert_int_equal(cop_pack(raw, 0, &blob, &blob_len), -ENODATA);
}

static void a_flipped_bit_is_found_when_it_is_unpacked(void **state)
{
	size_t len = 3 * COP_PACK_BLOCK, blob_len;
	uint8_t *raw = text_like(len), *out = malloc(len);
	void *blob;

	(void)state;
	assert_int_equal(cop_pack(raw, len, &blob, &blob_len), 0);
	for (size_t i = 0; i < blob_len; i += 7) {
		((uint8_t *)blob)[i] ^= 0x10;
		if (cop_pack_check(blob, blob_len, len) == 0 &&
			cop_pack_read(blob, 0, len, out) == 0)
			/* The reserved word may differ for the same data, and so may redundant
			 * encodings. */
			assert_memory_equal(out, raw, len);
		((uint8_t *)blob)[i] ^= 0x10;
	}
	free(raw);
	free(out);
	free(blob);
}

static void a_blob_that_is_cut_or_of_another_length_is_refused(void **state)
{
	size_t len = 2 * COP_PACK_BLOCK, blob_len;
	uint8_t *raw = text_like(len);
	void *blob;

	(void)state;
	assert_int_equal(cop_pack(raw, len, &blob, &blob_len), 0);
	for (size_t cut = 0; cut < blob_len; cut++)
		assert_int_equal(cop_pack_check(blob, cut, len), -EBADMSG);
	assert_int_equal(cop_pack_check(blob, blob_len, len - 1), -EBADMSG);
	assert_int_equal(cop_pack_check(blob, blob_len, len + COP_PACK_BLOCK), -EBADMSG);
	free(raw);
	free(blob);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_range_of_a_packed_chunk_reads_as_the_original),
		cmocka_unit_test(data_that_does_not_shrink_by_a_tenth_stays_raw),
		cmocka_unit_test(a_flipped_bit_is_found_when_it_is_unpacked),
		cmocka_unit_test(a_blob_that_is_cut_or_of_another_length_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
