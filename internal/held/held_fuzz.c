/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "held/held.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *data;
	size_t left, step;
};

static ssize_t give(void *arg, void *data, size_t len)
{
	struct input *in = arg;
	size_t n = COP_MIN(COP_MIN(in->left, in->step), len);

	if (n)
		memcpy(data, in->data, n);
	in->data += n;
	in->left -= n;
	return (ssize_t)n;
}

/* However the bytes are cut into reads, they mean the same. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cop_held whole = {0}, bits = {0};
	struct input a = {data, size, SIZE_MAX}, b = {data, size, 1 + size % 5};
	const char *why_a = NULL, *why_b = NULL;
	int rc = cop_held_add(&whole, COP_HELD_TREE, give, &a, &why_a);

	if (rc != cop_held_add(&bits, COP_HELD_TREE, give, &b, &why_b) || why_a != why_b)
		abort();
	if (memcmp(whole.table, bits.table, sizeof(whole.table)) || (rc && !why_a) ||
		(rc && whole.table[COP_HELD_TREE].files))
		abort();
	return 0;
}
