/* SPDX-License-Identifier: BSD-3-Clause */
/* Any bytes as the first touches of two ranks: whatever is added is valid in a manifest. */
#include <stdlib.h>
#include <string.h>

#include "report/firsttouch/firsttouch_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *data;
	size_t size;
};

static ssize_t read_some(void *arg, void *data, size_t len)
{
	struct input *in = arg;

	len = COP_MIN(len, in->size);
	if (len)
		memcpy(data, in->data, len);
	in->data += len;
	in->size -= len;
	return (ssize_t)len;
}

static int check(void *arg, struct cop_manifest_item *item)
{
	(void)arg;
	if (!cop_manifest_path_ok(item->path, item->len) ||
		(!item->len && item->kind != COP_MANIFEST_DIR))
		abort();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct first_touch f = {.set = cop_manifest_set_new(16 * COP_MIB)};
	struct cop_csv csv = {0};

	for (int rank = 0; rank < 2; rank++) {
		struct input in = {data, size};
		struct cop_buf why = {0};
		int rc = cop_csv_open(&csv, read_some, &in);

		if (!rc)
			rc = cop_firsttouch_read(&f, &csv, &why);
		if ((rc && !why.len) || (!rc && !f.source))
			abort();
		cop_buf_free(&why);
	}
	cop_manifest_set_each(f.set, check, NULL);
	cop_csv_free(&csv);
	cop_manifest_set_free(f.set);
	free(f.source);
	return 0;
}
