/* SPDX-License-Identifier: BSD-3-Clause */
/* Pages divide the hash range evenly. Two nodes that know different names of a directory still
 * agree on the page of each name they share. */
#include "fabric/wire/listing_priv.h"

#include <assert.h>

_Static_assert(COP_PAGES_MAX <= UINT32_MAX, "the product below fits into 64 bits");

uint32_t cop_listing_page_of(const char *name, size_t name_len, uint32_t pages)
{
	uint64_t high = cop_wire_name_hash(name, name_len) >> (COP_WIRE_HASH_BITS - 32);

	return (uint32_t)(high * pages >> 32);
}

uint32_t cop_listing_pages(const void *listing)
{
	uint32_t count = (cop_listing_count(listing) + COP_PAGE_NAMES - 1) / COP_PAGE_NAMES;

	return COP_MIN(COP_MAX(count, 1u), COP_PAGES_MAX);
}

static uint32_t page_at(const void *listing, uint32_t i, uint32_t pages)
{
	struct cop_listing_entry e;

	cop_listing_at(listing, i, &e);
	return cop_listing_page_of(e.name, e.name_len, pages);
}

/* The index of the first entry of this page or of a later one. */
static uint32_t start_of(const void *listing, uint32_t pages, uint32_t index)
{
	uint32_t low = 0, high = cop_listing_count(listing);

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (page_at(listing, mid, pages) < index)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

void cop_listing_page_range(
	const void *listing, uint32_t pages, uint32_t index, uint32_t *first, uint32_t *end)
{
	assert(index < pages);
	*first = start_of(listing, pages, index);
	*end = start_of(listing, pages, index + 1);
}

int cop_listing_page_check(const void *blob, size_t len, const struct cop_listing_page *page)
{
	struct cop_listing_entry e;
	struct cop_attr dir;
	uint32_t count;

	if (cop_listing_check(blob, len) || cop_listing_flags(blob))
		return -EBADMSG;
	count = cop_listing_count(blob);
	cop_listing_dir(blob, &dir);
	if (count > COP_PAGE_MOST || !cop_version_same(dir.version, page->version))
		return -EBADMSG;
	for (uint32_t i = 0; i < count; i++) {
		cop_listing_at(blob, i, &e);
		if (!e.has_attr ||
			cop_listing_page_of(e.name, e.name_len, page->pages) != page->index)
			return -EBADMSG;
	}
	return 0;
}
