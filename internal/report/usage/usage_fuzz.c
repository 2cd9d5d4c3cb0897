/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "report/usage/usage.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *data;
	size_t left, step;
};

static ssize_t read_input(void *arg, void *data, size_t len)
{
	struct input *in = arg;
	size_t n = COP_MIN(COP_MIN(in->left, in->step), len);

	if (n)
		memcpy(data, in->data, n);
	in->data += n;
	in->left -= n;
	return (ssize_t)n;
}

/* The result does not depend on how the bytes are split into reads. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cop_usage whole = {0}, bits = {0};
	struct input a = {data, size, SIZE_MAX}, b = {data, size, 1 + size % 5};
	const char *why_a = NULL, *why_b = NULL;
	int rc = cop_usage_add(&whole, COP_USAGE_TREE, read_input, &a, &why_a);

	if (rc != cop_usage_add(&bits, COP_USAGE_TREE, read_input, &b, &why_b) || why_a != why_b)
		abort();
	if (memcmp(whole.table, bits.table, sizeof(whole.table)) || (rc && !why_a) ||
		(rc && whole.table[COP_USAGE_TREE].files))
		abort();
	return 0;
}
