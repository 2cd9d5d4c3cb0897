/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "tree/guess/policy_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every byte of a name can be read. */
static void touch(void *arg, const char *name, size_t len)
{
	volatile char *last = arg;

	for (size_t i = 0; i < len; i++)
		*last = name[i];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char last;

	cop_mention_python(data, size, touch, &last);
	cop_mention_elf(data, size, touch, &last);
	return 0;
}
