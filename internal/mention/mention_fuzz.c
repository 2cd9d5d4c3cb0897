/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "mention/mention.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bounds {
	const char *begin, *end;
};

static void check(void *arg, const char *name, size_t len)
{
	const struct bounds *b = arg;

	if (name < b->begin || name > b->end || len > (size_t)(b->end - name))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bounds b = {(const char *)data, (const char *)data + size};

	cop_mention_python(data, size, check, &b);
	return 0;
}
