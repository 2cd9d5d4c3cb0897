/* SPDX-License-Identifier: BSD-3-Clause */
/* buf: a growing byte buffer. */
#ifndef COP_BASE_BUF_H
#define COP_BASE_BUF_H

#include "base/base/macros.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A zero-initialised buffer is empty. After the first append, data[len] is NUL. A failed allocation
 * sets `failed` and turns later appends into no-ops, so one check at the end is enough. */
struct cop_buf {
	char *data;
	size_t len, cap;
	bool failed;
};

void cop_buf_add(struct cop_buf *b, const void *data, size_t len);
void cop_buf_str(struct cop_buf *b, const char *text);
void cop_buf_printf(struct cop_buf *b, const char *fmt, ...) COP_PRINTF(2, 3);
void cop_buf_free(struct cop_buf *b);

/* Appends value as LEB128 in its shortest form (varint.c). */
void cop_buf_varint(struct cop_buf *b, uint64_t value);
/* Reads one LEB128 number and advances *at past it. Returns false if the number is truncated,
 * exceeds 64 bits or is not in its shortest form. */
bool cop_varint(const unsigned char **at, const unsigned char *end, uint64_t *value);

#endif
