/* SPDX-License-Identifier: BSD-3-Clause */
/* Any bytes as a manifest: what is read is within limits, and reads the same when it is written
 * again. */
#include <stdlib.h>
#include <string.h>

#include "storage/manifest/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct cop_manifest_item *i)
{
	if (i->len != strlen(i->path) || !cop_manifest_path_ok(i->path, i->len) ||
		i->ranges > COP_MANIFEST_RANGES_MAX)
		abort();
	for (unsigned k = 0; k < i->ranges; k++)
		if (i->range[k].start >= i->range[k].end ||
			(k && i->range[k].start <= i->range[k - 1].end))
			abort();
}

static bool same(const struct cop_manifest_item *a, const struct cop_manifest_item *b)
{
	return a->kind == b->kind && a->size == b->size && a->mtime_s == b->mtime_s &&
	       a->mtime_nsec == b->mtime_nsec && a->len == b->len &&
	       strcmp(a->path, b->path) == 0 && a->ranges == b->ranges &&
	       memcmp(a->range, b->range, a->ranges * sizeof(a->range[0])) == 0;
}

static void read_again(const struct cop_manifest_item *item)
{
	struct cop_manifest_reader r = {0};
	struct cop_manifest_item got;
	struct cop_buf b = {0};

	cop_manifest_add(&b, item);
	r.data = b.data;
	r.len = b.len;
	if (!cop_manifest_next(&r, &got) || !same(item, &got))
		abort();
	cop_buf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), source[COP_MANIFEST_PATH_MAX + 1];
	struct cop_manifest_set *set = cop_manifest_set_new(COP_MIB);
	struct cop_manifest_reader r = {.data = text, .len = size};
	struct cop_manifest_item item;
	struct cop_buf out = {0};
	uint64_t items = 0;
	unsigned unused = 0;
	size_t body;

	/* Allocated with exactly its size, so that reading past it is found. */
	if (size)
		memcpy(text, data, size);
	if (cop_manifest_head(text, size, source, &body, NULL) == 0 &&
		(body > size || source[0] != '/'))
		abort();
	while (cop_manifest_next(&r, &item)) {
		check(&item);
		read_again(&item);
		cop_manifest_set_add(set, &item, 0);
	}
	if (r.at != size || r.parts > COP_MANIFEST_PARTS ||
		(r.parts && !cop_manifest_path_ok(r.part_path, strlen(r.part_path))) ||
		cop_manifest_set_write(set, &out, &items, &unused))
		abort();
	for (size_t at = 0, n; (n = cop_manifest_piece(text, size, at)); at += n)
		if (at + n > size)
			abort();
	cop_buf_free(&out);
	cop_manifest_set_free(set);
	free(text);
	return 0;
}
