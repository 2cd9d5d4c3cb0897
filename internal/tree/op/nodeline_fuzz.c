/* SPDX-License-Identifier: BSD-3-Clause */
/* A node's line, as another node sends it: what is read lies within the input, contains no end of a
 * line once it is written again, and reads the same the second time. */
#include <stdlib.h>
#include <string.h>

#include "tree/op/op.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_again(const struct cop_nodeline *n)
{
	struct cop_buf out = {0};
	struct cop_nodeline again;

	cop_nodeline_write(n, &out);
	if (out.failed || strpbrk(out.data, "\n\r\033") || cop_nodeline_read(out.data, &again) ||
		again.rank != n->rank || again.state != n->state ||
		strcmp(again.host, n->host) != 0 || strcmp(again.reason, n->reason) != 0 ||
		memcmp(again.value, n->value, sizeof(n->value)) != 0)
		abort();
	cop_buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *line = malloc(size + 1);
	struct cop_nodeline n;

	if (!line)
		return 0;
	memcpy(line, data, size);
	line[size] = '\0';
	if (cop_nodeline_read(line, &n) == 0) {
		if (n.host < line || n.host + strlen(n.host) > line + size || n.reason < n.host ||
			n.reason + strlen(n.reason) > line + size)
			abort();
		read_again(&n);
	}
	free(line);
	return 0;
}
