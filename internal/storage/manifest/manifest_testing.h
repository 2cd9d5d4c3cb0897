/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of this module build manifests from. */
#ifndef COP_MANIFEST_TESTING_H
#define COP_MANIFEST_TESTING_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "storage/manifest/manifest.h"

static inline struct cop_manifest_item item(enum cop_manifest_kind kind, const char *path)
{
	return (struct cop_manifest_item){.kind = kind, .path = path, .len = strlen(path)};
}

static inline struct cop_manifest_item file(
	const char *path, uint64_t size, uint64_t start, uint64_t end)
{
	struct cop_manifest_item i = item(COP_MANIFEST_FILE, path);

	i.size = size;
	i.mtime_s = 1700000000;
	i.mtime_nsec = 123456789;
	cop_manifest_range_add(&i, start, end);
	return i;
}

static inline void write_all(struct cop_manifest_set *s, const char *source, struct cop_buf *out)
{
	uint64_t items = 0;
	unsigned unused = 0;

	cop_manifest_begin(out, source);
	assert_int_equal(cop_manifest_set_write(s, out, &items, &unused), 0);
	cop_manifest_end(out, items);
}

#endif
