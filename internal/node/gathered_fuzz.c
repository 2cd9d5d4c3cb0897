/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node below says of its subtree, from whoever has the secret: as bytes, or (first byte) as
 * the rest of an answer whose numbers are right. */
#include <stdlib.h>
#include <string.h>

#include "node/node_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was understood goes on as it is, and is understood again. */
static void goes_on(const struct gathered *g)
{
	struct gathered sum = {0}, again = {0};
	struct cop_buf out = {0}, lines = {0};

	cop_node_gathered_add(&sum, g, '\n');
	cop_node_gathered_add(&sum, g, '\n');
	cop_node_gathered_say_unwritten(&sum, &lines);
	if (cop_node_gathered_encode(&sum, &out) == 0)
		if (cop_node_gathered_decode(out.data, out.len, &again) ||
			again.nodes != sum.nodes || again.unwritten != sum.unwritten)
			abort();
	cop_buf_free(&lines);
	cop_buf_free(&out);
	cop_node_gathered_free(&sum);
	cop_node_gathered_free(&again);
}

static void decode(const void *data, size_t len)
{
	struct gathered g = {0};

	if (cop_node_gathered_decode(data, len, &g) == 0)
		goes_on(&g);
	cop_node_gathered_free(&g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gathered none = {.nodes = 1};
	struct cop_buf out = {0};

	if (!size)
		return 0;
	if (data[0] & 1) {
		decode(data + 1, size - 1);
		return 0;
	}
	/* A profile stands behind the numbers of an answer without a text. */
	if (cop_node_gathered_encode(&none, &out) == 0) {
		cop_buf_add(&out, data + 1, size - 1);
		decode(out.data, out.len);
	}
	cop_buf_free(&out);
	return 0;
}
