/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node below reports about its subtree, from a sender that has the secret: the input is the
 * whole answer or, depending on its first byte, the rest of an answer whose numbers are right. */
#include <stdlib.h>
#include <string.h>

#include "tree/op/op_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was decoded is encoded again, and decodes to the same. */
static void goes_on(const struct cop_op_sum *g)
{
	struct cop_op_sum sum = {0}, again = {0};
	struct cop_buf out = {0}, lines = {0};

	cop_op_sum_add(&sum, g, '\n');
	cop_op_sum_add(&sum, g, '\n');
	cop_op_sum_say_unwritten(&sum, &lines);
	if (cop_op_sum_encode(&sum, &out) == 0)
		if (cop_op_sum_decode(out.data, out.len, &again) || again.nodes != sum.nodes ||
			again.unwritten != sum.unwritten || again.mounted != sum.mounted ||
			again.silent.len != sum.silent.len ||
			(sum.silent.len &&
				memcmp(again.silent.data, sum.silent.data, sum.silent.len)))
			abort();
	cop_buf_free(&lines);
	cop_buf_free(&out);
	cop_op_sum_free(&sum);
	cop_op_sum_free(&again);
}

static void decode(const void *data, size_t len)
{
	struct cop_op_sum g = {0};

	if (cop_op_sum_decode(data, len, &g) == 0)
		goes_on(&g);
	cop_op_sum_free(&g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cop_op_sum none = {.nodes = 1};
	struct cop_buf out = {0};

	if (!size)
		return 0;
	if (data[0] & 1) {
		decode(data + 1, size - 1);
		return 0;
	}
	/* The profile follows the numbers of an answer without a text. */
	if (cop_op_sum_encode(&none, &out) == 0) {
		cop_buf_add(&out, data + 1, size - 1);
		decode(out.data, out.len);
	}
	cop_buf_free(&out);
	return 0;
}
