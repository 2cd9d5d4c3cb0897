/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "fabric/wire/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first four bytes are the length that the reader expects. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t raw_len;
	void *blob, *out;

	if (size < 4)
		return 0;
	memcpy(&raw_len, data, 4);
	raw_len %= 4 * COP_PACK_BLOCK;
	blob = malloc(size - 4 + 1);
	out = malloc(raw_len + 1);
	memcpy(blob, data + 4, size - 4);
	if (cop_pack_check(blob, size - 4, raw_len) == 0) {
		cop_pack_read(blob, 0, raw_len, out);
		cop_pack_read(blob, raw_len / 2, raw_len - raw_len / 2, out);
	}
	free(blob);
	free(out);
	return 0;
}
