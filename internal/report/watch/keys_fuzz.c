/* SPDX-License-Identifier: BSD-3-Clause */
/* Any bytes from a terminal: each gives one of our keys or none, and once the terminal has been
 * silent the next character is taken literally again. */
#include <stdlib.h>

#include "report/watch/watch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int key)
{
	if (key != COP_SCREEN_KEY_NONE && key != COP_SCREEN_KEY_REDRAW &&
		key != COP_SCREEN_KEY_ESCAPE && !(key >= 0x20 && key < 0x7f) &&
		!(key >= COP_SCREEN_KEY_UP && key <= COP_SCREEN_KEY_END))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cop_screen_keys k = {0};

	for (size_t i = 0; i < size; i++) {
		check(cop_screen_keys_take(&k, data[i]));
		if (k.len >= sizeof(k.text))
			abort();
	}
	check(cop_screen_keys_idle(&k));
	if (cop_screen_keys_take(&k, 'q') != 'q')
		abort();
	return 0;
}
