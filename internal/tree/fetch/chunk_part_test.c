/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of a chunk, plain and packed. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tree/fetch/fetch_testing.h"

/* Whatever is in the cache, a reader never reads past its end. */
static void a_reader_never_reads_past_the_end_of_an_object(void **state)
{
	size_t sizes[] = {0, 1, 4095, 4096, 70000};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(sizes); i++)
		for (int packed = 0; packed < 2; packed++) {
			size_t len = sizes[i];
			struct cop_obj obj = {.data = calloc(1, len + 1), .len = len};
			char *out = malloc(100000);
			const void *data;
			void *blob;

			if (packed && cop_pack(obj.data, len, &blob, &obj.len) == 0) {
				free(obj.data);
				obj.data = blob;
				obj.packed = true;
			}
			assert_int_equal(cop_fetch_chunk_part(&obj, 0, len, out, &data), 0);
			assert_int_equal(cop_fetch_chunk_part(&obj, len, 0, out, &data), 0);
			assert_int_equal(
				cop_fetch_chunk_part(&obj, 0, len + 1, out, &data), -EBADMSG);
			assert_int_equal(cop_fetch_chunk_part(&obj, len, 1, out, &data), -EBADMSG);
			assert_int_equal(
				cop_fetch_chunk_part(&obj, len + 1, 0, out, &data), -EBADMSG);
			assert_int_equal(
				cop_fetch_chunk_part(&obj, SIZE_MAX, 2, out, &data), -EBADMSG);
			assert_int_equal(
				cop_fetch_chunk_part(&obj, 1, SIZE_MAX, out, &data), -EBADMSG);
			free(obj.data);
			free(out);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reader_never_reads_past_the_end_of_an_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
