/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base/base.h"

void cop_buf_varint(struct cop_buf *b, uint64_t value)
{
	unsigned char byte[10];
	size_t n = 0;

	for (; value >= 0x80; value >>= 7)
		byte[n++] = (unsigned char)(value | 0x80);
	byte[n++] = (unsigned char)value;
	cop_buf_add(b, byte, n);
}

bool cop_varint(const unsigned char **at, const unsigned char *end, uint64_t *value)
{
	*value = 0;
	for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
		unsigned char byte = *(*at)++;

		if ((shift == 63 && byte > 1) || (shift && byte == 0))
			return false;
		*value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return true;
	}
	return false;
}
