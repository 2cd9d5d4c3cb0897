/* SPDX-License-Identifier: BSD-3-Clause */
/* Merges two listings of one directory. The names and attributes of the older one take precedence,
 * so a reader sees one version of the directory. The newer one contributes its additional names,
 * the directory's attributes and the meaning of absence. */
#include "fabric/wire/listing_priv.h"

/* Limit of a merged listing, because names that are deleted repeatedly at the storage would
 * accumulate. */
#define MERGED_MAX 65536u

static int add_entry(struct cop_listing_builder *b, const struct cop_listing_entry *e)
{
	if (b->count == MERGED_MAX)
		return -E2BIG;
	if (!e->has_attr)
		return cop_listing_add_bare(b, e->name, e->name_len, e->type, e->ino);
	return cop_listing_add(
		b, e->name, e->name_len, e->type, &e->attr, e->target, e->target_len);
}

static int add_all(struct cop_listing_builder *b, const void *blob, const void *without)
{
	uint32_t count = cop_listing_count(blob);
	struct cop_listing_entry e, other;
	int rc = 0;

	for (uint32_t i = 0; i < count && !rc; i++) {
		cop_listing_at(blob, i, &e);
		if (!without || !cop_listing_find(without, e.name, e.name_len, &other))
			rc = add_entry(b, &e);
	}
	return rc;
}

int cop_listing_merge(const void *known, const void *newer, void **blob, size_t *len)
{
	struct cop_listing_builder b = {0};
	struct cop_attr dir;
	int rc = add_all(&b, known, NULL);

	if (!rc)
		rc = add_all(&b, newer, known);
	if (rc) {
		cop_listing_builder_free(&b);
		return rc;
	}
	cop_listing_dir(newer, &dir);
	return cop_listing_build(&b, &dir, cop_listing_flags(newer), blob, len);
}
